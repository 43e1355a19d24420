"""Many threads on few connections: each call waits for one, none for ever, and none takes more than are allowed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import StoreBusy
from nacre.storage.postgres import PostgresStore
from postgres_server import Schemas, fresh_schemas, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]

THREADS, CONNECTIONS, ROUNDS = 64, 4, 2
WAIT_MS = 60_000  # no call of these may need as long


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as made:
        yield made


def all_of(works: list[Callable[[], None]]) -> list[BaseException]:
    """What was raised by functions that begin together, each in a thread."""
    raised: list[BaseException] = []
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            begin.wait()
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not any(each.is_alive() for each in threads), "they wait for each other"
    return raised


def used(schemas: Schemas, name: str) -> int:
    """How many connections have this name."""
    ((count,),) = schemas.execute(f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'")
    assert isinstance(count, int)
    return count


def test_64_threads_share_4_connections(schemas: Schemas) -> None:
    """Searches hold one for their snapshot; those that write, log, list and embed meanwhile have their turn."""
    name = schemas.new()
    most = 0
    with nacre.open(
        f"{schemas.dsn}?application_name={name}",
        schema=name,
        embedder=Hashing(),
        connections=CONNECTIONS,
        busy_timeout_ms=WAIT_MS,
        limits=nacre.Limits(results_cached=0),
    ) as memory:
        memory.remember_many(f"note {number} about the harbour" for number in range(200))

        def work(number: int) -> None:
            nonlocal most
            for turn in range(ROUNDS):
                word = f"quay{number:02}line{turn}"
                written = memory.remember(f"thread wrote {word} at the harbour").id
                assert memory.get(written)[0].id == written
                found = memory.search(f"who wrote {word}?", session=f"s{number}", limit=3)
                assert found.hits[0].id == written
                assert word in memory.context(f"where is {word}?").text
                memory.update(written, tags=["seen"])
                memory.timeline(limit=3)
                if number % 8 == 0:
                    most = max(most, used(schemas, name))
                if number % 16 == 0:
                    memory.forget(written)

        assert all_of([lambda number=number: work(number) for number in range(THREADS)]) == []  # type: ignore[misc]
        assert 1 < most <= CONNECTIONS
        stats = memory.stats()
        gone = len(range(0, THREADS, 16)) * ROUNDS
        assert (stats.memories, stats.forgotten) == (200 + THREADS * ROUNDS - gone, gone)
    assert waited_for(lambda: used(schemas, name) == 0)


def test_nested_reads_need_no_second_connection(schemas: Schemas) -> None:
    """As many snapshots as connections, and each reads inside its own."""
    with closing(PostgresStore(schemas.dsn, schemas.new(), connections_max=CONNECTIONS)) as store:
        inside = threading.Barrier(CONNECTIONS)

        def read() -> None:
            with store.view():
                inside.wait(30)
                with store.view():
                    assert store.stats().memories == 0
                inside.wait(30)

        assert all_of([read] * CONNECTIONS) == []


def test_a_call_for_which_no_connection_comes_free_says_so(schemas: Schemas) -> None:
    with (
        closing(PostgresStore(schemas.dsn, schemas.new(), connections_max=2, busy_timeout_ms=50)) as store,
        store._connections.snapshot(),
        store._connections.snapshot(),
        pytest.raises(StoreBusy, match="all 2 connections"),
    ):
        store.stats()
    with closing(PostgresStore(schemas.dsn, schemas.new(), connections_max=1)) as store:
        for _ in range(3):  # what was waited for in vain is not lost
            with store._connections.snapshot():
                pass
        assert store.stats().memories == 0
