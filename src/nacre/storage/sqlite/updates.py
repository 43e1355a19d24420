"""Which memory updates which, as rows. Every function runs inside a transaction that its caller holds.

A link counts as long as both memories are live. It is deleted with either of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import apsw

from nacre.storage.sqlite import change_log
from nacre.storage.sqlite.rows import fetch, moment, to_json
from nacre.types.memory import Update
from nacre.types.search import Successor
from nacre.types.transfer import update_name

TABLES = """
CREATE TABLE updates (
  older INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  newer INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  cue   TEXT NOT NULL,                    -- the words that show it; empty: given
  PRIMARY KEY (older, newer)
) STRICT, WITHOUT ROWID;
CREATE INDEX updates_by_newer ON updates (newer);
"""

_LIVE_PAIRS = (
    "FROM updates AS u JOIN memories AS n ON n.row = u.newer AND n.deleted_us IS NULL "
    "JOIN memories AS o ON o.row = u.older AND o.deleted_us IS NULL"
)


def link(db: apsw.Connection, new: Iterable[Update]) -> None:
    """Add links between memories of one space. Links to memories that do not exist are skipped."""
    listed = list(new)
    if listed:
        db.execute(
            "INSERT OR IGNORE INTO updates (older, newer, cue) "
            "SELECT o.row, n.row, j.value ->> 2 FROM json_each(?) AS j "
            "JOIN memories AS n ON n.id = j.value ->> 0 JOIN memories AS o ON o.id = j.value ->> 1 "
            "WHERE n.row <> o.row AND n.space = o.space",
            (to_json(listed),),
        )


def link_later(db: apsw.Connection, new: Sequence[Update]) -> None:
    """Add links between memories that were written before."""
    missing = [each for each in new if not _linked(db, each)]
    link(db, missing)
    _note(db, [each for each in missing if _linked(db, each)], gone=False)


def _linked(db: apsw.Connection, pair: Update) -> bool:
    sql = (
        "SELECT EXISTS (SELECT 1 FROM updates WHERE newer = (SELECT row FROM memories WHERE id = ?) "
        "AND older = (SELECT row FROM memories WHERE id = ?))"
    )
    return bool(db.execute(sql, (pair.newer, pair.older)).get)


def _note(db: apsw.Connection, pairs: Iterable[Update], *, gone: bool) -> None:
    for each in pairs:
        for (space,) in fetch(db, "SELECT space FROM memories WHERE id = ?", (each.newer,)):
            change_log.note(db, "update", space, [update_name(each.newer, each.older)], gone=gone)


def unlink(db: apsw.Connection, pairs: Sequence[Update]) -> int:
    """Delete links. Returns how many there were."""
    linked = list(dict.fromkeys(each for each in pairs if _linked(db, each)))
    _note(db, linked, gone=True)
    db.executemany(
        "DELETE FROM updates WHERE newer = (SELECT row FROM memories WHERE id = ?) "
        "AND older = (SELECT row FROM memories WHERE id = ?)",
        ((each.newer, each.older) for each in linked),
    )
    return len(linked)


def of_memories(db: apsw.Connection, memory_ids: Sequence[str]) -> list[Update]:
    """All links from or to these memories, between live ones."""
    sql = (
        f"SELECT n.id, o.id, u.cue {_LIVE_PAIRS} "
        "WHERE n.id IN (SELECT value FROM json_each(?1)) OR o.id IN (SELECT value FROM json_each(?1)) "
        "ORDER BY n.id, o.id"
    )
    return [Update(*found) for found in fetch(db, sql, (to_json(list(memory_ids)),))]


def successors(db: apsw.Connection, rows: Sequence[int]) -> dict[int, tuple[Successor, ...]]:
    """By row, the live memories that update it, the latest first."""
    sql = (
        "SELECT u.older, n.id, coalesce(n.happened_us, n.created_us) AS since FROM updates AS u "
        "JOIN memories AS n ON n.row = u.newer AND n.deleted_us IS NULL "
        "WHERE u.older IN (SELECT value FROM json_each(?)) ORDER BY since DESC, n.id"
    )
    found: defaultdict[int, list[Successor]] = defaultdict(list)
    for row, newer, since in fetch(db, sql, (to_json(list(rows)),)):
        found[row].append(Successor(newer, moment(since)))
    return {row: tuple(several) for row, several in found.items()}
