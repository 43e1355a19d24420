"""How long does a cold `nacre search` take, and which steps take the time?

    python -m benchmarks.start
    python -m benchmarks.start --profile DIR/nacre-10000-100000/store/memories.db [...]

Without options: whole commands, and the steps of a cold search, as medians of fresh processes on the bundled sample
memories. Models load in parallel to other steps; only the time that the main thread waits for them is counted.

--profile: the functions that take the largest share of a warm hybrid search without reranking, in stores that
`python -m benchmarks.speed --engines nacre --keep DIR` has filled. cProfile slows Python down, but not SQLite or numpy:
read the shares, not the milliseconds. Both channels run in one thread, so that nothing overlaps.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nacre
from benchmarks.common import cold_command, report
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.paths import TRAIN
from benchmarks.common.population import QUESTIONS, Population, population
from nacre.cli.demo import QUESTION, SAMPLES
from nacre.runtime.threads import Threads

RUNS = 21
STEPS = (
    "start Python",
    "import numpy and ONNX Runtime",
    "import the rest",
    "read arguments and settings, close the store",
    "open the store",
    "read the vocabulary",
    "wait for the embedder",
    "wait for the reranker",
    "rerank",
    "search",
    "write the answer",
    "end the process",
)
PACKAGE = Path(nacre.__file__).parent
UNCACHED = nacre.Limits(results_cached=0)
SHARE_MIN = 0.03  # functions that take less in every store are left out


def main() -> None:
    parser = report.parser(__doc__, "start")
    parser.add_argument(
        "--profile", nargs="+", type=Path, metavar="STORE", help="profile warm searches in these stores"
    )
    parser.add_argument("--data", type=Path, default=TRAIN, help="--profile: folder of SQuAD and QMSum (%(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="fresh processes per command (default: %(default)s)")
    options = parser.parse_args()
    if options.profile:
        name = "profile" if options.name == "start" else options.name
        rows = profile_rows(options.profile, population(options.data, QUESTIONS))
        report.write(name, {"Shares of a hybrid search, by the number of memories": rows})
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    with tempfile.TemporaryDirectory() as folder:
        store = ["--store", str(Path(folder) / "start.db")]
        remember = [sys.executable, "-m", "nacre", "remember", "--jsonl", "--file", str(SAMPLES), *store]
        subprocess.run(remember, check=True, capture_output=True)
        whole, steps = command_rows(store, options.runs), step_rows(store, options.runs, Path(folder))
    report.write(options.name, {"Whole commands": whole, "Steps of a search": steps})


# ---------------------------------------------------------------- cold commands


def command_rows(store: Sequence[str], runs: int) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "nacre"]
    bare = median_ms([sys.executable, "-c", "pass"], runs)
    commands = {
        "import nacre": [sys.executable, "-c", "import nacre"],
        "nacre --version": [*command, "--version"],
        "nacre search --mode keyword": [*command, "search", "--mode", "keyword", QUESTION, *store],
        "nacre search (hybrid)": [*command, "search", QUESTION, *store],
    }
    taken = {name: median_ms(each, runs) for name, each in commands.items()}
    rows: list[dict[str, object]] = [{"command": "python -c pass", "ms": f"{bare:.0f}", "above bare Python": ""}]
    return rows + [
        {"command": name, "ms": f"{ms:.0f}", "above bare Python": f"{ms - bare:.0f}"} for name, ms in taken.items()
    ]


def step_rows(store: Sequence[str], runs: int, folder: Path) -> list[dict[str, object]]:
    """A row for each step, and the sum."""
    steps = {
        "keyword": median_steps(["search", "--mode", "keyword", QUESTION, *store], runs, folder),
        "hybrid": median_steps(["search", QUESTION, *store], runs, folder),
        "hybrid, --no-rerank": median_steps(["search", "--no-rerank", QUESTION, *store], runs, folder),
    }
    rows: list[dict[str, object]] = [
        {"step": step, **{f"{command}, ms": f"{taken[step]:.0f}" for command, taken in steps.items()}} for step in STEPS
    ]
    total = {f"{command}, ms": f"{sum(taken.values()):.0f}" for command, taken in steps.items()}
    return [*rows, {"step": "all steps", **total}]


def median_ms(command: list[str], runs: int) -> float:
    """The median of fresh processes, after one that warms the disk cache."""
    taken = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


def median_steps(arguments: Sequence[str], runs: int, folder: Path) -> dict[str, float]:
    """The median of each step in ms, of fresh processes, after one that warms the disk cache."""
    found: list[dict[str, float]] = []
    for _ in range(runs + 1):
        result = folder / "steps.json"
        started = time.monotonic()
        command = [sys.executable, cold_command.__file__, str(started), str(result), *arguments]
        subprocess.run(command, check=True, capture_output=True)
        ended = time.monotonic()
        measured = json.loads(result.read_text("utf-8"))
        found.append({**measured["steps"], "end the process": ended - measured["ended"]})
    return {step: 1000 * statistics.median(each.get(step, 0.0) for each in found[1:]) for step in STEPS}


# ---------------------------------------------------------------- warm searches


def profile_rows(stores: Sequence[Path], people: Population) -> list[dict[str, object]]:
    """Functions of the package by their share of a search, including what they call."""
    shares: dict[str, dict[str, float]] = {}
    for path in stores:
        memories, found = profiled(path, people)
        for function, share in found.items():
            shares.setdefault(function, {})[f"{memories:,}"] = share
    ordered = sorted(shares.items(), key=lambda each: -max(each[1].values()))
    return [
        {"function": function, **{memories: f"{share:.0%}" for memories, share in by_store.items()}}
        for function, by_store in ordered
        if max(by_store.values()) >= SHARE_MIN
    ]


def profiled(path: Path, people: Population) -> tuple[int, dict[str, float]]:
    """The number of memories, and the share of each function. The first half of the questions is for warming up."""
    embedder, profile = GivenVectors(), cProfile.Profile()
    with (
        patch.object(Threads, "start", _run_at_once),
        nacre.open(path, embedder=embedder, reranker=None, limits=UNCACHED, create=False) as memory,
    ):
        for at, (text, vector) in enumerate(zip(people.questions, people.question_vectors, strict=True)):
            embedder.give_question(text, vector)
            if at >= len(people.questions) // 2:
                profile.enable()
            memory.search(text, limit=10)
            profile.disable()
        memories = memory.stats().memories
    return memories, _shares(pstats.Stats(profile))


def _run_at_once(_: Threads, call: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(call(*arguments, **options))
    return done


def _shares(stats: pstats.Stats) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():  # type: ignore[attr-defined]
        if Path(file).is_relative_to(PACKAGE) and not name.startswith("<"):
            function = f"{Path(file).relative_to(PACKAGE).as_posix()}: {name}"
            seconds[function] = max(seconds.get(function, 0.0), cumulative)
    whole = max(seconds.values())
    return {function: taken / whole for function, taken in seconds.items()}


if __name__ == "__main__":
    main()
