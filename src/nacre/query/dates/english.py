"""English times, and when they count inside a question, where most of their words may have other meanings."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form, nearby
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

_OTHER_DAY_BEFORE = r"\b(?:by|every|each|black|good|cyber|easter|palm)\s+$"
_OTHER_NUMBER_BEFORE = r"\b(?:half|than|over|least|most|and|point|dozen|hundred|[a-z]+ty)\s+$"
_LIST_BEFORE = r"[0-9](?:st|nd|rd|th)?\s+(?:and|to|or|through)\s+$"
_AMOUNT_BEFORE = r"\b(?:size|limit|max\w*|min\w*|total|length|count|number|budget|window|port)\s+$"
_DATED_BEFORE = (
    r"\b(?:notes?|minutes|photos?|pictures|reports?|numbers|invoices?|results|logs?|entries|figures|meetings?|events|"
    r"decisions|memories|messages|bill|statement|newsletter|release|trip)\s+(?:from\s+|of\s+|for\s+)?$"
)
_MOST_BEFORE = r"\bmost\s+$"
_LATER_BEFORE = r"\blater\s+$"
_OF_AFTER = r"\s+of\b"
_VERB_AFTER = r"\s+(?:be|have|not|also|only|still|never|well|need|take|fail|cause|i|we|you|it|they)\b"
_PERSON_AFTER = (
    r"'s\b|\s+(?:said|says|told|tells|left|called|calls|came|asked|joined|moved|went|got|quit|wrote|met|likes?|loves?|"
    r"has|had|wants?|gave|bought|lives|works|worked)\b"
)
_THINGS_AFTER = r"\s+(?!(?:was|is|as|has|its|this|does|us|vs|across)\b)(?:[a-z]+s|[kmg]i?b|px|people)\b"
_SOFTWARE_AFTER = r"\s+(?:boot|config\w*|context|framework|security|data|mvc|cloud|bean|app|project|\d)"
_HOLIDAY_THING_AFTER = r"\s+(?:tree|party|present|gift|card|song|market|dinner|resolution)"
_NOUN_AFTER = r"\s+(?!we|i|you|he|she|it|they|and|or|at|in|with|to|who|what|did|was|were|for|about)\w"
_CLEAR_MONTHS = frozenset(EN_MONTHS) - {"march", "april", "may", "june", "august"}  # the others may be people or verbs
_NAME_HELPERS = frozenset({"in", "on", "during", "since", "before", "after", "by", "until", "between", "around"})
_YEAR_HELPERS = frozenset({"in", "since", "during", "before", "after", "until", "of", "between", "around"})
_SEASON_HELPERS = _NAME_HELPERS | {"over", "of", "from"}
_PERIOD_LEADS = frozenset({"in", "during", "since", "of", "from", "between", "after", "before", "until", "by"})


def _unit_counts(_: re.Match[str], place: Surroundings) -> bool:
    """Not "the last week of school", nor "later this month", which is to come."""
    return not nearby(_OF_AFTER).match(place.after) and not nearby(_LATER_BEFORE).search(place.before)


def _weekday_counts(match: re.Match[str], place: Surroundings) -> bool:
    if "by" in place.helpers or nearby(_OTHER_DAY_BEFORE).search(place.before):
        return False  # in the future ("due by Friday"), recurring, or a holiday
    clear = match["weekday"].lower().endswith("day") or part(match, "which") == "last"
    return clear or (not place.article and bool(place.helpers & {"on", "since", "between"}))


def _month_counts(match: re.Match[str], place: Surroundings) -> bool:
    name, which = match["month"], part(match, "which")
    if name.lower() == "may" and name != "May" and (which == "this" or nearby(_VERB_AFTER).match(place.after)):
        return False  # "this may take long", "the one before may be wrong"
    if which or name.lower() in _CLEAR_MONTHS:
        return True
    if place.article or nearby(_PERSON_AFTER).match(place.after):  # "before April left", "in June's room"
        return False
    dated = place.helpers & {"from", "of", "for"} and nearby(_DATED_BEFORE).search(place.before)
    return bool(place.helpers & _NAME_HELPERS or dated)


def _day_counts(match: re.Match[str], place: Surroundings) -> bool:
    if nearby(_LIST_BEFORE).search(place.before):  # "between 3 and 5 May": the second half alone would mislead
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
    return "over" not in place.helpers and not nearby(_OTHER_NUMBER_BEFORE).search(place.before)


def _day_of_month_counts(_: re.Match[str], place: Surroundings) -> bool:
    """ "On the 15th", but not "on the 15th floor"."""
    dated = place.article and place.helpers & {"on", "since", "before", "after", "until"}
    return bool(dated) and not nearby(_NOUN_AFTER).match(place.after)


def _weekend_counts(_: re.Match[str], place: Surroundings) -> bool:
    return bool(place.article and place.helpers & {"at", "on", "over", "during", "since"})


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    if nearby(_THINGS_AFTER).match(place.after) or (
        "of" in place.helpers and nearby(_AMOUNT_BEFORE).search(place.before)
    ):
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
    if nearby(_SOFTWARE_AFTER).match(place.after) or nearby(_PERSON_AFTER).match(
        place.after
    ):  # "in Spring Boot", "Summer said"
        return False
    if part(match, "which"):
        return True
    as_season = place.helpers & _SEASON_HELPERS and (place.article or name.islower() or name != "Spring")
    return bool(as_season) and not (name.lower() == "fall" and not place.article and "in" not in place.helpers)


def _holiday_counts(match: re.Match[str], place: Surroundings) -> bool:
    clear = part(match, "which") or part(match, "year") or part(match, "era") or " " in match["holiday"].strip()
    named = bool(clear or place.helpers & {"at", "over", "around", "since", "before", "after", "on", "during", "until"})
    return named and not nearby(_HOLIDAY_THING_AFTER).match(place.after)


_DIGITS = "[0-9]{2}"
_LAST = "last|past|previous"
_LONG = f"(?P<long>{any_of(*EN_UNITS)})"
_UNIT = f"(?P<unit>{any_of(*EN_UNITS, *EN_SHORT_UNITS)})"
_COUNTS = any_of(*(set(EN_NUMBERS) - {"a", "an", "couple", "few", "several"}))
_AMOUNT = (
    f"(?:(?P<digits>[0-9]{{1,9}}) ?{_UNIT}|(?P<word>(?:a )?couple(?: of)?|(?:a )?few|several|an?|{_COUNTS}) {_LONG})"
)
_HALF = "(?P<half>first|second) half of"
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
_HOLIDAY = (
    r"(?P<holiday>christmas(?:\s+(?:eve|day))?|new\s+year'?s\s+(?:eve|day)|new\s+year(?:'s)?|halloween|"
    r"valentine'?s(?:\s+day)?)"
)
_PART = "(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of))(?: (?:in|of))? (?:the )?"
_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"q(?P<quarter>[1-4])(?:(?: of)? {_YEAR})?", meanings.month_or_quarter),
    (_YEAR, meanings.year_or_week),
    ("(?P<which>last|this|the|next) (?P<long>week|month|quarter|year)", meanings.which_unit),
)

_AMOUNTS = words_of(EN_NUMBERS) | DIGIT
_WHICHES = frozenset({"last", "this", "next"})
_WEEKDAYS, _MONTHS = words_of(EN_WEEKDAYS, EN_SHORT_WEEKDAYS), words_of(EN_MONTHS, EN_SHORT_MONTHS)
_SEASONS, _ORDINALS, _HOLIDAYS = (
    words_of(EN_SEASONS),
    words_of(EN_ORDINALS),
    {"christmas", "new", "halloween", "valentine", "valentines"},
)
_PARTS = frozenset({"early", "mid", "late", "beginning", "start", "middle", "end"})

_FORMS = (
    form(_AMOUNTS, _AMOUNT, meanings.up_to_now, lambda _, place: "since" in place.helpers, "duration"),
    form("last past previous", f"(?:{_LAST}) {_AMOUNT}", meanings.up_to_now, _unit_counts),
    form(
        "last past previous",
        "(?:(?:last|previous)(?= hour)|past) (?P<long>hour|day|week|month|quarter|year)",
        meanings.up_to_now,
        _unit_counts,
    ),
    form(_AMOUNTS, f"{_AMOUNT} ago", meanings.ago, _ago_counts),
    form("now", "now", meanings.now, lambda _, place: "to" in place.helpers),
    form("today tonight this", "today|tonight|this (?:morning|afternoon|evening)", meanings.day(0)),
    form("yesterday", f"yesterday{_PART_OF_DAY}", meanings.day(-1)),
    form("tomorrow", f"tomorrow{_PART_OF_DAY}", meanings.day(1)),
    form("day", "day before yesterday", meanings.day(-2)),
    form("day", "day after tomorrow", meanings.day(2)),
    form("last", "last night", meanings.last_night),
    form(
        "recently lately these",
        "recently|lately|these days",
        meanings.back(30),
        lambda _, place: not nearby(_MOST_BEFORE).search(place.before),
    ),
    form("other", "other day", meanings.back(14), lambda _, place: bool(place.article)),
    form(
        "this next last past previous",
        f"(?P<which>this|next|{_LAST}) (?P<long>week|month|quarter|year)",
        meanings.which_unit,
        _unit_counts,
    ),
    form("this next last past previous", f"(?P<which>this|next|{_LAST}) weekend", meanings.weekend, _unit_counts),
    form("weekend", "weekend", meanings.weekend, _weekend_counts, "floating"),
    form(_WEEKDAYS | _WHICHES, f"{_WHICH}{_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"),
    form(_MONTHS | _WHICHES, f"{_WHICH}{_MONTH}", meanings.month_or_quarter, _month_counts, "floating"),
    form(_MONTHS, f"{_MONTH}(?:, ?| of | ){_YEAR}", meanings.month_or_quarter),
    form(_MONTHS, f"{_MONTH},? {_ERA}", meanings.month_or_quarter),
    form(DIGIT, f"{_YEAR}-(?P<month>{_DIGITS})", meanings.month_or_quarter),
    form(_WEEKDAYS | DIGIT, _DAY_FIRST, meanings.calendar_day, _day_counts, "floating"),
    form(_WEEKDAYS | _MONTHS, _DAY_LAST, meanings.calendar_day, _day_counts, "floating"),
    form(_WEEKDAYS | DIGIT, _DAY_FIRST + _THEN_YEAR, meanings.calendar_day, _day_counts),
    form(_WEEKDAYS | _MONTHS, _DAY_LAST + _THEN_YEAR, meanings.calendar_day, _day_counts),
    form(_WEEKDAYS | DIGIT, f"{_DAY_FIRST},? {_ERA}", meanings.calendar_day),
    form(_WEEKDAYS | _MONTHS, f"{_DAY_LAST},? {_ERA}", meanings.calendar_day),
    form(DIGIT, f"{_FIRST}{_LINK}{_DAY}(?: of)? {_MONTH}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"),
    form(_MONTHS, f"{_MONTH} {_FIRST}{_LINK}{_DAY}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"),
    form(DIGIT, f"{_YEAR}-(?P<month>{_DIGITS})-(?P<day>{_DIGITS})", meanings.calendar_day),
    form(DIGIT, rf"(?P<day>[0-9]{{1,2}})\.(?P<month>[0-9]{{1,2}})\.{_YEAR}", meanings.calendar_day),
    form(DIGIT, f"(?P<date>{_YEAR}-{_DIGITS}-{_DIGITS})(?:t| ){_TIME}{_OFFSET}", meanings.moment),
    form(DIGIT | {"year"}, f"(?:year )?{_YEAR}", meanings.year_or_week, _year_counts),
    form(DIGIT, "(?P<decade>(?:19|20)[0-9]0|[5-9]0)'?s", meanings.decade, lambda _, place: bool(place.article)),
    form("q", "q(?P<quarter>[1-4])", meanings.month_or_quarter, _quarter_counts, "floating"),
    form("q", f"q(?P<quarter>[1-4])(?: of)? {_YEAR}", meanings.month_or_quarter),
    form("q", f"q(?P<quarter>[1-4]),? {_ERA}", meanings.month_or_quarter),
    form("h", f"h(?P<half>[12])(?:(?: of)? {_YEAR}|,? {_ERA})", meanings.half_year),
    form("first second", f"{_HALF} {_YEAR}", meanings.half_of(meanings.year_or_week)),
    form("first second", f"{_HALF} {_MONTH}{_MAYBE_YEAR}", meanings.half_of(meanings.month_or_quarter)),
    form(
        "first second", f"{_HALF} (?P<which>last|this|the) (?P<long>year|month)", meanings.half_of(meanings.which_unit)
    ),
    form(DIGIT, "(?P<day>[0-9]{1,2})(?:st|nd|rd|th)", meanings.day_of_month, _day_of_month_counts, "floating"),
    form(_AMOUNTS, f"(?:(?P<digits>[0-9]{{1,2}})|(?P<word>{_COUNTS})) {_WEEKDAY}s ago", meanings.weekdays_ago),
    form(DIGIT, f"{_YEAR} ?q(?P<quarter>[1-4])", meanings.month_or_quarter),
    form(_ORDINALS | DIGIT, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, _nth_quarter_counts, "floating"),
    form(DIGIT, f"{_YEAR} ?w(?P<week>{_DIGITS})", meanings.year_or_week),
    form("week", f"week (?:of|from) (?:the )?{_DAY_FIRST}(?:{_THEN_YEAR})?", meanings.week_of_day),
    form("week", f"week (?:of|from) {_DAY_LAST}(?:{_THEN_YEAR})?", meanings.week_of_day),
    form(
        _ORDINALS | DIGIT,
        f"(?P<nth>{any_of(*EN_ORDINALS)}) week (?:of|in) {_MONTH}{_MAYBE_YEAR}",
        meanings.week_of_month,
    ),
    form(_SEASONS | _WHICHES, f"{_WHICH}{_SEASON}{_MAYBE_YEAR}", meanings.season, _season_counts, "floating"),
    form(_WHICHES | _HOLIDAYS, f"{_WHICH}{_HOLIDAY}{_MAYBE_YEAR}", meanings.holiday, _holiday_counts, "floating"),
    *(form(_PARTS, _PART + pattern, meanings.third_of(whole), _part_counts) for pattern, whole in _WHOLES),
)

_HEADS = ("between", "since", "after", "before", "until", "by")
_LEADS = "in|on|at|during|of|from|around|over|within|throughout|earlier"
ENGLISH = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS, 'till', 'prior to')}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>the )?",
    heads={each: each for each in _HEADS} | {"till": "until", "prior to": "before"},
    to=r"(?: (?P<to>to) | ?(?:\.\.|–) ?|\s+-\s+)(?:the )?",
    and_=" and (?:the )?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("till", "prior", "the")),
    words=words_of(
        *(("now today yesterday tomorrow tonight night morning afternoon evening weekend recently lately",),),
        *(("christmas halloween valentine valentines",), EN_UNITS, EN_WEEKDAYS, EN_SHORT_WEEKDAYS),
        (f"{day}s" for day in EN_WEEKDAYS),
        *(EN_MONTHS, EN_SHORT_MONTHS, EN_SEASONS),
    ),
)
