"""Is every backup the store at one moment, whoever writes meanwhile and whenever it is killed? And which copy is best?

    python -m benchmarks.backups [--backups 50] [--writers 8] [--kills 100] [--memories 20000] [--seed 1]

- **Moments.** Processes remember and forget numbered texts without a pause, each in its own space. Meanwhile backups
  are made: every fifth is full, the others hold what changed since the one before. Each is restored. For each writer it
  must hold the result of its first operations, to some number: all that were acknowledged before the backup began, none
  that began after it ended. The counts, the keyword index and the vectors must fit the memories.
- **Kills.** A process that makes backups is killed at random moments. Under a final name there may only be backups
  whose checksum is right and that can be restored, and the next backup must remove the rest. Then one that restores
  two backups in turn is killed: the store must be the one or the other, whole.
- **Replaced under writers.** A backup is restored over a store again and again while processes write to it. Each goes
  on with the restored store: no write that is acknowledged after the last restore may be missing.
- **Sizes.** How large a full backup is and one after a hundred more memories, and how long they and a restore take.
- **Copies.** What SQLite offers to copy a store, while one process writes: how long the copy and a write take.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import apsw

import nacre
from benchmarks.common import report
from benchmarks.common.timing import spread
from nacre.storage.sqlite.backup import files

FULL_EVERY = 5
COPY_S_MAX = 20  # a copy that takes longer is given up
_processes = multiprocessing.get_context("spawn")


def main() -> None:
    parser = report.parser(__doc__, "backups")
    for name, usual in (("backups", 50), ("writers", 8), ("kills", 100), ("memories", 20_000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual, help="(default: %(default)s)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        tables = {
            "Moments": [moments(folder / "moments", options.backups, options.writers)],
            "Killed backups": [killed_backups(folder / "kills", options.kills, random.Random(options.seed))],
            "Killed restores": [killed_restores(folder / "restores", options.kills, random.Random(options.seed))],
            "Replaced under writers": [replaced(folder / "replaced", 10, options.writers)],
            "Sizes": sizes(folder / "sizes", options.memories),
            "Copies": copies(folder / "copies", options.memories),
        }
    finally:
        shutil.rmtree(folder)
    notes = f"Sizes and copies of a store of {options.memories:,} memories of 26 words. Seed {options.seed}."
    report.write(options.name, tables, [notes])


# ---------------------------------------------------------------- moments


def operation(number: int) -> tuple[str, int]:
    """What a writer does as its n-th operation, from 0: remember the text of that number, or forget an earlier one."""
    return ("forget", number - 2) if number % 4 == 3 else ("remember", number)


def text_of(writer: int, number: int) -> str:
    return f"Writer {writer} wrote note number n{number} of its long list of things to keep."


def texts_after(writer: int, operations: int) -> set[str]:
    """The texts of a writer that are live after so many operations."""
    texts: set[str] = set()
    for action, number in map(operation, range(operations)):
        (texts.add if action == "remember" else texts.discard)(text_of(writer, number))
    return texts


def write(path: Path, writer: int, done: Any, stop: Event) -> None:
    """Carry out operations until told to stop. `done` has how many were acknowledged."""
    with nacre.open(path, space=f"writer{writer}", embedder="hashing", busy_timeout_ms=60_000) as memory:
        ids: dict[int, str] = {}
        while not stop.is_set():
            action, number = operation(done[writer])
            if action == "remember":
                ids[number] = memory.remember(text_of(writer, number)).id
            else:
                memory.forget(ids.pop(number))
            done[writer] += 1


@contextmanager
def writing(path: Path, writers: int) -> Iterator[Any]:
    """Processes that write. Yields the number of acknowledged operations of each."""
    nacre.open(path, embedder="hashing").close()
    done: Any = _processes.Array("q", writers)
    stop = _processes.Event()
    running = [_processes.Process(target=write, args=(path, each, done, stop)) for each in range(writers)]
    for process in running:
        process.start()
    try:
        while min(done) < 3:
            if not all(each.is_alive() for each in running):
                raise RuntimeError("a writer ended")
            time.sleep(0.01)
        yield done
    finally:
        stop.set()
        for process in running:
            process.join()
    if any(each.exitcode for each in running):
        raise RuntimeError("a writer failed")


def moments(folder: Path, backups: int, writers: int) -> dict[str, object]:
    """Make backups while others write, restore each, and raise AssertionError unless each is a moment in time."""
    store, kept = folder / "store.db", folder / "backups"
    kept.mkdir(parents=True)
    taken: list[tuple[nacre.Backup, list[int], list[int]]] = []
    took: list[float] = []
    with writing(store, writers) as done, nacre.open(store, embedder="hashing") as memory:
        for number in range(backups):
            before = list(done)
            start = time.perf_counter()
            made = memory.backup(kept, since=None if number % FULL_EVERY == 0 else "last").backup
            took.append(time.perf_counter() - start)
            taken.append((made, before, list(done)))
        operations = sum(done)
    for made, before, after in taken:
        check_moment(made, folder / "restored.db", before, after)
    times = spread(took)
    return {
        "backups": len(taken),
        "of them incremental": sum(made.kind == "incremental" for made, _, _ in taken),
        "writers": writers,
        "operations": operations,
        "wrong": 0,
        "a backup took p50, ms": times["p50"],
        "p95, ms": times["p95"],
    }


def check_moment(backup: nacre.Backup, path: Path, before: Sequence[int], after: Sequence[int]) -> None:
    """A restored backup has the result of a number of operations of each writer, between these."""
    nacre.restore_backup(backup.path, path, force=True)
    with nacre.open(path, embedder="hashing") as memory:
        counts = memory.stats()
        found: dict[str, set[str]] = {}
        for each in memory.every(nacre.Filter(spaces=tuple(counts.spaces))):
            found.setdefault(each.space, set()).add(each.text)
        for writer, (least, most) in enumerate(zip(before, after, strict=True)):
            texts = found.pop(f"writer{writer}")
            fitting = [many for many in range(least, most + 2) if texts_after(writer, many) == texts]
            assert fitting, f"{backup.path.name}: writer {writer} is at none of its moments {least} to {most + 1}"
        assert not found, found
        assert (counts.memories, counts.forgotten, counts.events) == (backup.memories, backup.forgotten, backup.seq)
        assert (counts.passages, counts.pending) == (backup.memories + backup.forgotten, 0)
        newest = max(texts, key=lambda text: (len(text), text))
        best = memory.search(newest, where=nacre.Filter(spaces=(f"writer{writer}",)), mode="keyword").hits[0]
        assert best.text == newest
    db = apsw.Connection(str(path))
    assert db.execute("SELECT count(*) FROM fts").get == backup.memories
    db.close()


# ---------------------------------------------------------------- kills


def back_up(path: Path, folder: Path, ready: Event) -> None:
    """Make backups until killed."""
    with nacre.open(path, embedder="hashing") as memory:
        ready.set()
        while True:
            memory.remember(f"Something to back up at {time.time_ns()}.")
            memory.backup(folder, since="last", keep="1d")


def killed_backups(folder: Path, kills: int, rng: random.Random) -> dict[str, object]:
    """Kill a process that makes backups, and raise AssertionError unless all that is left is right."""
    store, kept = folder / "store.db", folder / "backups"
    kept.mkdir(parents=True)
    _fill(store, 300)
    checked: set[str] = set()
    left = 0
    for _ in range(kills):
        _kill(back_up, (store, kept), rng)
        for path in kept.glob("*.db"):
            assert files.verified(path).path == path
            if path.name not in checked:
                checked.add(path.name)
                nacre.restore_backup(path, folder / "restored.db", force=True)
        left += any(kept.glob(".*.part"))
    with nacre.open(store, embedder="hashing") as memory:
        memory.backup(kept)
    assert not list(kept.glob(".*.part"))
    return {
        "kills": kills,
        "complete backups": len(checked),
        "kills that left a half file, none under a final name": left,
        "wrong": 0,
    }


def restore_in_turn(path: Path, sources: Sequence[Path], ready: Event) -> None:
    """Restore backups, one after the other, until killed."""
    while True:
        for source in sources:
            nacre.restore_backup(source, path, force=True)
            ready.set()


def killed_restores(folder: Path, kills: int, rng: random.Random) -> dict[str, object]:
    """Kill a process that restores, and raise AssertionError unless there is a whole store after each kill."""
    folder.mkdir(parents=True)
    store = folder / "store.db"
    sources = [folder / "small.db", folder / "large.db"]
    sizes = (100, 300)
    for source, size in zip(sources, sizes, strict=True):
        _fill(store, size)
        with nacre.open(store, embedder="hashing") as memory:
            memory.backup(source)
    found = []
    for _ in range(kills):
        _kill(restore_in_turn, (store, sources), rng)
        with nacre.open(store, embedder="hashing") as memory:
            found.append(memory.stats().memories)
            assert len(list(memory.every())) == found[-1]
            memory.remember(f"It can be written at {time.time_ns()}.")
    assert {*found} <= {*sizes}, found
    return {
        "kills": kills,
        "the smaller one": found.count(sizes[0]),
        "the larger one": found.count(sizes[1]),
        "wrong": 0,
    }


def _fill(store: Path, memories: int) -> None:
    with nacre.open(store, embedder="hashing") as memory:
        memory.remember_many(f"Memory number {number} of many others." for number in range(memories))


def _kill(target: Callable[..., None], arguments: tuple[object, ...], rng: random.Random) -> None:
    """Start a process, and kill it a moment later."""
    ready = _processes.Event()
    process = _processes.Process(target=target, args=(*arguments, ready))
    process.start()
    ready.wait()
    time.sleep(rng.uniform(0, 0.3))
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, process.exitcode


# ---------------------------------------------------------------- replaced under writers


def write_on(path: Path, writer: int, stop: Event, told: Any) -> None:
    """Remember until told to stop, whatever is refused. Tells when which text was acknowledged, and the refusals."""
    acknowledged: list[tuple[float, str]] = []
    refused = 0
    with nacre.open(path, embedder="hashing", busy_timeout_ms=60_000) as memory:
        for number in count():
            if stop.is_set():
                break
            try:
                memory.remember(text_of(writer, number))
                acknowledged.append((time.time(), text_of(writer, number)))
            except nacre.StoreUnavailable:  # the write was under way when the file was replaced
                refused += 1
    told.put((acknowledged, refused))


def replaced(folder: Path, restores: int, writers: int) -> dict[str, object]:
    """Restore over a store that is written to, and raise AssertionError if a later write is missing."""
    folder.mkdir(parents=True)
    store = folder / "store.db"
    with nacre.open(store, embedder="hashing") as memory:
        memory.remember("In the backup")
        made = memory.backup(folder / "backup.db").backup
    stop, told = _processes.Event(), _processes.Queue()
    running = [_processes.Process(target=write_on, args=(store, each, stop, told)) for each in range(writers)]
    for process in running:
        process.start()
    for _ in range(restores):
        time.sleep(0.5)
        nacre.restore_backup(made.path, store, force=True)
    last = time.time()
    time.sleep(1)
    stop.set()
    answers = [told.get() for _ in running]
    for process in running:
        process.join()
    with nacre.open(store, embedder="hashing") as memory:
        kept = {each.text for each in memory.every()}
    later = [text for acknowledged, _ in answers for at, text in acknowledged if at > last]
    missing = [text for text in later if text not in kept]
    assert "In the backup" in kept
    assert not missing, missing
    return {
        "restores": restores,
        "writers": writers,
        "acknowledged": sum(len(acknowledged) for acknowledged, _ in answers),
        "of them after the last restore": len(later),
        "missing": len(missing),
        "refused at a swap": sum(refused for _, refused in answers),
    }


# ---------------------------------------------------------------- sizes


def texts(memories: int, seed: int) -> Iterator[str]:
    """Texts of random words, of which few are frequent and most are rare."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(20_000)]
    weights = [1 / (number + 1) for number in range(20_000)]
    for number in range(memories):
        yield f"{seed}.{number} {' '.join(rng.choices(words, weights, k=25))}"


def sizes(folder: Path, memories: int) -> list[dict[str, object]]:
    kept = folder / "backups"
    kept.mkdir(parents=True)
    rows: list[dict[str, object]] = []
    with nacre.open(folder / "store.db", embedder="hashing") as memory:
        memory.remember_many(texts(memories, 0))
        for name, more in (("full", 0), ("100 more memories", 100), ("nothing new", 0)):
            memory.remember_many(texts(more, len(rows)))
            start = time.perf_counter()
            made = memory.backup(kept, since="last").backup
            took = time.perf_counter() - start
            start = time.perf_counter()
            nacre.restore_backup(made.path, folder / "restored.db", force=True)
            rows.append(
                {
                    "backup": name,
                    "MB": f"{made.size_bytes / 1e6:.3f}",
                    "took, ms": round(1000 * took),
                    "restored in, ms": round(1000 * (time.perf_counter() - start)),
                }
            )
    return rows


# ---------------------------------------------------------------- copies


def by_steps(source: apsw.Connection, target: Path) -> None:
    """The backup API, 1,024 pages at a time, without a transaction. It begins again with each write of others."""
    deadline = time.perf_counter() + COPY_S_MAX
    db = apsw.Connection(str(target))
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")  # as VACUUM INTO does
    with db.backup("main", source, "main") as copying:
        while not copying.done and time.perf_counter() < deadline:
            copying.step(1_024)
    db.close()


def in_one_transaction(source: apsw.Connection, target: Path) -> None:
    """The backup API inside a read transaction: what Nacre does."""
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM meta").get  # noqa: B018
    by_steps(source, target)
    source.execute("COMMIT")


def vacuum_into(source: apsw.Connection, target: Path) -> None:
    """VACUUM INTO."""
    source.execute("VACUUM INTO ?", (str(target),))


WAYS: tuple[Callable[[apsw.Connection, Path], None], ...] = (by_steps, in_one_transaction, vacuum_into)


def write_timed(path: Path, times: Any, stop: Event) -> None:
    with nacre.open(path, embedder="hashing") as memory:
        number = 0
        while not stop.is_set():
            start = time.perf_counter()
            memory.remember(f"Another memory, number {number}, at {time.time_ns()}.")
            times.append(time.perf_counter() - start)
            number += 1


def copies(folder: Path, memories: int) -> list[dict[str, object]]:
    """Each way of copying while one process writes, and the writer alone."""
    folder.mkdir()
    store = folder / "store.db"
    with nacre.open(store, embedder="hashing") as memory:
        memory.remember_many(texts(memories, 0))
    rows: list[dict[str, object]] = []
    for way in (None, *WAYS):
        rows.append(_copied(folder, store, way))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _copied(folder: Path, store: Path, way: Callable[[apsw.Connection, Path], None] | None) -> dict[str, object]:
    target = folder / "copy.db"
    with _processes.Manager() as manager:
        times, stop = manager.list(), _processes.Event()
        process = _processes.Process(target=write_timed, args=(store, times, stop))
        process.start()
        while len(times) < 20:
            time.sleep(0.01)
        del times[:]
        took = []
        until = time.perf_counter() + 10
        while time.perf_counter() < until:
            if way is None:
                time.sleep(0.1)
                continue
            target.unlink(missing_ok=True)
            source = apsw.Connection(str(store))
            source.set_busy_timeout(60_000)
            start = time.perf_counter()
            way(source, target)
            took.append(time.perf_counter() - start)
            source.close()
        written = spread(list(times))
        stop.set()
        process.join()
    return {
        "copy": "none" if way is None else (way.__doc__ or "").partition(".")[0],
        "took p50, ms": "" if not took else spread(took)["p50"] if max(took) < COPY_S_MAX else "does not end",
        "copies": len(took) or "",
        "a write meanwhile p50, ms": written["p50"],
        "p99, ms": written["p99"],
    }


if __name__ == "__main__":
    main()
