"""What each space holds, counted by triggers in the transaction that writes, and what each session has written.

The triggers count once for each statement, whatever the number of its rows. They stand in schema.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nacre.storage import quotas as quota_checks
from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import fetch, run
from nacre.storage.postgres.schema import FACT_BYTES, MEMORY_BYTES, Db
from nacre.types.memory import Entry
from nacre.types.quotas import Quotas, Usage

_HELD = "SELECT space, memories, bytes FROM space_usage"
_COUNTED = f"""
SELECT space, sum(memories)::bigint AS memories, sum(bytes)::bigint AS bytes FROM (
  SELECT space, count(*) AS memories, sum({MEMORY_BYTES}) AS bytes FROM memories GROUP BY space
  UNION ALL SELECT space, 0, sum({FACT_BYTES}) FROM facts WHERE origin = 'given' GROUP BY space
  UNION ALL SELECT space, 0, sum(octet_length(before)) FROM events WHERE before IS NOT NULL GROUP BY space
) AS held GROUP BY space
"""
_MISCOUNTED = f"""
SELECT count(*) FROM ({_COUNTED}) AS c FULL JOIN space_usage AS u ON u.space = c.space
WHERE (coalesce(u.memories, 0), coalesce(u.bytes, 0)) <> (coalesce(c.memories, 0), coalesce(c.bytes, 0))
"""


def held(db: Db, quotas: Quotas, spaces: Iterable[str]) -> dict[str, Usage]:
    """What the spaces of a write hold before it; nothing where no quota is set."""
    if not (quotas.memories_max or quotas.bytes_max):
        return {}
    named = dict.fromkeys(spaces)
    return dict.fromkeys(named, Usage()) | of_spaces(db, named)


def check(db: Db, quotas: Quotas, before: Mapping[str, Usage]) -> None:
    """Whether what was written in this transaction is within the quotas of these spaces."""
    if before:
        quota_checks.check_usage(quotas, before, of_spaces(db, before))


def count_writes(db: Db, quotas: Quotas, written: Iterable[Entry]) -> None:
    """Count new memories of each session, and check that these are not too many in a minute."""
    if not quotas.session_writes_max:
        return
    entries = list(written)
    counts = quota_checks.writes_by_session(entries)
    if not counts:
        return
    now = max(entry.memory.updated for entry in entries)
    spaces, sessions = [space for space, _ in counts], [session for _, session in counts]
    # What is over is deleted; so is what lies ahead, because a clock was set back. Other spaces are left to their
    # writers.
    run(
        db,
        "DELETE FROM session_writes WHERE space = ANY(%s) AND (since_us <= %s OR since_us > %s)",
        (spaces, rows.microseconds(now - quota_checks.WINDOW), rows.microseconds(now)),
    )
    known = {
        (space, session): (rows.moment(since_us), memories)
        for space, session, since_us, memories in fetch(
            db,
            "SELECT w.* FROM unnest(%s::text[], %s::text[]) AS given (space, session) "
            "JOIN session_writes AS w USING (space, session)",
            (spaces, sessions),
        )
    }
    begun, written_now = [], []
    for asker, new in counts.items():
        since, before = known.get(asker, (now, 0))
        quota_checks.check_rate(quotas, asker[1], before, new, since, now)
        begun.append(rows.microseconds(since))
        written_now.append(before + new)
    run(
        db,
        "INSERT INTO session_writes SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) "
        "ON CONFLICT (space, session) DO UPDATE SET since_us = excluded.since_us, memories = excluded.memories",
        (spaces, sessions, begun, written_now),
    )


def of_spaces(db: Db, spaces: Iterable[str] | None = None) -> dict[str, Usage]:
    """What these spaces hold, or all that hold anything."""
    if spaces is None:
        found = fetch(db, f"{_HELD} WHERE memories > 0 OR bytes > 0 ORDER BY space")
    else:
        found = fetch(db, f"{_HELD} WHERE space = ANY(%s) ORDER BY space", (list(spaces),))
    return {space: Usage(memories, size) for space, memories, size in found}


def recount(db: Db) -> None:
    """Count what each space holds anew. No other may write meanwhile."""
    run(db, "DELETE FROM space_usage")
    run(db, f"INSERT INTO space_usage {_COUNTED}")


def miscounted(db: Db) -> int:
    """How many spaces have wrong counts."""
    ((number,),) = fetch(db, _MISCOUNTED)
    return int(number)
