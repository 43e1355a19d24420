"""Chroma: by vectors only. Its search by words and its hybrid search are for its cloud, its documents say.

A persistent client and a collection with defaults (HNSW of 16 edges) but for the cosine. Tags are metadata of yes and
no, which it indexes by itself. It is fed in batches as large as it takes; the graph grows as they come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

from benchmarks.engines.engine import LIMIT, TAGS, Engine, Filling, Found, Kind, Opened, ParsedQuery, Rows

COLLECTION = "memories"


def _client(folder: Path) -> Any:
    return chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))


class ChromaFilling(Filling):
    def __init__(self, client: Any) -> None:
        self._most = client.get_max_batch_size()
        self._collection = client.get_or_create_collection(
            COLLECTION, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, rows: Rows) -> None:
        for start in range(0, len(rows.texts), self._most):
            part = range(start, min(start + self._most, len(rows.texts)))
            self._collection.add(
                ids=[str(rows.first + at) for at in part],
                documents=[rows.texts[at] for at in part],
                embeddings=rows.vectors[part.start : part.stop],
                metadatas=[{tag: (rows.first + at) % every == 0 for tag, every in TAGS.items()} for at in part],
            )

    def index(self) -> None:
        """Nothing is left to do."""


class ChromaOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self._client = _client(folder)
        self._collection = self._client.get_collection(COLLECTION, embedding_function=None)

    def search(self, kind: Kind, question: ParsedQuery, tag: str | None) -> list[Found]:
        assert kind == "semantic"
        found = self._collection.query(
            query_embeddings=[question.vector],
            n_results=LIMIT,
            where=None if tag is None else {tag: True},
            include=["documents"],
        )
        return [Found(key, text) for key, text in zip(found["ids"][0], found["documents"][0], strict=True)]

    def close(self) -> None:
        self._client.close()


class Chroma(Engine):
    name = "chroma"
    packages = ("chromadb",)
    configuration = "HNSW m 16 in float32; vectors only"
    kinds = ("semantic",)

    def fill(self, folder: Path) -> Filling:
        return ChromaFilling(_client(folder))

    def refill(self, folder: Path) -> Filling:
        return ChromaFilling(_client(folder))

    def open(self, folder: Path) -> Opened:
        return ChromaOpened(folder)


ENGINE = Chroma()
