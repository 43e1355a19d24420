"""Which memories supersede others: by links, by facts, along chains, and as of a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engines import make_engines
from nacre import Nacre, NewFact, NewMemory
from nacre.engine.successors import SuccessorFinder, says_little_else
from nacre.types.facts import Fact
from nacre.types.memory import Memory
from stores import ALL_STORES

START = datetime(2026, 1, 1, tzinfo=UTC)
Make = Callable[..., Nacre]


@pytest.fixture(params=ALL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:
        yield made


def day(number: float) -> datetime:
    return START + timedelta(days=number)


LATER = day(99)


def on(number: float, text: str, **fields: Any) -> NewMemory:
    return NewMemory(text=text, created=day(number), **fields)


def found(memory: Nacre, *ids: str, now: datetime = LATER, asked: str = "") -> dict[str, tuple[str, float]]:
    """By id, the successor and the day since when, of the memories named."""
    store = memory._store
    finder = SuccessorFinder(store)
    successors = finder.find(store.signals(ids), now, set(asked.split()), lambda each: store.get(list(each)))
    return {older: (to.id, (to.since - START).days) for older, to in successors.items()}


# ---------------------------------------------------------------- links


def test_a_link_leads_to_its_newer_end(make: Make) -> None:
    memory = make(on(1, "Ada sells tickets."), on(5, "Bob does.", supersedes="m0"), on(6, "Tea is in the kitchen."))
    assert found(memory, "m0", "m1", "m2") == {"m0": ("m1", 5)}
    assert found(memory, "m1", "m2") == {}
    memory.unlink("m1", "m0")
    assert found(memory, "m0", "m1") == {}


def test_a_chain_leads_to_its_end(make: Make) -> None:
    """Though only its beginning was found."""
    memory = make(
        on(1, "Ada sells tickets."),
        on(5, "Bob does.", supersedes="m0"),
        on(7, "Eve does.", supersedes="m1"),
    )
    assert found(memory, "m0") == {"m0": ("m2", 7)}
    assert found(memory, "m0", "m1", "m2") == {"m0": ("m2", 7), "m1": ("m2", 7)}
    assert found(memory, "m0", "m1", now=day(6)) == {"m0": ("m1", 5)}  # what came later was not known
    assert found(memory, "m0", now=day(4)) == {}
    memory.forget("m2")
    assert found(memory, "m0", "m1") == {"m0": ("m1", 5)}


def test_of_several_the_latest_counts(make: Make) -> None:
    memory = make(on(1, "Ada sells tickets."), on(7, "Eve does.", supersedes="m0"), on(5, "Bob does.", supersedes="m0"))
    assert found(memory, "m0") == {"m0": ("m1", 7)}
    assert found(memory, "m0", now=day(6)) == {"m0": ("m2", 5)}


def test_two_that_update_each_other_supersede_nothing(make: Make) -> None:
    memory = make(on(1, "Ada sells tickets."), on(5, "Bob does.", supersedes="m0"))
    assert memory.remember(on(1, "Ada sells tickets.", supersedes="m1")).duplicate
    assert found(memory, "m0", "m1") == {}
    nobody = memory.remember(on(0, "Nobody sells tickets.")).id
    memory.remember(on(1, "Ada sells tickets.", supersedes=nobody))
    assert found(memory, "m0", "m1", nobody) == {}  # nor does a chain that leads to them


# ---------------------------------------------------------------- facts


def lives_in(city: str, **others: Any) -> NewFact:
    values = {"subject": "Ada", "predicate": "lives in", "object": city, "type": "location", **others}
    return NewFact(**values)


def remembered(memory: Nacre, *items: NewMemory) -> list[str]:
    return [memory.remember(each).id for each in items]


def test_a_memory_of_past_facts_is_superseded_by_that_of_the_current_one(make: Make) -> None:
    memory = make()
    rome, oslo, bern = remembered(
        memory,
        on(1, "Ada lives in Rome", facts=[lives_in("Rome", quote="Ada lives in Rome")]),
        on(5, "Ada lives in Oslo", facts=[lives_in("Oslo", quote="Ada lives in Oslo")]),
        on(7, "She is in Bern by now", facts=[lives_in("Bern")]),
    )
    assert found(memory, rome, oslo, bern) == {rome: (bern, 7), oslo: (bern, 7)}
    assert found(memory, rome) == {rome: (bern, 7)}
    assert found(memory, rome, oslo, now=day(6)) == {rome: (oslo, 5)}
    assert found(memory, rome, now=day(4)) == {}


LONG = "Ada lives in Rome. The boiler is under a contract until May, and the plumber has the second key of the cellar."


@pytest.mark.parametrize(
    ("asked", "stale"),
    [("", False), ("boiler", False), ("live", False), ("ada", False), ("ada live", True), ("ada boiler live", True)],
)
def test_a_memory_that_says_more_is_superseded_only_where_the_fact_is_asked_for(
    make: Make, asked: str, stale: bool
) -> None:
    memory = make()
    old, new = remembered(
        memory,
        on(1, LONG, facts=[lives_in("Rome", quote="Ada lives in Rome.")]),
        on(5, "Ada lives in Oslo", facts=[lives_in("Oslo")]),
    )
    assert found(memory, old, asked=asked) == ({old: (new, 5)} if stale else {})


def test_a_memory_that_states_the_new_value_itself_is_not_superseded(make: Make) -> None:
    moved = "Ada lives in Oslo, no longer in Rome"
    rome = lives_in("Rome", valid_from=day(1), quote="in Rome")
    memory = make()
    (only,) = remembered(memory, on(5, moved, facts=[rome, lives_in("Oslo", quote="Ada lives in Oslo")]))
    assert found(memory, only, asked="ada live") == {}


# ---------------------------------------------------------------- what a memory says besides


def stated(quote: str | None) -> Fact:
    return Fact(
        id=f"f{quote}", memory_id="m0", space="default", subject="Ada", predicate="lives in", object="Rome",
        type="location", confidence=1.0, decay_rate=0.0, reinforced=START, touched=START, valid_from=START,
        valid_to=None, superseded_by=None, quote=quote, relation=False, single=True, origin="given",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "quotes", "past", "little"),
    [
        ("Ada lives in Rome", "note", ["Ada lives in Rome"], 1, True),
        ("Ada lives in Rome and likes it", "note", ["Ada lives in Rome"], 1, True),  # 17 of 30 characters
        ("Ada lives in Rome, which she likes a lot", "note", ["Ada lives in Rome"], 1, False),  # 17 of 40
        ("Ada lives in Rome, which she likes a lot", "fact", ["Ada lives in Rome"], 1, True),
        ("Ada lives in Rome, Bob in Bern", "note", ["Ada lives in Rome", "Bob in Bern"], 1, False),  # one still holds
        ("Ada lives in Rome, Bob in Bern", "note", ["Ada lives in Rome", "Bob in Bern"], 2, True),
        ("Rome", "note", [None], 1, True),  # without a quote, the object counts
        ("Ada and Bob live in Rome; not in Bern", "note", ["Rome", "Rome"], 2, False),  # one quote counts once
    ],
)
def test_a_memory_says_little_else(text: str, kind: str, quotes: list[str | None], past: int, little: bool) -> None:
    memory = Memory(
        id="m0", space="default", kind=kind, namespace="general", text=text, summary=None, tags=(), source=None,
        session=None, position=None, metadata={}, importance=0.0, created=START, updated=START,
    )  # fmt: skip
    facts = [stated(each) for each in quotes]
    assert says_little_else(memory, facts, facts[:past]) == little
