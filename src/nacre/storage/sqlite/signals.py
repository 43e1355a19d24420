"""What the store knows of candidates that may move their rank: one query for all, and two more for the few that have
facts or near-duplicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from nacre.storage.sqlite import facts
from nacre.storage.sqlite.rows import fetch, moment, to_json
from nacre.types.facts import Fact
from nacre.types.recall_log import Usage
from nacre.types.search import Signals

# CROSS JOIN: the ids first, each looked up by itself.
_CANDIDATES = (
    "SELECT m.row, m.id, coalesce(m.happened_us, m.created_us), m.namespace, u.good, u.bad, u.seen, u.at_us, "
    "EXISTS (SELECT 1 FROM facts AS f WHERE f.row = m.row), EXISTS (SELECT 1 FROM similar AS s WHERE s.row = m.row) "
    "FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value LEFT JOIN usage AS u ON u.row = m.row "
    "WHERE m.deleted_us IS NULL"
)


def signals(db: apsw.Connection, ids: Sequence[str]) -> dict[str, Signals]:
    found = fetch(db, _CANDIDATES, (to_json(list(ids)),))
    stated = _facts(db, [each[0] for each in found if each[-2]])
    alike = _similar(db, [each[0] for each in found if each[-1]])
    return {
        memory_id: Signals(
            moment(us),
            namespace,
            tuple(stated[row]) if states else (),
            None if at_us is None else Usage(good, bad, seen, moment(at_us)),
            tuple(alike[row]) if repeats else (),
        )
        for row, memory_id, us, namespace, good, bad, seen, at_us, states, repeats in found
    }


def _facts(db: apsw.Connection, live: Sequence[int]) -> defaultdict[int, list[Fact]]:
    stated: defaultdict[int, list[Fact]] = defaultdict(list)
    for row, fact in facts.by_rows(db, live) if live else ():
        stated[row].append(fact)
    return stated


def _similar(db: apsw.Connection, live: Sequence[int]) -> defaultdict[int, list[str]]:
    """Sorted by id."""
    sql = (
        "SELECT s.row, o.id FROM similar AS s JOIN memories AS o ON o.row = s.other AND o.deleted_us IS NULL "
        "WHERE s.apart = 0 AND s.row IN (SELECT value FROM json_each(?)) ORDER BY o.id"
    )
    alike: defaultdict[int, list[str]] = defaultdict(list)
    for row, other in fetch(db, sql, (to_json(list(live)),)) if live else ():
        alike[row].append(other)
    return alike
