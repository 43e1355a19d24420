"""A session that is named gets each memory in full once, until that lapses or the session asks for a repeat."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import nacre
from command_line import Cli
from nacre import Context, Filter, InvalidInput, Nacre
from nacre.analysis.quoting import delivered_line, parse_fences
from nacre.interfaces import Store
from nacre.storage.reference import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


class Clock:
    """Ticks at each look, so that receipts have an order."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(path: Path, clock: Clock) -> Iterator[Nacre]:
    with nacre.open(path, embedder="none", clock=clock) as opened:
        yield opened


def quoted(context: Context) -> set[str]:
    return {each.id for each in context.quoted}


def omitted(context: Context) -> set[str]:
    return {each.id for each in context.left_out if each.why == "delivered"}


def tea(memory: Nacre, session: str | None = "s", **more: Any) -> Context:
    return memory.context("tea", min_score=0.0, session=session, **more)


# ---------------------------------------------------------------- who


def test_without_a_session_nothing_is_left_out(memory: Nacre) -> None:
    ids = {memory.remember(f"{name} tea").id for name in ("green", "black")}
    for origin in (None, "wire", "wire"):
        for _ in range(2):
            assert quoted(tea(memory, None, origin=origin)) == ids
    assert [each.session for each in memory.receipts(limit=2)] == ["wire", "wire"]
    for _ in range(2):
        hits = memory.search("tea", origin="wire").hits
        assert [hit.delivered for hit in hits] == [False, False]


def test_a_session_has_its_own_whatever_its_connection(memory: Nacre) -> None:
    one = memory.remember("green tea").id
    assert quoted(tea(memory, "s", origin="wire")) == {one}
    assert quoted(tea(memory, "t", origin="wire")) == {one}
    assert quoted(tea(memory, "wire")) == {one}
    assert omitted(tea(memory, "s")) == omitted(tea(memory, "s", origin="other")) == {one}
    asked = [(each.session, each.origin) for each in memory.receipts()]
    assert asked == [("s", "other"), ("s", None), ("wire", None), ("t", "wire"), ("s", "wire")]


def test_an_origin_has_a_name(memory: Nacre) -> None:
    for ask in (memory.search, memory.context):
        with pytest.raises(InvalidInput, match="origin: is blank"):
            ask("tea", origin=" ")


# ---------------------------------------------------------------- how long


def test_a_delivery_lapses(memory: Nacre, clock: Clock) -> None:
    one = memory.remember("green tea").id
    assert quoted(tea(memory)) == {one}
    clock.now += HOUR - MINUTE
    assert omitted(tea(memory)) == {one}
    assert memory.search("tea", session="s").hits[0].delivered
    assert memory.search("tea", session="s", omit_delivered=True).hits == ()
    clock.now += MINUTE
    again = tea(memory)
    assert (quoted(again), omitted(again)) == ({one}, set())
    assert omitted(tea(memory)) == {one}
    clock.now += HOUR
    assert len(memory.search("tea", session="s", omit_delivered=True).hits) == 1
    assert memory.why_not("tea", one, session="s", omit_delivered=True).stage == "delivered"
    clock.now += HOUR
    assert memory.why_not("tea", one, session="s", omit_delivered=True).stage == "found"


@pytest.mark.parametrize(
    ("minutes", "given"), [(0, [True, True, True]), (5, [True, False, True]), (60, [True, False, False])]
)
def test_how_long_is_a_setting(path: Path, clock: Clock, minutes: int, given: list[bool]) -> None:
    with nacre.open(path, embedder="none", clock=clock, delivered_minutes=minutes) as memory:
        memory.remember("green tea")
        seen = []
        for pause in (0, 3, 3):
            clock.now += pause * MINUTE
            seen.append(bool(quoted(tea(memory))))
        assert seen == given


@pytest.mark.parametrize("minutes", [-1, 1.5, "60", 525_601, None])
def test_a_bad_time_is_refused(path: Path, minutes: Any) -> None:
    with pytest.raises(InvalidInput, match="delivered_minutes: "):
        nacre.open(path, embedder="none", delivered_minutes=minutes)
    assert not path.exists()


def test_what_comes_back_is_recognised_though_it_lapsed_or_was_reset(memory: Nacre, clock: Clock) -> None:
    one = memory.remember("green tea is in the cupboard").id
    tea(memory)
    clock.now += 30 * timedelta(days=1)
    tea(memory, repeat=True)
    assert memory.remember("GREEN TEA is in the cupboard", session="s").recalled == (one,)


# ---------------------------------------------------------------- begun anew


def test_a_repeat_gives_all_again_and_from_then_on_once(memory: Nacre) -> None:
    one, two = memory.remember("green tea").id, memory.remember("black coffee").id
    assert quoted(tea(memory)) == {one}
    assert quoted(memory.context("coffee", min_score=0.0, session="s")) == {two}
    assert quoted(tea(memory, repeat=True)) == {one}
    assert omitted(tea(memory)) == {one}
    assert quoted(memory.context("coffee", min_score=0.0, session="s")) == {two}  # it was given before the repeat
    assert omitted(memory.context("coffee", min_score=0.0, session="s")) == {two}
    assert [each.repeat for each in memory.receipts()] == [False, False, False, True, False, False]


def test_a_repeat_that_finds_nothing_counts_as_well(memory: Nacre) -> None:
    one = memory.remember("green tea").id
    tea(memory)
    memory.context("zebra", session="s", repeat=True)
    assert quoted(tea(memory)) == {one}


def test_a_repeat_is_for_its_own_session(memory: Nacre) -> None:
    one = memory.remember("green tea").id
    for session in "st":
        tea(memory, session)
    tea(memory, "t", repeat=True)
    tea(memory, None, repeat=True)
    assert omitted(tea(memory, "s")) == {one}


def test_a_repeat_holds_in_every_process(path: Path, clock: Clock) -> None:
    with nacre.open(path, embedder="none", clock=clock) as agent:
        one = agent.remember("green tea").id
        tea(agent)
        with nacre.open(path, embedder="none", clock=clock) as hook:
            hook.context("anything", session="s", repeat=True)
        assert quoted(tea(agent)) == {one}
        assert omitted(tea(agent)) == {one}


def test_a_session_whose_log_is_cleared_begins_anew(memory: Nacre) -> None:
    one = memory.remember("green tea").id
    for session in "st":
        tea(memory, session)
    assert memory.clear_log(session="s") == 1
    assert quoted(tea(memory, "s")) == {one}
    assert omitted(tea(memory, "t")) == {one}


def test_a_purge_does_not_undo_a_repeat(any_store: Store) -> None:
    with Nacre(any_store, None) as memory:
        kept, gone = memory.remember("green tea").id, memory.remember("black coffee").id
        tea(memory)
        memory.context("coffee", min_score=0.0, session="s", repeat=True)
        memory.purge(gone)
        assert [each.query for each in memory.receipts()] == ["", "tea"]
        assert quoted(tea(memory)) == {kept}


# ---------------------------------------------------------------- what it says


def last_line(context: Context) -> str:
    return context.text.splitlines()[-1]


def test_a_context_says_what_it_left_out_though_it_quotes_others(memory: Nacre) -> None:
    one = memory.remember("green tea").id
    tea(memory)
    two = memory.remember("black tea").id
    context = tea(memory)
    assert (quoted(context), omitted(context), context.outcome) == ({two}, {one}, "answered")
    assert (
        last_line(context) == f"Already given to this session: {one}. Ask with repeat to get it again, or get it by id."
    )
    assert context.tokens <= 1_500
    assert [text for memory_id, text in parse_fences(context.text) if memory_id is None] == []
    assert memory.remember(context.text, session="s").recalled == (two,)


def test_many_are_named_in_part_and_counted(memory: Nacre) -> None:
    given = [memory.remember(f"tea {number}").id for number in range(7)]
    assert quoted(tea(memory)) == set(given)
    memory.remember("black tea")
    context = tea(memory)
    assert omitted(context) == set(given)
    first = [each.id for each in context.left_out if each.why == "delivered"][:3]
    assert last_line(context) == (
        f"Already given to this session: {' '.join(first)} and 4 more. "
        "Ask with repeat to get them again, or get them by id."
    )


@pytest.mark.parametrize("budget", range(30, 400, 17))
def test_the_line_never_costs_a_memory_its_place_nor_breaks_the_budget(memory: Nacre, budget: int) -> None:
    given = {memory.remember(f"tea {number}").id for number in range(4)}
    assert quoted(tea(memory)) == given
    memory.remember("black tea is bought in the small shop behind the station", tags=["new"])
    plain = memory.context("tea", budget, min_score=0.0, where=Filter(tags_all=["new"]))
    context = memory.context("tea", budget, min_score=0.0, session=f"s{budget}", count=len)
    assert len(context.text) <= budget
    context = memory.context("tea", budget, min_score=0.0, session="s")
    assert context.tokens <= budget
    assert omitted(context) == given
    assert [each.id for each in context.quoted] == [each.id for each in plain.quoted]
    said = "Already given to this session: " in context.text
    assert said == (budget >= 300) or 100 < budget < 300


@pytest.mark.parametrize(
    ("ids", "named", "line"),
    [
        (["a"], 3, "Already given to this session: a. Ask with repeat to get it again, or get it by id."),
        (["a", "b"], 3, "Already given to this session: a b. Ask with repeat to get them again, or get them by id."),
        (
            list("abcd"),
            3,
            "Already given to this session: a b c and 1 more. Ask with repeat to get them again, or get them by id.",
        ),
        (["a"], 0, "Already given to this session: 1 memory. Ask with repeat to get it again, or get it by id."),
        (
            list("abcd"),
            0,
            "Already given to this session: 4 memories. Ask with repeat to get them again, or get them by id.",
        ),
    ],
)
def test_lines_by_hand(ids: list[str], named: int, line: str) -> None:
    assert delivered_line(ids, named) == line
    assert parse_fences(line) == []


# ---------------------------------------------------------------- on the command line


def test_a_session_on_the_command_line(cli: Cli, memory: Nacre) -> None:
    one = memory.remember("green tea").id
    memory.close()

    def context(*more: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(cli("context", "tea", "--min-score", "0", "--json", *more).out)
        return answer

    for _ in range(2):
        assert context()["outcome"] == "answered"
    assert context("--asked-in", "s")["outcome"] == "answered"
    assert context("--asked-in", "s")["outcome"] == "delivered"
    assert context("--asked-in", "t")["outcome"] == "answered"
    assert cli("context", "zebra", "--asked-in", "s", "--repeat").code == 0
    again = context("--asked-in", "s")
    assert [each["id"] for each in again["quoted"]] == [one]
    assert context("--asked-in", "s")["outcome"] == "delivered"


# ---------------------------------------------------------------- against a plain model

SESSIONS = st.sampled_from(["s", "s", "t", None])


class Sessions(RuleBasedStateMachine):
    """What each session has in its window, as a dictionary of times; several engines on one file."""

    make: Callable[[Path, Clock], list[Nacre]]

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.engines = type(self).make(self.folder / "memories.db", self.clock)
        self.ids = [self.engines[0].remember(f"tea number {number}").id for number in range(3)]
        self.given: dict[str | None, dict[str, datetime]] = {"s": {}, "t": {}, None: {}}

    @rule(
        session=SESSIONS,
        repeat=st.sampled_from([False, False, False, True]),
        number=st.sampled_from([None, None, 0, 1, 2]),
        engine=st.integers(0, 1),
        origin=st.sampled_from([None, "wire"]),
    )
    def ask(self, session: str | None, repeat: bool, number: int | None, engine: int, origin: str | None) -> None:
        """Of all, or of one memory."""
        memory = self.engines[engine % len(self.engines)]
        query, about = ("tea", set(self.ids)) if number is None else (f"+number +{number}", {self.ids[number]})
        known = self.given[session]
        if repeat:
            known.clear()
        hidden = {each for each, at in known.items() if self.clock.now - at < HOUR} & about
        context = memory.context(query, 5_000, min_score=0.0, session=session, repeat=repeat, origin=origin)
        memory._log.flush()
        found = quoted(context) | omitted(context)
        assert about <= found
        assert omitted(context) == ({each for each, at in known.items() if self.clock.now - at < HOUR} & found)
        assert hidden <= omitted(context)
        assert (context.outcome == "delivered") == (not quoted(context))
        if session is not None:
            known |= dict.fromkeys(quoted(context), self.clock.now)
        self.clock.now += MINUTE / 60

    @rule(session=SESSIONS, engine=st.integers(0, 1))
    def search(self, session: str | None, engine: int) -> None:
        """A snippet is not the whole."""
        memory = self.engines[engine % len(self.engines)]
        memory.search("tea", session=session, origin="wire")
        memory._log.flush()

    @rule(minutes=st.sampled_from([1, 20, 45, 61]))
    def wait(self, minutes: int) -> None:
        self.clock.now += minutes * MINUTE

    @rule(number=st.integers(0, 2))
    def change(self, number: int) -> None:
        memory = self.engines[0]
        memory.update(self.ids[number], text=f"{memory.get(self.ids[number], session='nobody')[0].text} again")
        for known in self.given.values():
            known.pop(self.ids[number], None)
        self.clock.now += MINUTE / 60

    def teardown(self) -> None:
        for each in getattr(self, "engines", ()):
            each.close()
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)


class SessionsInFiles(Sessions):
    @staticmethod
    def make(path: Path, clock: Clock) -> list[Nacre]:
        return [nacre.open(path, embedder="none", clock=clock) for _ in range(2)]


class SessionsInMemory(Sessions):
    @staticmethod
    def make(_: Path, clock: Clock) -> list[Nacre]:
        return [Nacre(MemoryStore(), None, clock=clock)]


for machine in (SessionsInFiles, SessionsInMemory):
    machine.TestCase.settings = settings(
        max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
TestSessionsInFiles = pytest.mark.slow(SessionsInFiles.TestCase)
TestSessionsInMemory = pytest.mark.slow(SessionsInMemory.TestCase)
