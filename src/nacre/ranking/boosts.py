"""Bounded factors on the score, and the share of what stands for a request. Each adds its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime

from nacre.facts.confidence import ranking_factor as confidence_factor
from nacre.ranking import scoring
from nacre.ranking.usage import DOUBT, SEEN_MAX
from nacre.ranking.usage import factor as usage_factor
from nacre.types.intents import Intent
from nacre.types.memory import DEFAULT_IMPORTANCE
from nacre.types.recall_log import Usage
from nacre.types.search import Ranked, Reason

_USAGE_MIN = 0.003  # a factor nearer to 1 is none: being delivered alone moves nothing (0.1 · 0.1 / 4.1)


def recency_factor(created: datetime, now: datetime, weight: float) -> tuple[float, int]:
    """× (1 + weight / (1 + days)), and the whole days it came from.

    Whole days, so that the same question gives the same scores all day; a time to come counts as today.
    """
    days = max(0, (now - created).days)
    return 1 + weight / (1 + days), days


def standing(ranked: Sequence[Ranked], members: Set[str], weight: float) -> list[Ranked]:
    """Raise preferences and instructions, each by how near it is to the request, measured by the nearest of them."""
    near = {each.id: each.semantic.cosine for each in ranked if each.id in members and each.semantic}
    best, nearest = max((each.score for each in ranked), default=0.0), max(near.values(), default=0.0)
    if not weight or nearest <= 0:
        return list(ranked)
    return _with_reasons(
        ranked,
        {
            each: Reason("standing", "add", weight * best * max(0.0, cosine) / nearest, {"cosine": cosine})
            for each, cosine in near.items()
        },
    )


def same_session(ranked: Sequence[Ranked], members: Set[str], weight: float) -> list[Ranked]:
    """Raise memories of the same session."""
    return _multiplied(ranked, "session", members, weight)


def about(ranked: Sequence[Ranked], members: Set[str], weight: float) -> list[Ranked]:
    """Raise memories about a boosted entity."""
    return _multiplied(ranked, "entity", members, weight)


def confidence(ranked: Sequence[Ranked], believed: Mapping[str, float], weight: float) -> list[Ranked]:
    """Lower memories by the mean confidence of their facts; those not named have no facts."""
    return _with_reasons(
        ranked,
        {
            memory_id: Reason(
                "confidence",
                "multiply",
                confidence_factor(effective, weight),
                {"effective": effective, "weight": weight},
            )
            for memory_id, effective in believed.items()
            if weight and effective < 1
        },
    )


def intent(
    ranked: Sequence[Ranked], namespaces: Mapping[str, str], asked: Intent, weights: Mapping[str, float], share: float
) -> list[Ranked]:
    """Raise the namespaces that answer such a query: × (1 + share · confidence · (weight - 1))."""
    scale = share * asked.confidence
    factors = {
        namespace: Reason(
            "intent", "multiply", 1 + scale * (weight - 1), {"confidence": asked.confidence, "weight": weight}
        )
        for namespace, weight in weights.items()
        if scale and weight != 1
    }
    return _with_reasons(
        ranked, {each: factors[namespace] for each, namespace in namespaces.items() if namespace in factors}
    )


def namespace(ranked: Sequence[Ranked], namespaces: Mapping[str, str], weights: Mapping[str, float]) -> list[Ranked]:
    """Raise or lower memories by the factor that the caller gave their namespace, whatever the intent."""
    factors = {
        each: Reason("namespace", "multiply", float(weight), {"weight": weight})
        for each, weight in weights.items()
        if weight != 1
    }
    if not factors:
        return list(ranked)
    return _with_reasons(ranked, {each: factors[name] for each, name in namespaces.items() if name in factors})


def importance(ranked: Sequence[Ranked], importances: Mapping[str, float], weight: float) -> list[Ranked]:
    """Raise what is more important than usual, lower what is less: × (1 + weight · (importance - 0.5))."""
    if not weight:
        return list(ranked)
    return _with_reasons(
        ranked,
        {
            each: Reason(
                "importance",
                "multiply",
                1 + weight * (value - DEFAULT_IMPORTANCE),
                {"importance": value, "weight": weight},
            )
            for each, value in importances.items()
            if value != DEFAULT_IMPORTANCE
        },
    )


def usage(ranked: Sequence[Ranked], used: Mapping[str, Usage], now: datetime, weight: float) -> list[Ranked]:
    """Raise what was opened or used before, lower what was wrong."""
    seen_counts = weight * SEEN_MAX / DOUBT >= _USAGE_MIN  # otherwise skip what was only delivered
    factors = {
        memory_id: usage_factor(each, now, weight)
        for memory_id, each in used.items()
        if weight and (seen_counts or each.good or each.bad)
    }
    return _with_reasons(
        ranked,
        {
            memory_id: Reason("usage", "multiply", factor, {"weight": weight})
            for memory_id, factor in factors.items()
            if abs(factor - 1) >= _USAGE_MIN
        },
    )


def _with_reasons(ranked: Sequence[Ranked], reasons: Mapping[str, Reason]) -> list[Ranked]:
    if not reasons:
        return list(ranked)
    return [scoring.with_reason(each, reasons[each.id]) if each.id in reasons else each for each in ranked]


def _multiplied(ranked: Sequence[Ranked], signal: str, members: Set[str], weight: float) -> list[Ranked]:
    """× (1 + weight) for the members."""
    if not weight or not members:
        return list(ranked)
    reason = Reason(signal, "multiply", 1 + weight, {"weight": weight})
    return [scoring.with_reason(each, reason) if each.id in members else each for each in ranked]


def recency(ranked: Sequence[Ranked], created: Mapping[str, datetime], now: datetime, weight: float) -> list[Ranked]:
    """Raise newer memories."""
    if not weight:
        return list(ranked)
    reasons: dict[int, Reason] = {}  # by days: memories of one day share theirs
    boosted = []
    for each in ranked:
        days = (now - created[each.id]).days
        reason = reasons.get(days)
        if reason is None:
            factor, days_old = recency_factor(created[each.id], now, weight)
            reason = reasons[days] = Reason("recency", "multiply", factor, {"days": days_old, "weight": weight})
        boosted.append(scoring.with_reason(each, reason))
    return boosted
