"""What lies in the period that a question names comes first, and so does the first or the last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nacre.ranking import temporal
from nacre.ranking.scoring import best_first
from nacre.types.search import Period, Ranked, Reason
from rankings import IDS, RANKINGS, is_sum_of_reasons, rounded, summed

START = datetime(2026, 1, 1, tzinfo=UTC)


def on(**days: int) -> dict[str, datetime]:
    return {each: START + timedelta(days=day) for each, day in days.items()}


# ---------------------------------------------------------------- how close a memory is

WEEK, DAY = Period(on(x=10)["x"], on(x=17)["x"]), Period(on(x=10)["x"], on(x=11)["x"])
YEAR = Period(on(x=10)["x"], on(x=375)["x"])
NEAR = temporal.NEAR


@pytest.mark.parametrize(
    ("days", "periods", "close"),
    [
        ([12], [WEEK], 1),
        ([10], [WEEK], 1),  # the start belongs to it
        ([17], [WEEK], NEAR),  # the end does not
        ([7], [WEEK], NEAR),  # half a week before it
        ([6], [WEEK], 0),
        ([20], [WEEK], NEAR),
        ([21], [WEEK], 0),
        ([9], [DAY], NEAR),  # a day before a day
        ([8.9], [DAY], 0),
        ([11.9], [DAY], NEAR),
        ([12], [DAY], 0),
        ([3], [YEAR], NEAR),  # a week before a year
        ([2], [YEAR], 0),
        ([6, 12], [WEEK], 1),  # written before, and happened in it
        ([6], [WEEK, Period(None, on(x=7)["x"])], 1),  # one period is enough
        ([17], [Period(None, WEEK.end)], 0),  # a period with one end has a border
        ([9.9], [Period(WEEK.start, None)], 0),
        ([12], [], 0),
        ([], [WEEK], 0),
    ],
)
def test_closeness(days: list[float], periods: list[Period], close: float) -> None:
    assert temporal.closeness([START + timedelta(days=day) for day in days], periods) == close


MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(st.lists(MOMENTS, max_size=2), st.lists(st.tuples(MOMENTS, MOMENTS).map(sorted), max_size=2))
@example([datetime.min.replace(tzinfo=UTC)], [[datetime.min.replace(tzinfo=UTC)] * 2])
@example([START], [[datetime.max.replace(tzinfo=UTC)] * 2])
def test_any_times_are_close_or_not(moments: list[datetime], periods: list[list[datetime]]) -> None:
    close = temporal.closeness(moments, [Period(start, end) for start, end in periods])
    assert close in (0, NEAR, 1)
    assert (close == 1) == any(start <= each < end for each in moments for start, end in periods)


# ---------------------------------------------------------------- inside and outside


def test_inside_by_hand() -> None:
    """The best score is .9: b gets .3 + .9. c has a factor of .5: .1 + .9, by a share of .9 / .5. d lies beside it."""
    ranked = [summed("a", 0.9), summed("b", 0.3), summed("c", 0.2, 0.5), summed("d", 0.1)]
    close = {"b": 1.0, "c": 1.0, "d": 0.5, "a": 0.0, "unknown": 1.0}
    moved = temporal.inside_first(ranked, close, 1.0)
    assert rounded(moved) == {"a": 0.9, "b": 1.2, "c": 1.0, "d": 0.55}
    assert moved[2].reasons[-1] == Reason("temporal", "add", 1.8, {"closeness": 1.0})
    assert rounded(temporal.inside_first(ranked, close, 0.5)) == {"a": 0.9, "b": 0.75, "c": 0.55, "d": 0.325}


@pytest.mark.parametrize("ranked", [[], [summed("a", 1.0), summed("b", 0.5)], [summed("a", 0.0)]])
def test_a_weight_of_0_switches_it_off(ranked: list[Ranked]) -> None:
    assert temporal.inside_first(ranked, {"a": 1.0, "b": 0.5}, 0) == ranked
    assert temporal.inside_first(ranked, {}, 1) == ranked


CLOSE = st.dictionaries(st.sampled_from(IDS), st.sampled_from([0.0, NEAR, 1.0]))


@given(RANKINGS, CLOSE, st.floats(0, 1))
def test_what_lies_inside_rises_by_a_share_of_the_best_score(
    ranked: list[Ranked], close: dict[str, float], weight: float
) -> None:
    before, best = {each.id: each.score for each in ranked}, max(each.score for each in ranked)
    for each in temporal.inside_first(ranked, close, weight):
        assert is_sum_of_reasons(each)
        assert each.score == pytest.approx(before[each.id] + weight * best * close.get(each.id, 0.0))


@given(RANKINGS, CLOSE)
def test_with_the_full_weight_what_lies_inside_comes_before_what_lies_outside(
    ranked: list[Ranked], close: dict[str, float]
) -> None:
    moved = best_first(temporal.inside_first(ranked, close, 1.0))
    are_inside = [close.get(each.id, 0.0) == 1 for each in moved if close.get(each.id) != NEAR]
    assert are_inside == sorted(are_inside, reverse=True)


# ---------------------------------------------------------------- the first and the last


def test_the_last_by_hand() -> None:
    """The best score is 1, and each place in time is worth .6 of it; d is not about what is asked, with .4 or less."""
    ranked = [summed("a", 1.0), summed("b", 0.8), summed("c", 0.5), summed("d", 0.4)]
    moved = temporal.in_order(ranked, on(a=3, b=1, c=2, d=0), newest_first=True)
    assert rounded(best_first(moved)) == {"a": 2.2, "c": 1.1, "b": 0.8, "d": 0.4}
    assert [each.reasons[-1].numbers for each in moved[:3]] == [{"place": 1.0}, {"place": 3.0}, {"place": 2.0}]


def test_the_first_by_hand() -> None:
    """c and d are not about what is asked, with .7 or less: a beginning may be told at any time."""
    ranked = [summed("a", 1.0), summed("b", 0.8), summed("c", 0.7), summed("d", 0.4)]
    moved = temporal.in_order(ranked, on(a=3, b=2, c=1, d=0), newest_first=False)
    assert rounded(best_first(moved)) == {"b": 1.4, "a": 1.0, "c": 0.7, "d": 0.4}


def test_only_those_with_a_moment_are_put_in_order() -> None:
    """Of a question with a period, these are inside: a is not."""
    ranked = [summed("b", 1.0), summed("c", 0.9), summed("a", 0.8)]
    moved = temporal.in_order(ranked, on(b=2, c=1), newest_first=False)
    assert rounded(best_first(moved)) == {"c": 1.5, "b": 1.0, "a": 0.8}
    assert temporal.in_order([], {}, newest_first=False) == []


def test_only_the_first_few_are_put_in_order() -> None:
    ranked = [summed(each, 1.0) for each in IDS]
    moved = temporal.in_order(ranked, on(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8), newest_first=True)
    assert [each.id for each in best_first(moved)] == ["f", "e", "d", "c", "b", "a", "g", "h"]


@given(RANKINGS, st.lists(st.integers(0, 99), min_size=len(IDS), max_size=len(IDS), unique=True), st.booleans())
def test_those_that_are_about_it_are_in_order_of_time(ranked: list[Ranked], days: list[int], newest: bool) -> None:
    moments = on(**dict(zip(IDS, days, strict=True)))
    moved = best_first(temporal.in_order(ranked, moments, newest_first=newest))
    assert all(map(is_sum_of_reasons, moved))
    ordered = [each.id for each in moved if each.reasons[-1].signal == "order"]
    assert ordered == sorted(ordered, key=lambda each: moments[each], reverse=newest)
    assert [each.id for each in moved[: len(ordered)]] == ordered
