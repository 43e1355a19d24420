"""The recall log: what each search delivered, and how its results were used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from nacre.errors import InvalidInput

Outcome = Literal["opened", "used", "wrong"]
Period: TypeAlias = tuple[datetime, datetime]  # its beginning is not part of it, its end is

MARK_WITHIN = timedelta(hours=24)  # of a delivery, a mark without a receipt id applies to it
RECEIPT_BYTES, DELIVERY_BYTES = 260, 60  # about what a receipt takes in the file besides its query, and a delivery
CONFIRMING_DAYS = 3  # with receipts, until it counts how old others have become
PRUNED_SHARE = 0.1  # of a full log
QUERY_CHARS_MAX = 2_000  # of a query in the log; longer ones are truncated


@dataclass(frozen=True, slots=True)
class Delivery:
    """A memory that a search returned. The times are those of the first mark of each kind."""

    memory_id: str
    rank: int  # from 1
    score: float
    opened: datetime | None = None
    used: datetime | None = None
    wrong: datetime | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """One logged search with its time (UTC), session and query, and what it delivered, best first.

    `session` is the one that the caller named, or else `origin`, the connection that asked. `repeat`: the caller had
    lost what its session was given before, so that this no longer counts.
    """

    id: str
    at: datetime
    space: str
    session: str | None
    query: str
    mode: str
    lens: str | None
    deliveries: tuple[Delivery, ...]
    origin: str | None = None
    repeat: bool = False

    @property
    def size_bytes(self) -> int:
        """About what it takes in the file."""
        return RECEIPT_BYTES + len(self.query.encode()) + DELIVERY_BYTES * len(self.deliveries)


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the log is kept: for how many days, and in how many bytes of the file, about.

    The days are counted from the last but two of the days on which anything was logged, so that a search while the
    clock is wrong deletes nothing. Of too many receipts, those that were written first are deleted, whatever the times
    they have.
    """

    days: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of memories that searches had delivered: of each, the latest delivery in the day before is meant.

    With `session` or `origin`, only deliveries to that session or connection count.
    """

    memory_ids: tuple[str, ...]
    outcome: Outcome
    at: datetime
    session: str | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What the log is still to get, in the order of writing. Some of it may be written by now."""

    receipts: tuple[Receipt, ...] = ()
    marks: tuple[Mark, ...] = ()


NOTHING_UNWRITTEN = Unwritten()


class Usage(NamedTuple):
    """How a memory was used: credits for and against it, and for its deliveries, decayed as of `at`."""

    good: float
    bad: float
    seen: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFilter:
    """Selects receipts, the newest first.

    A receipt is listed in its own space only, with the deliveries of memories in these spaces. `before` is the id of
    the last receipt on the previous page.
    """

    spaces: Sequence[str]
    session: str | None = None
    memory_id: str | None = None
    limit: int = 50
    before: str | None = None

    def __post_init__(self) -> None:
        if not self.spaces:
            raise InvalidInput("spaces", "are empty; name at least one")


def logged_query(query: str) -> str:
    """A query as stored in the log: truncated, and without characters that cannot be stored."""
    return query[:QUERY_CHARS_MAX].encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
