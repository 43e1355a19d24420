"""What the processes of `benchmarks.faults` do, and what must be true of a store afterwards.

A worker says what it is about to do and, once that is acknowledged, that it is done. So after a kill it is known what
must be there, what must not, and which one operation may or may not have happened.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import apsw

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import NacreError, StoreError
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite.index import space_index
from nacre.types.search import Mode

OPERATIONS = ("remember", "remember", "remember", "update", "forget", "restore", "purge")
WORDS = [
    "heron",
    "boat",
    "harbour",
    "ladder",
    "copper",
    "window",
    "ticket",
    "orchard",
    "lantern",
    "bridge",
    "pepper",
    "meadow",
    "signal",
    "basket",
]
MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
BATCH_MAX = 8
WARM_OPERATIONS = 10  # before memory is limited
LOOKED_FOR = 6  # of the memories that must be there, how many are also searched for
Operation: TypeAlias = tuple[str, tuple[str, ...]]  # its name, and the texts that it is about


class Verdict(NamedTuple):
    """What became of one trial, or of several together."""

    trials: int = 0
    acknowledged: int = 0  # operations
    lost: int = 0  # that were acknowledged
    half: int = 0  # operations of which a part is there; stores whose tables disagree
    wrong: int = 0  # answers that differ, and nothing says why
    hangs: int = 0
    crashes: int = 0  # processes that died, or raised something that is no error of Nacre
    said: int = 0  # errors of Nacre, which say what is wrong

    def __add__(self, other: Verdict) -> Verdict:  # type: ignore[override]
        return Verdict(*map(sum, zip(self, other, strict=True)))

    @property
    def bad(self) -> int:
        return self.lost + self.half + self.wrong + self.hangs + self.crashes


@dataclass
class Expected:
    """What must be in a store, after the operations that were acknowledged. Texts are unique."""

    live: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    acknowledged: int = 0

    def apply(self, operation: Operation) -> None:
        name, texts = operation
        self.acknowledged += 1
        match name:
            case "remember":
                self.live.update(texts)
            case "update":
                self.live.remove(texts[0])
                self.gone.add(texts[0])
                self.live.add(texts[1])
            case "forget":
                self.live.remove(texts[0])
                self.forgotten.add(texts[0])
            case "restore":
                self.forgotten.remove(texts[0])
                self.live.add(texts[0])
            case "purge":
                self.live.remove(texts[0])
                self.gone.add(texts[0])

    def judge(self, found: set[str], under_way: Operation | None) -> Verdict:
        """Compare with the texts that are found. Of the operation under way all may have happened, or nothing."""
        texts = set(under_way[1]) if under_way else set[str]()
        half = 0
        if under_way is not None and under_way[0] == "remember":
            half = int(0 < len(texts & found) < len(texts))
        elif under_way is not None and under_way[0] == "update":
            half = int(len(texts & found) != 1)
        lost = len(self.live - found - texts)
        wrong = len(found - self.live - texts)  # forgotten, purged or never written
        return Verdict(acknowledged=self.acknowledged, lost=lost, half=half, wrong=wrong)


# ---------------------------------------------------------------- processes that write


@dataclass(frozen=True)
class Conditions:
    """Under which a worker works."""

    seed: int
    name: str = "w"
    operations: int = 1_000_000  # it is usually killed before
    seconds: float = 3_600
    file_bytes_max: int | None = None
    memory_bytes_max: int | None = None  # more than it has after its first operations
    words: int = 30  # of a text, at most
    slow: bool = False
    jumps: bool = False  # of the clock
    forks: bool = False
    refused_max: int = 3  # errors of Nacre, after which it stops


def work(path: str, conditions: Conditions, connection: Connection) -> None:
    """Write, change and delete without end, saying so. Ends with ("end",) or ("crash", what was raised)."""
    faulthandler.enable()
    try:
        _limit(conditions)
        chance = Random(conditions.seed)
        clock = _jumping(Random(conditions.seed)) if conditions.jumps else None
        _operate(path, conditions, chance, clock, connection.send)
        connection.send(("end",))
    except NacreError as error:
        connection.send(("said", str(error)))
        connection.send(("end",))
    except MemoryError:  # Python's own clear error
        connection.send(("said", "out of memory"))
        connection.send(("end",))
    except BaseException:
        connection.send(("crash", traceback.format_exc()))


def _operate(
    path: str,
    conditions: Conditions,
    chance: Random,
    clock: Callable[[], datetime] | None,
    say: Callable[[tuple[Any, ...]], None],
) -> None:
    options: dict[str, Any] = {"clock": clock} if clock else {}
    end, refused = time.monotonic() + conditions.seconds, 0
    # usearch crashes the process if memory is out while it loads a graph.
    graphs = conditions.memory_bytes_max is None
    with small_caches(graphs=graphs), nacre.open(path, embedder=Hashing(), **options) as memory:
        ids: dict[str, str] = {}
        live: list[str] = []
        forgotten: list[str] = []
        for turn in range(conditions.operations):
            if turn == WARM_OPERATIONS and conditions.memory_bytes_max is not None:
                _limit_memory(memory, conditions.memory_bytes_max)
            operation = _drawn(chance, conditions.name, turn, conditions.words, live, forgotten)
            say(("begin", operation))
            try:
                _do(memory, operation, ids)
            except NacreError as error:
                say(("said", str(error)))
                refused += 1
                if refused >= conditions.refused_max:
                    return
                continue
            say(("done", operation))
            _note(operation, live, forgotten)
            if live and chance.random() < 0.3:
                text = chance.choice(live)
                if not _finds(memory, text, chance):
                    say(("wrong", text[:60]))
            if conditions.forks and chance.random() < 0.1:
                _fork(memory, chance.choice(live) if live else "", say)
            if time.monotonic() > end:
                return


def _finds(memory: nacre.Nacre, text: str, chance: Random) -> bool:
    """Whether a search finds it first. A long text shares all words but its first with others."""
    if len(text) > 500:
        hits = memory.search(text.split()[0], mode="keyword", session="s").hits
    else:
        hits = memory.search(text, mode=chance.choice(MODES), session="s").hits
    return bool(hits) and hits[0].text == text


def _drawn(
    chance: Random, name: str, turn: int, words: int, live: Sequence[str], forgotten: Sequence[str]
) -> Operation:
    def text(place: int) -> str:
        """Clearly English: bare nouns look like several languages, whose texts have further words to be found by."""
        return f"{name}x{turn}x{place} is about the {' '.join(chance.choices(WORDS, k=chance.randint(3, words)))}"

    operation = chance.choice(OPERATIONS)
    if operation == "restore" and forgotten:
        return operation, (chance.choice(forgotten),)
    if operation in ("remember", "restore") or not live:
        return "remember", tuple(text(place) for place in range(chance.randint(1, BATCH_MAX)))
    old = chance.choice(live)
    return operation, (old, text(0)) if operation == "update" else (old,)


def _do(memory: nacre.Nacre, operation: Operation, ids: dict[str, str]) -> None:
    name, texts = operation
    match name:
        case "remember":
            for text, receipt in zip(texts, memory.remember_many(texts), strict=True):
                ids[text] = receipt.id
        case "update":
            memory.update(ids[texts[0]], text=texts[1])
            ids[texts[1]] = ids.pop(texts[0])
        case _:
            getattr(memory, name)(ids[texts[0]])


def _note(operation: Operation, live: list[str], forgotten: list[str]) -> None:
    name, texts = operation
    match name:
        case "remember":
            live.extend(texts)
        case "update":
            live[live.index(texts[0])] = texts[1]
        case "restore":
            forgotten.remove(texts[0])
            live.append(texts[0])
        case "forget" | "purge":
            live.remove(texts[0])
            if name == "forget":
                forgotten.append(texts[0])


def _fork(memory: nacre.Nacre, text: str, say: Callable[[tuple[Any, ...]], None]) -> None:
    """In a child: search with the parent's memory. It answers, or says clearly that it cannot."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        answer = b"wrong"
        try:
            hits = memory.search(text, mode="keyword").hits
            answer = b"right" if not text or (hits and hits[0].text == text) else b"wrong"
        except NacreError as error:
            answer = b"wrong" if "damaged" in str(error) else b"right"
        except BaseException as error:
            answer = b"crash " + repr(error).encode()
        finally:
            os.write(writer, answer)
            os._exit(0)
    os.close(writer)
    timer = threading.Timer(HANG_SECONDS / 2, lambda: os.kill(child, 9))
    timer.start()
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    timer.cancel()
    os.waitpid(child, 0)
    if not answer:
        say(("hang", "a forked child"))
    elif answer == b"wrong":
        say(("wrong", "a forked child"))
    elif answer != b"right":
        say(("crash", answer.decode()))


HANG_SECONDS = 60.0


@contextlib.contextmanager
def changed_constants(constants: Mapping[tuple[ModuleType, str], object]) -> Iterator[None]:
    """Other values, by module and name, for as long as the block runs."""
    usual = {(module, name): getattr(module, name) for module, name in constants}
    for (module, name), value in constants.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in usual.items():
            setattr(module, name, value)


def small_caches(*, graphs: bool = True) -> contextlib.AbstractContextManager[None]:
    """Thresholds so low that small stores have index files, too."""
    lowered = {
        (space_index, "SAVED_MEMORIES_MIN"): 8,
        (space_index, "BITE_EVENTS"): 16,
        (space_index, "GRAPH_PASSAGES_MIN"): 40 if graphs else 1 << 60,
        (space_index, "GRAPH_BEHIND_MAX"): 10,
        (sqlite_store, "INDEXED_MEMORIES_MIN"): 0,
        (sqlite_store, "UNINDEXED_MEMORIES_MAX"): 20,
    }
    return changed_constants(lowered)


# ---------------------------------------------------------------- conditions


def _limit(conditions: Conditions) -> None:
    if conditions.slow:
        _slow_disk(Random(conditions.seed))
    if conditions.file_bytes_max is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (conditions.file_bytes_max, resource.RLIM_INFINITY))


def _limit_memory(memory: nacre.Nacre, more_bytes: int) -> None:
    """After a search of each kind, because code that is not loaded yet could not be."""
    import resource

    for mode in MODES:
        memory.search("heron", mode=mode)
    resource.setrlimit(resource.RLIMIT_AS, (_memory_bytes() + more_bytes, resource.RLIM_INFINITY))


def _memory_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _jumping(chance: Random) -> Callable[[], datetime]:
    """A clock that is wrong by up to ten years, another time at every look."""
    return lambda: datetime.now(UTC) + timedelta(days=chance.choice((0, 0, 0, 1, -1, 3_650, -3_650)))


def _slow_disk(chance: Random) -> None:
    """Every database file of this process takes some milliseconds to write and to sync."""

    class File(apsw.VFSFile):
        def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
            if chance.random() < 0.05:
                time.sleep(chance.random() * 0.02)
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:  # noqa: N802
            time.sleep(chance.random() * 0.02)
            super().xSync(flags)

    usual = apsw.vfs_names()[0]

    class Disk(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("slow", usual, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
            return File(usual, name, flags)

    global _disk
    _disk = Disk()  # SQLite does not keep it alive


_disk: object = None


# ---------------------------------------------------------------- processes that read


def inspect(path: str, expected: Expected, under_way: Operation | None, seed: int, connection: Connection) -> None:
    """Compare a store with what must be in it. Sends a Verdict, or ("crash", what was raised)."""
    try:
        connection.send(_inspected(path, expected, under_way, Random(seed)))
    except BaseException as error:
        connection.send(("crash", f"{type(error).__name__}: {error}"))


def _inspected(path: str, expected: Expected, under_way: Operation | None, chance: Random) -> Verdict:
    with small_caches(), nacre.open(path, embedder=Hashing()) as memory:
        found = {each.text for each in memory.every()}
        verdict = expected.judge(found, under_way)
        sure = sorted(expected.live & found)
        for text in chance.sample(sure, min(LOOKED_FOR, len(sure))):
            verdict += Verdict(wrong=int(not _finds(memory, text, chance)))
        if memory.remember(f"life goes on {chance.random()}").duplicate:
            verdict += Verdict(wrong=1)
        health = memory.check()
    for each in health.problems:
        print(f"  {each.check}: {each.text}", file=sys.stderr, flush=True)
    return verdict + Verdict(half=int(not health.sound))


class Answers(NamedTuple):
    """What the read verbs of a store answer, each as text, or the error that it gives."""

    given: Mapping[str, str]
    said: Mapping[str, str]


def read(path: str, asked: Sequence[tuple[str, str]], connection: Connection) -> None:
    """Ask everything of a store. Sends Answers, or ("crash", what was raised)."""
    try:
        connection.send(answers(path, asked))
    except BaseException as error:
        connection.send(("crash", f"{type(error).__name__}: {error}"))


def answers(path: str, asked: Sequence[tuple[str, str]]) -> Answers:
    """`asked` are questions, each with the id of a memory."""
    given: dict[str, str] = {}
    said: dict[str, str] = {}

    def note(name: str, call: Callable[[], object]) -> None:
        try:
            given[name] = repr(call())
        except NacreError as error:
            said[name] = str(error)

    try:
        with small_caches(), nacre.open(path, embedder=Hashing(), log=False, clock=lambda: READ_AT) as memory:
            for question, memory_id in asked:
                for mode in MODES:
                    note(f"search {mode} {question}", partial(_searched, memory, question, mode))
                note(f"get {memory_id}", partial(memory.get, memory_id))
                note(f"history {memory_id}", partial(memory.history, memory_id))
            note("timeline", lambda: memory.timeline(limit=50))
            note("facts", memory.facts)
            note("every", lambda: list(memory.every()))
    except StoreError as error:
        said["open"] = str(error)
    return Answers(given, said)


READ_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _searched(memory: nacre.Nacre, question: str, mode: Mode) -> list[object]:
    """What a person sees of a result, unless notes say that something is damaged."""
    result = memory.search(question, mode=mode)
    damage = [note for note in result.notes if "damage" in note]
    if damage:
        raise StoreError("; ".join(damage))
    return [(hit.id, hit.text, round(hit.score, 9)) for hit in result.hits]
