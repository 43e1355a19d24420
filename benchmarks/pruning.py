"""How much of a full keyword search survives when FTS5 is asked only for the rare words of a question.

    python -m benchmarks.pruning --data ../shared/eval [--sizes 10000,100000,1000000]

Overlap@10 with the order of a search that leaves no telling word out and scores every match, and the time both
take, as the best of three passes. Beyond 100,000 memories, texts are made of halves of real sentences.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import nacre
from benchmarks import report
from benchmarks.corpus import questions, sentences
from nacre.stores.sqlite import lexical

QUERIES = 200
PASSES = 3
EVERYTHING = 10**9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--sizes", default="10000,100000,1000000")
    arguments = parser.parse_args()
    asked = questions(arguments.data, QUERIES)
    shipped = (lexical.MATCHED_ROWS_MIN, lexical.CANDIDATES_MIN)
    rows: list[dict[str, object]] = []
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "x.db", embedder="none") as memory:
            memory.remember_many(sentences(arguments.data, size))
            lexical.MATCHED_ROWS_MIN, lexical.CANDIDATES_MIN = EVERYTHING, 5_000
            full, full_ms = answers(memory, asked)
            lexical.MATCHED_ROWS_MIN, lexical.CANDIDATES_MIN = shipped
            pruned, pruned_ms = min((answers(memory, asked) for _ in range(PASSES)), key=lambda each: each[1])
        overlaps = [len(set(a) & set(b)) / len(a) for a, b in zip(full, pruned, strict=True) if a]
        rows.append(
            {
                "memories": f"{size:,}",
                "overlap@10": f"{statistics.mean(overlaps):.4f}",
                "same first hit": f"{statistics.mean(a[:1] == b[:1] for a, b in zip(full, pruned, strict=True)):.3f}",
                "p50 ms": f"{pruned_ms[0]:.2f}",
                "p95 ms": f"{pruned_ms[1]:.2f}",
                "full search, p50 / p95 ms": f"{full_ms[0]:.1f} / {full_ms[1]:.1f}",
            }
        )
    report.write("pruning", rows)


def answers(memory: nacre.Nacre, asked: Sequence[str]) -> tuple[list[list[str]], tuple[float, float]]:
    """What is found, and the median and 95th percentile of the time it takes."""
    found, taken = [], []
    for query in asked:
        start = time.perf_counter()
        hits = memory.search(query, mode="keyword", limit=10).hits
        taken.append(1000 * (time.perf_counter() - start))
        found.append([hit.id for hit in hits])
    return found, (statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)])


if __name__ == "__main__":
    main()
