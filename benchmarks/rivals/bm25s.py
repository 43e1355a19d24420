"""bm25s with its defaults, and with the stemmer that its documentation recommends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.common.labelled_sets import Document
from benchmarks.rivals.base import Rival, Search, package
from nacre.interfaces import Embedder


@contextmanager
def indexed(stem: bool, documents: Sequence[Document], _: Embedder, __: Path) -> Iterator[Search]:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english") if stem else None
    tokenize = partial(bm25s.tokenize, stemmer=stemmer, show_progress=False)
    ids = [document.id for document in documents]
    index = bm25s.BM25()
    index.index(tokenize([document.text for document in documents]), show_progress=False)

    def search(question: str, limit: int) -> Sequence[str]:
        k = min(limit, len(ids))
        places, scores = index.retrieve(tokenize(question), k=k, show_progress=False)
        return [ids[place] for place, score in zip(places[0], scores[0], strict=True) if score > 0]

    yield search


RIVALS = {
    "bm25s": Rival(package("bm25s"), partial(indexed, False)),
    "bm25s stemmed": Rival(package("bm25s"), partial(indexed, True)),
}
