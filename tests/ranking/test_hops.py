"""A second look with rare names that the first hits have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis import tokenizer
from nacre.ranking import hops, scoring
from nacre.ranking.hops import Name
from nacre.types.search import Ranked
from rankings import IDS, RANKINGS, is_sum_of_reasons, rounded, summed


@pytest.mark.parametrize(
    ("text", "asked", "names"),
    [
        ("the boiler is under the Wärmeplus contract", "boiler", ["Wärmeplus"]),
        ("Wärmeplus looks after the boiler", "boiler", ["Wärmeplus"]),
        ("the boiler belongs to Bob", "who is bob", []),  # the question has it
        ("see OPS-1482, then OPS-1482", "boiler", ["OPS-1482"]),
        ("Ada's and Ada’s boiler, by ADA", "boiler", ["Ada"]),
        ("The boiler. It is cold. We are not.", "boiler", []),  # function words
        ("Bob: the boiler is cold", "boiler", []),  # who says it
        ("at noon: Bob came", "boiler", ["Bob"]),
        ("Al and Bo", "boiler", []),  # too short
        ("the boiler is cold", "boiler", []),
        ("", "boiler", []),
        ("Bob " + "x" * 996, "boiler", ["Bob"]),
        ("Bob " + "x" * 997, "boiler", []),  # a long text names much that is not asked about
    ],
)
def test_names_in_a_text(text: str, asked: str, names: list[str]) -> None:
    found = hops.names_in(text, set(tokenizer.query_tokens(asked)))
    assert [each.text for each in found] == names


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("call Wärmeplus", True),
        ("Wärmeplus's number", True),
        ("wärmeplus", False),  # a word is not a name
        ("Wärmepluscard", False),
    ],
)
def test_a_name_stands_in_a_text(text: str, stands: bool) -> None:
    assert Name("Wärmeplus", ("warmeplus",)).stands_in(text) == stands


def test_rare_names_are_those_of_few_memories() -> None:
    """In 100 memories a name may have 4, in 1,000 it may have 10; one memory alone leads nowhere."""
    names = [Name(each, tuple(each.lower().split())) for each in ("Once", "Twice", "Four", "Five", "Ten", "Rare Word")]
    having = {"once": 1, "twice": 2, "four": 4, "five": 5, "ten": 10, "rare": 3, "word": 90}
    assert [each.text for each in hops.rare(names, having, 100)] == ["Twice", "Rare Word", "Four"]
    assert [each.text for each in hops.rare(names, having, 1_000)] == ["Twice", "Rare Word", "Four", "Five", "Ten"]
    assert hops.rare([Name("Never", ("never",))], {}, 100) == []
    many = [Name(f"N{number}", ("n",)) for number in range(20)]
    assert len(hops.rare(many, {"n": 2}, 100)) == hops.NAMES_MAX


def test_by_hand() -> None:
    """b gets .2 of .8, by the better of two hits; c comes in by .2 of .5."""
    ranked = [summed("a", 0.8), summed("b", 0.3)]
    found = [("b", "Ada", 0.8), ("b", "Bob", 0.5), ("c", "Bob", 0.5), ("b", "Ada", 0.5)]
    moved = hops.followed(ranked, found, 0.2)
    assert rounded(moved) == {"a": 0.8, "b": 0.46, "c": 0.1}
    assert [each.reasons[-1].numbers for each in moved[1:]] == [{"names": 2.0}, {"names": 1.0}]
    assert [each.reasons[-1].signal for each in moved[1:]] == ["hop", "hop"]
    assert hops.followed(ranked, [], 0.2) == ranked


def test_what_a_hit_leads_to_stays_behind_it() -> None:
    """b would get .5 · .8 = .4 and come before a; it gets .95 · .8 − .5 = .26. c stood before a already."""
    ranked = scoring.best_first([summed("a", 0.8), summed("b", 0.5), summed("c", 0.9)])
    moved = hops.followed(ranked, [("b", "Ada", 0.8), ("c", "Ada", 0.8)], 0.5)
    assert rounded(moved) == {"c": 0.9, "a": 0.8, "b": 0.76}
    assert [each.reasons[-1].signal for each in moved] == [ranked[0].reasons[-1].signal] * 2 + ["hop"]


@given(
    RANKINGS,
    st.lists(st.tuples(st.sampled_from([*IDS, "x"]), st.sampled_from(["Ada", "Bob"]), st.floats(0.001, 10))),
    st.floats(0, 1),
)
def test_nothing_falls_and_nothing_is_lost(
    ranked: list[Ranked], found: list[tuple[str, str, float]], weight: float
) -> None:
    moved = {each.id: each for each in hops.followed(ranked, found, weight)}
    assert moved.keys() == {each.id for each in ranked} | {each for each, *_ in found}
    assert all(map(is_sum_of_reasons, moved.values()))
    assert all(moved[each.id].score >= each.score for each in ranked)


@given(st.text(max_size=300), st.sets(st.text(max_size=5), max_size=3))
def test_any_text_has_names_or_none(text: str, asked: set[str]) -> None:
    for name in hops.names_in(text, asked):
        assert name.text in text
        assert name.tokens
        assert asked.isdisjoint(name.tokens)
        name.stands_in(text)
