"""Reranking: every share by hand, which texts the reranker gets, and when it is not asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import exp
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from command_line import Cli
from engines import NOW, make_engines, opened, said, scores
from nacre import CLASSIC, EmbedderUnavailable, Filter, InvalidInput, NewFact, Recipe, StoreBusy
from nacre.embedders.hashing import Hashing
from nacre.engine import rerank_stage
from nacre.engine.engine import Nacre
from nacre.interfaces import Reranker, RerankScore, RerankText
from nacre.query.ast import Condition
from nacre.ranking import rerank, scoring
from nacre.ranking.scoring import best_first
from nacre.rerankers import nacre_rerank
from nacre.storage.reference import MemoryStore
from nacre.types.memory import NewMemory
from nacre.types.recipe import adjusted
from nacre.types.search import Found, Hit, Mode, Ranked, Reason, RerankMode, SearchRequest, SearchResult
from nacre.types.views import Neighbours
from stores import LOCAL_STORES, REAL_KINDS, Stores
from strategies import SESSION_FILTERS, SESSION_QUERIES, session_memories

DAY = timedelta(days=1)
# Nothing but words, clear meaning and reading again.
PLAIN = adjusted(Recipe(), maxsim_weight=0, recency_weight=0, semantic_floor=0.3, echo_next=0, echo_far=0, echo_back=0)
HEARING = adjusted(PLAIN, echo_next=0.5, echo_far=0.2, echo_back=0.2)
FRUIT = ("ripe apricots from the south", "apricots", "dried apricots or none", "a pot of tea")


class Counted:
    """A stand-in that likes texts by a number in them, and keeps what it was given to read."""

    def __init__(
        self,
        known: float = 1.0,
        liking: Callable[[str], float] | None = None,
        answering: Callable[[str], float | None] | None = None,
    ) -> None:
        self.share_known = known
        self.liking = liking or (lambda text: float(len(text)))
        self.answering = answering or (lambda _: None)  # it cannot say
        self.read: list[tuple[str, RerankText]] = []
        self.fails: Exception | None = None

    @property
    def fingerprint(self) -> str:
        return "counted"

    def vocabulary_coverage(self, question: str) -> float:
        assert question.strip()
        return self.share_known

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[RerankScore]:
        if self.fails is not None:
            raise self.fails
        self.read += [(question, text) for text in texts]
        return [RerankScore(self.liking(text.text), self.answering(text.text)) for text in texts]

    @property
    def texts(self) -> dict[str, RerankText]:
        return {placed.text: placed for _, placed in self.read}


PORT: Reranker = Counted()  # checked by mypy


class Make(Protocol):
    """Makes an engine on a store that already holds some memories, whose ids are m0, m1, … in their order."""

    def __call__(self, *items: str | NewMemory, reranker: Reranker | None) -> Nacre: ...


@pytest.fixture(params=LOCAL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path, uncached: None) -> Iterator[Make]:
    assert uncached is None
    with make_engines(request.param, tmp_path) as made:
        yield made


def shares(hits: Sequence[Hit]) -> dict[str, float]:
    """What reading again gave to each that was read."""
    return {hit.id: reason.value for hit in hits for reason in hit.reasons if reason.signal == "rerank"}


def said_of(memory: Nacre, question: str, recipe: Recipe, **options: Any) -> Mapping[str, float]:
    """The log-odds of an answer that a search's trace has, by id."""
    return memory._searcher.trace(SearchRequest(query=question, recipe=recipe, **options)).ranking.answers


def placed(memory_id: str, score: float, *, both: bool = False) -> Ranked:
    found = Found(1.0, 1) if both else None
    return Ranked(memory_id, score, (Reason("lexical", "add", score, {}),), found, found)


# ---------------------------------------------------------------- by hand


def test_the_share_by_hand() -> None:
    """a, b and c are read, .8 − .3 = .5 apart; of the question four fifths are known: .8² = .64.

    a  least                              = 0      .8
    b  .2 · .64 · .5 · (3.5 − −1.0)       = .288   .788
    c  .2 · .64 · .5 · (6.5 − −1.0)       = .48    .78
    d  was not read                                 .25
    """
    ranked = [placed(each, score) for each, score in (("a", 0.8), ("b", 0.5), ("c", 0.3), ("d", 0.25))]
    found = rerank.reranked(ranked, {"a": -1.0, "b": 3.5, "c": 6.5}, weight=0.2, coverage=0.8)
    assert {each.id: each.score for each in found} == pytest.approx({"a": 0.8, "b": 0.788, "c": 0.78, "d": 0.25})
    assert found[3] is ranked[3]
    assert [each.reasons[-1].value for each in found[:3]] == pytest.approx([0, 0.288, 0.48])
    assert found[2].reasons[-1] == Reason(
        "rerank",
        "add",
        found[2].reasons[-1].value,
        {"rank": 1, "reranked": 3, "unread": 0, "weight": 0.2, "coverage": 0.8, "spread": 0.5, "above": 7.5},
    )
    assert all(each.score == scoring.score(each.reasons) for each in found)


def test_close_scores_are_still_given_apart() -> None:
    """.50 and .49 are .01 apart; a tenth of the best, .05, is more: .2 · .05 · 2 = .02."""
    found = rerank.reranked([placed("a", 0.5), placed("b", 0.49)], {"a": 1.0, "b": 3.0}, weight=0.2, coverage=1)
    assert [each.score for each in found] == pytest.approx([0.5, 0.51])


def test_equal_scores_change_nothing_and_without_scores_nothing_moves() -> None:
    ranked = [placed("a", 0.5), placed("b", 0.4)]
    assert [each.score for each in rerank.reranked(ranked, {"a": 2.0, "b": 2.0}, 0.2, 1)] == [0.5, 0.4]
    assert rerank.reranked(ranked, {}, 0.2, 1) == ranked
    assert rerank.reranked([], {}, 0.2, 1) == []


@pytest.mark.parametrize(
    ("ranked", "clear"),
    [
        ([], True),
        ([placed("a", 1)], True),
        ([placed("a", 1, both=True), placed("b", 0.29)], True),
        ([placed("a", 1, both=True), placed("b", 0.3)], False),
        ([placed("a", 1), placed("b", 0.29, both=True)], False),  # only one channel has found the first
        ([placed("a", 1)._replace(lexical=Found(1, 1)), placed("b", 0.1)], False),
        ([placed("a", 1)._replace(semantic=Found(1, 1)), placed("b", 0.1)], False),
        ([placed("a", 0, both=True), placed("b", 0)], False),
    ],
)
def test_whether_the_order_is_clear(ranked: list[Ranked], clear: bool) -> None:
    assert rerank.is_clear(ranked, 0.3) is clear


def test_a_search_by_hand(make: Make) -> None:
    """The longer the better, for this reranker: each letter more than the shortest has is worth .15 of the spread."""
    reranker = Counted()
    memory = make(*FRUIT, reranker=reranker)
    before = scores(memory.search("apricots", recipe=PLAIN, rerank=False))
    assert next(iter(before)) == "m1"
    spread = max(before.values()) - min(before.values())
    result = memory.search("apricots", recipe=PLAIN)
    longer = {"m0": 20, "m1": 0, "m2": 14}  # than "apricots"
    assert scores(result) == pytest.approx({each: before[each] + 0.2 * spread * longer[each] for each in before})
    assert [hit.id for hit in result.hits] == ["m0", "m2", "m1"]
    assert shares(result.hits)["m1"] == 0
    assert reranker.read == [("apricots", RerankText(each)) for each in (FRUIT[1], FRUIT[2], FRUIT[0])]  # best first
    assert result.notes == ()


def test_the_weight_falls_with_vocabulary_coverage(make: Make) -> None:
    found = [
        shares(make(*FRUIT, reranker=Counted(known)).search("apricots", recipe=PLAIN).hits) for known in (1.0, 0.6, 0.5)
    ]
    assert found[1] == pytest.approx({each: 0.36 * share for each, share in found[0].items()})
    assert found[2] == pytest.approx({each: 0.25 * share for each, share in found[0].items()})


def test_boosts_multiply_the_reranked_score(make: Make) -> None:
    memory = make(*(NewMemory(text=each, created=NOW - DAY) for each in FRUIT), reranker=Counted())
    for hit in memory.search("apricots", recipe=replace(PLAIN, recency_weight=0.1)).hits:
        *added, rerank_share, recency = hit.reasons
        assert (rerank_share.signal, recency.signal) == ("rerank", "recency")
        assert hit.score == pytest.approx((sum(each.value for each in added) + rerank_share.value) * 1.05)


def test_what_echo_brought_in_is_reranked_too(make: Make) -> None:
    memory = make(*said("what fruit did you buy?", "apricots", "yes, the ripe ones"), reranker=Counted())
    result = memory.search("apricots", recipe=HEARING)
    assert shares(result.hits).keys() == {"m0", "m1", "m2"}
    assert [reason.signal for reason in result.hits[0].reasons] == ["echo", "rerank"]
    assert result.hits[0].match_type == "echo"


def test_the_best_are_those_after_the_echo(make: Make) -> None:
    reranker = Counted()
    long = "we had a long talk about money, the weather, the old days and even dried apricots"
    memory = make(*said("apricots", "how much were they?"), long, reranker=reranker)
    recipe = replace(HEARING, rerank_few=2)
    assert [hit.id for hit in memory.search("apricots", recipe=recipe, rerank=False).hits] == ["m0", "m1", "m2"]
    memory.search("apricots", recipe=recipe)
    assert reranker.texts.keys() == {"apricots", "how much were they?"}


# ---------------------------------------------------------------- how likely it is an answer


def relevances(result: SearchResult) -> dict[str, float]:
    found = {hit.id: hit.relevance for hit in result.hits if hit.relevance is not None}
    assert len(found) == len(result.hits)
    return found


def test_the_one_that_leads_is_likelier_and_the_others_are_what_they_were(make: Make) -> None:
    """m0 has 28 letters, the next has 22: at .1 a letter a lead of .6, so its odds are e^.6 times what they were."""
    memory = make(*FRUIT, reranker=Counted(liking=lambda text: 0.1 * len(text)))
    before = relevances(memory.search("apricots", recipe=PLAIN, rerank=False))
    result = memory.search("apricots", recipe=PLAIN)
    after = relevances(result)
    assert 0 < before["m0"] < 1
    assert after["m0"] / (1 - after["m0"]) == pytest.approx(exp(0.6) * before["m0"] / (1 - before["m0"]))
    assert (after["m1"], after["m2"]) == (before["m1"], before["m2"])


def test_a_near_duplicate_takes_no_lead_away(make: Make) -> None:
    twice = "the ripe apricots of the south arrive on Monday", "the ripe apricots of the south really arrive on Monday"
    liking = {twice[0]: 5.0, twice[1]: 4.9}
    memory = make(*twice, *FRUIT, reranker=Counted(liking=lambda text: liking.get(text, 0.0)))
    before, after = (memory.search("apricots", recipe=PLAIN, rerank=rerank).hits for rerank in (False, True))
    shown = next(hit for hit in after if hit.memory.text in twice)
    assert len(shown.similar) == 1
    likely = {hit.id: hit.relevance for hit in before}[shown.id]
    assert likely is not None
    assert shown.relevance is not None
    assert shown.relevance / (1 - shown.relevance) == pytest.approx(exp(1) * likely / (1 - likely))


def test_where_two_are_the_best_none_is_likelier(make: Make) -> None:
    memory = make(*FRUIT, reranker=Counted(liking=lambda text: float(text != "apricots")))
    before = relevances(memory.search("apricots", recipe=PLAIN, rerank=False))
    result = memory.search("apricots", recipe=PLAIN)
    assert shares(result.hits).keys() == {"m0", "m1", "m2"}
    assert relevances(result) == before


def test_what_only_reranking_finds_likely_is_not_left_out(make: Make) -> None:
    memory = make(*FRUIT, reranker=Counted())
    before = relevances(memory.search("apricots", recipe=PLAIN, rerank=False))
    least = (before["m0"] + relevances(memory.search("apricots", recipe=PLAIN))["m0"]) / 2
    assert before["m0"] < least
    assert "m0" in relevances(memory.search("apricots", recipe=PLAIN, min_score=least))
    assert "m0" not in relevances(memory.search("apricots", recipe=PLAIN, min_score=least, rerank=False))


def test_it_is_as_likely_however_many_are_asked_for(make: Make) -> None:
    memory = make(*said("what fruit did you buy?", *FRUIT), reranker=Counted())
    every = relevances(memory.search("apricots", recipe=HEARING))
    assert every != relevances(memory.search("apricots", recipe=HEARING, rerank=False))
    for limit in range(1, len(every)):
        some = relevances(memory.search("apricots", recipe=HEARING, limit=limit))
        assert some == {each: every[each] for each in list(every)[:limit]}


# ---------------------------------------------------------------- the pool


def many(number: int) -> list[str]:
    return [f"apricots {'pie ' * each}number {each}" for each in range(number)]


@pytest.mark.parametrize(
    ("recipe", "how", "pool"),
    [
        (replace(PLAIN, rerank_few=2), "fast", 2),
        (replace(PLAIN, rerank_few=2), True, 2),
        (PLAIN, "fast", 8),
        (replace(PLAIN, rerank_pool=2), "full", 2),
        (PLAIN, "full", 30),
    ],
)
def test_only_the_best_are_reranked_and_the_rest_stays(
    make: Make, recipe: Recipe, how: RerankMode | bool, pool: int
) -> None:
    reranker = Counted(liking=lambda text: 2.0 * len(text))
    memory = make(*many(35), reranker=reranker)
    before = memory.search("apricots", recipe=recipe, rerank=False, limit=35, collapse=False).hits
    after = memory.search("apricots", recipe=recipe, rerank=how, limit=35, collapse=False).hits
    assert len(before) == 35
    assert after[pool:] == before[pool:]
    assert {hit.id for hit in after[:pool]} == {hit.id for hit in before[:pool]}
    assert [hit.id for hit in after[:pool]] != [hit.id for hit in before[:pool]]
    assert [text.text for _, text in reranker.read] == [hit.text for hit in before[:pool]]


def test_what_has_too_little_confidence_takes_no_place_in_the_pool(make: Make) -> None:
    doubted = NewFact(subject="Ada", predicate="likes", object="tea", confidence=0.05, decay_rate=0)
    reranker = Counted()
    memory = make(NewMemory(text="apricots", facts=[doubted]), *FRUIT[::2], reranker=reranker)
    memory.search("apricots", recipe=replace(PLAIN, rerank_few=2))
    assert reranker.texts.keys() == set(FRUIT[::2])


def test_a_shorter_answer_is_the_beginning_of_a_longer_one(make: Make) -> None:
    memory = make(*many(9), *said("ripe apricots", "how much?"), reranker=Counted(liking=lambda text: len(text) % 7))
    recipe = replace(HEARING, rerank_few=5)
    longer = memory.search("apricots", recipe=recipe, limit=20, collapse=False).hits
    assert len(longer) == 11
    for limit in range(1, len(longer)):
        assert memory.search("apricots", recipe=recipe, limit=limit, collapse=False).hits == longer[:limit]


numbers = st.floats(0, 4, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(numbers, st.floats(-9, 9, allow_nan=False)), max_size=12),
    st.integers(0, 12),
    st.floats(0, 1),
    st.floats(0.5, 1),
)
def test_no_reranked_memory_falls_behind_the_others(
    several: list[tuple[float, float]], read: int, weight: float, known: float
) -> None:
    ranked = best_first([placed(f"m{at}", score) for at, (score, _) in enumerate(several)])
    liked = {f"m{at}": score for at, (_, score) in enumerate(several)}
    found = best_first(rerank.reranked(ranked, {each.id: liked[each.id] for each in ranked[:read]}, weight, known))
    assert {each.id for each in found[:read]} == {each.id for each in ranked[:read]}
    assert found[read:] == ranked[read:]
    for each in found[:read]:
        assert each.reasons[-1].value >= 0
        assert each.score == scoring.score(each.reasons)


# ---------------------------------------------------------------- what is read


def test_a_text_is_reranked_with_its_neighbours(make: Make) -> None:
    reranker = Counted()
    turns = said("hello over there", "what fruit did you buy?", "apricots", "how much were they?", "two euros a kilo")
    memory = make(*turns, *said("dried apricots", session="t"), "apricots or none", reranker=reranker)
    memory.search("apricots", recipe=PLAIN)
    assert reranker.texts == {
        "apricots": RerankText("apricots", before="what fruit did you buy?", after="how much were they?"),
        "dried apricots": RerankText("dried apricots"),
        "apricots or none": RerankText("apricots or none"),
    }


def test_neighbours_that_match_themselves_are_each_reranked_with_the_other(make: Make) -> None:
    reranker = Counted()
    make(*said("ripe apricots", "dried apricots"), reranker=reranker).search('"apricots"', recipe=PLAIN)
    assert reranker.texts == {
        "ripe apricots": RerankText("ripe apricots", after="dried apricots"),
        "dried apricots": RerankText("dried apricots", before="ripe apricots"),
    }


@pytest.mark.parametrize(
    ("query", "options", "before", "after"),
    [
        ("apricots", {}, "what fruit?", "two euros"),
        ("apricots", {"where": Filter(kinds=["note"])}, "what fruit?", ""),
        ("apricots", {"where": Filter(tags_none=["asked"])}, "", "two euros"),
        ("apricots -tag:asked", {}, "", "two euros"),
        ("apricots NOT euros", {}, "what fruit?", ""),
        ("apricots kind:note", {}, "what fruit?", ""),
        ('"apricots"', {}, "", ""),
        ("apricots", {"as_of": NOW - 2 * DAY}, "what fruit?", ""),
        ("apricots until:2026-06-13", {}, "what fruit?", ""),
    ],
)
def test_nothing_is_reranked_that_the_search_may_not_see(
    make: Make, query: str, options: Mapping[str, Any], before: str, after: str
) -> None:
    reranker = Counted()
    old = NOW - 9 * DAY
    memory = make(
        NewMemory(text="what fruit?", session="s", position=0, tags=["asked"], created=old),
        NewMemory(text="apricots", session="s", position=1, created=old),
        NewMemory(text="two euros", session="s", position=2, kind="fact", created=NOW - DAY),
        NewMemory(text="dried apricots", created=old),
        reranker=reranker,
    )
    memory.search(query, recipe=PLAIN, **options)
    assert reranker.texts == {
        "apricots": RerankText("apricots", before, after),
        "dried apricots": RerankText("dried apricots"),
    }


def test_what_a_lens_excludes_is_not_reranked(make: Make) -> None:
    reranker = Counted()
    memory = make(
        *said("what fruit?", "apricots", namespace="decisions"),
        NewMemory(text="two euros", session="s", position=2),
        NewMemory(text="dried apricots", namespace="decisions"),
        reranker=reranker,
    )
    memory.search("apricots", recipe=PLAIN, lens="decisions")
    assert reranker.texts["apricots"] == RerankText("apricots", before="what fruit?")


def test_what_is_forgotten_or_of_another_space_is_not_reranked(make: Make) -> None:
    reranker = Counted()
    memory = make(
        *said("what fruit?", "apricots", "two euros", "a kilo"),
        NewMemory(text="apricots of work", session="s", position=1, space="work"),
        NewMemory(text="work goes on", session="s", position=2, space="work"),
        "dried apricots",
        reranker=reranker,
    )
    memory.forget(["m0", "m2"])
    memory.search("apricots", recipe=PLAIN)
    assert reranker.texts == {
        "apricots": RerankText("apricots", after="a kilo"),  # now the next
        "dried apricots": RerankText("dried apricots"),
    }
    memory.search("apricots", recipe=PLAIN, where=Filter(spaces=["default", "work"]))
    assert reranker.texts["apricots of work"] == RerankText("apricots of work", after="work goes on")


def test_of_a_long_text_the_window_with_the_words_is_reranked(make: Make) -> None:
    reranker = Counted()
    long = f"{'nothing of note here ' * 100}At last the apricots were ripe. {'and so it went on ' * 100}"
    whole = "apricots ".ljust(600, "x")
    memory = make(
        NewMemory(text=f"before {'word ' * 200}", session="s", position=0),
        NewMemory(text=long, session="s", position=1),
        NewMemory(text=f"after {'word ' * 200}", session="s", position=2),
        whole,
        reranker=reranker,
    )
    memory.search("apricots", recipe=PLAIN)
    window, other = reranker.read[0][1], reranker.read[1][1]
    if other.text != whole:
        window, other = other, window
    assert other.text == whole  # as many characters as are read whole
    assert "At last the apricots were ripe." in window.text
    assert window.text in long
    assert 300 < len(window.text) <= rerank_stage.WINDOW_CHARS
    assert (len(window.before), len(window.after)) == (600, 600)
    assert window.before.startswith("before word")
    assert window.after.startswith("after word")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chars", "read"),
    [
        (600, 10),
        (400, 15),  # 15 · 400 = 6,000: the last one fits exactly
        (300, 20),
        (299, 20),  # 5,980: another 20 characters would be read, 299 would not
        (200, 30),  # as many as the pool has
        (20, 30),
    ],
)
def test_of_long_texts_fewer_are_reranked(make: Make, chars: int, read: int) -> None:
    reranker = Counted()
    filled = f"apricots {'word ' * 200}"
    memory = make(*(f"{filled[: chars - 4]} {number:03}" for number in range(35)), reranker=reranker)
    before = memory.search("apricots", recipe=PLAIN, rerank=False, limit=50, collapse=False).hits
    assert {len(hit.text) for hit in before} == {chars}
    order = [hit.text for hit in before]
    reranker.liking = lambda text: 9.0 * order.index(text)
    after = memory.search("apricots", recipe=PLAIN, rerank="full", limit=50, collapse=False).hits
    assert [text.text for _, text in reranker.read] == order[:read]
    assert [hit.text for hit in after[:read]] == order[read - 1 :: -1]
    assert after[read:] == before[read:]


@pytest.mark.parametrize(
    ("chars", "read"),
    [
        (8, 1),  # "apricots"
        (29, 1),
        (30, 2),  # and "dried apricots or none"
        (57, 2),
        (58, 3),  # and "ripe apricots from the south"
    ],
)
def test_texts_are_reranked_best_first_until_the_characters_are_spent(
    make: Make, monkeypatch: pytest.MonkeyPatch, chars: int, read: int
) -> None:
    monkeypatch.setattr(rerank_stage, "RERANKED_CHARS", chars)
    reranker = Counted()
    result = make(*FRUIT, reranker=reranker).search("apricots", recipe=PLAIN)
    assert [text.text for _, text in reranker.read] == [FRUIT[1], FRUIT[2], FRUIT[0]][:read]
    assert len(result.hits) == 3
    assert {
        reason.numbers["reranked"] for hit in result.hits for reason in hit.reasons if reason.signal == "rerank"
    } == {read}


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 1),
        ("Well, she said (twice): it's the well-known 3.5 at 7:40!", 1),
        ("ERR_2270 in src/config/env.ts", 1),  # names in prose
        ("x = foo(bar)", 1 / 10),
        ("return self.rows[key] or none", 12 / 26),
        ("-> --- ==", 0),
    ],
)
def test_how_much_of_a_text_is_words(text: str, share: float) -> None:
    assert rerank.prose_share(text) == pytest.approx(share)


def test_the_weight_falls_with_the_share_of_words(make: Make) -> None:
    """Of the two texts all and a third are words, by their characters: two thirds on average."""
    memory = make("apricots ripe", "apricots = get(12,34)()", reranker=Counted(liking=len))
    (known,) = {
        reason.numbers["coverage"]
        for hit in memory.search("apricots", recipe=PLAIN).hits
        for reason in hit.reasons
        if reason.signal == "rerank"
    }
    assert known == pytest.approx((1 + 8 / 21) / 2)


def test_of_each_text_only_its_window_is_counted(make: Make) -> None:
    reranker = Counted()
    memory = make(*(f"{'nothing of note ' * 99}apricots number {number}" for number in range(20)), reranker=reranker)
    memory.search("apricots", recipe=PLAIN, rerank="full")
    assert 15 <= len(reranker.read) < 20
    windows = sum(len(text.text) for _, text in reranker.read)
    assert rerank_stage.RERANKED_CHARS - rerank_stage.WINDOW_CHARS < windows <= rerank_stage.RERANKED_CHARS


def test_after_one_that_is_too_long_no_shorter_one_is_reranked(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would overtake what stands before it only because that was not read."""
    reranker = Counted()
    memory = make("ripe apricots", "we have ripe, yes, very ripe apricots", "an apricot", reranker=reranker)
    hits = memory.search("ripe apricots", recipe=PLAIN, rerank=False).hits
    assert [hit.id for hit in hits] == ["m0", "m1", "m2"]
    monkeypatch.setattr(rerank_stage, "RERANKED_CHARS", 30)  # 13, 37 and 10 characters
    memory.search("ripe apricots", recipe=PLAIN)
    assert reranker.texts.keys() == {"ripe apricots"}


def test_the_neighbours_of_a_text_are_not_counted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is read of it."""
    monkeypatch.setattr(rerank_stage, "RERANKED_CHARS", 22)  # 8 and 14
    reranker = Counted()
    turns = said("what fruit did you buy?", "apricots", "how much were they?")
    make(*turns, "dried apricots", reranker=reranker).search("apricots", recipe=PLAIN)
    assert reranker.texts.keys() == {"apricots", "dried apricots"}


def test_the_reranker_gets_the_question_without_operators(make: Make) -> None:
    reranker = Counted()
    make(*FRUIT, reranker=reranker).search('"apricots" -tag:old kind:note')
    assert {question for question, _ in reranker.read} == {"apricots"}


# ---------------------------------------------------------------- where it is not asked for


@pytest.mark.parametrize(
    ("query", "options", "known"),
    [
        ("apricots", {"rerank": False}, 1.0),
        ("apricots", {"mode": "keyword"}, 1.0),
        ("apricots", {"mode": "semantic"}, 1.0),
        ("apricots", {"recipe": replace(PLAIN, alpha=0)}, 1.0),
        ("apricots", {"recipe": replace(PLAIN, alpha=1)}, 1.0),
        ("apricots", {"recipe": replace(PLAIN, rerank_weight=0)}, 1.0),
        ("apricots", {"recipe": CLASSIC}, 1.0),
        ("apricots", {"lens": "classic"}, 1.0),
        ("apricots", {"lens": "exact"}, 1.0),
        ("tag:fruit", {}, 1.0),  # no words
        ("nowhere", {}, 1.0),
        ("apricots", {}, 0.49),  # it could hardly read the question
    ],
)
def test_nothing_is_reranked(make: Make, query: str, options: Mapping[str, Any], known: float) -> None:
    reranker = Counted(known)
    texts = (*FRUIT, "southern winds")
    memory = make(*(NewMemory(text=each, tags=["fruit"]) for each in texts), reranker=reranker)
    options = {"recipe": PLAIN, **options}
    result = memory.search(query, **options)
    assert reranker.read == []
    assert not shares(result.hits)
    assert result.notes == ()
    assert result == make(*(NewMemory(text=each, tags=["fruit"]) for each in texts), reranker=None).search(
        query, **options
    )


def test_one_alone_has_nothing_to_be_compared_with_but_is_asked_whether_it_answers(make: Make) -> None:
    reranker = Counted(answering=lambda _: -1.5)
    memory = make(*FRUIT, "southern winds", reranker=reranker)
    result = memory.search("southern", recipe=PLAIN)
    without = make(*FRUIT, "southern winds", reranker=None).search("southern", recipe=PLAIN)
    assert [(hit.id, hit.reasons) for hit in result.hits] == [(hit.id, hit.reasons) for hit in without.hits]
    assert reranker.read == [("southern", RerankText("southern winds"))]
    assert said_of(memory, "southern", PLAIN) == {"m4": -1.5}


def test_a_clear_order_is_not_reranked_but_asked_whether_it_answers(make: Make) -> None:
    reranker = Counted(answering=lambda text: 2.5 if "ripe" in text else -4.0)
    memory = make("the apricots of Provence are ripe", "one of the cats is asleep", reranker=reranker)
    question = "are the apricots of Provence ripe?"
    recipe = replace(PLAIN, semantic_floor=-1)
    result = memory.search(question, recipe=recipe)
    assert len(result.hits) == 2
    assert result.hits[1].score < recipe.tuning.clear_share * result.hits[0].score
    assert not shares(result.hits)
    assert [text.text for _, text in reranker.read] == [hit.text for hit in result.hits]
    assert said_of(memory, question, recipe) == {"m0": 2.5, "m1": -4.0}


def test_of_a_clear_order_three_are_asked(make: Make) -> None:
    reranker = Counted()
    memory = make("the apricots of Provence are ripe", *(f"cat {n} is asleep" for n in range(9)), reranker=reranker)
    recipe = replace(PLAIN, semantic_floor=-1)
    result = memory.search("are the apricots of Provence ripe?", recipe=recipe)
    assert len(result.hits) > 3
    assert rerank.is_clear([placed(each.id, each.score, both=True) for each in result.hits], 0.3)
    assert [text.text for _, text in reranker.read] == [hit.text for hit in result.hits[:3]]


def test_what_a_text_answers_is_in_the_trace_and_changes_no_score(make: Make) -> None:
    reranker = Counted(answering=lambda text: len(text) / 10)
    memory = make(*FRUIT, reranker=reranker)
    assert said_of(memory, "apricots", PLAIN) == {f"m{n}": len(FRUIT[n]) / 10 for n in range(3)}
    indifferent = make(*FRUIT, reranker=Counted()).search("apricots", recipe=PLAIN)
    assert scores(memory.search("apricots", recipe=PLAIN)) == scores(indifferent)


def test_a_reranker_that_cannot_say_leaves_nothing_in_the_trace(make: Make) -> None:
    memory = make(*FRUIT, reranker=Counted())
    assert said_of(memory, "apricots", PLAIN) == {}
    assert len(shares(memory.search("apricots", recipe=PLAIN).hits)) == 3


def test_nothing_is_asked_of_a_question_without_known_words_or_without_reranking(make: Make) -> None:
    assert said_of(make(*FRUIT, reranker=Counted(known=0.4)), "apricots", PLAIN) == {}
    memory = make(*FRUIT, reranker=Counted())
    assert said_of(memory, "apricots", PLAIN, rerank=False) == {}
    assert said_of(memory, "apricots", PLAIN, mode="keyword") == {}


class Watched(MemoryStore):
    """Counts how often neighbours and texts are asked for, or is too busy to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.busy = False

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        self.asked.append("beside")
        if self.busy:
            raise StoreBusy("store: another process is writing")
        return super().neighbours(memory_ids, before, after, turns=turns)

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        self.asked.append("meeting")
        assert ids
        return super().matching(ids, condition)


@pytest.mark.parametrize(("rereads", "asked"), [(True, ["beside"]), (False, [])])
def test_the_store_is_asked_for_neighbours_only_when_reranking(rereads: bool, asked: list[str]) -> None:
    store = Watched()
    opened(store, *FRUIT, reranker=Counted()).search("apricots", recipe=PLAIN, rerank=rereads)
    assert store.asked == asked


def test_a_store_that_fails_is_no_reranker_that_fails() -> None:
    store = Watched()
    memory = opened(store, *FRUIT, reranker=Counted())
    store.busy = True
    with pytest.raises(StoreBusy):
        memory.search("apricots", recipe=PLAIN)


# ---------------------------------------------------------------- the cache


def test_what_was_scored_is_not_scored_again(make: Make) -> None:
    reranker = Counted()
    memory = make(*FRUIT, reranker=reranker)
    first = memory.search("apricots", recipe=PLAIN)
    assert len(reranker.read) == 3
    assert memory.search("apricots", recipe=PLAIN) == first
    assert len(reranker.read) == 3
    memory.search("dried apricots", recipe=PLAIN)
    assert len(reranker.read) == 6
    memory.update("m1", text="apricots in syrup")
    changed = memory.search("apricots", recipe=PLAIN)
    assert reranker.read[6:] == [("apricots", RerankText("apricots in syrup"))]
    assert changed.hits != first.hits


def test_another_neighbour_is_another_text(make: Make) -> None:
    reranker = Counted()
    memory = make(*said("what fruit?", "apricots"), "dried apricots", reranker=reranker)
    memory.search("apricots", recipe=PLAIN)
    memory.remember("two euros", session="s", position=2)
    memory.search("apricots", recipe=PLAIN)
    assert reranker.read[2:] == [("apricots", RerankText("apricots", "what fruit?", "two euros"))]


def test_equal_texts_are_scored_once(make: Make) -> None:
    reranker = Counted()
    memory = make(*FRUIT, *(NewMemory(text=each, space="work") for each in FRUIT), reranker=reranker)
    result = memory.search("apricots", recipe=PLAIN, where=Filter(spaces=["default", "work"]))
    assert len(result.hits) == len(shares(result.hits)) == 6
    assert len(reranker.read) == 3


def test_the_number_of_cached_scores_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rerank_stage.SCORES_CACHED == 4_096
    monkeypatch.setattr(rerank_stage, "SCORES_CACHED", 5)
    reranker = Counted()
    memory = make(*FRUIT, reranker=reranker)
    memory.search("apricots", recipe=PLAIN)
    memory.search("dried apricots", recipe=PLAIN)  # one of the first three goes
    memory.search("apricots", recipe=PLAIN)
    assert len(reranker.read) == 7
    memory.search("apricots", recipe=PLAIN)  # those three were needed last
    assert len(reranker.read) == 7


@pytest.mark.slow
def test_many_threads_get_the_same_scores(make: Make) -> None:
    memory = make(*many(12), reranker=Counted(liking=lambda text: len(text) % 5))
    queries = ["apricots", "apricots pie", "pie number", "number 3"] * 6
    expected = {query: memory.search(query, recipe=PLAIN).hits for query in set(queries)}
    fresh = make(*many(12), reranker=Counted(liking=lambda text: len(text) % 5))
    begin = threading.Barrier(8)

    def ask(several: Sequence[str]) -> list[tuple[Hit, ...]]:
        begin.wait()
        return [fresh.search(query, recipe=PLAIN).hits for query in several]

    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(ask, [queries] * 8):
            assert found == [expected[query] for query in queries]


# ---------------------------------------------------------------- when it fails


@pytest.mark.parametrize("error", [EmbedderUnavailable("the model file is missing"), RuntimeError("out of luck")])
def test_a_reranker_that_fails_is_noted_and_the_order_is_that_without_it(make: Make, error: Exception) -> None:
    reranker = Counted()
    memory = make(*FRUIT, reranker=reranker)
    reranker.fails = error
    failed = memory.search("apricots", recipe=PLAIN)
    assert failed.notes == (f"the reranker failed: ranked without it ({error})",)
    assert failed.hits == memory.search("apricots", recipe=PLAIN, rerank=False).hits
    reranker.fails = None
    assert memory.search("apricots", recipe=PLAIN).notes == ()


def test_a_failure_is_logged_and_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    """As soon as it works again it is asked again, though nothing was written since."""
    reranker = Counted()
    memory = opened(MemoryStore(), *FRUIT, reranker=reranker)
    reranker.fails = RuntimeError("out of luck")
    assert memory.search("apricots", recipe=PLAIN).notes
    assert [record.message for record in caplog.records] == ["the reranker failed (out of luck): ranked without it"]
    reranker.fails = None
    assert shares(memory.search("apricots", recipe=PLAIN).hits)


def test_too_few_scores_are_a_failure(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = Counted()
    monkeypatch.setattr(reranker, "scores", lambda *_: [1.0])
    result = make(*FRUIT, reranker=reranker).search("apricots", recipe=PLAIN)
    assert len(result.hits) == 3
    assert "the reranker failed" in result.notes[0]


# ---------------------------------------------------------------- as a person reads it

REASON = Reason(
    "rerank",
    "add",
    0.072,
    {"rank": 2, "reranked": 20, "unread": 0, "weight": 0.2, "coverage": 0.6, "spread": 0.5, "above": 2.0},
)


def test_a_rerank_reason_as_a_person_reads_it() -> None:
    assert scoring.describe(REASON) == ("rerank: rank 2 of 20 → 0.2 × 0.60² × 0.5000 × 2.00 = 0.07200")
    known = REASON._replace(value=0.2, numbers={**REASON.numbers, "coverage": 1.0})
    assert scoring.describe(known).endswith("→ 0.2 × 0.5000 × 2.00 = 0.20000")
    assert scoring.briefly([REASON]) == "rerank 2"
    late = REASON._replace(numbers={**REASON.numbers, "reranked": 4, "unread": 6})
    assert scoring.describe(late).startswith("rerank: rank 2 of 4 (6 more not read in time) → 0.2 × ")


class Slow(Counted):
    """One that takes a while to load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads = 0
        self.loaded = threading.Event()
        self.broken = False

    def preload(self) -> None:
        self.loads += 1
        self.loaded.set()
        if self.broken:
            raise EmbedderUnavailable("it is gone")


def test_a_model_begins_to_load_with_the_first_search_that_may_rerank(make: Make) -> None:
    slow = Slow()
    memory = make(*FRUIT, reranker=slow)
    memory.search("apricots", mode="keyword")
    memory.search("apricots", mode="semantic")
    memory.search("apricots", rerank=False)
    memory.search("apricots", recipe=replace(PLAIN, rerank_weight=0))
    assert slow.loads == 0
    memory.search("apricots", recipe=PLAIN)
    assert slow.loaded.wait(60)
    memory.search("apples", recipe=PLAIN)
    assert slow.loads == 1


def test_a_failure_to_load_is_noted_only_when_the_model_is_needed(make: Make) -> None:
    slow = Slow()
    slow.broken = True
    memory = make(*FRUIT, reranker=slow)
    expected = make(*FRUIT, reranker=Counted()).search("apricots", recipe=PLAIN)
    assert memory.search("apricots", recipe=PLAIN).notes == expected.notes == ()
    assert slow.loaded.wait(60)


def test_why_tells_what_was_reranked(make: Make) -> None:
    memory = make(*FRUIT, reranker=Counted())
    result = memory.search("apricots", recipe=PLAIN)
    assert relevances(result) != relevances(memory.search("apricots", recipe=PLAIN, rerank=False))
    for rank, hit in enumerate(result.hits, 1):
        why = memory.why("apricots", hit.id, recipe=PLAIN)
        assert (why.rank, why.hit) == (rank, hit)


# ---------------------------------------------------------------- both stores


@pytest.mark.slow
@given(
    REAL_KINDS,
    session_memories(NOW),
    st.sampled_from(SESSION_QUERIES),
    st.sampled_from(SESSION_FILTERS),
    st.integers(2, 6),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stores_rerank_the_same(
    tmp_path_factory: pytest.TempPathFactory, kind: str, memories: list[NewMemory], query: str, where: Filter, pool: int
) -> None:
    turns = [replace(each, text=f"{each.text} x{number}") for number, each in enumerate(memories)]
    results, read = [], []
    with Stores(kind, tmp_path_factory.mktemp("rerank")) as stores:
        for store in (stores.open(), MemoryStore()):
            reranker = Counted(liking=lambda text: len(text) % 5)
            memory = opened(store, *turns, reranker=reranker)
            recipe = Recipe(recency_weight=0, fresh_weight=0, rerank_few=pool)
            results.append(memory.search(query, where=where, limit=50, recipe=recipe, collapse=False))
            off = replace(recipe, rerank_weight=0)
            without = memory.search(query, where=where, limit=50, recipe=off, collapse=False)
            read.append(reranker.read)
            memory.close()
    real, reference = results
    assert [hit.id for hit in real.hits] == [hit.id for hit in reference.hits]
    assert scores(real) == pytest.approx(scores(reference), rel=1e-6)
    assert read[0] == read[1]
    assert {hit.id for hit in reference.hits[:pool]} == {hit.id for hit in without.hits[:pool]}
    behind, behind_without = ([(hit.id, hit.reasons) for hit in each.hits[pool:]] for each in (reference, without))
    assert behind == behind_without
    assert len(shares(reference.hits)) in (0, len(read[1]))  # 0: a clear order is only asked whether it answers


# ---------------------------------------------------------------- doors

NOTES = (
    "Tom is a doctor and lives in Porto.",
    "Anna is allergic to cats.",
    "Peanuts make Tom sick; he carries an adrenaline pen.",
    "What should we give Tom for his birthday?",
)
ASKED = "What is Tom allergic to?"


@pytest.fixture
def notes(path: Path) -> Path:
    with nacre.open(path) as memory:
        memory.remember_many(NOTES)
    return path


@pytest.mark.slow
def test_open_uses_the_reranker_that_is_shipped(notes: Path) -> None:
    with nacre.open(notes, log=False) as memory:
        hits = memory.search(ASKED, rerank="full").hits
        assert shares(hits).keys() == {hit.id for hit in hits}
        best = max(shares(hits), key=lambda each: shares(hits)[each])
        assert memory.get(best)[0].text == NOTES[2]
        assert not shares(memory.search(ASKED, rerank=False).hits)


def test_another_embedder_has_no_reranker_unless_one_is_given(tmp_path: Path) -> None:
    for number, embedder in enumerate((Hashing(), "hashing", "none", None)):
        reranker = Counted()
        for opening, found in (({}, 0), ({"reranker": None}, 0), ({"reranker": reranker}, 3)):
            options: dict[str, Any] = {"embedder": embedder, **opening}
            with nacre.open(tmp_path / f"{number}.db", **options) as memory:
                memory.remember_many(FRUIT)
                assert len(shares(memory.search("apricots", recipe=PLAIN).hits)) == found
        assert len(reranker.read) == 3


def test_no_reranker_on_request(notes: Path) -> None:
    with nacre.open(notes, reranker=None, log=False) as memory:
        result = memory.search(ASKED)
        assert not shares(result.hits)
        assert result.notes == ()


def test_an_unknown_reranker_is_named_and_no_file_is_made(path: Path) -> None:
    with pytest.raises(InvalidInput, match="reranker: 'best' is unknown; allowed: auto, None, or a reranker"):
        nacre.open(path, reranker="best")  # type: ignore[arg-type]
    assert not path.exists()


@pytest.fixture
def without_model(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nacre]:
    monkeypatch.setattr(nacre_rerank, "NacreRerank", partial(nacre_rerank.NacreRerank, folder=tmp_path / "gone"))
    with nacre.open(notes, log=False) as memory:
        yield memory


def test_a_missing_model_is_noted_and_the_order_is_that_without_it(without_model: Nacre) -> None:
    result = without_model.search(ASKED)
    (note,) = result.notes
    assert note.startswith("the reranker failed: ranked without it (the model file ")
    assert "model.onnx is missing; reinstall it with" in note
    assert result.hits == without_model.search(ASKED, recipe=adjusted(Recipe(), rerank_weight=0)).hits


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_model_that_is_not_needed_is_not_loaded(without_model: Nacre, mode: Mode) -> None:
    assert without_model.search(ASKED, mode=mode, rerank=False).notes == ()
    if mode != "hybrid":
        assert without_model.search(ASKED, mode=mode).notes == ()


@pytest.mark.slow
def test_the_command_line(cli: Cli, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_STORE", str(notes))
    monkeypatch.delenv("NACRE_EMBEDDER")

    def run(*args: str) -> str:
        done = cli(*args)
        assert (done.code, done.err) == (0, "")
        return done.out

    def whys(*args: str) -> dict[str, str]:
        """In a few words, by memory."""
        return {hit["id"]: hit["why"] for hit in json.loads(run("search", ASKED, "--brief", "--json", *args))["hits"]}

    (first,) = [memory_id for memory_id, why in whys("--rerank", "full").items() if "rerank 1" in why]
    assert all("rerank" not in why for why in whys("--no-rerank").values())
    assert "rerank: rank 1 of 4 → 0.2 × " in run("why", first, ASKED, "--rerank", "full")
    assert "rerank" not in run("why", first, ASKED, "--no-rerank")
    found_in_full = json.loads(run("search", ASKED, "--json", "--rerank=full"))["hits"]
    reasons = [hit["reasons"] for hit in found_in_full if hit["id"] == first]
    (found,) = [reason for reason in reasons[0] if reason["signal"] == "rerank"]
    assert (found["effect"], found["numbers"]["rank"], found["numbers"]["reranked"]) == ("add", 1, 4)
