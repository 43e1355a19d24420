"""How two channels become one order: every share by hand, and what holds whatever the channels found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from functools import partial
from math import isclose, isfinite
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import NOW, numbered_ids
from nacre import CLASSIC, Filter, Recipe
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.query import lenses
from nacre.ranking import fusion, scoring
from nacre.ranking.scoring import best_first
from nacre.storage.reference import MemoryStore
from nacre.types.recipe import Fusion, adjusted
from nacre.types.search import Found, Match, Mode, Ranked, SearchRequest, SearchResult

LEAST_APART = 0.001  # of a weight: all that ranks alone can give


def matches(*scores: float, name: str = "w") -> list[Match]:
    """Of a channel, best first: w00, w01, …"""
    return [Match(f"{name}{number:02}", score) for number, score in enumerate(scores)]


def words(found: Sequence[Match], recipe: Recipe | None = None, ideal: float = 0.0) -> fusion.Channel:
    return fusion.by_words(found, 1.0, recipe or Recipe(), ideal)


def meaning(found: Sequence[Match], recipe: Recipe | None = None) -> fusion.Channel:
    return fusion.by_meaning(found, 1.0, recipe or Recipe(), 1.0)


def ids(ranked: Sequence[Ranked]) -> list[str]:
    return [each.id for each in ranked]


def engine(*texts: str) -> Nacre:
    """An engine over the plain reference store, whose ids are m000, m001, … in the order given."""
    opened = Nacre(
        MemoryStore(),
        Hashing(64),
        clock=lambda: NOW,
        zone=UTC,
        log=False,
        make_ids=numbered_ids(digits=3),
    )
    for text in texts:
        opened.remember(text, created=NOW)
    return opened


def shown(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("scores", "gap"),
    [
        (
            [10.0, 8.0],
            1.0,
        ),  # fewer than twenty: nobody else has any of the words, and what they would give is not known
        ([10.0] * 19, 1.0),
        ([10.0] * 19 + [4.0], 0.6),  # 1 - 4 / 10
        ([10.0] * 19 + [4.0] * 40, 0.6),
        ([10.0] * 20, 0.0),
        ([0.0, 0.0], 0.0),  # only labels that count nothing
        ([], 0.0),
    ],
)
def test_how_far_words_stand_out(scores: list[float], gap: float) -> None:
    assert isclose(words(matches(*scores)).gap, gap, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("scores", "ideal", "gap"),
    [
        ([6.0], 10.0, 1.0),  # half of what every word would give convinces
        ([5.0, 1.0], 10.0, 1.0),
        ([2.0, 1.0], 10.0, 0.4),  # 2 / (.5 · 10)
        ([2.0] * 19, 10.0, 0.4),
        ([2.0] * 19 + [1.0], 10.0, 0.5),  # a crowd to stand out from: 1 - 1 / 2
        ([2.0], 0.0, 1.0),  # only common words: none is asked for
        ([], 10.0, 0.0),
    ],
)
def test_how_far_a_few_stand_out_depends_on_what_they_have_of_the_question(
    scores: list[float], ideal: float, gap: float
) -> None:
    assert isclose(words(matches(*scores), ideal=ideal).gap, gap, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("scores", "gap"),
    [
        ([0.5, 0.4], 0.8),  # 1 - .1 / .5: others are at .1 at the most
        ([0.5, 0.04], 0.92),  # 1 - .04 / .5: they are below the last
        ([0.5] * 19 + [0.3], 0.4),  # 1 - .3 / .5
        ([0.5] * 20, 0.0),
        ([0.08], 0.0),  # others are where it is
        ([0.0, -0.2], 0.0),
        ([-0.1, -0.2], 0.0),
        ([], 0.0),
    ],
)
def test_how_far_meaning_stands_out(scores: list[float], gap: float) -> None:
    assert isclose(meaning(matches(*scores)).gap, gap, abs_tol=1e-12)


def test_no_gap_is_larger_than_all_of_the_best() -> None:
    """What points the other way is no further off than what has nothing in common."""
    assert meaning(matches(0.05, -0.5)).gap == 1
    assert meaning(matches(0.5, *([-0.2] * 30))).gap == 1


@pytest.mark.parametrize(
    ("found", "score", "height"),
    [
        (matches(10.0, 8.0), 8.0, 0.8),  # nothing is known below: from 0
        (matches(*([10.0] * 49), 6.0), 8.0, 0.5),  # the fiftieth is worth nothing: (8 - 6) / (10 - 6)
        (matches(*([10.0] * 49), 6.0), 6.0, 0.0),
        (matches(*([10.0] * 49), 6.0, 3.0), 3.0, 0.0),  # and no less is worth less
        (matches(10.0), 10.0, 1.0),
        (matches(0.0), 0.0, 1.0),
    ],
)
def test_the_height_of_words(found: list[Match], score: float, height: float) -> None:
    assert isclose(words(found).share(Found(score, 2)).numbers["height"], height, abs_tol=1e-12)


def test_the_height_of_meaning() -> None:
    """From .1: (.4 - .1) / (.6 - .1) = .6. Where the last of a few is below that, from there: .3 / .6 = .5."""
    assert isclose(meaning(matches(0.6, 0.4)).share(Found(0.4, 2)).numbers["height"], 0.6)
    assert isclose(meaning(matches(0.6, 0.3, 0.0)).share(Found(0.3, 2)).numbers["height"], 0.5)


def test_places_of_pool_and_crowd_are_the_recipe_s() -> None:
    """crowd 2: 1 - 8 / 10 = .2; pool 3: (8 - 5) / (10 - 5) = .6."""
    channel = words(matches(10.0, 8.0, 5.0, 1.0), adjusted(Recipe(), crowd=2, pool=3))
    assert isclose(channel.gap, 0.2)
    assert isclose(channel.share(Found(8.0, 2)).numbers["height"], 0.6)


def test_below_a_best_that_is_the_floor_nothing_has_height() -> None:
    """A pool of 1 and a limit of 10: the first is the floor, too."""
    channel = words(matches(10.0, 8.0), Recipe(pool=1))
    assert channel.share(Found(10.0, 1)).numbers["height"] == 1
    assert channel.share(Found(8.0, 2)).numbers["height"] == 0


def test_two_short_lists_by_hand() -> None:
    """alpha .75, fewer than twenty each; ranks alone give .001 of a weight at the most.

    words    gap 1; heights 4/4, 2/4                       a .25 · 1   = .25     b .25 · .5 = .125
    meaning  gap 1 - .1/.5 = .8, squared .64; heights 1,   b .75 · .64 · 1    = .48
             (.3 - .1) / .4 = .5                           c .75 · .64 · .5   = .24
    """
    recipe = Recipe(alpha=0.75)
    ranked = fusion.fuse([Match("a", 4.0), Match("b", 2.0)], [Match("b", 0.5), Match("c", 0.3)], recipe)
    assert ids(ranked) == ["b", "a", "c"]
    for each, expected in zip(ranked, (0.605, 0.25, 0.24), strict=True):
        assert expected < each.score < expected + LEAST_APART
    first, second = ranked[0].reasons
    assert (first.signal, second.signal) == ("lexical", "semantic")
    assert first.numbers == {"bm25": 2.0, "rank": 2, "weight": 0.25, "coverage": 1.0, "gap": 1.0, "height": 0.5}
    assert second.numbers == pytest.approx(
        {"cosine": 0.5, "rank": 1, "weight": 0.75, "coverage": 1.0, "gap": 0.8, "height": 1.0}
    )
    assert ranked[0].lexical == Found(2.0, 2)


def test_a_few_that_have_little_of_the_question_count_less() -> None:
    """A fifth of what every word would give: gap .4, squared .16, so .25 · .16 = .04 is the share of words."""
    (few,) = fusion.fuse([Match("a", 2.0)], [], Recipe(alpha=0.75), ideal=10.0)
    assert 0.04 < few.score < 0.04 + LEAST_APART
    assert few.reasons[0].numbers == pytest.approx(
        {"bm25": 2.0, "rank": 1, "weight": 0.25, "coverage": 1.0, "gap": 0.4, "height": 1.0}
    )


def test_the_order_by_rank_alone_is_flat() -> None:
    """Both channels without a gap: .001 · .25 · 60 / 61, and 60 / 62 for the next: factors as small as 1.02 decide."""
    first, second, *_ = fusion.fuse(matches(*([3.0] * 20)), [], Recipe(alpha=0.75))
    assert isclose(first.score, 0.001 * 0.25 * 60 / 61)
    assert isclose(second.score, 0.001 * 0.25 * 60 / 62)
    for k, share in ((5, 5 / 6), (0, 1 / 2)):  # a k of 0 counts as 1: nothing is lost
        first, *_ = fusion.fuse(matches(*([3.0] * 20)), [], Recipe(alpha=0.75, k=k))
        assert isclose(first.score, 0.001 * 0.25 * share)


def test_a_relation_is_worth_a_part_of_a_text_with_its_words() -> None:
    """a .25, b .25 · .2 = .05. The relations of b and c have .3 and .15 of the best text: .8 · .3 = .24, and .12.

    With an ideal of 10, 3 and 1.5 are .6 and .3 of the 5 that convince: .36 · .24 = .0864, and .09 · .12 = .0108.
    """
    ranked = fusion.fuse([Match("a", 10.0), Match("b", 2.0)], [], Recipe(alpha=0.75))
    relations = [
        fusion.MatchedRelation("b", 9.0, 3.0),
        fusion.MatchedRelation("c", 9.0, 0.1),
        fusion.MatchedRelation("c", 8.0, 1.5),
    ]
    for ideal, expected in ((0.0, {"a": 0.25, "b": 0.29, "c": 0.12}), (10.0, {"a": 0.25, "b": 0.1364, "c": 0.0108})):
        merged, winning = fusion.merged(ranked, relations, Recipe(alpha=0.75), ideal)
        assert {each.id: each.score for each in merged} == pytest.approx(expected, abs=2 * LEAST_APART)
        assert all(each.score == scoring.score(each.reasons) for each in merged)
        assert winning == {"b": 0, "c": 2}  # more than .05, and more than nothing
    alone, _ = fusion.merged([], relations, Recipe(alpha=0.75))
    assert [(each.id, each.reasons[0].signal) for each in alone] == [("b", "relation"), ("c", "relation")]
    assert [each.score for each in alone] == pytest.approx([0.8, 0.4], abs=LEAST_APART)


def test_a_relation_can_be_the_best_and_its_height_is_bounded() -> None:
    ranked = fusion.fuse([Match("a", 10.0)], [], Recipe(alpha=0.75))
    for words, share in ((10.0, 0.8), (15.0, 1.2), (20.0, 1.6), (99.0, 1.6)):
        relation = fusion.MatchedRelation("b", 9.0, words)
        merged, winning = fusion.merged(ranked, [relation], Recipe(alpha=0.75), ideal=20.0)
        assert ids(merged) == ["b", "a"]
        assert merged[0].score == pytest.approx(share, abs=LEAST_APART)
        assert winning == {"b": 0}
    _, winning = fusion.merged(ranked, [fusion.MatchedRelation("a", 9.0, 1.0)], Recipe(alpha=0.75), ideal=20.0)
    assert winning == {}  # the text says more


def test_what_the_embedder_does_not_understand_counts_less() -> None:
    """Half of a question understood: an eighth of .75 · .64 = .48, so .06, is left of a share."""
    found = [Match("a", 0.5)]
    (half,) = fusion.fuse([], found, Recipe(alpha=0.75), coverage=0.5)
    assert 0.06 < half.score < 0.06 + LEAST_APART
    assert half.reasons[0].numbers["coverage"] == 0.5
    (none,) = fusion.fuse([], found, Recipe(alpha=0.75), coverage=0.0)
    assert 0 < none.score < LEAST_APART
    (ranked, _) = fusion.fuse([Match("b", 9.0)], found, Recipe(alpha=0.75), coverage=0.5)
    assert ranked.id == "b"


def test_a_share_as_a_person_reads_it() -> None:
    channel = replace(meaning(matches(0.5, 0.3)), weight=0.75)
    assert scoring.describe(channel.share(Found(0.3, 2))).startswith(
        "meaning: cosine 0.300, rank 2 → 0.75 × 0.80² × 0.50 = 0.24"
    )
    half = replace(channel, coverage=0.5)
    assert scoring.describe(half.share(Found(0.5, 1))).startswith(
        "meaning: cosine 0.500, rank 1 → 0.75 × 0.50³ × 0.80² × 1.00 = 0.06"
    )


def test_where_nothing_stands_out_ranks_decide() -> None:
    """Thirty equals in each channel, in opposite orders: alpha .75 follows meaning, alpha .25 words."""
    lexical = matches(*([3.0] * 30))
    semantic = [Match(match.id, 0.4) for match in reversed(lexical)]
    order = [match.id for match in lexical]
    assert ids(fusion.fuse(lexical, semantic, Recipe(alpha=0.75)))[0] == order[-1]
    assert ids(fusion.fuse(lexical, semantic, Recipe(alpha=0.25)))[0] == order[0]
    assert ids(fusion.fuse(lexical, [], Recipe())) == order
    assert ids(fusion.fuse([], semantic, Recipe())) == order[::-1]


def test_beyond_the_floor_a_channel_keeps_its_order() -> None:
    lexical = matches(*(100.0 - each for each in range(100)))
    ranked = fusion.fuse(lexical, [], Recipe())
    assert ids(ranked) == [match.id for match in lexical]
    assert {each.reasons[0].numbers["height"] for each in ranked[50:]} == {0.0}


def test_listed_ones_come_after_all_that_were_found() -> None:
    lexical, semantic = matches(9.0, 0.0001), matches(0.9, 0.1, name="v")
    for alpha in (0.0, 0.25, 0.75, 1.0):
        found = (lexical if alpha < 1 else [], semantic if alpha > 0 else [])
        ranked = fusion.fuse(*found, Recipe(alpha=alpha), listed=["z", "w00", "y"])
        assert ids(ranked)[-2:] == ["z", "y"] or (alpha == 1 and ids(ranked)[-3:] == ["z", "w00", "y"])
        least = min(each.score for each in ranked if each.lexical or each.semantic)
        # No factor is that strong: .72 at the least, 1.77 at the most.
        assert all(0 < each.score * 1.77 < least * 0.72 for each in ranked if not (each.lexical or each.semantic))


# ---------------------------------------------------------------- whatever the channels found

BM25 = st.floats(0.0, 30.0)
COSINES = st.floats(-1.0, 1.0)


def lists(scores: st.SearchStrategy[float], most: int = 70) -> st.SearchStrategy[list[Match]]:
    """A channel's matches, among them equals, of a hundred memories that channels share."""
    several = st.lists(scores | st.sampled_from([0.0, 0.3, 0.5]), max_size=most)
    return st.tuples(several, st.permutations(range(most))).map(
        lambda drawn: [
            Match(f"m{number:02}", score)
            for number, score in zip(drawn[1], sorted(drawn[0], reverse=True), strict=False)
        ]
    )


RECIPES = st.builds(
    partial(adjusted, Recipe()),
    fusion=st.sampled_from(get_args(Fusion)),
    alpha=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0.01, 0.99),
    pool=st.sampled_from([1, 5, 50, 200]),
    crowd=st.sampled_from([1, 3, 20, 100]),
    k=st.sampled_from([0, 5, 60]),
)
KNOWN = st.sampled_from([0.0, 0.5, 1.0])


@pytest.mark.slow
@given(lists(BM25), lists(COSINES), RECIPES, KNOWN)
@settings(max_examples=150, deadline=None)
def test_scores_are_numbers_and_channels_keep_their_order(
    lexical: list[Match], semantic: list[Match], recipe: Recipe, known: float
) -> None:
    ranked = fusion.fuse(lexical, semantic, recipe, coverage=known)
    assert {each.id for each in ranked} == {match.id for match in (*lexical, *semantic)}
    assert fusion.fuse(lexical, semantic, recipe, coverage=known) == ranked
    for each in ranked:
        assert isfinite(each.score)
        assert each.score >= 0
        assert each.score == scoring.score(each.reasons)
        if recipe.fusion != "boost":
            assert each.score <= 1 + LEAST_APART  # weights are 1 together, and nothing is above the best
        assert {"gap", "height"}.isdisjoint(each.reasons[0].numbers) == (recipe.fusion != "height")
    for alone, order in ((fusion.fuse(lexical, [], recipe), lexical), (fusion.fuse([], semantic, recipe), semantic)):
        scores = [each.score for each in alone]
        assert scores == sorted(scores, reverse=True)
        if recipe.fusion == "boost":  # raw scores, so that equal ones stay equal
            raw = {match.id: match.score for match in order}
            assert [raw[each.id] for each in alone] == pytest.approx([match.score for match in order])
        elif recipe.alpha not in (0, 1):  # a channel with a weight of nothing orders nothing
            assert ids(alone) == [match.id for match in order]


@pytest.mark.slow
@given(lists(BM25), lists(COSINES), RECIPES, st.data())
@settings(max_examples=100, deadline=None)
def test_what_is_no_worse_in_both_channels_comes_no_later(
    lexical: list[Match], semantic: list[Match], recipe: Recipe, data: st.DataObject
) -> None:
    both = [match.id for match in lexical if match.id in {each.id for each in semantic}]
    if len(both) < 2:
        return
    one, other = data.draw(st.permutations(both))[:2]
    places = fusion.places(lexical), fusion.places(semantic)
    if all(place[one].rank < place[other].rank for place in places):
        order = ids(fusion.fuse(lexical, semantic, recipe))
        assert order.index(one) < order.index(other)


@given(lists(BM25), st.data(), st.sampled_from([1, 5, 50]))
@settings(max_examples=80, deadline=None)
def test_a_higher_score_gives_no_smaller_share(lexical: list[Match], data: st.DataObject, pool: int) -> None:
    channel = words(lexical, Recipe(pool=pool))
    low, high = sorted(data.draw(st.tuples(BM25, BM25)))
    rank = data.draw(st.integers(1, 100))
    assert channel.share(Found(low, rank)).value <= channel.share(Found(high, rank)).value
    assert channel.share(Found(high, rank + 1)).value < channel.share(Found(high, rank)).value


@pytest.mark.slow
@given(lists(BM25), lists(COSINES), RECIPES, st.sampled_from([2.0**-10, 0.5, 4.0, 2.0**20]))
@settings(max_examples=80, deadline=None)
def test_the_scale_of_bm25_does_not_matter(
    lexical: list[Match], semantic: list[Match], recipe: Recipe, factor: float
) -> None:
    """Powers of two: not even rounding differs. BM25 has no scale that a person could know."""
    scaled = [Match(match.id, match.score * factor) for match in lexical]
    one, other = fusion.fuse(lexical, semantic, recipe), fusion.fuse(scaled, semantic, recipe)
    small = 1e-300  # below which a float has no more digits to halve
    if all(match.score > small or match.score == 0 for match in lexical):
        assert ids(one) == ids(other)
        if recipe.fusion != "boost":  # which keeps the scale
            assert [each.score for each in one] == [each.score for each in other]


@pytest.mark.slow
@given(lists(BM25), st.permutations(range(70)), st.integers(20, 70), COSINES)
@settings(max_examples=80, deadline=None)
def test_a_channel_in_which_nothing_stands_out_moves_only_near_equals(
    lexical: list[Match], order: list[int], many: int, cosine: float
) -> None:
    flat = [Match(f"m{number:02}", cosine) for number in order[:many]]
    recipe = Recipe()
    alone = {each.id: each.score for each in fusion.fuse(lexical, [], recipe)}
    together = [each for each in ids(fusion.fuse(lexical, flat, recipe)) if each in alone]
    place = {each: number for number, each in enumerate(together)}
    for one, better in alone.items():
        for other, worse in alone.items():
            if better > worse + recipe.alpha * LEAST_APART:
                assert place[one] < place[other]


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=2))
def test_equals_are_ordered_by_id(chosen: list[str]) -> None:
    """Each is the only match of a channel of the same weight."""
    first, second = chosen[:2]
    ranked = fusion.fuse([Match(first, 2.0)], [Match(second, 2.0)], Recipe(fusion="rank", alpha=0.5))
    assert ids(ranked) == sorted([first, second])
    assert ids(best_first([Ranked(each, 1.0, (), None, None) for each in chosen])) == sorted(chosen)


# ---------------------------------------------------------------- signals among equals


@pytest.mark.parametrize("many", [2, 19, 20, 40])
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_time_in_the_question_decides_between_equals_however_many(many: int, mode: Mode) -> None:
    """The second of many that say the same of their number: only it is from yesterday."""
    memory = engine()
    for number in range(many):
        age = timedelta(days=1 if number == 1 else 400)
        memory.remember("standup notes", space=f"s{number:02}", created=NOW - age)
    where = Filter(spaces=[f"s{number:02}" for number in range(many)])
    recipe = Recipe(recency_weight=0, fresh_weight=0)
    assert shown(memory.search("standup notes", mode=mode, where=where, recipe=recipe))[:2] == ["m000", "m001"]
    assert shown(memory.search("standup notes yesterday", mode=mode, where=where, recipe=recipe))[0] == "m001"


@pytest.mark.parametrize("many", [2, 19, 20, 40])
def test_of_equals_next_to_each_other_the_newer_comes_first(many: int) -> None:
    memory = engine()
    for number in range(many):
        memory.remember("standup notes", space=f"s{number:02}", created=NOW - timedelta(days=0 if number else 400))
    first, second, *_ = shown(
        memory.search(
            "standup notes",
            mode="keyword",
            where=Filter(spaces=[f"s{number:02}" for number in range(many)]),
            limit=many,
        )
    )
    assert first == "m001"
    assert second != "m000" or many == 2


# ---------------------------------------------------------------- through the engine


@pytest.mark.slow
def test_one_channel_alone_is_in_its_order_beyond_every_pool() -> None:
    memory = engine(*(f"tea {'pot ' * (number % 37)}{'tea ' * (number % 5)}{number}" for number in range(150)))
    plain = Recipe(recency_weight=0, semantic_floor=-1, pool=20)
    by_words = memory.search("tea pot", recipe=replace(plain, alpha=0), limit=200, collapse=False).hits
    assert len(by_words) == 150
    assert [hit.bm25_rank for hit in by_words] == list(range(1, 151))
    scores = [hit.bm25 or 0 for hit in by_words]
    assert scores == sorted(scores, reverse=True)
    by_meaning = memory.search("tea pot", recipe=replace(plain, alpha=1), limit=200, collapse=False).hits
    assert [hit.cosine_rank for hit in by_meaning] == list(range(1, 151))
    cosines = [hit.cosine or 0 for hit in by_meaning]
    assert cosines == sorted(cosines, reverse=True)
    everything = memory.search("tea pot", recipe=plain, limit=200, collapse=False).hits
    assert {hit.id for hit in everything} == {hit.id for hit in by_words}


def textbook(*lists: Sequence[str], k: int = 60) -> list[str]:
    """Reciprocal rank fusion as everyone writes it."""
    scores: dict[str, float] = {}
    for order in lists:
        for rank, each in enumerate(order, 1):
            scores[each] = scores.get(each, 0.0) + 0.5 / (k + rank)
    return sorted(scores, key=lambda each: (-scores[each], each))


@pytest.mark.slow
@given(lists(BM25), lists(COSINES))
@settings(max_examples=80, deadline=None)
def test_classic_is_the_textbook_s_order(lexical: list[Match], semantic: list[Match]) -> None:
    found = ids(fusion.fuse(lexical, semantic, CLASSIC))
    assert found == textbook([match.id for match in lexical], [match.id for match in semantic])


VOCABULARY = ["tea", "pot", "kettle", "cup", "milk", "how", "last", "week"]
SENTENCES = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(" ".join)


@pytest.mark.slow
@given(st.lists(SENTENCES, min_size=1, max_size=9), SENTENCES)
@settings(max_examples=40, deadline=None)
def test_classic_is_the_textbook_s_order_through_the_engine(texts: list[str], query: str) -> None:
    memory = engine()
    for number, text in enumerate(texts):
        memory.remember(text, created=NOW - timedelta(days=number), session="s", namespace="patterns")
    by_words = shown(memory.search(query, mode="keyword", recipe=CLASSIC, collapse=False))
    by_meaning = shown(memory.search(query, mode="semantic", recipe=CLASSIC, collapse=False))
    both = memory.search(query, recipe=CLASSIC, collapse=False)
    assert shown(both) == textbook(by_words, by_meaning)[:10]
    assert {reason.signal for hit in both.hits for reason in hit.reasons} <= {"lexical", "semantic"}
    through = memory.search(query, lens="classic", collapse=False)
    assert (through.lens, through.hits) == ("classic", both.hits)


def test_a_memory_with_one_word_of_many_stands_out_by_that() -> None:
    """Of four words asked for, one is in one of three memories, and three in none.

    idf(kettle) = ln(1 + 2.5 / 1.5) = .980829, idf of a word in none = ln(1 + 3.5 / .5) = 2.079442;
    ideal 1.9 · (.980829 + 3 · 2.079442) = 13.716395, and half of it convinces.
    """
    memory = engine("kettle", "milk", "sugar")
    (hit,) = memory.search("kettle spoon saucer napkin", mode="keyword").hits
    assert hit.bm25 is not None
    assert isclose(hit.reasons[0].numbers["gap"], hit.bm25 / (0.5 * 13.716395), rel_tol=1e-6)
    assert memory.search("kettle", mode="keyword").hits[0].reasons[0].numbers["gap"] == 1


def test_the_lens_classic_is_the_recipe() -> None:
    asked = SearchRequest(query="tea")
    assert lenses.apply(lenses.BUILT_IN["classic"], asked).request == replace(asked, recipe=CLASSIC)


class Deaf(Hashing):
    """Understands a tenth of every question."""

    def vocabulary_coverage(self, text: str) -> float:
        return 0.1 * super().vocabulary_coverage(text)


def test_a_question_that_the_embedder_does_not_understand_is_answered_by_words() -> None:
    """Meaning prefers words that look alike; of a tenth understood, a thousandth of its trust is left."""
    texts = ("kettle in the house", "kettles and kettles", "kettlework is kettlework")
    query = "kettle house"
    for embedder in (Hashing(64), Deaf(64)):
        memory = Nacre(MemoryStore(), embedder, clock=lambda: NOW, log=False)
        for text in texts:
            memory.remember(text)
        hits = memory.search(query).hits
        known = {reason.numbers["coverage"] for hit in hits for reason in hit.reasons if reason.signal == "semantic"}
        assert known == {embedder.vocabulary_coverage(query)}
        alone = memory.search(query, mode="semantic").hits
        assert {hit.reasons[0].numbers["coverage"] for hit in alone} == {1.0}  # there is nothing else to trust
    assert hits[0].text == texts[0]


# ---------------------------------------------------------------- boosted


@pytest.mark.parametrize(
    ("weight", "order", "scores"),
    [
        # 6 · (1 + .2 w), 5 · (1 + .6 w), 2 · (1 + 0 w); the last one has least · (.7 + 1) / 4
        (0.0, ["a", "b", "c", "d"], [6.0, 5.0, 2.0, 0.85]),
        (0.5, ["a", "b", "c", "d"], [6.6, 6.5, 2.0, 0.85]),
        (1.0, ["b", "a", "c", "d"], [8.0, 7.2, 2.0, 0.85]),
        (10.0, ["b", "a", "c", "d"], [35.0, 18.0, 2.0, 0.85]),
    ],
)
def test_boosted_by_hand(weight: float, order: list[str], scores: list[float]) -> None:
    lexical = [Match("a", 6.0), Match("b", 5.0), Match("c", 2.0)]
    semantic = [Match("d", 0.7), Match("b", 0.6)]
    recipe = Recipe(fusion="boost", boost_weight=weight)
    ranked = fusion.fuse(lexical, semantic, recipe, cosines={"a": 0.2, "c": -0.1})
    assert ids(ranked) == order
    assert [each.score for each in ranked] == pytest.approx(scores)
    for each in ranked:
        assert each.score == scoring.score(each.reasons)
    (only_near,) = (each for each in ranked if each.id == "d")
    assert [reason.signal for reason in only_near.reasons] == ["semantic"]
    said = [scoring.describe(reason) for each in ranked if each.id == "b" for reason in each.reasons]
    boost = f"boost: BM25 5.00 × {weight:g} × cosine 0.600 → {5 * weight * 0.6:.5f}"
    assert said == ["words: BM25 5.00, rank 2 → 5.00000", *([boost] if weight else [])]
    assert scoring.describe(only_near.reasons[0]) == (
        "meaning: cosine 0.700, rank 1 → 2.00000 × (0.700 + 1) / 4 = 0.85000"
    )


def test_boosted_where_no_memory_has_the_words() -> None:
    ranked = fusion.fuse([], [Match("a", 0.6), Match("b", -0.2)], Recipe(fusion="boost"))
    assert ids(ranked) == ["a", "b"]
    assert [each.score for each in ranked] == pytest.approx([0.4, 0.2])


def test_boosted_searches_compare_every_match_by_words() -> None:
    """Below the floor, the semantic channel finds nothing; the cosines count all the same."""
    texts = ("tea pot", "tea " + "and other things that are not meant " * 3, "coffee cup")
    memory = engine(*texts)
    plain = Recipe(fusion="boost", recency_weight=0, hop_weight=0)
    usual = {hit.id: hit.cosine for hit in memory.search("tea pot", recipe=Recipe(semantic_floor=-1)).hits}
    for floor in (-1.0, 0.5):
        hits = memory.search("tea pot", recipe=replace(plain, semantic_floor=floor)).hits
        assert shown(SearchResult(hits))[:2] == ["m000", "m001"]
        for hit in hits[:2]:
            assert hit.bm25 is not None
            assert hit.score == pytest.approx(hit.bm25 * (1 + max(0, usual[hit.id] or 0)))
    assert len(memory.search("tea pot", recipe=replace(plain, semantic_floor=-1)).hits) == 3
    by_words = memory.search("tea pot", mode="keyword", recipe=plain).hits
    assert [hit.score for hit in by_words] == [hit.bm25 for hit in by_words]
    by_meaning = memory.search("tea pot", mode="semantic", recipe=replace(plain, semantic_floor=-1)).hits
    assert [hit.cosine for hit in by_meaning] == sorted((hit.cosine or 0 for hit in by_meaning), reverse=True)


# ---------------------------------------------------------------- long memories


def test_a_long_memory_is_placed_by_its_score_and_shows_its_cosine() -> None:
    """The second has the higher cosine, .62, and .05 are taken off it for its passages."""
    found = [Match("short", 0.6), Match("long", 0.57, None, 0.62), Match("far", 0.2)]
    short, long, _ = fusion.fuse([], found, Recipe(alpha=1.0))
    assert [short.id, long.id] == ["short", "long"]
    assert (long.semantic, long.semantic.cosine if long.semantic else None) == (Found(0.57, 2, None, 0.62), 0.62)
    (reason,) = long.reasons
    assert isclose(reason.numbers["height"], (0.57 - 0.1) / (0.6 - 0.1))
    assert scoring.describe(reason).startswith("meaning: cosine 0.620 - 0.050 for its passages, rank 2 → ")
    assert scoring.describe(short.reasons[0]).startswith("meaning: cosine 0.600, rank 1 → ")


# ---------------------------------------------------------------- a further model


def test_a_further_model_by_hand() -> None:
    """It speaks for z and y. Its best stands out by 1 - 0.1 / 0.5 = 0.8 of its score: where there are few matches, the
    crowd and the floor are the cosine of unrelated texts. z has all of its height, y (0.3 - 0.1) / (0.5 - 0.1) = half.
    What the store's own model says of z does not count. The own model's best stands out by 1 - 0.1 / 0.4 = 0.75."""
    own = [Match("a", 0.4), Match("z", 0.25)]
    further = fusion.Further([Match("z", 0.5), Match("a", 0.4), Match("y", 0.3)], 0.9, {"y", "z"})
    recipe = adjusted(Recipe(), alpha=0.5)
    found = {each.id: each for each in fusion.fuse([], own, recipe, further=further)}
    tail = 0.001 * 0.5 * recipe.k
    shares = {
        "a": 0.5 * 0.75**2 * 1 + tail / (recipe.k + 1),
        "z": 0.5 * 0.9**3 * 0.8**2 * 1 + tail / (recipe.k + 1),
        "y": 0.5 * 0.9**3 * 0.8**2 * 0.5 + tail / (recipe.k + 3),
    }
    assert {each: found[each].score for each in shares} == pytest.approx(shares)
    assert {each: found[each].reasons[0].signal for each in shares} == {
        "a": "semantic",
        "y": "multilingual",
        "z": "multilingual",
    }
    assert all(each.score == scoring.score(each.reasons) and len(each.reasons) == 1 for each in found.values())
    assert found["z"].semantic == Found(0.5, 1, None, None)


@pytest.mark.parametrize("how", get_args(Fusion))
def test_where_a_further_model_speaks_for_nothing_nothing_changes(how: Fusion) -> None:
    recipe = adjusted(Recipe(), fusion=how)
    lexical, semantic = matches(5.0, 3.0), matches(0.6, 0.5, 0.2, name="m")
    further = fusion.Further(matches(0.9, 0.8, name="m"), 1.0, frozenset())
    assert fusion.fuse(lexical, semantic, recipe, further=further) == fusion.fuse(lexical, semantic, recipe)


def test_meaning_across_languages_wins_over_words_that_match_by_accident() -> None:
    """A German question has a name and a number in common with some notes, far less than all of its words."""
    lexical = [Match(f"a{number}", 3.0) for number in range(4)]
    further = fusion.Further([Match("right", 0.62), *(Match(f"n{number:02}", 0.3) for number in range(30))])
    ranked = fusion.fuse(lexical, [], Recipe(), ideal=25.0, further=further)
    assert ranked[0].id == "right"
