"""Fast reranking: texts are read best first until time is up, the others keep their places, a later search reads on.

A clock that goes on by a fixed step with each text stands in for the machine's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Cli
from engines import make_engines, opened
from nacre import Filter, InvalidInput, Lens, NewMemory, Recipe
from nacre.engine.engine import Nacre
from nacre.engine.rerank_stage import READ_MIN, TimeLimit
from nacre.interfaces import AnytimeReranker, Reranker, RerankScore, RerankText
from nacre.ranking import rerank, scoring
from nacre.ranking.scoring import best_first
from nacre.serialization import decode
from nacre.storage.reference import MemoryStore
from nacre.types.recipe import adjusted
from nacre.types.search import Hit, Ranked, Reason, RerankMode, SearchRequest
from stores import LOCAL_STORES

# Nothing but words, clear meaning and reranking, of all eight.
PLAIN = adjusted(
    Recipe(),
    rerank_few=8,
    compared_share=0,
    recency_weight=0,
    semantic_floor=0.3,
    echo_next=0,
    echo_far=0,
    echo_back=0,
)
MS = 0.001
FRUIT = tuple(f"apricots {'pie ' * each}number {each}" for each in range(8))
Liking = Callable[[str], float]


class Timer:
    """Seconds that pass only when something takes time."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class AtOnce:
    """A reranker that reads all it is given, however long it takes: 10 ms a text. The longer a text, the better."""

    fingerprint = "at once"

    def __init__(self, timer: Timer, liking: Liking = len, answers: float | None = None) -> None:
        self.timer = timer
        self.liking = liking
        self.answers = answers
        self.read: list[str] = []

    def vocabulary_coverage(self, _: str) -> float:
        return 1.0

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[RerankScore]:
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: RerankText) -> RerankScore:
        assert question
        self.timer.now += 10 * MS
        self.read.append(text.text)
        return RerankScore(self.liking(text.text), self.answers)


class Anytime(AtOnce):
    """The same, but it stops when time is up. Loading takes a second."""

    loaded = False

    def scores_while(
        self, question: str, texts: Sequence[RerankText], goes_on: Callable[[Sequence[RerankScore]], bool]
    ) -> list[RerankScore]:
        if not self.loaded:
            self.timer.now += 1
            self.loaded = True
        found: list[RerankScore] = []
        for text in texts:
            if not goes_on(found):
                break
            found.append(self._score(question, text))
        return found


PORTS: tuple[Reranker, AnytimeReranker] = (AtOnce(Timer()), Anytime(Timer()))  # checked by mypy
Make = Callable[..., Nacre]


@pytest.fixture(params=LOCAL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path, uncached: None) -> Iterator[Make]:
    assert uncached is None
    with make_engines(request.param, tmp_path) as made:
        yield made


def asked(memory: Nacre, milliseconds: int, **options: Any) -> tuple[Hit, ...]:
    """The hits of a search that may rerank for so long."""
    options = {"limit": 20, "collapse": False, "recipe": replace(PLAIN, rerank_ms=milliseconds), **options}
    return memory.search("apricots", **options).hits


def reranked(hits: Sequence[Hit]) -> dict[str, Reason]:
    return {hit.text: reason for hit in hits for reason in hit.reasons if reason.signal == "rerank"}


# ---------------------------------------------------------------- the clock


def test_a_limit_begins_with_the_first_text() -> None:
    """15 ms from the first on: texts begin at 0 and 10 ms; at 20 ms time is up, for good."""
    timer = Timer()
    limit = TimeLimit(15 * MS, timer)
    timer.now += 100  # the model was loaded
    allowed = []
    for _ in range(4):
        allowed.append(limit.goes_on())
        timer.now += 10 * MS
    assert (allowed, limit.allowed) == ([True, True, False, False], 2)


def test_two_texts_are_read_though_time_is_up() -> None:
    timer = Timer()
    limit = TimeLimit(15 * MS, timer)
    allowed = []
    for _ in range(4):
        allowed.append(limit.goes_on())
        timer.now += 500 * MS
    assert READ_MIN == 2
    assert allowed == [True, True, False, False]


@pytest.mark.parametrize(
    ("milliseconds", "read"),
    [
        (1, 2),  # always
        (19, 2),  # at 20 ms time is up
        (21, 3),
        (45, 5),
        (65, 7),
        (75, 8),  # all
        (0, 8),  # no limit
        (60_000, 8),
    ],
)
def test_texts_are_read_best_first_until_time_is_up(make: Make, milliseconds: int, read: int) -> None:
    timer = Timer()
    reranker = Anytime(timer)
    memory = make(*FRUIT, reranker=reranker, timer=timer)
    before = [hit.text for hit in asked(memory, milliseconds, rerank=False)]
    after = asked(memory, milliseconds)
    assert reranker.read == before[:read]
    assert [hit.text for hit in after[read:]] == before[read:]
    numbers = {(reason.numbers["reranked"], reason.numbers["unread"]) for reason in reranked(after).values()}
    assert numbers == {(read, len(FRUIT) - read)}
    assert reranked(after).keys() == set(before[:read])


def test_full_has_no_time_limit(make: Make) -> None:
    timer = Timer()
    reranker = Anytime(timer)
    asked(make(*FRUIT, reranker=reranker, timer=timer), 1, rerank="full")
    assert len(reranker.read) == len(FRUIT)


def test_a_reranker_that_cannot_stop_gets_all_texts_at_once(make: Make) -> None:
    timer = Timer()
    reranker = AtOnce(timer)
    after = asked(make(*FRUIT, reranker=reranker, timer=timer), 1)
    assert len(reranker.read) == len(FRUIT)
    assert {reason.numbers["unread"] for reason in reranked(after).values()} == {0}


def test_a_reranker_that_does_not_stop_or_stops_too_early_fails(make: Make) -> None:
    class Wrong(Anytime):
        def scores_while(self, question: str, texts: Sequence[RerankText], goes_on: Callable[..., bool]) -> Any:
            assert goes_on(())
            assert goes_on(())
            return self.scores(question, texts[: self.number])

        number = 0

    timer = Timer()
    wrong = Wrong(timer)
    memory = make(*FRUIT, reranker=wrong, timer=timer)
    for wrong.number, fails in ((1, True), (3, True), (2, False)):
        notes = memory.search("apricots", recipe=PLAIN).notes
        assert [note.startswith("the reranker failed: ranked without it") for note in notes] == [True] * fails


# ---------------------------------------------------------------- what is not read


def placed(memory_id: str, score: float) -> Ranked:
    return Ranked(memory_id, score, (Reason("lexical", "add", score, {}),), None, None)


def test_the_shares_by_hand() -> None:
    """Of four that were chosen, .8 − .3 = .5 apart, two were read:

    a  least                    = 0      .8
    b  .2 · .5 · (3.0 − −1.0)   = .4     1.0
    c, d  not read                       .6, .3
    """
    ranked = [placed(each, score) for each, score in (("a", 0.8), ("b", 0.6), ("c", 0.6), ("d", 0.3))]
    found = rerank.reranked(ranked, {"a": -1.0, "b": 3.0}, 0.2, 1, unread={"c", "d"})
    assert {each.id: each.score for each in found} == pytest.approx({"a": 0.8, "b": 1.0, "c": 0.6, "d": 0.3})
    assert found[2:] == ranked[2:]
    numbers = found[1].reasons[-1].numbers
    assert (numbers["reranked"], numbers["unread"]) == (2, 2)
    assert numbers["spread"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scored", "leading"), [("abcd", "abcd"), ("abd", "ab"), ("bcd", ""), ("", ""), ("a", "a"), ("abcdx", "abcd")]
)
def test_only_scores_without_a_gap_before_them_move_anything(scored: str, leading: str) -> None:
    assert "".join(rerank.leading("abcd", dict.fromkeys(scored, 1.0))) == leading


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.floats(0, 4), st.floats(-9, 9)), min_size=2, max_size=12),
    st.integers(1, 12),
    st.floats(0, 1),
)
def test_reading_more_keeps_the_order_of_what_was_read(
    several: list[tuple[float, float]], read: int, weight: float
) -> None:
    ranked = best_first([placed(f"m{at:02}", score) for at, (score, _) in enumerate(several)])
    liked = {f"m{at:02}": score for at, (_, score) in enumerate(several)}
    first, left = ranked[:read], {each.id for each in ranked[read:]}
    some = best_first(rerank.reranked(ranked, {each.id: liked[each.id] for each in first}, weight, 1, left))
    every = rerank.reranked(ranked, liked, weight, 1)
    ids = [each.id for each in some]
    assert set(ids[:read]) == {each.id for each in first}
    assert some[read:] == ranked[read:]
    # A constant is added to all that were read, so two that are as good as equal may swap by rounding.
    final = {each.id: each.score for each in every}
    assert all(final[one] >= final[other] - 1e-9 for one, other in pairwise(ids[:read]))


def test_a_cached_score_behind_a_gap_moves_nothing_but_tells_whether_it_answers(make: Make) -> None:
    """The last was read in a search of its own. It is liked most, and those before it were not read."""
    timer = Timer()
    reranker = Anytime(timer, liking=lambda text: 50.0 * ("number 7" in text), answers=-2.0)
    items = (*FRUIT[:7], NewMemory(text=FRUIT[7], tags=["last"]))
    memory = make(*items, reranker=reranker, timer=timer)
    order = [hit.text for hit in asked(memory, 0, rerank=False)]
    assert order.index(FRUIT[7]) > 2
    asked(memory, 1, where=Filter(tags_all=["last"]))
    after = asked(memory, 1)
    assert reranker.read == [FRUIT[7], *order[:2]]
    assert [hit.text for hit in after[2:]] == order[2:]
    assert FRUIT[7] not in reranked(after)
    assert said_of(memory, 1)["m7"] == -2.0
    assert asked(memory, 0)[0].text == FRUIT[7]  # once all before it are read


def said_of(memory: Nacre, milliseconds: int) -> Mapping[str, float]:
    """The log-odds of an answer that a search's trace has, by id."""
    request = SearchRequest(query="apricots", recipe=replace(PLAIN, rerank_ms=milliseconds))
    return memory._searcher.trace(request).ranking.answers


# ---------------------------------------------------------------- settled places


def test_when_the_first_places_are_settled_by_hand() -> None:
    """A point adds .1, and no text has more than 5 points: the third, at .5, comes to 1.0 at the most.

    totals of the first two, with 4 and 1 points: .9 + .4 = 1.3 and .7 + .1 = .8
    """
    sums = [0.9, 0.7, 0.5, 0.2]
    assert rerank.settled(sums, [4.0, 1.0], 0.1, 5.0, 1)  # 1.3 > 1.0
    assert not rerank.settled(sums, [4.0, 1.0], 0.1, 5.0, 2)  # .8 < 1.0
    assert not rerank.settled(sums, [4.0], 0.1, 5.0, 2)  # there is no second one yet
    assert not rerank.settled(sums, [0.5, 1.0], 0.1, 5.0, 1)  # .95 < 1.0
    assert rerank.settled(sums, [0.0, 0.0, 0.0], 0.0, 5.0, 3)  # where a score adds nothing
    assert rerank.settled(sums, [0.0] * 4, 0.1, 5.0, 4)  # all were read
    assert rerank.share_of_a_point(sums, 0.2, 0.5) == pytest.approx(0.2 * 0.25 * 0.7)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.floats(0, 4), st.floats(-5, 5)), min_size=2, max_size=10),
    st.integers(1, 3),
    st.floats(0, 1),
)
def test_settled_places_do_not_change_if_all_are_read(
    several: list[tuple[float, float]], places: int, weight: float
) -> None:
    ranked = best_first([placed(f"m{at:02}", score) for at, (score, _) in enumerate(several)])
    liked = {f"m{at:02}": score for at, (_, score) in enumerate(several)}
    sums = [each.score for each in ranked]
    share = rerank.share_of_a_point(sums, weight, 1)
    for read in range(len(ranked) + 1):
        scores = [liked[each.id] for each in ranked[:read]]
        if rerank.settled(sums, scores, share, 5.0, places):
            break
    left = {each.id for each in ranked[read:]}
    known = {each.id: liked[each.id] for each in ranked[:read]}
    some = best_first(rerank.reranked(ranked, known, weight, 1, left_out=left))
    every = {each.id: each.score for each in rerank.reranked(ranked, liked, weight, 1)}
    best = sorted(every.values(), reverse=True)
    assert [every[each.id] for each in some[:places]] == pytest.approx(best[:places], abs=1e-9)


class Bounded(Anytime):
    score_max = 5.0


def test_reading_ends_where_no_other_can_become_the_first(make: Make) -> None:
    """The first of them is liked as much as is possible. Three are read in any case, to tell whether they answer."""
    timer = Timer()
    for places, read in ((1, 3), (3, 3), (5, 5), (0, 8)):
        reranker = Bounded(timer, liking=lambda _: 5.0, answers=1.0)
        memory = make(*FRUIT, reranker=reranker, timer=timer)
        recipe = adjusted(PLAIN, rerank_ms=0, settled_places=places)
        order = [hit.text for hit in asked(memory, 0, rerank=False)]
        after = asked(memory, 0, recipe=recipe)
        assert reranker.read == order[:read]
        assert [hit.text for hit in after] == order
        assert {reason.numbers["unread"] for reason in reranked(after).values()} == {0}  # none for lack of time
        assert reranked(after).keys() == set(order[:read])
        assert asked(memory, 0, recipe=recipe) == after
        assert reranker.read == order[:read]  # a later search reads no further
        full = Bounded(timer, liking=lambda _: 5.0)
        asked(make(*FRUIT, reranker=full, timer=timer), 0, recipe=recipe, rerank="full")
        assert len(full.read) == len(FRUIT)


def test_a_text_that_may_become_the_first_is_read(make: Make) -> None:
    timer = Timer()
    reranker = Bounded(timer, liking=lambda text: 5.0 if "number 7" in text else -5.0)
    memory = make(*FRUIT, reranker=reranker, timer=timer)
    assert asked(memory, 0)[0].text == FRUIT[7]
    assert len(reranker.read) == len(FRUIT)


def test_what_another_thread_read_beyond_the_settled_places_does_not_count(make: Make) -> None:
    """How far threads are ahead differs from run to run, and the result must not."""

    class Ahead(Bounded):
        def scores_while(self, question: str, texts: Sequence[RerankText], goes_on: Callable[..., bool]) -> Any:
            found: list[RerankScore] = []
            while len(found) < len(texts) and goes_on(found[: max(0, len(found) - 2)]):  # two are still under way
                found.append(self._score(question, texts[len(found)]))
            return found

    timer = Timer()
    results = []
    for kind, read in ((Bounded, 3), (Ahead, 5)):
        reranker = kind(timer, liking=lambda text: 5.0 if "number 0" in text else -5.0, answers=1.0)
        memory = make(*FRUIT, reranker=reranker, timer=timer)
        results.append([(hit.text, hit.score, hit.relevance) for hit in asked(memory, 0)])
        assert len(reranker.read) == read
    assert results[0] == results[1]


# ---------------------------------------------------------------- the next search


def test_a_later_search_reads_on_where_this_one_stopped(make: Make) -> None:
    """Cached scores take no time and count: two more are read each time, and in the end all are."""
    timer = Timer()
    reranker = Anytime(timer)
    memory = make(*FRUIT, reranker=reranker, timer=timer)
    order = [hit.text for hit in asked(memory, 1, rerank=False)]
    for read in (2, 4, 6, 8, 8):
        after = asked(memory, 1)
        assert reranker.read == order[:read]
        assert len(reranked(after)) == read
    whole = asked(make(*FRUIT, reranker=AtOnce(timer)), 0)
    assert {hit.text: hit.score for hit in after} == {hit.text: hit.score for hit in whole}


def test_a_result_that_was_short_of_time_is_not_cached() -> None:
    timer = Timer()
    reranker = Anytime(timer)
    memory = opened(MemoryStore(), *FRUIT, reranker=reranker, timer=timer)
    assert [len(reranked(asked(memory, 1))) for _ in range(4)] == [2, 4, 6, 8]
    last = asked(memory, 1)
    assert asked(memory, 1) is last  # nothing was left to read
    assert asked(memory, 1, rerank=True) is last  # the same question


def test_without_a_limit_equal_searches_give_equal_results(make: Make) -> None:
    timer = Timer()
    memory = make(*FRUIT, reranker=Anytime(timer), timer=timer)
    for options in ({"milliseconds": 0}, {"milliseconds": 1, "rerank": "full"}):
        assert asked(memory, **options) == asked(memory, **options)


# ---------------------------------------------------------------- a clear order


def test_of_a_clear_order_as_many_are_asked_as_there_is_time_for(make: Make) -> None:
    timer = Timer()
    question = "are the apricots of Provence ripe?"
    for milliseconds, read in ((1, 2), (21, 3), (0, 3)):
        reranker = Anytime(timer, answers=1.5)
        cats = (f"cat {n} is asleep" for n in range(9))
        memory = make("the apricots of Provence are ripe", *cats, reranker=reranker, timer=timer)
        recipe = replace(PLAIN, maxsim_weight=0, semantic_floor=-1, rerank_ms=milliseconds)
        trace = memory._searcher.trace(SearchRequest(query=question, recipe=recipe))
        assert (len(reranker.read), len(trace.ranking.answers)) == (read, read)
        assert len(trace.ranking.unread) == 3 - read
        assert not reranked(trace.ranking.hits)


@pytest.mark.parametrize(("how", "maxsim_weight"), [("fast", 0.0), ("full", 0.0), ("full", 5.0)])
def test_the_share_of_a_clear_order_is_a_weight(make: Make, how: RerankMode, maxsim_weight: float) -> None:
    """Also of a fast reranking, where nothing was compared token by token."""
    timer = Timer()
    memory = make(*FRUIT, reranker=Anytime(timer), timer=timer)
    never = adjusted(PLAIN, maxsim_weight=maxsim_weight, clear_share=0.0)
    assert reranked(asked(memory, 0, rerank=how, recipe=never))
    assert reranked(asked(memory, 0, rerank=how, recipe=adjusted(never, compared_share=1.0)))
    assert not reranked(asked(memory, 0, rerank=how, recipe=adjusted(never, clear_share=1.0)))


def test_of_what_was_compared_a_fast_reranking_reads_what_is_close_to_the_first(make: Make) -> None:
    for share in (0.0, 0.5, 0.8, 0.9, 1.0):
        timer = Timer()
        memory = make(*FRUIT, reranker=Anytime(timer), timer=timer)
        recipe = adjusted(PLAIN, compared_share=share, rerank_ms=0)
        before = memory.search("apricots", recipe=replace(recipe, rerank_weight=0), collapse=False).hits
        assert any(reason.signal == "maxsim" for reason in before[0].reasons)
        close = sum(hit.score >= share * before[0].score for hit in before)
        found = memory.search("apricots", recipe=recipe, collapse=False).hits
        read = {hit.id: reason for hit in found for reason in hit.reasons if reason.signal == "rerank"}
        assert read.keys() == {hit.id for hit in before[: max(3, close)]}
        # What was left out keeps its place and counts for the spread.
        assert [hit.id for hit in found[len(read) :]] == [hit.id for hit in before[len(read) :]]
        assert {each.numbers["spread"] for each in read.values()} == {scoring.spread([hit.score for hit in before])}
        assert {each.numbers["unread"] for each in read.values()} == {0}


# ---------------------------------------------------------------- as a person sees it, and through doors


def test_only_the_reasons_tell_that_time_was_short(make: Make) -> None:
    timer = Timer()
    memory = make(*FRUIT, reranker=Anytime(timer), timer=timer)
    result = memory.search("apricots", recipe=replace(PLAIN, rerank_ms=1))
    assert result.notes == ()
    described = [scoring.describe(reason) for reason in reranked(result.hits).values()]
    assert [each.split(" →")[0] for each in described] == [
        "rerank: rank 1 of 2 (6 more not read in time)",
        "rerank: rank 2 of 2 (6 more not read in time)",
    ]


def test_a_lens_and_a_context_say_how_to_rerank(make: Make) -> None:
    timer = Timer()
    reranker = Anytime(timer)
    recipe = replace(PLAIN, rerank_ms=1)
    memory = make(*FRUIT, reranker=reranker, timer=timer)
    assert memory.save_lens(Lens(name="thorough", rerank="full")).rerank == "full"
    assert memory.save_lens(Lens(name="quick", rerank=True)).rerank == "fast"  # as a search reads it
    assert memory.save_lens(Lens(name="plain", rerank=False)).rerank is False
    for options, read in (
        ({"lens": "plain"}, 0),
        ({"lens": "quick"}, 2),
        ({"lens": "thorough"}, 8),
        ({"lens": "thorough", "rerank": False}, 8),
    ):
        memory.search("apricots", recipe=recipe, **options)
        assert len(reranker.read) == read
    ways: list[tuple[RerankMode | bool, int]] = [(False, 0), ("fast", 2), ("full", 8)]
    for how, read in ways:
        fresh = Anytime(timer)
        make(*FRUIT, reranker=fresh, timer=timer).context("apricots", 500, recipe=recipe, rerank=how)
        assert len(fresh.read) == read
    with pytest.raises(InvalidInput, match="rerank: 'slow' is unknown; allowed: fast, full, or false"):
        memory.save_lens(Lens(name="wrong", rerank="slow"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="rerank: 'slow' is unknown"):
        memory.context("apricots", rerank="slow")  # type: ignore[arg-type]


def test_agents_may_say_how_to_rerank() -> None:
    assert decode.search_request({"query": "x", "rerank": "full"}).rerank == "full"
    assert decode.context_request({"query": "x", "rerank": False}).rerank is False


def test_options_of_the_command_line(cli: Cli) -> None:
    assert cli("remember", "ripe apricots").code == 0
    for command in (("search", "apricots"), ("context", "apricots"), ("lens", "save", "mine")):
        for how in (("--rerank", "fast"), ("--rerank=full",), ("--no-rerank",), ()):
            assert cli(*command, *how).code == 0, (command, how)
        wrong = cli(*command, "--rerank", "slow")
        assert (wrong.code, wrong.out) == (2, "")
        assert "rerank: 'slow' is unknown; allowed: fast, full, or false to skip reranking" in wrong.err
        both = cli(*command, "--rerank", "full", "--no-rerank")
        assert both.code == 2
        assert "--rerank and --no-rerank contradict each other; give one of them" in both.err
    assert json.loads(cli("lens", "save", "mine", "--no-rerank", "--json").out)["rerank"] is False
    assert json.loads(cli("lens", "show", "mine").out) == {"name": "mine", "rerank": False}
    assert json.loads(cli("lens", "save", "mine", "--rerank", "full", "--json").out)["rerank"] == "full"
