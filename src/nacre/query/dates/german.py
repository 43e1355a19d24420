"""German times. A month or a season needs a preposition, an adjective or a year: without one, it may be a name."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form, nearby
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    DE_MONTHS,
    DE_NUMBERS,
    DE_ORDINALS,
    DE_SEASONS,
    DE_UNITS,
    DE_WEEKDAYS,
    any_of,
    words_of,
)

_OTHER_DAY_BEFORE = r"\b(?:jede[nrsm]?|immer|bis(?:\s+zum)?)\s+$"
_HELPERS = frozenset({"im", "in", "seit", "since", "before", "after", "until", "between", "ab", "wahrend", "vom", "to"})


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "which") or part(match, "year") or part(match, "era") or place.helpers & _HELPERS)


def _weekday_counts(_: re.Match[str], place: Surroundings) -> bool:
    return "until" not in place.helpers and not nearby(_OTHER_DAY_BEFORE).search(place.before)


def _short_day_counts(_: re.Match[str], place: Surroundings) -> bool:
    return bool(place.helpers & (_HELPERS | {"am"}))


def _days_count(match: re.Match[str], place: Surroundings) -> bool:
    return " und " not in match[0].lower() or "between" in place.helpers


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    return match[0][0] in "jJ" or (not place.article and bool(place.helpers & _HELPERS))


_YEAR = "(?P<year>[0-9]{4})"
_WHICH = "(?P<which>(?:vorletzt|letzt|vorig|vergangen|dies|nachst|naechst|kommend)e[nrsm]?)"
_LONG = f"(?P<long>{any_of(*DE_UNITS)})"
_SEVERAL = "(?:ein )?paar|einigen?|wenigen?"
_AMOUNT = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>{_SEVERAL}|{any_of(*(set(DE_NUMBERS) - {'paar'}))})) {_LONG}"
_PARTS_OF_DAY = ("morgen", "vormittag", "mittag", "nachmittag", "abend", "nacht")
_PART_OF_DAY = f"(?: (?:fruh|{any_of(*_PARTS_OF_DAY)}))?"
_WEEKDAY = f"(?P<weekday>{any_of(*DE_WEEKDAYS)})(?:{any_of(*_PARTS_OF_DAY)})?"
_MONTH = f"(?P<month>{any_of(*DE_MONTHS)})"
_ERA = "(?P<era>letzten|vorigen|vergangenen|dieses) jahres"
_MAYBE_YEAR = f"(?: (?:des jahres )?{_YEAR}| {_ERA})?"
_DAY = rf"(?:{_WEEKDAY},? (?:(?:de[nmr] )|(?:am ))?)?(?P<day>[0-9]{{1,2}})\. ?{_MONTH}{_MAYBE_YEAR}"
_FIRST = r"(?P<first>[0-9]{1,2})\.(?: ?[-–] ?| bis (?:zum )?| und )"
_HOLIDAYS = "weihnachten|heiligabend|silvester|neujahr"
_NTH = f"(?P<nth>{any_of(*DE_ORDINALS)})"
_QUARTER = rf"(?:(?P<quarter>{any_of(*(word for word in DE_ORDINALS if DE_ORDINALS[word] in range(1, 5)))}) quartal)"
_PART = "(?P<part>anfang|beginn|mitte|ende)(?: (?:de[sr]|vom|von))?"
_WHOLES = (
    (f"(?:monats )?{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"(?P<season>{any_of(*DE_SEASONS)})s?{_MAYBE_YEAR}", meanings.season),
    (_YEAR, meanings.year_or_week),
    (f"(?:{_WHICH} )?(?P<long>woche|monats?|jahres|quartals)", meanings.which_unit),
)

_AMOUNTS = words_of(DE_NUMBERS) | DIGIT
_STEMS = ("vorletzt", "letzt", "vorig", "vergangen", "dies", "nachst", "naechst", "kommend")
_WHICHES = frozenset(stem + end for stem in _STEMS for end in ("e", "en", "er", "es", "em"))
_WEEKDAYS = frozenset(day + part for day in DE_WEEKDAYS for part in ("", *_PARTS_OF_DAY))
_MONTHS, _SEASONS, _ORDINALS = words_of(DE_MONTHS), words_of(DE_SEASONS), words_of(DE_ORDINALS)

_FORMS = (
    form(_AMOUNTS, _AMOUNT, meanings.up_to_now, lambda _, place: "since" in place.helpers, "duration"),
    form("vor", rf"vor (?:etwa |rund |ca\. ?|genau )?{_AMOUNT}", meanings.ago),
    form("letzten vergangenen", f"(?:letzten|vergangenen) {_AMOUNT}", meanings.up_to_now),
    form("letzten vergangenen", "(?:letzten|vergangenen) tagen?", meanings.back(7)),
    form("letzten vergangenen", "(?:letzten|vergangenen) wochen", meanings.back(30)),
    form("letzten vergangenen", "(?:letzten|vergangenen) monaten", meanings.back(90)),
    form("heute", f"heute{_PART_OF_DAY}", meanings.day(0)),
    form("gestern", f"gestern{_PART_OF_DAY}", meanings.day(-1)),
    form("vorgestern", f"vorgestern{_PART_OF_DAY}", meanings.day(-2)),
    form("ubermorgen uebermorgen", "ubermorgen|uebermorgen", meanings.day(2)),
    form("letzte", "letzte nacht", meanings.last_night),
    form(
        "kurzlich kuerzlich vor letzter jungst dieser",
        "kurzlich|kuerzlich|vor kurzem|letzter zeit|jungst|dieser tage",
        meanings.back(30),
    ),
    form("neulich letztens", "neulich|letztens", meanings.back(14)),
    form(_WHICHES, f"{_WHICH} (?P<long>woche|monats?|quartals?|jahr(?:es)?)", meanings.which_unit),
    form(_WHICHES, f"{_WHICH} wochenendes?", meanings.weekend),
    form(
        "wochenende",
        "wochenende",
        meanings.weekend,
        lambda _, place: bool(place.helpers & {"am", "ubers", "uber"}),
        "floating",
    ),
    form(
        _WEEKDAYS | _WHICHES, f"(?:{_WHICH} )?{_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"
    ),
    form(
        _MONTHS | _WHICHES | {"monat"},
        f"(?:{_WHICH} )?(?:monat )?{_MONTH}{_MAYBE_YEAR}",
        meanings.month_or_quarter,
        _name_counts,
        "floating",
    ),
    form(_WEEKDAYS | DIGIT, _DAY, meanings.calendar_day, kind="floating"),
    form(DIGIT, r"(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.", meanings.calendar_day, _short_day_counts, "floating"),
    form(
        DIGIT, rf"{_FIRST}(?P<day>[0-9]{{1,2}})\. ?{_MONTH}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"
    ),
    form(DIGIT | {"jahr", "jahre"}, f"(?:jahre? )?{_YEAR}", meanings.year_or_week, _year_counts),
    form(
        DIGIT,
        "(?P<decade>(?:19|20)[0-9]0|[5-9]0)ern?(?: jahren?)?",
        meanings.decade,
        lambda _, place: bool(place.article),
    ),
    form(_ORDINALS, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"),
    form(DIGIT, rf"(?P<quarter>[1-4])\. quartal{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"),
    form("q", "q(?P<quarter>[1-4])", meanings.month_or_quarter, _name_counts, "floating"),
    form("woche", f"woche (?:vom|ab)(?: dem)? {_DAY}", meanings.week_of_day),
    form(_ORDINALS, f"{_NTH} woche (?:im|des) {_MONTH}{_MAYBE_YEAR}", meanings.week_of_month),
    form(_ORDINALS, f"{_NTH} {_MONTH}woche", meanings.week_of_month),
    form(
        _SEASONS | _WHICHES,
        f"(?:{_WHICH} )?(?P<season>{any_of(*DE_SEASONS)}){_MAYBE_YEAR}",
        meanings.season,
        _name_counts,
        "floating",
    ),
    form(
        _WHICHES | set(_HOLIDAYS.split("|")),
        f"(?:{_WHICH} )?(?P<holiday>{_HOLIDAYS}){_MAYBE_YEAR}",
        meanings.holiday,
        kind="floating",
    ),
    *(form("anfang beginn mitte ende", f"{_PART} {pattern}", meanings.third_of(whole)) for pattern, whole in _WHOLES),
)

_HEADS = {"seit": "since", "nach": "after", "vor": "before", "bis": "until", "zwischen": "between", "von": "from"}
_HEADS |= {"ab": "since", "bis zum": "until", "vom": "from"}
_LEADS = "im|in|am|an|zu|zum|zur|gegen|wahrend|uber|ubers|aus|von|innerhalb"
GERMAN = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>(?:der|die|das|den|dem|des) )?",
    heads=_HEADS,
    to=r"(?: (?P<to>bis)(?: zum)? | ?– ?|\s+-\s+)(?:de[rmn] )?",
    and_=" und (?:de[rmn] )?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("der die das den dem des",)),
    words=words_of(
        *(("heute gestern vorgestern ubermorgen uebermorgen kurzlich kuerzlich kurzem neulich letztens",),),
        *(("nacht zeit jungst tage wochenende wochenendes weihnachten heiligabend silvester neujahr",),),
        *(DE_UNITS, _WEEKDAYS, DE_MONTHS, DE_SEASONS, (f"{month}woche" for month in DE_MONTHS)),
    ),
    dated=words_of(("im seit ab am nach vor bis zwischen von vom ern er anfang mitte ende",)),
)
