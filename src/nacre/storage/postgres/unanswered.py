"""Was a write stored whose COMMIT the server did not answer?

Each function asks after one verb. It holds the spaces that this verb writes to, so the server has ended that write.
None: it cannot be told, because others have written since.
"""

from __future__ import annotations

from collections.abc import Sequence

from nacre.storage.postgres import facts, listing
from nacre.storage.postgres.connection import hold, value
from nacre.storage.postgres.schema import Db
from nacre.types.facts import Fact
from nacre.types.memory import Entry, Replacement


def added(db: Db, entries: Sequence[Entry]) -> bool:
    """By events, which also tell of memories that others have changed or purged since."""
    hold(db, {each.memory.space for each in entries})
    sql = "SELECT EXISTS (SELECT 1 FROM events WHERE memory_id = ANY(%s) AND action = 'remembered')"
    return bool(value(db, sql, ([each.memory.id for each in entries],)))


def replaced(db: Db, changes: Sequence[Replacement]) -> bool | None:
    hold(db, {each.entry.memory.space for each in changes})
    found = listing.get(db, [each.entry.memory.id for each in changes])
    if all(found.get(each.entry.memory.id) == each.entry.memory for each in changes):
        return True
    return False if all(found.get(each.entry.memory.id) == each.previous for each in changes) else None


def added_facts(db: Db, new: Sequence[Fact]) -> bool:
    hold(db, {each.space for each in new})
    return bool(facts.by_ids(db, [each.id for each in new]))
