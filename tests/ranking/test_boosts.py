"""What moves a rank besides words and meaning: each signal by hand, none strong enough to bury an answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import isclose, prod
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from engines import numbered_ids
from nacre import Filter, Hit, InvalidInput, Lens, NewFact, NotFound, Recipe
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.interfaces import Store
from nacre.ranking import boosts, fusion, scoring
from nacre.ranking.dedupe import collapse
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import SqliteStore
from nacre.types.intents import Intent
from nacre.types.memory import NewMemoryFields
from nacre.types.recall_log import Usage
from nacre.types.recipe import Fusion, adjusted
from nacre.types.search import Match, Mode

NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)  # a Wednesday
LONG_AGO = NOW - timedelta(days=3_650)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(store: Store, clock: Callable[[], datetime], **options: Any) -> Nacre:
    """An engine whose ids are in the order they were made, and that reads no facts from texts unless asked to."""
    usual: dict[str, Any] = {"make_ids": numbered_ids("x", 6), "zone": UTC, "extract": False}
    return Nacre(store, Hashing(), clock=clock, **(usual | options))


@pytest.fixture
def memory(path: Path, clock: Clock) -> Iterator[Nacre]:
    with opened(SqliteStore(path), clock) as engine:
        yield engine


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def fused(hit: Hit) -> float:
    """What the channels gave it."""
    return sum(reason.value for reason in hit.reasons if reason.effect == "add")


def value(hit: Hit, signal: str) -> float:
    return next((reason.value for reason in hit.reasons if reason.signal == signal), 1.0)


# ---------------------------------------------------------------- each signal

Telling = Callable[[Nacre, str, str, str], None]  # engine, query, the better memory, the worse one


def _marks(memory: Nacre, query: str, better: str, worse: str) -> None:
    memory.search(query, limit=100)
    memory.mark(worse, "used")
    memory.mark(better, "wrong")


@dataclass(frozen=True)
class Favour:
    """What speaks for the worse of two memories, or against the better."""

    signal: str
    on_worse: float = 1.0  # the factor it should have
    on_better: float = 1.0
    query: str = "{}"
    better: NewMemoryFields = field(default_factory=lambda: NewMemoryFields())
    worse: NewMemoryFields = field(default_factory=lambda: NewMemoryFields())
    then: Telling | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


DOUBTED = NewFact(subject="Ada", predicate="likes", object="tea", confidence=0.1, decay_rate=0)
TIED = ("alpha beta one", "alpha beta in alphabet")  # the first by words, the first by meaning
RELATION = NewFact(subject="alpha", predicate="beta", object="limits", relation=True, confidence=1, decay_rate=0)

FAVOURS = [
    # 1 + .1 / (1 + 0), and 1 + .1 / (1 + 3650)
    Favour("recency", 1.1, 1.0000274, better={"created": LONG_AGO}),
    Favour("recency", 1.1, 1.0000274, better={"happened": LONG_AGO}, worse={"created": LONG_AGO, "happened": NOW}),
    Favour("confidence", 1.0, 0.82, better={"facts": [DOUBTED]}),  # .8 + .2 · .1
    Favour("entity", 1.2, worse={"entities": ["Ada"]}, options={"boost_entities": ["ada"]}),
    # 1 + 1 · .9 · (1.015 - 1)
    Favour("intent", 1.0135, query="how do I {}", worse={"namespace": "patterns"}),
    # Each was delivered once, .005: 1 + .1 · 1.005 / 5.005, and 1 + .1 · (.005 - 2) / 6.005
    Favour("usage", 1.0200799, 0.9667777, then=_marks),
    # .8 of what the best match by words has
    Favour("relation", 0, worse={"facts": [RELATION]}, options={"merge_relations": True}),
]


def _name(favour: object) -> str:
    return favour.signal if isinstance(favour, Favour) else str(favour)


@pytest.mark.parametrize("favour", FAVOURS, ids=_name)
def test_each_signal_moves_a_result(memory: Nacre, favour: Favour) -> None:
    """By words alone, both are equally good, and the first by id comes first."""
    better = memory.remember("alpha beta one", **favour.better).id
    worse = memory.remember("alpha beta two", **favour.worse).id
    query = favour.query.format("alpha beta")
    plain = Recipe(recency_weight=0, confidence_weight=0, fresh_weight=0)
    assert memory.why("alpha beta", better, mode="keyword", recipe=plain).rank == 1
    if favour.then is not None:
        favour.then(memory, query, better, worse)
    hits = memory.search(query, mode="keyword", **favour.options).hits
    assert ids(hits) == [worse, better]
    expected = favour.on_worse or 0.8 * fused(hits[1])
    assert isclose(value(hits[0], favour.signal), expected, rel_tol=1e-6 if favour.on_worse else 2e-3)
    assert isclose(value(hits[1], favour.signal), favour.on_better, rel_tol=1e-6)
    assert all(hit.score == scoring.score(hit.reasons) for hit in hits)


@pytest.mark.parametrize("others", [12, 30], ids=["in short lists", "in a crowd"])
@pytest.mark.parametrize("favour", FAVOURS, ids=_name)
def test_no_signal_buries_an_answer(memory: Nacre, favour: Favour, others: int) -> None:
    """First in both channels against a far place in each: the signal acts, and the order stays."""
    better = memory.remember("postgres connection pool limits", **favour.better).id
    for number in range(others):
        memory.remember(f"the postgres connection {number} was a pool of limits {number}", created=LONG_AGO)
    worse = memory.remember("alpha people know limits of patience at long garden parties of cousins", **favour.worse).id
    query = favour.query.format("postgres connection pool limits")
    if favour.then is not None:
        favour.then(memory, query, better, worse)
    hits = {hit.id: hit for hit in memory.search(query, limit=100, **favour.options).hits}
    assert (hits[better].bm25_rank, hits[better].cosine_rank) == (1, 1)
    assert (hits[worse].bm25_rank or 0) > 10
    assert (hits[worse].cosine_rank or 99) > 10
    if favour.signal == "relation":
        assert 0 < value(hits[worse], "relation") < 0.01  # it has one word of four, which nearly all have
    else:
        assert isclose(value(hits[worse], favour.signal), favour.on_worse, rel_tol=1e-6)
    assert isclose(value(hits[better], favour.signal), favour.on_better, rel_tol=1e-6)
    assert hits[worse].score < hits[better].score


WHOLE = st.floats(0, 1)


@pytest.mark.slow
@given(
    st.builds(
        lambda **weights: Recipe(**weights),
        recency_weight=WHOLE,
        confidence_weight=WHOLE,
        entity_weight=WHOLE,
        intent_weight=WHOLE,
        usage_weight=WHOLE,
    )
    | st.just(Recipe()),
    st.timedeltas(timedelta(days=-30), timedelta(days=9_000)),
    WHOLE,
    st.booleans(),
    st.sampled_from([Intent("how-to", 0.9), Intent("comparison", 1.0), Intent("general", 0.0)]),
    st.sampled_from(["patterns", "decisions", "general"]),
    st.builds(Usage, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.just(NOW)),
)
@settings(max_examples=300)
def test_any_combination_of_factors_is_bounded(
    recipe: Recipe, age: timedelta, believed: float, about: bool, asked: Intent, namespace: str, used: Usage
) -> None:
    """With the usual weights: .8 · .9 = .72 at the least, 1.1 · 1.2 · 1.015 · 1.1 = 1.4738 at the most."""
    ranked = fusion.fuse([Match("a", 1.0)], [Match("a", 1.0)], recipe)
    plain = ranked[0].score
    moments = {"a": NOW - age}
    ranked = boosts.recency(ranked, moments, NOW, recipe.recency_weight)
    ranked = boosts.confidence(ranked, {"a": believed}, recipe.confidence_weight)
    ranked = boosts.about(ranked, {"a"} if about else set(), recipe.entity_weight)
    ranked = boosts.intent(ranked, {"a": namespace}, asked, recipe.tuning.intents[asked.name], recipe.intent_weight)
    (found,) = boosts.usage(ranked, {"a": used}, NOW, recipe.usage_weight)
    most = prod(1 + each for each in (recipe.recency_weight, recipe.entity_weight, recipe.usage_weight))
    most *= 1 + 0.015 * recipe.intent_weight
    least = (1 - recipe.confidence_weight) * (1 - recipe.usage_weight)
    assert plain * least * 0.999999 <= found.score <= plain * most * 1.000001
    assert recipe != Recipe() or plain * 0.72 <= found.score <= plain * 1.4739
    assert found.score == scoring.score(found.reasons)


OFF = Recipe(
    temporal_weight=0, confidence_weight=0, min_confidence=0, entity_weight=0, intent_weight=0, usage_weight=0,
    exact_weight=0, hop_weight=0, standing_weight=0, fresh_weight=0,
)  # fmt: skip
RANKS = Recipe(fusion="rank", alpha=0.5, maxsim_weight=0)  # places instead of heights, as in sums with a pencil
VOCABULARY = ["alpha", "beta", "gamma", "delta", "how", "why", "error", "where", "running"]
SENTENCES = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join)


@pytest.mark.slow
@given(st.lists(SENTENCES, min_size=1, max_size=8), SENTENCES, st.lists(st.integers(0, 50), min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_without_anything_to_act_on_signals_leave_the_plain_recipe(
    texts: list[str], query: str, days: list[int]
) -> None:
    """By rank, (.5 / (60 + rank) for each channel) · (1 + .1 / (1 + days)), and nothing else.

    They are episodes: among notes that are much alike, the newer one would go first.
    """
    memory = opened(MemoryStore(), lambda: NOW)
    for text, age in zip(texts, days, strict=False):
        memory.remember(text, kind="episode", created=NOW - timedelta(days=age))
    hits = memory.search(query).hits
    assert hits == memory.search(query, recipe=OFF).hits
    assert memory.search(query).hits == hits
    for hit in memory.search(query, recipe=RANKS).hits:
        shares = [0.5 / (60 + rank) for rank in (hit.bm25_rank, hit.cosine_rank) if rank is not None]
        age = (NOW - hit.memory.created).days
        assert isclose(hit.score, sum(shares) * (1 + 0.1 / (1 + age)))


# ---------------------------------------------------------------- intent


@pytest.mark.parametrize(
    ("recipe", "namespace", "factor"),
    [
        ({}, "patterns", 1.0135),  # 1 + .9 · .015
        ({}, "learnings", 1.009),  # 1 + .9 · .01
        ({}, "apis", 1.0045),  # 1 + .9 · .005
        ({}, "decisions", 1.0),
        ({"intent_weight": 0.5}, "patterns", 1.00675),  # 1 + .5 · .9 · .015
        ({"intent_weight": 0}, "patterns", 1.0),
        ({"intents": {"how-to": {"recipes": 1.5, "patterns": 0.5}}}, "recipes", 1.45),  # 1 + .9 · .5
        ({"intents": {"how-to": {"recipes": 1.5, "patterns": 0.5}}}, "patterns", 0.55),  # 1 - .9 · .5
        ({"intents": {}}, "patterns", 1.0),
    ],
)
def test_intent_by_hand(memory: Nacre, recipe: Mapping[str, Any], namespace: str, factor: float) -> None:
    memory.remember("deploy the gateway", namespace=namespace)
    result = memory.search("how do I deploy the gateway", recipe=adjusted(Recipe(), **recipe))
    assert isclose(value(result.hits[0], "intent"), factor)
    assert result.intent == (None if recipe.get("intent_weight") == 0 else Intent("how-to", 0.9))
    assert isclose(value(memory.search("deploy gateway").hits[0], "intent"), 1.0)


def test_intent_decides_only_between_near_equals(memory: Nacre) -> None:
    """It puts one of two equals first, and does not make up for a place: 1.0135 / 62 < 1 / 61."""
    first = memory.remember(TIED[0]).id
    second = memory.remember(TIED[1], namespace="patterns").id
    query = "how do I alpha beta"
    equal = memory.search(query, recipe=replace(RANKS, intent_weight=0)).hits
    assert [(hit.id, hit.bm25_rank, hit.cosine_rank) for hit in equal] == [(first, 1, 2), (second, 2, 1)]
    assert equal[0].score == equal[1].score
    assert ids(memory.search(query, recipe=RANKS).hits) == [second, first]
    by_words = memory.search(query, mode="keyword", recipe=RANKS).hits
    assert ids(by_words) == [first, second]
    assert [value(hit, "intent") for hit in by_words] == [1.0, pytest.approx(1.0135)]


@pytest.mark.parametrize("question", ["how do I deploy the gateway", "deploy gateway", "who deploys the gateway"])
@pytest.mark.parametrize(
    ("weights", "namespace", "factor"),
    [({"mine": 1.5}, "mine", 1.5), ({"mine": 0.5}, "mine", 0.5), ({"mine": 1.5}, "other", 1.0), ({}, "mine", 1.0)],
)
def test_namespace_weights_act_whatever_the_intent(
    memory: Nacre, question: str, weights: Mapping[str, float], namespace: str, factor: float
) -> None:
    memory.remember("deploy the gateway", namespace=namespace)
    plain = memory.search(question).hits[0]
    hit = memory.search(question, recipe=Recipe(namespace_weights=weights)).hits[0]
    assert value(hit, "namespace") == factor
    assert isclose(hit.score, plain.score * factor)
    assert isclose(scoring.score(hit.reasons), hit.score)


def test_an_engine_has_namespace_weights_unless_others_are_given(path: Path, clock: Clock) -> None:
    with opened(SqliteStore(path), clock, namespace_weights={"mine": 1.5}) as memory:
        memory.remember("deploy the gateway", namespace="mine")
        memory.save_lens(Lens(name="own", recipe={"namespace_weights": {"mine": 2}}))

        def weight(**options: Any) -> float:
            return value(memory.search("deploy", **options).hits[0], "namespace")

        assert weight() == weight(lens="none") == weight(recipe=Recipe(alpha=0.5)) == 1.5
        assert weight(lens="own") == 2
        assert weight(recipe=Recipe(namespace_weights={"other": 2})) == 1
    with pytest.raises(InvalidInput, match=r"namespace_weights\['mine'\]: is 3; a number from 0.5 to 2"):
        nacre.open(path, namespace_weights={"mine": 3})


def test_a_lens_brings_its_namespace_weights_and_the_caller_wins(memory: Nacre) -> None:
    memory.remember("deploy the gateway", namespace="mine")
    memory.save_lens(Lens(name="own", recipe={"namespace_weights": {"mine": 2}}))
    assert value(memory.search("deploy", lens="own").hits[0], "namespace") == 2
    given = Recipe(namespace_weights={"mine": 0.5})
    assert value(memory.search("deploy", lens="own", recipe=given).hits[0], "namespace") == 0.5


# ---------------------------------------------------------------- importance


@pytest.fixture
def on_any_store(any_store: Store, clock: Clock) -> Iterator[Nacre]:
    with opened(any_store, clock) as engine:
        yield engine


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize("fusion", get_args(Fusion))
def test_of_equals_the_more_important_goes_first(on_any_store: Nacre, mode: Mode, fusion: Fusion) -> None:
    """All have the same words, so all have the same BM25 and the same cosine."""
    texts = ("tea pot blue", "pot tea blue", "blue pot tea", "tea blue pot", "pot blue tea")
    importances = (0.5, 0.1, 0.9, 0.5, 0.9)
    made = [
        on_any_store.remember(text, importance=importance).id
        for text, importance in zip(texts, importances, strict=True)
    ]
    found = on_any_store.search("blue tea pot", mode=mode, collapse=False, recipe=Recipe(fusion=fusion)).hits
    assert ids(found) == [made[at] for at in (2, 4, 0, 3, 1)]
    assert all(each.signal != "importance" for hit in found for each in hit.reasons)
    related = on_any_store.related(made[1]).hits
    assert ids(related) == [made[at] for at in (2, 4, 0, 3)]


def test_importance_is_no_reason_to_go_before_a_better_match(memory: Nacre) -> None:
    better = memory.remember("blue tea pot", importance=0).id
    worse = memory.remember("blue tea cup", importance=1).id
    assert ids(memory.search("blue tea pot").hits) == [better, worse]


@pytest.mark.parametrize(
    ("importance", "weight", "factor"),
    [(1, 1, 1.5), (0, 1, 0.5), (0.5, 1, 1.0), (0.9, 0.5, 1.2), (0.1, 0.5, 0.8), (1, 0, 1.0)],
)
def test_importance_by_hand(memory: Nacre, importance: float, weight: float, factor: float) -> None:
    """1 + weight · (importance - .5)"""
    memory.remember("deploy the gateway", importance=importance)
    plain = memory.search("gateway").hits[0]
    hit = memory.search("gateway", recipe=Recipe(importance_weight=weight)).hits[0]
    assert isclose(value(hit, "importance"), factor)
    assert isclose(hit.score, plain.score * factor)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("importance>=0.7", {0.7, 1}), ("importance>0.7", {1}), ("importance<0.7", {0, 0.5}), ("importance<=0", {0}),
        ("importance:0.5..0.7", {0.5, 0.7}), ("importance:0.5", {0.5}), ("-importance:0.5", {0, 0.7, 1}),
        ("IMPORTANCE >= 0.7", {0.7, 1}), ("importance:>.5", {0.7, 1}), ("importance>=0.7 OR importance:0", {0, 0.7, 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", ["", "tea "])
def test_a_query_asks_for_importance(on_any_store: Nacre, asked: str, found: set[float], words: str) -> None:
    for importance in (0, 0.5, 0.7, 1):
        on_any_store.remember(f"tea number {importance}", importance=importance)
    # An OR joins its sides only, so the words are grouped with neither.
    result = on_any_store.search(f"{words}({asked})" if " OR " in asked else words + asked)
    assert {hit.memory.importance for hit in result.hits} == found
    assert result.notes == ()


# ---------------------------------------------------------------- as of another time


def test_a_search_as_of_a_time_sees_what_was_known_then(memory: Nacre) -> None:
    """Now Paris has ended, and its memory counts .8 + .2 · .1 = .82; ten days ago it held."""

    def ago(days: float) -> datetime:
        return NOW - timedelta(days=days)

    home = {where: NewFact(subject="Ada", predicate="lives in", object=where) for where in ("Paris", "Rome")}
    paris = memory.remember("home of Ada is Paris", facts=[home["Paris"]], created=ago(20)).id
    rome = memory.remember("home of Ada is Rome", facts=[home["Rome"]], created=ago(5)).id

    def found(as_of: datetime | None) -> dict[str, float]:
        hits = memory.search("home of Ada", as_of=as_of, recipe=Recipe(recency_weight=0, usage_weight=0)).hits
        return {hit.id: value(hit, "confidence") for hit in hits}

    assert list(found(None)) == [rome, paris]
    assert isclose(found(None)[paris], 0.82)
    assert isclose(found(None)[rome], 0.8 + 0.2 * 0.7788008, rel_tol=1e-6)  # five days at .05: e^-.25
    assert found(ago(20)) == {paris: 1.0}  # the moment itself belongs to it
    assert found(ago(20) - timedelta(microseconds=1)) == {}
    assert isclose(found(ago(10))[paris], 0.8 + 0.2 * 0.6065307, rel_tol=1e-6)  # e^-.5
    then = memory.search("home of Ada", as_of=ago(10)).hits[0]
    assert [each.numbers["days"] for each in then.reasons if each.signal == "recency"] == [10]
    assert memory.search("home of Ada", as_of=ago(10), where=Filter(created_until=ago(20))).hits == ()
    assert len(found(datetime.max.replace(tzinfo=UTC))) == 2


def test_marks_of_today_do_not_reach_into_the_past(memory: Nacre, clock: Clock) -> None:
    found = memory.remember("alpha").id
    clock.now += timedelta(days=5)
    memory.search("alpha")
    memory.mark(found, "used")
    assert value(memory.search("alpha").hits[0], "usage") > 1.02
    assert value(memory.search("alpha", as_of=NOW).hits[0], "usage") == 1.0


# ---------------------------------------------------------------- near-duplicates

SAME = "The deploy script is in the tools folder of our repo"
SAME_AGAIN = "The deploy script is really in the tools folder of our repo."


def test_what_says_nearly_the_same_is_shown_once(memory: Nacre) -> None:
    first, second = memory.remember(SAME).id, memory.remember(SAME_AGAIN).id
    other = memory.remember("the deploy script needs a token").id
    elsewhere = memory.remember(SAME_AGAIN, space="work").id
    (shown, third) = memory.search("deploy script tools folder").hits
    assert ({shown.id, *shown.similar}, third.id, third.similar) == ({first, second}, other, ())
    everything = memory.search("deploy script tools folder", collapse=False).hits
    assert set(ids(everything)) == {first, second, other}
    assert [hit.similar for hit in everything] == [(), (), ()]
    assert [each.id for each in memory.similar(first)] == [second]
    assert memory.similar(elsewhere) == []
    hidden = shown.similar[0]
    memory.forget(shown.id)
    assert hidden in ids(memory.search("deploy script tools folder").hits)
    memory.restore(shown.id)
    assert memory.separate(first) == 1
    assert memory.separate(first) == 0
    assert set(ids(memory.search("deploy script tools folder").hits)) == {first, second, other}
    assert memory.similar(second) == []
    with pytest.raises(NotFound):
        memory.separate("nothing")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "The staging gateway of the team listens on port 8080",
            "The staging gateway of the team listens on port 8081",
        ),
        ("The nightly backup of the store did finish", "The nightly backup of the store did not finish"),
        ("Ada owns the billing service of the team", "Bob owns the billing service of the team"),
    ],
)
def test_a_digit_a_name_or_a_no_is_never_collapsed(memory: Nacre, one: str, other: str) -> None:
    both = {memory.remember(one).id, memory.remember(other).id}
    assert set(ids(memory.search(one).hits)) == both


def test_a_changed_text_is_compared_anew(memory: Nacre) -> None:
    first, second = memory.remember(SAME).id, memory.remember(SAME_AGAIN).id
    memory.update(second, text="The deploy script has moved into the scripts folder of another repo")
    assert memory.similar(first) == []
    assert len(memory.search("deploy script folder").hits) == 2
    memory.update(second, text=f"{SAME}!")
    assert [each.id for each in memory.similar(first)] == [second]
    assert len(memory.search("deploy script folder").hits) == 1


def test_what_is_like_a_hidden_one_is_still_shown() -> None:
    """b is like a and like c, which are not alike: only b is hidden."""
    ranked = fusion.fuse([Match(each, 1.0) for each in "abcd"], [], Recipe(alpha=0))
    kept, under = collapse(ranked, {"a": ["b"], "b": ["a", "c"], "c": ["b"], "d": ["unknown"]})
    assert ([each.id for each in kept], under) == (["a", "c", "d"], {"b": "a"})


def test_the_best_of_several_like_ones_is_shown(memory: Nacre) -> None:
    """The one that was marked as wrong goes under, whichever came first."""
    first, second = memory.remember(SAME).id, memory.remember(SAME_AGAIN).id
    shown = memory.search("deploy script tools folder").hits[0].id
    memory.mark(shown, "wrong")
    (now,) = memory.search("deploy script tools folder").hits
    assert {now.id, *now.similar} == {first, second}
    assert now.similar == (shown,)


# ---------------------------------------------------------------- how much is shown


def test_a_token_budget(memory: Nacre) -> None:
    """40 letters cost 10 tokens, and 12 for the frame: 22 each."""
    for letter in "abc":
        assert len(f"alpha beta gamma {letter * 23}") == 40
        memory.remember(f"alpha beta gamma {letter * 23}")
    shown = {budget: memory.search("alpha beta", token_budget=budget) for budget in (1, 22, 43, 44, 65, 66)}
    assert {budget: len(result.hits) for budget, result in shown.items()} == {1: 1, 22: 1, 43: 1, 44: 2, 65: 2, 66: 3}
    assert "2 more do not fit into 43 tokens" in shown[43].notes
    assert shown[66].notes == ()
    with pytest.raises(InvalidInput, match="token_budget"):
        memory.search("alpha", token_budget=0)


def test_the_least_relevance(memory: Nacre) -> None:
    for text in ("alpha beta gamma", "alpha of something else entirely", "beta testers of another product at work"):
        memory.remember(text)
    relevance = {hit.id: hit.relevance or 0.0 for hit in memory.search("alpha beta gamma", collapse=False).hits}
    assert len(relevance) == 3
    assert all(0 <= each <= 1 for each in relevance.values())
    for least in relevance.values():
        kept = memory.search("alpha beta gamma", min_score=least).hits
        assert ids(kept) == [each for each, of_it in relevance.items() if of_it >= least]
    best = max(relevance.values())
    if best < 1:
        nothing = memory.search("alpha beta gamma", min_score=1.0)
        assert nothing.hits == ()
        assert f"nothing is relevant: the best is {best:.2f}, below 1.00" in nothing.notes
    assert memory.search("zzz", mode="keyword", min_score=1.0).notes == ()  # nothing was found at all
    for bad in (-0.1, 1.1, True):
        with pytest.raises(InvalidInput, match="min_score"):
            memory.search("alpha", min_score=bad)


# ---------------------------------------------------------------- lenses


def test_a_lens_is_named_chosen_or_kept_away(memory: Nacre) -> None:
    ops = memory.remember("deploy with the ops script", namespace="ops").id
    app = memory.remember("deploy the app", namespace="app").id
    assert memory.search("deploy").lens is None
    memory.save_lens(Lens(name="ops", where=Filter(namespaces=("ops",)), questions=("deploy",)))
    memory.save_lens(Lens(name="apps", where=Filter(namespaces=("app",)), folders=("*/app/*",)))

    def seen(query: str, **options: Any) -> tuple[str | None, set[str]]:
        result = memory.search(query, **options)
        return result.lens, set(ids(result.hits))

    assert seen("how do we deploy?") == ("ops", {ops})  # by the question
    assert seen("how do we deploy?", folder="/home/ada/app") == ("apps", {app})  # the folder tells more
    assert seen("script", folder="/home/ada/web") == (None, {ops})
    assert seen("how do we deploy?", lens="none") == (None, {ops, app})
    assert seen("how do we deploy?", lens="apps") == ("apps", {app})
    assert seen("how do we deploy?", lens="recent") == ("recent", {ops, app})
    assert {value(hit, "recency") for hit in memory.search("deploy", lens="recent").hits} == {2.0}  # 1 + 1 / (1 + 0)
    assert seen("deploy", lens="apps", where=Filter(namespaces=("ops",))) == ("apps", set())
    with pytest.raises(
        InvalidInput, match=r"^lens: 'nothing' is unknown; allowed: none, debugging, .*, facts, apps, ops$"
    ):
        memory.search("deploy", lens="nothing")
    for verb in (memory.lens, memory.drop_lens):
        with pytest.raises(
            InvalidInput, match=r"^lens: 'nothing' is unknown; allowed: debugging, .*, facts, apps, ops$"
        ):
            verb("nothing")
    memory.drop_lens("ops")
    assert seen("how do we deploy?") == (None, {ops, app})


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("login test", "general"),
        ("the login test of Ada", "general"),
        ("where is the login test?", "location"),
        ("how do I run the login test?", "how-to"),
        ("why does the login test fail with a timeout?", "troubleshoot"),
    ],
)
def test_debugging_acts_on_plain_questions(memory: Nacre, query: str, intent: str) -> None:
    """Its factors by hand: 1 + 10 · .015, .01 and .005."""
    for number, namespace in enumerate(("general", "testing", "learnings", "blockers", "decisions")):
        memory.remember(f"the login test {number}", namespace=namespace)
    usual, result = memory.search(query, collapse=False), memory.search(query, collapse=False, lens="debugging")
    assert result.intent is not None
    assert (usual.lens, result.lens, result.intent.name) == (None, "debugging", intent)
    factors = {hit.memory.namespace: value(hit, "namespace") for hit in result.hits}
    assert factors == pytest.approx({"blockers": 1.15, "learnings": 1.1, "testing": 1.05, "general": 1, "decisions": 1})
    assert result.hits[0].memory.namespace == "blockers"
    assert {value(hit, "namespace") for hit in usual.hits} == {1.0}


def test_a_lens_may_boost_entities(memory: Nacre) -> None:
    memory.remember("engine notes", entities=["Ada"])
    memory.save_lens(Lens(name="ada", boost_entities=("Ada",)))
    assert value(memory.search("engine", lens="ada").hits[0], "entity") == 1.2
    assert value(memory.search("engine").hits[0], "entity") == 1.0


# ---------------------------------------------------------------- the recall log


def test_a_receipt_says_what_was_delivered(memory: Nacre, clock: Clock) -> None:
    first, second = memory.remember("alpha beta").id, memory.remember("alpha gamma delta").id
    asked = memory.search("alpha beta", session="s1", mode="keyword", lens="recent")
    clock.now += timedelta(seconds=1)
    again = memory.search("alpha beta", session="s2", mode="keyword", lens="recent")  # the same answer, another receipt
    assert asked.hits == again.hits
    newest, oldest = memory.receipts()
    assert (oldest.id, newest.id) == (asked.receipt, again.receipt)
    assert (oldest.at, oldest.space, oldest.session) == (NOW, "default", "s1")
    assert (oldest.query, oldest.mode, oldest.lens) == ("alpha beta", "keyword", "recent")
    assert [(each.memory_id, each.rank, each.score) for each in oldest.deliveries] == [
        (hit.id, rank, hit.score) for rank, hit in enumerate(asked.hits, 1)
    ]
    assert [each.id for each in memory.receipts(session="s2")] == [newest.id]
    memory.search("gamma")
    assert [len(memory.receipts(memory_id=each)) for each in (first, second, "nothing")] == [2, 3, 0]
    assert memory.receipts(spaces=["work"]) == []
    assert [each.id for each in memory.receipts(limit=1, before=newest.id)] == [oldest.id]


def test_reading_a_memory_marks_it_as_opened(memory: Nacre, clock: Clock) -> None:
    first, second = memory.remember("alpha beta").id, memory.remember("alpha gamma").id
    memory.get(first)  # nothing has delivered it yet: no error, no mark
    clock.now += timedelta(seconds=1)
    memory.search("alpha")
    clock.now += timedelta(minutes=5)
    memory.get([first])
    (receipt,) = memory.receipts()
    opened_at = {each.memory_id: each.opened for each in receipt.deliveries}
    assert opened_at == {first: clock.now, second: None}


def test_reading_very_many_memories_opens_none(memory: Nacre) -> None:
    ids = [receipt.id for receipt in memory.remember_many(f"apple {number}" for number in range(101))]
    memory.search("apple", limit=5)
    memory.get(ids)
    (receipt,) = memory.receipts()
    assert [each.opened for each in receipt.deliveries] == [None] * 5
    memory.get(ids[:100])
    (receipt,) = memory.receipts()
    assert any(each.opened is not None for each in receipt.deliveries)


def test_a_mark_again_changes_nothing(memory: Nacre, clock: Clock) -> None:
    found = memory.remember("alpha", facts=[replace(DOUBTED, confidence=0.8)]).id
    receipt = memory.search("alpha").receipt
    assert memory.mark(found, "used") == [found]
    once = memory.search("alpha").hits[0]
    assert isclose(value(once, "usage"), 1.0200799, rel_tol=1e-6)  # 1 + .1 · 1.005 / 5.005
    assert memory.mark([found, found], "used", receipt) == []
    assert memory.mark(found, "wrong", receipt) == [found]
    assert memory.mark(found, "wrong", receipt) == []
    (fact,) = memory.get(found)[0].facts
    assert fact.confidence == 0.4  # half of .8, once
    clock.now += timedelta(days=2)
    with pytest.raises(InvalidInput, match="receipt"):
        memory.mark(found, "opened")  # no search of the last day
    assert memory.mark(found, "opened", receipt) == [found]
    with pytest.raises(NotFound):
        memory.mark("nothing", "used")
    with pytest.raises(InvalidInput, match="outcome"):
        memory.mark(found, "loved")  # type: ignore[arg-type]


def test_what_was_wrong_is_believed_less_and_sinks(memory: Nacre) -> None:
    """1 + .1 · (.005 - 2) / 6.005 = .9667777 for the mark, .8 + .2 · .5 = .9 for the fact."""
    sure = replace(DOUBTED, confidence=1.0)
    first = memory.remember("alpha beta one", facts=[sure]).id
    second = memory.remember("alpha beta two", facts=[sure]).id
    assert ids(memory.search("alpha beta", mode="keyword").hits) == [first, second]
    memory.mark(first, "wrong")
    hits = memory.search("alpha beta", mode="keyword").hits
    assert ids(hits) == [second, first]
    assert isclose(value(hits[1], "usage"), 0.9667777, rel_tol=1e-6)
    assert isclose(value(hits[1], "confidence"), 0.9)


def test_what_was_used_fades_less(memory: Nacre, clock: Clock) -> None:
    """Ten days of fading: a use takes three of them back."""
    found = memory.remember("alpha", facts=[replace(DOUBTED, decay_rate=0.1)]).id
    clock.now += timedelta(days=10)
    memory.search("alpha")
    memory.mark(found, "used")
    assert memory.get(found)[0].facts[0].reinforced == NOW + timedelta(days=3)


def test_being_shown_alone_moves_nothing(memory: Nacre, clock: Clock) -> None:
    memory.remember("alpha beta one")
    before = memory.search("alpha beta").hits
    for _ in range(40):
        clock.now += timedelta(seconds=61)
        memory.search("alpha")
    assert len(memory.receipts(limit=100)) == 41
    assert memory.search("alpha beta").hits == before


def test_a_log_may_be_left_out(path: Path, clock: Clock) -> None:
    with opened(SqliteStore(path), clock, log=False) as memory:
        found = memory.remember("alpha").id
        result = memory.search("alpha", session="s")
        memory.get(found)
        assert (ids(result.hits), result.receipt, memory.receipts()) == ([found], None, [])
        with pytest.raises(InvalidInput, match="no search delivered"):
            memory.mark(found, "used")


def test_receipts_are_kept_for_some_days(path: Path, clock: Clock) -> None:
    with opened(SqliteStore(path), clock, log_days=2) as memory:
        memory.remember("alpha")
        first = memory.search("alpha").receipt
        second, third, fourth = (search_on(memory, clock, each) for each in (2, 3, 4))
        listed = [fourth, third, second, first]
        assert [each.id for each in memory.receipts()] == listed  # as of the third last day, two days are not over
        clock.now = NOW + timedelta(days=5)
        listed.insert(0, memory.search("alpha").receipt)
        memory._log.flush()
        assert [each.id for each in memory.receipts()] == listed[:-1]


def search_on(memory: Nacre, clock: Clock, day: int) -> str | None:
    clock.now = NOW + timedelta(days=day)
    receipt = memory.search("alpha").receipt
    memory._log.flush()
    return receipt


@pytest.mark.slow
def test_a_receipt_survives_a_program_that_never_closes(path: Path) -> None:
    program = (
        "import sys, nacre; from nacre.embedders.hashing import Hashing\n"
        "memory = nacre.open(sys.argv[1], embedder=Hashing())\n"
        "found = memory.remember('alpha').id\n"
        "memory.search('alpha', session='s')\n"
        "memory.get(found)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)
    with Nacre(SqliteStore(path), Hashing()) as memory:
        (receipt,) = memory.receipts(session="s")
        assert [(each.rank, each.opened is not None) for each in receipt.deliveries] == [(1, True)]
