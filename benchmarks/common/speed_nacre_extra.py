"""A process that measures what is measured of Nacre alone, and prints it as JSON. It writes to the store: pass a copy.

python -m benchmarks.common.speed_nacre_extra STORE QUESTIONS   # threads, writes beside searches
python -m benchmarks.common.speed_nacre_extra --import DATA     # embedding and imports, without a store
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np

import nacre
from benchmarks.common import speed_questions as files
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.population import QUESTIONS, population
from benchmarks.common.speed_nacre import NacreOpened, opened
from benchmarks.common.speed_questions import Questions
from benchmarks.common.timing import PASSES, spread, timed
from benchmarks.rivals.base import Question
from nacre.embedders.minilm import MiniLM

ALTERNATIONS = 15
THREADS = (1, 2, 4)
THREADED_S = 3.0
WRITTEN_AT_ONCE = 4
WRITE_PAUSE_S = 0.05
BESIDE_WRITER_S = 8.0
EMBEDDED_TEXTS = 1_000
IMPORTS = (10_000, 50_000, 100_000)  # memories; once caches are full, memory should not grow


def main() -> None:
    match sys.argv[1:]:
        case ["--import", data]:
            print(json.dumps(importing(Path(data))))
        case ["--write", store, questions, stop]:
            write_until(Path(stop), Path(store), files.read(Path(questions)))
        case [store, questions]:
            print(json.dumps(searching(Path(store), Path(questions))))


# ---------------------------------------------------------------- a store


def searching(folder: Path, given: Path) -> dict[str, object]:
    questions = files.read(given)
    store = NacreOpened(folder)
    for question in questions.warming:
        store.search("hybrid", question, None)
    figures: dict[str, object] = {
        "embed_question_ms": embedding_a_question(questions.measured),
        "searches_a_second": {str(threads): threaded(store, questions.measured, threads) for threads in THREADS},
        "after_a_write_ms": after_a_write(store, questions.measured),
        "beside_a_writer": beside_a_writer(store, folder, given, questions.measured),
    }
    store.close()
    return figures


def embedding_a_question(questions: Sequence[Question]) -> dict[str, float | int | None]:
    model = MiniLM()
    model.embed_query("warm up")
    return spread([timed(model.embed_query, question.text) for question in questions])


def threaded(store: NacreOpened, questions: Sequence[Question], threads: int) -> float:
    """Hybrid searches per second by this number of threads together."""
    answered = [0] * threads
    end = time.perf_counter() + THREADED_S

    def ask(number: int) -> None:
        for at in count(number, threads):
            if time.perf_counter() > end:
                return
            store.search("hybrid", questions[at % len(questions)], None)
            answered[number] += 1

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return round(sum(answered) / (time.perf_counter() - start), 1)


def after_a_write(store: NacreOpened, questions: Sequence[Question]) -> dict[str, float]:
    """The first hybrid search after one new memory, and the same search again, alternating."""
    first, again = [], []
    for number, question in enumerate(questions[:ALTERNATIONS]):
        text = f"{question.text} Asked for the {number}th time after a write."
        store.embedder.give_passages([text], question.vector[None])
        store.memory.remember(text)
        first.append(timed(store.search, "hybrid", question, None))
        again.append(timed(store.search, "hybrid", question, None))
    more = [a - b for a, b in zip(first, again, strict=True)]
    named = {"first": first, "warm": again, "more": more}
    return {name: round(1000 * statistics.median(taken), 3) for name, taken in named.items()}


def beside_a_writer(
    store: NacreOpened, folder: Path, given: Path, questions: Sequence[Question]
) -> dict[str, float | int | None]:
    """Hybrid searches while another process keeps adding memories."""
    with tempfile.TemporaryDirectory() as place:
        stop = Path(place) / "stop"
        command = [
            sys.executable,
            "-m",
            "benchmarks.common.speed_nacre_extra",
            "--write",
            str(folder),
            str(given),
            str(stop),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            end = time.perf_counter() + BESIDE_WRITER_S
            taken: list[float] = []
            while time.perf_counter() < end:
                question = questions[len(taken) % len(questions)]
                taken.append(timed(store.search, "hybrid", question, None))
            stop.touch()
            written = int(writer.stdout.readline())
    return {**spread(taken), "writes": written, "memories_a_write": WRITTEN_AT_ONCE, "seconds": BESIDE_WRITER_S}


def write_until(stop: Path, folder: Path, questions: Questions) -> None:
    """Add a few memories, pause, repeat. Prints a line when it has begun, and the number of writes at the end."""
    embedder = GivenVectors()
    with opened(folder, embedder) as memory:
        for number in count():
            if stop.exists():
                print(number, flush=True)
                return
            several = [questions.warming[(number + at) % len(questions.warming)] for at in range(WRITTEN_AT_ONCE)]
            texts = [f"{each.text} Written beside searches, {number}." for each in several]
            embedder.give_passages(texts, np.stack([each.vector for each in several]))
            memory.remember_many(texts)
            if number == 0:
                print("begun", flush=True)
            time.sleep(WRITE_PAUSE_S)


# ---------------------------------------------------------------- importing


def importing(data: Path) -> dict[str, object]:
    texts = population(data, QUESTIONS).sentences
    return {"embedding": embedding(texts[:EMBEDDED_TEXTS]), "peak_mb": dict(peaks(texts[:500]))}


def embedding(texts: Sequence[str]) -> dict[str, float]:
    """The embedder alone, and remembering with it, alternating on the same texts."""
    model = MiniLM()
    model.embed_query("warm up")
    bare, remembering = [], []
    for _ in range(PASSES):
        bare.append(timed(model.embed_passages, texts))
        with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "x.db", embedder=model) as memory:
            remembering.append(timed(memory.remember_many, texts))
    return {
        "bare_a_second": round(len(texts) / min(bare), 1),
        "remembered_a_second": round(len(texts) / min(remembering), 1),
        "share": round(min(bare) / min(remembering), 4),
    }


def peaks(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Peak memory of imports of increasing size, each in its own process."""
    script = (
        "import sys, nacre\n"
        "count = int(sys.argv[2])\n"
        "texts = (f'{i} ' + sys.argv[3 + i % (len(sys.argv) - 3)] for i in range(count))\n"
        "with nacre.open(sys.argv[1], embedder='hashing') as memory:\n"
        "    for _ in memory.remember_batches(texts): pass\n"
        "status = open('/proc/self/status').read()\n"  # ru_maxrss would include the parent's memory
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024)\n"
    )
    for memories in IMPORTS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = [sys.executable, "-c", script, f"{folder}/x.db", str(memories), *texts]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        yield str(memories), int(done.stdout)


if __name__ == "__main__":
    main()
