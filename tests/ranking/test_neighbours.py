"""A match raises its neighbours in the session: every share by hand, and which neighbours never come in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from math import isclose
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines import NOW, make_engines, opened, said, scores
from nacre import CLASSIC, Filter, Hit, NewFact, Recipe
from nacre.engine.engine import Nacre
from nacre.ranking import neighbours, scoring
from nacre.storage.reference import MemoryStore
from nacre.types.memory import NewMemory
from nacre.types.recipe import adjusted
from nacre.types.search import Mode, Ranked, Reason, SearchResult
from nacre.types.views import Neighbours
from stores import ALL_STORES, REAL_KINDS, Stores
from strategies import SESSION_FILTERS, SESSION_QUERIES, session_memories

DAY = timedelta(days=1)
PLAIN = Recipe(maxsim_weight=0, recency_weight=0, semantic_floor=0.3)  # nothing but words, clear meaning and echo
SILENT = adjusted(PLAIN, echo_next=0, echo_far=0, echo_back=0)
TURNS = ("hello over there", "what fruit did you buy?", "apricots", "how much were they?", "two euros a kilo")


class Make(Protocol):
    """Makes an engine on a store that already holds some memories, whose ids are m0, m1, … in their order."""

    def __call__(self, *items: str | NewMemory) -> Nacre: ...


@pytest.fixture(params=ALL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:
        yield made


def by_id(result: SearchResult) -> dict[str, Hit]:
    return {hit.id: hit for hit in result.hits}


# ---------------------------------------------------------------- by hand


def test_five_turns_of_which_one_matches(make: Make) -> None:
    """m2 is found. m3 hears half of its score, m4 and m1 a fifth each; m0 is two turns before it, and hears nothing."""
    memory = make(*said(*TURNS))
    result = memory.search("apricots", recipe=PLAIN)
    full = scores(result)["m2"]
    assert scores(result) == pytest.approx({"m2": full, "m3": 0.5 * full, "m1": 0.2 * full, "m4": 0.2 * full})
    assert list(scores(result)) == ["m2", "m3", "m1", "m4"]  # equals by id
    assert [hit.match_type for hit in result.hits] == ["hybrid", "echo", "echo", "echo"]
    assert memory.search("apricots", recipe=SILENT).hits[0].score == full
    for hit in result.hits[1:]:
        assert hit.reasons == (Reason("echo", "add", hit.score, {"neighbours": 1.0}),)
        assert (hit.bm25, hit.bm25_rank, hit.cosine, hit.cosine_rank) == (None, None, None, None)
        assert (hit.text, hit.snippet.highlights) == (TURNS[int(hit.id[1:])], ())


@pytest.mark.parametrize(
    ("weights", "heard"),
    [
        ({"echo_next": 1}, {"m3": 1.0}),
        ({"echo_far": 0.3}, {"m4": 0.3}),
        ({"echo_back": 0.1}, {"m1": 0.1}),
        ({"echo_next": 0.4, "echo_back": 0.1}, {"m3": 0.4, "m1": 0.1}),
        ({}, {}),
    ],
)
def test_the_weights_are_the_recipe_s(make: Make, weights: dict[str, Any], heard: dict[str, float]) -> None:
    found = scores(make(*said(*TURNS)).search("apricots", recipe=adjusted(SILENT, **weights)))
    full = found.pop("m2")
    assert {each: score / full for each, score in found.items()} == pytest.approx(heard)


def test_shares_of_several_neighbours_add_up_and_are_not_passed_on() -> None:
    """a 1.0 and c .4 match; they stand as a b c d e.

    b  .5 · 1.0 after a, .2 · .4 before c   = .58
    c  .4 of its own, .2 · 1.0 two after a  = .6
    d  .5 · .4 after c                      = .2       what c heard itself is not passed on
    e  .2 · .4 two after c                  = .08
    """
    own = {"a": 1.0, "c": 0.4}
    ranked = [Ranked(each, score, (Reason("lexical", "add", score, {}),), None, None) for each, score in own.items()]
    beside = {"a": Neighbours((), ("b", "c")), "c": Neighbours(("b",), ("d", "e"))}
    assert neighbours.all_of(beside) == {"b", "c", "d", "e"}
    found = {each.id: each for each in neighbours.echoed(ranked, beside, {"b", "d", "e"}, Recipe())}
    assert {each: found[each].score for each in found} == pytest.approx(
        {"a": 1.0, "b": 0.58, "c": 0.6, "d": 0.2, "e": 0.08}
    )
    assert [reason.signal for reason in found["c"].reasons] == ["lexical", "echo"]
    assert found["b"].reasons[0].numbers == {"neighbours": 2.0}
    assert all(each.score == scoring.score(each.reasons) for each in found.values())
    assert {each.id for each in neighbours.echoed(ranked, beside, {"e"}, Recipe())} == {"a", "c", "e"}
    assert neighbours.echoed(ranked, {}, set(), Recipe()) == ranked


def test_what_matches_itself_is_raised_by_its_neighbours(make: Make) -> None:
    """m0 and m2 say the same of the question; m2 alone stands after another that does, and comes first."""
    memory = make(*said("apricots today", "apricots monday"), *said("apricots sunday", session="t"))
    silent, heard = scores(memory.search("apricots", recipe=SILENT)), scores(memory.search("apricots", recipe=PLAIN))
    assert heard == pytest.approx(
        {
            "m0": silent["m0"] + 0.2 * silent["m1"],
            "m1": silent["m1"] + 0.5 * silent["m0"],
            "m2": silent["m2"],
        }
    )
    assert next(iter(heard)) == "m1"


def test_only_the_best_twenty_raise_their_neighbours() -> None:
    several = [
        each for number in range(25) for each in said("apricots " + "pie " * number, "ok then", session=f"s{number}")
    ]
    spread = [replace(each, text=f"{each.text} {number}") for number, each in enumerate(several)]
    memory = opened(MemoryStore(), *spread)
    hits = memory.search("apricots", recipe=adjusted(PLAIN, echo_back=0), limit=100, collapse=False).hits
    found = {hit.id for hit in hits if hit.match_type == "echo"}
    silent = memory.search("apricots", recipe=SILENT, limit=100, collapse=False).hits
    assert len(silent) == 25
    assert found == {f"m{int(hit.id[1:]) + 1}" for hit in silent[:20]}


# ---------------------------------------------------------------- who may come in


@pytest.mark.parametrize(
    ("query", "where", "found"),
    [
        ("apricots", Filter(), {"m0", "m1", "m2", "m3"}),
        ("apricots", Filter(kinds=["note"]), {"m0", "m1", "m2"}),  # m3 is a fact
        ("apricots", Filter(tags_none=["cheap"]), {"m0", "m1", "m3"}),
        ("apricots -tag:cheap", Filter(), {"m0", "m1", "m3"}),
        ("apricots kind:note", Filter(), {"m0", "m1", "m2"}),
        ("apricots -euros", Filter(), {"m0", "m1", "m3"}),
        ("apricots NOT fruit", Filter(), {"m1", "m2", "m3"}),
        ('"apricots"', Filter(), {"m1"}),  # what must be there must be there
        ("apricots until:2026-06-14", Filter(), {"m1"}),
        ("apricots", Filter(created_from=NOW - DAY), set()),  # the match itself is older
    ],
)
def test_neighbours_match_every_condition(make: Make, query: str, where: Filter, found: set[str]) -> None:
    memory = make(
        NewMemory(text="what fruit did you buy?", session="s", position=0),
        NewMemory(text="apricots", session="s", position=1, created=NOW - 9 * DAY),
        NewMemory(text="two euros a kilo", session="s", position=2, tags=["cheap"]),
        NewMemory(text="how about lunch?", session="s", position=3, kind="fact"),
    )
    assert scores(memory.search(query, where=where, recipe=PLAIN)).keys() == found


def test_a_search_as_of_a_time_has_no_neighbours_that_came_later(make: Make) -> None:
    earlier = [replace(each, created=NOW - 9 * DAY) for each in said(*TURNS[:4])]
    memory = make(*earlier, NewMemory(text=TURNS[4], session="s", position=4, created=NOW - DAY))
    assert "m4" in scores(memory.search("apricots", recipe=PLAIN))
    assert scores(memory.search("apricots", recipe=PLAIN, as_of=NOW - 2 * DAY)).keys() == {"m1", "m2", "m3"}


def test_what_is_forgotten_neither_raises_nor_is_raised(make: Make) -> None:
    """Without m3, m4 is the next: it hears half."""
    memory = make(*said(*TURNS))
    memory.forget("m3")
    found = scores(memory.search("apricots", recipe=PLAIN))
    assert found == pytest.approx({"m2": found["m2"], "m4": 0.5 * found["m2"], "m1": 0.2 * found["m2"]})
    memory.forget("m2")
    assert memory.search("apricots", recipe=PLAIN).hits == ()


def test_another_session_and_another_space_are_not_raised(make: Make) -> None:
    memory = make(
        *said("apricots"),
        *said("another matter", "nothing else", session="t"),
        *said("something of work", "one thing more", space="work"),
        *said("no talk at all", session=None),
    )
    for where in (Filter(), Filter(spaces=["default", "work"])):
        assert scores(memory.search("apricots", where=where, recipe=PLAIN)).keys() == {"m0"}
    memory.remember("the next of work", space="work", session="s", position=9)
    assert scores(memory.search("something of work", where=Filter(spaces=["work"]), recipe=PLAIN)).keys() >= {
        "m3",
        "m4",
    }
    assert "m0" not in scores(
        memory.search("something of work", where=Filter(spaces=["default", "work"]), recipe=PLAIN)
    )


def test_what_has_too_little_confidence_does_not_come_in(make: Make) -> None:
    doubted = NewFact(subject="Ada", predicate="likes", object="tea", confidence=0.05, decay_rate=0)
    memory = make(*said("apricots"), NewMemory(text="so they say", session="s", position=1, facts=[doubted]))
    assert scores(memory.search("apricots", recipe=PLAIN)).keys() == {"m0"}
    assert scores(memory.search("apricots", recipe=replace(PLAIN, min_confidence=0))).keys() == {"m0", "m1"}


# ---------------------------------------------------------------- where it is not asked for


class Counting(MemoryStore):
    """Counts how often neighbours are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Sequence[str]] = []

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        self.asked.append(memory_ids)
        return super().neighbours(memory_ids, before, after, turns=turns)


@pytest.mark.parametrize(
    ("mode", "recipe", "asked"),
    [
        ("hybrid", PLAIN, 1),
        ("hybrid", SILENT, 0),
        ("hybrid", CLASSIC, 0),
        ("hybrid", replace(PLAIN, alpha=0), 0),
        ("hybrid", replace(PLAIN, alpha=1), 0),
        ("keyword", PLAIN, 0),
        ("semantic", PLAIN, 0),
        ("hybrid", adjusted(SILENT, echo_back=0.1), 1),
    ],
)
def test_without_weights_or_in_one_channel_there_is_no_echo(mode: Mode, recipe: Recipe, asked: int) -> None:
    store = Counting()
    found = scores(opened(store, *said(*TURNS)).search("apricots", mode=mode, recipe=recipe))
    assert len(store.asked) == asked
    assert (len(found) > 1) == bool(asked)
    assert all(store.asked)  # never of nothing


def test_nothing_found_asks_for_no_neighbours() -> None:
    store = Counting()
    assert opened(store, *said(*TURNS)).search("zzzz", recipe=PLAIN).hits == ()
    assert store.asked == []


def test_what_only_matches_a_condition_raises_nothing(make: Make) -> None:
    """A listing has no match that stands out: all that the filter names come by time, and none beside them."""
    fruit = [NewMemory(text=text, session="s", position=9, tags=["fruit"]) for text in ("kumquats", "kiwis", "figs")]
    memory = make(*said(*TURNS), *(replace(each, created=NOW - days * DAY) for days, each in enumerate(fruit)))
    result = memory.search("tag:fruit", recipe=PLAIN)
    assert [hit.id for hit in result.hits] == ["m5", "m6", "m7"]
    assert {reason.signal for hit in result.hits for reason in hit.reasons} == {"filter"}


def test_matches_by_words_raise_neighbours_without_an_embedder() -> None:
    memory = Nacre(MemoryStore(), None, clock=lambda: NOW, log=False)
    for each in said(*TURNS):
        memory.remember(each)
    assert [hit.text for hit in memory.search("apricots", recipe=PLAIN).hits][:2] == ["apricots", "how much were they?"]


# ---------------------------------------------------------------- relevance, reasons, near-duplicates


def test_the_relevance_of_a_neighbour_of_an_answer(make: Make) -> None:
    """A share of the answer's own: .5 for the next, .2 for the others. Alone, they have next to none."""
    memory = make(*said(*TURNS))
    found = by_id(memory.search("apricots", recipe=PLAIN))
    best = found["m2"].relevance
    assert best is not None
    assert best > 0.8
    assert [found[each].relevance for each in ("m3", "m1", "m4")] == [0.5 * best, 0.2 * best, 0.2 * best]
    assert memory.search("apricots", recipe=SILENT).hits[0].relevance == best
    assert scores(memory.search("apricots", recipe=PLAIN, min_score=0.4 * best)).keys() == {"m2", "m3"}
    assert scores(memory.search("apricots", recipe=PLAIN, min_score=0.6 * best)).keys() == {"m2"}


def test_a_shorter_answer_is_the_beginning_of_a_longer_one(make: Make) -> None:
    """m1 has less of the question than m0, and comes before it by what it hears: also where m0 is cut off."""
    memory = make(*said("apricots cherries", "apricots cherry tart", "so be it"), "cherries galore", "apricots galore")
    longer = memory.search("apricots cherries", recipe=PLAIN, limit=9).hits
    assert len(longer) > 3
    for limit in range(1, len(longer)):
        assert memory.search("apricots cherries", recipe=PLAIN, limit=limit).hits == longer[:limit]


@pytest.mark.parametrize(("neighbours", "line"), [(1.0, "a good match"), (3.0, "3 good matches")])
def test_an_echo_as_a_person_reads_it(neighbours: float, line: str) -> None:
    reason = Reason("echo", "add", 0.125, {"neighbours": neighbours})
    assert scoring.describe(reason) == f"echo: next to {line} in the session → 0.12500"
    assert scoring.briefly([reason]) == "echo"


def test_why_tells_the_share_of_neighbours(make: Make) -> None:
    memory = make(*said(*TURNS))
    found = by_id(memory.search("apricots", recipe=PLAIN))
    for rank, memory_id in enumerate(found, 1):
        why = memory.why("apricots", memory_id, recipe=PLAIN)
        assert (why.rank, why.left_out.stage) == (rank, "found")
        assert why.hit == found[memory_id]
    lost = memory.why("apricots", "m0", recipe=PLAIN)
    assert (lost.rank, lost.hit) == (None, None)
    assert lost.left_out.stage != "found"


def test_a_near_duplicate_that_comes_in_is_shown_once(make: Make) -> None:
    again = "The deploy script is really in the tools folder of our repo."
    memory = make(*said("The deploy script is in the tools folder of our repo", again, "thank you so much"))
    (first, second) = memory.search("deploy script tools folder", recipe=PLAIN).hits
    assert {first.id, *first.similar} == {"m0", "m1"}
    assert (second.id, second.match_type) == ("m2", "echo")
    apart = memory.search("deploy script tools folder", recipe=PLAIN, collapse=False)
    assert scores(apart).keys() == {"m0", "m1", "m2"}


def test_signals_act_on_what_comes_in(make: Make) -> None:
    memory = make(*said(*TURNS, created=NOW - DAY))
    hit = by_id(memory.search("apricots", recipe=replace(PLAIN, recency_weight=0.1)))["m3"]
    assert [reason.signal for reason in hit.reasons] == ["echo", "recency"]
    assert isclose(hit.score, hit.reasons[0].value * 1.05)


# ---------------------------------------------------------------- both stores


@pytest.mark.slow
@given(
    REAL_KINDS,
    session_memories(NOW),
    st.lists(st.sampled_from([None, 0, 1, 2]), min_size=12, max_size=12),
    st.sets(st.integers(0, 11), max_size=3),
    st.sampled_from(SESSION_QUERIES),
    st.sampled_from(SESSION_FILTERS),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stores_raise_the_same_neighbours(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    memories: list[NewMemory],
    places: list[int | None],
    forgotten: set[int],
    query: str,
    where: Filter,
) -> None:
    turns = [
        replace(each, text=f"{each.text} x{number}", position=None if each.session is None else place)
        for number, (each, place) in enumerate(zip(memories, places, strict=False))
    ]
    results = []
    with Stores(kind, tmp_path_factory.mktemp("echo")) as stores:
        for store in (stores.open(), MemoryStore()):
            memory = opened(store, *turns)
            for number in forgotten:
                if number < len(turns):
                    memory.forget(f"m{number}")
            results.append(memory.search(query, where=where, limit=50))
            memory.close()
    real, reference = results
    assert [(hit.id, hit.match_type) for hit in real.hits] == [(hit.id, hit.match_type) for hit in reference.hits]
    assert scores(real) == pytest.approx(scores(reference), rel=1e-6)
    for hit in real.hits:
        assert hit.score == scoring.score(hit.reasons)
        assert 0 <= (hit.relevance or 0) <= 1
        assert int(hit.id[1:]) not in forgotten
        if hit.match_type == "echo":
            assert hit.memory.session is not None
            assert any(
                (other.memory.space, other.memory.session) == (hit.memory.space, hit.memory.session)
                for other in real.hits
                if other.match_type != "echo"
            )
