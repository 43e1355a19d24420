"""Parses a query. No query is an error: invalid operators are read as words, and a note says so.

    deployment process          any of the words, ranked
    deploy AND staging          both                       (AND, OR, NOT in capitals)
    blue OR green               either
    deploy NOT staging          without; also  deploy -staging  and  deploy AND code -(staging OR test)
    "exact phrase"              these words, adjacent and in this order
    NEAR(blue green, 5)         both, with at most five words between
    deploy*                     words with this prefix
    tag:rust since:7d           filters, see filters.py
    (a OR b) AND c              grouping, if the query has an operator

Plain words without operators are alternatives that only rank; phrases, filters and exclusions are conditions. AND and
NOT bind tighter than OR: `a b AND c` is "a or b, and also c". In a query all in capitals, AND, OR and NOT are words,
and so are operators without operands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import lru_cache

from nacre.analysis import tokenizer, word_forms
from nacre.analysis.language import language_of_question
from nacre.analysis.names import fold
from nacre.analysis.word_forms import NO_COMPOUNDS, PART_SHARE, Words
from nacre.query import dates, filters, lexer, spelling, time_questions
from nacre.query.ast import AllOf, AnyOf, Condition, During, Linked, Near, ParsedQuery, Phrase, Term, Without, either
from nacre.query.entities import phrase_condition
from nacre.query.lexer import Lexeme
from nacre.query.tense import asks_about_past, words_to_search
from nacre.types.memory import Span
from nacre.types.times import TimeQuestion

PHRASE_WORDS_MAX = 256  # words of all phrases together; bounds the time of FTS5
TERMS_MAX = 256  # terms of a query that are looked up; further ones are dropped with a note
_OPERANDS = ("word", "loose", "prefix", "phrase", "field", "near", "(")
_FEW = 16  # conditions that are not deduplicated
_SENTENCE_WORDS_MIN = 5
_CACHED_CHARS_MAX = 64
_LETTERS = re.compile(r"(?<!\w)[^\W\d_]+(?:['’][^\W\d_]+)*(?!\w)")
_PUNCTUATION = ".,;:!?¿¡"
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")


def parse(
    text: str,
    now: datetime,
    zone: tzinfo | None = None,
    *,
    relaxed: bool = False,
    timeless: bool = False,
    every: bool = False,
    language: str | None = None,
    compounds: Mapping[str, Sequence[str]] = NO_COMPOUNDS,
) -> ParsedQuery:
    """The parsed query. With `relaxed`, phrases are words that rank, not conditions; with `timeless`, so are times.

    With `every`, plain words side by side are joined by AND, but for common ones. `language` is the one whose forms
    of words are looked up, and `compounds` are the parts of some of its words, which rank. None: the words are looked
    up as they are.
    """
    text = lexer.normalise(text)
    found, notes = lexer.lex(text, filters.KEYS)
    unfiltered = " ".join(each.text for each in found if each.role != "field")
    words = Words(language or language_of_question(unfiltered), inflected=language is not None, compounds=compounds)
    quoted = any(each.role == "phrase" and not each.minus for each in found)
    if relaxed or _is_sentence(found):
        found = [_as_word(each) for each in found]
        quoted = False
    plain = all(each.role in ("word", "loose") and not each.minus for each in found)
    reader = _Parser(found, now, zone, every=every, words=words)
    if plain:
        time = None if timeless else time_questions.understand(text, now, zone)
        if time is not None and not asks_about_past(text, time):
            time = None
        asked = time.rest.strip() if time else text.strip()
        searched = words_to_search(text, time) if time else " ".join(each.text for each in found)
        if every:  # the words of a period are not looked for
            lexemes = [Lexeme("word", each, 0) for each in searched.split()]
            reader = _Parser(lexemes, now, zone, every=True, words=words)
        group = _Group(_terms(searched, words), must=reader.alternatives().must if every else None)
    else:
        group = reader.alternatives()
    notes += reader.notes
    terms = group.terms if plain else list(dict.fromkeys(group.terms))
    if len(terms) > TERMS_MAX:
        notes.append(f"only the first {TERMS_MAX} of {len(terms)} words were looked up")
    included = {each.at for each in found} if plain else {at for at, _ in group.meaning}
    if not plain:
        time = None if timeless else _periods_of(_blank_except(included, text, found), now, zone)
        asked = " ".join(text for _, text in sorted(group.meaning))
    if time is not None and time.listing:  # the period is all that is asked for
        inside = either(tuple(During(each.period) for each in time.mentions))
        return ParsedQuery(
            (), inside, "", tuple(notes), text, time=time, language=word_forms.inflected(words), listing=True
        )
    return ParsedQuery(
        terms=tuple(terms[:TERMS_MAX]),
        must=group.must,
        meaning=asked,
        notes=tuple(dict.fromkeys(notes)),
        text=text,
        spelled=_misspelling_candidates([each for each in found if each.at in included]),
        spaces=tuple(dict.fromkeys(group.spaces)),
        time=time,
        language=word_forms.inflected(words),
        quoted=quoted,
        every=reader.demanded,
        listing=group.must is not None and (group.wordless or all(term.common for term in terms)),
    )


def _terms(text: str, words: Words) -> tuple[Term, ...]:
    return tuple(Term(token, common=common, share=share) for token, share, common in word_forms.sought(text, words))


def _periods_of(text: str, now: datetime, zone: tzinfo | None) -> TimeQuestion | None:
    """Of a query with operators, only the periods count, and its words stay as they are."""
    mentions = tuple(dates.find_mentions(text, now, zone)) if dates.may_mention_period(text) else ()
    return TimeQuestion(mentions, None, None, False, False, text, False) if mentions else None


def _is_sentence(found: Sequence[Lexeme]) -> bool:
    """Whether quotation marks only quote: in a sentence or a question they are not an operator."""
    typed = [each for each in found if each.role == "word" and not each.minus]
    if len(found) > len(typed) + sum(each.role == "phrase" and not each.minus for each in found):
        return False
    return len(typed) >= _SENTENCE_WORDS_MIN or (len(typed) > 1 and found[-1].text.endswith(_QUESTION_MARKS))


def _blank_except(included: Set[int], text: str, found: Sequence[Lexeme]) -> str:
    """The text with everything but these lexemes blanked, so that times in filters and exclusions are not found."""
    kept = [" "] * len(text)
    for each in found:
        if each.at in included:
            kept[each.at : each.end] = text[each.at : each.end]
    return "".join(kept)


def _as_word(lexeme: Lexeme) -> Lexeme:
    wanted = lexeme.role == "phrase" and not lexeme.minus
    return Lexeme("word", lexeme.text, lexeme.at + 1) if wanted else lexeme


def _misspelling_candidates(typed: Sequence[Lexeme]) -> tuple[tuple[str, tuple[Span, ...]], ...]:
    """The words that may be misspelled, with their spans. Numbers and parts of camelCase identifiers are not."""
    found: defaultdict[str, list[Span]] = defaultdict(list)
    for lexeme in typed:
        if lexeme.role in ("word", "phrase"):
            start = lexeme.at + (lexeme.role == "phrase")
            short = len(lexeme.text) <= _CACHED_CHARS_MAX
            for word, begin, end in (
                _correctable_words_cached(lexeme.text) if short else _correctable_words(lexeme.text)
            ):
                found[word].append(Span(start + begin, start + end))
    return tuple((word, tuple(places)) for word, places in found.items())


def _correctable_words(text: str) -> tuple[tuple[str, int, int], ...]:
    """The words of a text that may be misspelled, with start and end."""
    runs = [(tokenizer.tokenise(run.group()).words, run.start(), run.end()) for run in _LETTERS.finditer(text)]
    return tuple(
        (several[0], start, end)
        for several, start, end in runs
        if len(several) == 1 and spelling.is_correctable(*several)
    )


_correctable_words_cached = lru_cache(maxsize=1 << 12)(_correctable_words)  # words repeat


@dataclass(frozen=True, slots=True)
class _Group:
    """A parsed part of the query: terms that score, its condition, what it requires, and the text to embed.

    Plain words have a condition, for use in AND, OR and NOT, but require nothing: alone, they only rank.
    """

    terms: tuple[Term, ...] = ()
    condition: Condition | None = None
    must: Condition | None = None
    meaning: tuple[tuple[int, str], ...] = ()  # texts with their positions in the query
    spaces: tuple[str, ...] = ()
    wordless: bool = False  # an alternative has conditions but no terms


class _Parser:
    """A recursive descent parser over lexemes with balanced parentheses."""

    def __init__(
        self,
        found: Sequence[Lexeme],
        now: datetime,
        zone: tzinfo | None,
        *,
        every: bool = False,
        words: Words,
    ) -> None:
        self._lexemes = found
        self._now = now
        self._zone = zone
        self._at = 0
        self._phrase_words = 0
        self._every = every
        self._words = words
        self.notes: list[str] = []
        self.demanded: dict[str, tuple[Term, ...]] = {}  # words that `every` made conditions

    def alternatives(self) -> _Group:
        """group OR group OR …"""
        groups = [self._conjunction()]
        while self._next_is("OR"):
            self._take()
            groups.append(self._conjunction())
        if len(groups) == 1:
            return groups[0]
        joined = _any_of(groups)
        must = joined.condition if any(each.must is not None for each in groups) else None
        return replace(joined, must=must, wordless=any(each.must and not each.terms for each in groups))

    def _conjunction(self) -> _Group:
        """side-by-side AND side-by-side …"""
        wanted = [self._side_by_side()]
        while self._next_is("AND"):
            self._take()
            wanted.append(self._side_by_side())
        return _all_of(wanted)

    def _side_by_side(self) -> _Group:
        """Words that rank, and phrases, filters, groups and exclusions that restrict."""
        optional: list[_Group] = []
        required: list[_Group] = []
        excluded: list[_Group] = []
        while self._next_is(*_OPERANDS, "NOT") or self._and_not():
            negated = self._take_not()
            lexeme = self._take()
            if lexeme.role == "(":
                group = self._group(excluded=negated)
            else:
                group = self._field(lexeme) if lexeme.role == "field" else self._operand(lexeme)
            if negated or lexeme.minus:
                excluded.append(group)
            elif lexeme.role == "(" or group.must is not None:
                required.append(group)
            else:
                optional.append(group)
        if self._every:
            optional, words = self._demanded(optional)
            required += words
        group = _any_of(optional)
        if any(each.condition is not None for each in required):
            demanded = _all_of(required)
            condition = demanded.condition
            must = condition if optional or len(required) > 1 else demanded.must
            group = replace(_any_of([group, demanded]), condition=condition, must=must)
        return _excluding(group, excluded)

    def _group(self, *, excluded: bool) -> _Group:
        """A group up to its closing parenthesis. Of an excluded one, any word excludes."""
        every, self._every = self._every, self._every and not excluded
        group = self.alternatives()
        self._every = every
        self._take()
        return group

    def _demanded(self, words: Sequence[_Group]) -> tuple[list[_Group], list[_Group]]:
        """Words that only rank, and words that a memory must have: all that are no stop words, if there are any."""
        telling = [each for each in words if not all(term.common for term in each.terms)] or words
        demanded = [each for each in telling if each.condition is not None]
        for each in demanded:
            star = "*" if any(term.prefix for term in each.terms) else ""
            self.demanded |= {text.strip(_PUNCTUATION) + star: each.terms for _, text in each.meaning}
        required = [replace(each, must=each.condition) for each in demanded]
        return [each for each in words if each not in demanded], required

    def _take_not(self) -> bool:
        """Take NOT or AND NOT before the next operand, and say whether there was one."""
        start = self._at
        while self._next_is("NOT") or self._and_not():
            self._take()
        return self._at > start

    def _and_not(self) -> bool:
        return self._next_is("AND") and self._at + 1 < len(self._lexemes) and self._lexemes[self._at + 1].role == "NOT"

    def _field(self, lexeme: Lexeme) -> _Group:
        """A filter, or its words if it is invalid."""
        if lexeme.key == "entity":
            named = [name for name in filters.split_values("entity", lexeme.text) if tokenizer.tokenise(name).words]
            mentioned = [self._entity(name) for name in named[: filters.VALUES_MAX]]
            found = either(tuple(mentioned)) if mentioned else "entity: has no value"
            if len(named) > filters.VALUES_MAX:
                found = f"entity: has {len(named)} values, at most {filters.VALUES_MAX} are allowed"
        else:
            found = filters.to_condition(lexeme.key, lexeme.text, self._now, self._zone)
        if isinstance(found, str):
            self.notes.append(f"{found}; it was read as words")
            return self._operand(Lexeme("word", f"{lexeme.key} {lexeme.text}", lexeme.at))
        return _Group(
            (), found, found, spaces=filters.split_values("space", lexeme.text) if lexeme.key == "space" else ()
        )

    def _operand(self, lexeme: Lexeme) -> _Group:
        if lexeme.role == "near":
            parts = _any_of([self._operand(each) for each in lexeme.operands])
            together = self._near(lexeme)
            return replace(parts, condition=together, must=together)
        meaning = ((lexeme.at, lexeme.text),)
        if lexeme.role == "prefix":
            (prefix,) = tokenizer.tokenise(lexeme.text).words
            term = Term(prefix, prefix=not tokenizer.is_unigram(prefix))
            return _Group((term,), term, None, meaning)
        terms = _terms(lexeme.text, self._words)
        if not terms:  # punctuation or an emoji: no terms, but it can be embedded
            return _Group((), None, None, meaning)
        if lexeme.role == "loose":
            return _Group(terms, None, None, meaning)
        if lexeme.role == "phrase":
            phrase = self._phrase(tokenizer.tokenise(lexeme.text).words)
            return _Group(terms, phrase, phrase, meaning)
        return _Group(terms, self._word_condition(lexeme.text, terms), None, meaning)

    def _word_condition(self, word: str, terms: tuple[Term, ...]) -> Condition:
        """The condition of a word: the parts of an identifier as a phrase, but `C++` as a whole, not every `C`."""
        parts = tokenizer.tokenise(word).words
        if len(parts) > 1:
            return self._phrase(parts)
        if (whole := next((term for term in terms if not term.text.isalnum()), None)) is not None:
            return whole
        forms = tuple(term for term in terms if PART_SHARE < term.share < 1)
        return either(forms or terms[:1])

    def _phrase(self, tokens: Sequence[str]) -> Condition:
        return phrase_condition(self._within_limit(tokens))

    def _entity(self, name: str) -> Condition:
        return AnyOf((self._phrase(tokenizer.tokenise(name).words), Linked(fold(name))))

    def _near(self, lexeme: Lexeme) -> Condition:
        """The condition of NEAR. Unigrams have no positions, so with one of them all operands only have to occur."""
        rows = [self._within_limit(tokenizer.tokenise(each.text).words) for each in lexeme.operands]
        if any(tokenizer.is_unigram(word) for row in rows for word in row):
            return AllOf(tuple(self._phrase(row) for row in rows))
        phrases = (Phrase(row, each.role == "prefix") for row, each in zip(rows, lexeme.operands, strict=True))
        return Near(tuple(phrases), lexeme.distance)

    def _within_limit(self, row: Sequence[str]) -> tuple[str, ...]:
        """The words of a phrase within PHRASE_WORDS_MAX of the whole query, but at least one."""
        kept = tuple(row[: max(1, PHRASE_WORDS_MAX - self._phrase_words)])
        self._phrase_words += len(kept)
        if len(kept) < len(row):
            self.notes.append(f"only the first {PHRASE_WORDS_MAX} words of phrases were compared word by word")
        return kept

    def _next_is(self, *roles: str) -> bool:
        return self._at < len(self._lexemes) and self._lexemes[self._at].role in roles

    def _take(self) -> Lexeme:
        self._at += 1
        return self._lexemes[self._at - 1]


def _any_of(groups: Sequence[_Group]) -> _Group:
    conditions = _conditions(groups)
    must = next((each.must for each in groups if each.must is not None), None) if len(conditions) == 1 else None
    return _Group(
        terms=tuple(term for each in groups for term in each.terms),
        condition=either(conditions) if conditions else None,
        must=must,
        meaning=tuple(part for each in groups for part in each.meaning),
        spaces=tuple(space for each in groups for space in each.spaces),
    )


def _all_of(groups: Sequence[_Group]) -> _Group:
    joined = _any_of(groups)
    conditions = _conditions(groups)
    if len(conditions) < 2:
        return joined
    every = AllOf(conditions)
    return replace(joined, condition=every, must=every)


def _excluding(group: _Group, unwanted: Sequence[_Group]) -> _Group:
    refused = _any_of(unwanted).condition
    if refused is None:
        return group
    return replace(group, condition=Without(group.condition, refused), must=Without(group.must, refused))


def _conditions(groups: Sequence[_Group]) -> tuple[Condition, ...]:
    """The conditions of all groups. Many are deduplicated, by their repr, because filters are not hashable."""
    found = [each.condition for each in groups if each.condition is not None]
    return tuple({repr(each): each for each in found}.values()) if len(found) > _FEW else tuple(found)
