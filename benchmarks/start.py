"""How long a cold `nacre search` takes, beyond a bare Python start, and which of its steps takes how long.

python -m benchmarks.start
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from nacre.cli.demo import QUESTION, SAMPLES

RUNS = 21
COLD = Path(__file__).with_name("cold.py")
STEPS = (
    "start Python",
    "import numpy and ONNX Runtime",
    "import the rest",
    "read arguments and settings, close the store",
    "open the store",
    "read the vocabulary",
    "wait for the embedder",
    "wait for the reranker",
    "read again",
    "search",
    "write the answer",
    "end the process",
)


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has been compiled
    nacre = [sys.executable, "-m", "nacre"]
    with tempfile.TemporaryDirectory() as folder:
        store = ["--store", str(Path(folder) / "start.db")]
        subprocess.run([*nacre, "remember", "--jsonl", "--file", str(SAMPLES), *store], check=True, capture_output=True)
        bare = median_ms([sys.executable, "-c", "pass"])
        commands = {
            "import nacre": [sys.executable, "-c", "import nacre"],
            "nacre --version": [*nacre, "--version"],
            "nacre search --mode keyword": [*nacre, "search", "--mode", "keyword", QUESTION, *store],
            "nacre search (hybrid)": [*nacre, "search", QUESTION, *store],
        }
        rows: list[dict[str, object]] = [{"command": "python -c pass", "ms": f"{bare:.0f}", "beyond bare": ""}]
        for name, command in commands.items():
            taken = median_ms(command)
            rows.append({"command": name, "ms": f"{taken:.0f}", "beyond bare": f"{taken - bare:.0f}"})
        steps = {
            "keyword": median_steps(["search", "--mode", "keyword", QUESTION, *store], Path(folder)),
            "hybrid": median_steps(["search", QUESTION, *store], Path(folder)),
            "hybrid, --no-rerank": median_steps(["search", "--no-rerank", QUESTION, *store], Path(folder)),
        }
    report.write("start", rows)
    report.write("start-steps", broken_down(steps))


def median_ms(command: list[str]) -> float:
    """The median of fresh processes, after one that warms the disk cache."""
    taken = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


def median_steps(arguments: Sequence[str], folder: Path) -> dict[str, float]:
    """Milliseconds of each step of fresh processes, after one that warms the disk cache. Models are loaded beside other
    steps: what is left to wait for is counted."""
    found: list[dict[str, float]] = []
    for _ in range(RUNS + 1):
        result = folder / "steps.json"
        started = time.monotonic()
        command = [sys.executable, str(COLD), str(started), str(result), *arguments]
        subprocess.run(command, check=True, capture_output=True)
        ended = time.monotonic()
        delivered = json.loads(result.read_text("utf-8"))
        found.append({**delivered["steps"], "end the process": ended - delivered["ended"]})
    return {step: 1000 * statistics.median(each.get(step, 0.0) for each in found[1:]) for step in STEPS}


def broken_down(steps: dict[str, dict[str, float]]) -> list[dict[str, object]]:
    """A row for each step, and their sum."""
    rows: list[dict[str, object]] = [
        {"step": step, **{f"{command}, ms": f"{taken[step]:.0f}" for command, taken in steps.items()}} for step in STEPS
    ]
    total = {f"{command}, ms": f"{sum(taken.values()):.0f}" for command, taken in steps.items()}
    return [*rows, {"step": "all steps", **total}]


if __name__ == "__main__":
    main()
