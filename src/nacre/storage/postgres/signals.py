"""Signals of candidates that may change their rank.

One query reads all candidates; others read the facts, near-duplicates and successors of the few that have any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from nacre.storage.postgres import facts, updates
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.rows import Key, maybe_moment, moment
from nacre.storage.postgres.schema import Db
from nacre.types.recall_log import Usage
from nacre.types.search import Signals


def _any(table: str, column: str = "row") -> str:
    return f"EXISTS (SELECT 1 FROM {table} AS o WHERE o.space = m.space AND o.{column} = m.row)"


_CANDIDATES = (
    "SELECT m.space, m.row, m.id, m.created_us, m.namespace, m.kind, m.happened_us, m.importance, "
    "u.good, u.bad, u.seen, u.at_us, "
    f"{_any('facts')}, {_any('near_duplicates')}, {_any('updates', 'older')} "
    "FROM memories AS m LEFT JOIN usage AS u ON u.space = m.space AND u.row = m.row "
    "WHERE m.id = ANY(%s) AND m.deleted_us IS NULL"
)


def signals(db: Db, ids: Sequence[str]) -> dict[str, Signals]:
    """By id, the signals of live memories."""
    found = fetch(db, _CANDIDATES, (list(ids),))
    with_facts, with_similar, updated = (
        [(space, row) for space, row, *columns in found if columns[at]] for at in range(-3, 0)
    )
    facts_of = facts.by_keys(db, with_facts) if with_facts else {}
    similar_to = _similar(db, with_similar) if with_similar else {}
    successors = updates.successors(db, updated) if updated else {}
    return {
        memory_id: Signals(
            moment(created_us),
            namespace,
            kind,
            maybe_moment(happened_us),
            facts_of.get((space, row), ()),
            None if at_us is None else Usage(good, bad, seen, moment(at_us)),
            similar_to.get((space, row), ()),
            successors.get((space, row), ()),
            importance,
        )
        for space, row, memory_id, created_us, namespace, kind, happened_us, importance, *usage, _, _, _ in found
        for good, bad, seen, at_us in (usage,)
    }


def _similar(db: Db, keys: Sequence[Key]) -> Mapping[Key, tuple[str, ...]]:
    """The ids of live near-duplicates, sorted."""
    sql = (
        "SELECT s.space, s.row, o.id FROM unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "JOIN near_duplicates AS s ON s.space = given.space AND s.row = given.row AND NOT s.apart "
        "JOIN memories AS o ON o.space = s.space AND o.row = s.other AND o.deleted_us IS NULL ORDER BY o.id"
    )
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for space, row, other in fetch(db, sql, tuple(map(list, zip(*keys, strict=True)))):
        found[space, row].append(other)
    return {key: tuple(others) for key, others in found.items()}
