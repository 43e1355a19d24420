"""Chroma: by vectors; and by vectors among the documents that contain one of the question's longer words.

Its full-text filter restricts, it does not rank, and minds case; where no document passes it, the vectors alone answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.labelled import Document
from benchmarks.rivals.rival import PASSAGES_A_DOCUMENT, Rival, Search, folded, package, passages_of, words
from nacre.interfaces import Embedder

WORD_LETTERS_MIN = 5  # shorter words are in most documents
ROWS_AT_ONCE = 1_000


@contextmanager
def indexed(filtered: bool, documents: Sequence[Document], embedder: Embedder, folder: Path) -> Iterator[Search]:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    collection: Any = client.create_collection("documents", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    rows = list(passages_of(documents, embedder))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        collection.add(
            ids=[str(start + place) for place in range(len(part))],
            documents=[row.text for row in part],
            embeddings=embedder.embed_passages([row.text for row in part]),
        )

    def search(question: str, limit: int) -> Sequence[str]:
        wanted = {
            "query_embeddings": [embedder.embed_query(question)],
            "n_results": limit * PASSAGES_A_DOCUMENT,
            "include": ["distances"],
        }
        found = collection.query(**wanted, **_containing(question)) if filtered else collection.query(**wanted)
        if not found["ids"][0]:
            found = collection.query(**wanted)
        return folded((rows[int(place)].document_id for place in found["ids"][0]), limit)

    yield search


def _containing(question: str) -> dict[str, Any]:
    asked = [{"$contains": word} for word in words(question) if len(word) >= WORD_LETTERS_MIN]
    match asked:
        case []:
            return {}
        case [only]:
            return {"where_document": only}
    return {"where_document": {"$or": asked}}


RIVALS = (
    Rival("chroma", package("chromadb"), partial(indexed, False)),
    Rival("chroma $contains", package("chromadb"), partial(indexed, True)),
)
