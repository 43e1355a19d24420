"""What the best of several passages gains by chance, by hand and against known values."""

from __future__ import annotations

import random
from statistics import NormalDist, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.ranking.passage_count import expected_best, gain_by_chance, semantic_match
from nacre.ranking.scoring import best_first
from nacre.types.memory import Span
from nacre.types.search import Match

WHOLE = Span(0, 10)


@pytest.mark.parametrize(
    ("passages", "expected"), [(1, 0.0), (2, 0.564), (3, 0.846), (4, 1.029), (8, 1.424), (16, 1.766), (100, 2.508)]
)
def test_the_expected_maximum_is_that_of_the_tables(passages: int, expected: float) -> None:
    assert expected_best(passages) == pytest.approx(expected, abs=0.03)


def test_it_is_what_draws_show() -> None:
    chance = random.Random(19)
    drawn = fmean(max(chance.gauss(0.3, 0.08) for _ in range(6)) for _ in range(5_000))
    assert 0.3 + gain_by_chance(6, 0.08) == pytest.approx(drawn, abs=0.005)


def test_it_is_the_quantile_of_a_normal_distribution() -> None:
    for passages in range(2, 200):
        assert expected_best(passages) == pytest.approx(
            NormalDist().inv_cdf((passages - 0.375) / (passages + 0.25)), abs=0.02
        )


@given(passages=st.integers(1, 100_000), spread=st.floats(0, 1))
def test_more_passages_gain_more_and_the_gain_has_a_bound(passages: int, spread: float) -> None:
    assert expected_best(passages) < expected_best(passages + 1) < 1 / 0.1975
    assert 0 <= gain_by_chance(passages, spread) <= 5.07 * spread
    assert gain_by_chance(passages, 0.0) == 0.0


def test_a_long_memory_needs_a_better_passage() -> None:
    """Four passages with a best of .6 score as much as one passage of .558."""
    long = semantic_match("long", 0.6, WHOLE, 4, 0.04)
    assert long.score == pytest.approx(0.6 - 0.04 * 1.047, abs=1e-4) == pytest.approx(0.558, abs=2e-4)
    assert long.cosine == 0.6
    near, far = semantic_match("near", 0.57, WHOLE, 1, 0.04), semantic_match("far", 0.55, WHOLE, 1, 0.04)
    assert near == Match("near", 0.57, WHOLE)
    assert [each.id for each in best_first([long, near, far])] == ["near", "long", "far"]


def test_without_a_weight_a_score_is_the_cosine() -> None:
    assert semantic_match("long", 0.6, WHOLE, 400, 0.0) == Match("long", 0.6, WHOLE)
