"""The calendar: a moment, its time zone, and the days, weeks, months and years around it.

Days, weeks, months and years are those of the user's calendar. They are computed as local dates, and each boundary is
converted to UTC separately, because its UTC offset may differ from today's.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeAlias

Interval: TypeAlias = tuple[datetime, datetime]

SECONDS_IN = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MONTHS_OF_A_THIRD = {"quarter": 1, "year": 4}


@dataclass(frozen=True, slots=True)
class Clock:
    now: datetime  # in UTC
    zone: tzinfo | None

    @property
    def local(self) -> datetime:
        return self.local_time(self.now)

    @property
    def today(self) -> date:
        return self.local.date()

    def local_time(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def utc(self, local: datetime) -> datetime:
        return (local if self.zone is None else local.replace(tzinfo=self.zone)).astimezone(UTC)

    def days(self, first: date, end: date) -> Interval:
        return self.utc(datetime.combine(first, time())), self.utc(datetime.combine(end, time()))

    def unit(self, day: date, unit: str) -> Interval:
        """The calendar unit that contains the day."""
        first = first_day(day, unit)
        return self.days(first, shifted(first, unit, 1))

    def back(self, days: int) -> Interval:
        """The last `days` days, up to now."""
        return self.now - timedelta(days=days), self.now

    def third(self, interval: Interval, which: int) -> Interval:
        """The first, second or last third of an interval: of a month about ten days, of a year four months."""
        first, end = (self.local_time(each).date() for each in interval)
        days = (end - first).days
        unit = "year" if days > 300 else "quarter" if days > 80 else ""
        months = _MONTHS_OF_A_THIRD.get(unit)
        third = timedelta(days=days // 3)
        after_first = shifted(first, "month", months) if months else first + third
        before_last = shifted(end, "month", -months) if months else end - third
        boundaries = (first, after_first, before_last, end)
        return self.days(boundaries[which], boundaries[which + 1])

    def half(self, interval: Interval, which: int) -> Interval:
        """The first or second half of a year or a month."""
        first, end = (self.local_time(each).date() for each in interval)
        days = (end - first).days
        middle = shifted(first, "month", 6) if days > 300 else first + timedelta(days=days // 2)
        return self.days(first, middle) if which == 1 else self.days(middle, end)

    def a_year_earlier(self) -> Clock:
        local = self.local
        return replace(self, now=self.utc(datetime.combine(shifted(local.date(), "year", -1), local.time())))


def first_day(day: date, unit: str) -> date:
    if unit == "decade":
        return date(day.year - day.year % 10, 1, 1)
    if unit in MONTHS_IN:
        return date(day.year, day.month - (day.month - 1) % MONTHS_IN[unit], 1)
    return day - timedelta(days=day.weekday()) if unit == "week" else day


def shifted(day: date, unit: str, count: int) -> date:
    """The day `count` units later, or the last day of the month if the month is too short."""
    if unit not in MONTHS_IN:
        return day + timedelta(seconds=SECONDS_IN[unit] * count)
    year, month = divmod(day.year * 12 + day.month - 1 + MONTHS_IN[unit] * count, 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError("no such year")
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
