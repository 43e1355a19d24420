"""When did what leaves no event change last? Numbers of changes and events are of one sequence (counters.py).

For each kind, space and name the last change is kept, also of what is gone. The caller holds a transaction, and the
spaces that it writes to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from nacre.storage.postgres import counters
from nacre.storage.postgres.connection import fetch, run
from nacre.storage.postgres.rows import microseconds, moment
from nacre.storage.postgres.schema import Db
from nacre.types.changes import Change as SeenChange
from nacre.types.changes import ChangePage

_UPSERT = (
    "INSERT INTO changes AS c (space, kind, name, at_us, gone, seq) "
    "SELECT %s, %s, name, %s, %s, seq FROM unnest(%s::text[], %s::bigint[]) AS given (name, seq) "
    "ON CONFLICT (space, kind, name) DO UPDATE SET at_us = {}, gone = excluded.gone, seq = excluded.seq"
)
_NOTED = _UPSERT.format(
    "greatest(excluded.at_us, c.at_us + 1)"
)  # later than the change before, whatever the clock says
_TAKEN = _UPSERT.format("excluded.at_us")
_ALL_TAKEN = (
    "INSERT INTO changes (space, kind, name, at_us, gone, seq) SELECT space, %s, name, at_us, false, seq "
    "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) AS given (space, name, at_us, seq) "
    "ON CONFLICT (space, kind, name) DO UPDATE SET at_us = excluded.at_us, gone = false, seq = excluded.seq"
)

# The first so many of each space, by an index of it, and then the first of all.
_PAGE = """
SELECT * FROM (
  SELECT e.* FROM unnest(%(spaces)s::text[]) AS s (space) CROSS JOIN LATERAL (
    SELECT seq, at_us, 'memory', action, memory_id, space FROM events
    WHERE space = s.space AND seq > %(since)s AND memory_id <> '' ORDER BY seq LIMIT %(limit)s
  ) AS e
  UNION ALL SELECT c.* FROM unnest(%(spaces)s::text[]) AS s (space) CROSS JOIN LATERAL (
    SELECT seq, at_us, CASE kind WHEN 'apart' THEN 'memory' ELSE kind END,
      CASE WHEN kind = 'apart' THEN 'separated' WHEN gone THEN 'dropped' ELSE 'changed' END, name, space
    FROM changes WHERE space = s.space AND seq > %(since)s ORDER BY seq LIMIT %(limit)s
  ) AS c
) AS found ORDER BY seq LIMIT %(limit)s
"""


class Change(NamedTuple):
    at: datetime
    gone: bool


def last(db: Db) -> int:
    """The number of the last change or event."""
    return counters.last(db, "events")


def note(db: Db, kind: str, space: str, names: Iterable[str], *, gone: bool = False) -> None:
    """A change of this moment."""
    _write(db, _NOTED, kind, space, list(names), time.time_ns() // 1000, gone)


def take(db: Db, kind: str, space: str, name: str, at: datetime, *, gone: bool = False) -> None:
    """A change that was made elsewhere."""
    _write(db, _TAKEN, kind, space, [name], microseconds(at), gone)


def take_all(db: Db, kind: str, taken: Sequence[tuple[str, str, datetime]]) -> None:
    """Changes that were made elsewhere: spaces, names and times. No name is given twice."""
    if taken:
        first = counters.take(db, "events", len(taken))
        spaces, names, times = zip(*taken, strict=True)
        given = (list(spaces), list(names), list(map(microseconds, times)), list(range(first, first + len(taken))))
        run(db, _ALL_TAKEN, (kind, *given))


def revive(db: Db, kind: str, space: str, names: Sequence[str]) -> None:
    """Note that what was dropped is there again."""
    found = of(db, kind, space, names)
    note(db, kind, space, [name for name in names if name in found and found[name].gone])


def of(db: Db, kind: str, space: str, names: Sequence[str]) -> dict[str, Change]:
    """The last changes of these names."""
    sql = "SELECT name, at_us, gone FROM changes WHERE space = %s AND kind = %s AND name = ANY(%s)"
    found = fetch(db, sql, (space, kind, list(names)))
    return {name: Change(moment(at_us), gone) for name, at_us, gone in found}


def since(db: Db, at: datetime) -> int:
    """The number after which all changes and events since a time are."""
    sql = (
        "SELECT least((SELECT min(seq) FROM events WHERE at_us >= %(at)s), "
        "(SELECT min(seq) FROM changes WHERE at_us >= %(at)s), "
        "(SELECT value + 1 FROM counters WHERE name = 'events')) - 1"
    )
    ((number,),) = db.execute(sql, {"at": microseconds(at)}, binary=True).fetchall()
    return int(number)


def page(db: Db, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
    """Events and changes of these spaces after a number; with None, only the number of the last one."""
    if since is None:
        return ChangePage((), last(db))
    given = {"spaces": list(dict.fromkeys(spaces)), "since": since, "limit": limit + 1}
    found = [
        SeenChange(seq, moment(at_us), kind, action, name, space)
        for seq, at_us, kind, action, name, space in db.execute(_PAGE, given, binary=True)
    ]
    more = len(found) > limit
    return ChangePage(tuple(found[:limit]), found[limit - 1].seq if more else last(db), more)


def _write(db: Db, sql: str, kind: str, space: str, names: Sequence[str], at_us: int, gone: bool) -> None:
    if not names:
        return
    first = counters.take(db, "events", len(names))
    number_of = {name: first + place for place, name in enumerate(names)}  # of a name given twice, the last
    run(db, sql, (space, kind, at_us, gone, list(number_of), list(number_of.values())))
