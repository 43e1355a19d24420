"""The neighbours of memories in their sessions, found by one statement that reads only an index."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from nacre.storage.sqlite.rows import fetch, to_json
from nacre.types.views import Neighbours

# Memories without a position come last in a session, but NULL comes first in an index. So memories with a position and
# those without are looked up separately, each from a bound. The bound lies beyond all of one kind where the memory
# itself is of the other kind.
_BEYOND = 2**63 - 1  # a time in microseconds, or a position
_WITH_POSITION, _WITHOUT_POSITION = ("position", "created_us", "id"), ("created_us", "id")


def _one_side(columns: Sequence[str], compared: str, bound: str, most: str) -> str:
    """SQL for ids on one side of a bound, the nearest first. The plus signs in a bound let SQLite use all columns of
    the index."""
    direction = "DESC" if compared == "<" else "ASC"
    order = ", ".join(f"o.{column} {direction}" for column in columns)
    without = "o.position IS NULL AND (NOT ?4 OR o.kind = 'episode') AND " if columns is _WITHOUT_POSITION else ""
    return (
        "SELECT id FROM (SELECT o.id FROM memories AS o INDEXED BY memories_in_session "
        "WHERE o.space = m.space AND o.session = m.session AND o.deleted_us IS NULL "
        f"AND {without}({', '.join(f'o.{column}' for column in columns)}) {compared} ({bound}) "
        f"ORDER BY {order} LIMIT {most})"
    )


def _nearest(parts: Sequence[str], most: str) -> str:
    return f"(SELECT json_group_array(id) FROM ({' UNION ALL '.join(parts)} LIMIT {most}))"


_BEFORE = (
    _one_side(_WITHOUT_POSITION, "<", f"iif(m.position IS NULL, m.created_us, -{_BEYOND}), +m.id", "?2"),
    _one_side(
        _WITH_POSITION,
        "<",
        f"ifnull(m.position, {_BEYOND}), iif(m.position IS NULL, {_BEYOND}, m.created_us), +m.id",
        "?2",
    ),
)
_AFTER = (
    _one_side(_WITH_POSITION, ">", "+m.position, +m.created_us, +m.id", "?3"),
    _one_side(_WITHOUT_POSITION, ">", f"iif(m.position IS NULL, m.created_us, -{_BEYOND}), +m.id", "?3"),
)
NEIGHBOURS = (
    f"SELECT m.id, {_nearest(_BEFORE, '?2')}, {_nearest(_AFTER, '?3')} FROM memories AS m "
    "WHERE m.session IS NOT NULL AND m.id IN (SELECT value FROM json_each(?1)) "
    "AND (NOT ?4 OR m.position IS NOT NULL OR m.kind = 'episode')"
)

# One look at the index shows that a store has no sessions at all.
_ANY_SESSION = "SELECT 1 FROM memories INDEXED BY memories_in_session WHERE session IS NOT NULL LIMIT 1"


def neighbours(
    db: apsw.Connection, memory_ids: Sequence[str], before: int, after: int, turns: bool
) -> dict[str, Neighbours]:
    """By id of a memory, its nearest live neighbours in its session. A memory without any is missing."""
    if not db.execute(_ANY_SESSION).get:
        return {}
    found = {
        memory_id: Neighbours(tuple(reversed(json.loads(earlier))), tuple(json.loads(later)))
        for memory_id, earlier, later in fetch(db, NEIGHBOURS, (to_json(list(memory_ids)), before, after, turns))
    }
    return {memory_id: each for memory_id, each in found.items() if each.before or each.after}
