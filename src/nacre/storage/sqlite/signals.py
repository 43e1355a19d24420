"""Signals of candidates that may change their rank.

One query reads all candidates; three more read the facts, near-duplicates and successors of the few that have any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from nacre.storage.sqlite import facts, updates
from nacre.storage.sqlite.rows import fetch, maybe_moment, moment, to_json
from nacre.types.recall_log import Usage
from nacre.types.search import Signals

# CROSS JOIN makes SQLite look up each id, rather than scan the memories.
_CANDIDATES = (
    "SELECT m.row, m.id, m.created_us, m.namespace, m.kind, m.happened_us, m.importance, "
    "u.good, u.bad, u.seen, u.at_us, "
    "EXISTS (SELECT 1 FROM facts AS f WHERE f.row = m.row), EXISTS (SELECT 1 FROM similar AS s WHERE s.row = m.row), "
    "EXISTS (SELECT 1 FROM updates AS n WHERE n.older = m.row) "
    "FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value LEFT JOIN usage AS u ON u.row = m.row "
    "WHERE m.deleted_us IS NULL"
)


def signals(db: apsw.Connection, ids: Sequence[str]) -> dict[str, Signals]:
    """By id, the signals of live memories."""
    found = fetch(db, _CANDIDATES, (to_json(list(ids)),))
    with_facts = [each[0] for each in found if each[-3]]
    with_similar = [each[0] for each in found if each[-2]]
    updated = [each[0] for each in found if each[-1]]
    facts_of = facts.by_rows(db, with_facts) if with_facts else {}
    similar = _similar(db, with_similar) if with_similar else {}
    successors = updates.successors(db, updated) if updated else {}
    return {
        memory_id: Signals(
            moment(created_us),
            namespace,
            kind,
            maybe_moment(happened_us),
            facts_of.get(row, ()),
            None if at_us is None else Usage(good, bad, seen, moment(at_us)),
            similar.get(row, ()),
            successors.get(row, ()),
            importance,
        )
        for row, memory_id, created_us, namespace, kind, happened_us, importance, good, bad, seen, at_us, *_ in found
    }


def _similar(db: apsw.Connection, memory_rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """By row, the ids of live near-duplicates, sorted."""
    sql = (
        "SELECT s.row, o.id FROM similar AS s JOIN memories AS o ON o.row = s.other AND o.deleted_us IS NULL "
        "WHERE s.apart = 0 AND s.row IN (SELECT value FROM json_each(?)) ORDER BY o.id"
    )
    found: defaultdict[int, list[str]] = defaultdict(list)
    for row, other in fetch(db, sql, (to_json(list(memory_rows)),)):
        found[row].append(other)
    return {row: tuple(others) for row, others in found.items()}
