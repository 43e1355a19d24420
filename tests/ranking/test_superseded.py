"""What was superseded follows its successor, by score and by relevance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.ranking import superseded
from nacre.types.search import Ranked, Reason, Successor
from rankings import IDS, RANKINGS, is_sum_of_reasons, rounded, summed

START = datetime(2026, 1, 1, tzinfo=UTC)


def by(memory_id: str) -> Successor:
    return Successor(memory_id, START)


def last_reason(ranked: Ranked) -> tuple[str, str, float]:
    reason = ranked.reasons[-1]
    return reason.signal, reason.effect, round(reason.value, 6)


# ---------------------------------------------------------------- the score


def test_a_successor_takes_the_place_and_the_older_one_follows() -> None:
    """b gets .8 - .3; a has .9 of that: .72."""
    ranked = [summed("a", 0.8), summed("c", 0.5), summed("b", 0.3)]
    moved = superseded.stepped_back(ranked, {"a": by("b")})
    assert rounded(moved) == {"b": 0.8, "a": 0.72, "c": 0.5}
    assert last_reason(moved[0]) == ("successor", "add", 0.5)
    assert last_reason(moved[1]) == ("superseded", "multiply", 0.9)


def test_a_successor_that_is_far_ahead_keeps_its_score_and_so_does_the_older_one() -> None:
    ranked = [summed("b", 0.8), summed("a", 0.3)]
    moved = superseded.stepped_back(ranked, {"a": by("b")})
    assert rounded(moved) == {"b": 0.8, "a": 0.3}
    assert moved[1].reasons[-1] == Reason("superseded", "multiply", 1.0, {})


def test_a_successor_that_was_not_found_comes_in() -> None:
    moved = superseded.stepped_back([summed("a", 0.8)], {"a": by("x")})
    assert rounded(moved) == {"x": 0.8, "a": 0.72}
    assert moved[0].reasons == (Reason("successor", "add", 0.8, {}),)


def test_one_successor_of_several() -> None:
    """b gets the better of .8 and .6; both older ones have .9 of that at the most."""
    ranked = [summed("a", 0.8), summed("c", 0.6), summed("b", 0.3)]
    assert rounded(superseded.stepped_back(ranked, {"a": by("b"), "c": by("b")})) == {"b": 0.8, "a": 0.72, "c": 0.6}


def test_factors_of_the_successor_are_undone() -> None:
    """b has .4 · .5 = .2 and gets .6: by a share of 1.2, because its factor halves that."""
    moved = superseded.stepped_back([summed("a", 0.8), summed("b", 0.4, 0.5)], {"a": by("b")})
    assert rounded(moved) == {"b": 0.8, "a": 0.72}
    assert moved[0].reasons[-1].value == pytest.approx(1.2)


def links(ids: list[str], targets: list[str | None]) -> dict[str, Successor]:
    """Any links by which no successor is superseded itself, as a ranking gets them."""
    chosen = {older: to for older, to in zip(ids, targets, strict=False) if to is not None and to != older}
    return {older: by(to) for older, to in chosen.items() if to not in chosen}


TARGETS = st.lists(st.one_of(st.none(), st.sampled_from([*IDS, "x"])), min_size=len(IDS), max_size=len(IDS))


@given(RANKINGS, TARGETS)
def test_what_was_superseded_is_never_above_its_successor(ranked: list[Ranked], targets: list[str | None]) -> None:
    successors = links([each.id for each in ranked], targets)
    moved = superseded.stepped_back(ranked, successors)
    assert all(map(is_sum_of_reasons, moved))
    assert {each.id for each in moved} == {each.id for each in ranked} | {each.id for each in successors.values()}
    places = {each.id: place for place, each in enumerate(moved)}
    for older, successor in successors.items():
        assert places[successor.id] < places[older]
    before = {each.id: each.score for each in ranked}
    for each in moved:
        if each.id not in successors:
            assert each.score >= before.get(each.id, 0.0) * (1 - 1e-9)


# ---------------------------------------------------------------- the relevance


@pytest.mark.parametrize(
    ("relevance", "expected"),
    [
        ({"a": 0.8, "b": 0.3}, {"a": 0.72, "b": 0.8}),  # the successor gets what the older one has
        ({"a": 0.3, "b": 0.8}, {"a": 0.3, "b": 0.8}),
        ({"a": 0.8, "b": 0.8}, {"a": 0.72, "b": 0.8}),
        ({"a": 0.8}, {"a": 0.72}),  # the successor is not shown
        ({"b": 0.8}, {"b": 0.8}),
        ({}, {}),
    ],
)
def test_relevance_by_hand(relevance: dict[str, float], expected: dict[str, float]) -> None:
    assert superseded.relevance_behind(relevance, {"a": by("b")}) == pytest.approx(expected)


@given(st.dictionaries(st.sampled_from(IDS), st.floats(0, 1)), TARGETS, st.floats(0, 1))
def test_no_least_relevance_keeps_the_stale_and_drops_the_current(
    relevance: dict[str, float], targets: list[str | None], least: float
) -> None:
    successors = links(list(relevance), targets)
    likely = superseded.relevance_behind(relevance, successors)
    assert likely.keys() == relevance.keys()
    for older, successor in successors.items():
        if successor.id in likely:
            assert likely[older] <= superseded.BEHIND * likely[successor.id]
            assert likely[successor.id] >= relevance[older]
            assert likely[older] < least or likely[successor.id] >= least


# ---------------------------------------------------------------- the newer of two that are much alike


def on(**days: float) -> dict[str, datetime]:
    return {each: START + timedelta(days=day) for each, day in days.items()}


ALL = frozenset({"router", "place"})


@pytest.mark.parametrize(
    ("days", "asked", "likeness", "order"),
    [
        ({"a": 0, "b": 9}, {"a": ALL, "b": ALL}, 0.6, "ba"),
        ({"a": 0, "b": 9}, {"a": ALL, "b": ALL}, 0.54, "ab"),  # they are about different things
        ({"a": 0, "b": 0.4}, {"a": ALL, "b": ALL}, 0.6, "ab"),  # of the same day
        ({"a": 0, "b": 0.5}, {"a": ALL, "b": ALL}, 0.6, "ba"),
        ({"a": 9, "b": 0}, {"a": ALL, "b": ALL}, 0.6, "ab"),
        ({"a": 0, "b": 9}, {"a": ALL, "b": {"router"}}, 0.6, "ab"),  # the newer one has less of the question
        ({"a": 0, "b": 9}, {"a": {"router"}, "b": ALL}, 0.6, "ba"),
        ({"a": 0, "b": 9}, {"a": ALL}, 0.6, "ab"),  # b is no note
    ],
)
def test_the_newer_one_goes_first(
    days: dict[str, float], asked: dict[str, set[str]], likeness: float, order: str
) -> None:
    """b gets .8 · 1.001 - .6 = .2008."""
    ranked = [summed("a", 0.8), summed("b", 0.6)]
    moved = superseded.fresher(ranked, on(**days), asked, lambda _one, _other: likeness)
    assert "".join(each.id for each in moved) == order
    if order == "ba":
        assert last_reason(moved[0]) == ("fresher", "add", 0.2008)
    else:
        assert moved == ranked


@pytest.mark.parametrize(
    ("asked", "likeness", "order"),
    [
        ({"a": ALL, "b": {"router"}}, 0.3, "ba"),  # one word in common is enough
        ({"a": ALL, "b": {"router"}}, 0.29, "ab"),
        ({"a": {"place"}, "b": {"router"}}, 0.3, "ab"),
        ({"a": set(), "b": {"router"}}, 0.3, "ba"),  # both were found by meaning
    ],
)
def test_less_is_demanded_of_one_that_says_that_something_has_changed(
    asked: dict[str, set[str]], likeness: float, order: str
) -> None:
    ranked = [summed("a", 0.8), summed("b", 0.6)]
    moved = superseded.fresher(ranked, on(a=0, b=9), asked, lambda _one, _other: likeness, {"b"})
    assert "".join(each.id for each in moved) == order
    assert superseded.fresher(ranked, on(a=9, b=0), asked, lambda _one, _other: likeness, {"b"}) == ranked


def test_the_newest_of_three_goes_first() -> None:
    """b passes a with .8 · 1.001, and c passes b with that · 1.001, though c has less than both."""
    ranked = [summed("a", 0.8), summed("b", 0.6), summed("c", 0.5), summed("d", 0.3)]
    asked = dict.fromkeys("abcd", ALL)
    moved = superseded.fresher(ranked, on(a=0, b=1, c=2, d=3), asked, lambda _one, _other: 0.9)
    assert rounded(moved) == {"c": 0.801601, "b": 0.8008, "a": 0.8, "d": 0.3}  # d has less than half of the best


def test_of_equals_the_newer_one_goes_first() -> None:
    ranked = [summed("a", 0.8), summed("b", 0.8)]
    moved = superseded.fresher(ranked, on(a=0, b=1), dict.fromkeys("ab", ALL), lambda _one, _other: 0.9)
    assert rounded(moved) == {"b": 0.8008, "a": 0.8}


@given(
    RANKINGS,
    st.lists(st.floats(0, 9), min_size=len(IDS), max_size=len(IDS)),
    st.lists(st.sets(st.sampled_from(sorted(ALL))), min_size=len(IDS), max_size=len(IDS)),
    st.floats(0, 1),
)
def test_a_fresher_one_passes_only_what_it_is_like(
    ranked: list[Ranked], days: list[float], asked: list[set[str]], likeness: float
) -> None:
    moments, words = on(**dict(zip(IDS, days, strict=True))), dict(zip(IDS, asked, strict=True))
    moved = superseded.fresher(ranked, moments, words, lambda _one, _other: likeness)
    assert {each.id for each in moved} == {each.id for each in ranked}
    assert all(map(is_sum_of_reasons, moved))
    before = {each.id: each.score for each in ranked}
    for each in moved:
        assert each.score >= before[each.id] * (1 - 1e-9)
        assert each.score == before[each.id] or likeness >= superseded.FRESH_LIKENESS
    assert superseded.fresher([], {}, {}, lambda _one, _other: 1.0) == []
