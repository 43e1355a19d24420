"""Forks of a process that uses a store: parent and child go on, or the child is told what to do. Nothing hangs, and no
good file is called damaged.

Each test runs a program of its own, because a fork of the process that runs the tests would take its threads along.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import forked_programs
import nacre
from forked_programs import IN_A_CALL, IN_A_SNAPSHOT, SECONDS, WHILE_THREADS_WRITE_AND_SEARCH
from store_checks import check_derived_tables, check_integrity

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this platform has no fork"),
]

OPENED = """
path = sys.argv[1]

def opened():
    return nacre.open(path, embedder=Hashing())
"""


def run(path: Path, program: str) -> list[str]:
    return forked_programs.run(OPENED, program, str(path))


def check(path: Path, written: list[str]) -> None:
    with nacre.open(path, embedder=None) as memory:
        assert [each.id for each in memory.get(written)] == written
    check_integrity(path)
    check_derived_tables(path)


def test_forks_while_threads_write_and_search(path: Path) -> None:
    """Every child works, and so does the parent: all that either has acknowledged is there."""
    written = run(path, "FORKS = 12" + WHILE_THREADS_WRITE_AND_SEARCH)
    assert len(written) > 12
    check(path, written)


def test_a_fork_while_other_threads_hold_every_lock(path: Path) -> None:
    """They are new in the child. Those of connections are held only in calls, which a fork waits for."""
    written = run(
        path,
        """
import gc
memory.search("herons")
memory._store._ready_index
owners = [each for each in gc.get_objects() if str(type(each).__module__).startswith("nacre.")]
names = {type(each).__name__ for each in owners}
assert {"LogWriter", "Threads", "LruCache", "Index", "Worker", "Connections", "SqliteStore"} <= names
locks = [
    value
    for owner in owners
    if hasattr(owner, "__dict__") and type(owner).__name__ not in ("OpenedFile", "_State")
    for value in vars(owner).values()
    if hasattr(value, "acquire") and hasattr(value, "release")
]
assert len(locks) > 10
held, go = threading.Event(), threading.Event()

def hold():
    for each in locks:
        each.acquire()
    held.set()
    go.wait()
    for each in locks:
        each.release()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
pid = child(lambda: use("child"))
go.set()
holder.join()
assert ended(pid) == 0
use("parent")
""",
    )
    assert len(written) == 2
    check(path, written)


def test_a_child_that_was_forked_in_the_middle_of_a_call_is_told_to_spawn(path: Path) -> None:
    """The call of another thread does not end in time. The child leaves the parent's files alone, also at its exit."""
    written = run(
        path,
        """
begun, go = threading.Event(), threading.Event()

def write():
    with memory._store._connections.writing():
        begun.set()
        go.wait()
"""
        + IN_A_CALL,
    )
    check(path, written)


def test_a_fork_in_the_middle_of_a_snapshot(path: Path) -> None:
    """The parent's snapshot goes on. The child cannot use it, nor anything else of SQLite."""
    written = run(path, IN_A_SNAPSHOT)
    check(path, written)


def test_a_fork_that_python_does_not_see(path: Path) -> None:
    """A library that forks by itself calls none of Python's hooks."""
    written = run(
        path,
        """
import ctypes
fork = ctypes.PyDLL(None).fork
pid = fork()
if pid == 0:
    signal.alarm(30)
    try:
        refused()
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
assert ended(pid) == 0
use("parent")
""",
    )
    check(path, written)


@pytest.mark.parametrize("begin", ["fork", "forkserver", "spawn"])
def test_multiprocessing(path: Path, tmp_path: Path, begin: str) -> None:
    """An engine that was opened before is used by a pool of forked processes; other ways open it by themselves."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import multiprocessing, sys
import nacre
from nacre.embedders.hashing import Hashing

memory = None

def work(number):
    global memory
    if memory is None:
        memory = nacre.open(sys.argv[1], embedder=Hashing())
    written = memory.remember(f"worker {number} saw a kingfisher").id
    assert memory.search(f"worker {number} kingfisher").hits
    return written

if __name__ == "__main__":
    if sys.argv[2] == "fork":
        memory = nacre.open(sys.argv[1], embedder=Hashing())
        memory.search("herons")
    with multiprocessing.get_context(sys.argv[2]).Pool(3) as pool:
        print(*pool.map(work, range(12)))
    if memory is not None:
        memory.remember("and the parent")
        memory.close()
"""
    )
    answer = subprocess.run(
        [sys.executable, str(program), str(path), begin], capture_output=True, text=True, timeout=SECONDS
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    written = answer.stdout.split()
    assert len(written) == 12
    check(path, written)


def test_a_child_uses_the_models_that_its_parent_has_loaded(path: Path) -> None:
    written = run(
        path,
        """
from nacre.embedders.minilm import MiniLM
memory.close()
memory = nacre.open(path + "-minilm", embedder=MiniLM(), log=False)
memory.remember_many(["Tea is at four", "The car is red", "We sail in May"])

def scores():
    return [(hit.id, hit.score) for hit in memory.search("when do we drink something hot?", rerank="full").hits]

answer = scores()

def ask():
    assert scores() == answer
    memory.remember("A child has remembered this")
    assert memory.search("who was it, a kid?").hits
    memory.close()

stop = threading.Event()

def busy():
    while not stop.is_set():
        memory.search("what colour is the vehicle?", rerank="full")

thread = threading.Thread(target=busy)
thread.start()
try:
    for _ in range(3):
        assert ended(child(ask)) == 0
finally:
    stop.set()
    thread.join()
memory.close()
""",
    )
    assert written == []


def test_receipts_are_written_once(path: Path) -> None:
    """What is pending when a process forks is written by the parent alone."""
    run(
        path,
        """
from nacre.engine import log_writer
for number in range(5):
    memory.search(f"herons {number}")

def look():
    memory.close()

assert ended(child(look)) == 0
assert len(memory.receipts()) == 6
memory.close()
""",
    )
