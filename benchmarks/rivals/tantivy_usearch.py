"""Tantivy for words and usearch for vectors: two libraries that such searches are often built on.

Tantivy: its English tokenizer (stems), any word of the question, its BM25; written on all cores, merges awaited.
usearch: HNSW with its defaults (16 edges, 128 candidates when adding, 64 when searching) in half precision,
memory-mapped. The benchmark fuses the ranks. usearch's Python API has no filters, so a bit mask of each tag is kept
beside it: where few memories pass, their vectors are compared one by one; otherwise more are requested until enough
pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import tantivy
from usearch.index import Index

from benchmarks.rivals.base import (
    DIMENSIONS,
    LIMIT,
    POOL,
    TAGS,
    Engine,
    Filling,
    Found,
    Kind,
    Opened,
    Question,
    Rows,
    fused,
    tags_of,
)

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

HEAP_BYTES = 500_000_000
FEW = 20  # where at most one memory in 20 passes, comparing all of those is faster than a wider graph search
_WORD = re.compile(r"\w+")


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("id", stored=True, indexed=True, fast=True)
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem", index_option="freq")
    builder.add_text_field("tags", tokenizer_name="raw", index_option="basic")
    return builder.build()


def _graph() -> Any:
    return Index(ndim=DIMENSIONS, metric="cos", dtype="f16")


class TantivyUsearchFilling(Filling):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "words").mkdir(exist_ok=True)
        self._words = tantivy.Index(_schema(), path=str(folder / "words"))
        self._writer = self._words.writer(HEAP_BYTES, 0)
        self._graph = _graph()
        self._count = 0

    def add(self, rows: Rows) -> None:
        for row, text in enumerate(rows.texts, rows.first):
            self._writer.add_document(tantivy.Document(id=row, text=[text], tags=tags_of(row)))
        self._writer.commit()
        self._graph.add(np.arange(rows.first, rows.first + len(rows.texts)), rows.vectors)
        self._count = rows.first + len(rows.texts)

    def index(self) -> None:
        self._writer.wait_merging_threads()
        if self._count:
            self._graph.save(str(self._folder / "vectors.usearch"))
            np.save(self._folder / "tags.npy", _bits(self._count))


def _bits(count: int) -> npt.NDArray[np.bool_]:
    rows = np.arange(count)
    return np.stack([rows % every == 0 for every in TAGS.values()])


class TantivyUsearchOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self._words = tantivy.Index.open(str(folder / "words"))
        self._schema = self._words.schema
        self._searcher = self._words.searcher()
        self._graph = _graph()
        self._graph.view(str(folder / "vectors.usearch"))
        self._tags = dict(zip(TAGS, np.load(folder / "tags.npy"), strict=True))

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
        match kind:
            case "keyword":
                return [self._shown(address) for address in self._by_words(question.text, tag, LIMIT)]
            case "semantic":
                return self._texts_of(self._by_vector(question.vector, tag, LIMIT))
        found = self._by_words(question.text, tag, POOL)
        by_words = self._searcher.fast_field_values("id", found)
        return self._texts_of(fused([by_words, self._by_vector(question.vector, tag, POOL)]))

    def _by_words(self, text: str, tag: str | None, limit: int) -> list[Any]:
        query = self._words.parse_query(" ".join(_WORD.findall(text.lower())), ["text"])
        if tag is not None:
            passing = tantivy.Query.const_score_query(tantivy.Query.term_query(self._schema, "tags", tag, "basic"), 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, passing)])
        return [address for _, address in self._searcher.search(query, limit, count=False).hits]

    def _by_vector(self, vector: FloatVector, tag: str | None, limit: int) -> list[int]:
        if tag is None:
            return self._nearest(vector, limit)
        passing = self._tags[tag]
        rows = np.flatnonzero(passing)
        if len(rows) * FEW <= len(passing):
            vectors = np.asarray(self._graph.get(rows, "f32")).reshape(len(rows), -1)
            order = np.argsort(-(vectors @ vector), kind="stable")[:limit]
            return [int(row) for row in rows[order]]
        count = 2 * limit * len(passing) // len(rows)
        while True:
            found = [row for row in self._nearest(vector, count) if passing[row]]
            if len(found) >= limit or count >= len(passing):
                return found[:limit]
            count *= 2

    def _nearest(self, vector: FloatVector, count: int) -> list[int]:
        found: list[int] = self._graph.search(vector, count).keys.tolist()
        return found

    def _texts_of(self, rows: Sequence[int]) -> list[Found]:
        query = tantivy.Query.term_set_query(self._schema, "id", list(rows))
        hits = self._searcher.search(query, len(rows) or 1, count=False).hits
        shown = {each.id: each for each in (self._shown(address) for _, address in hits)}
        return [shown[str(row)] for row in rows]

    def _shown(self, address: Any) -> Found:
        document = self._searcher.doc(address)
        return Found(str(document.get_first("id")), document.get_first("text"))


class TantivyUsearch(Engine):
    name = "tantivy+usearch"
    packages = ("tantivy", "usearch")
    configuration = "tantivy with English stems, usearch HNSW m 16 in float16, RRF in Python, bits of tags beside it"

    def fill(self, folder: Path) -> Filling:
        return TantivyUsearchFilling(folder)

    def refill(self, folder: Path) -> Filling:
        return TantivyUsearchFilling(folder)

    def open(self, folder: Path) -> Opened:
        return TantivyUsearchOpened(folder)


ENGINE = TantivyUsearch
