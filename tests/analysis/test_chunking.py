"""Splitting a text into passages: no text is lost, no passage is too long, and it always terminates."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.chunking import split_passages
from nacre.embedders.hashing import Hashing
from nacre.types.memory import Span

Units = list[tuple[Span, int]]


def units_of(text: str, pieces: int = 1) -> Units:
    """Words as units, all of the same weight."""
    return [(Span(*found.span()), pieces) for found in re.finditer(r"\S+", text)]


def texts_of(text: str, spans: tuple[Span, ...]) -> list[str]:
    return [text[span.start : span.end] for span in spans]


def weight(units: Units, span: Span) -> int:
    return sum(pieces for unit, pieces in units if span.start <= unit.start and unit.end <= span.end)


def test_a_short_text_is_one_passage_with_all_its_white_space() -> None:
    text = "  a few words \n"
    assert split_passages(text, units_of(text), 10) == (Span(0, len(text)),)


def test_a_text_that_just_fits_is_one_passage() -> None:
    text = " ".join("x" * 10)
    assert split_passages(text, units_of(text), 10) == (Span(0, len(text)),)
    assert len(split_passages(text, units_of(text), 9)) == 2


@pytest.mark.parametrize("text", ["", "   ", "…"])
def test_a_text_without_units_is_one_passage(text: str) -> None:
    assert split_passages(text, [], 10) == (Span(0, len(text)),)


def test_one_giant_unit_is_a_passage_of_its_own() -> None:
    """It cannot be divided; the embedder takes in what it can."""
    text = "a " + "b" * 50 + " c"
    units = [(Span(0, 1), 1), (Span(2, 52), 500), (Span(53, 54), 1)]
    spans = split_passages(text, units, 10)
    assert texts_of(text, spans) == ["a", "b" * 50, "c"]


def test_only_a_giant_unit() -> None:
    assert split_passages("b" * 50, [(Span(0, 50), 500)], 10) == (Span(0, 50),)


def test_passages_overlap_by_about_a_sixth() -> None:
    """60 pieces a passage, so 10 words are repeated."""
    text = " ".join(f"w{number}" for number in range(200))
    spans = split_passages(text, units_of(text), 60)
    for left, right in pairwise(texts_of(text, spans)):
        shared = [word for word in right.split() if word in left.split()]
        assert len(shared) == 10
        assert left.split()[-10:] == right.split()[:10] == shared


@pytest.mark.parametrize("end", [".", "!", "?", "。", "…", '."', ".)", ".”"])
def test_a_passage_ends_at_a_sentence_border_that_is_near(end: str) -> None:
    """30 pieces fit; the border after the 25th word lies in the last third."""
    words = [f"w{number}" for number in range(60)]
    words[24] += end
    text = " ".join(words)
    first = texts_of(text, split_passages(text, units_of(text), 30))[0]
    assert first.split()[-1] == f"w24{end}"


def test_a_passage_ends_at_a_paragraph() -> None:
    text = " ".join(f"w{number}" for number in range(25)) + "\n\n" + " ".join(f"v{number}" for number in range(25))
    first = texts_of(text, split_passages(text, units_of(text), 30))[0]
    assert first.split()[-1] == "w24"


def test_a_sentence_border_far_from_the_end_is_not_used() -> None:
    words = [f"w{number}" for number in range(60)]
    words[5] += "."
    text = " ".join(words)
    first = texts_of(text, split_passages(text, units_of(text), 30))[0]
    assert len(first.split()) == 30


def test_the_next_passage_begins_at_a_sentence_where_one_is_near() -> None:
    """36 pieces a passage, 6 repeated at most; the sentence beginning within them is where it goes on."""
    words = [f"w{number}" for number in range(80)]
    words[32] += "."
    text = " ".join(words)
    first, second = texts_of(text, split_passages(text, units_of(text), 36))[:2]
    assert first.split()[-1] == "w32."
    assert second.split()[0] in {"w27", "w28", "w29", "w30", "w31", "w32.", "w33"}
    assert "w33" in second.split()


WORDS = st.sampled_from(["a", "word", "end.", "stop!", 'said."', "日本。", "longer-word", "?"])
SPACES = st.sampled_from([" ", "  ", "\n", "\n\n"])


@st.composite
def texts_with_units(draw: st.DrawFn) -> tuple[str, Units]:
    text = draw(SPACES)
    units: Units = []
    for word in draw(st.lists(WORDS, max_size=60)):
        pieces = draw(st.integers(1, 8) | st.just(40))
        units.append((Span(len(text), len(text) + len(word)), pieces))
        text += word + draw(SPACES)
    return text, units


@given(texts_with_units(), st.integers(1, 30))
def test_passages_cover_everything_and_always_progress(given_text: tuple[str, Units], pieces_max: int) -> None:
    text, units = given_text
    spans = split_passages(text, units, pieces_max)
    assert spans
    for unit, _ in units:
        assert any(span.start <= unit.start and unit.end <= span.end for span in spans)
    for span in spans:
        assert 0 <= span.start <= span.end <= len(text)
        several = sum(span.start <= unit.start and unit.end <= span.end for unit, _ in units) > 1
        assert not several or weight(units, span) <= pieces_max
    for left, right in pairwise(spans):
        assert left.start < right.start
        assert left.end <= right.end  # equal only before a giant unit that does not fit behind the overlap
    assert len(spans) <= max(1, len(units))
    assert split_passages(text, units, pieces_max) == spans


@pytest.mark.slow
@given(st.text(max_size=400))
def test_the_units_of_an_embedder_can_be_cut(text: str) -> None:
    units = Hashing().weigh(text)
    spans = split_passages(text, units, 7)
    assert all(weight(units, span) <= 7 for span in spans)
    assert all(any(span.start <= unit.start and unit.end <= span.end for span in spans) for unit, _ in units)


def test_a_very_long_text_is_cut_in_no_time() -> None:
    """Work grows with the text, not with its square."""
    text = "word " * 50_000
    assert len(split_passages(text, units_of(text), 254)) > 190
