"""The neighbours of memories in their sessions, found by one statement that reads only an index."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.schema import Db
from nacre.types.views import Neighbours

# Memories without a position come last in a session. Those with a position and those without are looked up separately,
# each from a bound. The bound lies beyond all of one kind where the memory itself is of the other kind.
_BEYOND = 2**63 - 1  # a time in microseconds, or a position
_WITH_POSITION, _WITHOUT_POSITION = ("position", "created_us", "id"), ("created_us", "id")


def _one_side(place: int, columns: Sequence[str], compared: str, bound: str, most: str) -> str:
    """SQL for ids on one side of a bound, the nearest first."""
    direction = "DESC" if compared == "<" else "ASC"
    order = ", ".join(f"o.{column} {direction}" for column in columns)
    own = (
        "o.position IS NULL AND (NOT %(turns)s OR o.kind = 'episode')"
        if columns is _WITHOUT_POSITION
        else "o.position IS NOT NULL"
    )
    return (
        f"(SELECT {place} AS part, row_number() OVER (ORDER BY {order}) AS place, o.id FROM memories AS o "
        "WHERE o.space = m.space AND o.session = m.session AND o.deleted_us IS NULL "
        f"AND {own} AND ({', '.join(f'o.{column}' for column in columns)}) {compared} ({bound}) "
        f"ORDER BY {order} LIMIT {most})"
    )


def _nearest(parts: Sequence[str], most: str) -> str:
    return f"ARRAY(SELECT near.id FROM ({' UNION ALL '.join(parts)}) AS near ORDER BY part, place LIMIT {most})"


_CREATED = "CASE WHEN m.position IS NULL THEN m.created_us ELSE {} END"
_BEFORE = (
    _one_side(1, _WITHOUT_POSITION, "<", f"{_CREATED.format(-_BEYOND)}, m.id", "%(before)s"),
    _one_side(
        2,
        _WITH_POSITION,
        "<",
        f"coalesce(m.position, {_BEYOND}), CASE WHEN m.position IS NULL THEN {_BEYOND} ELSE m.created_us END, m.id",
        "%(before)s",
    ),
)
_AFTER = (
    _one_side(1, _WITH_POSITION, ">", "m.position, m.created_us, m.id", "%(after)s"),
    _one_side(2, _WITHOUT_POSITION, ">", f"{_CREATED.format(-_BEYOND)}, m.id", "%(after)s"),
)
NEIGHBOURS = (
    f"SELECT m.id, {_nearest(_BEFORE, '%(before)s')}, {_nearest(_AFTER, '%(after)s')} FROM memories AS m "
    "WHERE m.session IS NOT NULL AND m.id = ANY(%(ids)s) "
    "AND (NOT %(turns)s OR m.position IS NOT NULL OR m.kind = 'episode')"
)


def neighbours(db: Db, memory_ids: Sequence[str], before: int, after: int, turns: bool) -> dict[str, Neighbours]:
    """By id of a memory, its nearest live neighbours in its session. A memory without any is missing."""
    given = {"ids": list(memory_ids), "before": before, "after": after, "turns": turns}
    return {
        memory_id: Neighbours(tuple(reversed(earlier)), tuple(later))
        for memory_id, earlier, later in fetch(db, NEIGHBOURS, given)
        if earlier or later
    }
