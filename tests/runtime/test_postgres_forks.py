"""Forks of a process that uses a store in PostgreSQL: parent and child go on, or the child is told what to do.

Each test runs a program of its own, because a fork of the process that runs the tests would take its threads along.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import nacre
from postgres_server import Schemas, fresh_schemas, needs_postgres

pytestmark = [
    pytest.mark.slow,
    needs_postgres,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
]

SECONDS = 120  # until a program counts as hanging

BEGINNING = """
import os, random, signal, sys, threading, time
import nacre
from nacre.embedders.hashing import Hashing
from nacre.runtime import forks

def opened():
    return nacre.open(sys.argv[1], schema=sys.argv[2], embedder=Hashing())

memory = opened()
forks.WAIT_S = 60.0  # however busy the machine is
memory.remember_many(f"text {number} about herons and boats" for number in range(40))
memory.search("herons")

def child(what):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # a child that hangs is killed, which its status says
        try:
            what()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def use(name):
    "Write, find and read: as any process would."
    written = memory.remember(name).id
    assert memory.search(name).hits[0].id == written
    assert memory.get(written)[0].id == written
    memory.close()
    print(written, flush=True)

def refused():
    "Nothing works, nothing hangs, and the error says what to do."
    for call in (lambda: memory.remember("lost"), lambda: memory.search("herons"), memory.stats, opened):
        try:
            call()
        except nacre.StoreUnavailable as error:
            assert "spawn" in str(error), error
        else:
            raise AssertionError("not refused")
    memory.close()
"""


class Place:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.schema = schemas.new()

    def run(self, program: str) -> list[str]:
        """What a program prints: ids of memories that it, or its children, have remembered. All of them are there."""
        answer = subprocess.run(
            [sys.executable, "-c", BEGINNING + program, self._schemas.dsn, self.schema],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
        written = answer.stdout.split()
        with nacre.open(self._schemas.dsn, schema=self.schema, embedder=None) as memory:
            assert [each.id for each in memory.get(written)] == written
        return written


@pytest.fixture
def place() -> Iterator[Place]:
    with fresh_schemas() as schemas:
        yield Place(schemas)


def test_forks_while_threads_write_and_search(place: Place) -> None:
    written = place.run(
        """
done = False
acknowledged = []

def write(name):
    for number in range(10**6):
        if done:
            return
        acknowledged.append(memory.remember(f"{name} wrote {number}").id)

def search(name):
    while not done:
        memory.search(f"wrote {random.randrange(50)} herons", session=name)

threads = [threading.Thread(target=work, args=(f"{work.__name__}{n}",)) for work in (write, search) for n in (1, 2)]
for each in threads:
    each.start()
codes = []
for number in range(8):
    time.sleep(random.random() / 50)
    codes.append(ended(child(lambda: use(f"child{number}"))))
done = True
for each in threads:
    each.join()
memory.close()
print(*acknowledged)
assert codes == [0] * 8, codes
"""
    )
    assert len(written) > 8


def test_a_child_that_was_forked_in_the_middle_of_a_call_is_told_to_spawn(place: Place) -> None:
    """A call of another thread does not end in time. The child leaves its parent's session alone, also at its exit."""
    written = place.run(
        """
forks.WAIT_S = 0.1
begun, go = threading.Event(), threading.Event()

def write():
    def work(db):
        begun.set()
        go.wait()
        return db.execute("SELECT 1").fetchone()
    assert memory._store._write(work) == (1,)

writer = threading.Thread(target=write)
writer.start()
begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    refused()
    del memory
    sys.exit(0)  # an orderly end deletes objects, and must not end the parent's sessions
assert ended(pid) == 0
go.set()
writer.join()
use("parent")
"""
    )
    assert len(written) == 1


def test_a_fork_in_the_middle_of_a_snapshot(place: Place) -> None:
    place.run(
        """
with memory._store.view():
    before = memory._store.stats().memories
    assert ended(child(refused)) == 0
    assert memory._store.stats().memories == before
use("parent")
"""
    )


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
