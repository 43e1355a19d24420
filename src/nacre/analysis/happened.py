"""When the event took place that a text reports, by the text's own words: "last Friday we …", "2026-03-02 10:11 …".

Most texts say nothing of the kind, and a wrong date costs more than a missing one. So a time counts only if it is past,
short, and the only one, and if its sentence reports: no question, plan, deadline, habit or comparison.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo
from functools import cache

from nacre.query import dates
from nacre.query.dates.past_tense import PAST_TENSE
from nacre.query.dates.words import DE_MONTHS, EN_MONTHS, ES_MONTHS, FR_MONTHS, fold_accents
from nacre.types.times import Mention

READ_CHARS_MAX = 2000  # a longer text is a document, which reports many events
_YEAR_BEFORE = timedelta(days=320)
_A_YEAR = r"[0-9]{4}|last|ago|letzt|vor|derni|pass|pasad|hace|去年|前"
_ANY_SUCH = r"\b(?:an?|any|every|each|most|some|ein(?:en|em|er)?|jede[nrsm]?|une?|chaque|una?|cada)\s+(?:\w+\s+)?\Z"
_LONGEST = timedelta(days=31, hours=1)  # a month in which the clocks go back


def happened(text: str, created: datetime, zone: tzinfo | None = None) -> datetime | None:
    """When the event that a text reports took place, as seen from `created`; None if the text does not say so.

    Of a day it is local noon, of a week or a month noon of its first day, and of shorter times their beginning.
    """
    if len(text) > READ_CHARS_MAX or not _may_report(text):
        return None
    # "Lately" and "in the past week" lead up to now: they are the background of an event, not its time.
    mentions = [each for each in dates.find_mentions(text, created, zone) if each.period.end != created]
    if not mentions:
        return None
    moments = [_moment(each, created, zone) for each in mentions]
    first = moments[0]
    if first is None or len({each and each.astimezone(zone).date() for each in moments}) > 1:
        return None
    if created - first > _YEAR_BEFORE and not any(
        _compiled(_A_YEAR).search(text[slice(*each.span)]) for each in mentions
    ):
        return None  # "28 May" on the 27th may be tomorrow
    folded = fold_accents(text)
    return first if any(_reports(folded, each) for each in mentions) else None


def _moment(mention: Mention, created: datetime, zone: tzinfo | None) -> datetime | None:
    """A moment inside a past period; None for one that is open, long or not over."""
    start, end = mention.period.start, mention.period.end
    if start is None or end is None or end > created or not timedelta() < end - start <= _LONGEST:
        return None
    noon = datetime.combine(start.astimezone(zone).date(), time(12))
    local = (noon if zone is None else noon.replace(tzinfo=zone)).astimezone(start.tzinfo)
    return local if start <= local < end else start


def _may_report(text: str) -> bool:
    """A cheap test, which most texts fail: a word or a number that a past time needs."""
    if not _WORDS.isdisjoint(_WORD.findall(fold_accents(text).lower())) or "May" in text or "March" in text:
        return True
    if not text.isascii() and _compiled(_EASTERN_TIME).search(text):
        return True
    return _compiled(_DATE).search(text) is not None


def _reports(text: str, mention: Mention) -> bool:
    """Whether the sentence around a time reports an event of that time."""
    start, end = mention.span
    words = text[start:end].lower()
    sentence_start, sentence_end = _sentence(text, start, end)
    before, after = text[sentence_start:start], text[end:sentence_end]
    if _compiled(_ANY_SUCH).search(before):  # "a full Saturday" is any
        return False
    if text[sentence_end : sentence_end + 1] in ("?", "？") or _compiled(_ATTRIBUTE).match(words):
        return False
    if _compiled(_COMPARED_BEFORE).search(before) or _compiled(_OWNED_AFTER).match(after):
        return False
    around = before + " " + after
    if _compiled(_NO_REPORT).search(around):
        return False
    return bool(_compiled(_CLEARLY_PAST).search(words) or _compiled(PAST_TENSE).search(around))


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    ends = [each.start() for each in _compiled(_SENTENCE_END).finditer(text)]
    return (
        max((each + 1 for each in ends if each < start), default=0),
        min((each for each in ends if each >= end), default=len(text)),
    )


_SENTENCE_END = r"(?<![0-9])[.!?]+(?=\s|$)|[\n。！？?]"
_WORD = re.compile("[a-z]+")
_PAST_WORDS = """
yesterday ago last previous night monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug
sep sept oct nov dec weekend christmas halloween eve gestern vorgestern vor letzte letzten letzter letztes vorige
vorigen montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag wochenende weihnachten silvester hier
avant derniere dernier lundi mardi mercredi jeudi vendredi samedi dimanche y ayer anteayer anoche hace pasado pasada
lunes martes miercoles jueves viernes sabado domingo noel navidad
"""
_MONTHS = frozenset().union(EN_MONTHS, DE_MONTHS, FR_MONTHS, ES_MONTHS)
_WORDS = frozenset(_PAST_WORDS.split()) | _MONTHS - {"may", "march"}  # these two are verbs unless capitalised
_DATE = r"[0-9](?:[0-9]{3}-[0-9][0-9]-[0-9][0-9]|\.[0-9]{1,2}\.[0-9]{4})"
_EASTERN_TIME = (
    r"[昨前去先上][天日月年周週个々]|[0-9一二三四五六七八九十]月|[天日周週月年]前|[周週][一二三四五六日天末]|曜"
)
# Something of that time is spoken of, or another time is compared with it.
_ATTRIBUTE = r"(?:from|of|vom|von|du|des?|del|d')\b"
_COMPARED_BEFORE = (
    r"\b(?:than|like|as|compared (?:to|with)|versus|vs|until|till|by|due|before|after|since|for|every|each|wie|als|bis|"
    r"seit|que|depuis|desde|hasta|cada|comme|como)\s+(?:on\s+|in\s+|the\s+)?$"
)
_OWNED_AFTER = r"'s?\b|-\w"
_NO_REPORT = (
    r"\b(?:will|won't|going to|gonna|shall|should|must|would|might|could|deadline|due|expir\w+|scheduled?|planned|"
    r"plan(?:s|ning)?|upcoming|tomorrow|next|every|each|always|usually|often|birthdays?|born|anniversary|if|unless|"
    r"remind\w*|wird|werden|soll\w*|muss|frist|fallig|geburtstag|geboren|jede[nrsm]?|immer|sera|seront|doit|devra|"
    r"echeance|anniversaire|chaque|toujours|debe|vence|plazo|cumpleanos|cada|siempre|nacio)\b|"
    r"\b(?:i|we|you|he|she|it|they)'(?:ll|d)\b|截止|到期|生日|每|将|締め切り|誕生日|毎|予定"
)
_CLEARLY_PAST = (
    r"\b(?:last|yesterday|ago|previous|letzte\w*|vorige\w*|gestern|vorgestern|vor|derniere?s?|hier|il y a|pasad[oa]|"
    r"ayer|anteayer|anoche|hace)\b|\d{4}|[昨去先上前]"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most texts need only the cheap test."""
    return re.compile(pattern, re.I)
