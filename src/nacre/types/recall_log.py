"""The recall log as values: what each search delivered, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from nacre.errors import InvalidInput

Outcome = Literal["opened", "used", "wrong"]

MARK_WITHIN = timedelta(hours=24)  # how long after a delivery a mark finds it without the receipt's id
QUERY_CHARS_MAX = 2_000  # of a query in the log; longer ones are cut


@dataclass(frozen=True, slots=True)
class Delivery:
    """A memory that a search gave back. The times say when it was first marked so."""

    memory_id: str
    rank: int  # from 1
    score: float
    opened: datetime | None = None
    used: datetime | None = None
    wrong: datetime | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """One search: who asked what, when (UTC), and what was delivered, best first."""

    id: str
    at: datetime
    space: str
    session: str | None
    query: str
    mode: str
    lens: str | None
    deliveries: tuple[Delivery, ...]


class Usage(NamedTuple):
    """A memory's standing: credits for and against it, and for being delivered, faded as of `at`."""

    good: float
    bad: float
    seen: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFilter:
    """Which receipts are listed, the newest first.

    A receipt is seen in its own space only, and of its deliveries those of memories in these spaces.
    `before` is the id of the last receipt of the page before.
    """

    spaces: Sequence[str]
    session: str | None = None
    memory_id: str | None = None
    limit: int = 50
    before: str | None = None

    def __post_init__(self) -> None:
        if not self.spaces:
            raise InvalidInput("spaces", "are none; name at least one")


def logged_query(query: str) -> str:
    """A query as the log keeps it: any text may be asked, but not every one can be stored."""
    return query[:QUERY_CHARS_MAX].encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
