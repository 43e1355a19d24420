"""SQLite's full-text index FTS5: any word of the question, ordered by its bm25().

With the trigram tokenizer, any three consecutive letters of a word: the one for languages without spaces.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.common.labelled_sets import Document
from benchmarks.rivals.base import Rival, Search, words
from nacre.interfaces import Embedder

LETTERS = 3  # of a trigram


def trigrams(question: str) -> list[str]:
    cut = (word[at : at + LETTERS] for word in words(question) for at in range(max(1, len(word) - LETTERS + 1)))
    return list(dict.fromkeys(cut))


@contextmanager
def indexed(
    tokenizer: str,
    terms: Callable[[str], list[str]],
    documents: Sequence[Document],
    _: Embedder,
    folder: Path,
) -> Iterator[Search]:
    with closing(sqlite3.connect(folder / "fts5.db")) as file:
        file.execute(f"CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, text, tokenize = '{tokenizer}')")
        with file:
            rows = [(document.id, document.text) for document in documents]
            file.executemany("INSERT INTO documents VALUES (?, ?)", rows)

        def search(question: str, limit: int) -> Sequence[str]:
            match = " OR ".join(f'"{term}"' for term in terms(question))
            if not match:
                return []
            sql = "SELECT id FROM documents WHERE documents MATCH ? ORDER BY bm25(documents) LIMIT ?"
            return [document_id for (document_id,) in file.execute(sql, [match, limit])]

        yield search


def _installed() -> str:
    return f"SQLite {sqlite3.sqlite_version}"


RIVALS = {
    "fts5 unicode61": Rival(_installed, partial(indexed, "unicode61", words)),
    "fts5 porter": Rival(_installed, partial(indexed, "porter unicode61", words)),
    "fts5 trigram": Rival(_installed, partial(indexed, "trigram", trigrams)),
}
