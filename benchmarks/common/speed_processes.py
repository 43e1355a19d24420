"""A process among several that write to one store, or search it, at the same time.

python -m benchmarks.common.speed_processes write ENGINE STORE QUESTIONS NUMBER SPACE BATCH SECONDS
python -m benchmarks.common.speed_processes search ENGINE STORE QUESTIONS NUMBER - 1 SECONDS

It prints a line when it is ready, begins when it reads one, and prints how many memories it has written, or searches it
has made, in how many seconds and with how much processor time. `together` runs several.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nacre
from benchmarks.common import speed_questions as files
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.population import Population
from benchmarks.common.speed_loading import opened
from benchmarks.rivals.base import Question

WRITERS = 8
WARMING = 400  # memories that a writer writes before it is measured
TEXTS_EACH = 4_000  # that a writer has at hand; then it begins again, with a number behind each text
_TEXTS, _VECTORS = "writing.json", "writing.npy"


def main() -> None:
    what, engine, store, given, number, space, batch, seconds = sys.argv[1:]
    act = (
        writing(engine, Path(store), Path(given), int(number), space, int(batch))
        if what == "write"
        else searching(engine, Path(store), Path(given), int(number))
    )
    next(act)
    print("ready", flush=True)
    sys.stdin.readline()
    start, processor_start = time.perf_counter(), time.process_time()
    done = 0
    while time.perf_counter() - start < float(seconds):
        done += next(act)
    told = {"done": done, "seconds": time.perf_counter() - start, "processor_s": time.process_time() - processor_start}
    print(json.dumps(told), flush=True)


class Together(NamedTuple):
    """What several processes managed together."""

    a_second: float  # memories or searches
    client_us: int  # of processor time for each
    server_us: int


def together(
    what: str,
    engine: str,
    store: Path,
    given: Path,
    processes: int,
    seconds: float,
    server_s: Callable[[], Mapping[str, float]] = dict,
    **how: object,
) -> Together:
    """Run these processes at once. `server_s` gives the processor time so far of each process of their server."""
    running = []
    for number in range(processes):
        space = str(how.get("space", "-")).format(number)
        arguments = [what, engine, str(store), str(given), str(number), space, str(how.get("batch", 1)), str(seconds)]
        command = [sys.executable, "-m", "benchmarks.common.speed_processes", *arguments]
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    _each(running, lambda process: process.stdout.readline())  # type: ignore[union-attr]
    before = server_s()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [json.loads(line) for line in _each(running, lambda process: process.stdout.readline())]  # type: ignore[union-attr]
    taken_s = sum(each - before.get(process, 0.0) for process, each in server_s().items())
    for process in running:
        process.communicate()
    done = sum(each["done"] for each in told)
    return Together(
        round(float(sum(each["done"] / each["seconds"] for each in told)), 1),
        round(sum(each["processor_s"] for each in told) / done * 1e6),
        round(taken_s / done * 1e6),
    )


def write_texts(folder: Path, people: Population) -> None:
    """What the writers write: sentences with their vectors."""
    texts, vectors = [], []
    for some, theirs in people.memories(WRITERS * TEXTS_EACH):
        texts += some
        vectors.append(theirs)
    (folder / _TEXTS).write_text(json.dumps(texts), "utf-8")
    np.save(folder / _VECTORS, np.concatenate(vectors).astype(np.float16))


def writing(name: str, store: Path, given: Path, number: int, space: str, batch: int) -> Iterator[int]:
    """Writes one batch a step, after some memories of its own that are not counted. Yields how many memories it wrote.

    The first texts cost a process a tenth of a second more, for expressions that are compiled when they are needed.
    """
    texts: list[str] = json.loads((given / _TEXTS).read_text("utf-8"))
    vectors = np.load(given / _VECTORS, mmap_mode="r")
    share = max(1, len(texts) // WRITERS)
    embedder = GivenVectors()
    memory = opened(name, store, embedder)
    first = [number * share + place for place in range(min(WARMING, share))]
    embedder.give_passages([texts[place] for place in first], np.array(vectors[first], np.float32))
    memory.remember_many([nacre.NewMemory(text=texts[place], space=f"warming-{number}") for place in first])
    for at in count(0, batch):
        places = [number * share + (at + more) % share for more in range(batch)]
        again = at // share
        some = [f"{texts[place]} {again}" if again else texts[place] for place in places]
        embedder.give_passages(some, np.array(vectors[places], np.float32))
        receipts = memory.remember_many([nacre.NewMemory(text=text, space=space) for text in some])
        yield len(receipts)


def searching(name: str, store: Path, given: Path, number: int) -> Iterator[int]:
    """One hybrid search a step, after some that are not counted."""
    questions = files.read(given)
    embedder = GivenVectors()
    memory = opened(name, store, embedder)

    def ask(question: Question) -> None:
        embedder.give_question(question.text, question.vector)
        memory.search(nacre.SearchRequest(query=question.text, mode="hybrid", limit=10))

    for question in questions.warming[:50]:
        ask(question)
    for at in count(number * 17):
        ask(questions.measured[at % len(questions.measured)])
        yield 1


def _each(running: Sequence[subprocess.Popen[str]], read: Callable[[subprocess.Popen[str]], str]) -> list[str]:
    lines = [read(process) for process in running]
    if not all(lines):
        for process in running:
            process.kill()
        raise RuntimeError("a process ended before it had done its work")
    return lines


if __name__ == "__main__":
    main()
