"""What was delivered to a session is marked, omitted on request, and not remembered as new when it comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from nacre import Filter, InvalidInput, Lens, Limits, Nacre, NewMemory, Recipe, Remembered, SearchResult
from nacre.analysis.quoting import HEADER
from nacre.analysis.recall_guard import DeliveredTexts
from nacre.embedders.hashing import Hashing
from nacre.engine import recall_log
from nacre.serialization import decode, encode
from nacre.storage.reference import MemoryStore
from nacre.types.views import LeftOut

MARCH = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
STEADY = Recipe(usage_weight=0)  # being delivered moves nothing


@pytest.fixture
def words(path: Path) -> Iterator[Nacre]:
    """A store that finds by words alone."""
    with nacre.open(path, embedder="none") as opened:
        yield opened


def delivered(result: SearchResult) -> dict[str, bool]:
    return {hit.text: hit.delivered for hit in result.hits}


def found(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


def said(result: SearchResult) -> list[str]:
    """Notes on what was delivered before."""
    return [note for note in result.notes if "given before" in note or "omit_delivered" in note]


# ---------------------------------------------------------------- marked


def test_what_was_delivered_to_a_session_is_marked(words: Nacre) -> None:
    words.remember("green tea")
    assert delivered(words.search("tea", session="s")) == {"green tea": False}
    assert delivered(words.search("tea", session="s")) == {"green tea": True}
    words.remember("black tea")
    assert delivered(words.search("tea", session="s")) == {"green tea": True, "black tea": False}
    assert delivered(words.search("tea", session="s")) == {"green tea": True, "black tea": True}


def test_nothing_was_delivered_to_another_session(words: Nacre) -> None:
    words.remember("green tea")
    words.search("tea", session="s")
    assert delivered(words.search("tea", session="t")) == {"green tea": False}
    assert delivered(words.search("tea")) == {"green tea": False}
    assert delivered(words.search("tea")) == {"green tea": False}


def test_a_session_of_another_space_is_another(words: Nacre) -> None:
    words.remember_many([NewMemory(text="green tea"), NewMemory(text="green tea", space="other")])
    other = Filter(spaces=["other"])
    words.search("tea", session="s")
    assert delivered(words.search("tea", session="s", where=other)) == {"green tea": False}
    assert delivered(words.search("tea", session="s", where=other)) == {"green tea": True}


def test_a_search_of_two_spaces_delivers_in_both(words: Nacre) -> None:
    words.remember_many([NewMemory(text="green tea"), NewMemory(text="black tea", space="other")])
    both = Filter(spaces=["default", "other"])
    words.search("tea", session="s", where=both)
    assert delivered(words.search("tea", session="s", where=both)) == {"green tea": True, "black tea": True}


def test_a_search_delivers_in_the_space_that_its_query_names(words: Nacre) -> None:
    words.remember("black tea", space="other")
    words.search("tea space:other", session="s")
    assert delivered(words.search("tea space:other", session="s")) == {"black tea": True}


def test_only_what_was_delivered_counts(words: Nacre) -> None:
    words.remember_many(["green tea", "tea tea"])
    first = words.search("tea", session="s", limit=1).hits[0].text
    assert delivered(words.search("tea", session="s")) == {
        "green tea": first == "green tea",
        "tea tea": first == "tea tea",
    }


def test_a_context_delivers_too(words: Nacre) -> None:
    words.remember("green tea")
    words.context("tea", min_score=0.0, session="s")
    assert delivered(words.search("tea", session="s")) == {"green tea": True}


def test_what_another_engine_delivered(path: Path) -> None:
    with nacre.open(path, embedder="none") as one, nacre.open(path, embedder="none") as other:
        one.remember("green tea")
        one.search("tea", session="s")
        one._log.flush()
        assert delivered(other.search("tea", session="s")) == {"green tea": True}
    with nacre.open(path, embedder="none") as later:
        assert delivered(later.search("tea", session="s")) == {"green tea": True}
        assert delivered(later.search("tea", session="t")) == {"green tea": False}


@pytest.mark.slow
def test_what_another_process_delivered(path: Path, words: Nacre) -> None:
    words.remember("green tea")
    command = [sys.executable, "-m", "nacre", "search", "tea", "--asked-in", "s", "--embedder", "none", "--json"]
    done = subprocess.run([*command, "--store", str(path)], capture_output=True, text=True, check=True)
    assert [hit["delivered"] for hit in json.loads(done.stdout)["hits"]] == [False]
    assert delivered(words.search("tea", session="s")) == {"green tea": True}


def test_a_memory_that_changed_was_not_delivered(words: Nacre) -> None:
    one = words.remember("green tea is in the cupboard").id
    words.context("tea", min_score=0.0, session="s")
    words.update(one, text="green tea is in the cellar")
    assert delivered(words.search("tea", session="s", limit=5)) == {"green tea is in the cellar": False}
    assert found(words.search("tea", session="t", omit_delivered=True)) == [one]


def test_the_new_text_of_a_memory_is_delivered(words: Nacre) -> None:
    one = words.remember("green tea is in the cupboard").id
    words.context("tea", min_score=0.0, session="s")
    words.update(one, text="green tea is in the cellar")
    assert "cellar" in words.context("tea", min_score=0.0, session="s").text


def test_a_memory_that_was_restored_is_delivered_again(words: Nacre) -> None:
    """Who was told that it is forgotten may want to hear that it is not."""
    one = words.remember("green tea").id
    words.search("tea", session="s")
    words.forget(one)
    words.restore(one)
    assert delivered(words.search("tea", session="s")) == {"green tea": False}
    assert delivered(words.search("tea", session="s")) == {"green tea": True}


# ---------------------------------------------------------------- left out


def test_one_after_another_until_all_were_delivered(words: Nacre) -> None:
    ids = [words.remember(f"tea {name}").id for name in ("green", "black", "white")]
    given = []
    for number in range(3):
        result = words.search("tea", session="s", limit=1, omit_delivered=True)
        given += found(result)
        passed = [f"{number} that this session was given before are left out"] if number else []
        assert said(result) == passed[: len(said(result))]
    assert sorted(given) == sorted(ids)
    nothing = words.search("tea", session="s", limit=1, omit_delivered=True)
    assert nothing.hits == ()
    assert said(nothing) == ["3 that this session was given before are left out"]


def test_what_is_left_out_is_not_marked_but_gone(words: Nacre) -> None:
    words.remember_many(["green tea", "black tea"])
    words.search("green", session="s")
    result = words.search("tea", session="s", omit_delivered=True)
    assert delivered(result) == {"black tea": False}
    assert [each.memory_id for each in words.receipts(session="s")[0].deliveries] == found(result)


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.sampled_from(["tea", "green", "black", "milk", "Rome"]), min_size=1, max_size=5).map(" ".join),
        min_size=1,
        max_size=14,
        unique=True,
    ),
    st.lists(st.tuples(st.sampled_from(["tea", "green milk", "Rome"]), st.integers(1, 6)), max_size=4),
    st.sampled_from(["tea", "black milk", "green tea in Rome"]),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(1, 60)),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_left_out_makes_room_for_others(
    texts: list[str], before: list[tuple[str, int]], query: str, limit: int, budget: int | None, embedding: bool
) -> None:
    """As if told memories were not there: the first of all others, as many as asked for."""
    with Nacre(MemoryStore(), Hashing() if embedding else None) as memory:
        memory.remember_many(texts)
        gone: set[str] = set()
        for asked, many in before:
            gone.update(found(memory.search(asked, limit=many, session="s", recipe=STEADY)))
        every = memory.search(query, limit=1_000, recipe=STEADY).hits
        others = [hit for hit in every if hit.id not in gone][:limit]
        fits = others
        if budget is not None:
            costs = [sum(12 + -(-len(hit.snippet.text) // 4) for hit in others[: at + 1]) for at in range(len(others))]
            fits = others[: max(1, sum(cost <= budget for cost in costs))]
        result = memory.search(query, limit=limit, session="s", omit_delivered=True, recipe=STEADY, token_budget=budget)
        assert list(result.hits) == fits
        if others == [] and every:
            assert said(result) == [f"{len(every)} that this session was given before are left out"]


def test_a_token_budget_is_spent_on_what_is_new(words: Nacre) -> None:
    """Each costs 12 and 5: two fit into 40. What was told costs nothing."""
    words.remember_many([f"tea number {number} of eight" for number in range(8)])
    seen: list[str] = []
    for _ in range(4):
        result = words.search("tea", session="s", omit_delivered=True, token_budget=40)
        assert len(result.hits) == 2
        seen += found(result)
    assert len(set(seen)) == 8
    assert words.search("tea", session="s", omit_delivered=True, token_budget=40).hits == ()


def test_what_does_not_fit_is_noted_as_in_any_search(words: Nacre) -> None:
    words.remember_many([f"tea number {number} of eight" for number in range(8)])
    words.search("tea", session="s", limit=2)
    result = words.search("tea", session="s", omit_delivered=True, token_budget=40, limit=5)
    assert len(result.hits) == 2
    assert "3 more do not fit into 40 tokens" in result.notes


@pytest.mark.parametrize("wish", [{"limit": 3}, {"token_budget": 50}])
def test_what_a_lens_wishes_holds_for_what_is_new(words: Nacre, wish: dict[str, Any]) -> None:
    """Three at a time: 3 · (12 + 3) tokens are 45."""
    words.remember_many([f"tea {number}" for number in range(9)])
    words.save_lens(Lens(name="short", **wish))
    seen: list[str] = []
    for _ in range(3):
        result = words.search("tea", session="s", omit_delivered=True, lens="short")
        assert len(result.hits) == 3
        seen += found(result)
    assert len(set(seen)) == 9


def test_more_may_have_been_delivered_than_a_search_may_return(path: Path) -> None:
    with nacre.open(path, embedder="none", limits=Limits(results_max=4)) as memory:
        memory.remember_many([f"tea {number}" for number in range(12)])
        given: list[str] = []
        for _ in range(3):
            result = memory.search("tea", session="s", limit=4, omit_delivered=True)
            assert len(result.hits) == 4
            given += found(result)
        assert len(set(given)) == 12


def test_without_a_session_or_a_log_nothing_is_omitted(path: Path, words: Nacre) -> None:
    words.remember("green tea")
    unknown = ["`omit_delivered` has no effect without a session and a recall log"]
    for _ in range(2):
        result = words.search("tea", omit_delivered=True)
        assert (delivered(result), said(result)) == ({"green tea": False}, unknown)
        assert said(words.search("tea")) == []
    with nacre.open(path, embedder="none", log=False) as silent:
        for _ in range(2):
            result = silent.search("tea", session="s", omit_delivered=True)
            assert (delivered(result), said(result)) == ({"green tea": False}, unknown)
            assert said(silent.search("tea", session="s")) == []


def test_why_not_knows_what_was_left_out_for_it(words: Nacre) -> None:
    one = words.remember("green tea").id
    words.search("tea", session="s")
    assert words.search("tea", session="s", omit_delivered=True).hits == ()
    left_out = words.why_not("tea", one, session="s", omit_delivered=True)
    assert left_out.stage == "delivered"
    assert "omit_delivered" in left_out.remedy
    assert words.why_not("tea", one, session="s").stage == "found"
    assert words.why_not("tea", one, session="t", omit_delivered=True).stage == "found"


@pytest.mark.parametrize("value", [1, "yes", None])
def test_omit_delivered_is_a_boolean(words: Nacre, value: Any) -> None:
    with pytest.raises(InvalidInput, match="omit_delivered: must be true or false"):
        words.search("tea", omit_delivered=value)


# ---------------------------------------------------------------- in a context


def test_what_was_delivered_in_full_is_not_quoted_again(words: Nacre) -> None:
    one = words.remember("green tea is in the cupboard").id
    first = words.context("tea", min_score=0.0, session="s")
    again = words.context("tea", min_score=0.0, session="s")
    assert [each.id for each in first.quoted] == [one]
    assert again.text == f"Already given to this session: {one}. Ask with repeat to get it again, or get it by id."
    assert (again.outcome, again.quoted, again.left_out) == ("delivered", (), (LeftOut(one, "delivered"),))
    assert again.tokens <= 1_500
    for other in ({"session": "t"}, {}, {"session": "s", "repeat": True}):
        assert words.context("tea", min_score=0.0, **other).text == first.text


def test_a_snippet_is_not_all_of_it(words: Nacre) -> None:
    one = words.remember("green tea is in the cupboard").id
    words.search("tea", session="s")
    context = words.context("tea", min_score=0.0, session="s")
    assert ([each.id for each in context.quoted], context.left_out) == ([one], ())


def test_a_part_is_not_all_of_it(words: Nacre) -> None:
    one = words.remember("green tea. " + "Then there is this sentence to tell. " * 100).id
    for _ in range(2):
        context = words.context("tea", 150, min_score=0.0, session="s")
        assert [(each.id, each.excerpt) for each in context.quoted] == [(one, True)]
    whole = words.context("tea", 5_000, min_score=0.0, session="s")
    assert [(each.id, each.excerpt) for each in whole.quoted] == [(one, False)]
    assert words.context("tea", 5_000, min_score=0.0, session="s").left_out == ((one, "delivered"),)


def test_what_was_opened_after_a_search_was_delivered_in_full(words: Nacre) -> None:
    one = words.remember("green tea is in the cupboard").id
    two = words.remember("black tea is in the cellar").id
    words.search("tea", session="s")
    words.get(one)
    context = words.context("tea", min_score=0.0, session="s")
    assert ([each.id for each in context.quoted], context.left_out) == ([two], ((one, "delivered"),))


def test_a_successor_that_was_quoted_is_delivered_as_well(words: Nacre) -> None:
    london = words.remember("Ada lives in London", created=MARCH).id
    paris = words.remember("Ada lives in Paris", created=MARCH + DAY).id
    assert [each.id for each in words.context("Ada", min_score=0.0, session="s").quoted] == [paris]
    again = words.context("Ada", min_score=0.0, session="s")
    assert (again.outcome, again.quoted) == ("delivered", ())
    assert again.text == f"Already given to this session: {paris}. Ask with repeat to get it again, or get it by id."
    assert set(again.left_out) == {(paris, "delivered"), (london, "superseded")}


ASKED = st.tuples(
    st.sampled_from(["tea", "milk Rome", "Ada lives", "sentence"]),
    st.sampled_from([60, 120, 300, 2_000]),
    st.sampled_from(["s", "s", "t"]),
)


@pytest.mark.slow
@given(st.lists(ASKED, min_size=1, max_size=8), st.lists(st.integers(0, 7), max_size=3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_memory_is_quoted_whole_twice_unless_it_changed(
    asked: list[tuple[str, int, str]], changed: list[int]
) -> None:
    """However often a session asks, and whatever else it was told meanwhile."""
    texts = ["tea with milk", "tea in Rome", "Ada lives in London", "Ada lives in Rome", "milk", "tea"]
    texts += [f"{name}. " + "Then there is a sentence to tell. " * 40 for name in ("tea", "milk")]
    with Nacre(MemoryStore(), None) as memory:
        ids = [memory.remember(text, created=MARCH + at * DAY).id for at, text in enumerate(texts)]
        given: set[tuple[str, str]] = set()
        for number, (query, budget, session) in enumerate(asked):
            if number < len(changed):
                one = ids[changed[number]]
                memory.update(one, text=f"{memory.get(one)[0].text} again")
                given -= {("s", one), ("t", one)}
            memory.search(query, session=session)
            context = memory.context(query, budget, session=session, min_score=0.0)
            whole = {(session, each.id) for each in context.quoted if not each.excerpt}
            assert not whole & given
            told_before = {(session, each.id) for each in context.left_out if each.why == "delivered"}
            assert told_before <= given
            given |= whole


# ---------------------------------------------------------------- given back

LONDON = "Ada lives in London, near the river."
TEA = "The tea is in the blue cupboard"


@pytest.fixture
def heard(memory: Nacre) -> dict[str, str]:
    """Two memories that session s was told, by their ids."""
    ids = {memory.remember(LONDON).id: LONDON, memory.remember(TEA).id: TEA}
    assert found(memory.search("Ada London", session="s"))[0] == next(iter(ids))
    assert list(ids)[1] in found(memory.search("tea cupboard", session="s"))
    return ids


def test_what_was_delivered_to_a_session_is_not_new(memory: Nacre, heard: dict[str, str]) -> None:
    london = next(iter(heard))
    for text in (LONDON, LONDON.upper(), "  ada lives in London\nnear the river "):
        assert memory.remember(text, session="s") == Remembered(london, duplicate=True, recalled=(london,))
    assert memory.stats().memories == 2


def test_what_is_remembered_under_a_key_is_kept_whatever_it_repeats(memory: Nacre, heard: dict[str, str]) -> None:
    receipt = memory.remember(LONDON, session="s", key="turn 1")
    assert (receipt.duplicate, receipt.recalled) == (False, ())
    assert [each.id for each in memory.get(keys=["turn 1"])] == [receipt.id]
    assert receipt.id not in heard


def test_what_was_delivered_to_a_connection_is_not_new(memory: Nacre, heard: dict[str, str]) -> None:
    """Without a session, the origin is the session that the writer asks in."""
    london = next(iter(heard))
    assert memory.remember(LONDON.upper(), origin="s").recalled == (london,)
    assert marks(memory, "s", "used").count(True) == 1
    assert memory.remember(LONDON.upper(), origin="s", session="t").recalled == (london,)
    assert memory.remember(TEA.upper(), origin="t").recalled == ()


@pytest.mark.parametrize(
    "around",
    ["I was told that {}", "- {}", "**Note:** {}", "Recalled memories:\n1. {}", '"{}"', "[2026-03-01] {}", "{} ({id})"],
)
def test_what_was_delivered_is_not_new_with_something_around_it(words: Nacre, around: str) -> None:
    london = words.remember(LONDON, created=MARCH).id
    words.search("Ada", session="s")
    receipt = words.remember(around.format(LONDON, id=london), session="s")
    assert receipt == Remembered(london, duplicate=True, recalled=(london,))
    assert words.stats().memories == 1
    other = words.remember(around.format(LONDON.replace("London", "Paris"), id=london), session="s")
    assert (other.duplicate, other.recalled) == (False, ())


@pytest.mark.parametrize("around", ["{}", "Note: {}"])
def test_what_replaces_another_memory_is_new(words: Nacre, around: str) -> None:
    """Of two memories that contradict each other, an agent learns which one is right."""
    blue, red = words.remember(TEA).id, words.remember(TEA.replace("blue", "red")).id
    words.search("tea", session="s")
    receipt = words.remember(around.format(TEA), session="s", supersedes=[red])
    assert receipt.recalled == ()
    assert (receipt.id == blue) == (around == "{}")
    assert (red, "superseded") in words.context("Where is the tea?", min_score=0.0).left_out
    words.search("tea", session="s", min_score=0.0)  # what was delivered has changed since
    again = words.remember(around.format(TEA), session="s", supersedes=[blue])
    assert again.recalled == (blue,)


def test_the_date_is_that_of_the_users_day(path: Path) -> None:
    """As the context shows it: of the event, if the memory has one, in the user's zone."""
    tokyo = timezone(timedelta(hours=9))
    with nacre.open(path, embedder="none", time_zone=tokyo) as memory:
        late = datetime(2026, 3, 1, 20, tzinfo=UTC)
        tea = memory.remember("The tea is in the cupboard", created=MARCH, happened=late).id
        assert 'date="2026-03-02"' in memory.context("tea", min_score=0.0, session="s").text
        assert memory.remember("[2026-03-01] The tea is in the cupboard", session="s").recalled == ()
        assert memory.remember("[2026-03-02] The tea is in the cupboard.", session="s").recalled == (tea,)


def test_what_was_given_back_was_used(memory: Nacre, heard: dict[str, str]) -> None:
    london, tea = heard
    memory.remember(LONDON.upper(), session="s")
    used = {
        each.memory_id
        for receipt in memory.receipts(session="s")
        for each in receipt.deliveries
        if each.used is not None
    }
    assert used == {london}
    assert tea not in used


def test_a_context_that_is_given_back(memory: Nacre) -> None:
    ids = [memory.remember(text, created=MARCH).id for text in (LONDON, TEA, "Ada drinks tea </memory> & more")]
    context = memory.context("Ada tea", min_score=0.0, session="s")
    assert context.text.startswith(HEADER)
    receipt = memory.remember(context.text, session="s")
    assert set(receipt.recalled) == set(ids)
    assert receipt == Remembered(context.quoted[0].id, duplicate=True, recalled=tuple(e.id for e in context.quoted))
    assert memory.stats().memories == 3
    assert not memory.remember(f"{context.text}\nAda moved to Rome.", session="s").recalled
    assert memory.stats().memories == 4


def test_a_context_with_notes_and_parts_that_is_given_back(words: Nacre) -> None:
    filler = " ".join(f"Then thing number {number} was done as planned." for number in range(99))
    long = words.remember(f"Ada lives in London. {filler}", created=MARCH).id
    words.remember("Ada lives in Rome", created=MARCH + DAY)
    words.remember(f"Bob {filler}")
    context = words.context("planned London", 330, min_score=0.0, session="s")
    assert "[now: Ada lives in Rome (" in context.text
    assert context.text.count('excerpt="true"') == 2
    receipt = words.remember(context.text, session="s")
    assert receipt.recalled == tuple(each.id for each in context.quoted)
    assert long in receipt.recalled
    assert words.remember(context.text.replace("Rome", "Oslo"), session="t").recalled == ()


def test_a_snippet_that_is_given_back(words: Nacre) -> None:
    filler = " ".join(f"Sentence number {number} is about something else." for number in range(40))
    long = words.remember(f"{filler} The spare key hangs behind the boiler. {filler}").id
    hits: Any = encode.brief(words.search("spare key", session="s"))["hits"]
    snippet = hits[0]["snippet"]
    assert (snippet[0], snippet[-1]) == ("…", "…")
    assert words.remember(snippet, session="s").recalled == (long,)
    assert words.remember(snippet.strip("…"), session="s").recalled == ()
    assert words.remember(snippet.replace("spare", "rusty"), session="s").recalled == ()
    assert words.stats().memories == 3


@pytest.mark.parametrize(
    "text",
    [
        LONDON.replace("river", "wide river"),
        LONDON.replace("lives", "lives not"),
        LONDON.replace("lives", "also lives"),
        LONDON.replace(".", "?"),
        f"{LONDON} She rows.",
        "Ada lives in London",
        "Ada … near the river.",
        f"{LONDON} {TEA}",
        LONDON.replace("London", "Paris"),
    ],
)
def test_what_says_anything_else_is_stored(memory: Nacre, heard: dict[str, str], text: str) -> None:
    receipt = memory.remember(text, session="s")
    assert (receipt.duplicate, receipt.recalled) == (False, ())
    assert receipt.id not in heard
    assert memory.get(receipt.id)[0].text == text


@pytest.mark.parametrize("fields", [{}, {"session": "t"}, {"session": "s", "space": "other"}])
def test_a_session_to_which_nothing_was_delivered_says_something_new(
    memory: Nacre, heard: dict[str, str], fields: dict[str, Any]
) -> None:
    receipt = memory.remember(LONDON.upper(), **fields)
    assert (receipt.duplicate, receipt.recalled) == (False, ())
    assert receipt.id not in heard


def test_without_a_log_nothing_was_delivered(path: Path) -> None:
    with nacre.open(path, embedder="none", log=False) as memory:
        memory.remember(LONDON)
        memory.search("Ada", session="s")
        assert memory.remember(LONDON.upper(), session="s").recalled == ()
        assert memory.stats().memories == 2


def test_a_forgotten_memory_may_be_remembered_again(memory: Nacre, heard: dict[str, str]) -> None:
    memory.forget(next(iter(heard)))
    receipt = memory.remember(LONDON, session="s")
    assert (receipt.duplicate, receipt.recalled) == (False, ())


@pytest.mark.parametrize("embedder", [None, Hashing()])
def test_receipts_are_in_the_order_of_the_items(path: Path, embedder: Hashing | None) -> None:
    with nacre.open(path, embedder=embedder) as memory:
        london, tea, known = (memory.remember(text).id for text in (LONDON, TEA, "known, but not told"))
        memory.search("London", session="s", limit=1, mode="keyword")
        memory.search("cupboard", session="s", limit=1, mode="keyword")
        items = ["new one", LONDON.upper(), "known, but not told", TEA.lower(), LONDON.upper(), "new two", "new one"]
        receipts = memory.remember_many(NewMemory(text=text, session="s") for text in items)
        one, two = receipts[0].id, receipts[5].id
        assert receipts == [
            Remembered(one, False),
            Remembered(london, True, (london,)),
            Remembered(known, True, changed=("session",)),
            Remembered(tea, True, (tea,)),
            Remembered(london, True, (london,)),
            Remembered(two, False),
            Remembered(one, True),
        ]
        assert [each.text for each in memory.get([one, two])] == ["new one", "new two"]
        assert memory.stats().memories == 5


@pytest.mark.parametrize("embedder", [None, Hashing()])
def test_in_one_batch_each_session_counts_for_itself(path: Path, embedder: Hashing | None) -> None:
    with nacre.open(path, embedder=embedder) as memory:
        london = memory.remember(LONDON).id
        memory.search("London", session="s")
        sessions = ("s", None, "t", "s")
        receipts = memory.remember_many(NewMemory(text=LONDON.upper(), session=each) for each in sessions)
        assert [each.recalled for each in receipts] == [(london,), (), (), (london,)]
        assert [each.duplicate for each in receipts] == [True, False, True, True]
        assert receipts[1].id == receipts[2].id != london
        assert memory.stats().memories == 2


def test_an_update_is_stored_though_its_words_were_delivered(memory: Nacre, heard: dict[str, str]) -> None:
    london, tea = heard
    changed = memory.update(tea, text=LONDON.upper(), session="s")
    assert (changed.id, changed.text) == (tea, LONDON.upper())
    assert memory.get(london)[0].text == LONDON


def test_an_import_without_sessions_is_as_before(memory: Nacre, heard: dict[str, str]) -> None:
    lines = [decode.new_memory_line(json.dumps({"text": text}), 1) for text in (LONDON.upper(), TEA.upper(), LONDON)]
    receipts = [receipt for batch in memory.remember_batches(lines) for receipt in batch]
    assert [each.duplicate for each in receipts] == [False, False, True]
    assert not any(each.recalled for each in receipts)
    assert memory.stats().memories == len(heard) + 2


# ---------------------------------------------------------------- whose receipt


def marks(memory: Nacre, session: str, outcome: str) -> list[bool]:
    return [
        getattr(each, outcome) is not None
        for receipt in memory.receipts(session=session)
        for each in receipt.deliveries
    ]


def test_what_one_session_gives_back_is_not_marked_for_another(words: Nacre) -> None:
    words.remember(LONDON)
    words.search("Ada", session="s")
    words.search("Ada", session="t")
    words.remember(LONDON.upper(), session="s")
    assert marks(words, "s", "used") == [True]
    assert marks(words, "t", "used") == [False]


def test_what_one_session_opened_is_still_quoted_to_another(words: Nacre) -> None:
    """Both were told a snippet, the other one later."""
    one = words.remember(LONDON).id
    words.search("Ada", session="s")
    words.search("Ada", session="t")
    words.get(one, session="s")
    assert (marks(words, "s", "opened"), marks(words, "t", "opened")) == ([True], [False])
    assert words.context("Ada", min_score=0.0, session="s").left_out == ((one, "delivered"),)
    assert LONDON in words.context("Ada", min_score=0.0, session="t").text


def test_opening_without_a_session_counts_for_the_latest_search(words: Nacre) -> None:
    one = words.remember(LONDON).id
    words.search("Ada", session="s")
    words.search("Ada", session="t")
    words.get(one)
    assert (marks(words, "s", "opened"), marks(words, "t", "opened")) == ([False], [True])


def test_opening_in_a_session_to_which_nothing_was_delivered_marks_nothing(words: Nacre) -> None:
    one = words.remember(LONDON).id
    words.search("Ada", session="s")
    words.get(one, session="t")
    assert marks(words, "s", "opened") == [False]


@pytest.mark.parametrize(("session", "says"), [("", "is blank"), (5, "must be a text, not int")])
def test_a_session_has_a_name(words: Nacre, session: Any, says: str) -> None:
    one = words.remember(LONDON).id
    with pytest.raises(InvalidInput, match=f"session: {says}"):
        words.get(one, session=session)


# ---------------------------------------------------------------- without asking for each


class Counting:
    """A store that counts the calls of its methods."""

    def __init__(self, store: Any) -> None:
        self._inner = store
        self.calls = Counter[str]()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return method(*arguments, **options)

        return counted if callable(method) else method


def counting(memory: Nacre, work: Callable[[], Sequence[Remembered]]) -> tuple[Sequence[Remembered], Counter[str]]:
    counted = Counting(memory._store)
    for service in (memory._writer, memory._log, memory._repeats):
        service._store = counted
    try:
        return work(), counted.calls
    finally:
        for service in (memory._writer, memory._log, memory._repeats):
            service._store = counted._inner


@pytest.mark.slow
def test_many_texts_of_many_sessions_ask_the_store_once_a_batch(words: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_MEMORIES", 2_000)
    words.remember_many([f"told text number {number} of many" for number in range(20)])
    for number in range(10):
        words.search(f"told text {number}", session=f"session {number}", limit=5)
    words._log.flush()  # else the known sessions are asked about again, once a batch
    items = [NewMemory(text=f"new text {n} to keep", session=f"session {n % 1_000}") for n in range(5_000)]
    receipts, calls = counting(words, lambda: words.remember_many(items))
    assert sum(each.duplicate for each in receipts) == 0
    assert calls["delivered"] == calls["add"] == 3
    assert sum(calls.values()) <= 5 * 3


def test_a_delivered_text_is_read_once(words: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may have been given a thousand memories, and remember thousands of texts, one by one."""
    read: list[str] = []
    add = DeliveredTexts.add

    def counted(self: DeliveredTexts, memory_id: str, text: str, date: str | None = None) -> None:
        read.append(memory_id)
        add(self, memory_id, text, date)

    monkeypatch.setattr(DeliveredTexts, "add", counted)
    ids = [each.id for each in words.remember_many([f"told text number {number} of many" for number in range(30)])]
    words.search("told text", session="s", limit=30)
    words.remember_many(NewMemory(text=f"new text {number} to keep", session="s") for number in range(500))
    words._log.flush()
    for number in range(20):
        words.remember(f"new text {number} on its own", session="s")
    assert sorted(read) == sorted(ids)
    words.search("new text", session="s", limit=5)
    assert words.remember("TOLD TEXT NUMBER 7 OF MANY", session="s").recalled == (ids[7],)
    assert len(read) == 35


def test_a_long_session_reads_no_more_of_the_log_than_is_new(words: Nacre) -> None:
    words.remember_many([f"told text number {number} of many" for number in range(30)])
    for number in range(20):
        words.search(f"told text number {number}", session="s")
    words.remember("a new text", session="s")
    words._log.flush()
    words.remember("another new text", session="s")
    _, calls = counting(words, lambda: [words.remember(f"new text {number}", session="s") for number in range(10)])
    assert (calls["last_receipt"], calls["delivered"], calls["get"]) == (10, 0, 0)
    other = words.remember("told to others").id
    words.search("others", session="t")
    words._log.flush()
    _, calls = counting(words, lambda: [words.remember(f"newer text {number}", session="s") for number in range(10)])
    assert (calls["last_receipt"], calls["delivered"], calls["get"]) == (10, 1, 0)
    assert words.remember("Told to others!", session="s").recalled == ()
    assert words.remember("TOLD TO OTHERS", session="t").recalled == (other,)


@pytest.mark.parametrize("change", ["updated", "forgotten", "restored", "purged", "cleared"])
def test_what_was_known_to_be_delivered_may_have_changed(words: Nacre, path: Path, change: str) -> None:
    """Also by another process."""
    one, two = words.remember(LONDON).id, words.remember("Ada lives in London, they say").id
    words.search("Ada", session="s")
    assert words.remember(LONDON.upper(), session="s").recalled == (one,)
    with nacre.open(path, embedder="none") as other:
        match change:
            case "updated":
                other.update(one, text="Ada lives in Rome")
            case "purged":
                words._log.flush()
                other.purge(one)
            case "cleared":
                words.clear_log()
            case _:
                other.forget(one)
                if change == "restored":
                    other.restore(one)
    again = words.remember(LONDON.upper(), session="s")
    assert (again.recalled, again.duplicate) == ((), False)
    assert words.remember("ADA LIVES IN LONDON, THEY SAY", session="s").recalled == (
        () if change in ("cleared", "purged") else (two,)  # the receipt is gone
    )


def test_what_was_delivered_long_ago_is_not_compared(words: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_log, "DELIVERED_MAX", 2)
    words.remember_many(["green", "black", "white"])
    for colour in ("green", "black", "white"):
        words.search(colour, session="s")
    assert delivered(words.search("green OR black OR white", session="s")) == {
        "green": False,
        "black": True,
        "white": True,
    }


def test_one_by_one_without_a_session_the_log_is_not_asked(words: Nacre) -> None:
    _, calls = counting(words, lambda: words.remember_many([f"text {number}" for number in range(100)]))
    assert calls["delivered"] == 0
