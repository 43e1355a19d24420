"""What the forms of the grammar mean: from the named groups of a match to an interval.

The functions raise ValueError or OverflowError for times that the calendar does not have.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

from nacre.query.dates.clock import SECONDS_IN, Clock, Interval, first_day, shifted
from nacre.query.dates.words import HOLIDAYS, MONTHS, NUMBERS, ORDINALS, PARTS, SEASONS, UNITS, WEEKDAYS, number, which

Meaning: TypeAlias = Callable[[re.Match[str], Clock], Interval]


def part(match: re.Match[str], name: str) -> str:
    """The text that a named group matched; empty if the group did not match or does not exist."""
    return (match.groupdict().get(name) or "").lower()


def offset_of(match: re.Match[str]) -> int | None:
    """-1 for "last", 0 for "this", 1 for "next"; None where nothing is said."""
    return which(part(match, "which"))


def up_to_now(match: re.Match[str], clock: Clock) -> Interval:
    count, unit = _amount(match)
    if unit in SECONDS_IN:
        return clock.now - timedelta(seconds=SECONDS_IN[unit] * count), clock.now
    local = clock.local
    return clock.utc(datetime.combine(shifted(local.date(), unit, -count), local.time())), clock.now


def ago(match: re.Match[str], clock: Clock) -> Interval:
    count, unit = _amount(match)
    if unit not in {"second", "minute", "hour"}:
        return clock.unit(shifted(first_day(clock.today, unit), unit, -count), unit)
    size = timedelta(seconds=SECONDS_IN[unit])
    moment = replace(clock, now=clock.now - size * count)
    # Truncated in UTC: when the clocks go back, one local hour is two hours in UTC.
    start = moment.now - (moment.local - datetime.combine(date.min, time())) % size
    return start, start + size


def now(_: re.Match[str], clock: Clock) -> Interval:
    return clock.now, clock.now


def day(offset: int) -> Meaning:
    return lambda _, clock: clock.unit(clock.today + timedelta(days=offset), "day")


def back(days: int) -> Meaning:
    return lambda _, clock: clock.back(days)


def last_night(_: re.Match[str], clock: Clock) -> Interval:
    midnight = datetime.combine(clock.today, time())
    return clock.utc(midnight - timedelta(hours=6)), clock.utc(midnight + timedelta(hours=6))


def unit(name: str, offset: int) -> Meaning:
    return lambda _, clock: clock.unit(shifted(first_day(clock.today, name), name, offset), name)


def which_unit(match: re.Match[str], clock: Clock) -> Interval:
    offset = offset_of(match) or 0
    name = UNITS[part(match, "long")]
    return clock.unit(shifted(first_day(clock.today, name), name, offset), name)


def weekend(match: re.Match[str], clock: Clock) -> Interval:
    """Without "last" or "next", the last one that has begun."""
    offset = offset_of(match)
    if offset is None:
        offset = 0 if clock.today.weekday() >= 5 else -1
    monday = first_day(clock.today, "week") + timedelta(weeks=offset + 1)
    return clock.days(monday - timedelta(days=2), monday)


def last_weekend(_: re.Match[str], clock: Clock) -> Interval:
    monday = first_day(clock.today, "week")
    return clock.days(monday - timedelta(days=2), monday)


def weekday(match: re.Match[str], clock: Clock) -> Interval:
    today, index = clock.today, WEEKDAYS[part(match, "weekday")] - 1
    behind = (today.weekday() - index) % 7
    offsets = {None: -behind, -2: -(behind or 7) - 7, -1: -(behind or 7), 0: index - today.weekday(), 1: 7 - behind}
    return clock.unit(today + timedelta(days=offsets[offset_of(match)]), "day")


def weekday_of_week(match: re.Match[str], clock: Clock) -> Interval:
    """The weekday of a week that is counted from the current one, from its Monday."""
    monday = first_day(clock.today, "week") + timedelta(weeks=which(part(match, "week")) or 0)
    return clock.unit(monday + timedelta(days=WEEKDAYS[part(match, "weekday")] - 1), "day")


def month_or_quarter(match: re.Match[str], clock: Clock) -> Interval:
    quarter = _nth(match, "quarter")
    month = quarter * 3 - 2 if quarter else _month(match)
    return clock.unit(date(_year(match, month, clock), month, 1), "quarter" if quarter else "month")


def season(match: re.Match[str], clock: Clock) -> Interval:
    """By the calendar of the northern hemisphere. A winter has the year of its December."""
    month = SEASONS[part(match, "season")]
    first = date(_year(match, month, clock), month, 1)
    if month == 12 and offset_of(match) == 0 and clock.today.month < 3:
        first = date(first.year - 1, month, 1)  # "this winter" in January
    return clock.days(first, shifted(first, "quarter", 1))


def holiday(match: re.Match[str], clock: Clock) -> Interval:
    month, first, days = HOLIDAYS[" ".join(re.split(r"[\s_-]+", part(match, "holiday")))]
    year = _named_year(match, clock)
    begin = date(year, month, first) if year is not None else _most_recent(month, first, clock.today)
    if year is None and (offset_of(match) or 0) > 0:
        begin = date(begin.year + 1, month, first)
    return clock.days(begin, begin + timedelta(days=days))


def calendar_day(match: re.Match[str], clock: Clock) -> Interval:
    month, day_number, year = _month(match), number(match["day"]), _named_year(match, clock)
    found = date(year, month, day_number) if year is not None else _most_recent(month, day_number, clock.today)
    return clock.unit(found, "day")


def days_of_month(match: re.Match[str], clock: Clock) -> Interval:
    """From `first` to `day` of a month."""
    start, end = calendar_day(match, clock)
    last = clock.local_time(start).date()
    begin = last.replace(day=number(match["first"]))
    if begin >= last:
        raise ValueError("the first day is after the last")
    return clock.days(begin, begin)[0], end


def week_of_day(match: re.Match[str], clock: Clock) -> Interval:
    start, _ = calendar_day(match, clock)
    return clock.unit(clock.local_time(start).date(), "week")


def week_of_month(match: re.Match[str], clock: Clock) -> Interval:
    """The first week is the first seven days."""
    first, end = (clock.local_time(each).date() for each in month_or_quarter(match, clock))
    nth = ORDINALS[part(match, "nth")]
    begin = end - timedelta(days=7) if nth < 0 else first + timedelta(days=7 * (nth - 1))
    return clock.days(begin, min(end, begin + timedelta(days=7)))


def third_of(whole: Meaning) -> Meaning:
    """The beginning, middle or end of a longer time. "Late June" in early June is that of the year before."""

    def meaning(match: re.Match[str], clock: Clock) -> Interval:
        place = PARTS[part(match, "part")]
        found = clock.third(whole(match, clock), place)
        floating = offset_of(match) is None and _named_year(match, clock) is None
        return clock.third(whole(match, clock.a_year_earlier()), place) if floating and found[0] > clock.now else found

    return meaning


def half_of(whole: Meaning) -> Meaning:
    return lambda match, clock: clock.half(whole(match, clock), _nth(match, "half"))


def half_year(match: re.Match[str], clock: Clock) -> Interval:
    """Without a year, the last one that has begun."""
    year, half, today = _named_year(match, clock), _nth(match, "half"), clock.today
    if year is None:
        year = today.year - (half == 2 and today.month < 7)
    return clock.half(clock.unit(date(year, 1, 1), "year"), half)


def day_of_month(match: re.Match[str], clock: Clock) -> Interval:
    """The last day with this number."""
    first = first_day(clock.today, "month")
    for back in range(3):  # of two neighbouring months, one has 31 days, except around February
        month = shifted(first, "month", -back)
        if number(match["day"]) <= calendar.monthrange(month.year, month.month)[1]:
            found = month.replace(day=number(match["day"]))
            if found <= clock.today:
                return clock.unit(found, "day")
    raise ValueError("no such day")


def weekdays_ago(match: re.Match[str], clock: Clock) -> Interval:
    """ "Two Fridays ago" is the Friday before the last."""
    count = number(part(match, "digits")) if part(match, "digits") else NUMBERS[part(match, "word")]
    start, _ = weekday(match, clock)
    found = clock.local_time(start).date()
    weeks = count - (found != clock.today)
    return clock.unit(found - timedelta(weeks=weeks), "day")


def moment(match: re.Match[str], clock: Clock) -> Interval:
    found = datetime.fromisoformat(f"{match['date']}T{match['time']}{match['offset'] or ''}".upper())
    start = found.astimezone(UTC) if found.tzinfo else clock.utc(found)
    precision = {len("12:30"): timedelta(minutes=1), len("12:30:00"): timedelta(seconds=1)}
    return start, start + precision.get(len(match["time"]), timedelta.resolution)


def year_or_week(match: re.Match[str], clock: Clock) -> Interval:
    year, week = int(match["year"]), part(match, "week")
    first = date.fromisocalendar(year, int(week), 1) if week else date(year, 1, 1)
    return clock.unit(first, "week" if week else "year")


def era(match: re.Match[str], clock: Clock) -> Interval:
    year = _named_year(match, clock)
    return clock.unit(date(clock.today.year if year is None else year, 1, 1), "year")


def decade(match: re.Match[str], clock: Clock) -> Interval:
    digits = int(match["decade"])
    return clock.unit(date(digits + 1900 if digits < 100 else digits, 1, 1), "decade")


def _amount(match: re.Match[str]) -> tuple[int, str]:
    name = UNITS[part(match, "unit") or part(match, "long")]
    if digits := part(match, "digits"):
        return number(digits), name
    words = re.split(r"[\W_]+", part(match, "word") or "one")  # "a couple of": the largest number counts
    return max(NUMBERS.get(word, 0) for word in words), name


def _month(match: re.Match[str]) -> int:
    month = part(match, "month")
    return MONTHS.get(month) or number(month)


def _nth(match: re.Match[str], name: str) -> int:
    """The number or ordinal of a group; 0 if it did not match."""
    found = part(match, name)
    return ORDINALS.get(found) or number(found) if found else 0


def _named_year(match: re.Match[str], clock: Clock) -> int | None:
    """The year that a match names, also as "last year"."""
    if year := part(match, "year"):
        return int(year)
    era = part(match, "era")
    return clock.today.year + (which(era) or 0) if era else None


def _year(match: re.Match[str], month: int, clock: Clock) -> int:
    """The year of a month: the one named, or that of the last month that has begun."""
    if (year := _named_year(match, clock)) is not None:
        return year
    today, offset = clock.today, offset_of(match)
    if offset is None:
        return today.year - (month > today.month)
    return today.year + {-2: -1 - (month >= today.month), -1: -(month >= today.month), 0: 0}.get(
        offset, int(month <= today.month)
    )


def _most_recent(month: int, number: int, today: date) -> date:
    for past in range(today.year, today.year - 9, -1):  # around 1900, leap years are eight years apart
        if number <= calendar.monthrange(past, month)[1] and (found := date(past, month, number)) <= today:
            return found
    raise ValueError("no such day")
