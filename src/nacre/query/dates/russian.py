"""Russian times. They are written here as they are spoken, and read in other letters: see `in_latin_letters`."""

from __future__ import annotations

import re
from collections.abc import Set

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Form, Guard, Language, Surroundings, by_first_word, form
from nacre.query.dates.meanings import Meaning, part
from nacre.query.dates.words import (
    RU_MONTHS,
    RU_NUMBERS,
    RU_ORDINALS,
    RU_SEASONS,
    RU_UNITS,
    RU_WEEKDAYS,
    any_of,
    in_latin_letters,
    words_of,
)

_HELPERS = frozenset({"v", "vo", "since", "before", "after", "until", "between", "from", "to"})
_DURING = frozenset(map(in_latin_letters, ("весной", "летом", "осенью", "зимой")))


def _always(_: re.Match[str], __: Surroundings) -> bool:
    return True


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "which") or part(match, "year") or place.helpers & _HELPERS)


def _season_counts(match: re.Match[str], place: Surroundings) -> bool:
    return part(match, "season") in _DURING or _name_counts(match, place)


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "said") or place.helpers & (_HELPERS - {"from", "to"}))


def _form(firsts: str | Set[str], pattern: str, meaning: Meaning, counts: Guard = _always, kind: str = "fixed") -> Form:
    """A form whose words and pattern are Russian."""
    first = in_latin_letters(firsts) if isinstance(firsts, str) else firsts
    return form(first, in_latin_letters(pattern), meaning, counts, kind)


_YEAR = "(?P<year>[0-9]{4})"
_OF_YEAR = f"(?: {_YEAR}(?: года| году| г)?)?"
_WHICH = "(?P<which>(?:прошл|следующ|последн)[а-яa-z']+|эт(?:от|а|у|ой|ом|ого|о))"
_WHICHES = words_of(
    (
        in_latin_letters(
            "прошлый прошлая прошлую прошлой прошлом прошлого прошлое прошлым прошлых прошлые последний последнюю "
            "последней последнем следующий следующую следующей следующем этот эта эту этой этом этого это"
        ),
    )
)
_NUMBER = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>{any_of(*RU_NUMBERS)}))"
_LONG = f"(?P<long>{any_of(*RU_UNITS)})"
_AMOUNTS = words_of(RU_NUMBERS, RU_UNITS) | DIGIT
_PART_OF_DAY = "(?: (?:утром|днем|вечером|ночью))?"
_WEEKDAY = f"(?P<weekday>{any_of(*RU_WEEKDAYS)})"
_MONTH = f"(?P<month>{any_of(*RU_MONTHS)})"
_SEASON = f"(?P<season>{any_of(*RU_SEASONS)})"
_QUARTER = f"(?P<quarter>{any_of(*RU_ORDINALS)}) квартал[а-яa-z]*"
_UNIT = f"(?P<long>{any_of(*(word for word in RU_UNITS if RU_UNITS[word] in ('week', 'month', 'quarter', 'year')))})"
_PART = "(?P<part>начал[оеа]|середин[аеы]|кон(?:ец|це|ца))"
_WHOLES = (
    (f"{_MONTH}{_OF_YEAR}", meanings.month_or_quarter),
    (f"{_SEASON}{_OF_YEAR}", meanings.season),
    (f"{_YEAR}(?: года)?", meanings.year_or_week),
    (f"(?:{_WHICH} )?{_UNIT}", meanings.which_unit),
)
_WEEKDAYS, _MONTHS = words_of(RU_WEEKDAYS), words_of(RU_MONTHS)
_SEASONS, _ORDINALS = words_of(RU_SEASONS), words_of(RU_ORDINALS)

_FORMS = (
    _form(_AMOUNTS, f"(?:{_NUMBER} )?{_LONG} назад", meanings.ago),
    _form("последние последних", f"последни[ех] {_NUMBER} {_LONG}", meanings.up_to_now),
    _form("последние последних", "последни[ех] дн(?:и|ей)", meanings.back(7)),
    _form("последние последних", "последни[ех] недел[иь]", meanings.back(30)),
    _form("последние последних", "последни[ех] месяц(?:ы|ев)", meanings.back(90)),
    _form("сегодня", f"сегодня{_PART_OF_DAY}", meanings.day(0)),
    _form("вчера", f"вчера{_PART_OF_DAY}", meanings.day(-1)),
    _form("позавчера", f"позавчера{_PART_OF_DAY}", meanings.day(-2)),
    _form("послезавтра", "послезавтра", meanings.day(2)),
    _form("прошлой", "прошлой ночью", meanings.last_night),
    _form("недавно последнее", "недавно|последнее время", meanings.back(30)),
    _form("днях", "днях", meanings.back(14), lambda _, place: "na" in place.helpers),
    _form(_WHICHES, f"{_WHICH} {_UNIT}", meanings.which_unit),
    _form(_WHICHES, f"{_WHICH} выходны[ехм]", meanings.weekend),
    _form("выходные выходных", "выходны[ех]", meanings.weekend, lambda _, place: bool(place.helpers & {"na", "v"})),
    _form(_WEEKDAYS, f"{_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, _name_counts, "floating"),
    _form(_WHICHES, f"{_WHICH} {_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, kind="floating"),
    _form(_MONTHS, f"{_MONTH}{_OF_YEAR}", meanings.month_or_quarter, _name_counts, "floating"),
    _form(_WHICHES, f"{_WHICH} {_MONTH}", meanings.month_or_quarter, kind="floating"),
    _form(
        DIGIT | _WEEKDAYS,
        f"(?:{_WEEKDAY},? )?(?P<day>[0-9]{{1,2}}) {_MONTH}{_OF_YEAR}",
        meanings.calendar_day,
        kind="floating",
    ),
    _form(DIGIT, f"{_YEAR}(?P<said> (?:году|года|год))?", meanings.year_or_week, _year_counts),
    _form(_ORDINALS, f"{_QUARTER}{_OF_YEAR}", meanings.month_or_quarter, kind="floating"),
    _form(_SEASONS, f"{_SEASON}{_OF_YEAR}", meanings.season, _season_counts, "floating"),
    _form(_WHICHES, f"{_WHICH} {_SEASON}", meanings.season, kind="floating"),
    *(
        _form(
            "начало начале начала середина середине середины конец конце конца",
            f"{_PART} {pattern}",
            meanings.third_of(whole),
        )
        for pattern, whole in _WHOLES
    ),
)

_HEADS = {"с": "since", "со": "since", "после": "after", "до": "before", "перед": "before", "между": "between"}
_HEADS |= {"от": "from", "по": "until", "к": "until"}
_HEADS = {in_latin_letters(word): meaning for word, meaning in _HEADS.items()}
_LEADS = in_latin_letters("в|во|на|за|о")
RUSSIAN = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>)",
    heads=_HEADS,
    to=in_latin_letters(r"(?: (?P<to>по|до) | ?– ?)"),
    and_=in_latin_letters(" и "),
    openers=words_of(_HEADS, _LEADS.split("|")),
    words=words_of(
        (in_latin_letters("вчера позавчера сегодня послезавтра недавно последнее днях выходные выходных ночью"),),
        *(RU_UNITS, RU_WEEKDAYS, RU_MONTHS, RU_SEASONS),
    ),
    dated=words_of((in_latin_letters("в во с до после между от"),)),
)
