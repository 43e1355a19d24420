"""Factors on the fused score. Each is bounded and adds its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from nacre.ranking import explain
from nacre.types import Ranked, Reason


def recency_factor(created: datetime, now: datetime, weight: float) -> tuple[float, int]:
    """× (1 + weight / (1 + days)), and the whole days it came from.

    Whole days, so that the same question gives the same scores all day; a time to come counts as today.
    """
    days = max(0, (now - created) // timedelta(days=1))
    return 1 + weight / (1 + days), days


def recency(ranked: Sequence[Ranked], created: Mapping[str, datetime], now: datetime, weight: float) -> list[Ranked]:
    """Newer memories a little higher. Weight 0 leaves everything as it is."""
    if not weight:
        return list(ranked)
    boosted = []
    for each in ranked:
        factor, days = recency_factor(created[each.id], now, weight)
        reasons = (*each.reasons, Reason("recency", "multiply", factor, {"days": days, "weight": weight}))
        boosted.append(Ranked(each.id, explain.score(reasons), reasons, each.lexical, each.semantic))
    return boosted
