"""LanceDB: its hybrid search, joined by its own reciprocal rank fusion.

The full-text index has its defaults (English stems, no stop words). Its documents advise against a vector index up to
about a hundred thousand rows; here it has one from 50,000 on, IVF_HNSW_SQ with its defaults, which they name for low
latency with high recall. Tags are a list with the index made for such (LABEL_LIST), and filters come before the search,
as is its default. `optimize` joins the fragments that adding left.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCEDB_LOG", "error")  # else it warns of a change to come with each question
import lancedb
import pyarrow as pa
from lancedb.index import FTS, HnswSq, LabelList
from lancedb.query import MatchQuery
from lancedb.rerankers import RRFReranker

from benchmarks.engines.engine import (
    DIMENSIONS,
    LIMIT,
    Engine,
    Filling,
    Found,
    Kind,
    Opened,
    ParsedQuery,
    Rows,
    tags_of,
)

TABLE = "memories"
INDEXED_MIN = 50_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("vector", pa.list_(pa.float32(), DIMENSIONS)),
    ]
)


class LanceFilling(Filling):
    def __init__(self, table: Any) -> None:
        self._table = table

    def add(self, rows: Rows) -> None:
        numbers = range(rows.first, rows.first + len(rows.texts))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.reshape(-1)), DIMENSIONS)
        columns = [list(numbers), list(rows.texts), [tags_of(row) for row in numbers], vectors]
        self._table.add(pa.table(columns, schema=SCHEMA))

    def index(self) -> None:
        self._table.optimize()
        self._table.create_index("text", config=FTS())
        self._table.create_index("tags", config=LabelList())
        if self._table.count_rows() >= INDEXED_MIN:
            self._table.create_index("vector", config=HnswSq(distance_type="cosine"))


class LanceOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self._table = lancedb.connect(str(folder)).open_table(TABLE)
        self._reranker = RRFReranker()

    def search(self, kind: Kind, question: ParsedQuery, tag: str | None) -> list[Found]:
        query = self._query(kind, question)
        if tag is not None:
            query = query.where(f"array_has_any(tags, ['{tag}'])")
        return [Found(str(row["id"]), row["text"]) for row in query.limit(LIMIT).select(["id", "text"]).to_list()]

    def _query(self, kind: Kind, question: ParsedQuery) -> Any:
        words = MatchQuery(question.text, "text")
        if kind == "keyword":
            return self._table.search(words, query_type="fts")
        if kind == "semantic":
            return self._table.search(question.vector).distance_type("cosine")
        hybrid = self._table.search(query_type="hybrid").vector(question.vector).text(words)
        return hybrid.distance_type("cosine").rerank(self._reranker)


class LanceDB(Engine):
    name = "lancedb"
    packages = ("lancedb",)
    configuration = "IVF_HNSW_SQ from 50,000 rows on, its FTS index, its RRF, LABEL_LIST index on tags"

    def fill(self, folder: Path) -> Filling:
        return LanceFilling(lancedb.connect(str(folder)).create_table(TABLE, schema=SCHEMA))

    def refill(self, folder: Path) -> Filling:
        return LanceFilling(lancedb.connect(str(folder)).open_table(TABLE))

    def open(self, folder: Path) -> Opened:
        return LanceOpened(folder)


ENGINE = LanceDB()
