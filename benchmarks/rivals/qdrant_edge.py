"""Qdrant Edge: the core of Qdrant in this process.

Configured as in its own examples of hybrid search: a dense vector by cosine, its BM25 embedder (English: stems, no stop
words) as a sparse vector with the IDF modifier, prefetches of both, fused by its reciprocal rank fusion with its
default k of 2. Everything else is its default: HNSW of 16 edges, memory-mapped 32-bit vectors, a graph only where a
segment has over 10 MB of vectors. The tags have a keyword index before points are added, as its documentation
advises, so that the graph takes it into account. `optimize` builds the graph on all cores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import qdrant_edge as qdrant

from benchmarks.rivals.base import (
    DIMENSIONS,
    LIMIT,
    POOL,
    Engine,
    Filling,
    Found,
    Kind,
    Opened,
    Question,
    Rows,
    tags_of,
)

POINTS_AT_ONCE = 1_000
RRF_K = 2


def _bm25() -> Any:
    return qdrant.Bm25(qdrant.Bm25Config(language="english"))


class QdrantFilling(Filling):
    def __init__(self, shard: Any) -> None:
        self._shard = shard
        self._bm25 = _bm25()

    def add(self, rows: Rows) -> None:
        for start in range(0, len(rows.texts), POINTS_AT_ONCE):
            points = [
                qdrant.Point(
                    rows.first + at,
                    {"dense": rows.vectors[at], "bm25": self._bm25.embed_document(rows.texts[at])},
                    {"text": rows.texts[at], "tags": tags_of(rows.first + at)},
                )
                for at in range(start, min(start + POINTS_AT_ONCE, len(rows.texts)))
            ]
            self._shard.update(qdrant.UpdateOperation.upsert_points(points))

    def index(self) -> None:
        self._shard.optimize()
        self._shard.flush()

    def close(self) -> None:
        self._shard.close()


class QdrantOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self._shard = qdrant.EdgeShard.load(str(folder))
        self._bm25 = _bm25()

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
        found = self._shard.query(self._request(kind, question, _having(tag)))
        return [Found(str(point.id), point.payload["text"]) for point in found]

    def _request(self, kind: Kind, question: Question, having: Any) -> Any:
        shown = {"limit": LIMIT, "with_payload": ["text"]}
        if kind == "semantic":
            return qdrant.QueryRequest(query=self._dense(question), filter=having, **shown)
        if kind == "keyword":
            return qdrant.QueryRequest(query=self._sparse(question), filter=having, **shown)
        prefetches = [
            qdrant.Prefetch(limit=POOL, query=self._dense(question), filter=having),
            qdrant.Prefetch(limit=POOL, query=self._sparse(question), filter=having),
        ]
        return qdrant.QueryRequest(prefetches=prefetches, query=qdrant.Fusion.Rrf(k=RRF_K), **shown)

    def _dense(self, question: Question) -> Any:
        return qdrant.Query.Nearest(question.vector, using="dense")

    def _sparse(self, question: Question) -> Any:
        return qdrant.Query.Nearest(self._bm25.embed_query(question.text), using="bm25")

    def close(self) -> None:
        self._shard.close()


def _having(tag: str | None) -> Any:
    if tag is None:
        return None
    return qdrant.Filter(must=[qdrant.FieldCondition(key="tags", match=qdrant.MatchValue(tag))])


class QdrantEdge(Engine):
    name = "qdrant-edge"
    packages = ("qdrant-edge-py",)
    configuration = "HNSW m 16 in float32, its BM25 as sparse vectors, RRF of prefetches, keyword index on tags"

    def fill(self, folder: Path) -> Filling:
        config = qdrant.EdgeConfig(
            vectors={"dense": qdrant.EdgeVectorParams(size=DIMENSIONS, distance=qdrant.Distance.Cosine)},
            sparse_vectors={"bm25": qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
        )
        shard = qdrant.EdgeShard.create(str(folder), config)
        shard.update(qdrant.UpdateOperation.create_field_index("tags", qdrant.PayloadSchemaType.Keyword))
        return QdrantFilling(shard)

    def refill(self, folder: Path) -> Filling:
        return QdrantFilling(qdrant.EdgeShard.load(str(folder)))

    def open(self, folder: Path) -> Opened:
        return QdrantOpened(folder)


ENGINE = QdrantEdge
