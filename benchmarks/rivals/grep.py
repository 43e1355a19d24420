"""Substring counts: documents that contain most words of the question first, then those with most occurrences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.common.labelled_sets import Document
from benchmarks.rivals.base import Rival, Search, words
from nacre.interfaces import Embedder


@contextmanager
def indexed(documents: Sequence[Document], _: Embedder, __: Path) -> Iterator[Search]:
    texts = [(document.id, document.text.lower()) for document in documents]

    def search(question: str, limit: int) -> Sequence[str]:
        wanted = words(question)
        counted = []
        for document_id, text in texts:
            counts = [text.count(word) for word in wanted]
            if found := len(counts) - counts.count(0):
                counted.append((-found, -sum(counts), document_id))
        return [document_id for *_, document_id in sorted(counted)[:limit]]

    yield search


RIVALS = {"grep": Rival(lambda: "", indexed)}
