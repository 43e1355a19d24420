"""What the tests of the caches share: embedders, a look inside, and what is right.

What is right by meaning is computed here by comparing a question with every live memory, and by words it is what
FTS5 and the rows say, without the index.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

import nacre
from further_models import Bilingual
from nacre.embedders.hashing import Hashing
from nacre.interfaces import TimePage
from nacre.storage.sqlite import BUSY_TIMEOUT_MS, SqliteStore
from nacre.storage.sqlite import keyword_search as sqlite_lexical
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite.index import segment_builder
from nacre.storage.sqlite.index import space_index as sqlite_index
from nacre.storage.sqlite.index.segment import Segment
from nacre.storage.sqlite.index.space_index import Index, Space
from nacre.storage.vectors import cosines, pack, unpack
from nacre.types.memory import Span

SPACE = "default"
EVERYTHING = nacre.Recipe(  # in the order of the channels
    semantic_floor=-1, recency_weight=0, usage_weight=0, intent_weight=0, exact_weight=0, fresh_weight=0
)
FEW_CANDIDATES = replace(EVERYTHING, pool=1)  # then twice the limit is the pool
FLOWERS = ("rose", "tulip", "daisy", "lily", "orchid")
QUESTIONS = ("rose", "tulip lily", "orchid number 7")  # the last has a word that all have, and one that one has
NOW = datetime(2030, 1, 1, tzinfo=UTC)  # after everything: scores do not depend on when a test looks
WAIT_SECONDS = 30
Vectors = npt.NDArray[np.float32]


class Prescribed:
    """An embedder that knows a vector for every text it will ever see."""

    def __init__(self, vectors: dict[str, Vectors], pieces_max: int = 1_000) -> None:
        self._vectors = vectors
        self._pieces_max = pieces_max

    @property
    def fingerprint(self) -> str:
        return "prescribed"

    @property
    def pieces_max(self) -> int:
        return self._pieces_max

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        return Hashing().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text else 0.0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        return self._vectors[text]


def reopened(
    path: Path, *, log: bool = False, busy_timeout_ms: int = BUSY_TIMEOUT_MS, further: Bilingual | None = None
) -> nacre.Nacre:
    """Without the log, in which every search would leave a trace that moves later scores."""
    beside: Any = further or "off"
    return nacre.open(path, embedder=Hashing(), log=log, busy_timeout_ms=busy_timeout_ms, multilingual=beside)


# ---------------------------------------------------------------- inside


def low_thresholds(monkeypatch: pytest.MonkeyPatch, **others: int) -> None:
    """Files from ten memories on, and words are always looked for in the index."""
    for name, value in {"SAVED_MEMORIES_MIN": 10, "_SEARCHED_RATIO": 4, **others}.items():
        monkeypatch.setattr(sqlite_index, name, value)
    monkeypatch.setattr(sqlite_store, "INDEXED_MEMORIES_MIN", 0)


def counted_loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are read for each new segment from now on."""
    counted: list[int] = []
    of_rows = segment_builder.of_rows

    def counting(db: Any, space: str, touched: Sequence[int], *others: Any) -> Any:
        counted.append(len(touched))
        return of_rows(db, space, touched, *others)

    monkeypatch.setattr(sqlite_index, "of_rows", counting)
    return counted


def index_of(engine: nacre.Nacre) -> Index:
    store = engine._store
    assert isinstance(store, SqliteStore)
    return store._ready_index


def space_of(engine: nacre.Nacre, space: str = SPACE) -> Space:
    found = index_of(engine)._spaces.get(space)
    assert found is not None
    return found


def settled(engine: nacre.Nacre) -> None:
    """Wait until there is nothing more to do in the background."""
    deadline = time.monotonic() + WAIT_SECONDS
    worker = index_of(engine)._worker
    while (thread := worker._thread) is not None:
        thread.join(WAIT_SECONDS)
        assert time.monotonic() < deadline, "the background work does not end"


def sizes(engine: nacre.Nacre, space: str = SPACE) -> list[int]:
    return [len(part.segment) for part in space_of(engine, space).parts]


def cache_folder(path: Path) -> Path:
    return path.with_name(path.name + "-cache")


def cache_files(path: Path, suffix: str = "") -> list[Path]:
    return sorted(cache_folder(path).glob(f"*{suffix}"))


def background_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "nacre-index"]


class Gate:
    """Holds a function back, where it is called in the background, until the gate is opened."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.opened = threading.Event()
        self.begun = threading.Event()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if threading.current_thread().name == "nacre-index":
            self.begun.set()
            assert self.opened.wait(WAIT_SECONDS)
        return self._function(*arguments, **named)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.opened.set()


# ---------------------------------------------------------------- what is right


def live_memories(engine: nacre.Nacre, space: str = SPACE) -> list[nacre.Memory]:
    return engine._store.by_time(nacre.Filter(spaces=[space]), TimePage(1_000_000))


class Comparison:
    """The right answers, by comparing each question with every live memory of one passage."""

    def __init__(
        self,
        engine: nacre.Nacre,
        embedder: Hashing | Prescribed,
        keep: Callable[[nacre.Memory], bool] = lambda _: True,
    ) -> None:
        memories = [memory for memory in live_memories(engine) if keep(memory)]
        self._embedder = embedder
        self._ids = [memory.id for memory in memories]
        self._stored = None
        if memories:
            vectors = embedder.embed_passages([memory.text for memory in memories])
            self._stored = unpack([pack(vector) for vector in vectors])

    def nearest(self, query: str, limit: int | None = None) -> list[str]:
        if self._stored is None:
            return []
        scores = cosines(self._stored, self._embedder.embed_query(query)).tolist()
        ranked = sorted(zip(scores, self._ids, strict=True), key=lambda each: (-each[0], each[1]))
        return [memory_id for _, memory_id in ranked[:limit]]


def nearest(engine: nacre.Nacre, embedder: Hashing | Prescribed, query: str, limit: int) -> list[str]:
    return Comparison(engine, embedder).nearest(query, limit)


def found(engine: nacre.Nacre, query: str, limit: int = 10, **options: Any) -> list[str]:
    options = {"recipe": EVERYTHING, **options}
    return [hit.id for hit in engine.search(query, mode="semantic", limit=limit, **options).hits]


def by_words(engine: nacre.Nacre, query: str, limit: int = 10, **options: Any) -> list[tuple[str, float | None]]:
    options = {"recipe": EVERYTHING, **options}
    return [(hit.id, hit.bm25) for hit in engine.search(query, mode="keyword", limit=limit, **options).hits]


def by_fts(engine: nacre.Nacre, query: str, limit: int = 10, **options: Any) -> list[tuple[str, float | None]]:
    """The same without the index: FTS5 gives every memory that matches, and the rows score it."""
    with (
        patch.object(SqliteStore, "_indexed", lambda *_: None),
        patch.object(sqlite_lexical, "CANDIDATES_MIN", 1_000_000),
    ):
        return by_words(engine, query, limit, **options)


def check(engine: nacre.Nacre, queries: Sequence[str] = QUESTIONS, limit: int = 10) -> None:
    """Every question gets the right answer, by meaning and by words."""
    right = Comparison(engine, Hashing())
    for query in queries:
        assert found(engine, query, limit) == right.nearest(query, limit), query
        assert by_words(engine, query, limit) == by_fts(engine, query, limit), query


def all_answers(engine: nacre.Nacre, queries: Sequence[str] = FLOWERS) -> list[Any]:
    """Hits with scores, reasons and snippets, in all modes."""
    wheres = [nacre.Filter(), nacre.Filter(kinds=["even"]), nacre.Filter(tags_none=["t1"])]
    return [
        engine.search(query, mode=mode, where=where, limit=limit, as_of=NOW).hits
        for query in queries
        for mode in ("keyword", "semantic", "hybrid")
        for where in wheres
        for limit in (3, 50)
    ]


def flower_texts(count: int, first: int = 0) -> list[nacre.NewMemory]:
    return [
        nacre.NewMemory(
            text=f"{FLOWERS[number % 5]} {FLOWERS[number // 5 % 5]} number {number}",
            kind="even" if number % 2 == 0 else "odd",
            tags=[f"t{number % 3}"],
        )
        for number in range(first, first + count)
    ]


def check_equal_segments(first: Segment, second: Segment) -> None:
    """All arrays of both are equal."""
    for name in (field.name for field in fields(Segment)):
        one, other = getattr(first, name), getattr(second, name)
        if name == "matrix" and not len(other):
            assert len(one) == 0  # of how many dimensions none are, nobody can tell
        else:
            np.testing.assert_array_equal(one, other, name)


# ---------------------------------------------------------------- spoiling files


def damage_header(file: Path) -> None:
    file.write_bytes(b"\xff" * 4096 + file.read_bytes()[4096:])


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")


def randomise(file: Path) -> None:
    file.write_bytes(np.random.default_rng(3).bytes(5_000))


def empty(file: Path) -> None:
    file.write_bytes(b"")


def not_an_object(file: Path) -> None:
    file.write_bytes(b'["count", 3]'.ljust(4096) + file.read_bytes()[4096:])


def age(file: Path) -> None:
    """As if it was written two hours ago."""
    long_ago = time.time() - 2 * 3600
    os.utime(file, (long_ago, long_ago))
