"""Parses English time expressions: "last week", "since March", "between 1 May and 7 May 2026", "7d".

`parse_period` parses a text that is one time expression; `find_mentions` finds expressions inside a question. Both
use one grammar:

    phrase   [since|after|before|until|by|between] [in|on|…] [the] single [to|and single]
    single   one of `_FORMS`: a pattern, its meaning, and when it counts inside a question

Days, weeks, months and years are those of the user's calendar. They are computed as local dates, and each boundary is
converted to UTC separately, because its UTC offset may differ from today's.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import NamedTuple, TypeAlias

from nacre.types.memory import Span
from nacre.types.search import Period


@dataclass(frozen=True, slots=True)
class Mention:
    """A time expression inside a text."""

    span: Span
    period: Period


def parse_period(text: str, now: datetime, zone: tzinfo | None = None) -> Period | None:
    """The period that the whole text names, or None. `zone=None` is the system's time zone."""
    text = text.strip()
    for phrase in _phrases(text, 0):
        if phrase.end == len(text) and (period := _period(phrase, now, zone)):
            return period
    return None


def may_mention_period(text: str) -> bool:
    """Whether a text has a word or digit that every time expression needs. A cheap test: most questions have none."""
    return not _TIME_WORDS.isdisjoint(re.findall("[a-z]+|[0-9]", text.lower()))


def find_mentions(text: str, now: datetime, zone: tzinfo | None = None) -> list[Mention]:
    """The times that a question mentions, in order, not overlapping. Tuned for precision rather than recall."""
    text = _QUOTED.sub(lambda quoted: '"' * len(quoted[0]), text)
    found: list[Mention] = []
    reached = 0
    for start in (each.start() for each in _WORD_START.finditer(text)):
        phrases = sorted(_phrases(text, start), key=lambda each: -each.end) if start >= reached else ()
        for phrase in (each for each in phrases if _is_meant_as_time(each, text, start)):
            period = _period(phrase, now, zone)
            if period and not _in_the_future(period, now):
                found.append(Mention(Span(start, phrase.end), period))
            elif phrase.second:  # not a range, but possibly two times
                continue
            reached = phrase.end  # also after "next Monday", so that "Monday" is not read by itself
            break
    return found


_Interval: TypeAlias = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class _Clock:
    now: datetime  # in UTC
    zone: tzinfo | None

    @property
    def local(self) -> datetime:
        return self.now.astimezone(self.zone).replace(tzinfo=None)

    @property
    def today(self) -> date:
        return self.local.date()

    def utc(self, local: datetime) -> datetime:
        return (local if self.zone is None else local.replace(tzinfo=self.zone)).astimezone(UTC)

    def days(self, first: date, end: date) -> _Interval:
        return self.utc(datetime.combine(first, time())), self.utc(datetime.combine(end, time()))

    def unit(self, day: date, unit: str) -> _Interval:
        """The calendar unit that contains the day."""
        first = _first_day(day, unit)
        return self.days(first, _shifted(first, unit, 1))


def _first_day(day: date, unit: str) -> date:
    if unit in _MONTHS_IN:
        return date(day.year, day.month - (day.month - 1) % _MONTHS_IN[unit], 1)
    return day - timedelta(days=day.weekday()) if unit == "week" else day


def _shifted(day: date, unit: str, count: int) -> date:
    """The day `count` units later, or the last day of the month if the month is too short."""
    if unit not in _MONTHS_IN:
        return day + timedelta(seconds=_SECONDS_IN[unit] * count)
    year, month = divmod(day.year * 12 + day.month - 1 + _MONTHS_IN[unit] * count, 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError("no such year")
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


# --- The meanings of the forms. They raise ValueError or OverflowError for times that the calendar does not have.


def _part(match: re.Match[str], name: str) -> str:
    """The text that a named group matched; empty if the group did not match or does not exist."""
    return (match.groupdict().get(name) or "").lower()


def _month_number(match: re.Match[str]) -> int:
    if quarter := _part(match, "quarter"):
        return int(quarter) * 3 - 2
    month = _part(match, "month")
    return int(month) if month.isdigit() else _MONTHS[month[:3]]


def _amount(match: re.Match[str]) -> tuple[int, str]:
    unit = _UNITS[_part(match, "unit") or _part(match, "long")]
    if digits := _part(match, "digits"):
        return int(digits), unit
    words = re.split(r"[\W_]+", _part(match, "word") or "one")  # "a couple of": the largest number counts
    return max(_NUMBERS.get(word, 0) for word in words), unit


def _up_to_now(match: re.Match[str], clock: _Clock) -> _Interval:
    count, unit = _amount(match)
    if unit in _SECONDS_IN:
        return clock.now - timedelta(seconds=_SECONDS_IN[unit] * count), clock.now
    local = clock.local
    return clock.utc(datetime.combine(_shifted(local.date(), unit, -count), local.time())), clock.now


def _ago(match: re.Match[str], clock: _Clock) -> _Interval:
    count, unit = _amount(match)
    if unit not in {"second", "minute", "hour"}:
        return clock.unit(_shifted(_first_day(clock.today, unit), unit, -count), unit)
    size = timedelta(seconds=_SECONDS_IN[unit])
    moment = replace(clock, now=clock.now - size * count)
    # Truncated in UTC: when the clocks go back, one local hour is two hours in UTC.
    start = moment.now - (moment.local - datetime.combine(date.min, time())) % size
    return start, start + size


def _named_day(match: re.Match[str], clock: _Clock) -> _Interval:
    words = re.split(r"[\W_]+", match[0].lower())
    offset = ("tomorrow" in words) - ("yesterday" in words)
    return clock.unit(clock.today + timedelta(days=offset * (2 if "day" in words else 1)), "day")


def _last_night(_: re.Match[str], clock: _Clock) -> _Interval:
    midnight = datetime.combine(clock.today, time())
    return clock.utc(midnight - timedelta(hours=6)), clock.utc(midnight + timedelta(hours=6))


def _which_unit(match: re.Match[str], clock: _Clock) -> _Interval:
    offset = {"this": 0, "next": 1}.get(_part(match, "which"), -1)
    unit = _part(match, "long")
    if unit == "weekend":
        monday = _first_day(clock.today, "week") + timedelta(weeks=offset + 1)
        return clock.days(monday - timedelta(days=2), monday)
    return clock.unit(_shifted(_first_day(clock.today, unit), unit, offset), unit)


def _weekday(match: re.Match[str], clock: _Clock) -> _Interval:
    today, index = clock.today, _WEEKDAYS[match["weekday"].lower()]
    behind = (today.weekday() - index) % 7
    offsets = {"last": -(behind or 7), "this": index - today.weekday(), "next": 7 - behind}
    return clock.unit(today + timedelta(days=offsets.get(_part(match, "which"), -behind)), "day")


def _month_or_quarter(match: re.Match[str], clock: _Clock) -> _Interval:
    today, month = clock.today, _month_number(match)
    offsets = {"last": -(month >= today.month), "this": 0, "next": int(month <= today.month)}
    recent = today.year + offsets.get(_part(match, "which"), -(month > today.month))
    first = date(int(_part(match, "year") or recent), month, 1)
    return clock.unit(first, "quarter" if _part(match, "quarter") else "month")


def _day(match: re.Match[str], clock: _Clock) -> _Interval:
    today, month, day = clock.today, _month_number(match), int(match["day"])
    if year := _part(match, "year"):
        return clock.unit(date(int(year), month, day), "day")
    for past in range(today.year, today.year - 9, -1):  # around 1900, leap years are eight years apart
        if day <= calendar.monthrange(past, month)[1] and (found := date(past, month, day)) <= today:
            return clock.unit(found, "day")
    raise ValueError("no such day")


def _moment(match: re.Match[str], clock: _Clock) -> _Interval:
    moment = datetime.fromisoformat(f"{match['date']}T{match['time']}{match['offset'] or ''}".upper())
    start = moment.astimezone(UTC) if moment.tzinfo else clock.utc(moment)
    precision = {len("12:30"): timedelta(minutes=1), len("12:30:00"): timedelta(seconds=1)}
    return start, start + precision.get(len(match["time"]), timedelta.resolution)


def _year_or_week(match: re.Match[str], clock: _Clock) -> _Interval:
    year, week = int(match["year"]), _part(match, "week")
    first = date.fromisocalendar(year, int(week), 1) if week else date(year, 1, 1)
    return clock.unit(first, "week" if week else "year")


# --- When a form counts inside a question, where most of its words may have other meanings.

_QUOTED = re.compile(r'"[^"]*"|“[^“”]*”')
# Not inside names, paths, versions and numbers; nor after a minus, which excludes a word from a search.
_WORD_START = re.compile(r"(?<![\w/\\#@$&.-])(?<![0-9][:,–])[A-Za-z0-9]")
_GLUED = re.compile(r"[\w/\\@(%*]|[-.:]\w")
_OTHER_DAY_BEFORE = re.compile(r"\b(?:by|every|each|black|good|cyber|easter|palm)\s+$", re.I)
_OTHER_NUMBER_BEFORE = re.compile(r"\b(?:half|than|over|least|most|and|point|dozen|hundred|[a-z]+ty)\s+$", re.I)
_LIST_BEFORE = re.compile(r"[0-9](?:st|nd|rd|th)?\s+(?:and|to|or|through)\s+$", re.I)
_AMOUNT_BEFORE = re.compile(r"\b(?:size|limit|max\w*|min\w*|total|length|count|number|budget|window|port)\s+$", re.I)
_OF_AFTER = re.compile(r"\s+of\b", re.I)
_VERB_AFTER = re.compile(r"\s+(?:be|have|not|also|only|still|never|well|need|take|fail|cause|i|we|you|it|they)\b", re.I)
_THINGS_AFTER = re.compile(r"\s+(?!(?:was|is|as|has|its|this|does|us|vs|across)\b)(?:[a-z]+s|[kmg]i?b|px|people)\b")


class _Surroundings(NamedTuple):
    """The text around a phrase. `helpers` are the words directly before the form that may make it a time."""

    helpers: frozenset[str]
    before: str
    after: str


def _unit_counts(_: re.Match[str], place: _Surroundings) -> bool:
    return not _OF_AFTER.match(place.after)  # "the last week of school"


def _weekday_counts(match: re.Match[str], place: _Surroundings) -> bool:
    if "by" in place.helpers or _OTHER_DAY_BEFORE.search(place.before):
        return False  # in the future ("due by Friday"), recurring, or a holiday
    clear = match["weekday"].lower().endswith("day") or _part(match, "which") == "last"
    return clear or bool(place.helpers & {"on", "since", "between"})


def _month_counts(match: re.Match[str], place: _Surroundings) -> bool:
    name, which = match["month"], _part(match, "which")
    if name.lower() == "may" and name != "May" and (which == "this" or _VERB_AFTER.match(place.after)):
        return False  # "this may take long", "the one before may be wrong"
    return bool(which or name.lower() in _CLEAR_MONTHS or place.helpers & _NAME_HELPERS)


def _day_counts(match: re.Match[str], place: _Surroundings) -> bool:
    if _LIST_BEFORE.search(place.before):  # "between 3 and 5 May": the second half alone would mislead
        return False
    month = match["month"]
    if _part(match, "year") or match["ordinal"] or match["weekday"] or month[0].isupper():
        return True
    clear = month.lower() not in {"may", "march", "mar", "dec"}  # "may 3 people join?"
    return clear or bool(place.helpers & {"on", "since", "before", "after", "between"})


def _year_counts(match: re.Match[str], place: _Surroundings) -> bool:
    if _THINGS_AFTER.match(place.after) or ("of" in place.helpers and _AMOUNT_BEFORE.search(place.before)):
        return False  # "in 2000 words", "a limit of 2048"
    return match[0][0] in "yY" or bool(place.helpers & _YEAR_HELPERS)


# --- The grammar. In its patterns, a space matches any separator of words.

_Meaning: TypeAlias = Callable[[re.Match[str], _Clock], _Interval]
_Guard: TypeAlias = Callable[[re.Match[str], _Surroundings], bool]


class _Form(NamedTuple):
    """`kind` is "fixed"; "floating", the most recent of many; or "duration", which is a moment as a boundary."""

    pattern: str
    meaning: _Meaning
    counts: _Guard
    kind: str


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: all together take milliseconds, and most questions mention no time."""
    # ASCII only: no digits of other scripts, and no letters that fold to ASCII. White space may be of any kind.
    return re.compile(pattern.replace(" ", r"(?u:\s++|[-_])"), re.I | re.A)


def _form(pattern: str, meaning: _Meaning, counts: _Guard = lambda _, __: True, kind: str = "fixed") -> _Form:
    return _Form(pattern, meaning, counts, kind)


_SECONDS_IN = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}
_LONG_UNITS = {name + plural: name for name in (*_SECONDS_IN, *_MONTHS_IN) for plural in ("", "s")}
_SHORT_UNITS = {"second": "s sec", "minute": "m min mins", "hour": "h hr hrs", "day": "d", "week": "w"}
_SHORT_UNITS |= {"month": "mo", "year": "y yr yrs"}
_UNITS = _LONG_UNITS | {short: name for name, shorts in _SHORT_UNITS.items() for short in shorts.split()}
_NUMBER_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBERS = {word: number for number, word in enumerate(_NUMBER_WORDS, 1)} | {"a": 1, "an": 1, "couple": 2, "few": 3}
_WEEKDAY_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS = {name[:size]: index for index, name in enumerate(_WEEKDAY_NAMES) for size in (3, len(name))}
_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
_MONTH_NAMES = ["january", "february", "march", "april", "may", "june"]
_MONTH_NAMES += ["july", "august", "september", "october", "november", "december"]
_MONTHS = {name[:3]: number for number, name in enumerate(_MONTH_NAMES, 1)}
# April, June and August may be people, March and May verbs, and the short names many other things.
_CLEAR_MONTHS = frozenset(_MONTH_NAMES) - {"march", "april", "may", "june", "august"}
_NAME_HELPERS = frozenset({"in", "on", "during", "since", "before", "after", "by", "until", "between"})
_YEAR_HELPERS = frozenset({"in", "since", "during", "before", "after", "until", "of", "between"})


def _any_of(*words: str) -> str:
    return "|".join(sorted(words, key=lambda word: -len(word)))


_DIGITS = "[0-9]{2}"
_LAST = "last|past|previous"
_AMOUNT = (
    f"(?:(?P<digits>[0-9]{{1,9}}) ?(?P<unit>{_any_of(*_UNITS)})|(?P<word>(?:a )?couple(?: of)?|(?:a )?few|an?|"
    f"{_any_of(*_NUMBER_WORDS)}) (?P<long>{_any_of(*_LONG_UNITS)}))"
)
_PART = "(?: (?:morning|afternoon|evening|night))?"
_WHICH = "(?:(?P<which>last|this|next) )?"
_WEEKDAY = f"(?P<weekday>{_any_of(*_WEEKDAYS)})"
_MONTH = f"(?P<month>{_any_of(*_MONTH_NAMES, *_MONTHS, 'sept')})"
_DAY = "(?P<day>[0-9]{1,2})(?P<ordinal>st|nd|rd|th)?"
_DAY_FIRST = f"(?:{_WEEKDAY}(?:, ?| )(?:the )?)?{_DAY}(?: of)? {_MONTH}"
_DAY_LAST = f"(?:{_WEEKDAY}(?:, ?| ))?{_MONTH} (?:the )?{_DAY}"
_YEAR = "(?P<year>[0-9]{4})"
_THEN_YEAR = f"(?:, ?| ){_YEAR}"
_TIME = rf"(?P<time>{_DIGITS}:{_DIGITS}(?::{_DIGITS}(?:\.[0-9]{{1,9}})?)?)"
_OFFSET = f"(?P<offset>z|(?:-(?:0[0-9]|1[0-2])|\\+(?:0[0-9]|1[0-4])):?{_DIGITS})?"

_FORMS = (
    _form(_AMOUNT, _up_to_now, lambda _, place: "since" in place.helpers, "duration"),
    _form(f"(?:{_LAST}) {_AMOUNT}", _up_to_now, _unit_counts),
    _form("(?:(?:last|previous)(?= hour)|past) (?P<long>hour|day|week|month|quarter|year)", _up_to_now, _unit_counts),
    _form(f"{_AMOUNT} ago", _ago, lambda _, place: not _OTHER_NUMBER_BEFORE.search(place.before)),
    _form("now", lambda _, clock: (clock.now, clock.now), lambda _, place: "to" in place.helpers),
    _form(f"today|(?:yesterday|tomorrow){_PART}|tonight|this (?:morning|afternoon|evening)", _named_day),
    _form("day before yesterday|day after tomorrow", _named_day),
    _form("last night", _last_night),
    _form(f"(?P<which>this|next|{_LAST}) (?P<long>weekend|week|month|quarter|year)", _which_unit, _unit_counts),
    _form(f"{_WHICH}{_WEEKDAY}{_PART}", _weekday, _weekday_counts, "floating"),
    _form(f"{_WHICH}{_MONTH}", _month_or_quarter, _month_counts, "floating"),
    _form(f"{_MONTH}(?:, ?| of | ){_YEAR}", _month_or_quarter),
    _form(f"{_YEAR}-(?P<month>{_DIGITS})", _month_or_quarter),
    _form(_DAY_FIRST, _day, _day_counts, "floating"),
    _form(_DAY_LAST, _day, _day_counts, "floating"),
    _form(_DAY_FIRST + _THEN_YEAR, _day, _day_counts),
    _form(_DAY_LAST + _THEN_YEAR, _day, _day_counts),
    _form(f"{_YEAR}-(?P<month>{_DIGITS})-(?P<day>{_DIGITS})", _day),
    _form(f"(?P<date>{_YEAR}-{_DIGITS}-{_DIGITS})(?:t| ){_TIME}{_OFFSET}", _moment),
    _form(f"(?:year )?{_YEAR}", _year_or_week, _year_counts),
    _form("q(?P<quarter>[1-4])", _month_or_quarter, lambda _, place: bool(place.helpers & _NAME_HELPERS), "floating"),
    _form(f"q(?P<quarter>[1-4])(?: of)? {_YEAR}", _month_or_quarter),
    _form(f"{_YEAR} ?q(?P<quarter>[1-4])", _month_or_quarter),
    _form(f"{_YEAR} ?w(?P<week>{_DIGITS})", _year_or_week),
)
_HEADS = "between|since|after|before|until|by"
_OPENING = f"(?:(?P<head>{_HEADS}) )?(?:(?P<lead>in|on|at|during|of|from|around) )?(?P<the>the )?"
_TO = r"(?: (?P<to>to) | ?(?:\.\.|–) ?)(?:the )?"
_AND = " and (?:the )?"
# Every form has one of these words or a digit.
_PARTS = (
    "now",
    "today",
    "yesterday",
    "tomorrow",
    "tonight",
    "night",
    "morning",
    "afternoon",
    "evening",
    "weekend",
    "sept",
)
_TIME_WORDS = frozenset("0123456789").union(_PARTS, _LONG_UNITS, _WEEKDAYS, _MONTHS, _MONTH_NAMES)


class _Match(NamedTuple):
    form: _Form
    match: re.Match[str]

    def interval(self, clock: _Clock, is_boundary: bool = False) -> _Interval:
        start, end = self.form.meaning(self.match, clock)
        return (start, start) if is_boundary and self.form.kind == "duration" else (start, end)

    def counts(self, place: _Surroundings) -> bool:
        year = _part(self.match, "year")
        return (not year or int(year) in range(1900, 2100)) and self.form.counts(self.match, place)


class _Phrase(NamedTuple):
    head: str  # one of `_HEADS`, or empty
    lead: str  # another word directly before it: in, on, the, …
    first: _Match
    second: _Match | None = None
    helpers: frozenset[str] = frozenset()  # of `second`

    @property
    def end(self) -> int:
        return (self.second or self.first).match.end()


def _matches(text: str, at: int) -> list[_Match]:
    return [_Match(form, match) for form in _FORMS if (match := _compiled(form.pattern).match(text, at))]


def _phrases(text: str, at: int) -> Iterator[_Phrase]:
    """All phrases that begin at this position."""
    if not (opening := _compiled(_OPENING).match(text, at)):
        return
    head, lead = (opening["head"] or "").lower(), (opening["lead"] or "").lower()
    for first in _matches(text, opening.end()):
        link = _compiled(_AND if head == "between" else _TO).match(text, first.match.end())
        if link and head in ("", "between"):
            whole = head or lead == "from" or not link["to"]
            for second in _matches(text, link.end()):
                yield _Phrase(head, lead, first, second, frozenset({"to", "between"} if whole else {"to"}))
        in_front = "the" if opening["the"] else lead
        if head != "between" and not (in_front and first.form.kind == "duration"):  # "in 3 days" is in the future
            yield _Phrase(head, in_front, first)


def _period(phrase: _Phrase, now: datetime, zone: tzinfo | None) -> Period | None:
    try:
        clock = _Clock(now.astimezone(UTC), zone)
        if phrase.second:
            return _range(phrase.first, phrase.second, clock)
        start, end = phrase.first.interval(clock, is_boundary=bool(phrase.head))
    except (ValueError, OverflowError, OSError):  # no such day, or outside the range of datetime or the system
        return None
    if phrase.head in ("since", "after"):
        return Period(start if phrase.head == "since" else end, None)
    return Period(None if phrase.head else start, start if phrase.head in ("before", "until") else end)


def _range(first: _Match, second: _Match, clock: _Clock) -> Period | None:
    until = second.interval(clock, is_boundary=True)
    if first.form.kind == "floating" and not _part(first.match, "which"):
        # "March" in "between March and May 2025" is the one before that May.
        last_moment = max(until[0], until[1] - timedelta(microseconds=1))
        clock = replace(clock, now=last_moment if _part(second.match, "year") else min(last_moment, clock.now))
    start = first.interval(clock)[0]
    return Period(start, until[1]) if start < until[1] else None


def _is_meant_as_time(phrase: _Phrase, text: str, start: int) -> bool:
    """Whether a phrase found inside a question is meant as a time."""
    if _GLUED.match(text, phrase.end):
        return False
    before, after = text[max(0, start - 24) : start], text[phrase.end : phrase.end + 24]
    if phrase.second:  # not "from 3 days to 2 weeks"
        lasting = "duration" in (phrase.first.form.kind, phrase.second.form.kind)
        return not lasting and phrase.second.counts(_Surroundings(phrase.helpers, before, after))
    helpers = {phrase.lead} if phrase.lead == "the" else {phrase.head, phrase.lead}
    return phrase.first.counts(_Surroundings(frozenset(helpers), before, after))


def _in_the_future(period: Period, now: datetime) -> bool:
    """Whether a period lies in the future. So does "before tomorrow": it would not restrict memories of the past."""
    boundary = period.start or period.end
    return boundary is not None and boundary > now
