"""What the store knows of candidates that may move their rank, in a few queries for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from nacre.knowledge import Fact
from nacre.receipts import Usage
from nacre.stores.sqlite import facts
from nacre.stores.sqlite.rows import fetch, moment, to_json
from nacre.types import Signals


def signals(db: apsw.Connection, ids: Sequence[str]) -> dict[str, Signals]:
    sql = (
        "SELECT m.row, m.id, coalesce(m.happened_us, m.created_us), m.namespace FROM memories AS m "
        "WHERE m.deleted_us IS NULL AND m.id IN (SELECT value FROM json_each(?))"
    )
    found = fetch(db, sql, (to_json(list(ids)),))
    live = to_json([row for row, *_ in found])
    stated, used, alike = _facts(db, [row for row, *_ in found]), _usage(db, live), _similar(db, live)
    return {
        memory_id: Signals(moment(us), namespace, tuple(stated[row]), used.get(row), tuple(alike[row]))
        for row, memory_id, us, namespace in found
    }


def _facts(db: apsw.Connection, live: Sequence[int]) -> defaultdict[int, list[Fact]]:
    stated: defaultdict[int, list[Fact]] = defaultdict(list)
    for row, fact in facts.by_rows(db, live):
        stated[row].append(fact)
    return stated


def _usage(db: apsw.Connection, live: str) -> dict[int, Usage]:
    sql = "SELECT row, good, bad, seen, at_us FROM usage WHERE row IN (SELECT value FROM json_each(?))"
    return {row: Usage(good, bad, seen, moment(at_us)) for row, good, bad, seen, at_us in fetch(db, sql, (live,))}


def _similar(db: apsw.Connection, live: str) -> defaultdict[int, list[str]]:
    """Sorted by id."""
    sql = (
        "SELECT s.row, o.id FROM similar AS s JOIN memories AS o ON o.row = s.other AND o.deleted_us IS NULL "
        "WHERE s.apart = 0 AND s.row IN (SELECT value FROM json_each(?)) ORDER BY o.id"
    )
    alike: defaultdict[int, list[str]] = defaultdict(list)
    for row, other in fetch(db, sql, (live,)):
        alike[row].append(other)
    return alike
