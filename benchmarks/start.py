"""How long a cold `nacre search` takes, beyond a bare Python start.

python -m benchmarks.start
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report
from nacre.cli.demo import QUESTION, SAMPLES

RUNS = 21


def main() -> None:
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
    report.write("start", rows)


def median_ms(command: list[str]) -> float:
    """The median of fresh processes, after one that warms the disk cache."""
    taken = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


if __name__ == "__main__":
    main()
