"""Layer 1, the timeline: pages between two times, what was around a memory, how many there are a day, week or month."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from command_line import Cli
from nacre import Filter, InvalidInput, Nacre, NewMemory, NotFound, TimelineRequest
from nacre.cli import render
from nacre.embedders.hashing import Hashing
from nacre.serialization import encode

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KATHMANDU = timezone(timedelta(hours=5, minutes=45))


@pytest.fixture
def memory(path: Path) -> Iterator[Nacre]:
    with nacre.open(path, embedder=Hashing(), time_zone=KATHMANDU) as opened:
        yield opened


@pytest.fixture
def hours(memory: Nacre) -> list[str]:
    """Seven memories, an hour apart, the fourth at noon."""
    items = [NewMemory(text=f"hour {number}", created=NOON + (number - 3) * HOUR) for number in range(7)]
    return [each.id for each in memory.remember_many(items)]


def listed(memory: Nacre, *arguments: Any, **options: Any) -> list[str]:
    return [entry.id for entry in memory.timeline(*arguments, **options).entries]


# ---------------------------------------------------------------- from one time to another


def test_a_page_begins_with_start_and_ends_before_end(memory: Nacre, hours: list[str]) -> None:
    assert listed(memory, NOON, NOON + 2 * HOUR) == [hours[4], hours[3]]
    assert listed(memory, NOON + HOUR, oldest_first=True) == hours[4:]
    assert listed(memory, None, NOON) == hours[2::-1]
    assert listed(memory, end=NOON - 2 * HOUR) == [hours[0]]


def test_of_two_ends_the_narrower_counts(memory: Nacre, hours: list[str]) -> None:
    where = Filter(created_from=NOON - HOUR, created_until=NOON + HOUR)
    assert listed(memory, NOON, where=where) == [hours[3]]
    assert listed(memory, NOON - 3 * HOUR, NOON + 3 * HOUR, where=where) == [hours[3], hours[2]]
    assert listed(memory, NOON - 3 * HOUR, NOON, where=where) == [hours[2]]


def test_a_request_is_taken_as_it_is_and_changed_by_options(memory: Nacre, hours: list[str]) -> None:
    request = TimelineRequest(start=NOON - HOUR, end=NOON + HOUR, oldest_first=True)
    assert listed(memory, request) == hours[2:4]
    assert listed(memory, request, NOON) == hours[2:3]
    assert listed(memory, request, limit=1) == hours[2:3]
    assert listed(memory, request, oldest_first=False) == hours[3:1:-1]


def test_a_cursor_goes_on_between_the_same_times(memory: Nacre, hours: list[str]) -> None:
    page = memory.timeline(NOON - HOUR, NOON + 2 * HOUR, limit=2)
    assert [entry.id for entry in page.entries] == [hours[4], hours[3]]
    assert listed(memory, NOON - HOUR, NOON + 2 * HOUR, cursor=page.next) == [hours[2]]


def test_an_entry_tells_when_it_happened_if_that_was_given(memory: Nacre) -> None:
    memory.remember("told later", created=NOON, happened=NOON - 30 * HOUR)
    memory.remember("told at once", created=NOON - HOUR)
    delivered, at_once = memory.timeline().entries
    assert (delivered.happened, delivered.created, delivered.anchor) == (NOON - 30 * HOUR, NOON, False)
    assert at_once.happened is None
    assert encode.timeline_entry(delivered)["happened"] == "2026-11-14T06:00:00Z"


# ---------------------------------------------------------------- around a memory


def test_around_shows_a_memory_among_those_before_and_after_it(memory: Nacre, hours: list[str]) -> None:
    page = memory.timeline(around=hours[3], span=2, oldest_first=True)
    assert [entry.id for entry in page.entries] == hours[1:6]
    assert [entry.anchor for entry in page.entries] == [False, False, True, False, False]
    assert page.next is None
    assert listed(memory, around=hours[3], span=2) == hours[5:0:-1]


def test_around_reaches_to_the_ends_and_no_further(memory: Nacre, hours: list[str]) -> None:
    assert listed(memory, around=hours[0], span=2, oldest_first=True) == hours[:3]
    assert listed(memory, around=hours[6], span=2, oldest_first=True) == hours[4:]
    assert listed(memory, around=hours[3], span=0) == [hours[3]]
    assert listed(memory, around=hours[3], limit=1, oldest_first=True) == hours  # five on each side, whatever the limit


def test_filters_choose_what_is_around_but_not_the_memory_itself(memory: Nacre, hours: list[str]) -> None:
    memory.update(hours[1], tags=["kept"])
    memory.update(hours[5], tags=["kept"])
    assert listed(memory, around=hours[3], where=Filter(tags_all=["kept"])) == [hours[5], hours[3], hours[1]]
    assert listed(memory, NOON + HOUR, around=hours[0], oldest_first=True) == [hours[0], *hours[4:]]


def test_memories_of_one_moment_are_around_each_other_by_id(memory: Nacre) -> None:
    ids = [each.id for each in memory.remember_many(NewMemory(text=f"{n}", created=NOON) for n in range(5))]
    assert listed(memory, around=ids[2], span=1, oldest_first=True) == sorted(ids)[1:4]


def test_around_looks_in_the_space_of_the_memory_unless_others_are_named(memory: Nacre) -> None:
    def one(text: str, space: str, hour: int) -> str:
        return memory.remember(text, space=space, created=NOON + hour * HOUR).id

    mine, hers, hers_later, his = one("a", "default", 0), one("b", "hers", 1), one("c", "hers", 2), one("d", "his", 3)
    assert listed(memory, around=hers) == [hers_later, hers]
    assert listed(memory, around=hers, where=Filter(spaces=["hers", "his"])) == [his, hers_later, hers]
    assert mine not in listed(memory, around=his)
    with pytest.raises(NotFound, match=hers):
        memory.timeline(around=hers, where=Filter(spaces=["default", "his"]))


def test_around_what_is_not_there(memory: Nacre, hours: list[str]) -> None:
    with pytest.raises(NotFound, match="no memory 'nobody'; check it with `nacre timeline`"):
        memory.timeline(around="nobody")
    memory.purge(hours[3])
    with pytest.raises(NotFound, match=hours[3]):
        memory.timeline(around=hours[3])


def test_around_what_is_forgotten_are_forgotten_ones_or_none(memory: Nacre, hours: list[str]) -> None:
    memory.forget([hours[1], hours[3], hours[4]])
    with pytest.raises(NotFound, match="it is forgotten: restore it, or ask for forgotten ones"):
        memory.timeline(around=hours[3])
    assert listed(memory, around=hours[3], forgotten=True, oldest_first=True) == [hours[1], hours[3], hours[4]]
    assert listed(memory, around=hours[2], span=2, oldest_first=True) == [hours[0], hours[2], hours[5], hours[6]]


def test_who_is_confined_sees_nothing_around_a_foreign_memory(path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        foreign = memory.remember("theirs", space="theirs").id
    with nacre.open(path, embedder="none", space="mine", confined=True) as memory:
        own = memory.remember("mine").id
        assert listed(memory, around=own) == [own]
        with pytest.raises(NotFound, match=f"no memory '{foreign}'"):
            memory.timeline(around=foreign)


@pytest.mark.slow
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(0, 11), st.integers(0, 4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_around_is_a_part_of_the_whole_timeline(at: list[int], number: int, span: int, oldest_first: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "m.db", embedder="none") as memory:
        items = [NewMemory(text=f"{index}", created=NOON + hour * HOUR) for index, hour in enumerate(at)]
        anchor = memory.remember_many(items)[number % len(items)].id
        whole = listed(memory, oldest_first=oldest_first)
        place = whole.index(anchor)
        around = listed(memory, around=anchor, span=span, oldest_first=oldest_first)
        assert around == whole[max(0, place - span) : place + span + 1]


# ---------------------------------------------------------------- histograms


@pytest.fixture
def spread(memory: Nacre) -> list[str]:
    """Around midnight in Kathmandu, which is 18:15 in UTC; the last two are of the week that began in 2026.

    Their kinds go against time: what a store counts together comes in no order of time.
    """
    moments = ["2026-11-15T18:14", "2026-11-15T18:15", "2026-11-16T12:00", "2026-12-31T12:00", "2027-01-03T12:00"]
    items = [
        NewMemory(text=each, kind=f"k{9 - number}", created=datetime.fromisoformat(f"{each}:00+00:00"))
        for number, each in enumerate(moments)
    ]
    return [each.id for each in memory.remember_many(items)]


@pytest.mark.parametrize(
    ("bucket", "counted"),
    [
        ("day", {"2026-11-15": 1, "2026-11-16": 2, "2026-12-31": 1, "2027-01-03": 1}),
        ("week", {"2026-W46": 1, "2026-W47": 2, "2026-W53": 2}),
        ("month", {"2026-11": 3, "2026-12": 1, "2027-01": 1}),
    ],
)
def test_a_histogram_counts_by_the_users_calendar(
    memory: Nacre, spread: list[str], bucket: Any, counted: dict[str, int]
) -> None:
    page = memory.timeline(histogram=bucket, limit=2)
    assert list(page.histogram.items()) == list(counted.items())  # in order
    assert [entry.id for entry in page.entries] == spread[:2:-1]


def test_a_histogram_counts_all_that_match_and_nothing_else(memory: Nacre, spread: list[str]) -> None:
    memory.remember("elsewhere", space="other", created=NOON)
    memory.update(spread[0], tags=["kept"])
    memory.update(spread[3], tags=["kept"])
    memory.forget(spread[4])
    assert memory.timeline(histogram="month", limit=1).histogram == {"2026-11": 3, "2026-12": 1}
    kept = Filter(tags_all=["kept"])
    assert memory.timeline(histogram="day", where=kept).histogram == {"2026-11-15": 1, "2026-12-31": 1}
    december = datetime(2026, 12, 1, tzinfo=UTC)
    assert memory.timeline(None, december, histogram="day", where=kept).histogram == {"2026-11-15": 1}
    assert memory.timeline(histogram="month", around=spread[0], span=0).histogram == {"2026-11": 3, "2026-12": 1}
    both = Filter(spaces=["default", "other"])
    assert memory.timeline(histogram="month", where=both).histogram["2026-11"] == 4


def test_a_histogram_is_there_only_when_asked_for(memory: Nacre, spread: list[str]) -> None:
    assert len(spread) == 5
    assert memory.timeline().histogram == {}
    assert "histogram" not in encode.timeline(memory.timeline())
    asked = encode.timeline(memory.timeline(histogram="week"))
    assert asked["histogram"] == {"2026-W46": 1, "2026-W47": 2, "2026-W53": 2}
    assert asked.keys() == {"entries", "next", "histogram"}


def test_the_first_and_the_last_day_there_are_can_be_counted(path: Path) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    for hours in (-12, 12):
        zone = timezone(timedelta(hours=hours))
        with nacre.open(path, embedder="none", time_zone=zone) as memory:
            memory.remember("first", created=first)
            memory.remember("last", created=last)
            assert sorted(memory.timeline(histogram="month").histogram) == ["0001-01", "9999-12"]
            assert sorted(memory.timeline(histogram="week").histogram) == ["0001-W01", "9999-W52"]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"start": datetime(2026, 1, 1)}, "start", "has no time zone"),  # noqa: DTZ001
        ({"start": "today"}, "start", "must be a datetime, not str"),
        ({"start": Filter()}, "start", "must be a datetime, not Filter"),
        ({"end": 5}, "end", "must be a datetime, not int"),
        ({"start": NOON, "end": NOON}, "end", "must be after start"),
        ({"start": NOON, "end": NOON - HOUR}, "end", "must be after start"),
        ({"around": 5}, "around", "must be a text, not int"),
        ({"around": " "}, "around", "is blank"),
        ({"around": "x", "cursor": "y"}, "cursor", "does not go with around"),
        ({"span": -1}, "span", "is -1; a whole number from 0 to 1,000 is allowed"),
        ({"span": 1_001}, "span", "from 0 to 1,000"),
        ({"span": 2.0}, "span", "from 0 to 1,000"),
        ({"histogram": "year"}, "histogram", "'year' is unknown; allowed: day, week, month"),
        ({"histogram": ["day"]}, "histogram", "allowed: day, week, month"),
        ({"histogram": "day", "forgotten": True}, "histogram", "counts live memories only"),
        ({"oldest_first": "yes"}, "oldest_first", "must be true or false"),
        ({"forgotten": 1}, "forgotten", "must be true or false"),
    ],
)
def test_what_is_not_allowed_is_named(memory: Nacre, options: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        memory.timeline(**options)
    assert caught.value.field == field
    assert says in caught.value.problem


# ---------------------------------------------------------------- the command line


@pytest.fixture
def said(cli: Cli) -> Callable[..., list[str]]:
    """The lines that a command prints, of a store whose days do not depend on the machine's zone."""

    def call(*arguments: str) -> list[str]:
        answer = cli(*arguments, "--embedder", "none")
        assert answer.code == 0
        return answer.out.splitlines()

    return call


def test_the_lines_of_a_timeline_around_a_memory_with_a_histogram(
    path: Path, said: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    days = (3, 4, 5, 5, 5, 5)
    with nacre.open(path, embedder="none") as memory:
        items = [
            NewMemory(text=f"note {n}", created=datetime(2026, 3, day, 12, n, tzinfo=UTC)) for n, day in enumerate(days)
        ]
        ids = [each.id for each in memory.remember_many(items)]
    lines = said("timeline", "--around", ids[1], "--span", "1", "--histogram", "month", "--oldest-first")
    assert lines[:2] == ["2026-03  6", ""]
    assert [line[:19] for line in lines if line[:3] in ("   ", " → ")] == [
        f"   {ids[0]}",
        f" → {ids[1]}",
        f"   {ids[2]}",
    ]
    plain = said("timeline", "--histogram", "day", "--limit", "1")
    assert [line.split() for line in plain[:3]] == [["2026-03-03", "1"], ["2026-03-04", "1"], ["2026-03-05", "4"]]
    monkeypatch.setattr(render, "_styled", lambda _: True)
    bars = [line.count("█") for line in said("timeline", "--histogram", "day")[:3]]
    assert bars == [10, 10, 40]
