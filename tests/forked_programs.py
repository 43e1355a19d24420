"""Programs that fork, which tests of both kinds of stores run: what they begin with, and those that are alike."""

from __future__ import annotations

import subprocess
import sys

SECONDS = 120  # until a program counts as hanging

# A store, a child that does something with it, and what became of the child. The store is `opened()`, which is given.
_BEGINNING = """
import os, random, signal, sys, threading, time
import nacre
from nacre.embedders.hashing import Hashing
from nacre.runtime import forks

{opened}

memory = opened()
forks.WAIT_S = 60.0  # however busy the machine is
memory.remember_many(f"text {{number}} about herons and boats" for number in range(40))
memory.search("herons")  # a package that is imported while another thread forks makes Python complain

def child(what):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # a child that hangs is killed, which its status says
        try:
            what()
        except BaseException as error:
            print(f"{{type(error).__name__}}: {{error}}", file=sys.stderr, flush=True)
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

WHILE_THREADS_WRITE_AND_SEARCH = """
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
for number in range(FORKS):
    time.sleep(random.random() / 50)
    codes.append(ended(child(lambda: use(f"child{number}"))))
done = True
for each in threads:
    each.join()
memory.close()
print(*acknowledged)
assert codes == [0] * FORKS, codes
"""

IN_A_SNAPSHOT = """
with memory._store.view():
    before = memory._store.stats().memories
    assert ended(child(refused)) == 0
    assert memory._store.stats().memories == before
use("parent")
"""

# `write` waits in the middle of a call, which the program begins with: it sets `begun`, and waits for `go`.
IN_A_CALL = """
forks.WAIT_S = 0.1
writer = threading.Thread(target=write)
writer.start()
begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    refused()
    del memory
    sys.exit(0)  # an orderly end deletes objects, and must not close the parent's connections
assert ended(pid) == 0
go.set()
writer.join()
use("parent")
"""


def run(opened: str, program: str, *arguments: str) -> list[str]:
    """What a program prints: ids of memories that it, or its children, have remembered."""
    whole = _BEGINNING.format(opened=opened) + program
    answer = subprocess.run(
        [sys.executable, "-c", whole, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    return answer.stdout.split()
