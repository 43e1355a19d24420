"""Portuguese times. A month or a season counts with a preposition, an adjective or a year."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form, nearby
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    PT_MONTHS,
    PT_NUMBERS,
    PT_ORDINALS,
    PT_SEASONS,
    PT_UNITS,
    PT_WEEKDAYS,
    any_of,
    words_of,
)

_HELPERS = frozenset({"em", "no", "na", "since", "before", "after", "until", "between", "from", "to", "durante"})


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    named = part(match, "which") or part(match, "year") or part(match, "era")
    return bool(named or place.helpers & _HELPERS) and not nearby(r"\brio\s+$").search(place.before)


def _weekday_counts(match: re.Match[str], place: Surroundings) -> bool:
    """ "Segunda" is also "second", and Domingo a name: they need "-feira", "na" or "passada"."""
    said = part(match, "which") or part(match, "fair")
    return "until" not in place.helpers and bool(said or place.helpers & {"na", "no", "since", "from"})


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    """ "No 2025" is not Portuguese."""
    return match[0][0] in "aA" or bool(place.helpers & (_HELPERS - {"no", "na", "from", "to"}))


_YEAR = "(?P<year>[0-9]{4})"
_LAST = "passad[oa]s?|ultim[oa]s?|proxim[oa]s?"
_LONG = f"(?P<long>{any_of(*PT_UNITS)})"
_NUMBER = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>um par de|{any_of(*PT_NUMBERS)}))"
_AMOUNT = f"{_NUMBER} {_LONG}"
_PART_OF_DAY = "(?: (?:de|a|pela) (?:manha|tarde|noite))?"
_WEEKDAY = f"(?P<weekday>{any_of(*PT_WEEKDAYS)})(?P<fair> feira)?"
_MONTH = f"(?P<month>{any_of(*PT_MONTHS)})"
_ERA = "do ano (?P<era>passado)"
_MAYBE_YEAR = f"(?: (?:de )?{_YEAR}| {_ERA})?"
_DAY = f"(?:{_WEEKDAY},? )?(?P<day>[0-9]{{1,2}}) de {_MONTH}{_MAYBE_YEAR}"
_QUARTER = f"(?P<quarter>{any_of(*(word for word in PT_ORDINALS if PT_ORDINALS[word] in range(1, 5)))}) trimestre"
_SEASON = f"(?P<season>{any_of(*PT_SEASONS)})"
_HOLIDAY = "(?P<holiday>natal|ano novo)"
_PART = "(?P<part>inicio|comeco|meados|final|fim) d[eoa] (?:mes de )?"
_UNIT = "(?P<long>semana|mes|ano|trimestre)"
_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (_YEAR, meanings.year_or_week),
    (f"{_UNIT}(?: (?P<which>{_LAST}))?", meanings.which_unit),
)
_AMOUNTS = words_of(PT_NUMBERS) | DIGIT
_WEEKDAYS, _MONTHS = words_of(PT_WEEKDAYS), words_of(PT_MONTHS)
_SEASONS, _ORDINALS = words_of(PT_SEASONS), words_of(PT_ORDINALS)
_THIS = "(?P<which>[nd]?est[ea]|(?:n[oa] )?(?:ultim|passad|proxim)[oa])"
_THISES = "este esta neste nesta deste desta ultimo ultima passado passada proximo proxima"

_FORMS = (
    form("ha faz", f"(?:ha|faz) (?:cerca de |uns |umas )?{_AMOUNT}", meanings.ago),
    form(_AMOUNTS, f"{_AMOUNT} atras", meanings.ago),
    form("ultimos ultimas", f"ultim[oa]s {_AMOUNT}", meanings.up_to_now),
    form("ultimos", "ultimos dias", meanings.back(7)),
    form("ultimas", "ultimas semanas", meanings.back(30)),
    form("ultimos", "ultimos meses", meanings.back(90)),
    form("hoje", "hoje", meanings.day(0)),
    form("ontem", f"ontem{_PART_OF_DAY}", meanings.day(-1)),
    form("anteontem", "anteontem", meanings.day(-2)),
    form("noite", "noite passada", meanings.last_night),
    form("recentemente ultimamente ha", "recentemente|ultimamente|ha pouco(?: tempo)?", meanings.back(30)),
    form("outro", "outro dia", meanings.back(14)),
    form("semana mes ano trimestre", f"{_UNIT} (?P<which>{_LAST})", meanings.which_unit),
    form(_THISES, f"{_THIS} {_UNIT}", meanings.which_unit),
    form("fim", f"fim de semana(?: (?P<which>{_LAST}))?", meanings.weekend),
    form(_THISES, f"{_THIS} fim de semana", meanings.weekend),
    form(_WEEKDAYS, f"{_WEEKDAY}(?: (?P<which>{_LAST}))?{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"),
    form(_THISES, f"{_THIS} {_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, kind="floating"),
    form(_MONTHS | {"mes"}, f"(?:mes de )?{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"),
    form(_MONTHS, f"{_MONTH} (?P<which>{_LAST})", meanings.month_or_quarter, kind="floating"),
    form(_WEEKDAYS | DIGIT, _DAY, meanings.calendar_day, kind="floating"),
    form(DIGIT | {"ano"}, f"(?:ano (?:de )?)?{_YEAR}", meanings.year_or_week, _year_counts),
    form("anos", "anos (?P<decade>(?:19|20)[0-9]0|[5-9]0)", meanings.decade),
    form(_ORDINALS, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, kind="floating"),
    form(_SEASONS, f"{_SEASON}{_MAYBE_YEAR}", meanings.season, _name_counts, "floating"),
    form(_SEASONS, f"{_SEASON} (?P<which>{_LAST})", meanings.season, kind="floating"),
    form(_THISES, f"{_THIS} {_SEASON}", meanings.season, kind="floating"),
    form("natal ano", f"{_HOLIDAY}{_MAYBE_YEAR}", meanings.holiday, _name_counts, "floating"),
    *(form("inicio comeco meados final fim", _PART + pattern, meanings.third_of(whole)) for pattern, whole in _WHOLES),
)

_HEADS = {"desde": "since", "antes de": "before", "antes do": "before", "antes da": "before", "apos": "after"}
_HEADS |= {"depois de": "after", "depois do": "after", "depois da": "after", "ate": "until", "entre": "between"}
_HEADS |= {"de": "from", "do": "from", "da": "from"}
_LEADS = "em|no|na|nos|nas|durante|por|para|a"
PORTUGUESE = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>o |a |os |as )?",
    heads=_HEADS,
    to=r"(?: (?P<to>a|ate) | ?– ?|\s+-\s+)(?:o |a )?",
    and_=" e (?:o |a )?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("o a os as",)),
    words=words_of(
        *(("ontem anteontem hoje noite recentemente ultimamente pouco outro natal feira",),),
        *(PT_UNITS, PT_WEEKDAYS, PT_MONTHS, PT_SEASONS),
    ),
    dated=words_of(("em desde antes depois apos entre ate ano anos inicio comeco meados final fim no na",)),
)
