"""Token vectors: packed, one row for each of the first passages of a memory. The caller holds a transaction.

`memories.token_passages` says how many passages have them; NULL: the memory has none of the store's token model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from nacre.storage.sqlite import rows
from nacre.types.memory import Entry, Passages
from nacre.types.tokens import TOKEN_PASSAGES_MAX

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

# The key has the row and the place in one integer. Reading 250 memories of 100,000 takes 0.7 ms beside finding their
# rows; 1.5 ms by an index on (row, place); 6.9 ms WITHOUT ROWID, where a blob above 1 kB spills over to a page of its
# own and doubles the file.
PLACES = TOKEN_PASSAGES_MAX
TABLES = f"""
ALTER TABLE memories ADD COLUMN token_passages INTEGER;
CREATE TABLE token_vectors (
  key     INTEGER PRIMARY KEY,            -- row of the memory * {PLACES} + place of the passage
  vectors BLOB NOT NULL
) STRICT;
CREATE TRIGGER memories_without_tokens AFTER DELETE ON memories WHEN old.token_passages IS NOT NULL BEGIN
  DELETE FROM token_vectors WHERE key >= old.row * {PLACES} AND key < (old.row + 1) * {PLACES};
END;
CREATE INDEX memories_pending_tokens ON memories (row)
WHERE token_passages IS NULL AND embedded = 1 AND deleted_us IS NULL;
"""
PENDING = "m.token_passages IS NULL AND m.embedded = 1 AND m.deleted_us IS NULL"


def adopt_model(db: apsw.Connection, model: str | None, given: Iterable[Passages | None]) -> bool:
    """Whether token vectors of this model can be stored. A store without any adopts the model."""
    if model is None or not any(each is not None and each.tokens is not None for each in given):
        return False
    current = rows.meta(db, "token_model")
    if current is None:
        rows.set_meta(db, "token_model", model)
    return current in (None, model)


def left_out(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without token vectors."""
    return [
        entry
        if entry.passages is None or entry.passages.tokens is None
        else replace(entry, passages=replace(entry.passages, tokens=None))
        for entry in entries
    ]


def write(db: apsw.Connection, written: Iterable[tuple[int, Passages | None]]) -> None:
    """Insert the token vectors of new rows. `token_passages` is written with the memory."""
    db.executemany(
        "INSERT INTO token_vectors VALUES (?, ?)",
        (
            (row * PLACES + place, vectors)
            for row, passages in written
            if passages is not None and passages.tokens is not None
            for place, vectors in enumerate(passages.tokens[:TOKEN_PASSAGES_MAX])
        ),
    )


def rewrite(db: apsw.Connection, row: int, passages: Passages | None) -> None:
    """Replace the token vectors of a row."""
    db.execute("DELETE FROM token_vectors WHERE key >= ? AND key < ?", (row * PLACES, (row + 1) * PLACES))
    write(db, [(row, passages)])
    db.execute("UPDATE memories SET token_passages = ? WHERE row = ?", (rows.token_passages(passages), row))


def add_packed(db: apsw.Connection, row: int, packed: Sequence[bytes]) -> None:
    """Token vectors of a row that has none, as they are stored."""
    db.executemany(
        "INSERT INTO token_vectors VALUES (?, ?)", ((row * PLACES + place, each) for place, each in enumerate(packed))
    )
    db.execute("UPDATE memories SET token_passages = ? WHERE row = ?", (len(packed), row))


def drop_all(db: apsw.Connection, model: str | None) -> None:
    """Drop all token vectors. Those to come are of this model; None: of the first that is written."""
    db.execute("DELETE FROM token_vectors")
    db.execute("UPDATE memories SET token_passages = NULL WHERE token_passages IS NOT NULL")
    if model is None:
        db.execute("DELETE FROM meta WHERE key = 'token_model'")
    else:
        rows.set_meta(db, "token_model", model)


def nearest(
    db: apsw.Connection, ids: Sequence[str], vector: FloatVector, passages_max: int
) -> dict[str, tuple[tuple[int, bytes], ...]]:
    """By live memory, the token vectors of its passages nearest to a vector. One statement, a second for long texts.

    The passages of a memory have consecutive keys, so a long text costs no more than its first passages.
    """
    sql = (
        "SELECT m.id, m.row, m.token_passages, t.key, t.vectors, p.passage, p.vector "
        "FROM json_each(?1) AS j CROSS JOIN memories AS m ON m.id = j.value "
        "LEFT JOIN token_vectors AS t ON m.token_passages <= ?2 "
        f"AND t.key >= m.row * {PLACES} AND t.key < (m.row + 1) * {PLACES} "
        "LEFT JOIN passages AS p ON m.token_passages > ?2 AND p.row = m.row "
        f"AND p.passage < (SELECT min(passage) FROM passages WHERE row = m.row) + {PLACES} "
        "WHERE m.deleted_us IS NULL AND m.token_passages IS NOT NULL"
    )
    found: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
    long_rows: dict[int, tuple[str, int]] = {}
    vectors: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for memory_id, row, kept, key, tokens, passage, passage_vector in db.execute(
        sql, (rows.to_json(list(dict.fromkeys(ids))), passages_max)
    ):
        if passage is None:
            found[memory_id].append((key % PLACES, tokens))
        else:
            long_rows[row] = memory_id, kept
            vectors[row].append((passage, passage_vector))
    if long_rows:
        keys = _nearest_keys(vectors, {row: kept for row, (_, kept) in long_rows.items()}, vector, passages_max)
        sql = "SELECT t.key, t.vectors FROM json_each(?) AS j CROSS JOIN token_vectors AS t ON t.key = j.value"
        for key, tokens in db.execute(sql, (rows.to_json(keys),)):
            found[long_rows[key // PLACES][0]].append((key % PLACES, tokens))
    return {memory_id: tuple(sorted(several)) for memory_id, several in found.items()}


def _nearest_keys(
    vectors: Mapping[int, Sequence[tuple[int, bytes]]], kept: Mapping[int, int], vector: FloatVector, passages_max: int
) -> list[int]:
    """The keys of the passages nearest to a vector, of each row."""
    from nacre.storage.vectors import cosines, unpack

    keys = []
    for row, several in vectors.items():
        first = sorted(several)[: kept[row]]  # in the order of the text
        scores = cosines(unpack([blob for _, blob in first]), vector).tolist()
        places = sorted(range(len(first)), key=lambda place: -scores[place])[:passages_max]
        keys += [row * PLACES + place for place in places]
    return keys
