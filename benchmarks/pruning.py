"""Do keyword searches find the same as a full search that skips nothing, and how much faster are they?

    python -m benchmarks.pruning [--data ../shared/eval] [--sizes 10000,100000,1000000]

Three ways are compared: FTS5 with all significant terms, scoring every match (the full search); FTS5 with rare terms
only, which is used where there is no index; and the index. Overlap@10 is with the full search. Times are from the best
of three passes. Beyond 100,000 memories, texts are joined from halves of real sentences.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import nacre
from benchmarks.common import report
from benchmarks.common.paths import EVAL
from benchmarks.common.sentences import questions, sentences
from nacre.storage.sqlite import SqliteStore, keyword_search

QUERIES = 200
PASSES = 3
UNLIMITED = 10**9
UNCACHED = nacre.Limits(results_cached=0)  # every question is asked several times


def main() -> None:
    parser = report.parser(__doc__, "pruning")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of memories (default: %(default)s)")
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
                keyword_search.MATCHED_ROWS_MIN, keyword_search.CANDIDATES_MIN = UNLIMITED, 5_000
                full, full_ms = answers(memory, asked)
                rows.append(row(size, "FTS5, all terms", full, full, full_ms))
                keyword_search.MATCHED_ROWS_MIN, keyword_search.CANDIDATES_MIN = shipped
                rows.append(row(size, "FTS5, rare terms", full, *best_pass(memory, asked)))
            memory.rebuild()
            rows.append(row(size, "index", full, *best_pass(memory, asked)))
    report.write(arguments.name, {"Overlap with the full search, and time": rows})


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
    """The hits, and the median and 95th percentile of the time in ms."""
    found, taken = [], []
    for query in asked:
        start = time.perf_counter()
        hits = memory.search(query, mode="keyword", limit=10).hits
        taken.append(1000 * (time.perf_counter() - start))
        found.append([hit.id for hit in hits])
    return found, (statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)])


if __name__ == "__main__":
    main()
