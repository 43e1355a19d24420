"""Splits a long text into overlapping passages that fit an embedder's input."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.types.memory import Span

_SENTENCE_ENDS = tuple(".!?。！？…।؟")
_CLOSERS = "\"'”’)]»」』"


def split_passages(text: str, units: Sequence[tuple[Span, int]], pieces_max: int) -> tuple[Span, ...]:
    """Spans of at most `pieces_max` word pieces that end at a sentence boundary where one is near.

    `units` are the indivisible parts of the text, each with its number of word pieces. Passages overlap by about a
    sixth, so that a statement at a boundary is whole in one of them.
    """
    if sum(pieces for _, pieces in units) <= pieces_max:
        return (Span(0, len(text)),)
    spans: list[Span] = []
    first = 0
    while first < len(units):
        last = _fill(units, first, pieces_max)
        if last < len(units):
            last = _sentence_end(text, units, first, last)
        spans.append(Span(units[first][0].start, units[last - 1][0].end))
        if last == len(units):
            break
        first = _step_back(text, units, first, last, pieces_max // 6)
    return tuple(spans)


def _fill(units: Sequence[tuple[Span, int]], first: int, pieces_max: int) -> int:
    """The index after the last unit that fits. A passage has at least one unit."""
    total = 0
    for at in range(first, len(units)):
        total += units[at][1]
        if total > pieces_max:
            return max(at, first + 1)
    return len(units)


def _sentence_end(text: str, units: Sequence[tuple[Span, int]], first: int, last: int) -> int:
    """The nearest sentence boundary before `last` if it is in the last third of the passage, else `last`."""
    for at in range(last, first + max(1, (last - first) * 2 // 3), -1):
        if _ends_sentence(text, units[at - 1][0]):
            return at
    return last


def _step_back(text: str, units: Sequence[tuple[Span, int]], first: int, last: int, pieces: int) -> int:
    """The first unit of the next passage: before `last` by at most `pieces`, at a sentence boundary if there is one."""
    total = 0
    start = last
    while start - 1 > first and total + units[start - 1][1] <= pieces:
        start -= 1
        total += units[start][1]
    for at in range(start, last):
        if _ends_sentence(text, units[at - 1][0]):
            return at
    return start


def _ends_sentence(text: str, span: Span) -> bool:
    unit = text[span.start : span.end].rstrip(_CLOSERS)
    return unit.endswith(_SENTENCE_ENDS) or text[span.end : span.end + 2] == "\n\n"
