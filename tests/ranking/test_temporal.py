"""What lies in the period that a question names comes first, and so does the first or the last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rankings import IDS, RANKINGS, is_sum_of_reasons, rounded, summed

from nacre.ranking import temporal
from nacre.ranking.scoring import best_first
from nacre.types.search import Ranked, Reason

START = datetime(2026, 1, 1, tzinfo=UTC)


def on(**days: int) -> dict[str, datetime]:
    return {each: START + timedelta(days=day) for each, day in days.items()}


def test_inside_by_hand() -> None:
    """The best score is .9: b gets .3 + .9. c has a factor of .5: .1 + .9, by a share of .9 / .5."""
    ranked = [summed("a", 0.9), summed("b", 0.3), summed("c", 0.2, 0.5)]
    moved = temporal.inside_first(ranked, {"b", "c", "unknown"}, 1.0)
    assert rounded(moved) == {"a": 0.9, "b": 1.2, "c": 1.0}
    assert moved[2].reasons[-1] == Reason("temporal", "add", 1.8, {"weight": 1.0})
    assert rounded(temporal.inside_first(ranked, {"b", "c"}, 0.5)) == {"a": 0.9, "b": 0.75, "c": 0.55}


def test_order_by_hand() -> None:
    """The best score is 1, and each place in time is worth .6 of it; d is not about what is asked, with .4 or less."""
    ranked = [summed("a", 1.0), summed("b", 0.8), summed("c", 0.5), summed("d", 0.4)]
    moments = on(a=3, b=1, c=2, d=0)
    last = temporal.in_order(ranked, moments, True, 1.0)
    assert rounded(best_first(last)) == {"a": 2.2, "c": 1.1, "b": 0.8, "d": 0.4}
    assert [each.reasons[-1].numbers for each in last[:3]] == [{"place": 1.0}, {"place": 3.0}, {"place": 2.0}]
    first = temporal.in_order(ranked, moments, False, 1.0)
    assert rounded(best_first(first)) == {"b": 2.0, "c": 1.1, "a": 1.0, "d": 0.4}


def test_only_those_with_a_moment_are_put_in_order() -> None:
    """Of a question with a period, these are inside: a is not."""
    ranked = [summed("b", 1.0), summed("c", 0.9), summed("a", 0.8)]
    moved = temporal.in_order(ranked, on(b=2, c=1), False, 1.0)
    assert rounded(best_first(moved)) == {"c": 1.5, "b": 1.0, "a": 0.8}


def test_only_the_first_few_are_put_in_order() -> None:
    ranked = [summed(each, 1.0) for each in IDS]
    moved = temporal.in_order(ranked, on(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8), True, 1.0)
    assert [each.id for each in best_first(moved)] == ["f", "e", "d", "c", "b", "a", "g", "h"]


@pytest.mark.parametrize("ranked", [[], [summed("a", 1.0), summed("b", 0.5)], [summed("a", 0.0)]])
def test_a_weight_of_0_switches_it_off(ranked: list[Ranked]) -> None:
    assert temporal.inside_first(ranked, {"a", "b"}, 0) == ranked
    assert temporal.in_order(ranked, on(a=1, b=2), True, 0) == ranked


@given(RANKINGS, st.sets(st.sampled_from(IDS)))
def test_what_lies_inside_comes_before_what_lies_outside(ranked: list[Ranked], inside: set[str]) -> None:
    moved = best_first(temporal.inside_first(ranked, inside, 1.0))
    assert all(map(is_sum_of_reasons, moved))
    are_inside = [each.id in inside for each in moved]
    assert are_inside == sorted(are_inside, reverse=True)
    for side in (True, False):
        kept = [each.id for each in ranked if (each.id in inside) == side]
        scores = {each.id: each.score for each in ranked}
        assert [scores[each.id] for each in moved if (each.id in inside) == side] == pytest.approx(
            [scores[each] for each in kept]
        )


@given(RANKINGS, st.lists(st.integers(0, 99), min_size=len(IDS), max_size=len(IDS), unique=True), st.booleans())
def test_those_that_are_about_it_are_in_order_of_time(ranked: list[Ranked], days: list[int], newest: bool) -> None:
    moments = on(**dict(zip(IDS, days, strict=True)))
    moved = best_first(temporal.in_order(ranked, moments, newest, 1.0))
    assert all(map(is_sum_of_reasons, moved))
    ordered = [each.id for each in moved if each.reasons[-1].signal == "order"]
    assert ordered == sorted(ordered, key=lambda each: moments[each], reverse=newest)
    assert [each.id for each in moved[: len(ordered)]] == ordered
