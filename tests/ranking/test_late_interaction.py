"""Late interaction: MaxSim and its share by hand, and what a score may depend on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.ranking import late_interaction, scoring
from nacre.ranking.late_interaction import NEIGHBOUR, blended, matched_tokens, maxsim, pack, weight_among
from nacre.types.memory import Span
from nacre.types.recipe import Recipe, adjusted
from nacre.types.search import Ranked, Reason
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    import numpy.typing as npt

    from nacre.types.memory import FloatMatrix

BYTES = TokenFormat(4, 8)
FINE = TokenFormat(64, 4)


def unit(rows: npt.ArrayLike) -> FloatMatrix:
    matrix: FloatMatrix = np.array(rows, np.float32)
    matrix /= np.sqrt(np.square(matrix).sum(axis=1, keepdims=True))
    return matrix


def query(rows: npt.ArrayLike, weights: Sequence[float]) -> QueryTokens:
    words = tuple(Span(at, at + 1) for at in range(len(weights)))
    return QueryTokens(words, unit(rows), np.array(weights, np.float32))


def random_tokens(seed: int, count: int, form: TokenFormat = FINE) -> bytes:
    return pack(unit(np.random.default_rng(seed).normal(size=(count, form.dimensions))), form) if count else b""


def random_query(seed: int, count: int, form: TokenFormat = FINE) -> QueryTokens:
    return query(np.random.default_rng(seed).normal(size=(count, form.dimensions)), [1 / count] * count)


# ---------------------------------------------------------------- by hand

# Three query tokens along the first three axes, with the weights 1/2, 1/4 and 1/4.
ASKED = query([(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)], [0.5, 0.25, 0.25])
# a: (1, 0, 0, 0) is the first token itself; (0, .6, .8, 0) has .6 of the second and .8 of the third.
A = pack(unit([(1, 0, 0, 0), (0, 0.6, 0.8, 0)]), BYTES)
# b: (0, 1, 0, 0) is the second token itself; (.8, 0, -.6, 0) has .8 of the first, and nothing of the third.
B = pack(unit([(0, 1, 0, 0), (0.8, 0, -0.6, 0)]), BYTES)


def test_maxsim_by_hand() -> None:
    """
    a  1/2 · 1 + 1/4 · .6 + 1/4 · .8  = .85
    b  1/2 · .8 + 1/4 · 1 + 1/4 · 0   = .65
    """
    found = maxsim(ASKED, {"a": [A], "b": [B]}, {"a": (), "b": ()}, BYTES)
    assert found == pytest.approx({"a": 0.85, "b": 0.65}, abs=0.004)


def test_a_neighbour_matches_better_by_hand() -> None:
    """b next to a: first token .9 · 1 beats .8, third .9 · .8 beats 0. 1/2 · .9 + 1/4 · 1 + 1/4 · .72 = .88."""
    texts = {"a": [A], "b": [B]}
    assert maxsim(ASKED, texts, {"b": ("a",)}, BYTES) == pytest.approx({"b": 0.88}, abs=0.004)
    assert maxsim(ASKED, texts, {"b": ("gone", "a")}, BYTES) == maxsim(ASKED, texts, {"b": ("a",)}, BYTES)


def test_a_text_counts_by_its_best_passage() -> None:
    """Not by the best of both, which would be 1/2 · 1 + 1/4 · 1 + 1/4 · .8 = .95."""
    two = maxsim(ASKED, {"two": [B, A]}, {"two": ()}, BYTES)
    assert two == {"two": maxsim(ASKED, {"a": [A]}, {"a": ()}, BYTES)["a"]}


def test_a_text_without_kept_tokens_matches_nothing_and_one_without_vectors_is_missing() -> None:
    found = maxsim(ASKED, {"empty": [b""], "a": [A]}, {"empty": (), "a": (), "gone": ("a",)}, BYTES)
    assert found == {"empty": 0.0, "a": maxsim(ASKED, {"a": [A]}, {"a": ()}, BYTES)["a"]}
    assert maxsim(ASKED, {"empty": [b""], "a": [A]}, {"empty": ("a",)}, BYTES)["empty"] == pytest.approx(
        NEIGHBOUR * found["a"]
    )
    assert maxsim(ASKED, {}, {"gone": ()}, BYTES) == {}


def test_the_tokens_that_met_by_hand() -> None:
    own = matched_tokens(ASKED, [[B]], BYTES)
    assert [each and each[:3] for each in own] == [(0, 0, 1), (0, 0, 0), None]
    met = matched_tokens(ASKED, [[b"", B], [A]], BYTES)
    assert [each and each[:3] for each in met] == [(1, 0, 0), (0, 1, 0), (1, 0, 1)]
    assert [each.similarity for each in met if each] == pytest.approx([0.9, 1, 0.72], abs=0.01)
    assert matched_tokens(ASKED, [[], [b""]], BYTES) == [None, None, None]


# ---------------------------------------------------------------- what a score depends on

counts = st.lists(st.integers(0, 60), min_size=1, max_size=12)


@given(counts=counts, order=st.randoms(), seed=st.integers(0, 99), tokens=st.sampled_from([1, 5, 40]))
def test_a_score_depends_on_the_text_and_its_neighbours_alone(
    counts: list[int], order: Random, seed: int, tokens: int
) -> None:
    asked = random_query(seed, tokens)
    texts = {f"m{at}": [random_tokens(100 * seed + at, count)] for at, count in enumerate(counts)}
    beside = {one: (other,) for one, other in pairwise(texts)} | {f"m{len(texts) - 1}": ()}
    together = maxsim(asked, texts, beside, FINE)
    shuffled = list(texts)
    order.shuffle(shuffled)
    assert together == maxsim(asked, {each: texts[each] for each in shuffled}, beside, FINE)
    for each, near in beside.items():
        alone = {one: texts[one] for one in (each, *near)}
        assert maxsim(asked, alone, {each: near}, FINE)[each] == together[each]  # to the bit


@given(count=st.integers(0, 20), more=st.integers(1, 5), seed=st.integers(0, 99))
def test_more_tokens_and_neighbours_never_lower_a_score(count: int, more: int, seed: int) -> None:
    asked, text, other = random_query(seed, 6), random_tokens(seed, count), random_tokens(seed + 100, more)
    own = maxsim(asked, {"a": [text]}, {"a": ()}, FINE)["a"]
    assert maxsim(asked, {"a": [text + other]}, {"a": ()}, FINE)["a"] >= own
    texts = {"a": [text], "b": [other]}
    assert maxsim(asked, texts, {"a": ("b",)}, FINE)["a"] >= own
    assert maxsim(asked, texts, {"a": ("b", "b")}, FINE) == maxsim(asked, texts, {"a": ("b",)}, FINE)


@pytest.mark.parametrize("form", [FINE, TokenFormat(48, 4), TokenFormat(64, 8)])
def test_a_score_is_that_of_the_unpacked_vectors(form: TokenFormat) -> None:
    asked, packed = random_query(1, 8, form), random_tokens(2, 300, form)
    products = late_interaction.unpack(packed, form) @ asked.vectors.T
    (found,) = maxsim(asked, {"a": [packed]}, {"a": ()}, form).values()
    assert found == pytest.approx(float(products.max(axis=0) @ asked.weights), abs=1e-3)
    met = matched_tokens(asked, [[packed]], form)
    assert [each and each.token for each in met] == products.argmax(axis=0).tolist()
    assert sum(each.similarity for each in met if each) / 8 == pytest.approx(found)


def test_many_tokens_are_compared_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, texts = random_query(1, 3), {"a": [random_tokens(4, 50)], "b": [random_tokens(5, 70)]}
    whole = maxsim(asked, texts, {"a": (), "b": ()}, FINE)
    monkeypatch.setattr(late_interaction, "_CHUNK", 16)
    monkeypatch.setattr(late_interaction, "_BLOCK", 1_000)
    assert maxsim(asked, texts, {"a": (), "b": ()}, FINE) == whole


# ---------------------------------------------------------------- the share


def placed(memory_id: str, score: float) -> Ranked:
    return Ranked(memory_id, score, (Reason("lexical", "add", score, {}),), None, None)


RANKED = [placed(each, score) for each, score in (("a", 0.8), ("b", 0.5), ("c", 0.3), ("d", 0.25))]


def test_the_share_by_hand() -> None:
    """a, b and c are compared, .8 − .3 = .5 apart; of the query four fifths are known: .8² = .64. c leads by .2.

    a  10 · .64 · .5 · (.5 − .4)   = .32   1.12
    b  10 · .64 · .5 · 0           = 0     .5
    c  10 · .64 · .5 · (.6 − .4)   = .64   .94
    d  was not compared                    .25
    """
    found = blended(RANKED, {"a": 0.5, "b": 0.4, "c": 0.6}, 3, weight=10, coverage=0.8)
    assert [each.id for each in found] == ["a", "c", "b", "d"]
    assert [each.score for each in found] == pytest.approx([1.12, 0.94, 0.5, 0.25])
    assert found[3] is RANKED[3]
    assert found[1].reasons[-1].numbers == pytest.approx(
        {"maxsim": 0.6, "rank": 1, "compared": 3, "weight": 10, "coverage": 0.8, "spread": 0.5, "lead": 0.2}
    )
    assert all(each.score == scoring.score(each.reasons) for each in found)
    assert (
        scoring.describe(found[1].reasons[-1]) == "maxsim: 0.600, rank 1 of 3 → 10 × 0.80² × 0.5000 × 0.200 = 0.64000"
    )
    assert scoring.briefly(found[1].reasons[1:]) == "maxsim 1"


def test_a_memory_without_token_vectors_gets_what_those_around_it_have() -> None:
    """Of nine, the first eight are high and the rest low: what is missing among the first is taken for high."""
    ranked = [placed(f"m{at:02}", 1 - at / 100) for at in range(20)]
    scores = {f"m{at:02}": 0.8 if at < 10 else 0.3 for at in range(20) if at not in (0, 4, 16)}
    found = {each.id: each.reasons[-1] for each in blended(ranked, scores, 20, 1.0, 1.0)}
    assert found["m00"].value == found["m04"].value == found["m05"].value > 0
    assert found["m16"].value == found["m15"].value == 0
    assert "rank" not in found["m04"].numbers
    assert found["m05"].numbers["compared"] == 17
    assert "no token vectors" in scoring.describe(found["m04"])
    assert scoring.briefly([found["m04"]]) == ""


@pytest.mark.parametrize(
    ("beside", "weight"),
    [
        ({"a": (), "b": ()}, 4),
        ({"a": ("b",), "b": ("a",)}, 12),
        ({"a": ("b",), "b": ("a",), "c": (), "d": ()}, 8),  # half are turns: 4 · (1 + 2 · 1/2)
        ({}, 4),
    ],
)
def test_the_weight_rises_with_the_share_of_turns(beside: dict[str, Sequence[str]], weight: float) -> None:
    assert weight_among(beside, adjusted(Recipe(), maxsim_weight=4.0, maxsim_turns=3.0)) == pytest.approx(weight)
    assert weight_among(beside, adjusted(Recipe(), maxsim_weight=4.0, maxsim_turns=1.0)) == 4
    assert weight_among(beside, Recipe(maxsim_weight=0.0)) == 0


def test_without_scores_nothing_moves() -> None:
    assert blended(RANKED, {}, 3, 1.0, 1.0) == RANKED
    assert blended([], {}, 3, 1.0, 1.0) == []


@given(
    scores=st.dictionaries(st.sampled_from("abcd"), st.floats(-1, 1), min_size=1),
    weight=st.floats(0, 10),
    coverage=st.floats(0.5, 1),
)
def test_no_share_is_negative_and_the_order_follows_the_scores(
    scores: dict[str, float], weight: float, coverage: float
) -> None:
    found = blended(RANKED, scores, 4, weight, coverage)
    shares = {each.id: each.reasons[-1].value for each in found}
    assert min(shares.values()) >= 0
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    for one, other in pairwise(sorted(scores, key=lambda each: scores[each])):
        assert shares[one] <= shares[other]
