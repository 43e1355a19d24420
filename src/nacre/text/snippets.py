"""The part of a text worth showing: around the matched words, or the passage that matched by meaning."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from nacre.query.tree import Term
from nacre.text import words
from nacre.types import Snippet, Span

SNIPPET_CHARS = 240
SUMMARY_CHARS = 100
_SCANNED_CHARS_MAX = 100_000  # of a long text; matches beyond are found but not shown
_BORDER_SEARCH_CHARS = 24
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def snippet(text: str, terms: Sequence[Term], passage: Span | None, chars: int = SNIPPET_CHARS) -> Snippet:
    """The window of `chars` with the most of the question's words, or else the start of the passage."""
    found = _occurrences(text[:_SCANNED_CHARS_MAX], terms)
    start = _best_start(found, chars) if found else (passage.start if passage else 0)
    window = _window(text, start, chars)
    highlights = tuple(
        Span(span.start - window.start, span.end - window.start)
        for span, _ in found
        if window.start <= span.start and span.end <= window.end
    )
    return Snippet(text[window.start : window.end], _merged(highlights), window.start)


def summary(text: str, chars: int = SUMMARY_CHARS) -> str:
    """The beginning of a text on one line, cut at a word."""
    line = " ".join(text[: 4 * chars].split())
    if len(line) <= chars:
        return line
    return line[: _border(line, chars, -1)].rstrip() + "…"


def _occurrences(text: str, terms: Sequence[Term]) -> list[tuple[Span, str]]:
    exact = {term.text for term in terms if not term.prefix}
    prefixes = tuple(term.text for term in terms if term.prefix)
    found = []
    for span, chunk in words.located(text):
        hit = next((token for token in (*chunk.words, *chunk.forms) if token in exact), None)
        if hit is None and prefixes:
            hit = next((word for word in chunk.words if word.startswith(prefixes)), None)
        if hit is not None:
            found.append((span, hit))
    return found


def _best_start(found: Sequence[tuple[Span, str]], chars: int) -> int:
    """Where the window with the most different words begins; a rarer word counts more, the earliest wins."""
    often = Counter(hit for _, hit in found)
    inside: Counter[str] = Counter()
    best, best_value, value, left = 0, 0.0, 0.0, 0
    for right, (span, hit) in enumerate(found):
        inside[hit] += 1
        if inside[hit] == 1:
            value += 1 + 1 / often[hit]
        while span.end - found[left][0].start > chars and left < right:
            gone = found[left][1]
            inside[gone] -= 1
            if not inside[gone]:
                value -= 1 + 1 / often[gone]
            left += 1
        if value > best_value + 1e-9:
            best, best_value = found[left][0].start, value
    return best


def _window(text: str, start: int, chars: int) -> Span:
    """A window that begins a little before `start` and ends at word borders."""
    if len(text) <= chars:
        return Span(0, len(text))
    begin = max(0, min(start - chars // 6, len(text) - chars))
    begin = _border(text, begin, 1) if begin else 0
    begin = min(begin, start)
    end = min(len(text), begin + chars)
    if end < len(text):
        end = _border(text, end, -1)
    return Span(begin, end)


def _border(text: str, at: int, step: int) -> int:
    """The nearest place before or after `at` that is between words, or at least between characters."""
    place = at
    for _ in range(_BORDER_SEARCH_CHARS):
        if not 0 < place < len(text):
            return place
        if text[place].isspace() if step < 0 else text[place - 1].isspace():
            return place
        place += step
    place = at
    while 0 < place < len(text) and _inside_character(text, place):
        place += step
    return place


def _inside_character(text: str, at: int) -> bool:
    return unicodedata.category(text[at])[0] == "M" or text[at] in _JOINERS or text[at - 1] == "\u200d"


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Touching spans as one: characters of a run without spaces come singly."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)
