"""Metrics by hand, and the coverage of bootstrap intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.evaluation.metrics import METRICS, Estimate, estimate, ndcg, recall, reciprocal_rank, scores

SHARE = st.floats(0, 1, allow_nan=False)


@pytest.mark.parametrize(
    ("ranking", "k", "expected"),
    [
        ("xa", 1, 0.0),
        ("xa", 2, 1 / 3),
        ("xabyc", 4, 2 / 3),
        ("cba", 5, 1.0),
        ("", 5, 0.0),
    ],
)
def test_recall_is_the_share_of_the_evidence(ranking: str, k: int, expected: float) -> None:
    assert recall(ranking, {"a": 1, "b": 2, "c": 1, "x": 0}, k) == pytest.approx(expected)


def test_ndcg_by_hand() -> None:
    # One of two at the second place: (1 / log2 3) / (1 / log2 2 + 1 / log2 3)
    assert ndcg("xa", {"a": 1, "b": 1}, 10) == pytest.approx(0.630930 / 1.630930, abs=1e-6)
    # The grade is the gain: 1 / 1 + 3 / log2 3, where 3 / 1 + 1 / log2 3 was possible
    assert ndcg("ab", {"a": 1, "b": 3}, 10) == pytest.approx(2.892789 / 3.630930, abs=1e-6)
    # Only as many can be first as are looked at
    assert ndcg("a", {"a": 1, "b": 1}, 1) == 1.0
    assert ndcg("xxa", {"a": 1}, 2) == 0.0


@pytest.mark.parametrize(("ranking", "expected"), [("abc", 1.0), ("xya", 1 / 3), ("xyza", 0.0), ("xba", 0.5)])
def test_the_first_evidence_counts(ranking: str, expected: float) -> None:
    assert reciprocal_rank(ranking, {"a": 1, "b": 1}, 3) == pytest.approx(expected)


def test_all_metrics_of_one_question() -> None:
    ranking = [*"xxxxx", "a", *"xxxxx", "b"]  # at the places 6 and 12
    found = scores(ranking, {"a": 1, "b": 1})
    assert tuple(found) == METRICS == ("recall@5", "recall@10", "nDCG@10", "MRR@10")
    best = 1 + 1 / math.log2(3)
    assert found == {
        "recall@5": 0.0,
        "recall@10": 0.5,
        "nDCG@10": pytest.approx(1 / math.log2(7) / best),
        "MRR@10": pytest.approx(1 / 6),
    }


def test_what_is_certain_has_no_width() -> None:
    assert estimate([0.25] * 7, 1) == Estimate(0.25, 0.25, 0.25)
    assert estimate([0.5], 1) == Estimate(0.5, 0.5, 0.5)


def test_two_questions_can_be_anything() -> None:
    """Of two that are drawn of 0 and 1, both are 0 in a quarter of all cases, and both 1 in another."""
    assert estimate([0.0, 1.0], 1) == Estimate(0.5, 0.0, 1.0)


def test_the_interval_is_as_wide_as_chance() -> None:
    """The mean of 400 tosses has a standard error of 0.025, and 95 % lie within 1.96 of these."""
    found = estimate([0.0, 1.0] * 200, 7)
    assert found.mean == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)
    wider = estimate([0.0, 1.0] * 50, 7)
    assert wider.high - wider.low == pytest.approx(2 * (found.high - found.low), rel=0.15)


def test_the_tails_are_cut_where_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 means, one is left out on each side."""

    class Drawn:
        def __init__(self, _: int) -> None:
            self.next = iter(range(40))

        def choices(self, values: list[float], k: int) -> list[float]:
            assert k == len(values)
            return [float(next(self.next))] * k

    monkeypatch.setattr("nacre.evaluation.metrics.random.Random", Drawn)
    assert estimate([2.0, 4.0], 1, resamples=40) == Estimate(3.0, 1.0, 38.0)


def test_the_seed_decides() -> None:
    values = [((7 * each) % 11) / 10 for each in range(30)]
    assert estimate(values, 3) == estimate(values, 3)
    assert len({estimate(values, seed) for seed in range(5)}) > 1


@settings(max_examples=25, deadline=None)
@given(st.lists(SHARE, min_size=1, max_size=12), st.integers(0, 5))
def test_an_interval_lies_within_what_was_measured(values: list[float], seed: int) -> None:
    found = estimate(values, seed, resamples=100)
    assert min(values) - 1e-12 <= found.low <= found.high <= max(values) + 1e-12
    moved = estimate([1 - each for each in values], seed, resamples=100)  # the same questions are drawn
    assert moved.high == pytest.approx(1 - found.low)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdefxyz"), max_size=15, unique=True), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_metrics_agree_with_each_other(ranking: list[str], evidence: set[str]) -> None:
    found = scores(ranking, dict.fromkeys(evidence, 1))
    assert all(0 <= value <= 1 + 1e-12 for value in found.values())
    assert found["recall@5"] <= found["recall@10"]
    assert (found["recall@10"] > 0) == (found["nDCG@10"] > 0) == (found["MRR@10"] > 0)
    first = sorted(ranking, key=lambda each: each not in evidence)
    better = scores(first, dict.fromkeys(evidence, 1))
    assert all(better[name] >= found[name] - 1e-12 for name in METRICS)
