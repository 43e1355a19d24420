"""When did what leaves no event change last? Numbers of changes and events are of one sequence.

For each kind, space and name the last change is kept, also of what is gone. The caller holds a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import apsw

from nacre.storage.sqlite.rows import fetch, microseconds, moment, to_json
from nacre.types.changes import Change as SeenChange
from nacre.types.changes import ChangePage

TABLES = """
CREATE TABLE changes (
  kind  TEXT NOT NULL,                    -- fact, entity, update, apart or lens
  space TEXT NOT NULL,
  name  TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  gone  INTEGER NOT NULL,                 -- 1: it was dropped
  seq   INTEGER NOT NULL,
  PRIMARY KEY (kind, space, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_seq ON changes (seq);
CREATE TABLE displaced (                  -- forgotten only because a newer memory has the same key or text
  row INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE
) STRICT;
CREATE TRIGGER memories_reinstated AFTER UPDATE OF deleted_us ON memories WHEN new.deleted_us IS NULL BEGIN
  DELETE FROM displaced WHERE row = new.row;
END;
ALTER TABLE events ADD COLUMN uid TEXT;   -- of an event of another store
CREATE UNIQUE INDEX events_by_uid ON events (uid) WHERE uid IS NOT NULL;
INSERT INTO sqlite_sequence SELECT 'events', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events');
"""

_UPSERT = (
    "INSERT INTO changes (kind, space, name, at_us, gone, seq) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET at_us = {}, gone = excluded.gone, seq = excluded.seq"
)
_NOTED = _UPSERT.format("max(excluded.at_us, at_us + 1)")  # later than the change before, whatever the clock says
_TAKEN = _UPSERT.format("excluded.at_us")


class Change(NamedTuple):
    at: datetime
    gone: bool


def last(db: apsw.Connection) -> int:
    """The number of the last change or event."""
    return int(db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").get or 0)


def note(db: apsw.Connection, kind: str, space: str, names: Iterable[str], *, gone: bool = False) -> None:
    """A change of this moment."""
    at_us = time.time_ns() // 1000
    for name in names:
        db.execute(_NOTED, (kind, space, name, at_us, int(gone), _next(db)))


def take(db: apsw.Connection, kind: str, space: str, name: str, at: datetime, *, gone: bool = False) -> None:
    """A change that was made elsewhere."""
    db.execute(_TAKEN, (kind, space, name, microseconds(at), int(gone), _next(db)))


def revive(db: apsw.Connection, kind: str, space: str, names: Sequence[str]) -> None:
    """Note that what was dropped is there again."""
    named = "name IN (SELECT value FROM json_each(?))"
    sql = f"SELECT name FROM changes WHERE kind = ? AND space = ? AND gone = 1 AND {named}"
    gone = [name for (name,) in fetch(db, sql, (kind, space, to_json(list(names))))]
    note(db, kind, space, gone)


def of(db: apsw.Connection, kind: str, space: str, names: Sequence[str]) -> dict[str, Change]:
    """The last changes of these names."""
    named = "name IN (SELECT value FROM json_each(?))"
    sql = f"SELECT name, at_us, gone FROM changes WHERE kind = ? AND space = ? AND {named}"
    found = fetch(db, sql, (kind, space, to_json(list(names))))
    return {name: Change(moment(at_us), bool(gone)) for name, at_us, gone in found}


def since(db: apsw.Connection, at: datetime) -> int:
    """The number after which all changes and events since a time are."""
    sql = "SELECT min(seq) FROM (SELECT seq FROM {} WHERE at_us >= ?)"
    firsts = [db.execute(sql.format(table), (microseconds(at),)).get for table in ("events", "changes")]
    return min((first for first in firsts if first is not None), default=last(db) + 1) - 1


def page(db: apsw.Connection, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
    """Events and changes of these spaces after a number; with None, only the number of the last one."""
    if since is None:
        return ChangePage((), last(db))
    within = "seq > ?1 AND space IN (SELECT value FROM json_each(?2))"
    sql = (
        f"SELECT seq, at_us, 'memory', action, memory_id, space FROM events WHERE {within} AND memory_id <> '' "
        f"UNION ALL SELECT seq, at_us, iif(kind = 'apart', 'memory', kind), "
        "CASE WHEN kind = 'apart' THEN 'separated' WHEN gone THEN 'dropped' ELSE 'changed' END, name, space "
        f"FROM changes WHERE {within} ORDER BY seq LIMIT ?3"
    )
    found = [
        SeenChange(seq, moment(at_us), kind, action, name, space)
        for seq, at_us, kind, action, name, space in fetch(db, sql, (since, to_json(list(spaces)), limit + 1))
    ]
    more = len(found) > limit
    return ChangePage(tuple(found[:limit]), found[limit - 1].seq if more else last(db), more)


def _next(db: apsw.Connection) -> int:
    return int(db.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'events' RETURNING seq").get)
