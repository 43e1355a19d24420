"""Memories that expire: found until then, forgotten after that, and never back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.interfaces import Store
from nacre.storage.sqlite import SqliteStore
from nacre.types.facts import NewFact
from nacre.types.memory import NewMemory
from stores import Opening

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LIVES = NewFact(subject="Ada", predicate="lives in", object="London", relation=True)


class Clock:
    now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(any_store: Store, clock: Clock) -> Iterator[Nacre]:
    with Nacre(any_store, Hashing(), clock=clock) as opened:
        yield opened


@pytest.fixture
def busy(path: Path) -> Iterator[None]:
    """Another program holds the lock of the file all the time."""
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def found(memory: Nacre) -> dict[str, list[str]]:
    """What each verb that finds memories finds."""
    return {
        "keyword": [hit.text for hit in memory.search("tea", mode="keyword").hits],
        "semantic": [hit.text for hit in memory.search("tea", mode="semantic").hits],
        "hybrid": [hit.text for hit in memory.search("tea").hits],
        "listing": [hit.text for hit in memory.search("tag:t").hits],
        "context": [each.id for each in memory.context("tea", min_score=0.0).quoted],
        "timeline": [entry.summary for entry in memory.timeline().entries],
        "every": [each.text for each in memory.every()],
        "every by query": [each.text for each in memory.every("tag:t")],
        "facets": ["x"] * memory.facets().total,
        "facets of a query": ["x"] * memory.facets("tea").total,
        "histogram": [*memory.timeline(histogram="day").histogram],
        "key": [each.text for each in memory.get(keys="k", missing_ok=True)],
    }


def remember_tea(memory: Nacre, **fields: Any) -> str:
    return memory.remember("A pot of tea", key="k", tags=["t"], pinned=True, facts=[LIVES], **fields).id


def test_it_is_found_until_then(memory: Nacre, clock: Clock) -> None:
    remember_tea(memory, expires=HOUR)
    clock.now = NOON + HOUR - timedelta(microseconds=1)
    assert all(found(memory).values())
    clock.now = NOON + HOUR
    assert not any(found(memory).values())
    assert memory.stats().memories == 0


def test_a_time_is_as_good_as_a_duration(memory: Nacre) -> None:
    kept = remember_tea(memory, expires=(NOON + HOUR).astimezone())
    assert memory.get(kept)[0].expires == NOON + HOUR


def test_it_counts_as_forgotten_since_then(memory: Nacre, clock: Clock) -> None:
    kept = remember_tea(memory, expires=HOUR)
    other = memory.remember("another pot of tea").id
    clock.now = NOON + 5 * HOUR
    (gone,) = memory.get(kept)
    assert (gone.deleted, gone.expires) == (NOON + HOUR, NOON + HOUR)
    memory.remember("something")  # whose write forgets it
    assert memory.get(kept)[0] == gone
    assert [each.id for each in memory.every(forgotten=True)] == [kept]
    assert [(each.action, each.at) for each in memory.history(kept)][1:] == [("expired", clock.now)]
    assert [hit.id for hit in memory.related(other).hits] != [kept]
    assert memory.facts(subject="Ada") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, kept: memory.update(kept, text="Tea again"),
        lambda memory, kept: memory.update(kept, expires=None),
        lambda memory, kept: memory.restore(kept),
    ],
)
@pytest.mark.parametrize("swept", [False, True])
def test_it_never_comes_back(memory: Nacre, clock: Clock, call: Callable[[Nacre, str], object], swept: bool) -> None:
    kept = remember_tea(memory, expires=HOUR)
    clock.now = NOON + HOUR
    if swept:
        memory.remember("something")
    with pytest.raises(Conflict, match="remember it anew"):
        call(memory, kept)
    assert not memory.search("tea").hits


@pytest.mark.parametrize("key", [None, "k"])
def test_what_is_remembered_anew_is_another_memory(memory: Nacre, clock: Clock, key: str | None) -> None:
    """It must not become one with a memory that is about to be forgotten."""
    old = memory.remember("A pot of tea", key=key, expires=HOUR).id
    clock.now = NOON + HOUR
    new = memory.remember("A pot of tea", key=key)
    assert (new.id != old, new.duplicate) == (True, False)
    clock.now += HOUR
    assert [hit.id for hit in memory.search("tea").hits] == [new.id]


def test_a_cached_result_ends_with_what_it_shows(memory: Nacre, clock: Clock) -> None:
    remember_tea(memory, expires=timedelta(seconds=10))
    assert memory.search("tea").hits
    clock.now += timedelta(seconds=10)
    assert not memory.search("tea").hits


def test_an_update_moves_the_time(memory: Nacre, clock: Clock) -> None:
    kept = remember_tea(memory, expires=HOUR)
    memory.update(kept, expires=timedelta(days=1))
    clock.now = NOON + 2 * HOUR
    assert memory.search("tea").hits
    memory.update(kept, expires=None)
    clock.now = NOON + timedelta(days=9)
    assert memory.search("tea").hits


@pytest.mark.parametrize(
    "expires", [NOON, NOON - HOUR, timedelta(0), -HOUR, timedelta.max, NOON.replace(tzinfo=None), 5]
)
def test_a_time_that_is_over_or_none(memory: Nacre, expires: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.remember("tea", expires=expires)
    assert refused.value.field == "expires"


def test_expired_memories_can_be_purged_by_a_query(memory: Nacre, clock: Clock) -> None:
    remember_tea(memory, expires=HOUR)
    kept = memory.remember("coffee", tags=["t"]).id
    clock.now = NOON + HOUR
    memory.purge([each.id for each in memory.every("tag:t", forgotten=True)])
    assert memory.stats().forgotten == 0
    assert [each.id for each in memory.every()] == [kept]


# ---------------------------------------------------------------- a store that cannot be written now


def test_no_read_waits_for_a_write(path: Path, clock: Clock, request: pytest.FixtureRequest) -> None:
    with Nacre(SqliteStore(path), Hashing(), clock=clock) as memory:
        remember_tea(memory, expires=HOUR)
        memory.remember("a cup of tea", tags=["t"])
        clock.now = NOON + HOUR
        request.getfixturevalue("busy")
        seen = found(memory)
    assert seen.pop("key") == []
    assert all(len(each) == 1 for each in seen.values())
    assert {seen["hybrid"][0], seen["every"][0], seen["keyword"][0]} == {"a cup of tea"}


def test_so_many_that_a_read_does_not_forget_them_all(open_one: Opening, clock: Clock) -> None:
    with open_one(embedder=None, clock=clock) as memory:
        memory.remember_many(NewMemory(text=f"tea number {n}", expires=HOUR) for n in range(1_500))
        memory.remember("a cup of tea")
        clock.now = NOON + HOUR
        assert [hit.text for hit in memory.search("tea").hits] == ["a cup of tea"]
        assert memory.facets().total == 1
        assert memory.stats().memories == 1


def test_a_store_that_may_only_be_read(path: Path, clock: Clock) -> None:
    with Nacre(SqliteStore(path), Hashing(), clock=clock) as memory:
        remember_tea(memory, expires=HOUR)
        memory.remember("a cup of tea")
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        store = SqliteStore(path, create=False)
        if not store.read_only:
            pytest.skip("this user may write everywhere")
        clock.now = NOON + HOUR
        with Nacre(store, Hashing(), clock=clock, log=False) as memory:
            assert [hit.text for hit in memory.search("tea").hits] == ["a cup of tea"]
    finally:
        path.parent.chmod(0o700)


def test_several_threads_while_memories_expire(open_one: Opening, clock: Clock) -> None:
    """Each of them may forget what has expired; none fails, and none finds it."""
    failures: list[object] = []
    with open_one(embedder=Hashing(), clock=clock) as memory:
        memory.remember_many(NewMemory(text=f"tea number {n}", expires=HOUR * (n % 5 + 1)) for n in range(200))

        def search() -> None:
            try:
                for _ in range(20):
                    now = clock.now
                    late = [h.text for h in memory.search("tea", limit=200).hits if (h.memory.expires or now) < now]
                    failures.extend(late)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for hours in range(6):
            clock.now = NOON + HOUR * hours
            memory.remember(f"coffee number {hours}")
        for thread in threads:
            thread.join()
        assert failures == []
        assert memory.stats().memories == 6


def test_keys_of_expired_memories_are_missing(memory: Nacre, clock: Clock) -> None:
    remember_tea(memory, expires=HOUR)
    clock.now = NOON + HOUR
    with pytest.raises(NotFound):
        memory.get(keys="k")
    with pytest.raises(NotFound):
        memory.forget(keys="k")


def test_memories_expire_for_other_processes_too(open_one: Opening) -> None:
    with open_one(embedder=None) as one, open_one(embedder=None) as other:
        kept = one.remember("tea", expires=timedelta(milliseconds=300)).id
        assert other.search("tea").hits
        threading.Event().wait(0.35)
        assert not other.search("tea").hits
        assert one.get(kept)[0].deleted is not None
