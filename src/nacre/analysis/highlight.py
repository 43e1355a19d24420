"""Snippets: the part of a text around the matched words, or the passage that matched semantically."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

from nacre.analysis import tokenizer, word_forms
from nacre.query.ast import ParsedQuery, Term, wanted_phrases
from nacre.types.memory import Span
from nacre.types.search import Snippet

SNIPPET_CHARS = 240
SUMMARY_CHARS = 100
_SCANNED_CHARS_MAX = 100_000  # of a long text; matches after them are not highlighted
_BOUNDARY_SEARCH_CHARS = 60  # a longer word is cut, but never inside a grapheme
_SIGNIFICANT_SHARE = 0.25  # of the highest weight of a term
_CACHED_CHUNK_CHARS_MAX = 64
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_FLAG_LETTERS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))


class HighlightTerms:
    """The terms of a query with their weights, ready to be located in texts.

    Function words are not highlighted, except in a quoted phrase, or where the query has no other words.
    `language` is that of the query: words have the forms of that language.
    """

    def __init__(self, terms: Mapping[Term, float], language: str | None = None) -> None:
        least = _SIGNIFICANT_SHARE * max(terms.values(), default=0)
        self.weights = {term.text: weight for term, weight in terms.items()}
        self._hidden: Set[str] = {each.text for each in terms if each.common}
        self.significant = _TermFinder(
            (term for term, weight in terms.items() if weight >= least), self._hidden, language
        )
        self.all = _TermFinder(terms, self._hidden, language)
        self._phrases: Sequence[tuple[str, ...]] = ()

    @classmethod
    def of_query(cls, query: ParsedQuery, terms: Mapping[Term, float]) -> HighlightTerms:
        """`terms` are those of the query that memories have."""
        found = cls(terms, query.language)
        if all(each.common for each in query.terms):
            found._hidden = frozenset()
        elif found._hidden and query.quoted:
            phrases = (each.words for each in wanted_phrases(query.must))
            found._phrases = [each for each in phrases if not found._hidden.isdisjoint(each)]
        return found

    def spans(self, text: str, found: Sequence[tuple[Span, str]]) -> list[Span]:
        """Which of the occurrences in a text are highlighted, and the function words of its phrases."""
        spans = [span for span, term in found if term not in self._hidden]
        if not self._phrases:
            return spans
        return sorted({*spans, *_phrase_spans(text, self.all.occurrences(text), self._phrases)})


def snippet(text: str, query: HighlightTerms, passage: Span | None, chars: int = SNIPPET_CHARS) -> Snippet:
    """The window of `chars` with the most query terms, or else the start of the passage.

    Terms of low weight count only where the text has no other terms and there is no passage.
    """
    scanned = text[:_SCANNED_CHARS_MAX]
    found = query.significant.occurrences(scanned)
    if not found and passage is None:
        found = query.all.occurrences(scanned)
    if len(text) <= chars:
        return Snippet(text, _merged(query.spans(scanned, found)), 0)
    start = passage.start if passage else 0
    focus = _best_span(found, query.weights, chars) if found else Span(start, start)
    return _slice(_window(text, focus, chars), text, query.spans(scanned, found), 0)


def shorten(long: Snippet, chars: int) -> Snippet:
    """A shorter snippet: the window of `chars` with the most highlighted words."""
    if len(long.text) <= chars:
        return long
    found = [(span, long.text[span.start : span.end].casefold()) for span in long.highlights]
    focus = _best_span(found, dict.fromkeys((word for _, word in found), 1.0), chars) if found else Span(0, 0)
    return _slice(_window(long.text, focus, chars), long.text, long.highlights, long.start)


def _slice(window: Span, text: str, highlights: Sequence[Span], start: int) -> Snippet:
    inside = [
        Span(span.start - window.start, span.end - window.start)
        for span in highlights
        if window.start <= span.start and span.end <= window.end
    ]
    return Snippet(text[window.start : window.end], _merged(inside), start + window.start)


def summary(text: str, chars: int = SUMMARY_CHARS) -> str:
    """The beginning of a text on one line, truncated at a word boundary."""
    line = " ".join(text.split(None, chars)[:chars])
    if len(line) <= chars:
        return line
    return line[: _word_boundary(line, chars, -1)].rstrip() + "…"


class _TermFinder:
    """Locates terms in texts. `getName` matches several; it is found by one that is no function word."""

    def __init__(self, terms: Iterable[Term], function_words: Set[str], language: str | None) -> None:
        listed = list(terms)
        self._language = language if word_forms.inflects(language) else None
        self._function_words = function_words
        self._exact = {term.text for term in listed if not term.prefix}
        self._prefixes = tuple(term.text for term in listed if term.prefix)

    def occurrences(self, text: str) -> list[tuple[Span, str]]:
        """The spans of matching words, each with its term. Chunks that cannot match are skipped first."""
        exact, prefixes, longest = self._exact, self._prefixes, _CACHED_CHUNK_CHARS_MAX
        chunks = text.split()
        if not prefixes:
            chunks = [raw for raw in chunks if len(raw) > longest or not exact.isdisjoint(self._tokens(raw))]
        found = []
        at = 0
        for raw in chunks:
            at = _find_chunk(text, raw, at)
            short = len(raw) <= longest
            for span, chunk in (
                _chunk_parts(raw) if short else tokenizer.chunks_with_spans(raw, None if prefixes else exact)
            ):
                if self._language is not None and short:
                    more = word_forms.forms_in(self._language, raw[span.start : span.end])
                    chunk = chunk._replace(forms=(*chunk.forms, *more))
                hit = _matching_token(chunk, exact, prefixes, self._function_words)
                if hit is not None:
                    found.append((Span(at + span.start, at + span.end), hit))
            at += len(raw)
        return found

    def _tokens(self, raw: str) -> tuple[str, ...]:
        tokens = _chunk_tokens(raw)
        return tokens if self._language is None else (*tokens, *word_forms.forms_in(self._language, raw))


def _phrase_spans(text: str, found: Sequence[tuple[Span, str]], phrases: Sequence[tuple[str, ...]]) -> Iterator[Span]:
    """The words of phrases where they stand next to each other in a text."""
    for at in range(len(found)):
        for phrase in phrases:
            run = found[at : at + len(phrase)]
            if _has_words(text, run, phrase) and not any(
                char.isalnum() for (one, _), (next_, _) in pairwise(run) for char in text[one.end : next_.start]
            ):
                yield from (span for span, _ in run)


def _has_words(text: str, run: Sequence[tuple[Span, str]], phrase: tuple[str, ...]) -> bool:
    """Whether these occurrences are the words of a phrase. A term may be a stem, the words of a phrase are not."""
    return len(run) == len(phrase) and all(
        word == term or word in _chunk_tokens(text[span.start : span.end])
        for (span, term), word in zip(run, phrase, strict=True)
    )


def _find_chunk(text: str, raw: str, at: int) -> int:
    """The position of the next chunk equal to `raw`, from `at` on, with white space or the text's end on both sides."""
    while True:
        at = text.index(raw, at)
        end = at + len(raw)
        if (at == 0 or text[at - 1].isspace()) and (end == len(text) or text[end].isspace()):
            return at
        at += 1


@lru_cache(maxsize=1 << 14)
def _chunk_tokens(raw: str) -> tuple[str, ...]:
    chunk = tokenizer.analyse(raw)
    return chunk.words + chunk.forms


@lru_cache(maxsize=1 << 14)
def _chunk_parts(raw: str) -> tuple[tuple[Span, tokenizer.Chunk], ...]:
    return tuple(tokenizer.chunks_with_spans(raw))


def _matching_token(
    chunk: tokenizer.Chunk, exact: set[str], prefixes: tuple[str, ...], function_words: Set[str]
) -> str | None:
    """The first token or prefix of the query that the chunk matches; function words come last."""
    tokens = [token for token in chunk.words + chunk.forms if token in exact]
    for token in tokens:
        if token not in function_words:
            return token
    for prefix in prefixes:
        if any(word.startswith(prefix) for word in chunk.words):
            return prefix
    return tokens[0] if tokens else None


def _best_span(found: Sequence[tuple[Span, str]], weights: Mapping[str, float], chars: int) -> Span:
    """The span of at most `chars` whose distinct terms have the highest total weight; the earliest of equals."""
    often = Counter(hit for _, hit in found)

    def worth(hit: str) -> float:
        return weights[hit] * (1 + 1 / often[hit])

    inside: Counter[str] = Counter()
    best, best_value, value, left = found[0][0], 0.0, 0.0, 0
    for right, (span, hit) in enumerate(found):
        inside[hit] += 1
        if inside[hit] == 1:
            value += worth(hit)
        while span.end - found[left][0].start > chars and left < right:
            gone = found[left][1]
            inside[gone] -= 1
            if not inside[gone]:
                value -= worth(gone)
            left += 1
        while inside[found[left][1]] > 1:  # the shortest span with these terms
            inside[found[left][1]] -= 1
            left += 1
        if value > best_value + 1e-9:
            best, best_value = Span(found[left][0].start, span.end), value
    return best


def _window(text: str, focus: Span, chars: int) -> Span:
    """A window around a span, with some text before it, that begins and ends at word boundaries."""
    before = min(chars // 6, max(0, chars - (focus.end - focus.start)))
    begin = max(0, min(focus.start - before, len(text) - chars))
    begin = min(_word_boundary(text, begin, 1), focus.start) if begin else 0
    end = min(len(text), max(begin + chars, focus.end))
    if end < len(text):
        end = max(_word_boundary(text, end, -1), focus.end)
    if end > focus.start:
        return Span(begin, end)
    # A long word follows. It matters more than the text before it.
    end = min(len(text), focus.start + chars)
    boundary = _word_boundary(text, end, -1) if end < len(text) else end
    return Span(focus.start, boundary if boundary > focus.start else _character_boundary(text, end, -1))


def _word_boundary(text: str, at: int, step: int) -> int:
    """The nearest position before (`step` -1) or after (1) `at` between words, or else between graphemes."""
    place = at
    for _ in range(_BOUNDARY_SEARCH_CHARS + 1):
        if not 0 < place < len(text):
            return place
        if text[place].isspace() if step < 0 else text[place - 1].isspace():
            return place
        place += step
    return _character_boundary(text, at, step)


def _character_boundary(text: str, at: int, step: int) -> int:
    while 0 < at < len(text) and _inside_character(text, at):
        at += step
    return at


def _inside_character(text: str, at: int) -> bool:
    """Whether a cut before `at` would split a grapheme."""
    char, previous = text[at], text[at - 1]
    if unicodedata.category(char)[0] == "M" or char in _JOINERS or char in _SKIN_TONES or previous == "\u200d":
        return True
    if char in _FLAG_LETTERS and previous in _FLAG_LETTERS:  # flags are pairs of letters
        start = at
        while start and text[start - 1] in _FLAG_LETTERS:
            start -= 1
        return (at - start) % 2 == 1
    return False


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Adjacent spans merged: in scripts without spaces, each character has its own."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)
