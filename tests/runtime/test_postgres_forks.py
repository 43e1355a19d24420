"""Forks of a process that uses a store in PostgreSQL: parent and child go on, or the child is told what to do.

Each test runs a program of its own, because a fork of the process that runs the tests would take its threads along.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import nacre
from forked_programs import IN_A_CALL, IN_A_SNAPSHOT, WHILE_THREADS_WRITE_AND_SEARCH, run
from postgres_server import Schemas, fresh_schemas, needs_postgres

pytestmark = [
    pytest.mark.slow,
    needs_postgres,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
]

OPENED = """
def opened():
    return nacre.open(sys.argv[1], schema=sys.argv[2], embedder=Hashing())
"""


class Place:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.schema = schemas.new()

    def run(self, program: str) -> list[str]:
        """What a program prints: ids of memories that it, or its children, have remembered. All of them are there."""
        written = run(OPENED, program, self._schemas.dsn, self.schema)
        with nacre.open(self._schemas.dsn, schema=self.schema, embedder=None) as memory:
            assert [each.id for each in memory.get(written)] == written
        return written


@pytest.fixture
def place() -> Iterator[Place]:
    with fresh_schemas() as schemas:
        yield Place(schemas)


def test_forks_while_threads_write_and_search(place: Place) -> None:
    written = place.run("FORKS = 8" + WHILE_THREADS_WRITE_AND_SEARCH)
    assert len(written) > 8


def test_a_child_that_was_forked_in_the_middle_of_a_call_is_told_to_spawn(place: Place) -> None:
    """A call of another thread does not end in time. The child leaves its parent's session alone, also at its exit."""
    written = place.run(
        """
begun, go = threading.Event(), threading.Event()

def write():
    def work(db):
        begun.set()
        go.wait()
        return db.execute("SELECT 1").fetchone()
    assert memory._store._write(work) == (1,)
"""
        + IN_A_CALL
    )
    assert len(written) == 1


def test_a_fork_in_the_middle_of_a_snapshot(place: Place) -> None:
    place.run(IN_A_SNAPSHOT)


def test_a_fork_while_a_worker_has_claimed_memories(place: Place) -> None:
    """The claim is the parent's, and the end of the child does not end it."""
    place.run(
        """
deferring = nacre.open(sys.argv[1], schema=sys.argv[2], embedder=Hashing(), defer_embeddings=True)
deferring.remember_many(f"waiting {number}" for number in range(5))
deferring.close()
with memory._store.claimed(5, tokens=False) as claimed:
    assert len(claimed.without_vectors) == 5
    assert ended(child(refused)) == 0
    with opened() as other, other._store.claimed(5, tokens=False) as theirs:
        assert theirs.without_vectors == {}
assert list(memory.pending.run(once=True))[-1].done == 5
use("parent")
"""
    )


def test_a_pool_of_forked_processes_uses_a_store_that_was_opened_before(place: Place) -> None:
    written = place.run(
        """
import multiprocessing

def work(number):
    written = memory.remember(f"worker {number} saw a kingfisher").id
    assert memory.search(f"worker {number} kingfisher").hits
    return written

with multiprocessing.get_context("fork").Pool(3) as pool:
    print(*pool.map(work, range(12)))
use("parent")
"""
    )
    assert len(written) == 13
