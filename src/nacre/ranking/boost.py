"""Factors on the fused score. Each is bounded and adds its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta

from nacre.ranking import explain
from nacre.types import Period, Ranked, Reason


def recency_factor(created: datetime, now: datetime, weight: float) -> tuple[float, int]:
    """× (1 + weight / (1 + days)), and the whole days it came from.

    Whole days, so that the same question gives the same scores all day; a time to come counts as today.
    """
    days = max(0, (now - created) // timedelta(days=1))
    return 1 + weight / (1 + days), days


def temporal(
    ranked: Sequence[Ranked], created: Mapping[str, datetime], periods: Sequence[Period], weight: float
) -> list[Ranked]:
    """Memories from the time a question names a little higher."""
    return _multiplied(
        ranked,
        "temporal",
        {each.id for each in ranked if any(_inside(created[each.id], period) for period in periods)},
        weight,
    )


def same_session(ranked: Sequence[Ranked], members: Set[str], weight: float) -> list[Ranked]:
    """Memories of the session in question a little higher."""
    return _multiplied(ranked, "session", members, weight)


def _inside(moment: datetime, period: Period) -> bool:
    return (period.start is None or moment >= period.start) and (period.end is None or moment < period.end)


def _multiplied(ranked: Sequence[Ranked], signal: str, members: Set[str], weight: float) -> list[Ranked]:
    """× (1 + weight) for the members."""
    if not weight or not members:
        return list(ranked)
    reason = Reason(signal, "multiply", 1 + weight, {"weight": weight})
    return [_with(each, reason) if each.id in members else each for each in ranked]


def _with(ranked: Ranked, reason: Reason) -> Ranked:
    reasons = (*ranked.reasons, reason)
    return Ranked(ranked.id, explain.score(reasons), reasons, ranked.lexical, ranked.semantic)


def recency(ranked: Sequence[Ranked], created: Mapping[str, datetime], now: datetime, weight: float) -> list[Ranked]:
    """Newer memories a little higher. Weight 0 leaves everything as it is."""
    if not weight:
        return list(ranked)
    boosted = []
    for each in ranked:
        factor, days = recency_factor(created[each.id], now, weight)
        boosted.append(_with(each, Reason("recency", "multiply", factor, {"days": days, "weight": weight})))
    return boosted
