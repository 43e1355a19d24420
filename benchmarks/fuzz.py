"""Does any query raise an error or take long?

    python -m benchmarks.fuzz [--data ../shared/eval] [--memories 10000] [--queries 200000] [--seed 1] [--jobs 2]

Random and adversarial queries search a store of real sentences by keyword: some thousands from Hypothesis, then every
special form of FTS5, then those of common/fuzz_queries.py. The seed and the number of a query determine its text,
whatever the number of jobs. Wall-clock and CPU time are both shown, because other work on the machine affects only the
former. A search without an answer after 30 seconds counts as an error. The exit status is 1 if there was an error, or
if a search took more than 2 seconds of CPU time.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from random import Random
from typing import NamedTuple

import nacre
from benchmarks.common import report
from benchmarks.common.fuzz_queries import (
    KINDS,
    NAMESPACES,
    SESSIONS,
    SOURCES,
    SPACES,
    TAGS,
    Material,
    material_of,
    query,
)
from benchmarks.common.paths import EVAL
from benchmarks.common.sentences import questions, sentences

LIMIT_S = 2.0
SILENT_S_MAX = 30.0  # then the process is killed, because a search cannot be cancelled
FACETS_EVERY = 60
ERRORS_SHOWN = 10  # one of each kind
SHOWN_CHARS = 60
QUESTIONS = 2_000
SAMPLE = "facets of a sample"


def main() -> None:
    parser = report.parser(__doc__, "fuzz")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    texts = sentences(arguments.data, arguments.memories)
    material = material_of(texts, questions(arguments.data, QUESTIONS), arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.db"
        fill(path, texts, arguments.seed)
        asked = asked_of(path, material, arguments.seed, arguments.queries, arguments.jobs)
    families: defaultdict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        families[each.family].append(each)
    every = [each for each in asked if each.family != SAMPLE]
    rows = [
        row(name, several, partial(query, arguments.seed, material=material))
        for name, several in [*sorted(families.items()), ("all", every)]
    ]
    report.write(arguments.name, {f"Queries on {arguments.memories:,} memories": rows})
    failed = [each for each in asked if each.error]
    for each in list({each.error: each for each in reversed(failed)}.values())[:ERRORS_SHOWN]:
        print(f"#{each.number} {each.error}: {query(arguments.seed, each.number, material)[1]!r:.2000}")
    if failed or any(each.cpu_seconds > LIMIT_S for each in asked):
        raise SystemExit(1)


def asked_of(path: Path, material: Material, seed: int, queries: int, jobs: int) -> list[Asked]:
    """All answers in the order of the queries. A process that dies or hangs is replaced."""
    asked: list[Asked] = []
    running = [Job.started(path, material, seed, range(job, queries, jobs)) for job in range(jobs)]
    while running:
        ready = wait([job.answers for job in running], timeout=1)
        for at, job in reversed(list(enumerate(running))):
            received, problem = job.received(job.answers in ready)
            asked += received
            if problem:
                family = query(seed, job.left[0], material)[0]
                asked.append(Asked(family, job.left[0], job.silent_s(), job.silent_s(), problem))
                running[at] = job = job.replaced(path, material, seed)
            if not job.left:
                job.stop()
                del running[at]
        if sys.stderr.isatty():
            print(f"\r{len(asked):,} of {queries:,} asked", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return sorted(asked, key=lambda each: each.number)


def row(family: str, asked: Sequence[Asked], text_of: Callable[[int], tuple[str, str]]) -> dict[str, object]:
    taken = sorted(1000 * each.seconds for each in asked)
    worst = max(asked, key=lambda each: each.cpu_seconds)
    return {
        "family": family,
        "queries": f"{len(asked):,}",
        "p50 ms": f"{statistics.median(taken):.2f}",
        "p99 ms": f"{taken[int(len(taken) * 0.99)]:.1f}",
        "worst ms": f"{taken[-1]:,.0f}",
        "worst CPU ms": f"{1000 * max(each.cpu_seconds for each in asked):,.0f}",
        f"over {LIMIT_S:g} s": sum(each.seconds > LIMIT_S for each in asked),
        f"over {LIMIT_S:g} s of CPU": sum(each.cpu_seconds > LIMIT_S for each in asked),
        "errors": sum(bool(each.error) for each in asked),
        "worst query": f"#{worst.number} {shown(text_of(worst.number)[1])}",
    }


def shown(text: str) -> str:
    """The beginning and end of a query, escaped for a table."""
    plain = ascii(text).replace("|", r"\x7c")
    short = plain if len(plain) <= SHOWN_CHARS else f"{plain[: SHOWN_CHARS // 2]} … {plain[-SHOWN_CHARS // 2 :]}"
    return f"`{short}` ({len(text):,} characters)"


# ---------------------------------------------------------------- the store


def fill(path: Path, texts: Sequence[str], seed: int) -> None:
    """Real sentences, many of them with tags, sources, sessions and metadata."""
    chance = Random(seed)
    now = datetime.now(UTC)
    with nacre.open(path, embedder="none") as memory:
        memory.remember_many([_labelled(chance, text, number, now) for number, text in enumerate(texts)])


def _labelled(chance: Random, text: str, number: int, now: datetime) -> nacre.NewMemory:
    session = chance.choice([None, None, *SESSIONS])
    return nacre.NewMemory(
        text=text,
        space=chance.choice(SPACES) if chance.random() < 0.05 else None,
        kind=chance.choice(KINDS),
        namespace=chance.choice(NAMESPACES),
        summary=" ".join(text.split()[:8]) if chance.random() < 0.2 else None,
        tags=chance.sample(TAGS, chance.choice([0, 0, 1, 2])),
        source=chance.choice(SOURCES).format(number % 500) if chance.random() < 0.8 else None,
        session=session,
        position=None if session is None else number,
        metadata={"number": number, "deep": {"list": [1, None, "x"]}} if chance.random() < 0.2 else {},
        importance=chance.random(),
        created=now - timedelta(days=1_500 * chance.random() ** 2),
    )


# ---------------------------------------------------------------- asking


class Asked(NamedTuple):
    """One call: the family and number of its query, its times, and its error, if any."""

    family: str
    number: int
    seconds: float
    cpu_seconds: float
    error: str = ""


@dataclass
class Job:
    """A process with its own connection to the store, and the numbers of its unanswered queries."""

    process: SpawnProcess
    answers: Connection
    left: range
    heard: float

    @classmethod
    def started(cls, path: Path, material: Material, seed: int, numbers: range) -> Job:
        context = multiprocessing.get_context("spawn")
        answers, sender = context.Pipe(duplex=False)
        process = context.Process(target=ask, args=(path, material, seed, numbers, sender), daemon=True)
        process.start()
        sender.close()
        return cls(process, answers, numbers, time.perf_counter())

    def received(self, is_ready: bool) -> tuple[list[Asked], str]:
        """The answers to one query, or what went wrong."""
        if not is_ready:
            return [], "no answer" if self.silent_s() > SILENT_S_MAX else ""
        try:
            asked: list[Asked] = self.answers.recv()
        except EOFError:
            return [], "the process died"
        self.left, self.heard = self.left[1:], time.perf_counter()
        return asked, ""

    def silent_s(self) -> float:
        return time.perf_counter() - self.heard

    def replaced(self, path: Path, material: Material, seed: int) -> Job:
        """A new process for the queries after the one that failed."""
        self.stop()
        return Job.started(path, material, seed, self.left[1:])

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.answers.close()


def ask(path: Path, material: Material, seed: int, numbers: range, answers: Connection) -> None:
    with nacre.open(path, embedder="none", create=False) as memory:
        for number in numbers:
            family, text = query(seed, number, material)
            asked = [timed(family, number, partial(memory.search, text, mode="keyword"))]
            if number % FACETS_EVERY == 0:
                asked.append(timed(SAMPLE, number, partial(memory.facets, text)))
            answers.send(asked)


def timed(family: str, number: int, call: Callable[[], object]) -> Asked:
    error = ""
    start, start_cpu = time.perf_counter(), time.process_time()
    try:
        call()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return Asked(family, number, time.perf_counter() - start, time.process_time() - start_cpu, error)


if __name__ == "__main__":
    main()
