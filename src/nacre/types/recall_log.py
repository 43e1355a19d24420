"""The recall log: what each search delivered, and how its results were used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from nacre.errors import InvalidInput

Outcome = Literal["opened", "used", "wrong"]

MARK_WITHIN = timedelta(hours=24)  # of a delivery, a mark without a receipt id applies to it
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
