"""Near-duplicates: found when a memory is written, and linked, never merged.

Each text has a sketch, a few hashes of its shingles. Texts that share enough hashes are compared.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from itertools import groupby

import apsw

from nacre.analysis import near_duplicates
from nacre.storage.sqlite import change_log
from nacre.storage.sqlite.rows import WORD_COLUMNS, fetch, to_json, tokens
from nacre.types.memory import Entry, Tokens

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

# Texts made from one template share hashes with thousands of others. Only the newest few are compared.
_SHARING_MAX = 8
_COMPARED_MAX = 4
_PLACES = near_duplicates.SKETCH_HASHES  # for the hashes of one row; unused places are NULL

# Hashes that more than one text has. Most have none: they repeat no earlier text.
_SHARED = (
    "SELECT json_group_array(value) FROM json_each(?) "
    "WHERE EXISTS (SELECT 1 FROM sketches WHERE hash = value LIMIT 1 OFFSET 1)"
)
_WRITE = f"INSERT OR IGNORE INTO sketches SELECT value, ? + key / {_PLACES} FROM json_each(?) WHERE value IS NOT NULL"

_SHARING = f"""
SELECT value ->> 0, (
  SELECT json_group_array(row) FROM (
    SELECT s.row FROM sketches AS s WHERE s.hash = value ->> 1 AND (s.row < value ->> 2 OR (? AND s.row > value ->> 0))
    AND EXISTS (SELECT 1 FROM memories AS m WHERE m.row = s.row AND m.deleted_us IS NULL)
    ORDER BY s.row DESC LIMIT {_SHARING_MAX}
  )
) AS others FROM json_each(?) WHERE others <> '[]'
"""


@lru_cache(maxsize=1_024)
def _salt(space: str) -> int:
    """Makes hashes differ between spaces, so that texts are compared within their space only."""
    return int.from_bytes(hashlib.blake2b(space.encode(), digest_size=8).digest()) >> 1


def sketch(db: apsw.Connection, sketched: Iterable[tuple[int, str, tuple[int, ...]]]) -> list[str]:
    """Write the hashes of texts, given as (row, space, hashes). Returns them as JSON arrays with NULL in unused places.

    Consecutive rows are written by one statement.
    """
    salted = [(row, [key ^ _salt(space) for key in hashes]) for row, space, hashes in sketched]
    written = []
    for _, following in groupby(enumerate(salted), key=lambda each: each[1][0] - each[0]):
        run = [each for _, each in following]
        places = [key for _, hashes in run for key in (hashes if len(hashes) == _PLACES else _filled(hashes))]
        written.append(to_json(places))
        db.execute(_WRITE, (run[0][0], written[-1]))
    return written


def _filled(hashes: Sequence[int]) -> list[int | None]:
    return [*hashes, *(None for _ in range(len(hashes), _PLACES))]


def link(
    db: apsw.Connection, texts: Sequence[tuple[int, Entry]], *, later: bool = False, below: int | None = None
) -> None:
    """Link texts, given with their rows, with near-duplicates in their space.

    Earlier rows are compared, at most up to the row `below`; with `later`, later ones as well. The rows themselves are
    written already.
    """
    written = sketch(db, [(row, entry.memory.space, entry.sketch) for row, entry in texts])
    shared = {key for each in written for key in json.loads(db.execute(_SHARED, (each,)).get)}
    if not shared or below == 0:
        return
    looked_up = [
        (row, key, row if below is None else min(row, below + 1))
        for row, entry in texts
        for key in _shared(entry.sketch, _salt(entry.memory.space), shared)
    ]
    sharing: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for row, others in fetch(db, _SHARING, (int(later), to_json(looked_up))):
        sharing[row].update(json.loads(others))
    alike = [(row, entry, _alike(entry, sharing[row])) for row, entry in texts if row in sharing]
    stored = _texts(db, {other for _, _, others in alike for other in others})
    pairs = [
        (row, other)
        for row, entry, others in alike
        for other in others
        if other in stored and stored[other][0] == entry.memory.space and _same(db, row, entry, other, stored[other][1])
    ]
    db.executemany(
        "INSERT OR IGNORE INTO similar (row, other) VALUES (?, ?)",
        [each for one, other in pairs for each in ((one, other), (other, one))],
    )


def _shared(hashes: Sequence[int], salt: int, shared: Set[int]) -> list[int]:
    """The hashes of a text that other texts have, or none if they are too few for a comparison."""
    known = [key ^ salt for key in hashes if key ^ salt in shared]
    return known if len(known) >= _enough(hashes) else []


def _alike(entry: Entry, sharing: Counter[int]) -> list[int]:
    """The few rows that share most hashes with a text; of equals the newest."""
    enough = _enough(entry.sketch)
    most = sorted((-shared, -row) for row, shared in sharing.items() if shared >= enough)
    return [-row for _, row in most[:_COMPARED_MAX]]


def _enough(hashes: Sequence[int]) -> int:
    """How many of these hashes another text must share to be compared."""
    return min(near_duplicates.SHARED_MIN, len(hashes))


def _texts(db: apsw.Connection, rows: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Spaces and texts of live memories by row."""
    sql = (
        "SELECT m.row, m.space, m.text FROM json_each(?) AS j CROSS JOIN memories AS m ON m.row = j.value "
        "WHERE m.deleted_us IS NULL"
    )
    return {row: (space, text) for row, space, text in fetch(db, sql, (to_json(list(rows)),))}


def _same(db: apsw.Connection, row: int, entry: Entry, other: int, other_text: str) -> bool:
    """Compares the texts first: that decides most pairs, and tokens and vectors need not be read."""
    verdict = near_duplicates.compare_words(entry.memory.text, other_text)
    if verdict is not None:
        return verdict
    (columns,) = fetch(db, f"SELECT {WORD_COLUMNS} FROM tokens AS t WHERE t.row = ?", (other,))
    return near_duplicates.similar_enough(entry.tokens, tokens(columns), _cosine(db, row, other))


def _cosine(db: apsw.Connection, row: int, other: int) -> float | None:
    """The cosine of two texts of one passage each; None if either has another number of passages."""
    blobs = [
        [blob for (blob,) in fetch(db, "SELECT vector FROM passages WHERE row = ? LIMIT 2", (each,))]
        for each in (row, other)
    ]
    if any(len(each) != 1 for each in blobs):
        return None
    from nacre.storage.vectors import cosines, unpack

    return float(cosines(unpack(blobs[0]), unpack(blobs[1])[0])[0])


def unlink(db: apsw.Connection, row: int) -> None:
    """Remove the links of a memory whose text changed."""
    db.execute("DELETE FROM similar WHERE row = ?1 OR other = ?1", (row,))


def unsketch(db: apsw.Connection, texts: Iterable[tuple[int, str, Tokens]]) -> None:
    """Delete the hashes of texts, given as (row, space, tokens). Hashes are computed from the stored tokens again."""
    db.executemany(
        "DELETE FROM sketches WHERE hash = ? AND row = ?",
        ((key ^ _salt(space), row) for row, space, tokens in texts for key in near_duplicates.sketch(tokens)),
    )


def separate(db: apsw.Connection, row: int) -> int:
    """Mark the links of a memory as separated. Returns how many there were."""
    sql = "UPDATE similar SET apart = 1 WHERE (row = ?1 OR other = ?1) AND apart = 0 RETURNING row = ?1"
    separated = sum(int(own) for (own,) in fetch(db, sql, (row,)))
    if separated:
        ((space, memory_id),) = fetch(db, "SELECT space, id FROM memories WHERE row = ?", (row,))
        change_log.note(db, "apart", space, [memory_id])
    return separated


def by_memory(db: apsw.Connection, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By id of a memory, the live memories that are linked with it."""
    sql = (
        "SELECT m.id, o.id FROM memories AS m JOIN similar AS s ON s.row = m.row AND s.apart = 0 "
        "JOIN memories AS o ON o.row = s.other AND o.deleted_us IS NULL "
        "WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY o.id"
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for memory_id, other in fetch(db, sql, (to_json(list(ids)),)):
        found[memory_id].append(other)
    return {memory_id: tuple(others) for memory_id, others in found.items()}
