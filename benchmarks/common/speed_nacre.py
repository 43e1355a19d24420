"""Nacre as an engine of the speed benchmark, with its defaults.

Facts are extracted, near-duplicates linked, searches logged. Three things differ from what a user has: the result
cache is off, because questions are asked several times; vectors are given, so nothing is embedded; and there is no
reranker, which `benchmarks.rerank` measures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import nacre
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.rivals.base import LIMIT, Engine, Filling, Found, Kind, Opened, Question, Rows, tags_of
from nacre.storage.sqlite import SqliteStore
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.recipe import CLASSIC

FILE = "memories.db"
INDEXED_MIN = 4_096  # smaller stores have no index files
UNCACHED = nacre.Limits(results_cached=0)
BY_VECTOR = replace(CLASSIC, semantic_floor=-1)  # no signal changes the order


def opened(folder: Path, embedder: GivenVectors) -> nacre.Nacre:
    return nacre.open(folder / FILE, embedder=embedder, reranker=None, limits=UNCACHED)


def memories_of(rows: Rows) -> Iterable[nacre.NewMemory]:
    return (nacre.NewMemory(text=text, tags=tags_of(row)) for row, text in enumerate(rows.texts, rows.first))


class NacreFilling(Filling):
    embedder: type[GivenVectors] = GivenVectors

    def __init__(self, folder: Path) -> None:
        self._embedder = self.embedder()
        self._memory = opened(folder, self._embedder)
        self._count = self._memory.stats().memories

    def add(self, rows: Rows) -> None:
        self._embedder.give_passages(rows.texts, rows.vectors)
        for receipts in self._memory.remember_batches(memories_of(rows)):
            self._count += len(receipts)

    def index(self) -> None:
        if self._count >= INDEXED_MIN:
            store = self._memory._store
            assert isinstance(store, SqliteStore)
            with store._connections.reading() as db:  # a process that searches does this in the background
                store._ready_index.build(db, DEFAULT_SPACE)

    def close(self) -> None:
        self._memory.close()


class NacreOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self.embedder = GivenVectors()
        self.memory = opened(folder, self.embedder)

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
        return self._found(question, tag, nacre.SearchRequest(query=question.text, mode=kind, limit=LIMIT))

    def nearest(self, question: Question, tag: str | None) -> list[Found]:
        request = nacre.SearchRequest(
            query=question.text, mode="semantic", limit=LIMIT, recipe=BY_VECTOR, collapse=False
        )
        return self._found(question, tag, request)

    def _found(self, question: Question, tag: str | None, request: nacre.SearchRequest) -> list[Found]:
        self.embedder.give_question(question.text, question.vector)
        where = nacre.Filter() if tag is None else nacre.Filter(tags_any=(tag,))
        return [Found(hit.id, hit.text) for hit in self.memory.search(request, where=where).hits]

    def close(self) -> None:
        self.memory.close()


class NacreEngine(Engine):
    name = "nacre"
    packages = ()
    configuration = "default recipe without reranking, tags as tags"

    def version(self) -> str:
        return f"nacre {nacre.__version__}"  # whatever the distribution is called

    def fill(self, folder: Path) -> Filling:
        return NacreFilling(folder)

    def refill(self, folder: Path) -> Filling:
        return NacreFilling(folder)

    def open(self, folder: Path) -> NacreOpened:
        return NacreOpened(folder)


ENGINE = NacreEngine
