"""MemPalace: finds drawers by vectors and reranks them by words and vectors; with `union` it finds them by words, too.

Drawers are filled as its `add_drawer` tool does, in chunks of its own size. Its default model is all-MiniLM-L6-v2,
which it would download; the same model as shipped with Nacre computes the vectors instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common.labelled_sets import Document
from benchmarks.rivals.base import PASSAGES_A_DOCUMENT, Rival, Search, documents_of, package
from nacre.interfaces import Embedder

CHUNKS_AT_ONCE = 1_000
WING = "documents"


@contextmanager
def indexed(candidates: str, documents: Sequence[Document], embedder: Embedder, folder: Path) -> Iterator[Search]:
    with _at_home(folder):
        _compute_vectors_with(embedder)
        from mempalace.config import MempalaceConfig
        from mempalace.palace import get_collection
        from mempalace.searcher import search_memories

        palace = str(folder / "palace")
        chunks = [
            (f"{number}_{at}", str(number), document.text[at : at + size])
            for size in [MempalaceConfig().chunk_size]
            for number, document in enumerate(documents)
            for at in range(0, len(document.text), size)
        ]
        drawers: Any = get_collection(palace)
        for start in range(0, len(chunks), CHUNKS_AT_ONCE):
            ids, parents, texts = zip(*chunks[start : start + CHUNKS_AT_ONCE], strict=True)
            about = [{"wing": WING, "room": "all", "source_file": "", "parent_drawer_id": each} for each in parents]
            drawers.upsert(ids=list(ids), documents=list(texts), metadatas=about)
        many = len(chunks) > len(documents)

        def search(question: str, limit: int) -> Sequence[str]:
            wanted = limit * PASSAGES_A_DOCUMENT if many else limit
            found = search_memories(question, palace, wing=WING, n_results=wanted, candidate_strategy=candidates)
            if "error" in found:
                raise RuntimeError(found["error"])
            return documents_of((documents[int(hit["drawer_id"])].id for hit in found["results"]), limit)

        yield search


@contextmanager
def _at_home(folder: Path) -> Iterator[None]:
    """Point HOME at the folder: MemPalace writes settings and locks to the home directory."""
    home = os.environ.get("HOME")
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        if home is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = home


def _compute_vectors_with(embedder: Embedder) -> None:
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    def forward(_: object, documents: Sequence[str], __: int = 0) -> Any:
        # Questions come one at a time, and their vectors are cached.
        return embedder.embed_query(documents[0])[None] if len(documents) == 1 else embedder.embed_passages(documents)

    model: Any = ONNXMiniLM_L6_V2
    model._forward = forward
    model._download_model_if_not_exists = lambda _: None


RIVALS = {
    "mempalace": Rival(package("mempalace"), partial(indexed, "vector")),
    "mempalace union": Rival(package("mempalace"), partial(indexed, "union")),
}
