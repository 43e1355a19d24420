"""Document frequencies and lengths by space, kept in the same transaction as the rows they count."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal

import apsw

from nacre.analysis.tokenizer import vocabulary
from nacre.storage.sqlite.rows import TOKENIZE, to_json
from nacre.types.memory import BREAK, Tokens

MANY = 256  # texts of one space that SQLite counts faster than Python

# An index of its own for one batch: FTS5 knows how many texts have each word. Made anew by each connection.
_BATCH = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS temp.batch USING fts5 (
  words, forms, summary, tags, source, content = '', detail = none, columnsize = 0, tokenize = "{TOKENIZE}"
);
CREATE VIRTUAL TABLE IF NOT EXISTS temp.batch_terms USING fts5vocab (temp, batch, row);
"""
_UPSERT = "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories"


def count(db: apsw.Connection, texts: Iterable[tuple[int, str, Tokens]], sign: Literal[1, -1]) -> None:
    """Add live texts, given as (row, space, tokens), to the counts of their spaces, or take them out.

    Texts that are added have their tokens written already.
    """
    by_space: defaultdict[str, list[tuple[int, Tokens]]] = defaultdict(list)
    for row, space, tokens in texts:
        by_space[space].append((row, tokens))
    for space, several in by_space.items():
        if sign > 0 and len(several) >= MANY:
            _add_many(db, space, [row for row, _ in several])
        else:
            _count(db, space, [tokens for _, tokens in several], sign)
    db.executemany(
        "INSERT INTO corpus VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, length = length + excluded.length",
        (
            (space, sign * len(several), sign * sum(tokens.length for _, tokens in several))
            for space, several in by_space.items()
        ),
    )
    if sign < 0:
        db.executemany("DELETE FROM corpus WHERE space = ? AND memories <= 0", ((space,) for space in by_space))


def _count(db: apsw.Connection, space: str, texts: Sequence[Tokens], sign: Literal[1, -1]) -> None:
    counted = Counter(chain.from_iterable(map(vocabulary, texts)))
    db.execute(
        f"INSERT INTO vocabulary SELECT ?, key, ? * value FROM json_each(?) WHERE true {_UPSERT}",
        (space, sign, json.dumps(counted, ensure_ascii=False)),
    )
    if sign < 0:
        db.executemany(
            "DELETE FROM vocabulary WHERE space = ? AND term = ? AND memories <= 0",
            ((space, term) for term in counted),
        )


def _add_many(db: apsw.Connection, space: str, rows: Sequence[int]) -> None:
    """Counted in C from what was just written, while Python prepares the next batch."""
    db.execute(_BATCH)
    db.execute(
        "INSERT INTO temp.batch (rowid, words, forms, summary, tags, source) "
        "SELECT t.row, t.words, t.forms, t.summary, t.tags, t.source "
        "FROM json_each(?) AS j CROSS JOIN tokens AS t ON t.row = j.value",  # or SQLite goes through all rows
        (to_json(rows),),
    )
    db.execute(
        f"INSERT INTO vocabulary SELECT ?, term, doc FROM temp.batch_terms WHERE term <> ? {_UPSERT}", (space, BREAK)
    )
    db.execute("INSERT INTO temp.batch (batch) VALUES ('delete-all')")
