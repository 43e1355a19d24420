"""Several processes and threads on one file: nothing acknowledged is lost, nothing is seen by half.

Workers are real processes (spawned, as on every platform) that open the store by themselves.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import apsw
import pytest

import nacre
from benchmarks.common.fault_workers import changed_constants
from index_files import EVERYTHING, NOW, cache_files, cache_folder, found, reopened, settled
from nacre.embedders.hashing import Hashing
from nacre.engine import writer
from nacre.errors import NacreError, StoreBusy
from nacre.storage.sqlite import scrub, store, vector_search
from nacre.storage.sqlite.index import hnsw, space_index
from nacre.types.location import SCHEMA
from purged_bytes import RandomStore, Remains
from store_checks import check_derived_tables, check_integrity
from stores import REAL_STORES, Stores

pytestmark = pytest.mark.slow

SPAWN = multiprocessing.get_context("spawn")
ANSWER_SECONDS = 60  # how long a worker may take before the test gives up on it
KILLED_BATCH = 16


# ---------------------------------------------------------------- workers


class Worker:
    """A process of its own that does one thing after the other and says what came of it."""

    def __init__(self) -> None:
        self._connection, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def start(self, task: Callable[..., Any], *arguments: Any) -> None:
        self._connection.send((task, arguments))

    def finish(self) -> Any:
        """What the task gave, or raised."""
        assert self._connection.poll(ANSWER_SECONDS), "the worker does not answer"
        failed, answer = self._connection.recv()
        assert not failed, f"in a worker: {answer}"
        return answer

    def do(self, task: Callable[..., Any], *arguments: Any) -> Any:
        self.start(task, *arguments)
        return self.finish()

    def stop(self) -> None:
        self._connection.close()
        self._process.join(ANSWER_SECONDS)


def _serve(connection: Connection) -> None:
    while True:
        try:
            task, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send((False, task(*arguments)))
        except Exception as error:
            connection.send((True, f"{type(error).__name__}: {error}"))


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Worker]]:
    """Four processes that the tests of this file share: starting one takes longer than most tests."""
    started = [Worker() for _ in range(4)]
    yield started
    for worker in started:
        worker.stop()


def together(workers: list[Worker], task: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The same task in every process at once; each also gets its number."""
    for number, worker in enumerate(workers):
        worker.start(task, number, *arguments)
    return [worker.finish() for worker in workers]


def wait_until(moment: float) -> None:
    """So that processes begin at the same time."""
    time.sleep(max(0, moment - time.time()))


# ---------------------------------------------------------------- what workers do

Name: TypeAlias = tuple[str, str]  # of a store, and its schema

_opened: dict[Name, nacre.Nacre] = {}  # in each worker: it stays open over several tasks


def open_anew(name: Name) -> nacre.Nacre:
    return nacre.open(name[0], schema=name[1], embedder=Hashing())


def _open(name: Name) -> nacre.Nacre:
    if name not in _opened:
        _opened[name] = open_anew(name)
    return _opened[name]


def close_store(name: Name) -> None:
    _opened.pop(name).close()


def remember_text(name: Name, text: str) -> str:
    return _open(name).remember(text).id


def found_by(name: Name, text: str, mode: Any) -> list[str]:
    return [hit.id for hit in _open(name).search(text, mode=mode).hits]


def write_and_search(number: int, name: Name, start: float, writes: int) -> list[tuple[str, str]]:
    """Own texts and searches among everybody's, as fast as it goes."""
    store = _open(name)
    wait_until(start)
    written = []
    for turn in range(writes):
        text = f"worker{number} says turn{turn} of many"
        receipt = store.remember(text)
        assert not receipt.duplicate
        written.append((receipt.id, text))
        for mode in ("keyword", "semantic", "hybrid"):
            found = [hit.id for hit in store.search(text, mode=mode).hits]
            assert found[0] == receipt.id, (mode, found)
        other = (number + 1) % 4
        for hit in store.search(f"worker{other} AND says", mode="keyword").hits:
            assert f"worker{other}" in hit.text
    return written


def remember_the_same(_number: int, name: Name, start: float, texts: list[str]) -> list[tuple[str, bool]]:
    store = _open(name)
    wait_until(start)
    return [(receipt.id, receipt.duplicate) for receipt in map(store.remember, texts)]


def open_new(number: int, name: Name, start: float) -> str:
    wait_until(start)
    with open_anew(name) as store:
        return store.remember(f"opened by {number}").id


def update_counter(_number: int, name: Name, start: float, memory_id: str, times: int) -> None:
    """Read, add one, write: no one may overwrite what it has not seen."""
    store = _open(name)
    wait_until(start)
    for turn in range(times):
        while True:
            try:
                store.update(memory_id, text=f"touched by {_number} in turn {turn}")
                break
            except nacre.Conflict:  # five tries were not enough
                continue


def _bulk_write(path: str, connection: Connection) -> None:
    """Remembers without end, acknowledging each batch after it was written. It gets killed."""
    writer.BATCH_EMBEDDED = KILLED_BATCH

    def items() -> Iterator[nacre.NewMemory]:
        number = 0
        while True:
            batch, place = divmod(number, KILLED_BATCH)
            yield nacre.NewMemory(
                text=f"item{number} of batch{batch}", metadata={"batch": batch}, position=place, session="b"
            )
            number += 1

    with nacre.open(path, embedder=Hashing()) as store:
        for receipts in store.remember_batches(items()):
            assert len(receipts) == KILLED_BATCH
            connection.send([receipt.id for receipt in receipts])


def _hold_lock(path: str, begin: str, connection: Connection) -> None:
    db = apsw.Connection(path)
    db.execute(begin)
    connection.send("locked")
    connection.recv()
    db.execute("ROLLBACK")
    db.close()
    connection.send("released")


def small_caches() -> AbstractContextManager[None]:
    """Thresholds so low that files are written and merged, and graphs grow, all the time."""
    lowered = {
        (space_index, "SAVED_MEMORIES_MIN"): 8,
        (space_index, "BITE_EVENTS"): 16,
        (space_index, "GRAPH_PASSAGES_MIN"): 40,
        (space_index, "GRAPH_BEHIND_MAX"): 10,
        (hnsw, "_SLICE"): 8,
        (vector_search, "SCANNED_MAX"): 10,
        (store, "INDEXED_MEMORIES_MIN"): 0,
        (store, "UNINDEXED_MEMORIES_MAX"): 20,
    }
    return changed_constants(lowered)


def churn(opened: nacre.Nacre, name: str, turn: int, chance: random.Random) -> None:
    """Write, change, take away and look: what was just written is found, and what is gone is not."""
    text = f"{name} turn{turn} about herons and boats"
    written = [receipt.id for receipt in opened.remember_many([text, *(f"{text} {number}" for number in range(6))])]
    match chance.randrange(4):
        case 0:
            opened.update(written[1], text=f"{text} changed")
        case 1:
            opened.forget(written[2])
        case 2:
            opened.forget(written[3])
            opened.restore(written[3])
        case 3:
            opened.purge(written[4])
    for mode in ("keyword", "semantic", "hybrid"):
        hits = [hit.memory for hit in opened.search(text, mode=mode, limit=20).hits]
        assert hits[0].text == text, (mode, [hit.text for hit in hits])
        assert all(hit.deleted is None for hit in hits)


def _churn_on(path: str, number: int, connection: Connection) -> None:
    """Without end. It gets killed."""
    chance = random.Random(number)
    with small_caches(), nacre.open(path, embedder=Hashing(), log=False) as opened:
        for turn in range(10**6):
            churn(opened, f"process{number}", turn, chance)
            connection.send(turn)


def churn_together(number: int, path: str, start: float, turns: int) -> None:
    chance = random.Random(number)
    with small_caches(), nacre.open(path, embedder=Hashing(), log=False) as opened:
        wait_until(start)
        for turn in range(turns):
            churn(opened, f"worker{number}", turn, chance)


def rest_of(connection: Connection) -> list[Any]:
    """What a process had sent before it died."""
    received = []
    with connection:
        while True:
            try:
                received.append(connection.recv())
            except EOFError:
                return received


@contextmanager
def locked(path: Path, begin: str = "BEGIN IMMEDIATE") -> Iterator[Callable[[], None]]:
    """Another process holds a lock until it is told to let go."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=_hold_lock, args=(str(path), begin, theirs), daemon=True)
    process.start()
    theirs.close()
    assert ours.recv() == "locked"

    def release() -> None:
        ours.send("release")
        assert ours.recv() == "released"

    yield release
    process.join(ANSWER_SECONDS)
    ours.close()


# ---------------------------------------------------------------- several processes at once


class Shared:
    """A store that all workers open. A new one has no tables yet."""

    def __init__(self, stores: Stores, *, new: bool = False) -> None:
        self._stores = stores
        self._place = stores.place(new=new)
        self.name = stores.named(self._place)
        self.turns = 25 if stores.kind == "sqlite" else 8  # a server has each of its users as a process, too

    def end(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.do(close_store, self.name)
        self.check()

    def check(self) -> None:
        self._stores.check(self._place)
        if isinstance(self._place, Path):
            check_integrity(self._place)


@pytest.fixture(params=REAL_STORES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with Stores(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def shared(stores: Stores) -> Shared:
    return Shared(stores)


def test_a_write_is_found_by_the_next_search_of_any_process(workers: list[Worker], shared: Shared) -> None:
    """The writer goes round; after each acknowledged write all others look for it at once."""
    for turn in range(12):
        writer = workers[turn % len(workers)]
        text = f"turn{turn} written by one and read by all"
        memory_id = writer.do(remember_text, shared.name, text)
        for mode in ("keyword", "semantic", "hybrid"):
            for worker in workers:
                worker.start(found_by, shared.name, text, mode)
            for worker in workers:
                assert worker.finish()[0] == memory_id
    shared.end(workers)


def test_writers_and_searchers_at_once_lose_nothing(workers: list[Worker], shared: Shared) -> None:
    """No process sees "database is locked", and everything written is there in the end."""
    written = together(workers, write_and_search, shared.name, time.time() + 0.5, shared.turns)
    shared.end(workers)
    with open_anew(shared.name) as store:
        for memory_id, text in (each for several in written for each in several):
            assert store.get(memory_id)[0].text == text
        stats = store.stats()
        assert (stats.memories, stats.events, stats.pending) == (4 * shared.turns, 4 * shared.turns, 0)


def test_the_same_text_at_the_same_time_is_remembered_once(workers: list[Worker], shared: Shared) -> None:
    texts = [f"known to all {number}" for number in range(25)]
    answers = together(workers, remember_the_same, shared.name, time.time() + 0.5, texts)
    for receipts in zip(*answers, strict=True):
        assert len({memory_id for memory_id, _ in receipts}) == 1
        assert sorted(duplicate for _, duplicate in receipts) == [False, True, True, True]
    shared.end(workers)


def test_updates_of_one_memory_at_once_leave_a_complete_history(workers: list[Worker], shared: Shared) -> None:
    """Each update replaced exactly what the one before had written."""
    with open_anew(shared.name) as store:
        memory_id = store.remember("at first").id
        together(workers, update_counter, shared.name, time.time() + 0.5, memory_id, 10)
        replaced = [str(event.before["text"]) for event in store.history(memory_id)[1:]]
        texts = [*replaced, store.get(memory_id)[0].text]
        assert texts[0] == "at first"
        assert Counter(texts[1:]) == Counter(
            f"touched by {number} in turn {turn}" for number in range(4) for turn in range(10)
        )
        assert [hit.id for hit in store.search(texts[-1], mode="semantic", limit=1).hits] == [memory_id]
    shared.end(workers)


def test_a_new_store_made_by_several_processes_at_once(workers: list[Worker], stores: Stores) -> None:
    for _ in range(5 if stores.kind == "sqlite" else 2):
        shared = Shared(stores, new=True)
        ids = together(workers, open_new, shared.name, time.time() + 0.1)
        with open_anew(shared.name) as store:
            assert sorted(memory.text for memory in store.get(ids)) == [f"opened by {number}" for number in range(4)]
        shared.check()


# ---------------------------------------------------------------- a process that dies


@pytest.mark.parametrize(("batches", "delay"), [(1, 0), (3, 0.003), (6, 0.007), (10, 0.015)])
def test_killed_in_the_middle_of_a_bulk_write(path: Path, batches: int, delay: float) -> None:
    """What was acknowledged is there and is found; of what was not, whole batches or nothing."""
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_bulk_write, args=(str(path), theirs), daemon=True)
    process.start()
    theirs.close()
    acknowledged: list[list[str]] = [ours.recv() for _ in range(batches)]
    time.sleep(delay)
    process.kill()
    process.join(ANSWER_SECONDS)
    acknowledged += rest_of(ours)

    with nacre.open(path, embedder=Hashing()) as store:
        ids = [memory_id for batch in acknowledged for memory_id in batch]
        memories = store.get(ids)
        assert len(memories) == len(acknowledged) * KILLED_BATCH
        for memory in memories:
            for mode in ("keyword", "semantic"):
                assert store.search(memory.text, mode=mode, limit=1).hits[0].id == memory.id
        db = apsw.Connection(str(path))
        visible = Counter(number for (number,) in db.execute("SELECT metadata ->> '$.batch' FROM memories"))
        db.close()
        assert set(visible.values()) == {KILLED_BATCH}
        assert len(visible) in (len(acknowledged), len(acknowledged) + 1)
        stats = store.stats()
        assert stats.memories == stats.events == stats.passages == len(visible) * KILLED_BATCH
        assert stats.pending_tokens == 0  # they are of the same transaction
        assert not store.remember("life goes on").duplicate
    check_derived_tables(path)
    check_integrity(path)


# ---------------------------------------------------------------- caches


def answers(opened: nacre.Nacre) -> list[Any]:
    asked = ("process1 turn3", "herons", "boats about changed", "turn0 OR turn2", "process0 -turn1")
    return [
        opened.search(query, mode=mode, limit=limit, as_of=NOW).hits
        for query in asked
        for mode in ("keyword", "semantic", "hybrid")
        for limit in (5, 100)
    ]


def check_caches(path: Path, monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    """What the caches of a store say is what a copy without any says, whether or not they were all made ready."""
    scratch.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            shutil.copyfile(file, scratch / file.name)
    with nacre.open(scratch / path.name, embedder=Hashing(), log=False) as plain:
        with monkeypatch.context() as patched:
            patched.setattr(store, "INDEXED_MEMORIES_MIN", 10**9)
            assert not cache_folder(scratch / path.name).exists()
            right = answers(plain)
        near = {query: found(plain, query, recipe=EVERYTHING) for query in ("process0 turn1", "boats 3", "herons")}
    with small_caches(), nacre.open(path, embedder=Hashing(), log=False) as opened:
        with monkeypatch.context() as patched:
            patched.setattr(vector_search, "SCANNED_MAX", 10**9)  # the graph alone may miss one now and then
            assert answers(opened) == right
            settled(opened)
            assert answers(opened) == right
        for query, expected in near.items():
            assert len(set(found(opened, query, recipe=EVERYTHING)) & set(expected)) >= 0.9 * len(expected)
    shutil.rmtree(scratch)


@pytest.mark.usefixtures("uncached")
def test_killed_while_caches_are_made(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again over the same files, at any moment: the next process answers as if there were none."""
    chance = random.Random(11)
    left = 0
    for number in range(7):
        ours, theirs = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=_churn_on, args=(str(path), number, theirs), daemon=True)
        process.start()
        theirs.close()
        for _ in range(1 + number):
            assert ours.poll(ANSWER_SECONDS), "the process does not answer"
            ours.recv()
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.join(ANSWER_SECONDS)
        ours.close()
        left += len(cache_files(path))
        check_caches(path, monkeypatch, tmp_path / "scratch")
    assert left > 0
    assert len(cache_files(path, ".segment")) <= 5
    assert len(cache_files(path, ".hnsw")) <= 1  # the last process may have been killed before it made one
    check_derived_tables(path)
    check_integrity(path)


@pytest.mark.usefixtures("uncached")
def test_caches_made_by_several_processes_at_once(
    workers: list[Worker], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each merges, replaces and drops what the others have mapped; every search of every process is right."""
    reopened(path).close()
    together(workers, churn_together, str(path), time.time() + 0.5, 25)
    with small_caches(), nacre.open(path, embedder=Hashing(), log=False) as last:
        last.search("herons", mode="semantic")  # a purge in the end may have removed the files of all
        settled(last)
    assert cache_files(path, ".segment") != []
    assert cache_files(path, ".tmp") == []
    check_caches(path, monkeypatch, tmp_path / "scratch")
    check_derived_tables(path)


# ---------------------------------------------------------------- a process that holds the lock


def test_a_lock_held_too_long_says_so_and_writes_nothing(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), busy_timeout_ms=200) as store:
        known = store.remember("known").id
        before = store.stats()
        with locked(path) as release:
            for call in (
                lambda: store.remember("new"),
                lambda: store.update(known, text="changed"),
                lambda: store.forget(known),
                lambda: store.purge(known),
                lambda: list(store.reembed()),
                lambda: store.rebuild(),
            ):
                with pytest.raises(StoreBusy, match=r"store: .*memories\.db stayed locked .* for 0\.2 s; try again"):
                    call()
            assert [hit.id for hit in store.search("known").hits] == [known]  # reading goes on
            assert store.stats() == before
            release()
        assert not store.remember("new").duplicate
        store.purge(known)
    check_derived_tables(path)


def test_a_file_locked_while_it_is_opened(path: Path) -> None:
    """Before it is a store, its creation has to wait, but not for ever."""
    apsw.Connection(str(path)).close()
    with locked(path, "BEGIN EXCLUSIVE") as release:
        with pytest.raises(StoreBusy, match=r"locked by another writer for 0\.2 s"):
            nacre.open(path, embedder=Hashing(), busy_timeout_ms=200)
        release()
    with nacre.open(path, embedder=Hashing(), busy_timeout_ms=200) as store:
        assert not store.remember("now").duplicate


def write_and_purge(number: int, path: str, turns: int) -> Remains:
    """What the processes have purged, each by itself."""
    with small_caches(), nacre.open(path, embedder=Hashing()) as opened:
        store = RandomStore(opened, seed=1_000 + number)
        store.remember(5)
        gone = Remains()
        for _ in range(turns):
            store.remember(2)
            store.change()
            gone |= store.purge(1)
        return gone


def purge_and_die(path: str, memory_id: str) -> None:
    """The process ends as soon as the deletion is committed."""
    with patch.object(store.SqliteStore, "_scrub", lambda *_: os._exit(1)):
        nacre.open(path, embedder=Hashing()).purge(memory_id)


def test_a_purge_beside_a_reader_is_finished_by_the_next_writer(
    workers: list[Worker], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader keeps the old pages alive as long as it reads. Until then every writer tries in vain."""
    monkeypatch.setattr(scrub, "WAIT_S", 0.1)
    with nacre.open(path, embedder=Hashing()) as opened:
        written = RandomStore(opened, seed=1)
        written.remember(20)
        with locked(path, "BEGIN; SELECT count(*) FROM memories") as release:
            gone = written.purge(3)
            assert written.pending == "others were reading or writing"
            workers[0].do(remember_text, (str(path), SCHEMA), "meanwhile")
            assert gone.found_in(path) != []
            release()
        workers[1].do(remember_text, (str(path), SCHEMA), "later")
        assert gone.found_in(path) == []
        assert opened.purge(written.one_of()).scrubbed
    for worker in workers[:2]:
        worker.do(close_store, (str(path), SCHEMA))
    check_integrity(path)


def test_purges_by_several_writers_leave_nothing(workers: list[Worker], path: Path) -> None:
    nacre.open(path, embedder=Hashing()).close()
    several = together(workers[:3], write_and_purge, str(path), 5)
    workers[0].do(remember_text, (str(path), SCHEMA), "one more")
    workers[0].do(close_store, (str(path), SCHEMA))
    for gone in several:
        assert gone.found_in(path) == []
    check_integrity(path)
    check_derived_tables(path)


def test_a_purge_whose_process_was_killed_is_finished_by_the_next_writer(path: Path) -> None:
    with small_caches():
        with nacre.open(path, embedder=Hashing()) as opened:
            written = RandomStore(opened, seed=2)
            written.remember(30)
            opened.rebuild()
            memory_id = written.one_of()
        process = SPAWN.Process(target=purge_and_die, args=(str(path), memory_id))
        process.start()
        process.join(ANSWER_SECONDS)
        gone = written.remains[memory_id]
        assert {name.partition(":")[0] for name in gone.found_in(path)} >= {path.name, *cached(path)}
        with nacre.open(path, embedder=Hashing()) as opened:
            opened.remember("one more")
            settled(opened)
            assert gone.found_in(path) == []
    check_integrity(path)


def cached(path: Path) -> set[str]:
    return {each.name for each in cache_files(path)}


# ---------------------------------------------------------------- threads


def run_threads(tasks: list[Callable[[], None]]) -> None:
    """All at once; the first thing that any of them raised is raised here."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(tasks))

    def guarded(task: Callable[[], None]) -> None:
        try:
            barrier.wait()
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWER_SECONDS)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def test_one_store_used_by_eight_threads(path: Path, memory: nacre.Nacre) -> None:
    def life(number: int) -> None:
        for turn in range(12):
            text = f"thread{number} turn{turn}"
            memory_id = memory.remember(text, space=f"space {number % 3}").id
            where = nacre.Filter(spaces=[f"space {number % 3}"])
            for mode in ("keyword", "semantic", "hybrid"):
                found = memory.search(text, mode=mode, where=where, limit=5).hits
                assert found[0].id == memory_id
            match turn % 4:
                case 0:
                    assert memory.update(memory_id, text=f"{text} changed").text.endswith("changed")
                case 1:
                    memory.forget(memory_id)
                    assert memory_id not in [hit.id for hit in memory.search(text, where=where).hits]
                case 2:
                    memory.purge(memory_id)
                    with pytest.raises(nacre.NotFound):
                        memory.get(memory_id)
                case 3:
                    assert memory.timeline(where=where, limit=1000).entries
            memory.stats()

    run_threads([lambda number=number: life(number) for number in range(8)])  # type: ignore[misc]
    stats = memory.stats()
    assert (stats.memories, stats.forgotten) == (8 * 6, 8 * 3)
    check_derived_tables(path)


def test_the_same_text_from_eight_threads_is_remembered_once(memory: nacre.Nacre) -> None:
    receipts: list[nacre.Remembered] = []
    run_threads([lambda: receipts.extend(memory.remember(f"text {turn}") for turn in range(10))] * 8)
    assert sum(not receipt.duplicate for receipt in receipts) == 10
    assert len({receipt.id for receipt in receipts}) == 10


def test_closing_while_others_search(path: Path) -> None:
    """Calls that come too late are refused in our words; none hangs or crashes."""
    for _ in range(5):
        store = nacre.open(path, embedder=Hashing())
        store.remember_many(f"text {number}" for number in range(20))

        def search(store: nacre.Nacre = store) -> None:
            for turn in range(200):
                try:
                    store.search(f"text {turn % 20}")
                except NacreError:
                    return

        def close(store: nacre.Nacre = store) -> None:
            time.sleep(0.02)
            store.close()

        run_threads([search, search, search, close])
