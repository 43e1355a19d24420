"""LanceDB's hybrid search: its full-text index and the vectors, joined by its reciprocal rank fusion."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.labelled import Document
from benchmarks.rivals.rival import PASSAGES_A_DOCUMENT, Rival, Search, folded, package, passages_of
from nacre.interfaces import Embedder


@contextmanager
def indexed(documents: Sequence[Document], embedder: Embedder, folder: Path) -> Iterator[Search]:
    os.environ.setdefault("LANCEDB_LOG", "error")  # else it warns of a change to come with each question
    import lancedb
    from lancedb.index import FTS
    from lancedb.query import MatchQuery
    from lancedb.rerankers import RRFReranker

    rows = list(passages_of(documents, embedder))
    vectors = embedder.embed_passages([row.text for row in rows])
    table = lancedb.connect(str(folder)).create_table(
        "documents",
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
        return folded((row["id"] for row in found), limit)

    yield search


RIVALS = (Rival("lancedb hybrid", package("lancedb"), indexed),)
