"""Time in a ranking: what lies in the period that the question names comes first; so does the first or the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from nacre.query.ast import is_during
from nacre.ranking import scoring
from nacre.types.search import Filter, Period, Ranked, Reason
from nacre.types.times import Relation

NEAR = 0.5  # closeness of what lies a little beside a period
_EARLIEST, _LATEST = (each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max))  # noqa: DTZ901
_MOMENT = timedelta(microseconds=1)
_MARGIN_MIN, _MARGIN_MAX = timedelta(days=1), timedelta(days=7)
VAGUE = 0.2  # of the weight, where the period has no clear border
ALIKE = 0.4  # share of the best score: candidates that have more are about what is asked
ALIKE_FIRST = 0.7  # the same where the first is asked for: what is told of a beginning may be told at any time
APART = timedelta(minutes=1)  # the least time between the first and the last
ALIKE_MAX = 6  # candidates that are put in order of time
STEP = 1 - ALIKE  # of the best score, between two of them: more than their scores differ


def closeness(moments: Sequence[datetime], periods: Sequence[Period]) -> float:
    """1 for what lies inside one of the periods, NEAR for what lies a little beside it, 0 for the rest.

    People misremember dates, and what happened on a day is often told on the next.
    """
    near = 0.0
    for moment in moments:
        for period in periods:
            if is_during(moment, period):
                return 1.0
            if period.start is not None and period.end is not None:
                margin = min(max((period.end - period.start) / 2, _MARGIN_MIN), _MARGIN_MAX)
                if period.start - moment <= margin and moment - period.end < margin:
                    near = NEAR
    return near


def widened(period: Period) -> Period:
    """A period with what lies a little beside it."""
    start = period.start and (period.start - _MARGIN_MAX if period.start - _EARLIEST > _MARGIN_MAX else None)
    end = period.end and (period.end + _MARGIN_MAX if _LATEST - period.end > _MARGIN_MAX else None)
    return Period(start, end)


def narrowed(where: Filter, period: Period) -> Filter:
    """The filter for what was written in a period."""
    starts = [each for each in (where.created_from, period.start) if each is not None]
    ends = [each for each in (where.created_until, period.end) if each is not None]
    return replace(where, created_from=max(starts, default=None), created_until=min(ends, default=None))


def relative_to(event: datetime, relation: Relation) -> Period:
    """The time before, after or since an event. The event itself is not after it."""
    if relation == "before":
        return Period(None, event)
    return Period(event + min(_MOMENT, _LATEST - event) if relation == "after" else event, None)


def inside_first(ranked: Sequence[Ranked], close: Mapping[str, float], weight: float) -> list[Ranked]:
    """Add a share of the best score to what lies inside the period, so that it comes before what lies outside."""
    best = max((each.score for each in ranked), default=0.0)
    if not weight or not best:
        return list(ranked)
    return [
        scoring.with_share(each, Reason("temporal", "add", weight * best * share, {"closeness": share}))
        if (share := close.get(each.id, 0.0))
        else each
        for each in ranked
    ]


def in_order(ranked: Sequence[Ranked], moments: Mapping[str, datetime], *, newest_first: bool) -> list[Ranked]:
    """Put the candidates that are about what is asked in order of time. `ranked` is given best first.

    `moments` has the times of those that may be put in order: of a question with a period, what lies inside.
    """
    if not ranked:
        return []
    best = ranked[0].score
    least = (ALIKE if newest_first else ALIKE_FIRST) * best
    alike = [each.id for each in ranked[:ALIKE_MAX] if each.id in moments and each.score > least]
    times = [moments[each] for each in alike]
    if not times or max(times) - min(times) < APART:  # written together, as documents are: their times mean nothing
        return list(ranked)
    by_time = sorted(alike, key=lambda each: (moments[each], each), reverse=newest_first)
    reasons = {
        each: Reason("order", "add", STEP * best * (len(by_time) - place), {"place": float(place)})
        for place, each in enumerate(by_time, 1)
    }
    return [scoring.with_share(each, reasons[each.id]) if each.id in reasons else each for each in ranked]
