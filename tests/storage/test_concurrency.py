"""Readers and writers at once: a writer never blocks readers, and one search never waits for another.

Nothing here is timed. Where a lock is not waited for at all (`busy_timeout_ms=0`), whoever meets one fails; and what
would wait for something that never comes, never ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.engine import candidates
from nacre.types.search import SearchResult
from stores import REAL_STORES, Stores

TEXTS = [f"{animal} number {number} eats apples" for number in range(10) for animal in ("horse", "zebra", "llama")]
UNCACHED = nacre.Limits(results_cached=0)
ANSWER_SECONDS = 60  # how long something may take before a test gives up on it

HOLDING = {
    "sqlite": """
import sys
import apsw
name, _, lock = sys.argv[1:]
db = apsw.Connection(name)
db.execute(f"BEGIN {lock}")
db.execute("UPDATE memories SET text = 'seen by half'")
print("held", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
""",
    "postgres": """
import sys
import psycopg
from nacre.storage.postgres import connection
name, schema, lock = sys.argv[1:]
db = psycopg.connect(name)
db.execute("SELECT set_config('search_path', %s || ', public', true)", (schema,))
if lock == "EXCLUSIVE":
    db.execute(connection._HOLDS_STORE)
else:
    db.execute(connection._SHARES_STORE)
    connection.hold(db, ["default"])
db.execute("UPDATE memories SET text = 'seen by half'")
print("held", flush=True)
sys.stdin.readline()
db.rollback()
""",
}
WRITING = """
import sys
import nacre
from nacre.embedders.hashing import Hashing
with nacre.open(sys.argv[1], schema=sys.argv[2], embedder=Hashing()) as memory:
    for number in range(1_000_000):
        memory.remember_many([f"turtle {number} part {part}" for part in range(3)])
        print("written", flush=True)
"""


@contextmanager
def process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline()  # it has come so far
        yield started
    finally:
        started.kill()
        started.communicate(timeout=ANSWER_SECONDS)


class Shared:
    """A store with memories, that several open."""

    def __init__(self, stores: Stores) -> None:
        place = stores.place()
        self.name, self.schema = stores.named(place)
        self.open = partial(stores.opener(place), embedder=Hashing())
        self.kind = stores.kind

    def unwaiting(self, **options: Any) -> nacre.Nacre:
        """An engine that waits for no lock."""
        return self.open(limits=UNCACHED, busy_timeout_ms=0, **options)

    def held(self, lock: str = "IMMEDIATE") -> AbstractContextManager[subprocess.Popen[str]]:
        """Another process has written something that it has not committed yet."""
        return process(HOLDING[self.kind], self.name, self.schema, lock)


@pytest.fixture(params=REAL_STORES)
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    with Stores(request.param, tmp_path) as stores:
        shared = Shared(stores)
        with shared.open() as memory:
            memory.remember_many(TEXTS)
        yield shared


READING: dict[str, Callable[[nacre.Nacre], object]] = {
    "keyword": lambda memory: memory.search("zebra apples", mode="keyword"),
    "semantic": lambda memory: memory.search("zebra apples", mode="semantic"),
    "hybrid": lambda memory: memory.search("zebra apples"),
    "with a filter": lambda memory: memory.search("zebra", where=nacre.Filter(kinds=["note"])),
    "misspelled": lambda memory: memory.search("zebr aples"),
    "context": lambda memory: memory.context("zebra", 200).text,
    "facets": lambda memory: memory.facets("zebra"),
    "timeline": lambda memory: memory.timeline(limit=5),
    "facts": lambda memory: memory.facts(),
}


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
@pytest.mark.parametrize("log", [False, True])
def test_a_write_that_is_held_open_elsewhere_blocks_no_reader(filled: Shared, lock: str, log: bool) -> None:
    with filled.unwaiting(log=False) as memory:
        before = {name: read(memory) for name, read in READING.items()}
    with filled.held(lock), filled.unwaiting(log=log) as memory:  # opening writes nothing, either
        with pytest.raises(nacre.StoreBusy):
            memory.remember("the lock is held indeed")
        assert {name: read(memory) for name, read in READING.items()} == before


def read_in_a_session(memory: nacre.Nacre) -> list[object]:
    """Every verb that reads, in a session that was given something before, and what the log says of it."""
    first = memory.search("zebra apples", session="s", limit=2)
    ids = [hit.id for hit in first.hits]
    again = memory.search("zebra apples", session="s", limit=2)
    new = memory.search("zebra apples", session="s", limit=2, omit_delivered=True)
    memory.get(ids[0], session="s")
    left_out = memory.context("zebra apples", min_score=0.0, session="s").left_out
    repeated = memory.remember(first.hits[1].text.upper(), session="s")
    others = (
        memory.why("zebra apples", ids[0], session="s"),
        memory.related(ids[0]),
        memory.facets("zebra"),
        memory.timeline(limit=5),
        memory.facts(),
        memory.stats(),
        memory.lenses(),
        memory.history(ids[0]),
    )
    assert all(others[:4])
    marked = [
        (each.memory_id, each.opened is not None, each.used is not None)
        for receipt in memory.receipts(session="s", limit=2, before=new.receipt)
        for each in receipt.deliveries
    ]
    return [
        [hit.delivered for hit in (*first.hits, *again.hits)],
        set(ids).isdisjoint(hit.id for hit in new.hits),
        (ids[0], "delivered") in left_out,
        repeated.recalled == (ids[1],),
        marked == [(ids[0], True, False), (ids[1], False, False), (ids[0], False, False), (ids[1], False, False)],
        len(memory.receipts(session="s")),
    ]


def test_nothing_that_reads_waits_for_a_write_elsewhere(filled: Shared) -> None:
    """What a session was given counts while it cannot be written. Who waited for the lock would wait for an hour."""
    answers: list[object] = []
    with filled.open(limits=UNCACHED, busy_timeout_ms=3_600_000) as memory:
        with filled.held() as holder:
            reading = threading.Thread(target=lambda: answers.append(read_in_a_session(memory)))
            reading.start()
            reading.join(ANSWER_SECONDS)
            waited = reading.is_alive()
            assert holder.poll() is None
        reading.join(ANSWER_SECONDS)
        assert not waited
        assert answers == [[[False, False, True, True], True, True, True, True, 4]]
    with filled.open() as memory:
        assert len(memory.receipts(session="s")) == 4
        assert sum(each.used is not None for one in memory.receipts(session="s") for each in one.deliveries) == 1


class OwnTime:
    """A clock for each thread, on which only its own pauses count."""

    def __init__(self) -> None:
        self._of = threading.local()

    def monotonic(self) -> float:
        return getattr(self._of, "now", 0.0)

    def sleep(self, seconds: float) -> None:
        self._of.now = self.monotonic() + seconds


@pytest.mark.parametrize("filled", ["sqlite"], indirect=True)  # PostgreSQL waits by itself
def test_a_write_waits_for_one_busy_timeout(filled: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for the log as well, which cannot be written either."""
    time = OwnTime()
    monkeypatch.setattr("nacre.storage.sqlite.connection.time", time)
    with filled.open(busy_timeout_ms=5_000) as memory:
        with filled.held():
            memory.search("zebra apples", session="s")
            with pytest.raises(nacre.StoreBusy):
                memory.remember("a new text", session="s")
            assert 5 <= time.monotonic() < 5.1
        assert not memory.remember("a new text", session="s").duplicate
        assert len(memory.receipts(session="s")) == 1


def test_closing_while_another_process_writes_says_what_is_lost(
    filled: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    with filled.held() as holder:
        memory = filled.unwaiting()
        for query in ("zebra", "llama", "horse"):
            memory.search(query)
        memory.close()
        assert holder.poll() is None
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("3 entries of the recall log could not be written: store: ")


@pytest.mark.slow
def test_a_command_answers_while_another_process_writes(filled: Shared) -> None:
    command = [sys.executable, "-m", "nacre", "search", "zebra", "--embedder", "none", "--asked-in", "s", "--json"]
    environment = {**os.environ, "NACRE_BUSY_TIMEOUT_MS": "100", "NACRE_POSTGRES_SCHEMA": filled.schema}
    with filled.held() as holder:
        done = subprocess.run(
            [*command, "--store", filled.name],
            capture_output=True,
            text=True,
            env=environment,
            timeout=ANSWER_SECONDS,
            check=True,
        )
        assert holder.poll() is None
    assert len(json.loads(done.stdout)["hits"]) == 10
    assert "1 entry of the recall log could not be written" in done.stderr


_WHOLE_BATCHES = 999  # of the most that a search gives, where there are more


@pytest.mark.slow
def test_searches_beside_a_writer_see_whole_batches(filled: Shared) -> None:
    """And each of them at least what the one before it saw."""
    with filled.unwaiting(log=False) as memory, process(WRITING, filled.name, filled.schema) as writer:
        seen, totals = [0], [0]
        for _ in range(15):
            assert writer.stdout is not None
            assert writer.stdout.readline()  # it goes on writing
            found = memory.search("turtle", mode="keyword", limit=_WHOLE_BATCHES)
            assert len(found.hits) % 3 == 0
            assert len(found.hits) >= seen[-1]
            totals.append(memory.facets("turtle").total)
            assert totals[-1] % 3 == 0
            assert len(memory.search("zebra apples").hits) == 10
            seen.append(len(found.hits))
        assert totals[-1] > totals[1]


@pytest.mark.parametrize("step", ["signals", "get"])
def test_what_a_search_has_found_is_shown_as_it_was(filled: Shared, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """What another process forgets or changes meanwhile is there as it was, and gone with the next search."""
    with filled.unwaiting(log=False) as memory, filled.open() as other:
        before = memory.search("zebra apples")
        first, second = (hit.id for hit in before.hits[:2])
        real = getattr(memory._store, step)

        def meanwhile(*arguments: Any) -> Any:
            if other.get([first]):
                other.forget([first])
                other.update(second, text="nothing of the kind")
            return real(*arguments)

        monkeypatch.setattr(memory._store, step, meanwhile)
        assert memory.search("zebra apples") == before
        after = [hit.id for hit in memory.search("zebra apples").hits]
        assert first not in after
        assert second not in after[:2]


# ---------------------------------------------------------------- threads

STEPS = ("sequence", "lexical", "semantic", "frequencies", "relations", "neighbours", "signals", "get")


@pytest.mark.parametrize("step", [*STEPS, "embed_query"])
def test_a_search_does_not_wait_for_another(filled: Shared, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """One search stops in the middle, wherever that is, and another comes to its end meanwhile."""
    reached, released = threading.Event(), threading.Event()
    with filled.unwaiting(log=False) as other:
        expected, awaited = other.search("horse eats"), other.search("llama number")
    with filled.open() as memory:
        owner: Any = memory._parts.embedder if step == "embed_query" else memory._store
        real = getattr(owner, step)

        def stopping(*arguments: Any, **options: Any) -> Any:
            if not reached.is_set():  # the first to come here stays here
                reached.set()
                assert released.wait(ANSWER_SECONDS)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, step, stopping)
        found: list[SearchResult] = []
        first = threading.Thread(target=lambda: found.append(memory.search("llama number")))
        first.start()
        try:
            assert reached.wait(ANSWER_SECONDS)
            assert memory.search("horse eats") == expected
            assert not found
        finally:
            released.set()
            first.join(ANSWER_SECONDS)
        assert found == [awaited]


@pytest.mark.parametrize(("memories_min", "beside"), [(0, True), (1_000, False)])
def test_channels_run_side_by_side_where_that_saves_time(
    filled: Shared, monkeypatch: pytest.MonkeyPatch, memories_min: int, beside: bool
) -> None:
    with filled.unwaiting() as memory:
        usual = memory.search("zebra apples")
        threads: list[str] = []
        real = memory._store.lexical

        def noting(*arguments: Any) -> Any:
            threads.append(threading.current_thread().name)
            return real(*arguments)

        monkeypatch.setattr(candidates, "PARALLEL_MEMORIES_MIN", memories_min)
        monkeypatch.setattr(memory._store, "lexical", noting)
        assert memory.search("zebra apples") == usual
        assert [name != threading.current_thread().name for name in threads] == [beside]


@pytest.mark.parametrize("memories_min", [0, 1_000])
def test_a_channel_that_fails_fails_the_search(
    filled: Shared, monkeypatch: pytest.MonkeyPatch, memories_min: int
) -> None:
    with filled.unwaiting() as memory:
        memory.search("zebra")
        monkeypatch.setattr(candidates, "PARALLEL_MEMORIES_MIN", memories_min)

        def failing(*_: Any) -> Any:
            raise nacre.StoreError("store: it is gone")

        monkeypatch.setattr(memory._store, "lexical", failing)
        with pytest.raises(nacre.StoreError, match="it is gone"):
            memory.search("zebra apples")
