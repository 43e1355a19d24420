"""English times, and when they count inside a question, where most of their words may have other meanings."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import Language, Surroundings, form
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    EN_MONTHS,
    EN_NUMBERS,
    EN_ORDINALS,
    EN_SEASONS,
    EN_SHORT_MONTHS,
    EN_SHORT_UNITS,
    EN_SHORT_WEEKDAYS,
    EN_UNITS,
    EN_WEEKDAYS,
    any_of,
    words_of,
)

_OTHER_DAY_BEFORE = re.compile(r"\b(?:by|every|each|black|good|cyber|easter|palm)\s+$", re.I)
_OTHER_NUMBER_BEFORE = re.compile(r"\b(?:half|than|over|least|most|and|point|dozen|hundred|[a-z]+ty)\s+$", re.I)
_LIST_BEFORE = re.compile(r"[0-9](?:st|nd|rd|th)?\s+(?:and|to|or|through)\s+$", re.I)
_AMOUNT_BEFORE = re.compile(r"\b(?:size|limit|max\w*|min\w*|total|length|count|number|budget|window|port)\s+$", re.I)
_DATED_BEFORE = re.compile(
    r"\b(?:notes?|minutes|photos?|pictures|reports?|numbers|invoices?|results|logs?|entries|figures|meetings?|events|"
    r"decisions|memories|messages|bill|statement|newsletter|release|trip)\s+(?:from\s+|of\s+|for\s+)?$",
    re.I,
)
_MOST_BEFORE = re.compile(r"\bmost\s+$", re.I)
_OF_AFTER = re.compile(r"\s+of\b", re.I)
_VERB_AFTER = re.compile(r"\s+(?:be|have|not|also|only|still|never|well|need|take|fail|cause|i|we|you|it|they)\b", re.I)
_PERSON_AFTER = re.compile(
    r"'s\b|\s+(?:said|says|told|tells|left|called|calls|came|asked|joined|moved|went|got|quit|wrote|met|likes?|loves?|"
    r"has|had|wants?|gave|bought|lives|works|worked)\b"
)
_THINGS_AFTER = re.compile(r"\s+(?!(?:was|is|as|has|its|this|does|us|vs|across)\b)(?:[a-z]+s|[kmg]i?b|px|people)\b")
_SOFTWARE_AFTER = re.compile(r"\s+(?:boot|config\w*|context|framework|security|data|mvc|cloud|bean|app|project|\d)", re.I)
_CLEAR_MONTHS = frozenset(EN_MONTHS) - {"march", "april", "may", "june", "august"}  # the others may be people or verbs
_NAME_HELPERS = frozenset({"in", "on", "during", "since", "before", "after", "by", "until", "between", "around"})
_YEAR_HELPERS = frozenset({"in", "since", "during", "before", "after", "until", "of", "between", "around"})
_SEASON_HELPERS = _NAME_HELPERS | {"over", "of", "from"}
_PERIOD_LEADS = frozenset({"in", "during", "since", "of", "from", "between", "after", "before", "until", "by"})


def _unit_counts(_: re.Match[str], place: Surroundings) -> bool:
    return not _OF_AFTER.match(place.after)  # "the last week of school"


def _weekday_counts(match: re.Match[str], place: Surroundings) -> bool:
    if "by" in place.helpers or _OTHER_DAY_BEFORE.search(place.before):
        return False  # in the future ("due by Friday"), recurring, or a holiday
    clear = match["weekday"].lower().endswith("day") or part(match, "which") == "last"
    return clear or (not place.article and bool(place.helpers & {"on", "since", "between"}))


def _month_counts(match: re.Match[str], place: Surroundings) -> bool:
    name, which = match["month"], part(match, "which")
    if name.lower() == "may" and name != "May" and (which == "this" or _VERB_AFTER.match(place.after)):
        return False  # "this may take long", "the one before may be wrong"
    if which or name.lower() in _CLEAR_MONTHS:
        return True
    if place.article or _PERSON_AFTER.match(place.after):  # "before April left", "in June's room"
        return False
    dated = place.helpers & {"from", "of", "for"} and _DATED_BEFORE.search(place.before)
    return bool(place.helpers & _NAME_HELPERS or dated)


def _day_counts(match: re.Match[str], place: Surroundings) -> bool:
    if _LIST_BEFORE.search(place.before):  # "between 3 and 5 May": the second half alone would mislead
        return False
    month = match["month"]
    if part(match, "year") or match["ordinal"] or match["weekday"] or month[0].isupper():
        return True
    clear = month.lower() not in {"may", "march", "mar", "dec"}  # "may 3 people join?"
    return clear or bool(place.helpers & {"on", "since", "before", "after", "between"})


def _days_count(match: re.Match[str], place: Surroundings) -> bool:
    return "and" not in match["link"].lower() or "between" in place.helpers


def _part_counts(_: re.Match[str], place: Surroundings) -> bool:
    return not place.after.startswith("'s")  # "the end of May's patience"


def _ago_counts(_: re.Match[str], place: Surroundings) -> bool:
    return "over" not in place.helpers and not _OTHER_NUMBER_BEFORE.search(place.before)


def _weekend_counts(_: re.Match[str], place: Surroundings) -> bool:
    return bool(place.article and place.helpers & {"at", "on", "over", "during", "since"})


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    if _THINGS_AFTER.match(place.after) or ("of" in place.helpers and _AMOUNT_BEFORE.search(place.before)):
        return False  # "in 2000 words", "a limit of 2048"
    return match[0][0] in "yY" or (not place.article and bool(place.helpers & _YEAR_HELPERS))


def _quarter_counts(_: re.Match[str], place: Surroundings) -> bool:
    return not place.article and bool(place.helpers & _NAME_HELPERS)


def _nth_quarter_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "year") or part(match, "era") or place.helpers & _PERIOD_LEADS)


def _season_counts(match: re.Match[str], place: Surroundings) -> bool:
    name = match["season"]
    if part(match, "year") or part(match, "era"):
        return True
    if _SOFTWARE_AFTER.match(place.after) or _PERSON_AFTER.match(place.after):  # "in Spring Boot", "Summer said"
        return False
    if part(match, "which"):
        return True
    as_season = place.helpers & _SEASON_HELPERS and (place.article or name.islower() or name != "Spring")
    return bool(as_season) and not (name.lower() == "fall" and not place.article and "in" not in place.helpers)


def _holiday_counts(match: re.Match[str], place: Surroundings) -> bool:
    clear = part(match, "which") or part(match, "year") or part(match, "era") or " " in match["holiday"].strip()
    named = bool(clear or place.helpers & {"at", "over", "around", "since", "before", "after", "on", "during", "until"})
    return named and not re.match(r"\s+(?:tree|party|present|gift|card|song|market|dinner|resolution)", place.after, re.I)


_DIGITS = "[0-9]{2}"
_LAST = "last|past|previous"
_LONG = f"(?P<long>{any_of(*EN_UNITS)})"
_UNIT = f"(?P<unit>{any_of(*EN_UNITS, *EN_SHORT_UNITS)})"
_COUNTS = any_of(*(set(EN_NUMBERS) - {"a", "an", "couple", "few", "several"}))
_AMOUNT = f"(?:(?P<digits>[0-9]{{1,9}}) ?{_UNIT}|(?P<word>(?:a )?couple(?: of)?|(?:a )?few|several|an?|{_COUNTS}) {_LONG})"
_PART_OF_DAY = "(?: (?:morning|afternoon|evening|night))?"
_WHICH = "(?:(?P<which>last|this|next) )?"
_WEEKDAY = f"(?P<weekday>{any_of(*EN_WEEKDAYS, *EN_SHORT_WEEKDAYS)})"
_MONTH = f"(?P<month>{any_of(*EN_MONTHS, *EN_SHORT_MONTHS)})"
_DAY = "(?P<day>[0-9]{1,2})(?P<ordinal>st|nd|rd|th)?"
_FIRST = "(?P<first>[0-9]{1,2})(?:st|nd|rd|th)?"
_DAY_FIRST = f"(?:{_WEEKDAY}(?:, ?| )(?:the )?)?{_DAY}(?: of)? {_MONTH}"
_DAY_LAST = f"(?:{_WEEKDAY}(?:, ?| ))?{_MONTH} (?:the )?{_DAY}"
_LINK = "(?P<link> ?[-–] ?| to | through | and )"
_YEAR = "(?P<year>[0-9]{4})"
_ERA = "(?:of )?(?P<era>last|this) year"
_THEN_YEAR = f"(?:, ?| ){_YEAR}"
_MAYBE_YEAR = f"(?:(?:, ?| of | ){_YEAR}|,? {_ERA})?"
_TIME = rf"(?P<time>{_DIGITS}:{_DIGITS}(?::{_DIGITS}(?:\.[0-9]{{1,9}})?)?)"
_OFFSET = f"(?P<offset>z|(?:-(?:0[0-9]|1[0-2])|\\+(?:0[0-9]|1[0-4])):?{_DIGITS})?"
_SEASON = f"(?P<season>{any_of(*EN_SEASONS)})"
_QUARTER = f"(?P<quarter>{any_of(*(set(EN_ORDINALS) - {'last', 'fifth', '5th'}))}) quarter"
_HOLIDAY = r"(?P<holiday>christmas(?:\s+(?:eve|day))?|new\s+year'?s\s+(?:eve|day)|new\s+year(?:'s)?|halloween)"


def _thirds(whole: str) -> tuple[str, str]:
    return (f"(?P<part>early|mid|late)(?: in)? (?:the )?{whole}", f"(?P<part>beginning|start|middle|end) of {whole}")


_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"(?:the )?{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (f"(?:the )?{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"q(?P<quarter>[1-4])(?:(?: of)? {_YEAR})?", meanings.month_or_quarter),
    (_YEAR, meanings.year_or_week),
    ("(?P<which>last|this|the|next) (?P<long>week|month|quarter|year)", meanings.which_unit),
)

_FORMS = (
    form(_AMOUNT, meanings.up_to_now, lambda _, place: "since" in place.helpers, "duration"),
    form(f"(?:{_LAST}) {_AMOUNT}", meanings.up_to_now, _unit_counts),
    form(
        "(?:(?:last|previous)(?= hour)|past) (?P<long>hour|day|week|month|quarter|year)",
        meanings.up_to_now,
        _unit_counts,
    ),
    form(f"{_AMOUNT} ago", meanings.ago, _ago_counts),
    form("now", meanings.now, lambda _, place: "to" in place.helpers),
    form("today|tonight|this (?:morning|afternoon|evening)", meanings.day(0)),
    form(f"yesterday{_PART_OF_DAY}", meanings.day(-1)),
    form(f"tomorrow{_PART_OF_DAY}", meanings.day(1)),
    form("day before yesterday", meanings.day(-2)),
    form("day after tomorrow", meanings.day(2)),
    form("last night", meanings.last_night),
    form("recently|lately|these days", meanings.back(30), lambda _, place: not _MOST_BEFORE.search(place.before)),
    form("other day", meanings.back(14), lambda _, place: bool(place.article)),
    form(f"(?P<which>this|next|{_LAST}) (?P<long>week|month|quarter|year)", meanings.which_unit, _unit_counts),
    form(f"(?P<which>this|next|{_LAST}) weekend", meanings.weekend, _unit_counts),
    form("weekend", meanings.weekend, _weekend_counts, "floating"),
    form(f"{_WHICH}{_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"),
    form(f"{_WHICH}{_MONTH}", meanings.month_or_quarter, _month_counts, "floating"),
    form(f"{_MONTH}(?:, ?| of | ){_YEAR}", meanings.month_or_quarter),
    form(f"{_MONTH},? {_ERA}", meanings.month_or_quarter),
    form(f"{_YEAR}-(?P<month>{_DIGITS})", meanings.month_or_quarter),
    form(_DAY_FIRST, meanings.calendar_day, _day_counts, "floating"),
    form(_DAY_LAST, meanings.calendar_day, _day_counts, "floating"),
    form(_DAY_FIRST + _THEN_YEAR, meanings.calendar_day, _day_counts),
    form(_DAY_LAST + _THEN_YEAR, meanings.calendar_day, _day_counts),
    form(f"{_DAY_FIRST},? {_ERA}", meanings.calendar_day),
    form(f"{_DAY_LAST},? {_ERA}", meanings.calendar_day),
    form(f"{_FIRST}{_LINK}{_DAY}(?: of)? {_MONTH}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"),
    form(f"{_MONTH} {_FIRST}{_LINK}{_DAY}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"),
    form(f"{_YEAR}-(?P<month>{_DIGITS})-(?P<day>{_DIGITS})", meanings.calendar_day),
    form(rf"(?P<day>[0-9]{{1,2}})\.(?P<month>[0-9]{{1,2}})\.{_YEAR}", meanings.calendar_day),
    form(f"(?P<date>{_YEAR}-{_DIGITS}-{_DIGITS})(?:t| ){_TIME}{_OFFSET}", meanings.moment),
    form(f"(?:year )?{_YEAR}", meanings.year_or_week, _year_counts),
    form(f"(?P<decade>(?:19|20)[0-9]0|[5-9]0)'?s", meanings.decade, lambda _, place: bool(place.article)),
    form("q(?P<quarter>[1-4])", meanings.month_or_quarter, _quarter_counts, "floating"),
    form(f"q(?P<quarter>[1-4])(?: of)? {_YEAR}", meanings.month_or_quarter),
    form(f"{_YEAR} ?q(?P<quarter>[1-4])", meanings.month_or_quarter),
    form(f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, _nth_quarter_counts, "floating"),
    form(f"{_YEAR} ?w(?P<week>{_DIGITS})", meanings.year_or_week),
    form(f"week (?:of|from) (?:the )?{_DAY_FIRST}(?:{_THEN_YEAR})?", meanings.week_of_day),
    form(f"week (?:of|from) {_DAY_LAST}(?:{_THEN_YEAR})?", meanings.week_of_day),
    form(f"(?P<nth>{any_of(*EN_ORDINALS)}) week (?:of|in) {_MONTH}{_MAYBE_YEAR}", meanings.week_of_month),
    form(f"{_WHICH}{_SEASON}{_MAYBE_YEAR}", meanings.season, _season_counts, "floating"),
    form(f"{_WHICH}{_HOLIDAY}{_MAYBE_YEAR}", meanings.holiday, _holiday_counts, "floating"),
    *(form(each, meanings.third_of(whole), _part_counts) for pattern, whole in _WHOLES for each in _thirds(pattern)),
)

_HEADS = ("between", "since", "after", "before", "until", "by")
_LEADS = "in|on|at|during|of|from|around|over|within|throughout|earlier|later"
ENGLISH = Language(
    forms=_FORMS,
    opening=f"(?:(?P<head>{any_of(*_HEADS, 'till')}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>the )?",
    heads={each: each for each in _HEADS} | {"till": "until"},
    to=r"(?: (?P<to>to) | ?(?:\.\.|–) ?|\s+-\s+)(?:the )?",
    and_=" and (?:the )?",
    words=words_of(
        *("now today yesterday tomorrow tonight night morning afternoon evening weekend recently lately".split(),),
        *("christmas halloween".split(), EN_UNITS, EN_WEEKDAYS, EN_SHORT_WEEKDAYS),
        *(EN_MONTHS, EN_SHORT_MONTHS, EN_SEASONS),
    ),
)
