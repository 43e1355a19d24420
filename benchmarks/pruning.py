"""How much of a full keyword search survives, by the index and by FTS5 alone, which is asked for rare words only.

    python -m benchmarks.pruning --data ../shared/eval [--sizes 10000,100000,1000000]

Overlap@10 with the order of a search by FTS5 that leaves no telling word out and scores every match, and the time all
take, as the best of three passes. Beyond 100,000 memories, texts are made of halves of real sentences.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import nacre
from benchmarks import report
from benchmarks.corpus import questions, sentences
from nacre.storage.sqlite import SqliteStore, keyword_search

QUERIES = 200
PASSES = 3
EVERYTHING = 10**9
UNCACHED = nacre.Limits(results_cached=0)  # each question is asked several times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--sizes", default="10000,100000,1000000")
    arguments = parser.parse_args()
    asked = questions(arguments.data, QUERIES)
    shipped = (keyword_search.MATCHED_ROWS_MIN, keyword_search.CANDIDATES_MIN)
    rows: list[dict[str, object]] = []
    for size in map(int, arguments.sizes.split(",")):
        with (
            tempfile.TemporaryDirectory() as folder,
            nacre.open(Path(folder) / "x.db", embedder="none", limits=UNCACHED) as memory,
        ):
            memory.remember_many(sentences(arguments.data, size))
            with patch.object(SqliteStore, "_indexed", return_value=None):
                keyword_search.MATCHED_ROWS_MIN, keyword_search.CANDIDATES_MIN = EVERYTHING, 5_000
                full, full_ms = answers(memory, asked)
                rows.append(row(size, "FTS5, all words", full, full, full_ms))
                keyword_search.MATCHED_ROWS_MIN, keyword_search.CANDIDATES_MIN = shipped
                rows.append(row(size, "FTS5, rare words", full, *best_pass(memory, asked)))
            memory.rebuild()
            rows.append(row(size, "index", full, *best_pass(memory, asked)))
    report.write("pruning", rows)


def row(
    size: int, way: str, full: Sequence[list[str]], found: Sequence[list[str]], taken_ms: tuple[float, float]
) -> dict[str, object]:
    overlaps = [len(set(a) & set(b)) / len(a) for a, b in zip(full, found, strict=True) if a]
    return {
        "memories": f"{size:,}",
        "way": way,
        "overlap@10": f"{statistics.mean(overlaps):.4f}",
        "same first hit": f"{statistics.mean(a[:1] == b[:1] for a, b in zip(full, found, strict=True)):.3f}",
        "p50 / p95 ms": f"{taken_ms[0]:.2f} / {taken_ms[1]:.2f}",
    }


def best_pass(memory: nacre.Nacre, asked: Sequence[str]) -> tuple[list[list[str]], tuple[float, float]]:
    return min((answers(memory, asked) for _ in range(PASSES)), key=lambda each: each[1])


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
