"""LanceDB: its full-text index and vectors, fused by its own reciprocal rank fusion.

The full-text index has its defaults (English stems, no stop words). In the speed benchmark, vectors have an index from
50,000 rows on, IVF_HNSW_SQ with its defaults: its documentation advises against one up to about 100,000 rows, and
recommends this one for low latency with high recall. Tags are a list with a LABEL_LIST index, and filters apply
before the search, as is its default. `optimize` merges the fragments that adding left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rivals.base import (
    DIMENSIONS,
    LIMIT,
    PASSAGES_A_DOCUMENT,
    Engine,
    Filling,
    Found,
    Kind,
    Opened,
    Question,
    Rival,
    Rows,
    Search,
    documents_of,
    package,
    passages_of,
    tags_of,
)

if TYPE_CHECKING:
    from benchmarks.common.labelled_sets import Document
    from nacre.interfaces import Embedder

TABLE = "memories"
INDEXED_MIN = 50_000
os.environ.setdefault("LANCEDB_LOG", "error")  # otherwise it warns of a future change with every question


# ---------------------------------------------------------------- quality


@contextmanager
def indexed(documents: Sequence[Document], embedder: Embedder, folder: Path) -> Iterator[Search]:
    import lancedb
    from lancedb.index import FTS
    from lancedb.query import MatchQuery
    from lancedb.rerankers import RRFReranker

    rows = list(passages_of(documents, embedder))
    vectors = embedder.embed_passages([row.text for row in rows])
    table = lancedb.connect(str(folder)).create_table(
        TABLE,
        [
            {"id": row.document_id, "text": row.text, "vector": vector}
            for row, vector in zip(rows, vectors, strict=True)
        ],
    )
    table.create_index("text", config=FTS())
    reranker = RRFReranker()

    def search(question: str, limit: int) -> Sequence[str]:
        hybrid = table.search(query_type="hybrid").vector(embedder.embed_query(question))
        found = (
            hybrid.text(MatchQuery(question, "text"))
            .distance_type("cosine")
            .rerank(reranker)
            .limit(limit * PASSAGES_A_DOCUMENT)
            .select(["id"])
            .to_list()
        )
        return documents_of((row["id"] for row in found), limit)

    yield search


RIVALS = {"lancedb hybrid": Rival(package("lancedb"), indexed)}


# ---------------------------------------------------------------- speed


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
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
        import pyarrow as pa

        numbers = range(rows.first, rows.first + len(rows.texts))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.reshape(-1)), DIMENSIONS)
        columns = [list(numbers), list(rows.texts), [tags_of(row) for row in numbers], vectors]
        self._table.add(pa.table(columns, schema=_schema()))

    def index(self) -> None:
        from lancedb.index import FTS, HnswSq, LabelList

        self._table.optimize()
        self._table.create_index("text", config=FTS())
        self._table.create_index("tags", config=LabelList())
        if self._table.count_rows() >= INDEXED_MIN:
            self._table.create_index("vector", config=HnswSq(distance_type="cosine"))


class LanceOpened(Opened):
    def __init__(self, folder: Path) -> None:
        import lancedb
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        self._table = lancedb.connect(str(folder)).open_table(TABLE)
        self._match_query = MatchQuery
        self._reranker = RRFReranker()

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
        query = self._query(kind, question)
        if tag is not None:
            query = query.where(f"array_has_any(tags, ['{tag}'])")
        return [Found(str(row["id"]), row["text"]) for row in query.limit(LIMIT).select(["id", "text"]).to_list()]

    def _query(self, kind: Kind, question: Question) -> Any:
        by_words = self._match_query(question.text, "text")
        if kind == "keyword":
            return self._table.search(by_words, query_type="fts")
        if kind == "semantic":
            return self._table.search(question.vector).distance_type("cosine")
        hybrid = self._table.search(query_type="hybrid").vector(question.vector).text(by_words)
        return hybrid.distance_type("cosine").rerank(self._reranker)


class LanceDB(Engine):
    name = "lancedb"
    packages = ("lancedb",)
    configuration = "IVF_HNSW_SQ from 50,000 rows on, its FTS index, its RRF, LABEL_LIST index on tags"

    def __init__(self) -> None:
        import lancedb
        import lancedb.index
        import lancedb.query
        import lancedb.rerankers
        import pyarrow  # noqa: F401

        self._connect: Any = lancedb.connect

    def fill(self, folder: Path) -> Filling:
        return LanceFilling(self._connect(str(folder)).create_table(TABLE, schema=_schema()))

    def refill(self, folder: Path) -> Filling:
        return LanceFilling(self._connect(str(folder)).open_table(TABLE))

    def open(self, folder: Path) -> Opened:
        return LanceOpened(folder)


ENGINE = LanceDB
