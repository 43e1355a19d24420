"""Relevance, reproduced with a pencil, and what holds for it whatever was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.query.ast import Term
from nacre.ranking import relevance as module
from nacre.ranking.bm25 import bm25, idf
from nacre.ranking.relevance import (
    BY_BOTH,
    BY_MEANING,
    BY_WORDS,
    RERANK_LEAD,
    Evidence,
    Meaning,
    Others,
    Weights,
    Words,
    evidence,
    ideal,
    leads,
    others,
    relevance,
    with_lead,
)
from nacre.types.recipe import Recipe, adjusted
from nacre.types.search import Found, Match

RECIPE = adjusted(Recipe(), bm25_k1=1.0)
POOL = 50
TERMS = (Term("tooth"), Term("paste"))

scores = st.floats(0, 1e6)
cosines = st.floats(-1, 1)
words = st.builds(Words, coverage=st.floats(0, 1), lead=st.floats(-1, 1))
meanings = st.builds(Meaning, cosine=cosines, lead=st.floats(-2, 2), above_crowd=st.floats(-2, 2))
evidences = st.builds(Evidence, words=st.none() | words, meaning=st.none() | meanings)


def matches(*found: float) -> list[Match]:
    return [Match(f"m{number}", score) for number, score in enumerate(found)]


def found_among(lexical: Sequence[float] | None, semantic: Sequence[float] | None, pool: int = POOL) -> Others:
    """Two words, each in one of three memories."""
    return others(
        TERMS,
        3,
        {"tooth": 1, "paste": 1},
        None if lexical is None else matches(*lexical),
        None if semantic is None else matches(*semantic),
        RECIPE,
        pool,
    )


# ---------------------------------------------------------------- with a pencil


def test_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BY_WORDS", Weights(start=-3, coverage=4, words_behind=10, words_ahead=5))
    ahead = Evidence(Words(coverage=0.75, lead=0.2), None)
    assert relevance(ahead) == pytest.approx(1 / (1 + exp(3 - 4 * 0.75 - 5 * 0.2)))  # log-odds of 1
    assert relevance(ahead) == pytest.approx(0.7310585786)
    behind = Evidence(Words(coverage=0.5, lead=-0.1), None)
    assert relevance(behind) == pytest.approx(1 / (1 + exp(3 - 4 * 0.5 + 10 * 0.1)))  # log-odds of -2
    assert relevance(behind) == pytest.approx(0.1192029220)


def test_meaning_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "BY_MEANING", Weights(start=-4, cosine=5, meaning_behind=20, meaning_ahead=10, above_crowd=2)
    )
    ahead = Evidence(None, Meaning(cosine=0.6, lead=0.05, above_crowd=0.25))
    assert relevance(ahead) == pytest.approx(0.5)  # -4 + 3 + .5 + .5 = 0
    behind = Evidence(None, Meaning(cosine=0.5, lead=-0.05, above_crowd=0.25))
    assert relevance(behind) == pytest.approx(1 / (1 + exp(2)))  # -4 + 2.5 - 1 + .5 = -2


def test_both_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BY_BOTH", Weights(start=-4, coverage=2, words_ahead=5, cosine=5, meaning_behind=10))
    both = Evidence(Words(coverage=0.5, lead=0.2), Meaning(cosine=0.5, lead=-0.1, above_crowd=0.1))
    assert relevance(both) == pytest.approx(1 / (1 + exp(0.5)))  # -4 + 1 + 1 + 2.5 - 1 = -.5


def test_a_question_of_conditions_alone_is_met() -> None:
    assert relevance(Evidence(None, None)) == 1.0


def test_the_ideal_is_the_sum_of_what_the_words_tell() -> None:
    # One of three memories has the word: idf = ln(1 + (3 - 1 + .5) / (1 + .5)) = ln(8 / 3).
    assert ideal(TERMS, 3, {"tooth": 1, "paste": 1}, RECIPE) == pytest.approx(2 * 2 * log(8 / 3))


def test_a_word_that_no_memory_has_makes_the_ideal_harder() -> None:
    # ln(1 + (3 + .5) / .5) = ln 8 instead of ln(8 / 3).
    assert ideal(TERMS, 3, {"tooth": 1}, RECIPE) == pytest.approx(2 * (log(8 / 3) + log(8)))


def test_common_words_do_not_count_where_others_tell() -> None:
    where = Term("where", common=True)
    assert ideal((*TERMS, where), 3, {"tooth": 1, "paste": 1}, RECIPE) == ideal(
        TERMS, 3, {"tooth": 1, "paste": 1}, RECIPE
    )
    # Alone it counts, as a word that half of the memories have: ln(1 + (3 - 1.5 + .5) / (1.5 + .5)) = ln 2.
    assert ideal([where], 3, {"where": 1}, RECIPE) == pytest.approx(2 * log(2))


def test_coverage_is_bm25_over_the_ideal_and_leads_over_the_best_other() -> None:
    whole = 4 * log(8 / 3)
    among = found_among([whole / 2, whole / 4], None)
    first = evidence(Found(whole / 2, 1), None, among).words
    second = evidence(Found(whole / 4, 2), None, among).words
    assert first is not None
    assert (first.coverage, first.lead) == pytest.approx((0.5, 0.25))
    assert second is not None
    assert (second.coverage, second.lead) == pytest.approx((0.25, -0.25))


def test_meaning_leads_over_the_best_other_and_stands_above_the_tenth() -> None:
    among = found_among(None, [0.8, 0.7, *([0.5] * 7), 0.4, 0.35])
    assert evidence(None, Found(0.8, 1), among) == Evidence(None, Meaning(0.8, 0.8 - 0.7, 0.8 - 0.4))
    assert evidence(None, Found(0.7, 2), among) == Evidence(None, Meaning(0.7, 0.7 - 0.8, 0.7 - 0.4))


def test_few_matches_stand_above_unrelated_texts() -> None:
    alone = Evidence(None, Meaning(0.8, 0.8 - 0.3, 0.8 - 0.3))
    assert evidence(None, Found(0.8, 1), found_among(None, [0.8])) == alone
    # Where the floor is lower there are more matches, but no more that count.
    assert evidence(None, Found(0.8, 1), found_among(None, [0.8, *([0.1] * 20)])) == alone
    assert evidence(None, None, found_among(None, [0.8, 0.1])).meaning == Meaning(0.1, 0.1 - 0.8, 0.1 - 0.3)


def test_what_one_channel_did_not_find_has_the_least_of_it() -> None:
    whole = 4 * log(8 / 3)
    among = found_among([2 * whole], [0.8, 0.6])  # never more than all of it
    assert evidence(None, Found(0.8, 1), among).words == Words(0.0, -1.0)
    assert evidence(Found(whole, 1), None, among).meaning == Meaning(0.3, 0.3 - 0.8, 0.0)
    # A full pool: what is not in it is no nearer than the last.
    full = found_among([whole], [0.8, 0.6], pool=2)
    assert evidence(Found(whole, 1), None, full).meaning == Meaning(0.6, 0.6 - 0.8, 0.6 - 0.3)


def test_a_channel_that_was_not_asked_says_nothing() -> None:
    assert evidence(Found(1.0, 1), None, found_among([1.0], None)).meaning is None
    assert evidence(None, Found(0.5, 1), found_among(None, [0.5])).words is None
    without_words = others((), 3, {}, [], matches(0.5), RECIPE, POOL)
    assert evidence(None, Found(0.5, 1), without_words).words is None


def test_an_empty_space_has_an_ideal_too() -> None:
    among = others(TERMS, 0, {}, [], [], RECIPE, POOL)
    assert evidence(None, None, among).words == Words(0.0, 0.0)


@pytest.mark.parametrize(
    ("likely", "lead", "expected"),
    [
        (0.5, 1.0, 1 / (1 + exp(-1))),  # log-odds of 0, and 1 more: .73
        (0.5, 0.5, 1 / (1 + exp(-0.5))),
        (0.2, log(2), 1 / 3),  # one to four, twice: one to two
        (0.8, log(2), 8 / 9),
        (0.5, 1.001, 1 / (1 + exp(-1))),  # more is not surer
        (0.5, 9.0, 1 / (1 + exp(-1))),
        (0.1, 9.0, exp(1) / (exp(1) + 9)),
        (0.3, 0.0, 0.3),  # one of two that are alike
        (0.3, -4.0, 0.3),  # behind another: several may answer
        (0.0, 9.0, 0.0),
        (1.0, 9.0, 1.0),
        (1.0, -9.0, 1.0),
    ],
)
def test_who_leads_what_was_read_is_likelier(likely: float, lead: float, expected: float) -> None:
    assert RERANK_LEAD == 1
    assert with_lead(likely, lead) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@given(likely=st.floats(0, 1), lead=st.floats(-1e308, 1e308), more=st.floats(0, 40))
def test_a_lead_never_makes_less_likely(likely: float, lead: float, more: float) -> None:
    found = with_lead(likely, lead)
    assert 0 <= found <= 1
    assert likely * (1 - 1e-9) <= found <= likely * exp(RERANK_LEAD) * (1 + 1e-9)
    assert with_lead(likely, lead + more) >= found * (1 - 1e-9)
    if lead <= 0:
        assert found == likely


@given(likely=st.lists(st.floats(0, 1), min_size=2, max_size=2), lead=st.floats(0, 40))
def test_the_likelier_of_two_stays_so_with_the_same_lead(likely: list[float], lead: float) -> None:
    less, more = (with_lead(each, lead) for each in sorted(likely))
    assert less <= more * (1 + 1e-9)


# ---------------------------------------------------------------- whatever was found


def test_no_slope_is_negative() -> None:
    for weights in (BY_WORDS, BY_MEANING, BY_BOTH):
        assert min(value for name, value in asdict(weights).items() if name != "start") >= 0


def test_a_memory_with_every_word_and_far_ahead_is_likely_and_one_without_is_not() -> None:
    near, far = Meaning(0.8, 0.4, 0.5), Meaning(0.3, -0.4, -0.1)
    every, none = Words(0.9, 0.6), Words(0.0, -0.6)
    assert min(map(relevance, [Evidence(every, near), Evidence(every, None), Evidence(None, near)])) > 0.9
    assert max(map(relevance, [Evidence(none, far), Evidence(none, None), Evidence(None, far)])) < 0.1


@given(evidences)
def test_it_is_a_probability(each: Evidence) -> None:
    assert 0 <= relevance(each) <= 1


@pytest.mark.parametrize("extreme", [1e308, -1e308])
def test_whatever_an_embedder_gives_it_stays_a_probability(extreme: float) -> None:
    assert 0 <= relevance(Evidence(None, Meaning(extreme, 0.0, 0.0))) <= 1
    assert 0 <= relevance(Evidence(Words(extreme, 0.0), Meaning(0.5, 0.0, 0.0))) <= 1


@given(lexical=st.lists(scores, max_size=20), semantic=st.lists(st.floats(0.3, 1), max_size=60))
def test_hits_of_any_pools_are_in_bounds(lexical: list[float], semantic: list[float]) -> None:
    lexical.sort(reverse=True)
    semantic.sort(reverse=True)
    for asked in (found_among(lexical, semantic), found_among(lexical, None), found_among(None, semantic)):
        for by_words in (None, *(Found(score, rank) for rank, score in enumerate(lexical, 1))):
            for by_meaning in (None, *(Found(cosine, rank) for rank, cosine in enumerate(semantic[:3], 1))):
                assert 0 <= relevance(evidence(by_words, by_meaning, asked)) <= 1


@given(pool=st.lists(cosines, min_size=2, max_size=60), by_words=st.none() | st.floats(0, 5))
def test_the_nearer_of_two_is_no_less_relevant(pool: list[float], by_words: float | None) -> None:
    pool.sort(reverse=True)
    for among in (found_among([4.0], pool), found_among(None, pool)):
        word = None if by_words is None else Found(by_words, 2)
        ranked = [Found(cosine, rank) for rank, cosine in enumerate(pool, 1)]
        given_order = [relevance(evidence(word, each, among)) for each in (*ranked, None)]
        assert given_order == sorted(given_order, reverse=True)


@given(pool=st.lists(st.floats(0, 5), min_size=2, max_size=60), cosine=st.none() | st.floats(0.3, 1))
def test_the_one_with_more_words_is_no_less_relevant(pool: list[float], cosine: float | None) -> None:
    pool.sort(reverse=True)
    for among in (found_among(pool, [1.0]), found_among(pool, None)):
        near = None if cosine is None else Found(cosine, 2)
        ranked = [Found(score, rank) for rank, score in enumerate(pool, 1)]
        given_order = [relevance(evidence(each, near, among)) for each in (*ranked, None)]
        assert given_order == sorted(given_order, reverse=True)


@given(each=evidences, more=st.floats(0, 1))
def test_more_of_anything_is_never_less_relevant(each: Evidence, more: float) -> None:
    if each.words is not None:
        for name in ("coverage", "lead"):
            raised = each.words._replace(**{name: getattr(each.words, name) + more})
            assert relevance(each._replace(words=raised)) >= relevance(each)
    if each.meaning is not None:
        for name in ("cosine", "lead", "above_crowd"):
            nearer = each.meaning._replace(**{name: getattr(each.meaning, name) + more})
            assert relevance(each._replace(meaning=nearer)) >= relevance(each)


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=8),
    length=st.integers(1, 1000),
    memories=st.integers(1, 1000),
)
def test_no_memory_is_better_than_the_ideal(counts: list[int], length: int, memories: int) -> None:
    terms = [Term(f"t{number}") for number in range(len(counts))]
    having = {term.text: 1 + number % memories for number, term in enumerate(terms)}
    idfs = [idf(memories, having[term.text]) for term in terms]
    best = ideal(terms, memories, having, RECIPE)
    assert bm25(counts, idfs, length, 100.0, RECIPE) <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((-1.0, 3.5, 6.5), [-7.5, -3.0, 3.0]),  # the best leads the second, all others are behind the best
        ((2.0, -9.0), [11.0, -11.0]),
        ((4.0, 4.0, 1.0), [0.0, 0.0, -3.0]),  # two are the best: neither leads
        ((5.0,), [0.0]),  # nothing to lead
        ((), []),
    ],
)
def test_a_lead_is_over_the_best_other(scores: tuple[float, ...], expected: list[float]) -> None:
    assert list(leads(dict(zip("abc", scores, strict=False))).values()) == expected
