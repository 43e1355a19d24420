"""Time in a ranking: what lies in the period that the question names comes first; so does the first or the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason

VAGUE = 0.2  # of the weight, where the period has no clear border
ALIKE = 0.4  # share of the best score: candidates that have more are about what is asked
ALIKE_MAX = 6  # candidates that are put in order of time
STEP = 1 - ALIKE  # of the best score, between two of them: more than their scores differ


def inside_first(ranked: Sequence[Ranked], inside: Set[str], weight: float) -> list[Ranked]:
    """Add a share of the best score to what lies inside the period, so that it comes before what lies outside."""
    best = max((each.score for each in ranked), default=0.0)
    if not weight or not best:
        return list(ranked)
    reason = Reason("temporal", "add", weight * best, {"weight": weight})
    return [scoring.with_share(each, reason) if each.id in inside else each for each in ranked]


def in_order(
    ranked: Sequence[Ranked], moments: Mapping[str, datetime], newest_first: bool, weight: float
) -> list[Ranked]:
    """Put the candidates that are about what is asked in order of time. `ranked` is given best first.

    `moments` has the times of those that may be put in order: of a question with a period, what lies inside.
    """
    if not weight or not ranked:
        return list(ranked)
    best = ranked[0].score
    alike = [each.id for each in ranked[:ALIKE_MAX] if each.id in moments and each.score > ALIKE * best]
    by_time = sorted(alike, key=lambda each: (moments[each], each), reverse=newest_first)
    reasons = {
        each: Reason("order", "add", weight * STEP * best * (len(by_time) - place), {"place": float(place)})
        for place, each in enumerate(by_time, 1)
    }
    return [scoring.with_share(each, reasons[each.id]) if each.id in reasons else each for each in ranked]
