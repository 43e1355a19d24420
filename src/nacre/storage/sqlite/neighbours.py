"""Which memories stand next to others in their sessions, all in one statement that reads an index alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from nacre.storage.sqlite.rows import fetch, to_json
from nacre.types.views import Neighbours

# Positions that are missing come last, which no index knows. So those with a position and those without are looked
# up one after the other, each from a bound that begins beyond all when the memory asked for is one of the others.
_NEVER = 2**63 - 1  # microseconds or a position beyond all
_PLACED, _UNPLACED = ("position", "created_us", "id"), ("created_us", "id")


def _listed(columns: Sequence[str], compared: str, bound: str, most: str) -> str:
    """Ids on one side of a bound, the nearest first. The plus signs let all columns of the index narrow the search."""
    direction = "DESC" if compared == "<" else "ASC"
    order = ", ".join(f"o.{column} {direction}" for column in columns)
    without = "o.position IS NULL AND " if columns is _UNPLACED else ""
    return (
        "SELECT id FROM (SELECT o.id FROM memories AS o INDEXED BY memories_in_session "
        "WHERE o.space = m.space AND o.session = m.session AND o.deleted_us IS NULL "
        f"AND {without}({', '.join(f'o.{column}' for column in columns)}) {compared} ({bound}) "
        f"ORDER BY {order} LIMIT {most})"
    )


def _nearest(parts: Sequence[str], most: str) -> str:
    return f"(SELECT json_group_array(id) FROM ({' UNION ALL '.join(parts)} LIMIT {most}))"


_BEFORE = (
    _listed(_UNPLACED, "<", f"iif(m.position IS NULL, m.created_us, -{_NEVER}), +m.id", "?2"),
    _listed(
        _PLACED, "<", f"ifnull(m.position, {_NEVER}), iif(m.position IS NULL, {_NEVER}, m.created_us), +m.id", "?2"
    ),
)
_AFTER = (
    _listed(_PLACED, ">", "+m.position, +m.created_us, +m.id", "?3"),
    _listed(_UNPLACED, ">", f"iif(m.position IS NULL, m.created_us, -{_NEVER}), +m.id", "?3"),
)
BESIDE = (
    f"SELECT m.id, {_nearest(_BEFORE, '?2')}, {_nearest(_AFTER, '?3')} FROM memories AS m "
    "WHERE m.session IS NOT NULL AND m.id IN (SELECT value FROM json_each(?1))"
)


# Where there is no session at all, one look at the index tells.
_ANY = "SELECT 1 FROM memories INDEXED BY memories_in_session WHERE session IS NOT NULL LIMIT 1"


def neighbours(db: apsw.Connection, memory_ids: Sequence[str], before: int, after: int) -> dict[str, Neighbours]:
    """By memory, its nearest neighbours."""
    if not db.execute(_ANY).get:
        return {}
    found = {
        memory_id: Neighbours(tuple(reversed(json.loads(earlier))), tuple(json.loads(later)))
        for memory_id, earlier, later in fetch(db, BESIDE, (to_json(list(memory_ids)), before, after))
    }
    return {memory_id: each for memory_id, each in found.items() if each.before or each.after}
