"""Packs memories into a context of a given number of tokens.

The best come first, each lowered by how much it repeats what is in already (MMR). A memory is quoted whole where it
fits, otherwise the sentences around the match. Tokens are estimated part by part, since a counter may be slow, and
counted once at the end, since a whole may cost more than its parts.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from nacre.analysis import tokenizer
from nacre.analysis.quoting import HEADER, fence, left_out_line
from nacre.ranking.token_budget import tokens as roughly
from nacre.types.memory import Span

RELEVANCE_WEIGHT = 0.7  # of a likely answer; the rest counts against what is said already
EXCERPT_WORDS_MIN = 12  # fewer say too little
_TRIES = 2  # at an excerpt that fits: the second knows what the first cost
_MARGIN = 0.95  # of the room, at the second try
_CHARS_PER_TOKEN_MAX = 32  # a text longer than this many times the budget is not counted: it cannot fit
_COMPARED_CHARS_MAX = 20_000  # what a long text is about shows at its beginning

_CLOSERS = r"[\"'”’)\]»」』]*"
_SENTENCE_END = re.compile(rf"(?:(?<![.!?…।؟])[.!?…।؟]+{_CLOSERS}(?=\s)|[。！？]+{_CLOSERS}|\n)\s*")
_CHUNK = re.compile(r"\S+")
_CUT = "…"

Count: TypeAlias = Callable[[str], int]  # any counter of tokens; it need not be additive


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may go into a context. No two have the same id."""

    id: str
    date: str  # as it is shown
    text: str
    relevance: float  # how likely it answers, 0..1
    span: Span | None = None  # the passage that matched by meaning
    focus: tuple[Span, ...] = ()  # where the question's words stand
    notes: tuple[str, ...] = ()  # what a reader of the text must know; they go wherever it goes


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    tokens: int  # about what its part of the context costs
    excerpt: bool  # only a part of the text is quoted


@dataclass(frozen=True, slots=True)
class Packed:
    """A context, its items most useful first. `left_out` had no room, most relevant first."""

    text: str
    tokens: int
    items: tuple[Item, ...]
    left_out: tuple[str, ...]
    facts: bool = False  # it begins with the facts given


@dataclass(frozen=True, slots=True)
class _Quote:
    block: str
    item: Item


def pack(candidates: Sequence[Candidate], budget: int, count: Count, facts: Sequence[str] = ()) -> Packed:
    """As many of these as `count` finds to fit into `budget` tokens. Nothing at all is an empty text.

    `facts` are lines that come first, if there is room for them and for a memory.
    """
    if facts:
        header = "\n".join([HEADER, *facts])
        packed = _packed(candidates, budget, count, header)
        if packed.items:
            return replace(packed, facts=True)
    return _packed(candidates, budget, count, HEADER)


def _packed(candidates: Sequence[Candidate], budget: int, count: Count, header: str) -> Packed:
    overhead = count("")  # what every call counts, whatever the text
    room = budget - count(header)
    if not candidates or room < 0:
        return Packed("", overhead, (), _left_out(candidates, ()))

    def cost(part: str) -> int:
        return max(0, count(f"\n{part}") - overhead)

    wholes = {each.id: _whole(each, budget, cost) for each in candidates}
    footer = 0 if sum(each.item.tokens for each in wholes.values()) <= room else cost(left_out_line(len(candidates)))
    quotes = _chosen(candidates, wholes, room, footer, budget // 2, cost)
    named = 0
    missing = _left_out(candidates, quotes)
    if missing and quotes:
        an_id = cost(left_out_line(len(candidates), missing[:1])) - footer
        named = max(0, room - footer - sum(quote.item.tokens for quote in quotes)) // max(1, an_id)
    # First as planned; if the whole costs more than its parts, with less and less.
    plans = [(len(quotes), named), (len(quotes), 0), (len(quotes), None)]
    plans += [*((many, 0) for many in range(len(quotes) - 1, 0, -1)), (1, None)]
    for many, names in dict.fromkeys(plans) if quotes else ():
        missing = _left_out(candidates, quotes[:many])
        last = [left_out_line(len(missing), missing[:names])] if missing and names is not None else []
        text = "\n".join([header, *(quote.block for quote in quotes[:many]), *last])
        tokens = count(text)
        if tokens <= budget:
            return Packed(text, tokens, tuple(quote.item for quote in quotes[:many]), missing)
    return Packed("", overhead, (), _left_out(candidates, ()))


def _chosen(
    candidates: Sequence[Candidate],
    wholes: dict[str, _Quote],
    room: int,
    footer: int,
    half: int,
    cost: Count,
) -> list[_Quote]:
    """The quotes, most useful first. A memory that does not fit is skipped, so that a shorter one may fit."""
    frame = cost(fence(_CUT * 2, candidates[0].id, candidates[0].date, excerpt=True))
    others = sum(whole.item.tokens for whole in wholes.values())
    significant = {each.id: _significant_words(each.text) for each in candidates}
    repeated = dict.fromkeys(significant, 0.0)  # how much of each is in already
    waiting = list(candidates)
    quotes: list[_Quote] = []
    while waiting:
        gains = [RELEVANCE_WEIGHT * each.relevance - (1 - RELEVANCE_WEIGHT) * repeated[each.id] for each in waiting]
        each = waiting.pop(gains.index(max(gains)))
        whole = wholes[each.id]
        others -= whole.item.tokens
        left = room - (footer if len(quotes) < len(candidates) - 1 else 0)  # if all others are in, none is left out
        share = min(left, max(half, left - others))  # half of the budget, or all that the others cannot use
        quote = _fitting(each, whole, share, frame, cost)
        if quote is None and not quotes and share < room:  # half of a small budget holds nothing
            quote = _fitting(each, whole, room, frame, cost)
        if quote is not None:
            quotes.append(quote)
            room -= quote.item.tokens
            for other in waiting:
                likeness = 1.0 if other.text == each.text else jaccard(significant[other.id], significant[each.id])
                repeated[other.id] = max(repeated[other.id], likeness)
    return quotes


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _significant_words(text: str) -> frozenset[str]:
    """The stems of the words that are no function words."""
    return frozenset(
        word for word in tokenizer.query_tokens(text[:_COMPARED_CHARS_MAX]) if not tokenizer.is_common(word)
    )


def _left_out(candidates: Sequence[Candidate], quotes: Sequence[_Quote]) -> tuple[str, ...]:
    quoted = {quote.item.id for quote in quotes}
    ordered = sorted(candidates, key=lambda each: -each.relevance)
    return tuple(each.id for each in ordered if each.id not in quoted)


# ---------------------------------------------------------------- how much of a memory


def _whole(candidate: Candidate, budget: int, cost: Count) -> _Quote:
    text = candidate.text
    block = fence(text, candidate.id, candidate.date, notes=candidate.notes)
    tokens = cost(block) if len(text) <= budget * _CHARS_PER_TOKEN_MAX else roughly(text)
    return _Quote(block, Item(candidate.id, tokens, excerpt=False))


def _fitting(candidate: Candidate, whole: _Quote, room: int, frame: int, cost: Count) -> _Quote | None:
    """The memory whole, or as much of it as there is room for. `frame` is about what a fence costs without its text."""
    if whole.item.tokens <= room:
        return whole
    length, notes = len(candidate.text), sum(map(len, candidate.notes))
    per_token = max(1, length + notes) / max(1, whole.item.tokens - frame)
    fixed = frame + notes / per_token
    chars = min(length, int((room - fixed) * per_token))
    for _ in range(_TRIES):
        body = excerpt(candidate, chars)
        if body is None:
            return None
        block = fence(body, candidate.id, candidate.date, excerpt=True, notes=candidate.notes)
        tokens = cost(block)
        if tokens <= room:
            return _Quote(block, Item(candidate.id, tokens, excerpt=True))
        chars = int(len(body) * _MARGIN * (room - fixed) / max(1, tokens - fixed))
    return None


def excerpt(candidate: Candidate, chars: int) -> str | None:
    """The sentence that matched best and what stands around it, in about `chars`; None where that says too little.

    Sentences stay whole, unless too few of them fit to fill half of the room or to tell something: then words are
    added one by one.
    """
    text = candidate.text
    if chars <= 0:
        return None
    borders = sorted({0, *(end.end() for end in _SENTENCE_END.finditer(text)), len(text)})
    sentence, at = _best(candidate, borders)
    if sentence.end - sentence.start <= chars:
        stretch = _grown(sentence, borders, chars)
    else:
        at = max(_word_starts(text, max(0, at - chars - 1), at + 1), default=at)
        stretch = Span(at, at)
    if stretch.end - stretch.start <= chars // 2 or len(_word_starts(text, *stretch)) < EXCERPT_WORDS_MIN:
        near = _word_starts(text, max(0, stretch.start - chars - 1), stretch.end + chars + 1)
        stretch = _grown(stretch, [*near, len(text)], chars)
    if len(_word_starts(text, *stretch)) < EXCERPT_WORDS_MIN:
        return None
    before, after = text[: stretch.start].strip(), text[stretch.end :].strip()
    return f"{_CUT if before else ''}{text[stretch.start : stretch.end].strip()}{_CUT if after else ''}"


def _best(candidate: Candidate, borders: Sequence[int]) -> tuple[Span, int]:
    """The sentence with the most of the question's words, or else where the passage begins; and the place in it."""

    def sentence_at(place: int) -> int:
        return bisect_right(borders, place, hi=len(borders) - 1) - 1

    passage = candidate.span or Span(0, 0)
    asked: dict[int, set[str]] = {sentence_at(passage.start): set()}
    for place in candidate.focus:
        word = candidate.text[place.start : place.end].casefold()
        asked.setdefault(sentence_at(place.start), set()).add(word)
    inside = range(sentence_at(passage.start), sentence_at(passage.end - 1) + 1)
    best = max(asked, key=lambda each: (len(asked[each]), each in inside, -each))
    sentence = Span(borders[best], borders[best + 1])
    places = [place.start for place in candidate.focus if sentence_at(place.start) == best]
    return sentence, min(places, default=max(passage.start, sentence.start))


def _grown(stretch: Span, borders: Sequence[int], chars: int) -> Span:
    """Outwards from border to border, after and before in turn, as far as `chars` go."""
    start, end = stretch
    after, before = bisect_right(borders, end), bisect_left(borders, start) - 1
    growing = True
    while growing:
        growing = False
        if after < len(borders) and borders[after] - start <= chars:
            end, after, growing = borders[after], after + 1, True
        if before >= 0 and end - borders[before] <= chars:
            start, before, growing = borders[before], before - 1, True
    return Span(start, end)


def _word_starts(text: str, start: int, end: int) -> list[int]:
    """Where words begin. Scripts without spaces may be cut before any character that is not a mark on another."""
    starts: list[int] = []
    for chunk in _CHUNK.finditer(text, start, end):
        starts.append(chunk.start())
        if not chunk.group().isascii():
            inner = range(chunk.start() + 1, chunk.end())
            starts += [
                at for at in inner if tokenizer.is_unigram(text[at]) and unicodedata.category(text[at])[0] != "M"
            ]
    return starts
