"""The recall log in PostgreSQL. Every function runs inside a transaction that its caller holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from nacre.analysis.quotations import Quotations
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.types.recall_log import (
    NOTHING_UNWRITTEN,
    Outcome,
    Period,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
    Usage,
)


def record(db: Db, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
    """Write receipts, and delete those that are not to be kept any more."""
    raise NotImplementedError


def mark(
    db: Db,
    receipt_id: str | None,
    memory_ids: Sequence[str],
    outcome: Outcome,
    at: datetime,
    session: str | None = None,
    origin: str | None = None,
) -> list[str]:
    """Mark delivered memories with an outcome. Bumps the revision if any mark is new."""
    raise NotImplementedError


def clear(db: Db, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
    raise NotImplementedError


def purge(db: Db, keys: Sequence[Key], quotations: Quotations, at: datetime) -> None:
    """Delete deliveries and usage of memories, and queries that quote them."""
    raise NotImplementedError


def listed(db: Db, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
    raise NotImplementedError


def last(db: Db) -> int:
    raise NotImplementedError


def delivered(
    db: Db, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
) -> dict[tuple[str, str], list[str]]:
    raise NotImplementedError


def delivered_within(
    db: Db, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
) -> dict[str, bool]:
    raise NotImplementedError


def usage_of(db: Db, keys: Sequence[Key]) -> Mapping[Key, Usage]:
    """By (space, row), how memories were used."""
    raise NotImplementedError
