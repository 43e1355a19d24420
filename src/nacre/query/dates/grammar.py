"""The grammar that all languages share, and how it is matched.

    phrase   [head] [lead] [article] single [tail]     "since the 3rd of May", "in March", "6月以来"
             [between|from] single to|and single       "between March and May", "从6月到8月"
    single   one of the forms of a language: a pattern, its meaning, and when it counts inside a question

A head ("since", "until", …) opens the period on one side. Chinese and Japanese have it behind, as a tail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import NamedTuple, TypeAlias

from nacre.query.dates.clock import Clock, Interval
from nacre.query.dates.meanings import Meaning, offset_of, part
from nacre.types.search import Period

_GLUED = re.compile(r"[\w/\\@(%*]|[-.:]\w")
_FIRST_WORD = re.compile("[A-Za-z]+|[0-9]")
_AROUND = 24  # characters before and after a phrase that a guard may look at


class Surroundings(NamedTuple):
    """The text around a form. `helpers` are the words directly before it that may make it a time."""

    helpers: frozenset[str]
    article: str
    before: str
    after: str


Guard: TypeAlias = Callable[[re.Match[str], Surroundings], bool]


class Form(NamedTuple):
    """A pattern of a time, what it means, and when it counts inside a question.

    `kind` is "fixed"; "floating", the most recent of many; "duration", which is a moment as a boundary; or "range".
    """

    firsts: frozenset[str]  # the words it may begin with
    pattern: str
    meaning: Meaning
    counts: Guard
    kind: str


DIGIT = frozenset("0")  # as the first word of a form: any number


def form(
    firsts: str | Set[str], pattern: str, meaning: Meaning, counts: Guard = lambda _, __: True, kind: str = "fixed"
) -> Form:
    return Form(frozenset(firsts.split() if isinstance(firsts, str) else firsts), pattern, meaning, counts, kind)


def by_first_word(forms: Iterable[Form]) -> Mapping[str, Sequence[Form]]:
    found: dict[str, list[Form]] = {}
    for each in forms:
        for word in sorted(each.firsts):  # a set has another order in each process
            found.setdefault(word, []).append(each)
    return found


@dataclass(frozen=True, slots=True)
class Language:
    """The forms of a language, the words around them, and words of which every form has one.

    `heads` gives each word for "since", "after", "before", "until", "by", "between" and "from" its English one.
    """

    forms: Mapping[str, Sequence[Form]]  # by their first words, so that few are compiled and matched
    opening: str  # with groups head, lead, the
    heads: Mapping[str, str]
    to: str  # between both ends of a range; a group `to` where it is a word
    and_: str  # between both ends after "between"
    words: frozenset[str]
    openers: frozenset[str] = frozenset()  # first words of openings
    dated: frozenset[str] = frozenset()  # words that make a number a time
    tail: str = ""
    spaced: bool = True  # whether spaces separate words

    def may_begin(self, word: str) -> bool:
        """Whether a phrase may begin with this word or digit: most words begin none."""
        word = "0" if word.isdigit() else word.lower()
        return word in self.forms or word in self.openers


class Found(NamedTuple):
    form: Form
    match: re.Match[str]

    def interval(self, clock: Clock, is_boundary: bool = False) -> Interval:
        start, end = self.form.meaning(self.match, clock)
        return (start, start) if is_boundary and self.form.kind == "duration" else (start, end)

    def counts(self, place: Surroundings) -> bool:
        year = part(self.match, "year")
        return (not year or int(year) in range(1900, 2100)) and self.form.counts(self.match, place)


class Phrase(NamedTuple):
    head: str  # in English, or empty
    lead: str  # another word directly before it: in, on, …
    article: str
    spaced: bool
    end: int
    first: Found
    second: Found | None = None
    helpers: frozenset[str] = frozenset()  # of `second`


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: all together take milliseconds, and most questions mention no time."""
    # ASCII only: no digits of other scripts, and no letters that fold to ASCII. White space may be of any kind.
    return re.compile(pattern.replace(" ", r"(?u:\s++|[-_])"), re.I | re.A)


@cache
def nearby(pattern: str) -> re.Pattern[str]:
    """A pattern of the text around a form, compiled on first use too."""
    return re.compile(pattern, re.I)


def phrases(text: str, at: int, language: Language) -> Iterator[Phrase]:
    """All phrases of a language that begin at this position."""
    if not (opening := compiled(language.opening).match(text, at)):
        return
    head, lead, article = (" ".join(part(opening, name).split()) for name in ("head", "lead", "the"))
    if opening.end() > at:
        yield from _phrases_with("", "", "", text, at, language)  # "vor drei Tagen", where "vor" is no head
    yield from _phrases_with(language.heads.get(head, ""), lead, article, text, opening.end(), language)


def _phrases_with(head: str, lead: str, article: str, text: str, at: int, language: Language) -> Iterator[Phrase]:
    for first in _found(text, at, language):
        end = first.match.end()
        yield from _ranges(text, first, head, lead, language)
        tail = compiled(language.tail).match(text, end) if language.tail else None
        if tail and head in ("", "since"):
            yield Phrase(language.heads[tail["tail"]], lead, article, language.spaced, tail.end(), first)
        in_front = lead or article
        lasting = first.form.kind == "duration" and (in_front or head == "from")  # "in 3 days" is in the future
        if (head != "between" or first.form.kind == "range") and not lasting:
            bounds = "" if head in ("from", "between") else head
            yield Phrase(bounds, lead if bounds else lead or head, article, language.spaced, end, first)


def _found(text: str, at: int, language: Language) -> list[Found]:
    forms = language.forms.get(_first_word(text, at) if language.spaced else "", ())
    return [Found(each, match) for each in forms if (match := compiled(each.pattern).match(text, at))]


def _first_word(text: str, at: int) -> str:
    word = _FIRST_WORD.match(text, at)
    return "" if word is None else "0" if word[0].isdigit() else word[0].lower()


def _ranges(text: str, first: Found, head: str, lead: str, language: Language) -> Iterator[Phrase]:
    if head not in ("", "between", "from"):
        return
    link = compiled(language.and_ if head == "between" else language.to).match(text, first.match.end())
    if not link:
        return
    whole = head or lead == "from" or not part(link, "to")
    helpers = frozenset({"to", "between"} if whole else {"to"})
    for second in _found(text, link.end(), language):
        end = second.match.end()
        tail = compiled(language.tail).match(text, end) if language.tail else None
        if part(link, "and") and not (tail and not language.heads[tail["tail"]]):
            continue  # "6月和8月" are two times, "6月和8月之间" is one
        if tail:
            end = tail.end()  # "6月から8月まで"
        yield Phrase(head, lead, "", language.spaced, end, first, second, helpers)


def period_of(phrase: Phrase, now: datetime, zone: tzinfo | None) -> Period | None:
    try:
        clock = Clock(now.astimezone(UTC), zone)
        if phrase.second:
            return _range(phrase.first, phrase.second, clock)
        start, end = phrase.first.interval(clock, is_boundary=bool(phrase.head))
    except (ValueError, OverflowError, OSError):  # no such day, or outside the range of datetime or the system
        return None
    if phrase.head in ("since", "after"):
        return Period(start if phrase.head == "since" else end, None)
    return Period(None if phrase.head else start, start if phrase.head in ("before", "until") else end)


def _range(first: Found, second: Found, clock: Clock) -> Period | None:
    until = second.interval(clock, is_boundary=True)
    if first.form.kind == "floating" and offset_of(first.match) is None:
        # "March" in "between March and May 2025" is the one before that May.
        last_moment = max(until[0], until[1] - timedelta(microseconds=1))
        clock = replace(clock, now=last_moment if part(second.match, "year") else min(last_moment, clock.now))
    start = first.interval(clock)[0]
    return Period(start, until[1]) if start < until[1] else None


def is_meant_as_time(phrase: Phrase, text: str, start: int) -> bool:
    """Whether a phrase found inside a question is meant as a time."""
    if phrase.spaced and _GLUED.match(text, phrase.end):
        return False
    before, after = text[max(0, start - _AROUND) : start], text[phrase.end : phrase.end + _AROUND]
    if phrase.second:  # not "from 3 days to 2 weeks"
        lasting = "duration" in (phrase.first.form.kind, phrase.second.form.kind)
        return not lasting and phrase.second.counts(Surroundings(phrase.helpers, "", before, after))
    helpers = frozenset({phrase.head, phrase.lead})
    return phrase.first.counts(Surroundings(helpers, phrase.article, before, after))
