"""A bounded factor for what became of a memory after searches delivered it.

    good    +1.0 used; +0.05 · rank opened, at most 0.5
    bad     +2.0 wrong
    seen    +0.005 delivered; counts at most 0.1 in all, so that being shown alone hardly matters
    fading  half of everything is gone after 30 days
    factor  1 + weight · (g - b) / (g + b + 4), with g = good + min(seen, 0.1) and b = bad

What is shown first is opened more, and would be shown first again. Four things keep that loop from
building up: the factor has bounds that no number of marks passes; credits fade; an outcome earns its
credit once a day (UTC) for a memory, however many searches delivered it; and an opening tells less the
higher it was ranked. `benchmarks/popularity.py` shows what each is worth.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from nacre.types.recall_log import Outcome, Usage

CREDITS: dict[Outcome | Literal["delivered"], float] = {"opened": 0.5, "used": 1.0, "wrong": 2.0, "delivered": 0.005}
INVITING_PLACES = 10  # an opening earns all its credit from this rank on
SEEN_MAX = 0.1
DOUBT = 4.0  # credits it takes to move the factor half of its way
HALF_LIFE = timedelta(days=30)


def faded(usage: Usage, now: datetime) -> Usage:
    """The standing as of `now`. One from a time to come stays as it is."""
    if now <= usage.at:
        return usage
    share = _share_left(now - usage.at)
    return Usage(usage.good * share, usage.bad * share, usage.seen * share, now)


def add(
    usage: Usage | None, outcome: Outcome | Literal["delivered"], now: datetime, rank: int = INVITING_PLACES
) -> Usage:
    """The standing after one more credit, for a memory that was delivered at this rank.

    Credits may come in any order: a late one has faded as much.
    """
    current = Usage(0.0, 0.0, 0.0, now) if usage is None else faded(usage, now)
    credit = CREDITS[outcome] * _share_left(current.at - now)
    good, bad, seen = current.good, current.bad, current.seen
    match outcome:
        case "delivered":
            seen += credit
        case "wrong":
            bad += credit
        case "opened":
            good += credit * min(rank, INVITING_PLACES) / INVITING_PLACES
        case "used":
            good += credit
    return Usage(good, bad, seen, current.at)


def earns(last: datetime | None, now: datetime) -> bool:
    """Whether a mark earns its credit, when the same outcome last earned one for this memory at `last`."""
    return last is None or now.astimezone(UTC).date() > last.astimezone(UTC).date()


def factor(usage: Usage | None, now: datetime, weight: float) -> float:
    """Above 1 - weight and below 1 + weight; 1 for a memory without usage."""
    if usage is None:
        return 1.0
    current = faded(usage, now)
    good = current.good + min(current.seen, SEEN_MAX)
    return 1 + weight * (good - current.bad) / (good + current.bad + DOUBT)


def _share_left(elapsed: timedelta) -> float:
    return float(0.5 ** (elapsed / HALF_LIFE)) if elapsed else 1.0
