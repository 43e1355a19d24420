"""What each space holds, counted by triggers in the transaction that writes, and what each session has written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from nacre.storage import quotas as quota_checks
from nacre.storage.sqlite import rows
from nacre.types.memory import Entry
from nacre.types.quotas import Quotas, Usage


def _memory(row: str) -> str:
    labels = (
        f"iif({row}.tags = '[]', 0, octet_length({row}.tags))",
        f"iif({row}.metadata = '{{}}', 0, octet_length({row}.metadata))",
    )
    return (
        f"(octet_length({row}.text) + {_optional(row, 'summary')} + {_optional(row, 'source')} + {' + '.join(labels)})"
    )


def _fact(row: str) -> str:
    texts = " + ".join(f"octet_length({row}.{name})" for name in ("subject", "predicate", "object"))
    return f"({texts} + {_optional(row, 'quote')})"


def _optional(row: str, name: str) -> str:
    return f"ifnull(octet_length({row}.{name}), 0)"


def _count(space: str, memories: str, size: str) -> str:
    return (
        f"INSERT INTO space_usage VALUES ({space}, {memories}, {size}) "
        "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, bytes = bytes + excluded.bytes;"
    )


_RECOUNT = f"""
INSERT INTO space_usage SELECT space, sum(memories), sum(bytes) FROM (
  SELECT space, count(*) AS memories, sum({_memory("m")}) AS bytes FROM memories AS m GROUP BY space
  UNION ALL SELECT space, 0, sum({_fact("f")}) FROM facts AS f WHERE origin = 'given' GROUP BY space
  UNION ALL SELECT space, 0, sum(octet_length(before)) FROM events WHERE before IS NOT NULL GROUP BY space
) GROUP BY space;
"""

TABLES = f"""
CREATE TABLE space_usage (
  space    TEXT PRIMARY KEY,
  memories INTEGER NOT NULL,              -- forgotten ones, too
  bytes    INTEGER NOT NULL               -- of what people wrote, and of its earlier values
) STRICT, WITHOUT ROWID;
CREATE TABLE session_writes (             -- only kept where their number is limited
  space    TEXT NOT NULL,
  session  TEXT NOT NULL,
  since_us INTEGER NOT NULL,
  memories INTEGER NOT NULL,
  PRIMARY KEY (space, session)
) STRICT, WITHOUT ROWID;
{_RECOUNT}
CREATE TRIGGER memories_counted AFTER INSERT ON memories BEGIN
  {_count("new.space", "1", _memory("new"))}
END;
CREATE TRIGGER memories_recounted AFTER UPDATE OF text, summary, tags, source, metadata ON memories BEGIN
  {_count("new.space", "0", f"{_memory('new')} - {_memory('old')}")}
END;
CREATE TRIGGER memories_uncounted AFTER DELETE ON memories BEGIN
  {_count("old.space", "-1", f"-{_memory('old')}")}
END;
CREATE TRIGGER facts_counted AFTER INSERT ON facts WHEN new.origin = 'given' BEGIN
  {_count("new.space", "0", _fact("new"))}
END;
CREATE TRIGGER facts_uncounted AFTER DELETE ON facts WHEN old.origin = 'given' BEGIN
  {_count("old.space", "0", f"-{_fact('old')}")}
END;
CREATE TRIGGER events_counted AFTER INSERT ON events WHEN new.before IS NOT NULL BEGIN
  {_count("new.space", "0", "octet_length(new.before)")}
END;
CREATE TRIGGER events_uncounted AFTER UPDATE OF before ON events
WHEN old.before IS NOT NULL AND new.before IS NULL BEGIN
  {_count("old.space", "0", "-octet_length(old.before)")}
END;
"""


def recount(db: apsw.Connection) -> None:
    db.execute("DELETE FROM space_usage")
    db.execute(_RECOUNT)


def of_spaces(db: apsw.Connection, spaces: Iterable[str] | None = None) -> dict[str, Usage]:
    """What these spaces hold, or all that hold anything."""
    sql = "SELECT space, memories, bytes FROM space_usage WHERE memories > 0 OR bytes > 0 ORDER BY space"
    if spaces is None:
        return {space: Usage(memories, size) for space, memories, size in rows.fetch(db, sql)}
    one = "SELECT space, memories, bytes FROM space_usage WHERE space = ?"
    return {space: Usage(memories, size) for each in spaces for space, memories, size in rows.fetch(db, one, (each,))}


def check(db: apsw.Connection, quotas: Quotas, before: Mapping[str, Usage]) -> None:
    """Whether what was written in this transaction is within the quotas of these spaces."""
    quota_checks.check_usage(quotas, before, of_spaces(db, before))


def count_writes(db: apsw.Connection, quotas: Quotas, written: Iterable[Entry]) -> None:
    """Count new memories of each session, and check that these are not too many in a minute."""
    entries = list(written)
    counts = quota_checks.writes_by_session(entries)
    if not counts:
        return
    now = max(entry.memory.updated for entry in entries)
    begins = rows.microseconds(now - quota_checks.WINDOW)
    # What is over is deleted; so is what lies ahead, because a clock was set back.
    db.execute("DELETE FROM session_writes WHERE since_us <= ? OR since_us > ?", (begins, rows.microseconds(now)))
    for (space, session), new in counts.items():
        known = rows.fetch(
            db, "SELECT since_us, memories FROM session_writes WHERE space = ? AND session = ?", (space, session)
        )
        since, before = (rows.moment(known[0][0]), known[0][1]) if known else (now, 0)
        quota_checks.check_rate(quotas, session, before, new, since, now)
        db.execute(
            "INSERT OR REPLACE INTO session_writes VALUES (?, ?, ?, ?)",
            (space, session, rows.microseconds(since), before + new),
        )
