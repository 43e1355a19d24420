"""The recall log: formulas by hand, SQLite against the reference, and a journal that loses nothing."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import nacre
from nacre.analysis.quotations import Quotations
from nacre.engine.log_writer import LogWriter
from nacre.errors import InvalidInput, NacreError, NotFound, StoreBusy, StoreUnavailable
from nacre.interfaces import Store
from nacre.ranking import usage
from nacre.storage.reference import MemoryStore
from nacre.storage.reference.recall_log import RecallLog
from nacre.storage.sqlite import SqliteStore
from nacre.storage.sqlite import recall_log as sqlite
from nacre.storage.sqlite.connection import Connections
from nacre.types.recall_log import QUERY_CHARS_MAX, Delivery, Outcome, Receipt, ReceiptFilter, Retention, Usage

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OUTCOMES: tuple[Outcome, ...] = ("opened", "used", "wrong")


TEXT_OF = {"m0": ["x0"], "m1": ["the x1 of the y1"], "m2": ["in", "the x1"]}  # by memory, for queries that quote them


def receipt(name: str, *memory_ids: str, at: datetime = NOON, space: str = "a", session: str | None = None) -> Receipt:
    deliveries = tuple(Delivery(each, rank, 1 / (60 + rank)) for rank, each in enumerate(memory_ids, 1))
    return Receipt(name, at, space, session, f"query of {name}", "hybrid", None, deliveries)


def database(**space_of: str) -> apsw.Connection:
    """The log's tables beside `meta` and as much of `memories` as they need."""
    db = apsw.Connection(":memory:")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE memories (row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, space TEXT) STRICT")
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
    db.execute(sqlite.TABLES + sqlite.MORE_COLUMNS + sqlite.SIZES)
    db.executemany("INSERT INTO memories (id, space) VALUES (?, ?)", space_of.items())
    return db


def purge(db: apsw.Connection, memory_id: str, at: datetime = NOON) -> None:
    """As the store does it."""
    found = [row for (row,) in db.execute("SELECT row FROM memories WHERE id = ?", (memory_id,))]
    sqlite.purge(db, found, Quotations(TEXT_OF.get(memory_id, ()), {"z1"}), at)
    db.execute("DELETE FROM memories WHERE id = ?", (memory_id,))


def listed_ids(db: apsw.Connection, which: ReceiptFilter) -> list[str]:
    return [each.id for each in sqlite.listed(db, which)]


# ---------------------------------------------------------------- formulas


def test_credits_add_up() -> None:
    standing = None
    for outcome in OUTCOMES:
        standing = usage.add(standing, outcome, NOON)
    assert standing == Usage(good=1.5, bad=2.0, seen=0.0, at=NOON)
    assert usage.add(standing, "delivered", NOON) == Usage(1.5, 2.0, 0.005, NOON)


def test_an_opening_tells_less_the_more_its_place_invited_it() -> None:
    standings = {rank: usage.add(None, "opened", NOON, rank) for rank in (1, 4, 10, 50)}
    assert {rank: each.good for rank, each in standings.items()} == {1: 0.05, 4: 0.2, 10: 0.5, 50: 0.5}
    assert usage.add(None, "used", NOON, 1).good == 1.0
    assert usage.add(None, "wrong", NOON, 1).bad == 2.0


def test_half_is_gone_after_thirty_days() -> None:
    standing = Usage(good=4.0, bad=2.0, seen=1.0, at=NOON)
    assert usage.faded(standing, NOON + 30 * DAY) == Usage(2.0, 1.0, 0.5, NOON + 30 * DAY)
    assert usage.faded(standing, NOON + 60 * DAY) == Usage(1.0, 0.5, 0.25, NOON + 60 * DAY)
    assert usage.faded(standing, NOON - DAY) == standing
    assert usage.faded(standing, NOON + 15 * DAY).good == pytest.approx(4 / 2**0.5)


def test_credits_may_come_in_any_order() -> None:
    early, late = NOON, NOON + 30 * DAY
    assert usage.add(usage.add(None, "used", early), "opened", late) == Usage(1.0, 0.0, 0.0, late)
    assert usage.add(usage.add(None, "opened", late), "used", early) == Usage(1.0, 0.0, 0.0, late)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (None, 1.0),
        (Usage(0.0, 0.0, 0.0, NOON), 1.0),
        (Usage(4.0, 0.0, 0.0, NOON), 1.05),  # 4 / (4 + 4)
        (Usage(0.0, 4.0, 0.0, NOON), 0.95),
        (Usage(3.0, 1.0, 0.0, NOON), 1.025),  # 2 / 8
        (Usage(3.9, 0.0, 50.0, NOON), 1.05),  # being delivered counts 0.1 at the most
        (Usage(0.9, 0.0, 0.05, NOON), 1 + 0.1 * 0.95 / 4.95),
        (Usage(8.0, 0.0, 0.0, NOON - 30 * DAY), 1.05),
    ],
)
def test_factor_by_hand(standing: Usage | None, expected: float) -> None:
    assert usage.factor(standing, NOON, 0.1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_no_number_of_marks_passes_the_bounds(weight: float) -> None:
    praised, blamed = Usage(1e9, 0.0, 1e9, NOON), Usage(0.0, 1e9, 0.0, NOON)
    assert 1 - weight <= usage.factor(blamed, NOON, weight) <= 1 <= usage.factor(praised, NOON, weight) <= 1 + weight


def test_an_outcome_earns_once_a_day_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert usage.earns(None, NOON)
    assert not usage.earns(NOON, NOON + timedelta(hours=11))
    assert usage.earns(NOON, NOON + timedelta(hours=12))
    assert not usage.earns(NOON, (NOON + timedelta(hours=11)).astimezone(tokyo))
    assert not usage.earns(NOON, NOON - DAY)


# ---------------------------------------------------------------- the log in SQLite


def test_a_receipt_is_listed_as_it_was_written() -> None:
    db = database(m1="a", m2="a")
    given = replace(receipt("r1", "m1", "m2", session="s"), lens="work")
    sqlite.record(db, [given])
    assert sqlite.listed(db, ReceiptFilter(spaces=["a"])) == [given]
    assert sqlite.usage(db, ["m1", "m3"]) == {"m1": Usage(0.0, 0.0, 0.005, NOON)}


def test_writing_again_changes_nothing() -> None:
    """The journal tries a write again that may have come through."""
    db = database(m1="a")
    sqlite.record(db, [receipt("r1", "m1"), receipt("r1", "m1")])
    sqlite.record(db, [receipt("r1", "m1"), receipt("r2", "m1")])
    assert listed_ids(db, ReceiptFilter(spaces=["a"])) == ["r2", "r1"]
    assert sqlite.usage(db, ["m1"])["m1"].seen == 0.01


def test_any_query_can_be_logged() -> None:
    db = database()
    strange = ["lone \udc80 surrogate", "nul \x00", "", "x" * 50_000, '{"json": [1]}', "🙂 \u2028"]
    sqlite.record(db, [replace(receipt(f"r{at}"), query=query) for at, query in enumerate(strange)])
    kept = [each.query for each in reversed(sqlite.listed(db, ReceiptFilter(spaces=["a"])))]
    assert kept == ["lone ? surrogate", "nul ?", "", "x" * QUERY_CHARS_MAX, *strange[4:]]


def test_a_purged_memory_leaves_the_log() -> None:
    db = database(m1="a", m2="a")
    sqlite.record(db, [receipt("r1", "m1", "m2", "never there"), receipt("r2", "m2")])
    sqlite.mark(db, "r1", ["m1"], "used", NOON)
    purge(db, "m1")
    assert [each.id for each in sqlite.listed(db, ReceiptFilter(spaces=["a"]))] == ["r2"]
    assert sqlite.usage(db, ["m1"]) == {}
    assert sqlite.usage(db, ["m2"])["m2"].seen > 0.009  # it was delivered twice, whatever became of the first receipt
    with pytest.raises(NotFound):
        sqlite.mark(db, "r1", ["m1"], "used", NOON)
    with pytest.raises(InvalidInput, match="no receipt 'r1' is kept"):
        sqlite.mark(db, "r1", ["m2"], "used", NOON)


def test_purging_through_the_engine_empties_the_log(path: Path, memory: nacre.Nacre) -> None:
    """What was asked for a purged memory may quote it: the whole receipt goes, from both stores."""
    kept, purged = memory.remember("apple pie").id, memory.remember("banana bread").id
    connections = Connections(path, 1000, create=False, prepare=lambda *_: None)
    with connections.writing() as db:
        sqlite.record(db, [receipt("r1", kept, purged, space="default"), receipt("r2", kept, space="default")])
    memory.purge(purged)
    with connections.reading() as db:
        assert listed_ids(db, ReceiptFilter(spaces=["default"])) == ["r2"]
    connections.close()


def test_a_purge_reaches_the_searches_that_are_not_logged_yet(any_store: Store) -> None:
    with nacre.Nacre(any_store, None) as memory:
        journal = memory._log._writer
        assert journal is not None
        write, purged = journal._write, memory.remember("banana bread").id

        def late(notes: Sequence[Any]) -> None:
            time.sleep(0.2)
            write(notes)

        journal._write = late
        assert len(memory.search("banana").hits) == 1
        memory.purge(purged)
        assert memory.receipts() == []


def test_a_purge_clears_the_queries_that_quote(path: Path, any_store: Store) -> None:
    """Searches that delivered others stay in the log, without what they asked."""
    other = nacre.Filter(spaces=["other"])
    with nacre.Nacre(any_store, None) as memory:
        kept = memory.remember("Apple pie is in the oven of the house").id
        purged = memory.remember("Mara keeps the apple in the house of the oven").id
        changed = memory.remember("The secret is Zanzibar").id
        memory.update(changed, text="The apple is gone")
        for query in ("pie", "who is mara?", "oven pie", "Zanzibar?", "is it in the house of the pie"):
            memory.search(query, limit=1, where=nacre.Filter(tags_any=["none"]))
            memory.search(query, where=other)
        memory.search("pie", limit=1)
        memory.purge([purged, changed])
        own, others = memory.receipts(), memory.receipts(spaces=["other"])
        assert [each.query for each in own] == ["pie", "", "", "oven pie", "", "pie"]
        assert [each.query for each in others] == ["", "", "oven pie", "", "pie"]
        assert [each.memory_id for each in own[0].deliveries] == [kept]
        if isinstance(any_store, SqliteStore):
            assert b"mara" not in written(path).lower()
            assert b"zanzibar" not in written(path).lower()


def test_a_purge_clears_the_queries_that_quote_labels_and_facts(any_store: Store) -> None:
    """A word that stands in the metadata or in a fact of another memory is not gone."""
    about = nacre.NewFact(subject="Ada", predicate="drives", object="Trabant")
    labels: dict[str, Any] = {
        "tags": ["xylophone"],
        "source": "https://quokka.example",
        "metadata": {"project": "Apollo", "keys": [{"zebra": "okapi"}]},
    }
    with nacre.Nacre(any_store, None) as memory:
        memory.remember("A pie", metadata={"project": "apollo"}, facts=[replace(about, subject="Bob")])
        purged = memory.remember("Nothing here", facts=[about], **labels).id
        memory.update(purged, metadata={"keys": "walrus"})
        asked = (
            "xylophones",
            "a quokka",
            "zebras",
            "okapi?",
            "a walrus",
            "Ada",
            "apollo",
            "a trabant",
            "pie",
            "axolotl",
        )
        for query in asked:
            memory.search(query, where=nacre.Filter(kinds=["none"]))
        memory.purge(purged)
        kept = [each.query for each in memory.receipts()]
        assert kept[::-1] == ["", "", "", "", "", "", "apollo", "a trabant", "pie", "axolotl"]


def test_a_search_from_before_a_purge_is_logged_without_its_query(any_store: Store) -> None:
    """As by another process, which writes its receipts a moment later."""
    with nacre.Nacre(any_store, None, clock=lambda: NOON) as memory:
        kept, purged = (memory.remember(text).id for text in ("apple pie", "banana bread"))
        memory.purge(purged)
        late = receipt("r1", kept, at=NOON - timedelta(microseconds=1), space="default")
        log = [late, receipt("r2", kept, space="default"), receipt("r3", kept, purged, space="default")]
        any_store.record(log, Retention(days=1, bytes_max=10_000), NOON)
        assert {each.id: each.query for each in memory.receipts()} == {"r1": "", "r2": "query of r2", "r3": ""}


def test_marks_are_set_once_and_earn_once_a_day() -> None:
    db = database(m1="a")
    sqlite.record(db, [receipt("r1", "m1"), receipt("r2", "m1", at=NOON + DAY)])
    assert sqlite.mark(db, "r1", ["m1", "m1"], "used", NOON) == ["m1"]
    assert sqlite.mark(db, "r1", ["m1"], "used", NOON + DAY) == []
    assert sqlite.mark(db, "r1", ["m1"], "opened", NOON) == ["m1"]
    assert sqlite.usage(db, ["m1"])["m1"].good == pytest.approx(1.05 * 0.5 ** (1 / 30))  # as of the later receipt
    assert sqlite.mark(db, "r2", ["m1"], "used", NOON) == ["m1"]  # marked, but the same day
    assert sqlite.usage(db, ["m1"])["m1"].good == pytest.approx(1.05 * 0.5 ** (1 / 30))
    second, first = sqlite.listed(db, ReceiptFilter(spaces=["a"]))
    assert (first.deliveries[0].used, first.deliveries[0].opened, first.deliveries[0].wrong) == (NOON, NOON, None)
    assert second.deliveries[0].used == NOON


def test_without_a_receipt_the_latest_of_a_day_is_marked() -> None:
    db = database(m1="a", m2="a")
    hour = timedelta(hours=1)
    sqlite.record(db, [receipt("r1", "m1", "m2"), receipt("r2", "m1", at=NOON + hour)])
    sqlite.record(db, [receipt("r3", "m1", at=NOON + 9 * hour)])
    assert sqlite.mark(db, None, ["m1", "m2"], "opened", NOON + 2 * hour) == ["m1", "m2"]
    marked = {
        each.id: [item.opened for item in each.deliveries] for each in sqlite.listed(db, ReceiptFilter(spaces="a"))
    }
    assert marked == {"r1": [None, NOON + 2 * hour], "r2": [NOON + 2 * hour], "r3": [None]}
    assert sqlite.mark(db, None, ["m2"], "used", NOON + 24 * hour) == ["m2"]
    with pytest.raises(InvalidInput, match="m2 in the last 24 hours"):
        sqlite.mark(db, None, ["m2"], "wrong", NOON + 24 * hour + timedelta(microseconds=1))
    sqlite.record(db, [receipt("s2", "m1", at=NOON + 9 * hour), receipt("s1", "m1", at=NOON + 9 * hour)])
    sqlite.mark(db, None, ["m1"], "wrong", NOON + 9 * hour)
    assert [each.id for each in sqlite.listed(db, ReceiptFilter(spaces="a")) if each.deliveries[0].wrong] == ["s2"]


def test_a_session_marks_what_was_delivered_to_itself() -> None:
    db, hour = database(m1="a"), timedelta(hours=1)
    log = [receipt("r1", "m1", session="s"), receipt("r2", "m1", at=NOON + hour, session="t"), receipt("r3", "m1")]
    sqlite.record(db, log)
    assert sqlite.mark(db, None, ["m1"], "opened", NOON + 2 * hour, "s") == ["m1"]
    assert sqlite.mark(db, None, ["m1"], "opened", NOON + 2 * hour, "s") == []
    marked = {each.id: each.deliveries[0].opened for each in sqlite.listed(db, ReceiptFilter(spaces=["a"]))}
    assert marked == {"r1": NOON + 2 * hour, "r2": None, "r3": None}
    with pytest.raises(InvalidInput, match="no search delivered m1"):
        sqlite.mark(db, None, ["m1"], "opened", NOON + 2 * hour, "u")


@pytest.mark.parametrize(
    ("receipt_id", "memory_id", "error"),
    [("r9", "m1", InvalidInput), ("r1", "m2", InvalidInput), ("r1", "m9", NotFound), (None, "m2", InvalidInput)],
)
def test_a_bad_mark_is_refused_whole(receipt_id: str | None, memory_id: str, error: type[NacreError]) -> None:
    db = database(m1="a", m2="a")
    log = RecallLog({"m1": "a", "m2": "a"}.get)
    for record in (lambda each: sqlite.record(db, each), log.record):
        record([receipt("r1", "m1")])
    with pytest.raises(error) as refused:
        sqlite.mark(db, receipt_id, ["m1", memory_id], "used", NOON)
    with pytest.raises(error) as expected:
        log.mark(receipt_id, ["m1", memory_id], "used", NOON, None)
    assert str(refused.value) == str(expected.value)
    assert sqlite.listed(db, ReceiptFilter(spaces=["a"])) == [receipt("r1", "m1")]
    assert sqlite.usage(db, ["m1"])["m1"].good == 0


def test_no_space_sees_into_another() -> None:
    db = database(m1="a", m2="b")
    sqlite.record(db, [receipt("r1", "m1", "m2", space="a"), receipt("r2", "m2", "m1", space="b")])
    (seen,) = sqlite.listed(db, ReceiptFilter(spaces=["a"]))
    assert (seen.id, [each.memory_id for each in seen.deliveries]) == ("r1", ["m1"])
    assert sqlite.listed(db, ReceiptFilter(spaces=["a"], memory_id="m2")) == []
    assert listed_ids(db, ReceiptFilter(spaces=["a", "b"], memory_id="m2")) == ["r2", "r1"]
    with pytest.raises(InvalidInput, match="before"):
        sqlite.listed(db, ReceiptFilter(spaces=["a"], before="r2"))
    with pytest.raises(InvalidInput, match="spaces"):
        ReceiptFilter(spaces=[])


def test_pages_follow_one_another() -> None:
    db = database(m1="a")
    sqlite.record(db, [receipt(f"r{at}", "m1", at=NOON + timedelta(hours=at // 2)) for at in range(7)])
    pages, before = [], None
    while page := listed_ids(db, ReceiptFilter(spaces=["a"], limit=3, before=before)):
        pages.append(page)
        before = page[-1]
    assert pages == [["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]]


def test_retention_drops_the_old_and_the_first_of_too_many() -> None:
    db = database(m1="a")
    log = [receipt(f"r{day}", "m1", at=NOON + day * DAY) for day in range(6)]
    sqlite.record(db, log)
    standing = sqlite.usage(db, ["m1"])
    each = log[0].size_bytes
    assert sqlite.prune(db, Retention(1, 100 * each), NOON + 9 * DAY) == 2  # a day before r3, the third of the last
    assert listed_ids(db, ReceiptFilter(spaces=["a"])) == ["r5", "r4", "r3", "r2"]
    assert sqlite.prune(db, Retention(1, 100 * each), NOON + 900 * DAY) == 0
    assert sqlite.prune(db, Retention(9, 4 * each), NOON) == 0
    assert sqlite.prune(db, Retention(9, 4 * each - 1), NOON) == 1  # it leaves a tenth free
    assert listed_ids(db, ReceiptFilter(spaces=["a"])) == ["r5", "r4", "r3"]
    assert sqlite.count(db) == db.execute("SELECT count(*) FROM deliveries").get == 3
    assert sqlite.usage(db, ["m1"]) == standing
    assert sqlite.prune(db, Retention(9, 0), NOON) == 3


@pytest.mark.parametrize("wrong", [(9_000,), (4_000, 9_000), (-9_000,)])
def test_a_clock_that_is_wrong_for_a_while_deletes_nothing(any_store: Store, wrong: tuple[int, ...]) -> None:
    """The clock jumps, somebody searches, and it is put right again."""
    today = 0
    with nacre.Nacre(any_store, None, log_days=10, clock=lambda: NOON + today * DAY) as memory:

        def search_on(*days: int) -> set[str]:
            nonlocal today
            for today in days:
                memory.search(f"asked on {today}")
                memory._log.flush()
            return {each.query for each in memory.receipts(limit=100)}

        right = {f"asked on {day}" for day in range(9)}
        assert search_on(*range(9), *wrong) >= right
        assert search_on(9, *wrong, 10) >= right
        assert search_on(30, 31) >= right
        assert right.isdisjoint(search_on(32))  # by now it is sure that they are too old


def test_a_delivery_in_the_future_does_not_count() -> None:
    now = NOON
    with nacre.Nacre(MemoryStore(), None, clock=lambda: now) as memory:
        memory.remember("banana bread")
        now = NOON + 9_000 * DAY
        memory.search("banana", session="s")
        assert memory.search("banana", session="s").hits[0].delivered
        now = NOON
        assert not memory.search("banana", session="s").hits[0].delivered
        assert memory.search("banana", session="s").hits[0].delivered


def test_receipts_are_cleared_by_space_session_and_time() -> None:
    db = database(m1="a")
    log = [receipt(f"r{day}", "m1", at=NOON + day * DAY, session="st"[day % 2]) for day in range(6)]
    sqlite.record(db, [*log, receipt("b1", "m1", space="b"), receipt("b2", space="b", session="s")])
    standing = sqlite.usage(db, ["m1"])
    assert sqlite.clear(db, ["a"], "s", NOON + 2 * DAY) == 1  # r0: a time is exclusive
    assert sqlite.clear(db, ["a"], None, NOON + 2 * DAY) == 1
    assert sqlite.clear(db, ["a"], "nobody", None) == 0
    assert listed_ids(db, ReceiptFilter(spaces=["a"])) == ["r5", "r4", "r3", "r2"]
    assert sqlite.clear(db, ["a", "b"], "s", None) == 3
    assert sqlite.clear(db, ["a"], None, None) == 2
    assert listed_ids(db, ReceiptFilter(spaces=["a", "b"])) == ["b1"]
    assert db.execute("SELECT count(*) FROM deliveries").get == 1
    assert sqlite.usage(db, ["m1"]) == standing


def test_a_cleared_query_is_nowhere_in_the_files(path: Path, any_store: Store) -> None:
    with nacre.Nacre(any_store, None, clock=lambda: NOON) as memory:
        memory.remember("banana bread")
        memory.search("the qwertzuiop of the banana", session="s")
        memory.search("banana asdfghjkl")
        memory.receipts()
        assert memory.clear_log(before=NOON) == 0
        assert memory.clear_log(spaces=["other"]) == 0
        if isinstance(any_store, SqliteStore):
            assert b"qwertzuiop" in written(path)
        assert memory.clear_log(session="s") == 1  # a search that is not written yet would be, too
        assert [each.query for each in memory.receipts()] == ["banana asdfghjkl"]
        assert not isinstance(any_store, SqliteStore) or b"qwertzuiop" not in written(path)
        assert memory.clear_log() == 1
        assert memory.receipts() == []
        assert not isinstance(any_store, SqliteStore) or b"asdfghjkl" not in written(path)
        with pytest.raises(InvalidInput, match="before: has no time zone"):
            memory.clear_log(before=NOON.replace(tzinfo=None))


def written(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*") if each.is_file())


# ---------------------------------------------------------------- SQLite and the reference agree

SPACE_OF = {f"m{at}": "ab"[at % 2] for at in range(6)}
memory_ids = st.sampled_from(sorted(SPACE_OF))
receipt_ids = st.sampled_from([f"r{at}" for at in range(12)])
moments = st.sampled_from(
    [NOON + timedelta(hours=hours) for hours in (-800, -30, -24, -1, 0, 0, 1, 13, 23, 24, 25, 900)]
)
deliveries = st.lists(
    st.builds(Delivery, memory_ids, st.integers(1, 4), st.floats(0, 1, allow_subnormal=False)), max_size=4
)
new_receipts = st.builds(
    Receipt, receipt_ids, moments, st.sampled_from("ab"), st.sampled_from([None, "s", "t"]),
    st.text(max_size=5) | st.sampled_from(["X0", "is x1 in the y1", "the x1 of the y1?", "the x1", "Z1!"]),
    st.just("hybrid"), st.sampled_from([None, "work"]), deliveries.map(tuple), st.sampled_from([None, "s", "wire"]),
    st.booleans(),
)  # fmt: skip


class Logs(RuleBasedStateMachine):
    """The same calls to both logs."""

    @initialize()
    def start(self) -> None:
        self.db = database(**SPACE_OF)
        self.space_of = dict(SPACE_OF)
        self.log = RecallLog(self.space_of.get)

    @rule(batch=st.lists(new_receipts, max_size=4))
    def record(self, batch: list[Receipt]) -> None:
        sqlite.record(self.db, batch)
        self.log.record(batch)

    @precondition(lambda self: self.log.count())
    @rule(
        receipt_id=st.none() | receipt_ids,
        marked=st.lists(memory_ids, max_size=2),
        outcome=st.sampled_from(OUTCOMES),
        at=moments,
        session=st.sampled_from([None, "s", "t"]),
        origin=st.sampled_from([None, None, "wire"]),
    )
    def mark(
        self,
        receipt_id: str | None,
        marked: list[str],
        outcome: Outcome,
        at: datetime,
        session: str | None,
        origin: str | None,
    ) -> None:
        self.same(
            lambda: sqlite.mark(self.db, receipt_id, marked, outcome, at, session, origin),
            lambda: self.log.mark(receipt_id, marked, outcome, at, session, origin),
        )

    @precondition(lambda self: self.log.count())
    @rule(at=moments, hours=st.integers(0, 30), outcome=st.sampled_from(OUTCOMES), data=st.data())
    def mark_delivered(self, at: datetime, hours: int, outcome: Outcome, data: st.DataObject) -> None:
        found = data.draw(st.sampled_from(self.log.listed(ReceiptFilter(spaces=["a", "b"], limit=100))))
        ids = [each.memory_id for each in found.deliveries]
        self.same(
            lambda: sqlite.mark(self.db, found.id, ids, outcome, at + timedelta(hours=hours)),
            lambda: self.log.mark(found.id, ids, outcome, at + timedelta(hours=hours), None),
        )

    @rule(now=moments, days=st.integers(1, 40), bytes_max=st.integers(0, 4_000))
    def prune(self, now: datetime, days: int, bytes_max: int) -> None:
        retention = Retention(days, bytes_max)
        assert sqlite.prune(self.db, retention, now) == self.log.prune(retention, now)

    @rule(
        spaces=st.sampled_from(["a", "b", "ab"]),
        session=st.sampled_from([None, "s", "s", "t", "u"]),
        before=st.none() | moments,
    )
    def clear(self, spaces: str, session: str | None, before: datetime | None) -> None:
        assert sqlite.clear(self.db, spaces, session, before) == self.log.clear(spaces, session, before)

    @rule(memory_id=memory_ids, at=moments)
    def purge(self, memory_id: str, at: datetime) -> None:
        purge(self.db, memory_id, at)
        self.space_of.pop(memory_id, None)
        self.log.purge([memory_id], Quotations(TEXT_OF.get(memory_id, ()), {"z1"}), at)

    @rule(memory_id=memory_ids)
    def remember_again(self, memory_id: str) -> None:
        if memory_id not in self.space_of:
            self.space_of[memory_id] = SPACE_OF[memory_id]
            self.db.execute("INSERT INTO memories (id, space) VALUES (?, ?)", (memory_id, SPACE_OF[memory_id]))

    @rule(
        spaces=st.sampled_from(["a", "b", "ab"]),
        session=st.none() | st.just("s"),
        memory_id=st.none() | memory_ids,
        limit=st.integers(1, 5),
        before=st.none() | receipt_ids,
    )
    def list(self, spaces: str, session: str | None, memory_id: str | None, limit: int, before: str | None) -> None:
        which = ReceiptFilter(spaces=tuple(spaces), session=session, memory_id=memory_id, limit=limit, before=before)
        self.same(lambda: sqlite.listed(self.db, which), lambda: self.log.listed(which))

    @invariant()
    def everything_is_the_same(self) -> None:
        every = ReceiptFilter(spaces=["a", "b"], limit=100)
        assert sqlite.listed(self.db, every) == self.log.listed(every)
        assert sqlite.usage(self.db, list(SPACE_OF)) == self.log.usage(list(SPACE_OF))
        assert sqlite.count(self.db) == self.log.count()
        total = self.db.execute("SELECT ifnull(sum(bytes), 0) FROM receipts").get
        assert self.db.execute("SELECT value FROM meta WHERE key = 'log_bytes'").get == str(total)

    @staticmethod
    def same(ours: Callable[[], object], expected: Callable[[], object]) -> None:
        answers: list[object] = []
        for call in (ours, expected):
            try:
                answers.append(call())
            except NacreError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]


Logs.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLogs = pytest.mark.slow(Logs.TestCase)


# ---------------------------------------------------------------- the journal


class Sink:
    """Keeps what is written. Fails as often as told, and waits when held."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.batches: list[list[str]] = []
        self.calls = 0
        self.failures = failures
        self.error = error or StoreUnavailable("away")
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()

    def __call__(self, receipts: Sequence[Receipt]) -> None:
        self.calls += 1
        self.entered.set()
        assert self.free.wait(30)
        if self.calls <= self.failures:
            raise self.error
        self.batches.append([each.id for each in receipts])

    @property
    def written(self) -> list[str]:
        return [each for batch in self.batches for each in batch]


def hold(sink: Sink, journal: LogWriter[Receipt]) -> None:
    """The writer is busy with the receipt named `first`."""
    sink.free.clear()
    journal.note(receipt("first"))
    assert sink.entered.wait(30)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_note_never_waits_and_pending_ones_are_written_together() -> None:
    sink = Sink()
    journal = LogWriter(sink)
    hold(sink, journal)
    for each in "abcde":
        journal.note(receipt(each))  # one that waited would wait until the sink fails
    assert sink.batches == []
    sink.free.set()
    journal.close()
    assert sink.batches == [["first"], ["a", "b", "c", "d", "e"]]


@pytest.mark.slow
def test_notes_that_keep_coming_are_written_a_few_times_a_second() -> None:
    delay_s = 0.2
    moments: list[float] = []

    def write(_: Sequence[Receipt]) -> None:
        moments.append(time.monotonic())
        if len(moments) < 4:
            journal.note(receipt("the next search"))

    journal = LogWriter(write, delay_s=delay_s)
    journal.note(receipt("the first search"))
    while len(moments) < 4:
        time.sleep(0.01)
    journal.close()
    assert all(after - before >= delay_s for before, after in pairwise(moments))


def test_a_flush_does_not_wait_for_the_next_time() -> None:
    sink = Sink()
    journal = LogWriter(sink, delay_s=3_600)
    hold_until = threading.Thread(target=journal.flush)
    sink.free.clear()
    journal.note(receipt("first"))
    hold_until.start()
    assert sink.entered.wait(30)
    journal.note(receipt("noted while the first is written"))
    sink.free.set()
    hold_until.join()
    journal.flush()  # else an hour passes
    assert sink.batches == [["first"], ["noted while the first is written"]]


def test_flush_waits_for_everything_noted_before() -> None:
    sink = Sink()
    journal = LogWriter(sink)
    journal.flush()
    for number in range(200):
        journal.note(receipt(str(number)))
        if number % 20 == 0:
            journal.flush()
            assert sink.written == [str(each) for each in range(number + 1)]
    journal.close()
    journal.close()
    assert sink.written == [str(each) for each in range(200)]


def test_flush_waits_for_a_write_under_way_and_not_for_later_notes() -> None:
    gates = [threading.Event(), threading.Event()]
    entered: list[str] = []

    def write(receipts: Sequence[Receipt]) -> None:
        entered.append(receipts[0].id)
        assert gates[len(entered) - 1].wait(30)

    journal = LogWriter(write)
    journal.note(receipt("first"))
    flushing = threading.Thread(target=journal.flush)
    flushing.start()
    flushing.join(0.2)
    assert flushing.is_alive()
    journal.note(receipt("later"))
    gates[0].set()
    flushing.join(30)
    assert not flushing.is_alive()
    gates[1].set()
    journal.close()
    assert entered == ["first", "later"]


def test_notes_of_many_threads_all_arrive() -> None:
    sink = Sink(failures=2)
    journal = LogWriter(sink)

    def search(name: str) -> None:
        for number in range(100):
            journal.note(receipt(f"{name}{number}"))
            if number % 10 == 0:
                journal.flush()

    threads = [threading.Thread(target=search, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert sorted(sink.written) == sorted(f"{name}{number}" for name in "abcdefgh" for number in range(100))


def test_a_failed_write_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(failures=2)
    journal = LogWriter(sink)
    for each in "abc":
        journal.note(receipt(each))
    journal.flush()
    assert sink.written == ["a", "b", "c"]
    assert warnings(caplog) == []


@pytest.mark.parametrize("error", [StoreUnavailable("read-only"), RuntimeError("a bug")])
def test_a_store_that_cannot_be_written_costs_one_warning(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(failures=10_000, error=error)
    journal = LogWriter(sink)
    for number in range(20):
        journal.note(receipt(str(number)))
        journal.flush()
    journal.close()
    (warning,) = warnings(caplog)
    assert str(error) in warning
    assert sink.calls == 60


def test_it_goes_on_after_a_store_was_away() -> None:
    sink = Sink(failures=3)
    journal = LogWriter(sink)
    journal.note(receipt("lost"))
    journal.flush()
    journal.note(receipt("kept"))
    journal.close()
    assert sink.written == ["kept"]


def test_what_a_locked_store_does_not_take_stays_pending(caplog: pytest.LogCaptureFixture) -> None:
    """However often it was tried: another process may hold the lock for long."""
    sink = Sink(failures=7, error=StoreBusy("locked"))
    journal = LogWriter(sink, delay_s=3_600)
    for number in range(7):
        journal.note(receipt(str(number)))
        with pytest.raises(StoreBusy):
            journal.flush()
    assert [each.id for each in journal.unwritten()] == [str(number) for number in range(7)]
    journal.flush()
    assert sink.written == [str(number) for number in range(7)]
    assert journal.unwritten() == []
    assert warnings(caplog) == []


def test_closing_a_locked_store_tries_once_and_says_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(failures=10_000, error=StoreBusy("locked"))
    journal = LogWriter(sink, delay_s=0)
    hold(sink, journal)
    journal.note(receipt("another"))
    sink.free.set()
    journal.close()
    assert sink.calls <= 2  # one may have been under way before
    assert warnings(caplog) == ["2 entries of the recall log could not be written: locked"]
    journal.close()
    assert len(warnings(caplog)) == 1


def test_what_is_being_written_is_unwritten() -> None:
    sink = Sink()
    journal = LogWriter(sink)
    hold(sink, journal)
    journal.note(receipt("second"))
    assert [each.id for each in journal.unwritten()] == ["first", "second"]
    sink.free.set()
    journal.close()
    assert journal.unwritten() == []


def test_a_full_journal_drops_the_oldest(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    journal = LogWriter(sink, pending_max=3)
    hold(sink, journal)
    for each in "abcdef":
        journal.note(receipt(each))
    sink.free.set()
    journal.close()
    assert sink.written == ["first", "d", "e", "f"]
    assert len(warnings(caplog)) == 1


def test_after_close_notes_are_ignored() -> None:
    sink = Sink()
    journal = LogWriter(sink)
    journal.close()
    journal.note(receipt("late"))
    journal.flush()
    assert sink.calls == 0


SCRIPT = """
import sys, threading, time
from datetime import UTC, datetime
from nacre.errors import StoreUnavailable
from nacre.engine.log_writer import LogWriter
from nacre.types.recall_log import Receipt

failures = int(sys.argv[2])

def write(receipts):
    global failures
    time.sleep(0.2)
    if failures:
        failures -= 1
        raise StoreUnavailable("away")
    with open(sys.argv[1], "a") as sink:
        sink.writelines(receipt.id + "\\n" for receipt in receipts)

journal = LogWriter(write)
for number in range(5):
    journal.note(Receipt(str(number), datetime.now(UTC), "a", None, "q", "hybrid", None, ()))
    if number == 0:
        time.sleep(0.3)
assert "concurrent.futures" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("failures", [0, 2])
@pytest.mark.parametrize(
    ("ending", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1), ("raise KeyboardInterrupt", -2)]
)
def test_nothing_is_lost_by_a_program_that_never_closes(tmp_path: Path, ending: str, code: int, failures: int) -> None:
    sink = tmp_path / "written"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + ending, str(sink), str(failures)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    assert sink.read_text().split() == ["0", "1", "2", "3", "4"]


# ---------------------------------------------------------------- no popularity loop


def crowds_out(learned: Any, off: Any) -> bool:
    """Whether a few memories took others' places, or kept their standing when nobody used them any more."""
    return bool(
        learned.top_ten_share > off.top_ten_share + 0.02
        or learned.distinct < off.distinct * 0.97
        or learned.ndcg < off.ndcg - 0.01
        or learned.former[1] > 1.02
    )


@pytest.mark.slow
def test_learning_crowds_nothing_out_but_would_unbounded_or_unfading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    popularity = import_module("benchmarks.popularity")
    asked = list(popularity.searches(600, days=240))
    off, as_it_is, unfading, unbounded = (
        popularity.simulate(learner, asked)
        for learner in (
            popularity.Learner(name="off", weight=0),
            popularity.Learner(name="as it is"),
            popularity.Learner(name="unfading", fading=False),
            popularity.Learner(name="unbounded", bounded=False),
        )
    )
    assert as_it_is.former[0] > 1.025  # there was something to fade
    assert not crowds_out(as_it_is, off)
    assert crowds_out(unfading, off)
    assert crowds_out(unbounded, off)
