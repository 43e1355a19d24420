"""What each space holds, counted by triggers in the transaction that writes, and what each session has written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nacre.storage.postgres.schema import Db
from nacre.types.memory import Entry
from nacre.types.quotas import Quotas, Usage


def held(db: Db, quotas: Quotas, spaces: Iterable[str]) -> dict[str, Usage]:
    """What the spaces of a write hold before it; nothing where no quota is set."""
    raise NotImplementedError


def check(db: Db, quotas: Quotas, before: Mapping[str, Usage]) -> None:
    """Whether what was written in this transaction is within the quotas of these spaces."""


def count_writes(db: Db, quotas: Quotas, written: Iterable[Entry]) -> None:
    """Count new memories of each session, and check that these are not too many in a minute."""


def of_spaces(db: Db, spaces: Iterable[str] | None = None) -> dict[str, Usage]:
    """What these spaces hold, or all that hold anything."""
    raise NotImplementedError


def recount(db: Db) -> None:
    """Count what each space holds anew."""
