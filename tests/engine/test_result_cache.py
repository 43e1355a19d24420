"""Recent results are given again as long as nothing was written, by anyone, and not for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nacre import Filter, Lens, Limits, NewFact, Recipe
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.storage.sqlite import SqliteStore
from nacre.types.recipe import adjusted
from nacre.types.search import Match
from stores import REAL_STORES, Place, Stores

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
SAME = "The deploy script is in the tools folder of our repo"
SAME_AGAIN = "The deploy script is really in the tools folder of our repo"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Counting:
    """Knows how often each channel of a store was asked."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.lexical_asked = self.semantic_asked = 0
        self.meanwhile: Callable[[], object] | None = None
        self._lexical, self._semantic = self.store.lexical, self.store.semantic
        self.store.lexical, self.store.semantic = self.lexical, self.semantic

    def lexical(self, *arguments: Any) -> list[Match]:
        self.lexical_asked += 1
        found: list[Match] = self._lexical(*arguments)
        if self.meanwhile is not None:
            self.meanwhile()
        return found

    def semantic(self, *arguments: Any) -> list[Match]:
        self.semantic_asked += 1
        found: list[Match] = self._semantic(*arguments)
        return found

    @property
    def asked(self) -> tuple[int, int]:
        return self.lexical_asked, self.semantic_asked


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=REAL_STORES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with Stores(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def place(stores: Stores) -> Place:
    return stores.place()


@pytest.fixture
def store(stores: Stores, place: Place) -> Counting:
    return Counting(stores.open(place))


@pytest.fixture
def memory(store: Counting, clock: Clock) -> Iterator[Nacre]:
    with Nacre(store.store, Hashing(), clock=clock, extract=False, zone=UTC) as engine:
        yield engine


@pytest.fixture
def other(stores: Stores, place: Place, clock: Clock) -> Iterator[Nacre]:
    """Another engine on the same store, as another process has it."""
    with Nacre(stores.open(place), Hashing(), clock=clock, extract=False) as engine:
        yield engine


def test_the_same_question_asks_the_store_once(memory: Nacre, store: Counting) -> None:
    memory.remember("alpha beta")
    first = memory.search("alpha", limit=5)
    assert store.asked == (1, 1)
    again = memory.search("alpha", limit=5)
    assert store.asked == (1, 1)
    assert again == first
    assert again.receipt != first.receipt  # each search is one
    assert len(memory.receipts()) == 2
    assert memory.search("alpha", limit=5, session="s", folder="/tmp") == first  # who asks makes no difference
    assert store.asked == (1, 1)


def test_each_search_is_logged_with_its_own_session(memory: Nacre) -> None:
    memory.remember("alpha")
    for session in ("a", "b", None):
        memory.search("alpha", session=session)
    assert [each.session for each in memory.receipts()].count("a") == 1
    assert sorted(str(each.session) for each in memory.receipts()) == ["None", "a", "b"]
    assert [len(each.deliveries) for each in memory.receipts()] == [1, 1, 1]


OPTIONS: list[dict[str, Any]] = [
    {"limit": 3},
    {"mode": "keyword"},
    {"where": Filter(kinds=["note"])},
    {"where": Filter(spaces=["work"])},
    {"where": Filter(metadata={"a": 1})},
    {"where": Filter(metadata={"a": True})},
    {"recipe": Recipe(alpha=0.4)},
    {"recipe": adjusted(Recipe(), intents={"how-to": {"patterns": 1.1}})},
    {"lens": "recent"},
    {"as_of": NOW},
    {"boost_entities": ["Ada"]},
    {"merge_relations": True},
    {"min_score": 0.01},
    {"collapse": False},
    {"rerank": False},
    {"rerank": "full"},
    {"include_facts": True},
    {"token_budget": 100},
]


def test_other_options_are_other_questions(memory: Nacre, store: Counting) -> None:
    memory.remember("alpha beta", entities=["Ada"])
    memory.search("alpha")
    for number, options in enumerate(OPTIONS, 2):
        memory.search("alpha", **options)
        assert store.lexical_asked == number, options
    for options in OPTIONS:
        memory.search("alpha", **options)
    assert store.lexical_asked == len(OPTIONS) + 1
    memory.search("alphA")  # a question is what was typed
    assert store.lexical_asked == len(OPTIONS) + 2


def test_a_lens_that_selects_itself_is_part_of_the_question(memory: Nacre) -> None:
    memory.remember("alpha", namespace="ops")
    memory.remember("alpha too", namespace="app")
    memory.save_lens(Lens(name="ops", where=Filter(namespaces=("ops",)), folders=("*/ops",)))
    for _ in range(2):
        assert len(memory.search("alpha", folder="/home/app").hits) == 2
        assert len(memory.search("alpha", folder="/home/ops").hits) == 1
        assert memory.search("alpha", folder="/home/ops").lens == "ops"
        assert memory.search("alpha", lens="none", folder="/home/ops").lens is None


# ---------------------------------------------------------------- writes

TEA = NewFact(subject="Ada", predicate="likes", object="tea", confidence=0.5)
Write = Callable[[Nacre, str, str], object]  # engine, a memory's id, a fact's id

WRITES: dict[str, Write] = {
    "remember": lambda memory, _, __: memory.remember("alpha of another kind"),
    "update": lambda memory, each, _: memory.update(each, tags=["new"]),
    "forget": lambda memory, each, _: memory.forget(each),
    "purge": lambda memory, each, _: memory.purge(each),
    "add_facts": lambda memory, each, _: memory.add_facts(each, [NewFact(subject="a", predicate="b", object="c")]),
    "drop_facts": lambda memory, _, fact: memory.drop_facts(fact),
    "reinforce": lambda memory, _, fact: memory.reinforce(fact),
    "mark used": lambda memory, each, _: memory.mark(each, "used"),
    "mark wrong": lambda memory, each, _: memory.mark(each, "wrong"),
    "add_entity": lambda memory, each, _: memory.add_entity("Bob", aliases=["Robert"], memory_ids=[each]),
    "drop_entity": lambda memory, _, __: memory.drop_entity("Ada"),
    "save_lens": lambda memory, _, __: memory.save_lens(Lens(name="mine", limit=1, questions=("alpha",))),
    "drop_lens": lambda memory, _, __: memory.drop_lens("yours"),
    "separate": lambda memory, each, _: memory.separate(each),
    "switch the model": lambda memory, _, __: list(Nacre(memory._store, Hashing(64)).reembed()),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("by", ["this engine", "another engine"])
def test_a_write_is_seen_by_the_next_search(
    memory: Nacre, other: Nacre, store: Counting, clock: Clock, name: str, by: str
) -> None:
    found = memory.remember(f"alpha. {SAME}", facts=[TEA]).id
    memory.remember(f"alpha. {SAME_AGAIN}")
    memory.save_lens(Lens(name="yours", limit=9))
    fact = memory.facts()[0].fact.id
    memory.search("alpha", collapse=False)
    memory._log.flush()
    assert len(memory.receipts()[0].deliveries) == 2
    clock.now += timedelta(seconds=1)
    memory.search("alpha", mode="keyword")
    memory.search("alpha", mode="keyword")
    assert store.lexical_asked == 2
    WRITES[name](memory if by == "this engine" else other, found, fact)
    after = memory.search("alpha", mode="keyword")
    assert store.lexical_asked == 3
    assert memory.search("alpha", mode="keyword") == after
    assert store.lexical_asked == 3


def test_restoring_and_reading_are_writes_too(memory: Nacre, store: Counting) -> None:
    found = memory.remember("alpha").id
    memory.forget(found)
    assert memory.search("alpha").hits == ()
    memory.restore(found)
    assert len(memory.search("alpha").hits) == 1
    asked = store.lexical_asked
    memory.get(found)  # marks it as opened
    memory._log.flush()
    memory.search("alpha")
    assert store.lexical_asked == asked + 1


def test_reading_alone_changes_nothing(memory: Nacre, other: Nacre, store: Counting) -> None:
    found = memory.remember("alpha").id
    memory.search("alpha")
    for engine in (memory, other):
        engine.search("beta")
        engine.facts()
        engine.entities()
        engine.timeline()
        engine.related(found)
        engine.facets("alpha")
        engine.why("alpha", found)
        engine.receipts()
    asked = store.lexical_asked
    memory.search("alpha")
    assert store.lexical_asked == asked


def test_what_is_written_while_a_search_looks_is_not_missed(memory: Nacre, other: Nacre, store: Counting) -> None:
    memory.remember("alpha one")
    store.meanwhile = lambda: other.remember("alpha two")
    memory.search("alpha", mode="keyword")
    store.meanwhile = None
    assert len(memory.search("alpha", mode="keyword").hits) == 2


# ---------------------------------------------------------------- what is not kept


def test_a_question_with_a_time_is_asked_anew(memory: Nacre, store: Counting) -> None:
    """Each search looks among all memories, and once more inside the period."""
    memory.remember("alpha", created=NOW - timedelta(days=7))
    for times in (2, 4):
        assert memory.search("alpha last week").hits
        assert store.lexical_asked == times


def test_an_answer_without_meaning_is_not_kept(store: Counting, clock: Clock) -> None:
    class Moody(Hashing):
        """Fails every other question."""

        failing = True

        def embed_query(self, text: str) -> FloatVector:
            if self.failing:
                raise RuntimeError("out of memory")
            return super().embed_query(text)

        def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
            return Hashing().embed_passages(texts)

    embedder = Moody()
    with Nacre(store.store, embedder, clock=clock) as memory:
        memory.remember("alpha beta")
        for _ in range(2):
            failed = memory.search("alpha beta")
            assert any("the embedder failed" in note for note in failed.notes)
            assert failed.hits[0].match_type == "bm25"
        assert store.asked == (2, 0)
        embedder.failing = False
        assert memory.search("alpha beta").hits[0].match_type == "hybrid"
        assert memory.search("alpha beta").notes == ()
        assert store.asked == (3, 1)


@pytest.fixture
def small(store: Counting, clock: Clock) -> Iterator[Nacre]:
    with Nacre(store.store, Hashing(), clock=clock, limits=Limits(results_cached=3)) as engine:
        yield engine


def test_the_oldest_results_make_room(small: Nacre, store: Counting) -> None:
    assert Limits().results_cached == 128
    small.remember("alpha beta gamma delta")
    for query in ("alpha", "beta", "gamma"):
        small.search(query, mode="keyword")
    small.search("alpha", mode="keyword")  # used again: now beta is the oldest
    small.search("delta", mode="keyword")
    assert store.lexical_asked == 4
    for query in ("alpha", "gamma", "delta"):
        small.search(query, mode="keyword")
    assert store.lexical_asked == 4
    small.search("beta", mode="keyword")
    assert store.lexical_asked == 5


def test_a_result_that_was_found_anew_is_the_youngest(small: Nacre, store: Counting, clock: Clock) -> None:
    small.remember("alpha beta gamma delta")
    small.search("alpha", mode="keyword")
    clock.now += timedelta(minutes=2)
    for query in ("beta", "gamma", "alpha", "delta"):  # alpha has expired: it is found anew; then beta makes room
        small.search(query, mode="keyword")
    assert store.lexical_asked == 5
    small.search("alpha", mode="keyword")
    assert store.lexical_asked == 5


def test_nothing_is_kept_where_nothing_may_be(store: Counting, clock: Clock) -> None:
    with Nacre(store.store, Hashing(), clock=clock, limits=Limits(results_cached=0)) as memory:
        memory.remember("alpha")
        assert memory.search("alpha") == memory.search("alpha")
        assert store.asked == (2, 2)


@pytest.mark.parametrize(
    ("later", "asked"),
    [(timedelta(seconds=59.999999), 1), (timedelta(minutes=1), 2), (timedelta(days=1), 2), (timedelta(seconds=-1), 2)],
)
def test_a_result_is_kept_for_a_minute(
    memory: Nacre, store: Counting, clock: Clock, later: timedelta, asked: int
) -> None:
    memory.remember("alpha", created=NOW)
    memory.search("alpha", mode="keyword")
    clock.now = NOW + later
    memory.search("alpha", mode="keyword")
    assert store.lexical_asked == asked


def test_using_a_result_makes_it_no_younger(memory: Nacre, store: Counting, clock: Clock) -> None:
    memory.remember("alpha", created=NOW)
    for seconds in (0, 40, 59, 61, 100):
        clock.now = NOW + timedelta(seconds=seconds)
        memory.search("alpha", mode="keyword")
    assert store.lexical_asked == 2  # at 0 and at 61


def test_a_new_day_is_seen_within_a_minute(memory: Nacre, clock: Clock) -> None:
    memory.remember("alpha", created=NOW - timedelta(hours=23, minutes=59, seconds=30))

    def days() -> float:
        (reason,) = [each for each in memory.search("alpha").hits[0].reasons if each.signal == "recency"]
        return reason.numbers["days"]

    assert days() == 0
    clock.now = NOW + timedelta(minutes=1)
    assert days() == 1


def test_who_observes_is_told_what_was_kept(path: Path) -> None:
    stages: list[str] = []
    with Nacre(SqliteStore(path), Hashing(), observe=lambda name, _: stages.append(name)) as memory:
        memory.remember(SAME)
        memory.search("deploy")
        assert stages
        assert "cached" not in stages
        stages.clear()
        memory.search("deploy")
        assert stages == ["cached"]
