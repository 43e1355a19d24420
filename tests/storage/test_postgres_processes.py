"""Clients, servers and connections that die in the middle of a write to PostgreSQL: nothing is lost, nothing doubled.

`python -m benchmarks.postgres_faults` runs the long campaign of this.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, TypeAlias

import psycopg
import pytest

import nacre
from nacre.errors import MaybeStored, StoreUnavailable
from nacre.storage.postgres import PostgresStore, unanswered
from nacre.storage.postgres.schema import Db
from nacre.types.facts import NewFact
from nacre.types.memory import Replacement
from postgres_server import PostgresServer, Schemas, fresh_schemas, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]

Actions: TypeAlias = dict[str, list[str]]  # by id of a memory, in order

UNKNOWN = "it may not be stored"
ANSWER_S = 0.3
MESSAGES_MAX = 16  # of a write before its COMMIT
PROCESSES_ONLY = ("fsync=off",)  # the machine survives the processes that are killed here


# ---------------------------------------------------------------- a short campaign, and what it would notice


def test_nothing_acknowledged_is_lost_doubled_or_a_ghost() -> None:
    """Real clients write while each fault happens in turn; then all tables are compared and counted anew."""
    from benchmarks import postgres_faults

    verdicts = postgres_faults.campaign(postgres_faults.FAULTS, seed=20, clients=2, options=PROCESSES_ONLY)
    assert verdicts.keys() == set(postgres_faults.FAULTS)
    for verdict in verdicts.values():
        assert verdict.rounds == 1
        assert verdict.acknowledged > 0
        assert verdict.bad == 0, verdicts


def test_a_campaign_notices_what_is_lost_doubled_half_or_a_ghost() -> None:
    from benchmarks.common.postgres_fault_workers import Expected, State, Unknown, Verdict

    a, b, changed = State("live", "a 1"), State("live", "b 1"), State("live", "a 2", events=2)
    unknown = Unknown({"a": a, "b": None}, {"a": changed, "b": b})
    none = Verdict()
    cases: list[tuple[dict[str, Any], list[Any], dict[str, Any], Verdict]] = [
        ({"a": a}, [], {"a": [a]}, none),
        ({"a": a}, [], {}, Verdict(lost=1)),
        ({"a": changed}, [], {"a": [a]}, Verdict(lost=1)),
        ({"a": a}, [], {"a": [a, a]}, Verdict(doubled=1)),
        ({"a": a}, [], {"a": [a._replace(events=2)]}, Verdict(doubled=1)),
        ({"a": a}, [], {"a": [a._replace(facts=("f",))]}, Verdict(doubled=1)),
        ({"a": a._replace(facts=("f",))}, [], {"a": [a]}, Verdict(lost=1)),
        ({"a": a._replace(status="forgotten")}, [], {"a": [a]}, Verdict(lost=1)),
        ({"a": None}, [], {"a": [a]}, Verdict(ghosts=1)),
        ({}, [], {"a": [a]}, Verdict(ghosts=1)),
        ({"a": a}, [unknown], {"a": [a]}, Verdict(unknown=1)),
        ({"a": a}, [unknown], {"a": [changed], "b": [b]}, Verdict(unknown=1, stored=1)),
        ({"a": a}, [unknown], {"a": [changed]}, Verdict(unknown=1, half=1)),
        ({"a": a}, [unknown], {"a": [a], "b": [b]}, Verdict(unknown=1, half=1)),
    ]
    for states, in_doubt, found, verdict in cases:
        assert Expected(dict(states), list(in_doubt)).judge(found) == verdict, (states, found)


# ---------------------------------------------------------------- a connection that ends at any moment of a write


class Cut:
    """Stands between a client and the server, and ends the connection once, at a given message of the client."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._message: int | None = 0
        self._answered = False
        self._for_good = False
        self._seen = 0  # messages
        self._writes = False
        self.at_commit = self.done = False
        threading.Thread(target=self._accept, daemon=True).start()

    def at(self, message: int | None, *, answered: bool, for_good: bool = False) -> None:
        """None: at the COMMIT of the next write. `answered`: the server receives the message and answers.

        `for_good`: no connection comes through from then on.
        """
        with self._lock:
            self._message, self._answered, self._for_good = message, answered, for_good
            self._seen = 0
            self.at_commit = self.done = False

    def _cuts(self, message: bytes) -> tuple[bool, bool]:
        """Whether to end the connection now, and whether the server is to answer before."""
        with self._lock:
            self._seen += 1
            if b"BEGIN" in message:
                self._writes = b"READ ONLY" not in message
            ends_write = self._writes and b"COMMIT" in message and b"BEGIN" not in message
            cut = not self.done and (ends_write if self._message is None else self._seen == self._message)
            self.done |= cut
            self.at_commit |= cut and ends_write
            return cut, self._answered

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server, suppress(OSError):
            while not (self._for_good and self.done):
                ready, _, _ = select.select([client, server], [], [])
                if server in ready:
                    answer = server.recv(1 << 16)
                    if not answer:
                        return
                    client.sendall(answer)
                if client in ready:
                    message = client.recv(1 << 20)
                    if not message:
                        return
                    cut, answered = self._cuts(message)
                    if cut and not answered:
                        return
                    server.sendall(message)
                    if cut:
                        server.settimeout(ANSWER_S)  # to a part of a statement there is no answer
                        server.recv(1 << 16)
                        return


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as given:
        yield given


@pytest.fixture
def cut(schemas: Schemas) -> Iterator[Cut]:
    with closing(Cut(schemas.server.port)) as between:
        yield between


def _says(memory: nacre.Nacre, text: str, old: str) -> object:
    return memory.add_facts(old, [NewFact(subject="Lin", predicate="likes", object=text)])


WRITES: dict[str, Callable[[nacre.Nacre, str, str], object]] = {
    "remembered": lambda memory, text, _: memory.remember(text),
    "updated": lambda memory, text, old: memory.update(old, text=text),
    "facts added": _says,
}


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_a_connection_that_ends_at_any_message_of_a_write(
    schemas: Schemas, cut: Cut, write: str, answered: bool
) -> None:
    """The write is carried out again if it is not stored, also when its COMMIT was not answered: it is stored once."""
    name = schemas.new()
    dsn = schemas.dsn.replace(f":{schemas.server.port}/", f":{cut.port}/")
    with nacre.open(dsn, schema=name, embedder=None, log=False) as memory:
        for message in (*range(1, MESSAGES_MAX), None):
            old = memory.remember(f"old{message} heron").id
            before = _stored(schemas, name)
            cut.at(message, answered=answered)
            WRITES[write](memory, f"new{message} boat", old)
            assert cut.done
            at_commit = cut.at_commit
            cut.at(0, answered=False)
            _check_once(write, before, _stored(schemas, name), old)
        assert at_commit


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_a_commit_without_an_answer_whose_server_stays_away(
    schemas: Schemas, cut: Cut, write: str, answered: bool
) -> None:
    """It cannot be asked what became of the write. The error says that it may not be stored; it is, or it is not."""
    name = schemas.new()
    dsn = schemas.dsn.replace(f":{schemas.server.port}/", f":{cut.port}/")
    with nacre.open(dsn, schema=name, embedder=None, log=False, busy_timeout_ms=300) as memory:
        old = memory.remember("old heron").id
        before = _stored(schemas, name)
        cut.at(None, answered=answered, for_good=True)
        with pytest.raises(MaybeStored, match=UNKNOWN):
            WRITES[write](memory, "new boat", old)
    after = _stored(schemas, name)
    if answered:
        _check_once(write, before, after, old)
    else:
        assert after == before


def test_a_commit_without_an_answer_after_which_others_have_written(
    schemas: Schemas, cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process has written since is not written over."""
    name = schemas.new()
    dsn = schemas.dsn.replace(f":{schemas.server.port}/", f":{cut.port}/")
    found = unanswered.replaced

    def later(db: Db, changes: Sequence[Replacement]) -> bool | None:
        with nacre.open(schemas.dsn, schema=name, embedder=None) as other:
            other.update(old, text="what the other wrote")
        return found(db, changes)

    with nacre.open(dsn, schema=name, embedder=None, log=False) as memory:
        old = memory.remember("old heron").id
        cut.at(None, answered=True)
        monkeypatch.setattr(unanswered, "replaced", later)
        with pytest.raises(MaybeStored, match=UNKNOWN):
            memory.update(old, text="new boat")
        assert memory.get(old)[0].text == "what the other wrote"


def _check_once(write: str, before: Actions, after: Actions, old: str) -> None:
    """Exactly one event more."""
    if write == "remembered":
        (new,) = after.keys() - before.keys()
        assert after == before | {new: ["remembered"]}
    else:
        assert after == before | {old: ["remembered", write]}


def _stored(schemas: Schemas, name: str) -> Actions:
    """What happened to each memory, once the server has ended what was cut."""
    busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nacre' AND state <> 'idle'"
    assert waited_for(lambda: schemas.execute(busy) == [(0,)])
    found = schemas.execute("SELECT memory_id, array_agg(action ORDER BY seq) FROM events GROUP BY memory_id", name)
    return {str(memory_id): list(actions) for memory_id, actions in found}  # type: ignore[call-overload]


def test_a_snapshot_whose_connection_ends_says_so(schemas: Schemas) -> None:
    """What was read is right; what is asked after that is an error of Nacre, and the next call has a connection."""
    with closing(PostgresStore(schemas.dsn, schemas.new())) as store:
        with store.view():
            assert store.last_receipt() == 0
            _end_all(schemas)
        with store.view():
            store.last_receipt()
            _end_all(schemas)
            with pytest.raises(StoreUnavailable, match="cannot reach"):
                store.last_receipt()
        assert store.last_receipt() == 0


def _end_all(schemas: Schemas) -> None:
    schemas.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'nacre'")


# ---------------------------------------------------------------- a fail-over


def test_a_primary_whose_standby_is_away_and_one_that_is_replaced() -> None:
    """A commit that no standby confirms is no success: PostgreSQL answers it with a warning, if the wait is ended.

    A connection to a standby takes no writes: it is replaced until the address leads to a server that does.
    """
    from postgres_standby import primary_and_standby

    with (
        primary_and_standby(PROCESSES_ONLY) as (primary, standby),
        closing(PostgresStore(primary.dsn)) as store,
    ):
        store.put_lens("default", "a", "{}")
        standby.pause()
        canceller = threading.Thread(target=_cancel_the_wait, args=(primary,))
        canceller.start()
        try:
            with pytest.raises(MaybeStored, match="no standby has confirmed it"):
                store.put_lens("default", "b", "{}")
        finally:
            canceller.join()
            standby.go_on()
        store.put_lens("default", "c", "{}")
        assert list(store.lenses("default")) == ["a", "b", "c"]

        connections = store._connections
        to_primary = connections._conninfo
        connections._conninfo = to_primary.replace(f"port={primary.port}", f"port={standby.port}")
        assert connections._conninfo != to_primary
        _forget_connections(store)
        primary.kill()
        promoted = threading.Timer(0.3, _promote, [standby])
        promoted.start()
        store.put_lens("default", "d", "{}")
        promoted.join()
        assert list(store.lenses("default")) == ["a", "b", "c", "d"]


def _cancel_the_wait(primary: PostgresServer) -> None:
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with psycopg.connect(primary.dsn, autocommit=True) as db:
        assert waited_for(lambda: db.execute(waiting).fetchone() is not None)
        db.execute(f"SELECT pg_cancel_backend(pid) FROM ({waiting}) AS w")


def _promote(standby: PostgresServer) -> None:
    with psycopg.connect(standby.dsn, autocommit=True) as db:
        db.execute("SELECT pg_promote()")


def _forget_connections(store: PostgresStore) -> None:
    for each in store._connections._idle:
        each.close()
    store._connections._idle.clear()
