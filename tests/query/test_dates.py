"""Time expressions: examples by hand, in several time zones and on unusual days."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.query.dates import find_mentions, may_mention_period, parse_period
from nacre.types.search import Period

BERLIN, NEW_YORK, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def period(start: str, end: str) -> Period:
    """An empty text is an open side."""
    return Period(utc(start) if start else None, utc(end) if end else None)


NOW = utc("2026-06-17 15:30:45")  # a Wednesday

READ = [
    # durations back from now
    ("7d", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("7 D", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("7 days", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("2w", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("two weeks", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("3h", "2026-06-17 12:30:45", "2026-06-17 15:30:45"),
    ("30m", "2026-06-17 15:00:45", "2026-06-17 15:30:45"),
    ("30min", "2026-06-17 15:00:45", "2026-06-17 15:30:45"),
    ("45s", "2026-06-17 15:30:00", "2026-06-17 15:30:45"),
    ("6mo", "2025-12-17 15:30:45", "2026-06-17 15:30:45"),
    ("2 quarters", "2025-12-17 15:30:45", "2026-06-17 15:30:45"),
    ("1y", "2025-06-17 15:30:45", "2026-06-17 15:30:45"),
    ("0d", "2026-06-17 15:30:45", "2026-06-17 15:30:45"),
    ("last 3 days", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("past two weeks", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("the last 24 hours", "2026-06-16 15:30:45", "2026-06-17 15:30:45"),
    ("previous 2 months", "2026-04-17 15:30:45", "2026-06-17 15:30:45"),
    ("in the last twelve months", "2025-06-17 15:30:45", "2026-06-17 15:30:45"),
    ("the past couple of days", "2026-06-15 15:30:45", "2026-06-17 15:30:45"),
    ("last few hours", "2026-06-17 12:30:45", "2026-06-17 15:30:45"),
    ("the last hour", "2026-06-17 14:30:45", "2026-06-17 15:30:45"),
    ("past day", "2026-06-16 15:30:45", "2026-06-17 15:30:45"),
    # days with a name
    ("now", "2026-06-17 15:30:45", "2026-06-17 15:30:45"),
    ("today", "2026-06-17", "2026-06-18"),
    ("tonight", "2026-06-17", "2026-06-18"),
    ("this morning", "2026-06-17", "2026-06-18"),
    ("this afternoon", "2026-06-17", "2026-06-18"),
    ("this evening", "2026-06-17", "2026-06-18"),
    ("yesterday", "2026-06-16", "2026-06-17"),
    ("yesterday morning", "2026-06-16", "2026-06-17"),
    ("tomorrow", "2026-06-18", "2026-06-19"),
    ("the day before yesterday", "2026-06-15", "2026-06-16"),
    ("the day after tomorrow", "2026-06-19", "2026-06-20"),
    ("last night", "2026-06-16 18:00", "2026-06-17 06:00"),
    # calendar units
    ("this week", "2026-06-15", "2026-06-22"),
    ("last week", "2026-06-08", "2026-06-15"),
    ("previous week", "2026-06-08", "2026-06-15"),
    ("past week", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("next week", "2026-06-22", "2026-06-29"),
    ("this month", "2026-06-01", "2026-07-01"),
    ("last month", "2026-05-01", "2026-06-01"),
    ("next month", "2026-07-01", "2026-08-01"),
    ("this quarter", "2026-04-01", "2026-07-01"),
    ("last quarter", "2026-01-01", "2026-04-01"),
    ("next quarter", "2026-07-01", "2026-10-01"),
    ("this year", "2026-01-01", "2027-01-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("next year", "2027-01-01", "2028-01-01"),
    ("last weekend", "2026-06-13", "2026-06-15"),
    ("this weekend", "2026-06-20", "2026-06-22"),
    ("next weekend", "2026-06-27", "2026-06-29"),
    # ago
    ("3 days ago", "2026-06-14", "2026-06-15"),
    ("7d ago", "2026-06-10", "2026-06-11"),
    ("two weeks ago", "2026-06-01", "2026-06-08"),
    ("a month ago", "2026-05-01", "2026-06-01"),
    ("a couple of months ago", "2026-04-01", "2026-05-01"),
    ("a few days ago", "2026-06-14", "2026-06-15"),
    ("2 quarters ago", "2025-10-01", "2026-01-01"),
    ("5 years ago", "2021-01-01", "2022-01-01"),
    ("an hour ago", "2026-06-17 14:00", "2026-06-17 15:00"),
    ("10 minutes ago", "2026-06-17 15:20", "2026-06-17 15:21"),
    ("46s ago", "2026-06-17 15:29:59", "2026-06-17 15:30:00"),
    # weekdays
    ("monday", "2026-06-15", "2026-06-16"),
    ("on Monday", "2026-06-15", "2026-06-16"),
    ("mon", "2026-06-15", "2026-06-16"),
    ("wednesday", "2026-06-17", "2026-06-18"),
    ("thursday", "2026-06-11", "2026-06-12"),
    ("thurs", "2026-06-11", "2026-06-12"),
    ("tuesday evening", "2026-06-16", "2026-06-17"),
    ("last wednesday", "2026-06-10", "2026-06-11"),
    ("last monday", "2026-06-15", "2026-06-16"),
    ("this monday", "2026-06-15", "2026-06-16"),
    ("this friday", "2026-06-19", "2026-06-20"),
    ("next wednesday", "2026-06-24", "2026-06-25"),
    ("next thursday", "2026-06-18", "2026-06-19"),
    # months
    ("march", "2026-03-01", "2026-04-01"),
    ("mar", "2026-03-01", "2026-04-01"),
    ("in March", "2026-03-01", "2026-04-01"),
    ("june", "2026-06-01", "2026-07-01"),
    ("july", "2025-07-01", "2025-08-01"),
    ("sept", "2025-09-01", "2025-10-01"),
    ("last june", "2025-06-01", "2025-07-01"),
    ("last may", "2026-05-01", "2026-06-01"),
    ("this december", "2026-12-01", "2027-01-01"),
    ("next june", "2027-06-01", "2027-07-01"),
    ("next july", "2026-07-01", "2026-08-01"),
    ("March 2026", "2026-03-01", "2026-04-01"),
    ("mar 2024", "2024-03-01", "2024-04-01"),
    ("December, 2024", "2024-12-01", "2025-01-01"),
    ("March of 2026", "2026-03-01", "2026-04-01"),
    ("2026-03", "2026-03-01", "2026-04-01"),
    # days
    ("2026-03-01", "2026-03-01", "2026-03-02"),
    ("2024-02-29", "2024-02-29", "2024-03-01"),
    ("1 March 2026", "2026-03-01", "2026-03-02"),
    ("March 1, 2026", "2026-03-01", "2026-03-02"),
    ("March 1,2026", "2026-03-01", "2026-03-02"),
    ("march 1st 2026", "2026-03-01", "2026-03-02"),
    ("1st of March 2026", "2026-03-01", "2026-03-02"),
    ("the 22nd of march, 2026", "2026-03-22", "2026-03-23"),
    ("7 May", "2026-05-07", "2026-05-08"),
    ("May 7", "2026-05-07", "2026-05-08"),
    ("may the 7th", "2026-05-07", "2026-05-08"),
    ("June 17", "2026-06-17", "2026-06-18"),
    ("18 June", "2025-06-18", "2025-06-19"),
    ("29 Feb", "2024-02-29", "2024-03-01"),
    ("Sunday, 1 March 2026", "2026-03-01", "2026-03-02"),
    ("sun, march 1st, 2026", "2026-03-01", "2026-03-02"),
    ("Thursday the 7th of May", "2026-05-07", "2026-05-08"),
    # years, quarters, weeks
    ("2026", "2026-01-01", "2027-01-01"),
    ("in 1999", "1999-01-01", "2000-01-01"),
    ("the year 2020", "2020-01-01", "2021-01-01"),
    ("Q1 2026", "2026-01-01", "2026-04-01"),
    ("q4 of 2025", "2025-10-01", "2026-01-01"),
    ("2026-Q1", "2026-01-01", "2026-04-01"),
    ("q1", "2026-01-01", "2026-04-01"),
    ("Q2", "2026-04-01", "2026-07-01"),
    ("Q3", "2025-07-01", "2025-10-01"),
    ("2026-W10", "2026-03-02", "2026-03-09"),
    ("2026-W01", "2025-12-29", "2026-01-05"),
    ("2026-W53", "2026-12-28", "2027-01-04"),
    # moments
    ("2026-03-01T12:30", "2026-03-01 12:30", "2026-03-01 12:31"),
    ("2026-03-01 12:30:15", "2026-03-01 12:30:15", "2026-03-01 12:30:16"),
    ("2026-03-01t12:30:00z", "2026-03-01 12:30", "2026-03-01 12:30:01"),
    ("2026-03-01T12:30+02:00", "2026-03-01 10:30", "2026-03-01 10:31"),
    ("2026-03-01T22:30:00-0500", "2026-03-02 03:30", "2026-03-02 03:30:01"),
    ("2026-03-01T12:30:00.25Z", "2026-03-01 12:30:00.250000", "2026-03-01 12:30:00.250001"),
    ("2026-03-01T12:30:00.123456789", "2026-03-01 12:30:00.123456", "2026-03-01 12:30:00.123457"),
    # open on one side
    ("since yesterday", "2026-06-16", ""),
    ("since March", "2026-03-01", ""),
    ("since 3 days ago", "2026-06-14", ""),
    ("since 7d", "2026-06-10 15:30:45", ""),
    ("since the last week", "2026-06-08", ""),
    ("since the day before yesterday", "2026-06-15", ""),
    ("after 2026-03-01", "2026-03-02", ""),
    ("after last week", "2026-06-15", ""),
    ("after 7d", "2026-06-10 15:30:45", ""),
    ("before March 2026", "", "2026-03-01"),
    ("before the 1st of March 2026", "", "2026-03-01"),
    ("before 7d", "", "2026-06-10 15:30:45"),
    ("until yesterday", "", "2026-06-16"),
    ("until now", "", "2026-06-17 15:30:45"),
    ("by March 2026", "", "2026-04-01"),
    # from one to another
    ("between March and May 2026", "2026-03-01", "2026-06-01"),
    ("between March and May 2024", "2024-03-01", "2024-06-01"),
    ("between November and February 2024", "2023-11-01", "2024-03-01"),
    ("between the 1st of March and the 3rd of May 2024", "2024-03-01", "2024-05-04"),
    ("from 1 March to 5 March 2024", "2024-03-01", "2024-03-06"),
    ("from Q1 to Q3 2024", "2024-01-01", "2024-10-01"),
    ("from last week to today", "2026-06-08", "2026-06-18"),
    ("from 3 days ago to yesterday", "2026-06-14", "2026-06-17"),
    ("from March to now", "2026-03-01", "2026-06-17 15:30:45"),
    ("from Monday to Friday", "2026-06-08", "2026-06-13"),
    ("between March and July", "2025-03-01", "2025-08-01"),
    ("from last march to May 2026", "2026-03-01", "2026-06-01"),
    ("from Monday to tomorrow", "2026-06-15", "2026-06-19"),
    ("2019 to 2023", "2019-01-01", "2024-01-01"),
    ("2026-03-01..2026-03-05", "2026-03-01", "2026-03-06"),
    ("2026-03 .. 2026-04", "2026-03-01", "2026-05-01"),
    ("March–May 2026", "2026-03-01", "2026-06-01"),
    ("7d..2d", "2026-06-10 15:30:45", "2026-06-15 15:30:45"),
    # spelling
    ("  Last   WEEK\n", "2026-06-08", "2026-06-15"),
    ("last-week", "2026-06-08", "2026-06-15"),
    ("3_days_ago", "2026-06-14", "2026-06-15"),
    ("last\u00a0week", "2026-06-08", "2026-06-15"),
    ("march-to-may-2026", "2026-03-01", "2026-06-01"),
    ("between_march_and_may_2026", "2026-03-01", "2026-06-01"),
    ("during the last week", "2026-06-08", "2026-06-15"),
    ("at 2026-03-01T12:30", "2026-03-01 12:30", "2026-03-01 12:31"),
    ("around March 2026", "2026-03-01", "2026-04-01"),
    ("of 2023", "2023-01-01", "2024-01-01"),
    ("from last week", "2026-06-08", "2026-06-15"),
]


@pytest.mark.parametrize(("text", "start", "end"), READ)
def test_read(text: str, start: str, end: str) -> None:
    assert parse_period(text, NOW, UTC) == period(start, end)


# Where, when, what, and what it means.
ELSEWHERE = [
    (BERLIN, "2026-06-17 15:30:45", "today", "2026-06-16 22:00", "2026-06-17 22:00"),
    (BERLIN, "2026-06-17 22:30:00", "today", "2026-06-17 22:00", "2026-06-18 22:00"),
    (BERLIN, "2026-06-17 15:30:45", "this year", "2025-12-31 23:00", "2026-12-31 23:00"),
    (BERLIN, "2026-06-17 15:30:45", "2026-03-01", "2026-02-28 23:00", "2026-03-01 23:00"),
    (BERLIN, "2026-06-17 15:30:45", "2026-03-29", "2026-03-28 23:00", "2026-03-29 22:00"),  # 23 hours
    (BERLIN, "2026-06-17 15:30:45", "2026-10-25", "2026-10-24 22:00", "2026-10-25 23:00"),  # 25 hours
    (BERLIN, "2026-06-17 15:30:45", "6mo", "2025-12-17 16:30:45", "2026-06-17 15:30:45"),  # half past five both times
    (BERLIN, "2026-03-30 10:00:00", "7d", "2026-03-23 10:00", "2026-03-30 10:00"),
    (BERLIN, "2026-03-30 10:00:00", "last 24 hours", "2026-03-29 10:00", "2026-03-30 10:00"),
    (BERLIN, "2026-03-29 10:00:00", "last night", "2026-03-28 17:00", "2026-03-29 04:00"),
    (BERLIN, "2026-06-17 15:30:45", "2026-03-01T12:30", "2026-03-01 11:30", "2026-03-01 11:31"),
    (BERLIN, "2026-06-17 15:30:45", "2026-07-01 12:30:15", "2026-07-01 10:30:15", "2026-07-01 10:30:16"),
    (BERLIN, "2026-06-17 15:30:45", "2026-03-01T12:30Z", "2026-03-01 12:30", "2026-03-01 12:31"),
    (BERLIN, "2026-06-17 15:30:45", "2026-03-29T02:30", "2026-03-29 01:30", "2026-03-29 01:31"),  # was skipped
    (BERLIN, "2026-10-25 01:30:00", "an hour ago", "2026-10-25 00:00", "2026-10-25 01:00"),  # two o'clock twice
    (BERLIN, "2026-10-25 01:30:00", "0 hours ago", "2026-10-25 01:00", "2026-10-25 02:00"),
    (BERLIN, "2026-06-17 15:30:45", "between March and May 2026", "2026-02-28 23:00", "2026-05-31 22:00"),
    (BERLIN, "2025-12-31 23:30:00", "january", "2025-12-31 23:00", "2026-01-31 23:00"),
    (NEW_YORK, "2026-06-17 02:00:00", "today", "2026-06-16 04:00", "2026-06-17 04:00"),
    (NEW_YORK, "2026-06-17 02:00:00", "yesterday", "2026-06-15 04:00", "2026-06-16 04:00"),
    (NEW_YORK, "2026-06-17 02:00:00", "tuesday", "2026-06-16 04:00", "2026-06-17 04:00"),
    (NEW_YORK, "2026-06-17 02:00:00", "March 2026", "2026-03-01 05:00", "2026-04-01 04:00"),
    (NEW_YORK, "2026-06-17 02:00:00", "since 2026-11-01", "2026-11-01 04:00", ""),
    (NEW_YORK, "2026-06-17 02:00:00", "after 2026-11-01", "2026-11-02 05:00", ""),
    (KOLKATA, "2026-06-16 20:00:00", "today", "2026-06-16 18:30", "2026-06-17 18:30"),
    (KOLKATA, "2026-06-17 15:30:45", "an hour ago", "2026-06-17 14:30", "2026-06-17 15:30"),
    (KOLKATA, "2026-06-17 15:30:45", "10 minutes ago", "2026-06-17 15:20", "2026-06-17 15:21"),
    (KOLKATA, "2026-06-17 15:30:45", "before 2026", "", "2025-12-31 18:30"),
    # a Monday
    (UTC, "2026-06-15 00:00:00", "this week", "2026-06-15", "2026-06-22"),
    (UTC, "2026-06-15 00:00:00", "last week", "2026-06-08", "2026-06-15"),
    (UTC, "2026-06-15 00:00:00", "monday", "2026-06-15", "2026-06-16"),
    (UTC, "2026-06-15 00:00:00", "last monday", "2026-06-08", "2026-06-09"),
    (UTC, "2026-06-15 00:00:00", "next monday", "2026-06-22", "2026-06-23"),
    (UTC, "2026-06-15 00:00:00", "sunday", "2026-06-14", "2026-06-15"),
    (UTC, "2026-06-15 00:00:00", "last weekend", "2026-06-13", "2026-06-15"),
    # a Sunday, and the Saturday before
    (UTC, "2026-06-14 23:59:59", "this week", "2026-06-08", "2026-06-15"),
    (UTC, "2026-06-14 23:59:59", "last week", "2026-06-01", "2026-06-08"),
    (UTC, "2026-06-14 23:59:59", "sun", "2026-06-14", "2026-06-15"),
    (UTC, "2026-06-14 23:59:59", "last sunday", "2026-06-07", "2026-06-08"),
    (UTC, "2026-06-14 23:59:59", "this monday", "2026-06-08", "2026-06-09"),
    (UTC, "2026-06-14 23:59:59", "next monday", "2026-06-15", "2026-06-16"),
    (UTC, "2026-06-14 23:59:59", "last weekend", "2026-06-06", "2026-06-08"),
    (UTC, "2026-06-13 12:00:00", "last weekend", "2026-06-06", "2026-06-08"),
    # 1 January, a Thursday
    (UTC, "2026-01-01 00:00:00", "yesterday", "2025-12-31", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "this week", "2025-12-29", "2026-01-05"),
    (UTC, "2026-01-01 00:00:00", "last week", "2025-12-22", "2025-12-29"),
    (UTC, "2026-01-01 00:00:00", "last month", "2025-12-01", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "last quarter", "2025-10-01", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "last year", "2025-01-01", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "13 months ago", "2024-12-01", "2025-01-01"),
    (UTC, "2026-01-01 00:00:00", "january", "2026-01-01", "2026-02-01"),
    (UTC, "2026-01-01 00:00:00", "last january", "2025-01-01", "2025-02-01"),
    (UTC, "2026-01-01 00:00:00", "december", "2025-12-01", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "31 December", "2025-12-31", "2026-01-01"),
    (UTC, "2026-01-01 00:00:00", "q4", "2025-10-01", "2026-01-01"),
    # 29 February
    (UTC, "2024-02-29 12:00:00", "1y", "2023-02-28 12:00", "2024-02-29 12:00"),
    (UTC, "2024-02-29 12:00:00", "4 years", "2020-02-29 12:00", "2024-02-29 12:00"),
    (UTC, "2024-02-29 12:00:00", "a year ago", "2023-01-01", "2024-01-01"),
    (UTC, "2024-02-29 12:00:00", "29 February", "2024-02-29", "2024-03-01"),
    (UTC, "2024-02-28 12:00:00", "29 February", "2020-02-29", "2020-03-01"),
    (UTC, "1904-02-28 12:00:00", "29 February", "1896-02-29", "1896-03-01"),
    (UTC, "2024-02-29 12:00:00", "tomorrow", "2024-03-01", "2024-03-02"),
    # 31 March
    (UTC, "2026-03-31 12:00:00", "1mo", "2026-02-28 12:00", "2026-03-31 12:00"),
    (UTC, "2024-03-31 12:00:00", "1 month", "2024-02-29 12:00", "2024-03-31 12:00"),
    (UTC, "2026-03-31 12:00:00", "last month", "2026-02-01", "2026-03-01"),
    (UTC, "2026-03-31 12:00:00", "a month ago", "2026-02-01", "2026-03-01"),
    (UTC, "2026-03-31 12:00:00", "next month", "2026-04-01", "2026-05-01"),
    (UTC, "2026-03-31 12:00:00", "march", "2026-03-01", "2026-04-01"),
]


@pytest.mark.parametrize(("zone", "now", "text", "start", "end"), ELSEWHERE)
def test_read_elsewhere(zone: tzinfo, now: str, text: str, start: str, end: str) -> None:
    assert parse_period(text, utc(now), zone) == period(start, end)
    assert parse_period(text, utc(now).astimezone(KOLKATA), zone) == period(start, end)  # the same moment


@pytest.fixture
def system_in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not hasattr(time, "tzset"):
        pytest.skip("this system's zone cannot be set")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("system_in_berlin")
def test_without_a_zone_it_is_the_systems() -> None:
    for zone, now, text, start, end in ELSEWHERE:
        if zone is BERLIN and text != "2026-03-29T02:30":  # of skipped hours, systems have their own ideas
            assert parse_period(text, utc(now)) == period(start, end), text


NOT_READ = [
    *("", " ", "-", "?", "time", "last", "since", "between", "ago", "the", "in", "a", "as", "am", "a m", "days"),
    *("second", "last minute", "last second", "week", "next 3 days", "in 3 days", "at 7d", "the 7"),
    *("0000", "9999", "10000", "123", "2026-13", "2026-00", "2026-1", "2026-00-10", "2026-02-29", "0000-01-01"),
    *("31 February", "0 May", "May 32", "31 February 2026", "2025-W53", "2026-W00", "Q5", "q0 2026", "2026-Q5"),
    *("99999999d", "999999999 years ago", "9" * 10 + "d", "9" * 5000 + "d", "last " + "9" * 5000 + " days"),
    *("99999y", "30000 months ago", "2026-03-01T24:01", "2026-03-01T12:60", "2026-03-01T1:30", "2026-03-01T12"),
    *("2026-03-01T12:30+99:99", "0001-01-01T00:00+05:00", "9999-12-31T23:59:59.999999", "9999-12-31"),
    *("03/2026", "3/1/2026", "2026/03/01", "1.13.2026", "2026 03 01", "2026_03", "20260301", "12:30"),
    *("٣d", "７ days", "２０２６", "laſt week", "last wee\u212a", "\ud800", "today\ud800", "\x00", "两", "gester"),
    *("yesterday today", "last week?", "todays", "mondays", "today.", "-7d", "7d-", "7 d a y s", "lastweek", "aweek"),
    *("since", "since since yesterday", "between March", "between March to May", "March and May", "X to Y", ".."),
    *("from today to yesterday", "2026-03-05..2026-03-01", "from March 2026 to March 2025", "since now to today"),
]


@pytest.mark.parametrize("text", NOT_READ)
def test_not_read(text: str) -> None:
    assert parse_period(text, NOW, UTC) is None


MENTIONED = [
    ("what did we decide last week", "last week"),
    ("Which bugs did Ana fix in March 2026?", "in March 2026"),
    ("What changed since yesterday?", "since yesterday"),
    ("what happened on 7 May 2023?", "on 7 May 2023"),
    ("releases between March and May 2026", "between March and May 2026"),
    ("what did I do today", "today"),
    ("Yesterday's standup: who was there?", "Yesterday"),
    ("what broke the day before yesterday", "the day before yesterday"),
    ("the deploy we did 3 days ago failed", "3 days ago"),
    ("who called an hour ago?", "an hour ago"),
    ("A couple of weeks ago we met. Where?", "A couple of weeks ago"),
    ("logs from the last 24 hours", "from the last 24 hours"),
    ("errors in the past 7d", "in the past 7d"),
    ("what happened 30m ago", "30m ago"),
    ("errors since 3h", "since 3h"),
    ("What did we do in May?", "in May"),
    ("what did we do in may", "in may"),
    ("anything since march on this", "since march"),
    ("What did Ana say last May?", "last May"),
    ("what went wrong this May", "this May"),
    ("notes before March were lost", "before March"),
    ("What was finished by March?", "by March"),
    ("which January bugs are open", "January"),
    ("the meeting on Sun with Ana", "on Sun"),
    ("what did we say on mon", "on mon"),
    ("last sat we met", "last sat"),
    ("What did we discuss Monday morning?", "Monday morning"),
    ("notes of last Friday", "of last Friday"),
    ("What did May 3 bring?", "May 3"),
    ("the outage on may 3", "on may 3"),
    ("the outage of march 3rd", "of march 3rd"),
    ("minutes of Friday, 1 March 2024, please", "of Friday, 1 March 2024"),
    ("we moved on March 1, 2026", "on March 1, 2026"),
    ("Where did we live in 2023?", "in 2023"),
    ("the summer of 2023 was hot", "the summer of 2023"),
    ("everything after 2019", "after 2019"),
    ("the year 2020", "the year 2020"),
    ("between 2019 and 2023, who led?", "between 2019 and 2023"),
    ("revenue in Q1", "in Q1"),
    ("Q1 2026 results", "Q1 2026"),
    ("plans made 2026-W10", "2026-W10"),
    ("2026-03-01 notes", "2026-03-01"),
    ("(2026-03-01)", "2026-03-01"),
    ("the crash at 2026-03-01T12:30:00Z.", "at 2026-03-01T12:30:00Z"),
    ("report for 2026-03", "2026-03"),
    ("3–5 May 2026", "3–5 May 2026"),
    ("the call on 2026-03-01 12:30-13:30", "on 2026-03-01"),
    ("commits 2026-03-01..2026-03-05", "2026-03-01..2026-03-05"),
    ("from Monday to Wednesday I was away", "from Monday to Wednesday"),
    ("from March to now", "from March to now"),
    ("March to May 2026 was busy", "March to May 2026"),
    ("what did we eat last night", "last night"),
    ("what did we do last weekend", "last weekend"),
    ("what came up this morning?", "this morning"),
    ("until last week it worked", "until last week"),
    ("in March 1500 people came", "in March"),
    ('who said "tomorrow" yesterday', "yesterday"),
    ("what happened in\n  last-week", "in\n  last-week"),
    ("İİİ yesterday", "yesterday"),
    ("日本 today 日本", "today"),
]


@pytest.mark.parametrize(("text", "expected"), MENTIONED)
def test_mentioned(text: str, expected: str) -> None:
    (found,) = find_mentions(text, NOW, UTC)
    assert text[found.span.start : found.span.end] == expected
    assert found.period == parse_period(expected, NOW, UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on Monday and Tuesday", ["on Monday", "Tuesday"]),
        ("compare last week with this week", ["last week", "this week"]),
        ("today, yesterday and in March 2026", ["today", "yesterday", "in March 2026"]),
        ("since March 2026 and before May 2026", ["since March 2026", "before May 2026"]),
        ("the call moved from yesterday to Monday", ["from yesterday", "Monday"]),
        ("last week last week", ["last week", "last week"]),
    ],
)
def test_several_are_mentioned(text: str, expected: list[str]) -> None:
    assert [text[each.span.start : each.span.end] for each in find_mentions(text, NOW, UTC)] == expected


NOT_MENTIONED = [
    # words with another meaning
    *(
        "we may march",
        "may I march",
        "This may take long",
        "THIS MAY BE",
        "March on!",
        "the march",
    ),
    *("in the march of progress", "the sun is in the sun", "the cat sat", "they wed", "mon ami", "dec and hex"),
    *("may 3 people join?", "only 3 may join", "march 3 miles", "the one before may be wrong", "What did April say?"),
    *(
        "Jan fixed it",
        "ask June about it",
        "an august body",
        "email from May",
        "second thoughts, seconds",
        "last minute",
    ),
    *("the last day", "a week is long", "every week", "on Mondays", "every Monday", "Black Friday", "due by Friday"),
    *("sat on it", "the last week of school", "the last 3 days of the sprint", "weekly", "todays", "Q3: what is it?"),
    # numbers
    *("2026", "the 2026 report", "7 apples", "v2026.1", "in v2026.1", "python 3.12", "issue-2026-03", "T2026-03-01"),
    *("#7", "#2026-03-01", "id 2026", "in 2000 words", "a limit of 2048", "of 2048 tokens", "after 2000 requests"),
    *("in 1066", "in 2150", "in 20265", "since 2.0", "from 1920 to 2048 px", "between 2000 and 2048 tokens"),
    *("2026-03-01-05", "2026-03-01a", "12-2026-03", "logs/2026-03-01", "2026-03-01.log", "2026/03/01", "3/4/2026"),
    *(
        "3 and 5 May",
        "1,200 days ago",
        "2.5 days ago",
        "half a year ago",
        "more than a year ago",
    ),
    *("twenty three days ago", "1:30m ago", "in 2023/24", "555-2026-03-01"),
    # durations
    *("7d", "30m", "it took 3 days", "in 3 days", "for two weeks", "after 3 days", "within 24 hours", "a 30m timeout"),
    *("from 3 days to 2 weeks", "before 7d"),
    # now, and what is to come
    *("now", "what now?", "until now", "by now", "before now", "from now on", "tomorrow", "next week", "next Monday"),
    *("this Friday", "in 2030", "since tomorrow", "before tomorrow", "by next week", "between tomorrow and next week"),
    *("on 2026-12-24", "the day after tomorrow", "next March"),
    # parts of names, code and quotations
    *(
        "yesterdays",
        "last-week-report",
        "in march_2026_report",
        "today.md",
        "today()",
        "@today",
        "-yesterday",
        "today*",
    ),
    *(
        'the film "Yesterday"',
        'who wrote "in March 2026"?',
        "“last week” is a band",
        "pre-March",
        "pre-2023",
        "x/today",
    ),
    # other languages, other scripts
    *("两周", "gester", "la semana", "٣ days ago", "ｔｏｄａｙ", "éyesterday", "yesterdayé"),
    # nothing of the sort
    *("", "how do we deploy?", "what is the port of the staging server", "last release", "since the release"),
    *("31 February 2026", "2026-13-01", "last " + "9" * 5000 + " days", "999999999 years ago"),
]


@pytest.mark.parametrize("text", NOT_MENTIONED)
def test_not_mentioned(text: str) -> None:
    assert find_mentions(text, NOW, UTC) == []


def test_enough_sentences() -> None:
    assert len(MENTIONED) >= 40
    assert len(set(NOT_MENTIONED)) >= 40


LONG = [
    *(
        "in ",
        "last ",
        "a ",
        "1 ",
        "1-",
        "march to ",
        "between march and ",
        "since march 1 2026 to ",
        "monday, ",
        "may ",
    ),
    *(
        "of 2023 s",
        "2026-",
        "2026-03-01T12:30:",
        "“",
        '"',
        "last_",
        "last\n\n",
        "9",
        "\ud800",
        "yesterday ",
        "couple of ",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*LONG, "last" + " " * 9000, "in 2023 " + "a" * 9000, "since" + "\t" * 20000])
def test_long_texts(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    assert parse_period(text, NOW, UTC) is None
    for each in find_mentions(text, NOW, UTC):
        assert 0 <= each.span.start < each.span.end <= len(text)


WORDS = sorted({word for text, *_ in [*READ, *MENTIONED] for word in text.split()})
TEXTS = st.one_of(
    st.text(),
    st.from_regex(r"(?:since |last )?[0-9]{1,9} ?(?:s|m|h|d|w|mo|y|days|years)(?: ago)?", fullmatch=True),
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?:[+-][0-9]{2}:[0-9]{2})?)?)?", fullmatch=True
    ),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=9).map(" ".join),
    st.lists(st.sampled_from([text for text, *_ in READ]), max_size=3).map(" to ".join),
    st.text("0123456789-_.:, TQWdmys\"'ago", max_size=30),
)
ZONES = st.sampled_from([None, UTC, BERLIN, NEW_YORK, KOLKATA])
MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, BERLIN, NEW_YORK, KOLKATA]))


@pytest.mark.slow
@given(TEXTS, MOMENTS, ZONES)
def test_any_text_at_any_time(text: str, now: datetime, zone: tzinfo | None) -> None:
    found = parse_period(text, now, zone)
    times = [found, *(each.period for each in find_mentions(text, now, zone))]
    for each in times:
        if each and each.start and each.end:
            assert each.start <= each.end
            assert each.start.utcoffset() == each.end.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", ["why is the sky blue?", "a limit of the last one", "this one takes a few", "Q and A"])
def test_most_questions_have_no_word_that_tells_of_a_time(text: str) -> None:
    assert not may_mention_period(text)
    assert not find_mentions(text, NOW, UTC)


@pytest.mark.slow
@given(TEXTS, MOMENTS, ZONES)
def test_what_mentions_a_time_has_such_a_word(text: str, now: datetime, zone: tzinfo | None) -> None:
    assert may_mention_period(text) or not find_mentions(text, now, zone)
    assert may_mention_period(text) or parse_period(text, now, zone) is None


@given(TEXTS, MOMENTS, ZONES)
def test_what_is_mentioned_is_read_the_same(text: str, now: datetime, zone: tzinfo | None) -> None:
    reached = 0
    for each in find_mentions(text, now, zone):
        assert reached <= each.span.start < each.span.end <= len(text)
        reached = each.span.end
        assert parse_period(text[each.span.start : each.span.end], now, zone) == each.period
