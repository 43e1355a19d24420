"""Standbys that answer searches: what they may miss, and what happens while one is away or is none any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import InvalidInput, StoreUnavailable
from nacre.storage.postgres import PostgresStore, replicas
from nacre.storage.postgres.connection import Connections
from nacre.types.health import Finding
from postgres_server import PostgresServer, Schemas, free_port, fresh_schemas, needs_postgres, shared_server, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]


class Standby(PostgresServer):
    """A standby of the shared server, whose replay may be paused."""

    def __init__(self) -> None:
        super().__init__(primary=shared_server())

    def ask(self, sql: str) -> Any:
        with psycopg.connect(self.dsn, autocommit=True) as db:
            found = db.execute(sql).fetchone()
            return None if found is None else found[0]

    def pause(self) -> None:
        self.catch_up()
        self.ask("SELECT pg_wal_replay_pause()")
        assert waited_for(lambda: bool(self.ask("SELECT pg_get_wal_replay_pause_state() = 'paused'")))

    def resume(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")
        self.catch_up()

    def catch_up(self) -> None:
        """Until it has all that the primary has now."""
        position = flushed()
        assert waited_for(lambda: int(self.ask("SELECT pg_last_wal_replay_lsn() - '0/0'")) >= position)


def flushed() -> int:
    """How far the log of the primary is on its disk, with every commit: the test server does not wait for it."""
    with psycopg.connect(shared_server().dsn, autocommit=True) as db:
        db.execute("SELECT pg_logical_emit_message(false, 'nacre-test', '', true)")
        ((position,),) = db.execute(replicas.FLUSHED).fetchall()
        return int(position)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def standby() -> Iterator[Standby]:
    made = Standby()
    yield made
    made.remove()


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which replicas are asked again, and are too far behind."""
    made = Clock()
    monkeypatch.setattr(replicas, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


@pytest.fixture
def schema(schemas: Schemas, standby: Standby) -> Iterator[str]:
    """A schema with a store, which the standby has as well."""
    name = schemas.new()
    with opened(schemas, name) as memory:
        memory.remember("The heron stands in the reeds")
    standby.catch_up()
    yield name
    standby.resume()  # what a test has paused


def opened(schemas: Schemas, schema: str, *standbys: str, **options: Any) -> nacre.Nacre:
    return nacre.open(schemas.dsn, schema=schema, replica=list(standbys), embedder=Hashing(), log=False, **options)


def texts(memory: nacre.Nacre, query: str) -> set[str]:
    return {hit.text for hit in memory.search(query, mode="keyword").hits}


def of(memory: nacre.Nacre) -> tuple[replicas.Replicas, Connections]:
    store = memory._store
    assert isinstance(store, PostgresStore)
    assert store._replicas is not None
    return store._replicas, store._connections


def checked(memory: nacre.Nacre) -> list[Finding]:
    return [each for each in memory.check().findings if each.check == "replica"]


def answered(memory: nacre.Nacre, standby: Standby, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which replica began a transaction, in order. They are as far as the primary was in the first search."""
    memory.search("something else")
    standby.catch_up()
    begun: list[int] = []
    for number, server in enumerate(of(memory)[0]._servers):
        begin = server.begun

        def noted(*given: Any, number: int = number, begin: Any = begin) -> Any:
            db = begin(*given)
            if db is not None:
                begun.append(number)
            return db

        monkeypatch.setattr(server, "begun", noted)
    return begun


def test_a_process_finds_what_it_has_written_and_others_writes_within_the_stated_time(
    schemas: Schemas, schema: str, standby: Standby, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(schemas, schema, standby.dsn, staleness_s=5.0) as memory, opened(schemas, schema) as other:
        by_replica = answered(memory, standby, monkeypatch)
        assert texts(memory, "heron") == {"The heron stands in the reeds"}
        assert by_replica == [0]
        standby.pause()
        theirs = other.remember("A second heron came").id
        assert len(texts(memory, "heron")) == 1  # the replica has not replayed it, and need not yet
        assert by_replica == [0, 0]
        assert [each.id for each in memory.get(theirs)] == [theirs]  # what is no search is asked of the primary
        clock.now += 5.5
        assert flushed()
        assert len(texts(memory, "heron")) == 2  # by the primary
        memory.remember("A third heron came")
        assert len(texts(memory, "heron")) == 3
        clock.now += 1
        assert len(texts(memory, "heron")) == 3
        assert by_replica == [0, 0]
        standby.resume()
        assert len(texts(memory, "heron")) == 3
        assert by_replica == [0, 0, 0]


def test_own_writes_are_found_however_stale_a_replica_may_be(schemas: Schemas, schema: str, standby: Standby) -> None:
    with opened(schemas, schema, standby.dsn, staleness_s=3_600) as memory, opened(schemas, schema) as other:
        assert len(texts(memory, "heron")) == 1
        standby.pause()
        other.remember("A second heron came")
        assert len(texts(memory, "heron")) == 1
        memory.remember("A third heron came")
        assert len(texts(memory, "heron")) == 3
        first = memory.search("third").hits[0].id
        memory.forget(first)
        assert len(texts(memory, "heron")) == 2


def test_no_staleness_asks_the_primary_how_far_it_is_each_time(
    schemas: Schemas, schema: str, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(schemas, schema, standby.dsn, staleness_s=0) as memory, opened(schemas, schema) as other:
        by_replica = answered(memory, standby, monkeypatch)
        assert waited_for(lambda: bool(texts(memory, "heron") and by_replica))  # whatever else the server writes
        standby.pause()
        other.remember("A second heron came")
        assert flushed()
        by_replica.clear()
        assert len(texts(memory, "heron")) == 2
        assert by_replica == []


def test_a_replica_that_dies_in_a_search_costs_no_answer_and_comes_back(
    schemas: Schemas, schema: str, standby: Standby, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(schemas, schema, standby.dsn) as memory:
        by_replica = answered(memory, standby, monkeypatch)
        lexical = memory._store.lexical
        killed: list[bool] = []

        def dies(*given: Any) -> Any:
            if not killed:
                killed.append(True)
                standby.kill()
            return lexical(*given)

        monkeypatch.setattr(memory._store, "lexical", dies)
        assert texts(memory, "heron") == {"The heron stands in the reeds"}
        assert killed
        assert by_replica == [0]
        memory.remember("A second heron came")
        assert len(texts(memory, "heron")) == 2
        standby.start()
        standby.catch_up()
        memory.remember("A third heron came")
        standby.catch_up()
        assert len(texts(memory, "heron")) == 3
        assert by_replica == [0]  # it is not asked yet
        clock.now += replicas.RETRY_S + 1
        assert waited_for(lambda: len(texts(memory, "heron")) == 3 and by_replica == [0, 0])


def test_several_replicas_take_turns_and_one_that_is_away_is_left_out(
    schemas: Schemas,
    schema: str,
    standby: Standby,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert clock.now
    nobody = f"postgresql://postgres:geheim@127.0.0.1:{free_port()}/postgres"
    again = f"{standby.dsn}?application_name=second"
    with opened(schemas, schema, standby.dsn, nobody, again) as memory:
        by_replica = answered(memory, standby, monkeypatch)
        assert "left out" in caplog.text
        for _ in range(4):
            assert texts(memory, "heron")
        assert by_replica in ([0, 2, 0, 2], [2, 0, 2, 0])
        said = [each.text for each in checked(memory)]
    assert len(said) == 3
    assert "answers searches; it is" in said[0]
    assert "answers no searches, others do" in said[1]
    assert "geheim" not in caplog.text + "".join(said)


def test_a_replica_with_no_free_connection_is_passed_over(
    schemas: Schemas, schema: str, standby: Standby, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert clock.now
    with opened(schemas, schema, standby.dsn, connections=2) as memory:
        by_replica = answered(memory, standby, monkeypatch)
        standbys, primary = of(memory)
        connections = standbys._servers[0].opened(primary)
        with connections.snapshot(), connections.snapshot():
            assert texts(memory, "heron")
        assert by_replica == []
        assert texts(memory, "heron")
        assert by_replica == [0]


def test_a_server_that_was_promoted_answers_nothing_and_is_no_replica_of_another_store(
    schemas: Schemas, schema: str, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert standby.port  # the schema was made where it is followed
    promoted = Standby()
    try:
        promoted.catch_up()
        with opened(schemas, schema, promoted.dsn, staleness_s=3_600) as memory, opened(schemas, schema) as other:
            by_replica = answered(memory, promoted, monkeypatch)
            assert texts(memory, "heron")
            assert by_replica == [0]
            assert promoted.ask("SELECT pg_promote()")
            assert waited_for(lambda: not promoted.ask("SELECT pg_is_in_recovery()"))
            other.remember("A second heron came")
            assert len(texts(memory, "heron")) == 2
            assert by_replica == [0]
            (said,) = checked(memory)
            assert "is a primary itself" in said.text
            assert "in recovery" in said.remedy
        with psycopg.connect(promoted.dsn, autocommit=True) as db:
            db.execute(f'DROP SCHEMA "{schema}" CASCADE')
        with closing(PostgresStore(promoted.dsn, schema)), pytest.raises(InvalidInput, match="another store"):
            opened(schemas, schema, promoted.dsn)
    finally:
        promoted.remove()


def test_a_replica_alone_is_a_store_that_may_only_be_read(schemas: Schemas, schema: str, standby: Standby) -> None:
    with nacre.open(standby.dsn, schema=schema, embedder=Hashing()) as memory:
        assert texts(memory, "heron")
        assert memory.search("heron").notes == ("the store is read-only: nothing is logged",)
        with pytest.raises(StoreUnavailable, match="read-only, as a replica is"):
            memory.remember("A second heron came")
    assert schemas.dsn != standby.dsn
