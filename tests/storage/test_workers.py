"""Many processes embed what was stored without vectors: each memory once, whatever is killed, and nobody waits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import InvalidInput, StoreBusy
from nacre.storage.postgres import PostgresStore
from nacre.storage.sqlite import embedding_lock
from postgres_server import PostgresServer, fresh_schemas, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills processes")]

TEXTS = [f"note {number} about the harbour and the lighthouse" for number in range(300)]
SECONDS = 120

# Says on a line each what it begins to embed, and how much is written.
PROGRAM = """
import json, sys, threading, time
import nacre
from nacre.embedders.hashing import Hashing

class Slow(Hashing):
    def embed_passages(self, texts):
        print(json.dumps({"texts": list(texts)}), flush=True)
        time.sleep(float(sys.argv[3]))
        return super().embed_passages(texts)

with nacre.open(sys.argv[1], embedder=Slow(), log=False, **json.loads(sys.argv[2])) as memory:
    for state in memory.pending.run(batch=5, once=True):
        print(json.dumps({"done": state.done}), flush=True)
"""


class Place:
    """A store, as a program names it."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self.options = options

    def open(self, **options: Any) -> nacre.Nacre:
        return nacre.open(self.name, log=False, **self.options, **{"embedder": Hashing(), **options})


@pytest.fixture
def postgres() -> Iterator[Place]:
    with fresh_schemas() as schemas:
        yield Place(schemas.dsn, schema=schemas.new())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_postgres)])
def place(request: pytest.FixtureRequest, path: Path) -> Place:
    if request.param == "sqlite":
        return Place(str(path))
    made: Place = request.getfixturevalue("postgres")
    return made


class Worker:
    def __init__(self, place: Place, pause_s: float = 0.01) -> None:
        command = [sys.executable, "-c", PROGRAM, place.name, json.dumps(place.options), str(pause_s)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.texts: list[str] = []
        self.done = 0

    def read_until_done(self, count: int) -> None:
        assert self.process.stdout is not None
        while self.done < count:
            line = self.process.stdout.readline()
            assert line, "it ended"
            self._note(line)

    def kill(self) -> None:
        self.process.kill()
        out, _ = self.process.communicate(timeout=SECONDS)
        for line in out.splitlines():
            with suppress(ValueError):  # half a line
                self._note(line)

    def end(self) -> None:
        out, errors = self.process.communicate(timeout=SECONDS)
        assert (self.process.returncode, errors) == (0, "")
        for line in out.splitlines():
            self._note(line)

    def _note(self, line: str) -> None:
        said = json.loads(line)
        self.texts += said.get("texts", [])
        self.done = said.get("done", self.done)


def deferred(place: Place, texts: Sequence[str] = TEXTS) -> list[str]:
    """Ids of memories without vectors, in three spaces."""
    with place.open(defer_embeddings=True) as memory:
        ids: list[str] = []
        for number, space in enumerate(["one", "two", "three"]):
            with memory.within(space, confined=False) as within:
                ids += [each.id for each in within.remember_many(texts[number::3])]
        return ids


def check(place: Place, ids: Sequence[str]) -> None:
    """Every memory was embedded once, and has the vectors that it would have had at once."""
    with place.open() as memory:
        assert memory.stats().pending == 0
        texts = {each.id: each.text for each in memory.get(list(ids))}
        direct = Hashing().embed_passages(list(texts.values()))
        for memory_id, vector in zip(texts, direct, strict=True):
            assert [each.action for each in memory.history(memory_id)] == ["remembered", "embedded"]
            stored = memory._store.vectors(memory_id)
            assert stored is not None
            assert stored.tolist() == vector.astype("float16").astype("float32").reshape(1, -1).tolist()


def test_several_workers_embed_each_memory_once_though_one_is_killed(place: Place) -> None:
    ids = deferred(place)
    killed, *others = [Worker(place) for _ in range(4)]
    if "://" in place.name:
        killed.read_until_done(10)
    killed.kill()
    for each in others:
        each.end()
    check(place, ids)
    embedded = Counter(text for each in others for text in each.texts)
    assert max(embedded.values()) == 1  # nobody computed what another one did
    # At most the two batches that it had claimed were computed again.
    assert len(set(killed.texts) & embedded.keys()) <= 10
    assert set(killed.texts) | embedded.keys() == set(TEXTS)
    if "://" in place.name:
        assert all(each.texts for each in others)


def test_a_worker_waits_for_what_another_has_claimed_and_takes_it_once_that_is_killed(place: Place) -> None:
    ids = deferred(place, TEXTS[:6])
    first = Worker(place, pause_s=1000)
    assert waited_for(lambda: bool(first.texts) or _first_line(first))
    second = Worker(place)
    if "://" in place.name:
        second.read_until_done(1)  # the rest
    with place.open() as memory:
        assert memory.stats().pending == (5 if "://" in place.name else 6)
    assert second.process.poll() is None
    first.kill()
    second.end()
    check(place, ids)
    assert sorted(second.texts) == sorted(TEXTS[:6])


def _first_line(worker: Worker) -> bool:
    assert worker.process.stdout is not None
    worker._note(worker.process.stdout.readline())
    return bool(worker.texts)


def test_a_claim_keeps_nobody_from_writing(place: Place) -> None:
    """While texts are embedded, others remember in the space, and update and forget the very memories."""
    with place.open(defer_embeddings=True, busy_timeout_ms=1_000) as writer:
        kept, changed, gone = (each.id for each in writer.remember_many(["first text", "second text", "third text"]))

        class Meddling(Hashing):
            meddled = False

            def embed_passages(self, texts: Sequence[str]) -> Any:
                if not self.meddled:
                    self.meddled = True
                    writer.remember("a fourth text")
                    writer.update(changed, text="another text")
                    writer.forget(gone)
                return super().embed_passages(texts)

        with place.open(embedder=Meddling()) as memory:
            assert [each.done for each in memory.pending.run(once=True)][-1] == 3
            assert memory.stats().pending == 0
            assert memory.search("another text", mode="semantic").hits[0].id == changed
            assert [each.action for each in memory.history(gone)] == ["remembered", "forgotten"]
            assert [each.action for each in memory.history(kept)] == ["remembered", "embedded"]
            memory.restore(gone)
            assert memory.stats().pending == 1
            assert [each.done for each in memory.pending.run(once=True)][-1] == 1


def test_token_vectors_are_made_as_well(place: Place) -> None:
    """Of memories without vectors, and of those that lack token vectors alone."""
    long = " ".join(f"word{number}" for number in range(600))
    with place.open(token_vectors=False) as memory:
        known = [each.id for each in memory.remember_many([*TEXTS[:7], f"known {long}"])]
    with place.open(defer_embeddings=True) as memory:
        waiting = [each.id for each in memory.remember_many([*TEXTS[7:14], f"waiting {long}"])]
    with place.open() as memory:
        assert (memory.stats().pending, memory.stats().pending_tokens) == (8, 8)
        assert [each.done for each in memory.pending.run(batch=3, once=True)][-1] == 16
        assert (memory.stats().pending, memory.stats().pending_tokens) == (0, 0)
        query = Hashing().embed_query("harbour")
        found = memory._store.token_vectors([*known, *waiting], Hashing().token_fingerprint, query, 100)
        texts = {each.id: each.text for each in memory.get([*known, *waiting])}
        assert found.keys() == texts.keys()
        for memory_id, text in texts.items():
            if long not in text:
                assert found[memory_id] == ((0, Hashing().embed_with_tokens([text])[1][0]),)
            else:
                assert [number for number, _ in found[memory_id]] == [0, 1, 2]
            actions = [each.action for each in memory.history(memory_id)]
            assert actions == (["remembered"] if memory_id in known else ["remembered", "embedded"])


def test_two_threads_of_one_process_share_the_work(place: Place) -> None:
    ids = deferred(place, TEXTS[:60])
    embedded: Counter[str] = Counter()
    lock = threading.Lock()

    class Noting(Hashing):
        def embed_passages(self, texts: Sequence[str]) -> Any:
            with lock:
                embedded.update(texts)
            return super().embed_passages(texts)

    with place.open(embedder=Noting()) as memory:
        workers = [threading.Thread(target=lambda: list(memory.pending.run(batch=7, once=True))) for _ in range(3)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    assert embedded == Counter(TEXTS[:60])
    check(place, ids)


def test_a_worker_goes_on_where_another_stopped_and_stops_after_its_batch(place: Place) -> None:
    ids = deferred(place, TEXTS[:40])
    stop = threading.Event()
    with place.open() as memory:
        for state in memory.pending.run(batch=5, stop=stop):
            if state.done >= 10:
                stop.set()
        assert 10 <= state.done <= 20
        assert memory.stats().pending == 40 - state.done
        assert [each.done for each in memory.pending.run(batch=5, once=True)][-1] == 40 - state.done
    check(place, ids)
    with place.open() as memory, pytest.raises(InvalidInput, match="from 1 to 512"):
        memory.pending.run(batch=0)


# ---------------------------------------------------------------- the command


def command(place: Place, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NACRE_")}
    environment |= {"NACRE_STORE": place.name, "NACRE_EMBEDDER": "hashing", "NACRE_CONFIG": os.devnull}
    if "schema" in place.options:
        environment["NACRE_POSTGRES_SCHEMA"] = place.options["schema"]
    return subprocess.Popen(
        [sys.executable, "-m", "nacre", "worker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_the_command_embeds_what_is_pending_and_ends(place: Place) -> None:
    ids = deferred(place, TEXTS[:20])
    once = command(place, "--once", "--batch", "8", "--json")
    out, errors = once.communicate(timeout=SECONDS)
    assert (once.returncode, errors) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"embedded": done, "pending": 20 - done} for done in (0, 8, 16, 20)
    ]
    check(place, ids)
    again = command(place, "--once")
    assert again.communicate(timeout=SECONDS)[0] == "embedded 0 memories\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_embeds_what_comes_until_it_is_stopped(place: Place, number: signal.Signals) -> None:
    first = deferred(place, TEXTS[:3])
    running = command(place, "--json")
    assert running.stdout is not None
    while json.loads(running.stdout.readline())["embedded"] < 3:
        pass
    with place.open(defer_embeddings=True) as memory:
        later = [each.id for each in memory.remember_many(TEXTS[10:14])]
    while json.loads(running.stdout.readline())["embedded"] < 7:
        pass
    running.send_signal(number)
    _, errors = running.communicate(timeout=SECONDS)
    assert (running.returncode, errors) == (0, "")
    check(place, [*first, *later])


# ---------------------------------------------------------------- of one kind of store


def test_the_lock_of_a_file_is_gone_with_its_process(path: Path) -> None:
    with Place(str(path)).open(defer_embeddings=True) as memory:
        memory.remember("a text")
        with memory._store.claimed(5, tokens=False) as claimed:
            assert len(claimed.without_vectors) == 1
            assert Path(f"{path}{embedding_lock.SUFFIX}").stat().st_size == 0
            with Place(str(path)).open() as other, other._store.claimed(5, tokens=False) as theirs:
                assert theirs.without_vectors == {}
        assert not Path(f"{path}{embedding_lock.SUFFIX}").exists()
        with Place(str(path)).open() as other, other._store.claimed(5, tokens=False) as theirs:
            assert len(theirs.without_vectors) == 1


@needs_postgres
def test_claims_take_turns_in_the_spaces_and_end_with_their_block(postgres: Place) -> None:
    deferred(postgres, TEXTS[:30])
    with postgres.open() as memory, postgres.open() as other:
        with (
            memory._store.claimed(12, tokens=True) as mine,
            other._store.claimed(12, tokens=True) as theirs,
            other._store.claimed(12, tokens=True) as rest,
            memory._store.claimed(12, tokens=True) as nothing,
        ):
            claimed = [len(each.without_vectors) for each in (mine, theirs, rest, nothing)]
            assert claimed == [12, 12, 6, 0]
            assert len(mine.without_vectors | theirs.without_vectors | rest.without_vectors) == 30
        with memory._store.claimed(512, tokens=True) as all_of_it:
            assert len(all_of_it.without_vectors) == 30
        with memory._store.claimed(10, tokens=True) as first:
            pass
        with memory._store.claimed(10, tokens=True) as second:
            assert not first.without_vectors.keys() & second.without_vectors.keys()


@needs_postgres
def test_embedding_needs_two_connections(postgres: Place) -> None:
    ids = deferred(postgres, TEXTS[:30])
    with postgres.open(connections=1) as memory, pytest.raises(InvalidInput, match="embedding needs 2"):
        list(memory.pending.run(once=True))
    with postgres.open(connections=2) as memory:
        list(memory.pending.run(batch=4, once=True))
    check(postgres, ids)


@needs_postgres
def test_a_worker_outlives_its_server() -> None:
    """The server is killed while a batch is embedded, and comes back. Nothing is lost, and nothing embedded twice."""
    server = PostgresServer(durable=True)
    try:
        place = Place(server.dsn)
        ids = deferred(place, TEXTS[:30])
        failed: list[Exception] = []
        stop = threading.Event()

        class Killing(Hashing):
            batches = 0

            def embed_passages(self, texts: Sequence[str]) -> Any:
                self.batches += 1
                if self.batches == 3:
                    server.kill()
                return super().embed_passages(texts)

        def back(error: Exception) -> None:
            failed.append(error)
            server.start()

        with place.open(embedder=Killing()) as memory:
            for state in memory.pending.run(batch=5, stop=stop, failed=back):
                if state.done and state.done == state.total:
                    stop.set()
        assert failed
        assert not any(isinstance(each, StoreBusy) for each in failed)
        check(place, ids)
    finally:
        server.remove()


@needs_postgres
def test_what_a_worker_holds_keeps_vacuum_from_nothing(postgres: Place) -> None:
    """Between its statements, the transaction with the claims has no snapshot."""
    deferred(postgres, TEXTS[:30])
    with postgres.open() as memory, memory._store.claimed(10, tokens=False):
        store = memory._store
        assert isinstance(store, PostgresStore)
        with store._connections.outside(5_000) as db:
            found = db.execute(
                "SELECT backend_xmin, backend_xid FROM pg_stat_activity "
                "WHERE state = 'idle in transaction' AND datname = current_database() "
                "AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
            ).fetchall()
    assert found == [(None, None)]
