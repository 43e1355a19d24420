"""What an agent is told, by the real models: what holds now, what held then, the exact thing, and what bears on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre import Nacre, NewFact, NewMemory, Recipe
from nacre.ranking import scoring
from nacre.types.search import Hit, Mode, SearchResult

pytestmark = pytest.mark.slow  # the models have to be loaded

NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)  # a Wednesday
World = Callable[..., "Told"]


class Told:
    """A store, whose memories have names."""

    def __init__(self, memory: Nacre, items: dict[str, NewMemory]) -> None:
        self.memory = memory
        self.ids = {name: memory.remember(item).id for name, item in items.items()}
        self.names = {memory_id: name for name, memory_id in self.ids.items()}

    def search(self, query: str, **options: Any) -> SearchResult:
        return self.memory.search(query, **options)

    def hits(self, query: str, **options: Any) -> dict[str, Hit]:
        """By name, best first."""
        return {self.names[hit.id]: hit for hit in self.search(query, **options).hits}

    def order(self, query: str, **options: Any) -> list[str]:
        return list(self.hits(query, **options))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with nacre.open(tmp_path / "memories.db", clock=lambda: NOW, time_zone=UTC, log=False) as memory:
        yield lambda **items: Told(memory, items)


def ago(days: float, text: str, **fields: Any) -> NewMemory:
    return NewMemory(text=text, created=NOW - timedelta(days=days), **fields)


def signals(hit: Hit) -> list[str]:
    return [reason.signal for reason in hit.reasons]


# ---------------------------------------------------------------- what holds now


@pytest.fixture
def moved(world: World) -> Told:
    return world(
        rome=ago(90, "Ada lives in Rome, near the station."),
        oslo=ago(20, "Ada moved from Rome to Oslo."),
        tea=ago(10, "Ada drinks green tea in the morning."),
        bern=ago(40, "Bob lives in Bern with two cats."),
    )


def test_a_correction_goes_before_what_it_corrects(moved: Told) -> None:
    hits = moved.hits("Where does Ada live?")
    assert list(hits)[:2] == ["oslo", "rome"]
    successor = hits["rome"].superseded_by
    assert successor is not None
    assert (moved.names[successor.id], successor.since) == ("oslo", NOW - timedelta(days=20))
    assert hits["oslo"].superseded_by is None
    assert (hits["rome"].relevance or 0) <= 0.9 * (hits["oslo"].relevance or 0)
    assert "superseded" in signals(hits["rome"])


def test_a_question_about_the_past_is_answered_with_the_past(moved: Told) -> None:
    hits = moved.hits("Where did Ada use to live?")
    assert next(iter(hits)) == "rome"
    assert hits["rome"].superseded_by is None


def test_as_of_a_time_before_the_correction(moved: Told) -> None:
    hits = moved.hits("Where does Ada live?", as_of=NOW - timedelta(days=50))
    assert next(iter(hits)) == "rome"
    assert hits["rome"].superseded_by is None
    assert "oslo" not in hits


@pytest.mark.parametrize("hundredths", range(5, 100, 5))
def test_no_least_relevance_keeps_the_stale_and_drops_the_current(moved: Told, hundredths: int) -> None:
    found = moved.order("Where does Ada live?", min_score=hundredths / 100)
    assert "rome" not in found or found.index("oslo") < found.index("rome")


def test_why_gives_the_relevance_of_the_search(moved: Told) -> None:
    query = "Where does Ada live?"
    for name, hit in moved.hits(query).items():
        explained = moved.memory.why(query, moved.ids[name]).hit
        assert explained is not None
        assert (explained.relevance, explained.score) == (hit.relevance, hit.score)


def test_a_given_successor_comes_in_though_it_has_no_word_of_the_question(world: World) -> None:
    told = world(old=ago(90, "The wifi password of the guest house is heron-4711."), cat=ago(2, "The cat has fleas."))
    new = told.memory.remember("It reads otter-0815 by now.", supersedes=told.ids["old"]).id
    told.names[new] = "new"
    assert told.order("wifi password of the guest house")[:2] == ["new", "old"]
    assert told.memory.unlink(new, told.ids["old"])
    assert told.order("wifi password of the guest house")[0] == "old"


def test_a_successor_that_nobody_believes_changes_nothing(world: World) -> None:
    told = world(old=ago(90, "The wifi password of the guest house is heron-4711."), cat=ago(2, "The cat has fleas."))
    rumour = NewFact(subject="wifi", predicate="password", object="otter-0815", confidence=0.05)
    new = told.memory.remember("It reads otter-0815 by now.", supersedes=told.ids["old"], facts=[rumour]).id
    told.names[new] = "new"
    hits = told.hits("wifi password of the guest house")
    assert next(iter(hits)) == "old"
    assert "new" not in hits
    assert "superseded" not in signals(hits["old"])


def test_the_newer_of_two_notes_that_are_much_alike_goes_first(world: World) -> None:
    told = world(
        cellar=ago(200, "The spare key of the office is in the drawer of the reception desk."),
        hall=ago(20, "The spare key of the office: it hangs in the kitchen cupboard next to the fuse box."),
        lunch=ago(10, "Lunch is at noon in the canteen."),
    )
    query = "where is the spare key of the office"
    hits = told.hits(query)
    assert list(hits)[:2] == ["hall", "cellar"]
    assert hits["cellar"].superseded_by is None
    if "fresher" in signals(hits["hall"]):
        assert told.order(query, recipe=Recipe(fresh_weight=0))[:2] == ["cellar", "hall"]


LONG = " We talked about the weather and the garden, and the roof has to be looked after before winter comes." * 10


@pytest.mark.parametrize(("of_old", "of_new", "passes"), [("", "", True), (LONG, "", False), ("", LONG, False)])
def test_only_a_short_note_takes_the_place_of_a_short_one(world: World, of_old: str, of_new: str, passes: bool) -> None:
    """A long text is about many things, and two of them always have parts that are alike."""
    told = world(
        cellar=ago(200, "The spare key of the office is in the drawer of the reception desk." + of_old),
        hall=ago(20, "The spare key of the office: it hangs in the kitchen cupboard next to the fuse box." + of_new),
    )
    hits = told.hits("where is the spare key of the office", rerank=False)
    assert any("fresher" in signals(hit) for hit in hits.values()) == passes


# ---------------------------------------------------------------- when it was


@pytest.fixture
def standups(world: World) -> Told:
    return world(
        june=ago(10, "Standup: the invoice import fails on umlauts."),
        may=ago(40, "Standup: the invoice import is done for Austria."),
        april=ago(75, "Standup: the search page got a new header."),
        migration=ago(30, "We migrated the database to Postgres 16 over the weekend."),
        after=ago(25, "The nightly report takes two hours."),
        before=ago(60, "The nightly report is sent at 3 am."),
        vet=ago(3, "The cat was at the vet."),
    )


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_what_lies_inside_the_period_comes_first(standups: Told, mode: Mode) -> None:
    hits = standups.hits("what did the standup say about the invoice import in May?", mode=mode)
    assert next(iter(hits)) == "may"
    close = {
        name: reason.numbers["closeness"]
        for name, hit in hits.items()
        for reason in hit.reasons
        if reason.signal == "temporal"
    }
    assert close.pop("june") == 0.5  # of the seventh of June, a little beside May
    assert close == dict.fromkeys([name for name in ("may", "migration", "after") if name in hits], 1)


def test_a_period_alone_lists_what_lies_inside(standups: Told) -> None:
    assert standups.order("what happened in May?") == ["after", "migration", "may"]


def test_a_period_with_nothing_in_it(standups: Told) -> None:
    result = standups.search("what happened in January?")
    assert result.hits
    assert result.notes == ("nothing is known from that time; these are the best matches of all times",)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what was the first standup about?", "april"),
        ("what was the latest standup about?", "june"),
        ("what was the first standup in May?", "may"),  # though another is older
        ("what was the last standup in May?", "may"),  # and another is newer
    ],
)
def test_the_first_and_the_last(standups: Told, query: str, first: str) -> None:
    assert standups.order(query)[0] == first


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("what was said about the nightly report before the migration to Postgres?", "before", "after"),
        ("what did we learn about the nightly report after the migration to Postgres?", "after", "before"),
    ],
)
def test_before_and_after_an_event(standups: Told, query: str, better: str, worse: str) -> None:
    hits = standups.hits(query)
    assert list(hits).index(better) < list(hits).index(worse)
    assert "temporal" in signals(hits[better])
    assert "temporal" not in signals(hits[worse])


def test_time_is_switched_off_by_its_weight(standups: Told) -> None:
    for query in ("what was the first standup about?", "what did the standup say about the invoice import in May?"):
        for hit in standups.hits(query, recipe=Recipe(temporal_weight=0)).values():
            assert {"temporal", "order"}.isdisjoint(signals(hit))


# ---------------------------------------------------------------- the exact thing


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_look_alike_comes_after_the_exact_one(world: World, mode: Mode) -> None:
    told = world(
        near=ago(1, "OPS-1428: the mail queue is stuck, restart the worker of the mail queue."),
        exact=ago(900, "OPS-1482: the disk of the build server is full."),
        other=ago(2, "OPS-1842: rotate the keys of the mail queue."),
        lunch=ago(2, "Lunch is at noon."),
    )
    hits = told.hits("what is OPS-1482 about, is it the mail queue?", mode=mode)
    assert next(iter(hits)) == "exact"
    assert [name for name, hit in hits.items() if "exact" in signals(hit)] == ["exact"]


def test_the_exact_one_is_looked_up_where_no_channel_found_it(world: World) -> None:
    """By meaning, sixty others are nearer, and the pool has fifty."""
    others = {
        f"n{number}": ago(1, f"Ticket OPS-{2000 + number}: the mail queue is stuck again.") for number in range(60)
    }
    told = world(exact=ago(900, "Rhubarb crumble needs an hour, see OPS-1482."), **others)
    assert told.order("ticket OPS-1482 about the mail queue that is stuck", mode="semantic")[0] == "exact"
    plain = told.order("ticket OPS-1482 about the mail queue", mode="semantic", recipe=Recipe(exact_weight=0))
    assert "exact" not in plain


# ---------------------------------------------------------------- what bears on it


def test_a_name_in_the_first_hit_leads_to_another_memory(world: World) -> None:
    told = world(
        boiler=ago(100, "The boiler in the cellar is under contract with Wärmeplus."),
        line=ago(200, "Wärmeplus emergency line: 030 5551234, customer 7781."),
        roof=ago(20, "The roof was repaired by Dachbau Huber."),
        light=ago(30, "The cellar light is broken."),
        tea=ago(3, "Tea is in the kitchen."),
    )
    query = "who do I call if the boiler breaks down?"
    hits = told.hits(query)
    assert list(hits)[:2] == ["boiler", "line"]
    assert "hop" in signals(hits["line"])
    plain = told.hits(query, recipe=Recipe(hop_weight=0))
    assert "hop" not in signals(plain["line"])
    assert plain["line"].score < hits["line"].score


def test_a_request_brings_in_what_stands(world: World) -> None:
    told = world(
        peanuts=ago(300, "Priya is allergic to peanuts."),
        luna=ago(10, "The restaurant Luna has a garden and opens at six."),
        door=ago(20, "We had dinner at the Blue Door with Tom."),
        harbour=ago(30, "Priya works at the harbour."),
    )
    hits = told.hits("book a table for dinner with Priya")
    assert "peanuts" in list(hits)[:2]
    assert "standing" in signals(hits["peanuts"])
    assert told.order("where does Priya work?")[0] == "harbour"
    assert "standing" not in signals(told.hits("where does Priya work?")["peanuts"])
    plain = told.hits("book a table for dinner with Priya", recipe=Recipe(standing_weight=0))
    assert all("standing" not in signals(hit) for hit in plain.values())


def test_every_score_is_the_sum_of_its_reasons(standups: Told, moved: Told) -> None:
    for query in ("the first standup in May", "where does Ada live", "book a table with Ada in Rome", "Postgres 16"):
        for hit in standups.hits(query).values() if "Ada" not in query else moved.search(query).hits:
            assert hit.score == scoring.score(hit.reasons)
            assert all(scoring.describe(reason) for reason in hit.reasons)
