"""Chroma. Its full-text and hybrid ranking exist in its cloud only, so locally it ranks by vectors.

Quality: by vectors; and by vectors among the documents that contain one of the longer words of the question. That
filter does not rank and is case-sensitive; where no document passes it, the vectors alone answer.

Speed: a persistent client and a collection with defaults (HNSW of 16 edges) except for the cosine. Tags are boolean
metadata, which it indexes by itself. Batches are as large as it accepts; the graph grows as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rivals.base import (
    LIMIT,
    PASSAGES_A_DOCUMENT,
    TAGS,
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
    words,
)

if TYPE_CHECKING:
    from benchmarks.common.labelled_sets import Document
    from nacre.interfaces import Embedder

COLLECTION = "memories"
WORD_LETTERS_MIN = 5  # shorter words are in most documents
ROWS_AT_ONCE = 1_000


def _client(folder: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))


# ---------------------------------------------------------------- quality


@contextmanager
def indexed(filtered: bool, documents: Sequence[Document], embedder: Embedder, folder: Path) -> Iterator[Search]:
    collection: Any = _client(folder).create_collection(
        COLLECTION, metadata={"hnsw:space": "cosine"}, embedding_function=None
    )
    rows = list(passages_of(documents, embedder))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        collection.add(
            ids=[str(start + place) for place in range(len(part))],
            documents=[row.text for row in part],
            embeddings=embedder.embed_passages([row.text for row in part]),
        )

    def search(question: str, limit: int) -> Sequence[str]:
        request = {
            "query_embeddings": [embedder.embed_query(question)],
            "n_results": limit * PASSAGES_A_DOCUMENT,
            "include": ["distances"],
        }
        found = collection.query(**request, **_containing(question)) if filtered else collection.query(**request)
        if not found["ids"][0]:
            found = collection.query(**request)
        return documents_of((rows[int(place)].document_id for place in found["ids"][0]), limit)

    yield search


def _containing(question: str) -> dict[str, Any]:
    conditions = [{"$contains": word} for word in words(question) if len(word) >= WORD_LETTERS_MIN]
    match conditions:
        case []:
            return {}
        case [only]:
            return {"where_document": only}
    return {"where_document": {"$or": conditions}}


RIVALS = {
    "chroma": Rival(package("chromadb"), partial(indexed, False)),
    "chroma $contains": Rival(package("chromadb"), partial(indexed, True)),
}


# ---------------------------------------------------------------- speed


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

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
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

    def __init__(self) -> None:
        import chromadb  # noqa: F401

    def fill(self, folder: Path) -> Filling:
        return ChromaFilling(_client(folder))

    def refill(self, folder: Path) -> Filling:
        return ChromaFilling(_client(folder))

    def open(self, folder: Path) -> Opened:
        return ChromaOpened(folder)


ENGINE = Chroma
