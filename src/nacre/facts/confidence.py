"""The confidence in a fact: it decays with time, is restored by reinforcement, and makes old facts stale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from nacre.types.facts import Fact, Reinforcement

FLOOR = 0.1  # decay does not go below it; facts that are not current have it
STALE_BELOW = 0.5
STALE_AFTER = timedelta(days=30)

# The share of the time since the last reinforcement that each kind makes up for.
SHARES: Mapping[Reinforcement, float] = MappingProxyType(
    {"explicit": 1.0, "import": 0.8, "reference": 0.5, "recall": 0.3}
)
_DAY = timedelta(days=1)


def effective_confidence(fact: Fact, now: datetime) -> float:
    """confidence · exp(-rate · days since reinforced), in whole days, but at least FLOOR.

    A fact that is not current has FLOOR. A fact whose own confidence is below FLOOR keeps it.
    """
    least = min(fact.confidence, FLOOR)
    if not is_current(fact, now):
        return least
    days = max(0, (now - fact.reinforced) // _DAY)
    return max(least, fact.confidence * math.exp(-fact.decay_rate * days))


def is_current(fact: Fact, now: datetime) -> bool:
    return fact.valid_from <= now and (fact.valid_to is None or now < fact.valid_to)


def mean_confidence(facts: Sequence[Fact], now: datetime) -> float:
    """The mean effective confidence of a memory's facts, of which there is at least one."""
    return _mean([effective_confidence(fact, now) for fact in facts])


def memory_confidence(facts: Sequence[Fact], now: datetime, *, all_fade: bool = False) -> float:
    """How far the ranking believes a memory by its facts: their mean, or 1 without facts.

    An extracted fact restates the memory's text, and its age is already counted as recency. So it counts in full while
    it is current and was not found wrong. With `all_fade` it counts by its effective confidence, like a given one.
    """
    if not facts:
        return 1.0
    if all_fade:
        return mean_confidence(facts, now)
    return _mean([1.0 if _restates(fact, now) else effective_confidence(fact, now) for fact in facts])


def every_fact_fades(weight: float, least: float) -> bool:
    """Whether extracted facts fade in the ranking, too: with the full product, and where faded ones are filtered."""
    return weight == 1 or least > FLOOR


def _restates(fact: Fact, now: datetime) -> bool:
    return fact.origin == "extracted" and is_current(fact, now) and fact.confidence >= STALE_BELOW


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 9)  # without rounding, the mean of equal floors may be below FLOOR


def ranking_factor(confidence: float, weight: float) -> float:
    """The factor on a score: 1 with weight 0, the confidence itself with weight 1."""
    return 1 - weight + weight * confidence


def reinforce(fact: Fact, share: float, now: datetime) -> Fact:
    """The fact with the start of its decay moved towards now by a share of the time since. Idempotent at one time."""
    if now <= fact.touched or now <= fact.reinforced:
        return fact
    return replace(fact, reinforced=fact.reinforced + share * (now - fact.reinforced), touched=now)


def stale_since(fact: Fact) -> datetime | None:
    """When the effective confidence fell below STALE_BELOW; None for a fact that does not decay."""
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
    """Whether a current fact has been below STALE_BELOW for at least STALE_AFTER."""
    since = stale_since(fact)
    return is_current(fact, now) and since is not None and now - since >= STALE_AFTER
