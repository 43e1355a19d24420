"""Facts: confidence and supersession."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from engines import NOW, numbered_ids
from nacre import Fact, InvalidInput, NewEntity, NewFact, NewMemory, NotFound, Recipe
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.facts import confidence
from nacre.facts.supersession import REPLACES_FROM, apply_supersession, conflicting
from nacre.storage.sqlite import SqliteStore
from nacre.types.facts import FactOptions, FactType, Reinforcement


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@dataclass
class Clock:
    """Stands still until it is set."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(path: Path, clock: Clock, **options: Any) -> Nacre:
    """An engine whose ids are x00000, x00001, … in the order they were made."""
    return Nacre(SqliteStore(path), Hashing(), clock=clock, make_ids=numbered_ids("x", 5), **options)


@pytest.fixture
def memory(path: Path, clock: Clock) -> Iterator[Nacre]:
    with opened(path, clock) as engine:
        yield engine


def fact(**changes: Any) -> Fact:
    """A fact from ten days ago that fades by a tenth a day."""
    usual = Fact(
        id="f", memory_id="m", space="default", subject="Ada", predicate="lives in", object="Paris", type="kv",
        confidence=1.0, decay_rate=0.1, reinforced=ago(10), touched=ago(10), valid_from=ago(10), valid_to=None,
        superseded_by=None, quote=None, relation=False, single=True, origin="given",
    )  # fmt: skip
    return replace(usual, **changes)


def state(memory: Nacre, object_: str, days: float, **changes: Any) -> Fact:
    """Remember where Ada lived some days ago; gives the fact as it was written."""
    new = NewFact(**{"subject": "Ada", "predicate": "lives in", "object": object_, **changes})
    text = f"a note on {new.subject} {new.predicate} {object_} of {days} days ago"
    found = memory.remember(text, extract=False, created=ago(days), facts=[new])
    return memory.get(found.id)[0].facts[0]


def holding(memory: Nacre, **options: Any) -> list[str]:
    return [belief.fact.object for belief in memory.facts(**options)]


def now_of(memory: Nacre, written: Fact) -> Fact:
    """A fact as it is now."""
    return memory.facts(memory_id=written.memory_id, history=True)[0].fact


@pytest.mark.parametrize(
    ("least", "history", "objects"),
    [  # Oslo has faded to e^-.5 = .61, Rome to e^-1.5 = .22, and Paris is superseded, so it has the floor of .1
        (0.0, False, ["tea", "Oslo", "Rome"]),
        (0.0, True, ["tea", "Oslo", "Rome", "Paris"]),
        (0.1, True, ["tea", "Oslo", "Rome", "Paris"]),
        (0.11, True, ["tea", "Oslo", "Rome"]),
        (0.22, False, ["tea", "Oslo", "Rome"]),
        (0.23, False, ["tea", "Oslo"]),
        (0.7, False, ["tea"]),
        (1.0, False, []),
    ],
)
def test_faded_facts_are_left_out_where_that_is_asked_for(
    memory: Nacre, least: float, history: bool, objects: list[str]
) -> None:
    state(memory, "Paris", 90)
    state(memory, "Rome", 30)
    state(memory, "Oslo", 10, subject="Bob")
    state(memory, "tea", 1, predicate="likes")
    assert holding(memory, min_confidence=least, history=history) == objects
    assert holding(memory, min_confidence=least, history=history, limit=2) == objects[:2]
    assert holding(memory, min_confidence=least, as_of=ago(30)) == ["Rome"]  # it had just begun


# ---------------------------------------------------------------- how far a fact is believed


@pytest.mark.parametrize(
    ("changes", "believed"),
    [
        ({}, 0.3678794),  # 1 · e^(-.1·10) = e^-1
        ({"confidence": 0.8, "decay_rate": 0.05}, 0.4852245),  # .8 · e^-.5
        ({"confidence": 0.8, "decay_rate": 0.05, "reinforced": ago(9.99)}, 0.5101025),  # .8 · e^-.45: nine whole days
        ({"reinforced": ago(0.99)}, 1.0),  # a day has not passed
        ({"reinforced": NOW + timedelta(days=5)}, 1.0),  # a time to come is today
        ({"decay_rate": 0.0, "confidence": 0.7, "reinforced": ago(9_999)}, 0.7),
        ({"reinforced": ago(22)}, 0.1108032),  # e^-2.2
        ({"reinforced": ago(24)}, 0.1),  # e^-2.4 = .0907 is below the floor
        ({"reinforced": ago(9_999)}, 0.1),
        ({"confidence": 0.08, "reinforced": ago(9_999)}, 0.08),  # never believed more than that
        ({"confidence": 0.0}, 0.0),
        ({"valid_to": NOW}, 0.1),  # it has ended just now
        ({"valid_to": NOW + timedelta(microseconds=1)}, 0.3678794),
        ({"valid_to": NOW, "confidence": 0.06}, 0.06),
        ({"valid_from": NOW, "reinforced": NOW}, 1.0),  # it begins just now
        ({"valid_from": NOW + timedelta(microseconds=1), "reinforced": NOW}, 0.1),
    ],
)
def test_how_far_a_fact_is_believed(changes: dict[str, Any], believed: float) -> None:
    assert round(confidence.effective_confidence(fact(**changes), NOW), 7) == believed


@given(st.floats(0, 1), st.floats(0, 10), st.timedeltas(timedelta(-900), timedelta(9_000)), st.booleans())
def test_fading_stays_between_the_floor_and_the_confidence(
    sure: float, rate: float, since: timedelta, ended: bool
) -> None:
    each = fact(confidence=sure, decay_rate=rate, reinforced=NOW - since, valid_to=NOW if ended else None)
    believed = confidence.effective_confidence(each, NOW)
    assert min(sure, 0.1) <= believed <= sure
    assert confidence.effective_confidence(each, NOW + timedelta(days=1)) <= believed


@pytest.mark.parametrize(
    ("believed", "weight", "factor"),
    [(0.5, 0.2, 0.9), (0.1, 0.2, 0.82), (1.0, 0.2, 1.0), (0.0, 0.2, 0.8), (0.5, 1.0, 0.5), (0.1, 1.0, 0.1), (0, 0, 1)],
)
def test_the_blend_with_the_score(believed: float, weight: float, factor: float) -> None:
    assert isclose(confidence.ranking_factor(believed, weight), factor)


def test_a_memory_is_believed_as_its_facts_on_average(memory: Nacre) -> None:
    """1 · e^-.5 = .6065307 and .4, which does not fade: (.6065307 + .4) / 2 = .5032653."""
    faded = NewFact(subject="Ada", predicate="likes", object="tea", decay_rate=0.05)
    unsure = NewFact(subject="Ada", predicate="likes", object="jam", decay_rate=0, confidence=0.4)
    memory.remember("Ada at breakfast", facts=[faded, unsure], created=ago(10), extract=False)

    def scored(weight: float) -> float:
        recipe = Recipe(confidence_weight=weight, usage_weight=0)
        return memory.search("breakfast", recipe=recipe).hits[0].score

    assert isclose(scored(1) / scored(0), 0.5032653, rel_tol=1e-6)
    assert isclose(scored(0.2) / scored(0), 0.8 + 0.2 * 0.5032653, rel_tol=1e-6)
    (reason,) = [each for each in memory.search("breakfast").hits[0].reasons if each.signal == "confidence"]
    assert isclose(reason.value, 0.9006531, rel_tol=1e-6)
    assert isclose(reason.numbers["effective"], 0.5032653, rel_tol=1e-6)


def test_what_was_read_from_a_text_counts_in_full_while_it_holds() -> None:
    read = fact(origin="extracted", confidence=0.9)
    assert confidence.memory_confidence([read], NOW) == 1.0
    assert confidence.memory_confidence([replace(read, valid_to=ago(1))], NOW) == 0.1
    assert isclose(
        confidence.memory_confidence([replace(read, confidence=0.45)], NOW), 0.45 * 0.3678794, rel_tol=1e-6
    )  # wrong
    assert confidence.memory_confidence([], NOW) == 1.0


@pytest.mark.parametrize(
    ("weight", "least", "factor"),
    [  # .9 · e^-1 = .3310915
        (0.2, 0.1, 1.0),  # the default: it restates the text
        (0.9, 0.1, 1.0),
        (1, 0.1, 0.3310915),  # the full product
        (1, 0.0, 0.3310915),
        (0.5, 0.2, 0.5 + 0.5 * 0.3310915),  # faded ones are filtered, so they fade
        (0.5, 0.33, 0.5 + 0.5 * 0.3310915),
        (0.2, 0.34, None),  # left out
        (0, 0.34, None),
        (0, 0.33, 1.0),
    ],
)
@pytest.mark.parametrize("origin", ["extracted", "given"])
def test_what_was_read_from_a_text_fades_as_given_facts_do_where_that_is_asked_for(
    weight: float, least: float, factor: float | None, origin: str
) -> None:
    every = confidence.every_fact_fades(weight, least)
    believed = confidence.memory_confidence([fact(origin=origin, confidence=0.9)], NOW, all_fade=every)
    if origin == "given" or every:
        assert round(believed, 7) == 0.3310915
    if origin == "extracted" or every:
        shown = confidence.ranking_factor(believed, weight) if believed >= least else None
        assert shown == factor or (shown is not None and factor is not None and isclose(shown, factor, rel_tol=1e-6))


def test_the_full_product_is_the_same_for_read_and_given_facts(memory: Nacre) -> None:
    """A preference of 50 days ago: confidence · e^(-.02 · 50)."""
    memory.remember("I prefer tea over coffee at breakfast", created=ago(50))
    (read,) = memory.facts()
    assert read.fact.origin == "extracted"
    assert read.fact.type == "preference"
    new = NewFact(subject="Ada", predicate="prefers", object="tea", type="preference", confidence=read.fact.confidence)
    memory.remember("Ada at supper", created=ago(50), facts=[new], extract=False)
    effective = read.fact.confidence * 0.3678794

    def shown(query: str, **weights: Any) -> float | None:
        hits = memory.search(query, mode="keyword", lens="none", recipe=Recipe(usage_weight=0, **weights)).hits
        return hits[0].score if hits else None

    for query, usual in (("breakfast", 1.0), ("supper", 0.8 + 0.2 * effective)):
        plain = shown(query, confidence_weight=0) or 0.0
        assert isclose(shown(query, confidence_weight=1) or 0.0, plain * effective, rel_tol=1e-6)
        assert isclose(shown(query) or 0.0, plain * usual, rel_tol=1e-6)
        assert shown(query, min_confidence=effective - 0.01) is not None
        assert shown(query, min_confidence=effective + 0.01) is None


def test_hits_say_how_far_their_facts_are_believed(memory: Nacre) -> None:
    """Of three facts, tea has faded to e^-.5 = .6065307, jam is .4 and does not fade, and Rome is superseded: .1."""
    tea = NewFact(subject="Ada", predicate="likes", object="tea", decay_rate=0.05)
    jam = NewFact(subject="Ada", predicate="likes", object="jam", decay_rate=0, confidence=0.4)
    rome = NewFact(subject="Ada", predicate="lives in", object="Rome")
    told = memory.remember("Ada at breakfast", facts=[tea, jam, rome], created=ago(10), extract=False).id
    state(memory, "Oslo", 1)
    memory.remember("Nobody at breakfast", extract=False)

    def hits(**options: Any) -> dict[str, nacre.Hit]:
        return {hit.text: hit for hit in memory.search("breakfast", **options).hits}

    def beliefs(hit: nacre.Hit) -> list[tuple[str, float]]:
        assert hit.beliefs is not None
        return [(fact.object, round(effective, 7)) for fact, effective in hit.beliefs]

    for options in ({}, {"include_facts": True}, {"recipe": Recipe(confidence_weight=0)}):
        found = hits(**options)
        assert found["Ada at breakfast"].effective_confidence == pytest.approx((0.6065307 + 0.4 + 0.1) / 3)
        assert found["Nobody at breakfast"].effective_confidence is None
    assert {hit.beliefs for hit in hits().values()} == {None}

    found = hits(include_facts=True)
    assert beliefs(found["Ada at breakfast"]) == [("tea", 0.6065307), ("jam", 0.4), ("Rome", 0.1)]
    assert found["Nobody at breakfast"].beliefs == ()
    assert [each.object for each in found["Ada at breakfast"].facts] == ["tea", "jam", "Rome"]
    some = hits(include_facts=True, recipe=Recipe(min_confidence=0.35))["Ada at breakfast"]
    assert beliefs(some) == [("tea", 0.6065307), ("jam", 0.4)]
    assert beliefs(hits(include_facts=True, as_of=ago(5))["Ada at breakfast"]) == [
        ("tea", 0.7788008), ("jam", 0.4), ("Rome", 0.7788008),  # e^-.25
    ]  # fmt: skip
    why = memory.why("breakfast", told, include_facts=True)
    assert why.hit is not None
    assert beliefs(why.hit) == beliefs(found["Ada at breakfast"])


def test_facts_that_are_shown_count_in_a_budget(memory: Nacre) -> None:
    for number in range(6):
        new = NewFact(subject="Ada", predicate="likes", object=f"marmalade of orchard {number} and more of it")
        memory.remember(f"breakfast {number}", facts=[new], extract=False)
    plain = memory.search("breakfast", token_budget=100)
    with_facts = memory.search("breakfast", token_budget=100, include_facts=True)
    assert 0 < len(with_facts.hits) < len(plain.hits) == 6


@pytest.mark.parametrize(
    ("how", "days_left", "believed"),
    [("explicit", 0, 1.0), ("import", 2, 0.8187308), ("reference", 5, 0.6065307), ("recall", 7, 0.4965853)],
)
def test_reinforcement_takes_back_a_share_of_the_time(
    memory: Nacre, clock: Clock, how: Reinforcement, days_left: int, believed: float
) -> None:
    """Ten days at .1: e^-1 = .3678794 before; e^(-.1 · days left) afterwards."""
    written = state(memory, "Paris", 10, decay_rate=0.1)
    assert isclose(memory.facts()[0].effective, 0.3678794, rel_tol=1e-6)
    assert memory.reinforce(written.id, how) == 1
    (belief,) = memory.facts()
    assert belief.fact.reinforced == ago(days_left)
    assert belief.fact.touched == NOW
    assert isclose(belief.effective, believed, rel_tol=1e-6)
    assert memory.reinforce(written.id, how) == 0  # the same moment again
    assert memory.facts() == [belief]
    clock.now = NOW + timedelta(days=10)
    assert memory.reinforce(written.memory_id, how) == 1  # by its memory
    share = confidence.SHARES[how]
    assert now_of(memory, written).reinforced == ago(days_left) + share * timedelta(days=days_left + 10)


def test_reinforcing_several_and_what_is_not_there(memory: Nacre) -> None:
    written = [state(memory, "Paris", 10), state(memory, "Rome", 5)]
    assert memory.reinforce([written[0].id, written[1].memory_id, written[0].memory_id]) == 2
    with pytest.raises(NotFound, match="memory or fact 'nothing'"):
        memory.reinforce([written[0].id, "nothing"])
    with pytest.raises(InvalidInput, match="how"):
        memory.reinforce(written[0].id, "loudly")  # type: ignore[arg-type]


RATES: dict[FactType, float] = {
    "identity": 0.01, "preference": 0.02, "relationship": 0.02, "location": 0.03, "config": 0.03, "decision": 0.05,
    "kv": 0.05, "state": 0.10, "temporal": 0.15,
}  # fmt: skip


def test_each_type_fades_at_its_rate(path: Path, clock: Clock) -> None:
    with opened(path, clock, decay_rates={"state": 0.5, "kv": 0}) as memory:
        for type_, rate in {**RATES, "state": 0.5, "kv": 0.0}.items():
            assert state(memory, type_, 3, type=type_, predicate=type_).decay_rate == rate
        assert state(memory, "other", 2, decay_rate=0.25).decay_rate == 0.25  # its own
    with nacre.open(path, embedder=Hashing(), decay_rates={"decision": 0.4}) as memory:
        assert state(memory, "one", 1, type="decision").decay_rate == 0.4
        assert state(memory, "two", 1, type="state").decay_rate == 0.1


@pytest.mark.parametrize(
    ("rates", "field"),
    [({"kv": 10.1}, "decay_rates.kv"), ({"kv": -1}, "decay_rates.kv"), ({"mood": 0.1}, "decay_rates")],
)
def test_bad_rates_are_refused_before_a_file_is_made(path: Path, rates: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        nacre.open(path, embedder=Hashing(), decay_rates=rates)
    assert caught.value.field == field
    assert not path.exists()


def test_stale_is_below_a_half_for_thirty_days(memory: Nacre, clock: Clock) -> None:
    """At .05 a day a half is reached after ln 2 / .05 = 13.86 days, so it is stale after 43.86; .4 never had a half."""
    decided = state(memory, "tea", 0, predicate="decided", type="decision")
    doubted = state(memory, "Paris", -5, confidence=0.4)
    state(memory, "Ada", 0, predicate="is called", decay_rate=0)
    stale: dict[int, list[str]] = {}
    for day in (34, 35, 43, 44):
        clock.now = NOW + timedelta(days=day)
        stale[day] = [belief.fact.id for belief in memory.stale()]
    assert stale == {34: [], 35: [doubted.id], 43: [doubted.id], 44: [doubted.id, decided.id]}
    assert isclose(memory.stale()[1].effective, 0.1108032, rel_tol=1e-6)  # e^-2.2
    memory.reinforce(decided.id)
    assert [belief.fact.id for belief in memory.stale()] == [doubted.id]
    state(memory, "Rome", -40)  # what has ended is not stale
    assert memory.stale() == []


# ---------------------------------------------------------------- which of several holds


def test_a_newer_value_takes_the_place_of_an_older_one(memory: Nacre) -> None:
    paris, rome = state(memory, "Paris", 20), state(memory, "Rome", 5)
    assert holding(memory) == ["Rome"]
    assert now_of(memory, paris) == replace(paris, valid_to=ago(5), superseded_by=rome.id)
    assert now_of(memory, rome) == rome
    history = memory.facts(history=True)
    assert [belief.fact.object for belief in history] == ["Rome", "Paris"]  # the newest first
    assert history[1].effective == 0.1
    assert memory.conflicts() == []


@pytest.mark.parametrize("order", [*permutations([("Paris", 30), ("Rome", 20), ("Oslo", 10)])])
def test_the_order_of_writing_does_not_matter(memory: Nacre, order: Sequence[tuple[str, int]]) -> None:
    written = {where: state(memory, where, days) for where, days in order}
    now = {where: now_of(memory, each) for where, each in written.items()}
    ends = {where: (each.valid_to, each.superseded_by) for where, each in now.items()}
    assert ends == {"Paris": (ago(20), now["Rome"].id), "Rome": (ago(10), now["Oslo"].id), "Oslo": (None, None)}


def delivered(where: str, days: int, sure: float, lasted: int | None, single: bool) -> Fact:
    ends = None if lasted is None else ago(days - lasted)
    delivered = fact(object=where, valid_from=ago(days), reinforced=ago(days), confidence=sure, decay_rate=0.05)
    return replace(delivered, valid_to=ends, ends=ends, single=single)


TOWNS, SURE = st.sampled_from(["Paris", "Rome", "Oslo"]), st.sampled_from([0.1, 0.4, 1.0])
LASTED = st.none() | st.integers(1, 30)
FACTS = st.lists(
    st.builds(delivered, TOWNS, st.integers(0, 40), SURE, LASTED, st.integers(0, 3).map(bool)), max_size=7
).map(lambda facts: [replace(each, id=f"f{at}") for at, each in enumerate(facts)])


@pytest.mark.slow
@given(FACTS, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_what_holds_is_computed_from_the_facts_alone(facts: list[Fact], random: Any) -> None:
    once = sorted(apply_supersession(facts), key=lambda each: each.id)
    shuffled = list(facts)
    random.shuffle(shuffled)
    assert sorted(apply_supersession(shuffled), key=lambda each: each.id) == once
    assert sorted(apply_supersession(once), key=lambda each: each.id) == once  # settled again, nothing moves
    by_id = {each.id: each for each in once}
    for each in once:
        assert each.ends is None or (each.valid_to is not None and each.valid_to <= each.ends)
        assert each.single or (each.valid_to, each.superseded_by) == (each.ends, None)
        if each.superseded_by is not None:
            successor = by_id[each.superseded_by]
            assert each.valid_to == successor.valid_from > each.valid_from
            assert successor.object != each.object
    if all(each.confidence == 1 and each.single for each in facts):  # then only equal times disagree
        starts = {each.valid_from for each in facts}
        assert len(starts) < len(facts) or conflicting(once, NOW) == []


@pytest.mark.parametrize(
    ("predicate", "changes", "hold"),
    [
        ("likes", {}, ["Rome", "Paris"]),
        ("uses", {"type": "config"}, ["Rome", "Paris"]),
        ("depends_on", {}, ["Rome", "Paris"]),
        ("is", {"type": "state"}, ["Rome"]),
        ("is", {"type": "identity"}, ["Rome", "Paris"]),
        ("favourite town", {"type": "kv"}, ["Rome"]),
        ("favourite town", {"type": "preference"}, ["Rome", "Paris"]),
        ("worksAt", {"type": "relationship"}, ["Rome"]),
        ("likes", {"single": True}, ["Rome"]),
        ("lives in", {"single": False}, ["Rome", "Paris"]),
    ],
)
def test_some_predicates_have_one_value_and_some_have_several(
    memory: Nacre, predicate: str, changes: dict[str, Any], hold: list[str]
) -> None:
    for where, days in (("Paris", 9), ("Rome", 3)):
        state(memory, where, days, predicate=predicate, **changes)
    assert holding(memory) == hold
    assert memory.conflicts() == []


def test_the_same_said_again_closes_nothing(memory: Nacre) -> None:
    once, again = state(memory, "Paris", 9), state(memory, "  PARIS", 3, predicate="lives_in")
    assert [now_of(memory, each).valid_to for each in (once, again)] == [None, None]
    assert memory.conflicts() == []
    state(memory, "Rome", 1)
    assert [now_of(memory, each).valid_to for each in (once, again)] == [ago(1), ago(1)]


@pytest.mark.parametrize(
    ("rate", "sure", "replaced"),
    [
        (0, 0.5, True),  # half as sure as the older one is enough
        (0, 0.49, False),
        (0.05, 0.19, True),  # after 20 days the older one is believed e^-1 = .3679; half of that is .1839
        (0.05, 0.18, False),
    ],
)
def test_a_much_less_sure_value_makes_a_conflict(memory: Nacre, rate: float, sure: float, replaced: bool) -> None:
    assert REPLACES_FROM == 0.5
    state(memory, "Paris", 22, decay_rate=rate)
    state(memory, "Rome", 2, confidence=sure)
    assert holding(memory) == (["Rome"] if replaced else ["Rome", "Paris"])
    if replaced:
        assert memory.conflicts() == []
    else:
        (conflict,) = memory.conflicts()
        assert (conflict.subject, conflict.predicate) == ("Ada", "lives in")
        assert [belief.fact.object for belief in conflict.beliefs] == ["Paris", "Rome"]
        assert isclose(conflict.beliefs[1].effective, sure * 0.9048374, rel_tol=1e-6)  # two days at .05
        state(memory, "Oslo", 1)  # a sure one ends the conflict
        assert (holding(memory), memory.conflicts()) == (["Oslo"], [])


def test_equal_times_make_a_conflict(memory: Nacre) -> None:
    state(memory, "Paris", 3)
    state(memory, "Rome", 3)
    assert sorted(holding(memory)) == ["Paris", "Rome"]
    assert [len(each.beliefs) for each in memory.conflicts()] == [2]


def test_a_given_end_stays(memory: Nacre) -> None:
    paris, rome = state(memory, "Paris", 30, valid_to=ago(20)), state(memory, "Rome", 20, valid_to=ago(10))
    oslo, lima = state(memory, "Oslo", 5, valid_to=ago(-9)), state(memory, "Lima", 2)
    assert [now_of(memory, each) for each in (paris, rome)] == [paris, rome]  # they had ended before the next
    assert now_of(memory, oslo) == replace(oslo, valid_to=ago(2), superseded_by=lima.id)
    towns = [holding(memory, as_of=ago(days)) for days in (31, 30, 20, 15, 10, 7, 5, 2, 0)]
    assert towns == [[], ["Paris"], ["Rome"], ["Rome"], [], [], ["Oslo"], ["Lima"], ["Lima"]]
    memory.forget(lima.memory_id)
    assert now_of(memory, oslo) == oslo


def test_a_fact_begins_when_its_memory_happened(memory: Nacre) -> None:
    delivered = memory.remember("Ada lives in Paris.", happened=ago(50), facts=[_home("Rome")], created=ago(1)).id
    assert {(each.valid_from, each.reinforced) for each in memory.get(delivered)[0].facts} == {(ago(50), ago(50))}
    own = memory.remember("a letter", facts=[replace(_home("Oslo"), valid_from=ago(70))]).id
    assert [(each.valid_from, each.reinforced) for each in memory.get(own)[0].facts] == [(ago(70), NOW)]


@pytest.mark.parametrize(
    "undo",
    [
        lambda memory, newer: memory.forget(newer.memory_id),
        lambda memory, newer: memory.purge(newer.memory_id),
        lambda memory, newer: memory.drop_facts(newer.id),
    ],
)
def test_without_the_newer_one_the_older_holds_again(memory: Nacre, undo: Callable[[Nacre, Fact], None]) -> None:
    paris, rome, oslo = state(memory, "Paris", 30), state(memory, "Rome", 20), state(memory, "Oslo", 10)
    undo(memory, rome)
    assert (now_of(memory, paris).valid_to, now_of(memory, paris).superseded_by) == (ago(10), oslo.id)
    undo(memory, oslo)
    assert now_of(memory, paris) == paris
    assert holding(memory) == ["Paris"]


def test_a_restored_memory_closes_the_older_fact_again(memory: Nacre) -> None:
    paris, rome = state(memory, "Paris", 30), state(memory, "Rome", 20)
    memory.forget(rome.memory_id)
    assert holding(memory, history=True) == ["Paris"]  # what a forgotten memory says is not listed
    memory.restore(rome.memory_id)
    assert (now_of(memory, paris).valid_to, now_of(memory, paris).superseded_by) == (ago(20), rome.id)


def test_dropping_what_is_not_there_drops_nothing(memory: Nacre) -> None:
    paris = state(memory, "Paris", 3)
    with pytest.raises(NotFound, match="fact 'nothing'"):
        memory.drop_facts([paris.id, "nothing"])
    assert holding(memory) == ["Paris"]


def test_a_later_change_of_belief_is_seen_at_once(memory: Nacre) -> None:
    """.6 takes the place of 1; found wrong it is .3, which is less than half of 1."""
    state(memory, "Paris", 9, decay_rate=0)
    rome = state(memory, "Rome", 3, confidence=0.6)
    assert holding(memory) == ["Rome"]
    memory.search("Rome")
    memory.mark(rome.memory_id, "wrong")
    assert holding(memory) == ["Rome", "Paris"]


def test_a_changed_text_is_read_anew(memory: Nacre) -> None:
    first = memory.remember("Ada lives in Paris.", created=ago(9)).id
    liking = NewFact(subject="Ada", predicate="likes", object="tea")
    second = memory.remember("Ada lives in Rome.", created=ago(3), facts=[liking]).id
    assert holding(memory, predicate="lives in") == ["Rome"]
    before = memory.get(second)[0].facts
    memory.update(second, tags=["town"])
    assert memory.get(second)[0].facts == before
    memory.update(second, text="Bob lives in Oslo. Ada likes tea.")
    assert sorted(holding(memory, predicate="lives in")) == ["Oslo", "Paris"]
    assert now_of(memory, memory.get(first)[0].facts[0]).superseded_by is None
    assert [(each.subject, each.object, each.origin) for each in memory.get(second)[0].facts] == [
        ("Ada", "tea", "given"),  # and not read once more
        ("Bob", "Oslo", "extracted"),
    ]


def test_facts_of_one_who_has_two_names_are_one_story(memory: Nacre) -> None:
    paris, rome = state(memory, "Paris", 9), state(memory, "Rome", 3, subject="The Countess")
    assert sorted(holding(memory)) == ["Paris", "Rome"]
    memory.add_entity("Ada", aliases=["the countess"])
    assert (now_of(memory, paris).valid_to, now_of(memory, paris).superseded_by) == (ago(3), rome.id)
    assert holding(memory, subject="the COUNTESS", history=True) == ["Rome", "Paris"]
    state(memory, "Oslo", 3, subject="Ada")
    assert [len(each.beliefs) for each in memory.conflicts()] == [2]
    memory.drop_entity("Ada")
    assert sorted(holding(memory)) == ["Oslo", "Rome"]
    assert memory.conflicts() == []


def test_names_that_come_with_a_memory_join_stories_too(memory: Nacre) -> None:
    state(memory, "Paris", 9)
    state(memory, "Rome", 3, subject="The Countess")
    memory.remember("who is who", entities=[NewEntity(name="Ada", aliases=["the countess"])])
    assert holding(memory) == ["Rome"]


# ---------------------------------------------------------------- asking for facts

ASKED: list[tuple[FactOptions, list[str]]] = [
    ({}, ["Acme", "Rome", "tea"]),
    ({"history": True}, ["Acme", "Rome", "tea", "Paris"]),
    ({"as_of": ago(7)}, ["Paris"]),
    ({"as_of": ago(20)}, []),
    ({"subject": "ADA"}, ["Rome", "tea"]),
    ({"subject": "the countess"}, ["Rome", "tea"]),
    ({"predicate": "lives_in"}, ["Rome"]),
    ({"predicate": "livesIn", "history": True}, ["Rome", "Paris"]),
    ({"object": "Acme Inc"}, ["Acme"]),
    ({"type": "preference"}, ["tea"]),
    ({"relations": True}, ["Acme"]),
    ({"limit": 1}, ["Acme"]),
    ({"subject": "Ada", "type": "kv", "predicate": "likes"}, []),
    ({"memory_id": "nothing"}, []),
    ({"spaces": ["elsewhere"]}, []),
    ({"spaces": ["elsewhere", "default"], "object": "rome"}, ["Rome"]),
]


@pytest.mark.parametrize(("options", "objects"), ASKED)
def test_which_facts_are_asked_for(memory: Nacre, options: FactOptions, objects: list[str]) -> None:
    state(memory, "Paris", 9)
    state(memory, "tea", 5, predicate="likes", type="preference")
    rome = state(memory, "Rome", 3)
    state(memory, "Acme", 1, subject="Bob", predicate="works at", type="relationship", relation=True)
    memory.add_entity("Ada", aliases=["The Countess"])
    memory.add_entity("Acme", aliases=["Acme Inc"])
    assert holding(memory, **options) == objects
    assert holding(memory, memory_id=rome.memory_id) == ["Rome"]


def test_beliefs_are_those_of_the_time_that_is_asked_for(memory: Nacre) -> None:
    state(memory, "Paris", 30, decay_rate=0.1)
    assert [round(memory.facts(as_of=ago(days))[0].effective, 7) for days in (30, 20, 10)] == [1, 0.3678794, 0.1353353]


def _home(where: str) -> NewFact:
    return NewFact(subject="Ada", predicate="lives in", object=where)


def test_facts_come_with_hits_and_with_memories(memory: Nacre) -> None:
    tea = NewFact(subject="Ada", predicate="likes", object="tea", quote="tea, always")
    found = memory.remember("Ada lives in Paris.", facts=[tea]).id
    kept = memory.get(found)[0].facts
    assert [(each.object, each.origin, each.quote) for each in kept] == [
        ("tea", "given", "tea, always"),
        ("Paris", "extracted", "Ada lives in Paris."),
    ]
    assert memory.search("Paris").hits[0].facts == kept
    added = memory.add_facts(found, [_home("Rome"), tea])  # the same time: no successor, and the same again is allowed
    assert memory.search("Paris").hits[0].facts == memory.get(found)[0].facts == (*kept, *added)


@pytest.mark.parametrize(
    ("engine", "own", "facts"), [(True, None, 1), (False, None, 0), (True, False, 0), (False, True, 1), (True, True, 1)]
)
def test_reading_facts_from_texts_can_be_left(
    path: Path, clock: Clock, engine: bool, own: bool | None, facts: int
) -> None:
    with opened(path, clock, extract=engine) as memory:
        memory.remember("Ada lives in Paris.", extract=own)
        assert len(memory.facts()) == facts


def test_what_is_given_is_not_read_again(memory: Nacre) -> None:
    same = NewFact(subject="ada", predicate="livesIn", object="PARIS", confidence=0.3)
    memory.remember("Ada lives in Paris. Ada likes tea.", facts=[same])
    assert sorted((belief.fact.object, belief.fact.origin) for belief in memory.facts()) == [
        ("PARIS", "given"),
        ("tea", "extracted"),
    ]


# ---------------------------------------------------------------- what is not allowed

BAD: list[tuple[dict[str, Any], str]] = [
    ({"subject": ""}, "subject"),
    ({"subject": "x" * 201}, "subject"),
    ({"object": "x" * 2_001}, "object"),
    ({"object": "\x00"}, "object"),
    ({"type": "mood"}, "type"),
    ({"confidence": 1.1}, "confidence"),
    ({"confidence": True}, "confidence"),
    ({"decay_rate": 11}, "decay_rate"),
    ({"valid_from": NOW.replace(tzinfo=None)}, "valid_from"),
    ({"valid_to": "2026"}, "valid_to"),
    ({"valid_from": NOW, "valid_to": NOW}, "valid_to"),
    ({"quote": ""}, "quote"),
    ({"relation": 1}, "relation"),
    ({"single": "yes"}, "single"),
]


@pytest.mark.parametrize(("changes", "field"), BAD)
def test_a_bad_fact_is_refused_and_nothing_is_written(memory: Nacre, changes: dict[str, Any], field: str) -> None:
    good = NewFact(subject="Ada", predicate="likes", object="tea")
    facts = [good, replace(good, **changes)]
    with pytest.raises(InvalidInput) as caught:
        memory.remember_many([NewMemory(text="fine", facts=[good]), NewMemory(text="bad", facts=facts)])
    assert caught.value.field == f"facts[1].{field}"
    assert "item 2" in caught.value.problem
    assert (memory.stats().memories, memory.facts(), memory.entities()) == (0, [], [])
    kept = memory.remember("kept").id
    with pytest.raises(InvalidInput) as caught:
        memory.add_facts(kept, facts)
    assert caught.value.field == f"facts[1].{field}"
    assert (memory.facts(), memory.entities()) == ([], [])


def test_an_end_before_the_memory_needs_a_beginning(memory: Nacre) -> None:
    """Else it would hold at no time at all."""
    left = NewFact(subject="Ada", predicate="works at", object="Acme", valid_to=ago(99))
    kept = memory.remember("kept").id
    for write in (lambda: memory.remember("bad", facts=[left]), lambda: memory.add_facts(kept, [left])):
        with pytest.raises(InvalidInput, match="valid_to"):
            write()
    assert (memory.stats().memories, memory.facts(history=True), memory.entities()) == (1, [], [])
    memory.add_facts(kept, [replace(left, valid_from=ago(300))])
    assert (holding(memory), holding(memory, as_of=ago(100))) == ([], ["Acme"])


def test_facts_need_a_live_memory_and_questions_sense(memory: Nacre) -> None:
    gone = memory.remember("gone").id
    memory.forget(gone)
    for memory_id in (gone, "nothing"):
        with pytest.raises(NotFound):
            memory.add_facts(memory_id, [_home("Paris")])
    assert memory.facts(history=True) == []
    for options, field in (
        ({"type": "mood"}, "type"),
        ({"limit": 0}, "limit"),
        ({"as_of": NOW.replace(tzinfo=None)}, "as_of"),
        ({"subject": 5}, "subject"),
        ({"spaces": "default"}, "spaces"),
    ):
        unchecked: Any = options
        with pytest.raises(InvalidInput) as caught:
            memory.facts(**unchecked)
        assert caught.value.field == field
    with pytest.raises(InvalidInput, match="must be a NewFact"):
        memory.remember("text", facts=[{"subject": "Ada"}])  # type: ignore[list-item]


# ---------------------------------------------------------------- values of one thing, in texts


def current_objects(memory: Nacre, *texts: tuple[str, str | None]) -> list[str]:
    """The objects of the current facts after these texts with their sources were remembered on successive days."""
    for day, (text, source) in enumerate(texts, 1):
        memory.remember(text, source=source, created=datetime(2026, 1, day, tzinfo=UTC))
    return sorted(each.fact.object for each in memory.facts())


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([("timeout = 30", "app.toml"), ("timeout: 45  # raised", "app.toml")], ["45"]),
        ([("PORT=80", "prod.env"), ("PORT=81", "staging.env")], ["80", "81"]),
        ([("PORT=80", None), ("PORT=81", None)], ["80", "81"]),
        ([("Omar leads the platform team.", None), ("Lena leads the platform team.", None)], ["Lena"]),
        ([("Omar leads the platform team.", None), ("Lena leads the data team.", None)], ["Lena", "Omar"]),
        ([("The rent is 1,200 euros.", None), ("The rent is 1,350 euros.", None)], ["1,350 euros"]),
        ([("Ada is a nurse.", None), ("Ada is a mother.", None)], ["a mother", "a nurse"]),
        ([("The lead of the data team is Bo.", None), ("Lena now leads the data team.", None)], ["Lena"]),
    ],
)
def test_newer_values_supersede(memory: Nacre, texts: list[tuple[str, str | None]], expected: list[str]) -> None:
    assert current_objects(memory, *texts) == expected
