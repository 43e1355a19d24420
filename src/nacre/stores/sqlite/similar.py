"""Memories that say nearly the same: looked up when one is written, and linked, never merged."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import apsw

from nacre.stores.sqlite.rows import WORD_COLUMNS, fetch, to_json, tokens
from nacre.text import near
from nacre.types import Tokens

TABLES = """
CREATE TABLE sketches (
  hash INTEGER NOT NULL,
  row  INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  PRIMARY KEY (hash, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX sketches_by_row ON sketches (row);
CREATE TABLE similar (
  row   INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  other INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  apart INTEGER NOT NULL DEFAULT 0,       -- 1: somebody said that they are not the same
  PRIMARY KEY (row, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX similar_by_other ON similar (other);
"""

# Texts made from one template share shingles with thousands: only the newest few are compared.
_SHARING_MAX = 8
_COMPARED_MAX = 4

_SHARING = f"""
SELECT value ->> 0, (
  SELECT json_group_array(row) FROM (
    SELECT s.row FROM sketches AS s WHERE s.hash = value ->> 1 AND (s.row < value ->> 0 OR (? AND s.row > value ->> 0))
    AND EXISTS (SELECT 1 FROM memories AS m WHERE m.row = s.row AND m.deleted_us IS NULL)
    ORDER BY s.row DESC LIMIT {_SHARING_MAX}
  )
) AS others FROM json_each(?) WHERE others <> '[]'
"""


class Written(NamedTuple):
    """A text that was just written."""

    row: int
    space: str
    text: str
    tokens: Tokens
    sketch: tuple[int, ...]


@lru_cache(maxsize=1_024)
def _salt(space: str) -> int:
    """Keeps the texts of other spaces out of the way."""
    return int.from_bytes(hashlib.blake2b(space.encode(), digest_size=8).digest()) >> 1


def sketch(db: apsw.Connection, sketched: Iterable[tuple[int, str, tuple[int, ...]]]) -> str:
    """Write by what texts are looked up; gives it as JSON pairs of row and key."""
    listed = to_json([(row, key ^ _salt(space)) for row, space, hashes in sketched for key in hashes])
    db.execute("INSERT OR IGNORE INTO sketches SELECT value ->> 1, value ->> 0 FROM json_each(?)", (listed,))
    return listed


def link(db: apsw.Connection, texts: Sequence[Written], *, later: bool = False) -> None:
    """Find and link those that earlier texts of their space, or also later ones, are nearly the same as."""
    listed = sketch(db, ((each.row, each.space, each.sketch) for each in texts))
    sharing: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for row, others in fetch(db, _SHARING, (int(later), listed)):
        sharing[row].update(json.loads(others))
    if not sharing:
        return
    pairs: list[tuple[int, int]] = []
    for text in texts:
        enough = min(near.SHARED_MIN, len(text.sketch))
        alike = [(-shared, -other) for other, shared in sharing[text.row].items() if shared >= enough]
        others = [-other for _, other in sorted(alike)[:_COMPARED_MAX]]
        pairs += [(text.row, other) for other in others if _same(db, text, other)]
    db.executemany(
        "INSERT OR IGNORE INTO similar (row, other) VALUES (?, ?)",
        [each for one, other in pairs for each in ((one, other), (other, one))],
    )


def _same(db: apsw.Connection, text: Written, other: int) -> bool:
    sql = (
        f"SELECT m.space, m.text, {WORD_COLUMNS} FROM memories AS m JOIN tokens AS t ON t.row = m.row "
        "WHERE m.row = ? AND m.deleted_us IS NULL"
    )
    for space, other_text, *columns in fetch(db, sql, (other,)):
        if space == text.space:
            return near.same(text.text, other_text, text.tokens, tokens(columns), _cosine(db, text.row, other))
    return False


def _cosine(db: apsw.Connection, row: int, other: int) -> float | None:
    """How near two texts of one passage each are in meaning."""
    blobs = [
        [blob for (blob,) in fetch(db, "SELECT vector FROM passages WHERE row = ? LIMIT 2", (each,))]
        for each in (row, other)
    ]
    if any(len(each) != 1 for each in blobs):
        return None
    from nacre.vectors import cosines, unpack

    return float(cosines(unpack(blobs[0]), unpack(blobs[1])[0])[0])


def unlink(db: apsw.Connection, row: int) -> None:
    """A changed text is looked up anew."""
    db.execute("DELETE FROM similar WHERE row = ?1 OR other = ?1", (row,))
    db.execute("DELETE FROM sketches WHERE row = ?", (row,))


def separate(db: apsw.Connection, row: int) -> int:
    """Never show this memory as nearly the same as another; gives from how many it was separated."""
    sql = "UPDATE similar SET apart = 1 WHERE (row = ?1 OR other = ?1) AND apart = 0 RETURNING row = ?1"
    return sum(own for (own,) in fetch(db, sql, (row,)))


def of(db: apsw.Connection, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By id, the live memories that are linked with it."""
    sql = (
        "SELECT m.id, o.id FROM memories AS m JOIN similar AS s ON s.row = m.row AND s.apart = 0 "
        "JOIN memories AS o ON o.row = s.other AND o.deleted_us IS NULL "
        "WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY o.id"
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for memory_id, other in fetch(db, sql, (to_json(list(ids)),)):
        found[memory_id].append(other)
    return {memory_id: tuple(others) for memory_id, others in found.items()}
