"""Parses time expressions: "last week", "since March", "letzten Sommer", "il y a trois jours", "上个月", "7d".

`parse_period` parses a text that is one time expression; `find_mentions` finds expressions inside a question. Both
use one grammar (grammar.py) with the forms of each language (english.py, german.py, french.py, spanish.py,
portuguese.py, italian.py, russian.py, and east_asian.py for Chinese and Japanese), what the forms mean (meanings.py),
the words for numbers, months and units (words.py), and the calendar (clock.py). past_tense.py tells reports from plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo

from nacre.query.dates.east_asian import EAST_ASIAN, is_eastern, starts
from nacre.query.dates.english import ENGLISH
from nacre.query.dates.french import FRENCH
from nacre.query.dates.german import GERMAN
from nacre.query.dates.grammar import Language, Phrase, is_meant_as_time, period_of, phrases
from nacre.query.dates.italian import ITALIAN
from nacre.query.dates.portuguese import PORTUGUESE
from nacre.query.dates.russian import RUSSIAN
from nacre.query.dates.spanish import SPANISH
from nacre.query.dates.words import fold_accents, fold_widths, in_latin_letters
from nacre.types.memory import Span
from nacre.types.search import Period
from nacre.types.times import Mention

LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja")  # of times, by their codes
_WESTERN = (ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN)
_WORD = re.compile(r"week-end|[^\W\d_]+|[0-9]")
_RUSSIAN = re.compile("[А-яЁё]")
_DIGITS = frozenset("0123456789")
_WORDS = _DIGITS.union(*(each.words for each in _WESTERN))
_QUOTED = re.compile(r'"[^"]*"|“[^“”]*”|「[^「」]*」')
# Not inside names, paths, versions and numbers; nor after a minus, which excludes a word from a search.
_WORD_START = re.compile(r"(?<![\w/\\#@$&.-])(?<![0-9][:,–])(?:[A-Za-z]+|[0-9])")


def parse_period(text: str, now: datetime, zone: tzinfo | None = None) -> Period | None:
    """The period that the whole text names, or None. `zone=None` is the system's time zone."""
    text = fold_accents(text.strip())
    for each, language in _readings(text):
        for phrase in phrases(each, 0, language):
            if phrase.end == len(text) and (period := period_of(phrase, now, zone)):
                return period
    return None


def may_mention_period(text: str) -> bool:
    """Whether a text has a word or digit that every time expression needs. A cheap test: most questions have none."""
    if is_eastern(text) and starts().search(text):
        return True
    if _RUSSIAN.search(text) and _of_language(in_latin_letters(text), RUSSIAN):
        return True
    return not _WORDS.isdisjoint(_WORD.findall(fold_accents(text).lower()))


def find_mentions(text: str, now: datetime, zone: tzinfo | None = None) -> list[Mention]:
    """The times that a question mentions, in order, not overlapping. Tuned for precision rather than recall."""
    text = fold_accents(_QUOTED.sub(lambda quoted: '"' * len(quoted[0]), text))
    found: list[Mention] = []
    reached = 0
    for start, at in _phrases_by_start(text):
        for phrase in sorted(at, key=lambda each: -each.end) if start >= reached else ():
            if not is_meant_as_time(phrase, text, start):
                continue
            period = period_of(phrase, now, zone)
            if period and not _in_the_future(period, now):
                found.append(Mention(Span(start, phrase.end), period))
            elif phrase.second:  # not a range, but possibly two times
                continue
            reached = phrase.end  # also after "next Monday", so that "Monday" is not read by itself
            break
    return found


def _of_language(text: str, language: Language) -> bool:
    """Whether a text has a word or a number that every time of a language has."""
    words = set(_WORD.findall(text.lower()))
    return not words.isdisjoint(language.words) or not (words.isdisjoint(_DIGITS) or words.isdisjoint(language.dated))


def _readings(text: str) -> list[tuple[str, Language]]:
    """The languages that a text without accents may have times in, each with the text as its patterns expect it."""
    words = set(_WORD.findall(text.lower()))
    numbers = not words.isdisjoint(_DIGITS)
    found = [
        (text, each)
        for each in _WESTERN
        if not words.isdisjoint(each.words) or (numbers and (each is ENGLISH or not words.isdisjoint(each.dated)))
    ]
    if _RUSSIAN.search(text) and _of_language(latin := in_latin_letters(text), RUSSIAN):
        found.append((latin, RUSSIAN))
    if is_eastern(text):
        found.append((fold_widths(text), EAST_ASIAN))
    return found


def _phrases_by_start(text: str) -> Iterator[tuple[int, list[Phrase]]]:
    """The phrases of all languages by where they begin, in order."""
    begins: dict[int, list[tuple[str, Language]]] = {}
    for each, language in _readings(text):
        for match in (_WORD_START if language.spaced else starts()).finditer(each):
            if not language.spaced or language.may_begin(match[0]):
                begins.setdefault(match.start(), []).append((each, language))
    for start in sorted(begins):
        yield start, [phrase for each, language in begins[start] for phrase in phrases(each, start, language)]


def _in_the_future(period: Period, now: datetime) -> bool:
    """Whether a period lies in the future. So does "before tomorrow": it would not restrict memories of the past."""
    boundary = period.start or period.end
    return boundary is not None and boundary > now
