"""Any sequence of verbs through a client gives the values and the errors that an engine gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
import strategies
from engines import NOW, opened
from nacre import Filter, NacreError, NewFact, NewMemory, Recipe
from nacre.engine.engine import Nacre
from nacre.storage.reference import MemoryStore
from servers import serving

pytestmark = pytest.mark.slow

IDS = [f"m{number}" for number in range(6)]  # some that there are, and some that there are not
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def calls(name: str, *positional: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    return st.tuples(st.just(name), st.tuples(*positional), st.fixed_dictionaries({}, optional=named))


ids = st.sampled_from(IDS)
several = st.lists(ids, max_size=3)
words = strategies.texts
moments = st.sampled_from(strategies.MOMENTS)
wheres = st.builds(Filter, tags_any=strategies.some(strategies.TAGS), kinds=strategies.some(strategies.KINDS))
memories = st.builds(
    NewMemory,
    text=words,
    kind=st.sampled_from((None, *strategies.KINDS)),
    tags=strategies.some(strategies.TAGS),
    key=st.sampled_from((None, *strategies.CALLERS_KEYS)),
    session=st.sampled_from((None, *strategies.SESSIONS)),
    metadata=strategies.metadata,
    happened=st.none() | moments,
    expires=st.none() | moments,
    importance=st.sampled_from((0.0, 0.1, 0.7, 1, 2)),
)
facts = st.builds(
    NewFact,
    subject=st.sampled_from(strategies.PEOPLE),
    predicate=st.sampled_from(strategies.PREDICATES),
    object=st.sampled_from(strategies.OBJECTS),
)
CALLS = st.one_of(
    calls("remember", memories | words),
    calls("remember_many", st.lists(memories | words, max_size=3)),
    calls("remember_batches", st.lists(memories | words | st.just(" "), max_size=3)),
    calls(
        "update", ids, text=words, tags=strategies.some(strategies.TAGS), key=st.none(), metadata=strategies.metadata
    ),
    calls("forget", ids | several, keys=st.lists(st.sampled_from(strategies.CALLERS_KEYS), max_size=2)),
    calls("restore", ids | several),
    calls("purge", ids | several),
    calls(
        "search", words, limit=st.integers(0, 5), where=wheres, as_of=moments, mode=st.sampled_from(("keyword", "x"))
    ),
    calls("search", words, recipe=st.just(Recipe(alpha=0.25)), include_facts=st.booleans(), lens=st.just("missing")),
    calls("context", words, budget_tokens=st.integers(0, 200)),
    calls("why", words, ids),
    calls("facets", words, where=wheres),
    calls("related", ids, limit=st.integers(1, 3)),
    calls("timeline", limit=st.integers(1, 4), where=wheres, start=moments, around=ids),
    calls("get", ids | several, missing_ok=st.booleans(), neighbours=st.integers(0, 2), entities=st.booleans()),
    calls("every", wheres | st.sampled_from(("tag:deploy", "deploy"))),
    calls("history", ids),
    calls("add_facts", ids, st.lists(facts, max_size=2)),
    calls("state_fact", facts),
    calls("facts", subject=st.sampled_from(strategies.PEOPLE), spaces=st.just([]), as_of=moments),
    calls("conflicts"),
    calls("add_entity", st.sampled_from(strategies.PEOPLE), aliases=strategies.some(strategies.PEOPLE)),
    calls("drop_entity", st.sampled_from(strategies.PEOPLE)),
    calls("entities", names=st.lists(st.sampled_from(strategies.PEOPLE), max_size=2)),
    calls("related_entities", st.sampled_from(strategies.PEOPLE)),
    calls("screen", words),
    calls("count_tokens", words),
)


class Numbered:
    """Ids in the order in which they are made, m0, m1, …, after the number of the example."""

    example = made = 0

    def __call__(self, _: datetime, wanted: int) -> list[str]:
        self.made += wanted
        return [f"{self.example}-m{number}" for number in range(self.made - wanted, self.made)]

    def begin(self, example: int) -> str:
        self.example, self.made = example, 0
        return f"space {example}"


class Twins:
    """An engine and a client of another one, alike in all that they hold."""

    def __init__(self, engine: Nacre, remote: nacre.RemoteNacre, numbered: tuple[Numbered, Numbered]) -> None:
        self._pair = engine, remote
        self._numbered = numbered
        self._examples = itertools.count()

    def begin(self) -> tuple[str, Any, Any]:
        """Both in a space that nothing is in, and what its ids begin with."""
        example = next(self._examples)
        spaces = [each.begin(example) for each in self._numbered]
        engine, remote = self._pair
        return f"{example}-", engine.within(spaces[0]), remote.within(spaces[1])


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    ids = Numbered(), Numbered()
    engine = opened(MemoryStore(), make_ids=ids[0])
    with serving(lambda: opened(MemoryStore(), make_ids=ids[1])) as server, nacre.connect(server.url) as remote:
        yield Twins(engine, remote, ids)


def outcome(memory: Nacre, call: Call, ids: str) -> Any:
    """What a call gives. Its ids are those of the example."""

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(each) for each in value]
        return f"{ids}{value}" if isinstance(value, str) and value in IDS else value

    name, positional, named = call
    try:
        found = getattr(memory, name)(*map(own, positional), **{key: own(each) for key, each in named.items()})
        if name == "history":  # the store's own clock, which does not stand still
            return [replace(each, at=NOW) for each in found]
        return list(found) if isinstance(found, Iterator) else found
    except NacreError as error:
        return type(error), str(error), {key: value for key, value in vars(error).items() if key != "errors"}


@settings(max_examples=50)
@given(sequence=st.lists(CALLS, min_size=1, max_size=12))
def test_a_sequence_of_calls(twins: Twins, sequence: list[Call]) -> None:
    ids, here, there = twins.begin()
    for each in (here, there):
        each.remember_many(["alice works at Acme", "Correction: alice works at Berlin instead of Acme"])
    for call in sequence:
        assert outcome(there, call, ids) == outcome(here, call, ids), call
    assert list(there.every()) == list(here.every())


def test_times_need_a_zone_and_are_given_in_utc(twins: Twins) -> None:
    _, here, there = twins.begin()
    local = datetime(2026, 3, 1, 12, tzinfo=strategies.ZONE)
    for each in (here, there):
        with pytest.raises(nacre.InvalidInput, match=r"^happened: has no time zone; give one"):
            each.remember("tea", happened=local.replace(tzinfo=None))
        found = each.get(each.remember("tea", happened=local).id).memories[0]
        assert found.happened == local
        assert found.happened.tzinfo is UTC
