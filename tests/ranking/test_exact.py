"""Memories with exactly what a question names come first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.query.identifiers import Identifier, find
from nacre.ranking import exact
from nacre.types.memory import Memory, Span
from nacre.types.search import Ranked, Reason
from rankings import IDS, RANKINGS, is_sum_of_reasons, rounded, summed

NOW = datetime(2026, 6, 15, tzinfo=UTC)
CODE, OTHER = Identifier("OPS-1482", "code", Span(0, 8)), Identifier("v2", "code", Span(9, 11))
QUOTE, NAME = Identifier("blue folder", "quote", Span(0, 1)), Identifier("Ada Lovelace", "name", Span(2, 3))


def known(text: str, **fields: object) -> Memory:
    values = {"summary": None, "tags": (), "source": None, **fields}
    return Memory(
        id="a", space="default", kind="note", namespace="general", text=text, session=None, position=None,
        metadata={}, importance=None, created=NOW, updated=NOW, **values,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "named"),
    [
        (known("OPS-1482 is done with v2"), {CODE, OTHER}),
        (known("ops 1482 is done with v2.1"), {CODE}),
        (known("OPS-1428 is done"), set()),
        (known("it is done", source="tickets/OPS-1482.md"), {CODE}),
        (known("it is done", tags=("ops-1482", "v2")), {CODE, OTHER}),
        (known("it is done", summary="OPS-1482"), {CODE}),
        (known("OPS", tags=("1482",)), set()),  # parts in different fields are not one
    ],
)
def test_a_memory_has_what_is_named_in_its_text_or_labels(memory: Memory, named: set[Identifier]) -> None:
    assert exact.named_in(memory, (CODE, OTHER)) == named


def test_by_hand() -> None:
    """The best score is .8: + .8 for a code or a quote, + .12 for a name. c alone has 1.1 · .8 = .88."""
    ranked = [summed("a", 0.8), summed("b", 0.3), summed("d", 0.2)]
    named = {"a": frozenset[Identifier](), "b": {CODE, QUOTE}, "c": {CODE}, "d": {NAME}}
    moved = exact.first(ranked, named, 1.0)
    assert rounded(moved) == {"b": 1.9, "c": 0.88, "a": 0.8, "d": 0.32}
    assert moved[0].reasons[-1] == Reason("exact", "add", 1.6, {"named": 2.0})
    assert rounded(exact.first(ranked, named, 0.5)) == {"b": 1.1, "a": 0.8, "c": 0.44, "d": 0.26}


def test_nothing_named_moves_nothing() -> None:
    ranked = [summed("a", 0.8), summed("b", 0.3)]
    assert exact.first(ranked, {"a": frozenset(), "b": frozenset()}, 1.0) == ranked
    assert exact.first(ranked, {"b": {CODE}}, 0.0) == ranked
    assert exact.first([], {}, 1.0) == []
    assert rounded(exact.first([], {"c": {CODE}}, 1.0)) == {"c": 1.1}  # nothing else was found


@given(RANKINGS, st.dictionaries(st.sampled_from([*IDS, "x", "y"]), st.sets(st.sampled_from([CODE, OTHER, QUOTE]))))
def test_what_has_it_comes_before_what_has_not(ranked: list[Ranked], named: dict[str, set[Identifier]]) -> None:
    moved = exact.first(ranked, named, 1.0)
    assert {each.id for each in moved} == {each.id for each in ranked} | {each for each, has in named.items() if has}
    assert all(map(is_sum_of_reasons, moved))
    having = [bool(named.get(each.id)) for each in moved]
    assert having == sorted(having, reverse=True)


def test_what_is_found_in_a_question_is_found_in_a_memory() -> None:
    identifiers = find('what does "blue folder" mean in OPS-1482 for Ada Lovelace')
    assert exact.named_in(known("Ada Lovelace: the Blue Folder of ops-1482"), identifiers) == set(identifiers)


@pytest.mark.parametrize(("words", "share"), [(1, 1.0), (10, 1.0), (20, 0.25), (0, 1.0)])
def test_a_long_statement_is_less_about_what_it_names(words: int, share: float) -> None:
    assert exact.emphasis("word " * words) == share
