"""A process that measures what only we promise, as JSON. It writes into the store: give it a copy.

python -m benchmarks.engines.ours STORE ASKED     # a store of any size
python -m benchmarks.engines.ours --import DATA   # what does not depend on a store
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
from benchmarks.engines import asked as files
from benchmarks.engines.asked import Asked
from benchmarks.engines.engine import ParsedQuery
from benchmarks.engines.nacre import ENGINE, FILE, Known, NacreOpened
from benchmarks.population import QUESTIONS, population
from benchmarks.timing import PASSES, spread, timed
from nacre.embedders.minilm import MiniLM

ALTERNATIONS = 15
THREADS = (1, 2, 4)
THREADED_S = 3.0
WRITTEN_AT_ONCE = 4
WRITE_PAUSE_S = 0.05
BESIDE_WRITER_S = 8.0
EMBEDDED_TEXTS = 1_000
IMPORTS = (10_000, 50_000, 100_000)  # memories; caches fill, then nothing grows


def main() -> None:
    match sys.argv[1:]:
        case ["--import", data]:
            print(json.dumps(importing(Path(data))))
        case ["--write", store, asked, stop]:
            write_until(Path(stop), Path(store), files.read(Path(asked)))
        case [store, asked]:
            print(json.dumps(searching(Path(store), Path(asked))))


# ---------------------------------------------------------------- a store


def searching(folder: Path, given: Path) -> dict[str, object]:
    asked = files.read(given)
    opened = ENGINE.open(folder)
    for question in asked.others:
        opened.search("hybrid", question, None)
    figures: dict[str, object] = {
        "embed_question_ms": embedding_a_question(asked.questions),
        "searches_a_second": {str(threads): threaded(opened, asked.questions, threads) for threads in THREADS},
        "after_a_write_ms": after_a_write(opened, asked.questions),
        "beside_a_writer": beside_a_writer(opened, folder, given, asked.questions),
    }
    opened.close()
    return figures


def embedding_a_question(questions: Sequence[ParsedQuery]) -> dict[str, float | int | None]:
    model = MiniLM()
    model.embed_query("warm up")
    return spread([timed(model.embed_query, question.text) for question in questions])


def threaded(opened: NacreOpened, questions: Sequence[ParsedQuery], threads: int) -> float:
    """Hybrid searches a second, by so many threads together."""
    answered = [0] * threads
    end = time.perf_counter() + THREADED_S

    def ask(number: int) -> None:
        for at in count(number, threads):
            if time.perf_counter() > end:
                return
            opened.search("hybrid", questions[at % len(questions)], None)
            answered[number] += 1

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return round(sum(answered) / (time.perf_counter() - start), 1)


def after_a_write(opened: NacreOpened, questions: Sequence[ParsedQuery]) -> dict[str, float]:
    """The first hybrid search after one new memory, and the same search again, in turns."""
    first, again = [], []
    for number, question in enumerate(questions[:ALTERNATIONS]):
        text = f"{question.text} Asked for the {number}th time after a write."
        opened.embedder.expect([text], question.vector[None])
        opened.memory.remember(text)
        first.append(timed(opened.search, "hybrid", question, None))
        again.append(timed(opened.search, "hybrid", question, None))
    more = [a - b for a, b in zip(first, again, strict=True)]
    named = {"first": first, "warm": again, "more": more}
    return {name: round(1000 * statistics.median(taken), 3) for name, taken in named.items()}


def beside_a_writer(
    opened: NacreOpened, folder: Path, given: Path, questions: Sequence[ParsedQuery]
) -> dict[str, float | int | None]:
    """Hybrid searches while another process remembers a few memories again and again."""
    with tempfile.TemporaryDirectory() as place:
        stop = Path(place) / "stop"
        command = [sys.executable, "-m", "benchmarks.engines.ours", "--write", str(folder), str(given), str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            end = time.perf_counter() + BESIDE_WRITER_S
            taken: list[float] = []
            while time.perf_counter() < end:
                question = questions[len(taken) % len(questions)]
                taken.append(timed(opened.search, "hybrid", question, None))
            stop.touch()
            written = int(writer.stdout.readline())
    return {**spread(taken), "writes": written, "memories_a_write": WRITTEN_AT_ONCE, "seconds": BESIDE_WRITER_S}


def write_until(stop: Path, folder: Path, asked: Asked) -> None:
    """Remember a few memories, wait a little, and so on. One line when it has begun, one with how often it wrote."""
    embedder = Known()
    with nacre.open(folder / FILE, embedder=embedder) as memory:
        for number in count():
            if stop.exists():
                print(number, flush=True)
                return
            several = [asked.others[(number + at) % len(asked.others)] for at in range(WRITTEN_AT_ONCE)]
            texts = [f"{each.text} Written beside searches, {number}." for each in several]
            embedder.expect(texts, np.stack([each.vector for each in several]))
            memory.remember_many(texts)
            if number == 0:
                print("begun", flush=True)
            time.sleep(WRITE_PAUSE_S)


# ---------------------------------------------------------------- importing


def importing(data: Path) -> dict[str, object]:
    texts = population(data, QUESTIONS).sentences
    return {"embedding": embedding(texts[:EMBEDDED_TEXTS]), "peak_mb": dict(peaks(texts[:500]))}


def embedding(texts: Sequence[str]) -> dict[str, float]:
    """The bare embedder, and remembering with it, in turns on the same texts."""
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
    """Peak memory of importing more and more, each in a process of its own."""
    script = (
        "import sys, nacre\n"
        "count = int(sys.argv[2])\n"
        "texts = (f'{i} ' + sys.argv[3 + i % (len(sys.argv) - 3)] for i in range(count))\n"
        "with nacre.open(sys.argv[1], embedder='hashing') as memory:\n"
        "    for _ in memory.remember_batches(texts): pass\n"
        "status = open('/proc/self/status').read()\n"  # ru_maxrss would count the parent's memory, too
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024)\n"
    )
    for memories in IMPORTS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = [sys.executable, "-c", script, f"{folder}/x.db", str(memories), *texts]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        yield str(memories), int(done.stdout)


if __name__ == "__main__":
    main()
