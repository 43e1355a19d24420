"""Decides which older memories a text with an update cue is about. Every number here is measured by benchmarks/updates.

A link needs a cue, a shared subject and close vectors. The subject is what two texts name in common: words other than
stop words, numbers and dates, each weighted by how few memories have it. Without a cue nothing is linked: most texts
that are near each other are no updates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from nacre.analysis.tokenizer import is_common, query_tokens
from nacre.analysis.update_cues import CHARS_MAX, Cue
from nacre.types.stats import Frequencies

CANDIDATES = 20  # nearest memories that are compared with a text that has a cue
LINKS_MAX = 2

_SHARED_MIN = 2  # words in common, unless the older text has the old value that the cue names
_LINKED_FROM, _ARGUABLE_FROM = 0.75, 0.65
_NEXT_WITHIN = 0.1  # the second best counts if it is nearly as good: then both say the same
_SUBJECT_WEIGHT, _SUBJECT_MAX = 0.1, 4.0
_OVERLAP_WEIGHT = 0.6
_OLD_VALUE = 0.15  # added where the older text has at least half of the old value
_WEAK_CUE = 0.3  # subtracted
_NO_NEW_VALUE = 0.15  # subtracted where the newer text has no number and no name that the older one lacks
_TURNS = 0.25  # subtracted for turns of conversations, which come back to a subject without changing anything
_OTHER_NUMBER = 0.25  # subtracted where the old value is a number that the older text lacks
_TYPICAL_RARITY = 0.8  # of words that were not counted

_TITLE_CHARS_MAX = 80

# Words of dates, and the most frequent function words of languages that the stop words do not cover.
_WORDS = """
jan feb mar apr may jun jul aug sep sept oct nov dec januari februari march april june juli august septemb octob
novemb decemb monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun week month year
day today tomorrow yesterday tonight morn even time hour minut am pm uhr euro eur
januar februar marz mai juni okt oktob dez dezemb montag dienstag mittwoch donnerstag freitag samstag sonntag
janvier fevrier mars avril juin juillet aout septembr octobr novembr decembr lundi mardi mercredi jeudi vendredi
samedi dimanch enero febrero marzo abril mayo junio julio agosto septiembr octubr noviembr diciembr lune mart
miercol juev viern sabado domingo
der die das den dem des ein eine einen einem einer und oder auf im zu zum zur von vom mit bei fur ist sind wird hat
haben wir ich sie er es nicht aus nach um bis als auch noch
le la les un une du de et ou en dans sur pour par avec est sont au aux ce cett ne pas plus qui que se son sa ses il
ell nous el los las una del por con para es al lo su sus het een van op te met voor zijn naar om
"""
_NO_SUBJECT = frozenset(_WORDS.split())

Verdict: TypeAlias = Literal["linked", "arguable"]


class Dated(NamedTuple):
    """What the decision needs of a memory."""

    id: str
    text: str
    moment: datetime  # when it happened, or else was written
    conversation: str | None = None  # the session, if it is a turn of a conversation


class Judged(NamedTuple):
    older: str
    verdict: Verdict
    evidence: float


def judge(newer: Dated, cue: Cue, candidates: Iterable[tuple[Dated, float]], frequencies: Frequencies) -> list[Judged]:
    """The candidates, each with its cosine, that the newer text updates or may update, the best first.

    `frequencies` are those of `subject_terms(newer.text)`.
    """
    subject = _Subject(newer.text, cue, frequencies)
    found = [
        Judged(older.id, "linked" if evidence >= _LINKED_FROM else "arguable", evidence)
        for older, cosine in candidates
        if _may_be_updated(newer, older)
        and (evidence := subject.evidence(older.text, cosine) - _turns(newer, older)) >= _ARGUABLE_FROM
    ]
    found.sort(key=lambda each: (-each.evidence, each.older))
    many = LINKS_MAX if cue.strong else 1
    return [each for each in found[:many] if each.evidence >= found[0].evidence - _NEXT_WITHIN]


def subject_terms(text: str) -> frozenset[str]:
    """The tokens by which two texts may have a subject in common."""
    return frozenset(filter(_is_subject, query_tokens(text)))


def _may_be_updated(newer: Dated, older: Dated) -> bool:
    question = older.text.rstrip().endswith("?")
    if older.moment >= newer.moment or len(older.text) > CHARS_MAX or question:
        return False
    titles = _title(newer.text), _title(older.text)
    return not all(titles) or titles[0] == titles[1]


def _title(text: str) -> str:
    """The first line, if it is a heading: documents with different titles are about different things."""
    first, newline, _ = text.partition("\n")
    return first if newline and len(first) <= _TITLE_CHARS_MAX and ":" not in first else ""


def _turns(newer: Dated, older: Dated) -> float:
    if newer.conversation is None or older.conversation is None:
        return 0.0
    return _TURNS * (2 if newer.conversation == older.conversation else 1)


class _Subject:
    """The subject of a text with a cue, compared with older texts."""

    def __init__(self, text: str, cue: Cue, frequencies: Frequencies) -> None:
        self._terms = subject_terms(text)
        self._rarity = {term: _rarity(term, frequencies) for term in self._terms}
        self._total = sum(self._rarity.values())
        self._old = {token for token in query_tokens(cue.old) if not is_common(token) and token not in _NO_SUBJECT}
        self._old_numbers = {token for token in self._old if _re(r"\d").search(token)}
        self._in_sentence = subject_terms(cue.sentence)
        self._values = frozenset(_values(text))
        self._penalty = 0.0 if cue.strong else _WEAK_CUE

    def evidence(self, older: str, cosine: float) -> float:
        """0 without a shared subject; else the sum of what speaks for an update."""
        tokens = frozenset(query_tokens(older))
        shared = self._terms & tokens
        has_old_value = bool(self._old) and 2 * len(self._old & tokens) >= len(self._old)
        has_new_value = not self._values <= tokens
        if not has_old_value and (len(shared) < _SHARED_MIN or not shared & self._in_sentence):
            return 0.0
        if self._penalty and (not has_new_value or (self._old and not has_old_value)):
            return 0.0
        weight = sum(self._rarity[term] for term in shared)
        others = sum(map(_is_subject, tokens - shared))
        of_older = weight + _TYPICAL_RARITY * others
        overlap = (weight / self._total + weight / of_older) / 2 if weight else 0.0
        return (
            cosine
            + _SUBJECT_WEIGHT * min(weight, _SUBJECT_MAX)
            + _OVERLAP_WEIGHT * overlap
            + (_OLD_VALUE if has_old_value else 0.0)
            - (0.0 if has_new_value else _NO_NEW_VALUE)
            - (_OTHER_NUMBER if self._old_numbers and not self._old_numbers & tokens else 0.0)
            - self._penalty
        )


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_subject(token: str) -> bool:
    """Whether a token may name a subject: no stop word, number, date or unit, and not a second spelling."""
    return not (
        len(token) < 2
        or is_common(token)
        or token in _NO_SUBJECT
        or _re(r"[\d\W_]+|.*[\u00c0-\u024f].*").fullmatch(token)
    )


def _rarity(term: str, frequencies: Frequencies) -> float:
    """1 for a word of one memory, 0 for a word of all."""
    total = math.log(frequencies.memories + 1)
    having = max(1, frequencies.having.get(term, 1))
    return max(0.0, total - math.log(having)) / total if total else 0.0


def _values(text: str) -> Iterator[str]:
    """Tokens of numbers and names: capitalised words that begin no sentence, and not the speaker of a turn."""
    speaker, colon, rest = text.partition(": ")
    spoken = rest if colon and len(speaker) <= 30 and "\n" not in speaker else text
    for found in _re(r"\S*\d\S*|(?<=[^.!?:…\s] )[^\W\d_a-zß-öø-ÿ][\w-]+").finditer(spoken):
        yield from query_tokens(found[0])
