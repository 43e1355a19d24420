"""Ours, with its defaults: the default recipe, facts read from texts, near-duplicates linked, searches logged.

Two things differ from what a user has: no result is answered from the cache of results, because questions are asked
several times, and vectors are looked up, so nothing is embedded and nothing is read again. A question that finds
nothing is asked again with a word spelled otherwise; that takes the vector of the question as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import nacre
from benchmarks.engines.engine import LIMIT, Engine, Filling, Found, Kind, Opened, ParsedQuery, Rows, tags_of
from nacre.embedders.minilm import MiniLM
from nacre.storage.sqlite import SqliteStore
from nacre.types.memory import DEFAULT_SPACE, Span
from nacre.types.recipe import CLASSIC

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

FILE = "memories.db"
INDEXED_MIN = 4_096  # below, nothing is kept beside the rows
UNCACHED = nacre.Limits(results_cached=0)
BY_VECTOR = replace(CLASSIC, semantic_floor=-1)  # no signal moves what was found


class Known:
    """An embedder that looks vectors up: those of the questions, and those of the rows that are being added."""

    pieces_max = 254

    def __init__(self) -> None:
        self.fingerprint = MiniLM().fingerprint
        self._questions: dict[str, FloatVector] = {}
        self._passages: dict[str, FloatVector] = {}
        self._last: FloatVector | None = None

    def expect(self, texts: Sequence[str], vectors: FloatMatrix) -> None:
        self._passages = dict(zip(texts, vectors, strict=True))

    def meet(self, question: ParsedQuery) -> None:
        self._questions[question.text] = self._last = question.vector

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text else 0.0

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(0, len(text)), 1)]  # one passage each, as the others have it

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        return np.stack([self._passages[text] for text in texts])

    def embed_query(self, text: str) -> FloatVector:
        vector = self._questions.get(text, self._last)
        assert vector is not None
        return vector


def memories_of(rows: Rows) -> Iterable[nacre.NewMemory]:
    return (nacre.NewMemory(text=text, tags=tags_of(row)) for row, text in enumerate(rows.texts, rows.first))


class NacreFilling(Filling):
    def __init__(self, folder: Path) -> None:
        self._embedder = Known()
        self._memory = nacre.open(folder / FILE, embedder=self._embedder)
        self._count = self._memory.stats().memories

    def add(self, rows: Rows) -> None:
        self._embedder.expect(rows.texts, rows.vectors)
        for receipts in self._memory.remember_batches(memories_of(rows)):
            self._count += len(receipts)

    def index(self) -> None:
        if self._count >= INDEXED_MIN:
            store = self._memory._store
            assert isinstance(store, SqliteStore)
            with store._connections.reading() as db:  # what a process that searches does in the background
                store._ready_index.build(db, DEFAULT_SPACE)

    def close(self) -> None:
        self._memory.close()


class NacreOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self.embedder = Known()
        self.memory = nacre.open(folder / FILE, embedder=self.embedder, limits=UNCACHED)

    def search(self, kind: Kind, question: ParsedQuery, tag: str | None) -> list[Found]:
        return self._found(question, tag, nacre.SearchRequest(query=question.text, mode=kind, limit=LIMIT))

    def nearest(self, question: ParsedQuery, tag: str | None) -> list[Found]:
        request = nacre.SearchRequest(
            query=question.text, mode="semantic", limit=LIMIT, recipe=BY_VECTOR, collapse=False
        )
        return self._found(question, tag, request)

    def _found(self, question: ParsedQuery, tag: str | None, request: nacre.SearchRequest) -> list[Found]:
        self.embedder.meet(question)
        where = nacre.Filter() if tag is None else nacre.Filter(tags_any=(tag,))
        return [Found(hit.id, hit.text) for hit in self.memory.search(request, where=where).hits]

    def close(self) -> None:
        self.memory.close()


class Nacre(Engine):
    name = "nacre"
    packages = ("nacre",)
    configuration = "default recipe without reranking, tags as tags"

    def fill(self, folder: Path) -> Filling:
        return NacreFilling(folder)

    def refill(self, folder: Path) -> Filling:
        return NacreFilling(folder)

    def open(self, folder: Path) -> NacreOpened:
        return NacreOpened(folder)


ENGINE = Nacre()
