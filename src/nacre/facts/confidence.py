"""How far a fact is believed: confidence that fades, is reinforced, and goes stale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from nacre.types.facts import Fact, Reinforcement

FLOOR = 0.1  # what only fades, or holds no longer, is never believed less
STALE_BELOW = 0.5
STALE_AFTER = timedelta(days=30)

# Which part of the time since the last reinforcement each kind takes back.
SHARES: Mapping[Reinforcement, float] = MappingProxyType(
    {"explicit": 1.0, "import": 0.8, "reference": 0.5, "recall": 0.3}
)
_DAY = timedelta(days=1)


def effective_confidence(fact: Fact, now: datetime) -> float:
    """confidence · exp(-rate · days since reinforced), in whole days, not below the floor.

    A fact that does not hold now is believed as much as the floor. One that was never believed
    more than the floor stays where it is.
    """
    least = min(fact.confidence, FLOOR)
    if not is_current(fact, now):
        return least
    days = max(0, (now - fact.reinforced) // _DAY)
    return max(least, fact.confidence * math.exp(-fact.decay_rate * days))


def is_current(fact: Fact, now: datetime) -> bool:
    return fact.valid_from <= now and (fact.valid_to is None or now < fact.valid_to)


def memory_confidence(facts: Sequence[Fact], now: datetime) -> float:
    """The mean over a memory's facts; without any, it is believed.

    A fact that was read from the text is only another way to say it: that it grows old tells nothing that recency
    does not. So it counts in full unless it holds no longer, or was found wrong.
    """
    if not facts:
        return 1.0
    mean = sum(_in_ranking(fact, now) for fact in facts) / len(facts)
    return round(mean, 9)  # the mean of several floors is the floor, not a little below it


def _in_ranking(fact: Fact, now: datetime) -> float:
    if fact.origin == "extracted" and is_current(fact, now) and fact.confidence >= STALE_BELOW:
        return 1.0
    return effective_confidence(fact, now)


def ranking_factor(believed: float, weight: float) -> float:
    """× (1 - weight + weight · effective): with weight 1 the full product."""
    return 1 - weight + weight * believed


def reinforce(fact: Fact, share: float, now: datetime) -> Fact:
    """Move the beginning of the fading forward by a share of the time since. The same moment again changes nothing."""
    if now <= fact.touched or now <= fact.reinforced:
        return fact
    return replace(fact, reinforced=fact.reinforced + share * (now - fact.reinforced), touched=now)


def stale_since(fact: Fact) -> datetime | None:
    """When its confidence fell below a half; None for one that does not fade."""
    if fact.confidence < STALE_BELOW:
        return fact.reinforced
    if fact.decay_rate == 0:
        return None
    days = math.log(fact.confidence / STALE_BELOW) / fact.decay_rate
    try:
        return fact.reinforced + timedelta(days=days)
    except OverflowError:
        return None


def is_stale(fact: Fact, now: datetime) -> bool:
    """Below a half for thirty days, though it still holds."""
    since = stale_since(fact)
    return is_current(fact, now) and since is not None and now - since >= STALE_AFTER
