"""Numbers in the order of commits, and the count of changes that leave no event.

`skipped` counts numbers of `events` that no change has, because a node was brought to count as far as others.
Who takes a number holds its counter until the transaction ends, so a transaction takes them late. A reader that has
seen a number has seen everything before it.
"""

from __future__ import annotations

from nacre.storage.postgres.connection import fetch, run, value
from nacre.storage.postgres.schema import Db

TAKE = "UPDATE counters SET value = value + %s WHERE name = %s RETURNING value"


def take(db: Db, name: str, count: int) -> int:
    """The first of so many consecutive numbers."""
    return int(value(db, TAKE, (count, name))) - count + 1


def last(db: Db, name: str) -> int:
    return int(value(db, "SELECT value FROM counters WHERE name = %s", (name,)))


def advance(db: Db, to: int) -> None:
    """Give later changes numbers beyond this one. It waits for those that are being written."""
    last_one = int(value(db, "SELECT value FROM counters WHERE name = 'events' FOR UPDATE"))
    if last_one < to:
        run(db, "UPDATE counters SET value = %s WHERE name = 'events'", (to,))
        run(db, "UPDATE counters SET value = value + %s WHERE name = 'skipped'", (to - last_one,))


def bump_revision(db: Db) -> None:
    """Count a change that may change search results but is not an event of a memory."""
    run(db, "UPDATE counters SET value = value + 1 WHERE name = 'revision'")


def sequence(db: Db) -> tuple[int, int, int]:
    """A value that changes with every write that may change a search result."""
    found = dict(fetch(db, "SELECT name, value FROM counters WHERE name IN ('events', 'skipped', 'revision')"))
    return found["events"] - found["skipped"], found["revision"], 0
