"""The ranking, reproduced with a pencil, and what holds for it whatever the store holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta, timezone
from itertools import pairwise
from math import isclose, log
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from engines import NOW, numbered_ids
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.query.ast import ParsedQuery, Term, occurs, term_counts
from nacre.ranking import boosts, fusion, scoring
from nacre.ranking.bm25 import bm25, idf
from nacre.ranking.scoring import best_first
from nacre.storage.reference import MemoryStore
from nacre.types.memory import BREAK, Span, Tokens
from nacre.types.recipe import Fusion, Recipe, adjusted
from nacre.types.search import Effect, Filter, Found, Match, Mode, Ranked, Reason, SearchResult
from nacre.types.stats import Frequencies

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

PLAIN = Recipe(recency_weight=0, semantic_floor=-1)  # the channels alone
RANKS = Recipe(fusion="rank", alpha=0.5)  # places instead of heights, as in sums with a pencil
TEXTBOOK = adjusted(Recipe(), bm25_k1=1.2, bm25_b=0.75, bm25_padding=0)  # BM25 as in the textbook


def engine(*texts: str, store: MemoryStore | None = None) -> Nacre:
    """An engine over the plain reference store, whose ids are m0, m1, … in the order given."""
    opened = Nacre(
        store or MemoryStore(),
        Hashing(64),
        clock=lambda: NOW,
        make_ids=numbered_ids(digits=4),
    )
    for text in texts:
        opened.remember(text)
    return opened


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


# ---------------------------------------------------------------- rank fusion


def test_fusion_with_equal_weights() -> None:
    """k = 60, alpha = .5: every share is .5 / (60 + rank).

    a   words 1st               .5/61           = .0081967
    b   words 2nd, meaning 1st  .5/62 + .5/61   = .0080645 + .0081967 = .0162612
    c   words 3rd, meaning 2nd  .5/63 + .5/62   = .0079365 + .0080645 = .0160010
    d              meaning 3rd  .5/63           = .0079365
    """
    lexical = [Match("a", 9.0), Match("b", 8.0), Match("c", 1.0)]
    semantic = [Match("b", 0.9), Match("c", 0.8), Match("d", 0.7)]
    ranked = fusion.fuse(lexical, semantic, RANKS)
    assert [each.id for each in ranked] == ["b", "c", "a", "d"]
    assert [round(each.score, 7) for each in ranked] == [0.0162612, 0.0160010, 0.0081967, 0.0079365]


def test_fusion_with_less_weight_on_meaning() -> None:
    """k = 60, alpha = .3: words give .7 / (60 + rank), meaning gives .3 / (60 + rank).

    a   words 1st               .7/61           = .0114754
    b              meaning 1st           .3/61  = .0049180
    c   words 2nd, meaning 2nd  .7/62 + .3/62   = 1/62 = .0161290
    """
    recipe = replace(RANKS, alpha=0.3)
    ranked = fusion.fuse([Match("a", 2.0), Match("c", 1.0)], [Match("b", 0.9), Match("c", 0.8)], recipe)
    assert [each.id for each in ranked] == ["c", "a", "b"]
    assert [round(each.score, 7) for each in ranked] == [0.0161290, 0.0114754, 0.0049180]


def test_fusion_tells_where_each_share_came_from() -> None:
    (ranked,) = fusion.fuse([Match("a", 2.5)], [Match("a", 0.75, Span(3, 9))], replace(RANKS, alpha=0.3))
    assert ranked.reasons == (
        Reason("lexical", "add", 0.7 / 61, {"bm25": 2.5, "rank": 1, "weight": 0.7, "k": 60}),
        Reason("semantic", "add", 0.3 / 61, {"cosine": 0.75, "rank": 1, "weight": 0.3, "k": 60}),
    )
    assert ranked.lexical == Found(2.5, 1)
    assert ranked.semantic == Found(0.75, 1, Span(3, 9))


def test_equal_scores_are_ordered_by_id() -> None:
    """z is 1st by words, y is 1st by meaning: .5/61 each."""
    ranked = fusion.fuse([Match("z", 1.0)], [Match("y", 1.0)], RANKS)
    assert [each.id for each in ranked] == ["y", "z"]
    assert ranked[0].score == ranked[1].score


def test_nothing_fused_is_nothing() -> None:
    assert fusion.fuse([], [], Recipe()) == []


@pytest.mark.parametrize(("alpha", "order"), [(0.0, ["a", "b"]), (1.0, ["b", "a"])])
def test_one_channel_alone_keeps_its_order(alpha: float, order: list[str]) -> None:
    """What the weight of 0 gives is a share of 0."""
    by_words, by_meaning = [Match("a", 2.0), Match("b", 1.0)], [Match("b", 0.9), Match("a", 0.8)]
    ranked = fusion.fuse(by_words, by_meaning, replace(RANKS, alpha=alpha))
    assert [each.id for each in ranked] == order
    assert [each.score for each in ranked] == [1 / 61, 1 / 62]
    assert [each.id for each in fusion.fuse(by_words, by_meaning, Recipe(alpha=alpha))] == order


MATCHES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8).map(
    lambda chosen: [Match(each, 10.0 - rank) for rank, each in enumerate(chosen)]
)


@given(MATCHES, MATCHES, st.floats(0, 1), st.integers(0, 100), st.sampled_from(get_args(Fusion)))
def test_fusion_is_complete_and_in_order(
    lexical: list[Match], semantic: list[Match], alpha: float, k: int, how: Fusion
) -> None:
    recipe = Recipe(alpha=alpha, k=k, fusion=how)
    ranked = fusion.fuse(lexical, semantic, recipe)
    assert {each.id for each in ranked} == {match.id for match in (*lexical, *semantic)}
    assert len({each.id for each in ranked}) == len(ranked)
    for above, below in pairwise(ranked):
        assert (-above.score, above.id) < (-below.score, below.id)
    for each in ranked:
        assert each.score == scoring.score(each.reasons)
    assert fusion.fuse(lexical, semantic, recipe) == ranked


# ---------------------------------------------------------------- recency


@pytest.mark.parametrize(
    ("age", "days", "factor"),
    [
        (timedelta(0), 0, 1.1),  # 1 + .1 / 1
        (timedelta(hours=23, minutes=59), 0, 1.1),  # whole days only
        (timedelta(days=1), 1, 1.05),  # 1 + .1 / 2
        (timedelta(days=1, hours=23), 1, 1.05),
        (timedelta(days=9), 9, 1.01),  # 1 + .1 / 10
        (timedelta(days=100), 100, 1 + 0.1 / 101),
        (timedelta(days=-3), 0, 1.1),  # a time to come counts as today
        (timedelta(hours=-1), 0, 1.1),
    ],
)
def test_recency(age: timedelta, days: int, factor: float) -> None:
    found, whole_days = boosts.recency_factor(NOW - age, NOW, 0.1)
    assert isclose(found, factor, rel_tol=1e-12)
    assert whole_days == days


def test_recency_does_not_depend_on_the_time_zone() -> None:
    created = (NOW - timedelta(days=9)).astimezone(timezone(timedelta(hours=14)))
    assert boosts.recency_factor(created, NOW, 0.1)[1] == 9


def test_recency_multiplies_the_fused_score() -> None:
    """1/61 × 1.05 = .0172131 for a memory of yesterday."""
    ranked = fusion.fuse([Match("a", 1.0)], [], replace(RANKS, alpha=0))
    (boosted,) = boosts.recency(ranked, {"a": NOW - timedelta(days=1)}, NOW, 0.1)
    assert round(boosted.score, 7) == 0.0172131
    assert boosted.reasons[-1] == Reason("recency", "multiply", 1.05, {"days": 1, "weight": 0.1})


def test_recency_of_weight_nothing_changes_nothing() -> None:
    ranked = fusion.fuse([Match("a", 1.0)], [], Recipe())
    assert boosts.recency(ranked, {}, NOW, 0) == ranked


@given(st.timedeltas(timedelta(days=-400), timedelta(days=40_000)), st.floats(0, 1))
def test_recency_is_bounded(age: timedelta, weight: float) -> None:
    factor, days = boosts.recency_factor(NOW - age, NOW, weight)
    assert 1 <= factor <= 1 + weight
    assert days >= 0


def test_the_newer_of_two_equals_comes_first() -> None:
    memory = engine()
    old = memory.remember("alpha one", created=NOW - timedelta(days=30)).id
    new = memory.remember("alpha two", created=NOW).id
    assert ids(memory.search("alpha", mode="keyword")) == [new, old]
    assert ids(memory.search("alpha", mode="keyword", recipe=Recipe(recency_weight=0))) == [old, new]


# ---------------------------------------------------------------- BM25


@pytest.mark.parametrize(
    ("documents", "with_term", "value"),
    [
        (3, 1, log(1 + 2.5 / 1.5)),  # .9808
        (3, 2, log(1 + 1.5 / 2.5)),  # .4700
        (3, 3, log(1 + 0.5 / 3.5)),  # .1335
        (1000, 1, log(1 + 999.5 / 1.5)),  # 6.5034
        (1, 1, log(1 + 0.5 / 1.5)),  # .2877
    ],
)
def test_how_much_a_term_tells(documents: int, with_term: int, value: float) -> None:
    assert isclose(idf(documents, with_term), value, rel_tol=1e-12)


@given(st.integers(1, 10**6), st.data())
def test_a_rarer_term_tells_more_and_none_tells_less_than_nothing(documents: int, data: st.DataObject) -> None:
    often = data.draw(st.integers(1, documents))
    rare = data.draw(st.integers(1, often))
    assert idf(documents, rare) >= idf(documents, often) > 0


def test_bm25_of_three_texts() -> None:
    """Three texts of 2, 3 and 4 words, on average 3; k1 = 1.2, b = .75. Asked: red fish.

    idf(red)  = ln(1 + (3 - 2 + .5) / (2 + .5)) = ln 1.6    = .470004
    idf(fish) = ln(1 + (3 - 1 + .5) / (1 + .5)) = ln 2.6667 = .980829

    "red fish"            damping 1.2 × (.25 + .75 × 2/3) = .9
                          red:  .470004 × 1 × 2.2 / (1 + .9) = .544215
                          fish: .980829 × 1 × 2.2 / (1 + .9) = 1.135697     together 1.679912
    "red red car"         damping 1.2 × (.25 + .75 × 3/3) = 1.2
                          red:  .470004 × 2 × 2.2 / (2 + 1.2) = .646255
    "a big blue bird"     has none of the words
    """
    memory = engine("red fish", "red red car", "a big blue bird")
    result = memory.search("red fish", mode="keyword", recipe=TEXTBOOK)
    assert ids(result) == ["m0000", "m0001"]
    scores = [hit.bm25 for hit in result.hits]
    assert [None if score is None else round(score, 6) for score in scores] == [1.679912, 0.646255]


def test_bm25_without_length_normalisation() -> None:
    """b = 0: damping is k1 whatever the length: 1 × 2.2 / (1 + 1.2) = 1 of the idf."""
    recipe = adjusted(Recipe(), bm25_k1=1.2, bm25_b=0)
    assert isclose(bm25([1], [0.5], 1, 10, recipe), 0.5)
    assert isclose(bm25([1], [0.5], 100, 10, recipe), 0.5)


@pytest.mark.parametrize(
    ("padding", "length", "score"),
    [
        # k1 = 1, b = 1: damping is (length + padding) / (10 + padding), and a count of 1 gives 2 / (1 + damping).
        (0, 10, 1.0),
        (0, 30, 0.5),  # damping 3
        (20, 10, 1.0),
        (20, 30, 0.75),  # damping 50/30: 2 / 2.666667
        (20, 0, 1.2),  # damping 20/30: 2 / 1.666667
        (90, 30, 2 / 2.2),  # damping 120/100
    ],
)
def test_padded_lengths_differ_less(padding: float, length: int, score: float) -> None:
    recipe = adjusted(Recipe(), bm25_k1=1, bm25_b=1, bm25_padding=padding)
    assert isclose(bm25([1], [1.0], length, 10, recipe), score, rel_tol=1e-12)


def test_bm25_of_nothing() -> None:
    assert bm25([], [], 0, 0, TEXTBOOK) == 0
    assert bm25([0, 0], [1.0, 2.0], 5, 5, TEXTBOOK) == 0
    assert isclose(bm25([1], [0.5], 0, 0, TEXTBOOK), 0.5)  # only labels, no text has a word: damping is k1


def test_bm25_in_a_file_is_the_same(memory: nacre.Nacre) -> None:
    for text in ("red fish", "red red car", "a big blue bird"):
        memory.remember(text)
    scores = [hit.bm25 for hit in memory.search("red fish", mode="keyword", recipe=TEXTBOOK).hits]
    assert [None if score is None else round(score, 6) for score in scores] == [1.679912, 0.646255]


@pytest.mark.parametrize(
    ("documents", "with_term", "value"),
    [
        (10, 1, log(1 + 5.5 / 5.5)),  # counted as 5: ln 2, not ln(1 + 9.5/1.5) = 1.9924
        (10, 5, log(1 + 5.5 / 5.5)),
        (10, 8, log(1 + 2.5 / 8.5)),  # in more than half: as any other word
        (1000, 1, log(2)),
        (3, 1, log(2)),  # counted as 1.5: (3 - 1.5 + .5) / (1.5 + .5) = 1
        (1, 1, log(1 + 0.5 / 1.5)),
    ],
)
def test_a_common_word_tells_no_more_than_one_in_half_of_the_texts(
    documents: int, with_term: int, value: float
) -> None:
    assert isclose(idf(documents, with_term, common=True), value, rel_tol=1e-12)


@given(st.integers(1, 10**6), st.data())
def test_a_common_word_never_tells_more_than_another_word(documents: int, data: st.DataObject) -> None:
    with_term = data.draw(st.integers(1, documents))
    assert 0 < idf(documents, with_term, common=True) <= min(idf(documents, with_term), log(2) + 1e-12)


TOKENS = Tokens(
    ("red", "fish", "red"), ("fishi",), 3, ("red", "soup"), ("fish", BREAK, "redder"), ("red", BREAK, "red")
)


@pytest.mark.parametrize(
    ("term", "recipe", "count"),
    [
        # red: twice in the text, once in the summary, twice in the source.
        (Term("red"), adjusted(Recipe(), summary_weight=1, tags_weight=1, source_weight=0.5), 2 + 1 + 2 * 0.5),
        (Term("red"), adjusted(Recipe(), summary_weight=0, tags_weight=0, source_weight=0), 2),
        (Term("red"), adjusted(Recipe(), summary_weight=3, tags_weight=9, source_weight=0), 2 + 3),
        (
            Term("red", prefix=True),
            adjusted(Recipe(), summary_weight=1, tags_weight=10, source_weight=0.5),
            2 + 1 + 10 + 2 * 0.5,
        ),
        (Term("fish"), adjusted(Recipe(), tags_weight=0.25), 1 + 0.25),
        (Term("fishi"), Recipe(), 1),  # a form
        (Term("fishi", prefix=True), Recipe(), 0),  # prefixes are of words
        (Term("soup"), adjusted(Recipe(), summary_weight=0.5), 0.5),
        (Term("soup"), adjusted(Recipe(), summary_weight=0), 0),
        (Term("bird"), Recipe(), 0),
    ],
)
def test_words_of_labels_count_with_their_weights(term: Term, recipe: Recipe, count: float) -> None:
    assert term_counts([term], TOKENS, recipe) == [count]
    assert term_counts([Term("bird"), term, term], TOKENS, recipe) == [0, count, count]
    assert occurs(term, TOKENS) == (term.text != "bird" and not (term.prefix and term.text == "fishi"))


# ---------------------------------------------------------------- what a question or a memory has in common


def test_memories_of_the_same_session() -> None:
    """a 1/61 = .0163934; b 1/62 × 1.25 = .0201613: the factor does not sort, `best_first` does."""
    ranked = fusion.fuse([Match("a", 2.0), Match("b", 1.0)], [], replace(RANKS, alpha=0))
    boosted = boosts.same_session(ranked, {"b", "unknown"}, 0.25)
    assert [(each.id, round(each.score, 7)) for each in boosted] == [("a", 0.0163934), ("b", 0.0201613)]
    assert [each.id for each in best_first(boosted)] == ["b", "a"]
    assert boosted[1].reasons[-1] == Reason("session", "multiply", 1.25, {"weight": 0.25})
    assert boosts.same_session(ranked, {"b"}, 0) == ranked
    assert boosts.same_session(ranked, set(), 1) == ranked


def test_factors_multiply_in_their_order() -> None:
    """1/61 × 1.2 × 1.05 = .0206557."""
    ranked = fusion.fuse([Match("a", 1.0)], [], replace(RANKS, alpha=0))
    (found,) = boosts.recency(boosts.about(ranked, {"a"}, 0.2), {"a": NOW - timedelta(days=1)}, NOW, 0.1)
    assert round(found.score, 7) == 0.0206557
    assert [reason.signal for reason in found.reasons] == ["lexical", "entity", "recency"]


def test_a_share_is_worth_what_it_says_whatever_the_factors() -> None:
    """1/61 × 1.2 + .03 = .0496721, by a share of .03 / 1.2 = .025."""
    ranked = boosts.about(fusion.fuse([Match("a", 1.0)], [], replace(RANKS, alpha=0)), {"a"}, 0.2)
    found = scoring.with_share(ranked[0], Reason("temporal", "add", 0.03, {}))
    assert round(found.score, 7) == 0.0496721
    assert isclose(found.reasons[-1].value, 0.025)
    assert found.score == scoring.score(found.reasons)
    nothing = scoring.with_reason(ranked[0], Reason("confidence", "multiply", 0.0, {}))
    assert scoring.with_share(nothing, Reason("temporal", "add", 0.03, {})).score == 0


# ---------------------------------------------------------------- what only meets a condition


@pytest.mark.parametrize(("alpha", "weight"), [(0, 1.0), (0.3, 0.7), (0.5, 0.5), (1, 1.0)])
def test_what_is_listed_gets_the_share_of_words(alpha: float, weight: float) -> None:
    """weight / (60 + rank); the weight of words, or all of it where only meaning counts."""
    first, second = fusion.fuse([], [], replace(RANKS, alpha=alpha), listed=["z", "a"])
    assert (first.id, second.id) == ("z", "a")
    assert (first.lexical, first.semantic) == (None, None)
    assert first.reasons == (Reason("filter", "add", weight / 61, {"rank": 1, "weight": weight, "k": 60}),)
    assert isclose(second.score, weight / 62, rel_tol=1e-12)


def test_what_is_listed_comes_after_what_has_the_words() -> None:
    """Two have the words: .5/61 and .5/62. Of the listed, a is one of them, so c is third: .5/63, then d: .5/64.

    b has the words and the meaning: .5/62 + .5/61 = .0162612.
    """
    ranked = fusion.fuse([Match("a", 2.0), Match("b", 1.0)], [Match("b", 0.9)], RANKS, listed=["c", "a", "d"])
    assert [each.id for each in ranked] == ["b", "a", "c", "d"]
    assert [round(each.score, 7) for each in ranked] == [0.0162612, 0.0081967, 0.0079365, 0.0078125]
    assert [[reason.signal for reason in each.reasons] for each in ranked] == [
        ["lexical", "semantic"],
        ["lexical"],
        ["filter"],
        ["filter"],
    ]


# ---------------------------------------------------------------- explanations

EFFECTS: list[Effect] = ["add", "multiply"]
REASONS = st.lists(
    st.builds(Reason, st.text(max_size=5), st.sampled_from(EFFECTS), st.floats(0, 10), st.just({})), max_size=6
)


@given(REASONS)
def test_a_score_is_the_sum_of_the_shares_times_the_factors(reasons: list[Reason]) -> None:
    total = sum(reason.value for reason in reasons if reason.effect == "add")
    for reason in reasons:
        total *= reason.value if reason.effect == "multiply" else 1
    assert isclose(scoring.score(reasons), total, rel_tol=1e-9, abs_tol=1e-300)


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        (
            Reason("lexical", "add", 0.5 / 62, {"bm25": 3.456, "rank": 2, "weight": 0.5, "k": 60}),
            "words: BM25 3.46, rank 2 → 0.5 / (60 + 2) = 0.00806",
        ),
        (
            Reason("semantic", "add", 0.3 / 61, {"cosine": 0.8765, "rank": 1, "weight": 0.3, "k": 60}),
            "meaning: cosine 0.876, rank 1 → 0.3 / (60 + 1) = 0.00492",
        ),
        (Reason("recency", "multiply", 1.01, {"days": 9, "weight": 0.1}), "recency: 9 days old → × 1.0100"),
        (Reason("recency", "multiply", 1.05, {"days": 1, "weight": 0.1}), "recency: 1 day old → × 1.0500"),
        (
            Reason("filter", "add", 0.5 / 63, {"rank": 3, "weight": 0.5, "k": 60}),
            "filter: matches every condition, rank 3 by time → 0.5 / (60 + 3) = 0.00794",
        ),
        (
            Reason("temporal", "add", 0.25, {"weight": 1.0}),
            "time: from the time the query names → 0.25000",
        ),
        (Reason("order", "add", 0.3, {"place": 2.0}), "order: number 2 in time among the best → 0.30000"),
        (Reason("exact", "add", 0.3, {"named": 2.0}), "exact: has 2 of what the query names → 0.30000"),
        (Reason("hop", "add", 0.3, {"names": 1.0}), "hop: has 1 of the names in a first hit → 0.30000"),
        (
            Reason("standing", "add", 0.3, {"cosine": 0.4567}),
            "standing: holds for what is to be done, cosine 0.457 → 0.30000",
        ),
        (Reason("fresher", "add", 0.3, {}), "fresher: newer than a better match that is much like it → 0.30000"),
        (Reason("successor", "add", 0.3, {}), "successor: supersedes a better match → 0.30000"),
        (Reason("superseded", "multiply", 0.75, {}), "superseded: behind its successor → × 0.7500"),
        (Reason("session", "multiply", 1.1, {"weight": 0.1}), "session: the same → × 1.1000"),
        (Reason("entity", "multiply", 1.2, {"weight": 0.2}), "entity: about a boosted one → × 1.2000"),
        (Reason("spell", "multiply", 1.2, {}), "spell: × 1.2"),
        (Reason("spell", "add", 0.25, {}), "spell: + 0.25"),
    ],
)
def test_a_reason_as_a_person_reads_it(reason: Reason, line: str) -> None:
    assert scoring.describe(reason) == line


# ---------------------------------------------------------------- through the engine

VOCABULARY = ["alpha", "beta", "gamma", "delta", "running", "run", "getUserName", "猫", "café"]
SENTENCES = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join)
STORES = st.lists(SENTENCES, min_size=1, max_size=8)
QUESTIONS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3).map(" ".join)


@given(STORES, QUESTIONS)
@settings(max_examples=40, deadline=None)
def test_alpha_0_is_keyword_order(texts: list[str], query: str) -> None:
    memory = engine(*texts)
    assert memory.search(query, recipe=Recipe(alpha=0)) == memory.search(query, mode="keyword")
    raw = [hit.bm25 or 0 for hit in memory.search(query, recipe=replace(PLAIN, alpha=0, exact_weight=0)).hits]
    assert raw == sorted(raw, reverse=True)


@pytest.mark.slow
@given(STORES, QUESTIONS)
@settings(max_examples=40, deadline=None)
def test_alpha_1_is_semantic_order(texts: list[str], query: str) -> None:
    memory = engine(*texts)
    assert memory.search(query, recipe=Recipe(alpha=1)) == memory.search(query, mode="semantic")
    raw = [hit.cosine or 0 for hit in memory.search(query, recipe=replace(PLAIN, alpha=1, exact_weight=0)).hits]
    assert raw == sorted(raw, reverse=True)


@pytest.mark.slow
@given(STORES, QUESTIONS, st.sampled_from(["keyword", "semantic", "hybrid"]))
@settings(max_examples=60, deadline=None)
def test_every_hit_is_explained_by_its_reasons(texts: list[str], query: str, mode: Mode) -> None:
    memory = engine(*texts)
    result = memory.search(query, mode=mode)
    assert memory.search(query, mode=mode) == result
    assert engine(*texts).search(query, mode=mode) == result
    assert [(-hit.score, hit.id) for hit in result.hits] == sorted((-hit.score, hit.id) for hit in result.hits)
    for hit in result.hits:
        assert hit.score == scoring.score(hit.reasons)
        signals = [reason.signal for reason in hit.reasons]
        assert ("lexical" in signals) == (hit.bm25 is not None) == (hit.bm25_rank is not None)
        assert ("semantic" in signals) == (hit.cosine is not None) == (hit.cosine_rank is not None)
        expected = "hybrid" if len({"lexical", "semantic"} & set(signals)) == 2 else None
        by_words = signals[0] in ("lexical", "exact", "hop")  # names are looked up by their words
        assert hit.match_type == (expected or ("bm25" if by_words else "semantic"))
        if hit.cosine is not None and hit.similarity is not None:
            assert hit.similarity == (hit.cosine + 1) / 2
            assert hit.cosine >= Recipe().semantic_floor


@pytest.mark.slow
@given(STORES, QUESTIONS, st.floats(-1, 1))
@settings(max_examples=40, deadline=None)
def test_nothing_below_the_semantic_floor_is_a_semantic_match(texts: list[str], query: str, floor: float) -> None:
    memory = engine(*texts)
    everything = memory.search(query, mode="semantic", recipe=PLAIN).hits
    above = memory.search(query, mode="semantic", recipe=replace(PLAIN, semantic_floor=floor)).hits
    expected = [hit for hit in everything if hit.cosine is not None and hit.cosine >= floor]
    # How far a hit stands out depends on what else was found.
    found = [(hit.id, hit.cosine) for hit in above if hit.cosine is not None]  # an identifier brings in others
    assert found == [(hit.id, hit.cosine) for hit in expected]
    by_rank = [
        memory.search(
            query, mode="semantic", recipe=replace(PLAIN, fusion="rank", semantic_floor=least, exact_weight=0)
        ).hits
        for least in (-1, floor)
    ]
    expected = [hit for hit in by_rank[0] if hit.cosine is not None and hit.cosine >= floor]
    assert [replace(hit, relevance=None) for hit in by_rank[1]] == [replace(hit, relevance=None) for hit in expected]


def test_a_memory_below_the_floor_is_still_found_by_its_words() -> None:
    memory = engine("alpha")
    (hit,) = memory.search("alpha", recipe=Recipe(semantic_floor=1.0)).hits + memory.search("x" * 9).hits
    assert hit.bm25 is not None


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(mode: Mode) -> None:
    memory = engine(*(f"alpha {'beta ' * (number % 4)}{number} gamma{number % 3}" for number in range(40)))
    longer = memory.search("alpha beta gamma1", mode=mode, limit=20).hits
    assert len(longer) == 20
    assert memory.search("alpha beta gamma1", mode=mode, limit=5).hits == longer[:5]


def test_equal_texts_of_several_spaces_are_ordered_by_id() -> None:
    memory = engine()
    found = [memory.remember("the same words", space=space, created=NOW).id for space in ("c", "a", "b")]
    result = memory.search("same words", where=Filter(spaces=["a", "b", "c"]))
    assert ids(result) == found == sorted(found)


class RecordingStore(MemoryStore):
    """Remembers how many candidates each channel was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, int] = {}

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        self.asked["lexical"] = limit
        return super().lexical(question, frequencies, where, recipe, limit)

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        self.asked["semantic"] = limit
        return super().semantic(vector, model, question, where, limit, passages_weight)


@pytest.mark.parametrize(
    ("limit", "pool", "asked"),
    [(20, 100, 100), (50, 100, 100), (51, 100, 102), (1000, 100, 2000), (5, 1, 10), (1, 7, 7)],
)
def test_pools_hold_at_least_twice_the_limit(limit: int, pool: int, asked: int) -> None:
    store = RecordingStore()
    engine("alpha", store=store).search("alpha", limit=limit, recipe=Recipe(pool=pool))
    assert store.asked == {"lexical": asked, "semantic": asked}


@pytest.mark.parametrize(
    ("mode", "channels"), [("keyword", {"lexical"}), ("semantic", {"semantic"}), ("hybrid", {"lexical", "semantic"})]
)
def test_only_the_channels_that_count_are_asked(mode: Mode, channels: set[str]) -> None:
    store = RecordingStore()
    engine("alpha", store=store).search("alpha", mode=mode)
    assert store.asked.keys() == channels


def test_a_memory_forgotten_while_it_was_looked_for_is_not_shown() -> None:
    class ForgetfulStore(MemoryStore):
        def lexical(
            self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
        ) -> list[Match]:
            found = super().lexical(question, frequencies, where, recipe, limit)
            self.forget([found[0].id], NOW)
            return found

    memory = engine("alpha", "alpha beta", store=ForgetfulStore())
    assert len(memory.search("alpha", mode="keyword").hits) == 1


def test_ranked_values_are_not_changed_on_the_way() -> None:
    before: Sequence[Ranked] = fusion.fuse([Match("a", 1.0)], [], Recipe())
    boosts.recency(before, {"a": NOW}, NOW, 0.1)
    assert before == fusion.fuse([Match("a", 1.0)], [], Recipe())
