"""What the signals cost in time: the same store asked with all signals at their defaults, and with all off, in turns.

    python -m benchmarks.overhead [--data ../shared/eval] [--size 100000]

Every fifth memory has a relation, all have namespaces, and a thousand were used before, so that every signal has
something to do. "Off" still reads what the signals are made of; `benchmarks.speed` of an older commit does not.
Each figure is of the pass with the lowest median. The embedding of the question is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

import nacre
from benchmarks import report
from benchmarks.corpus import Prepared, questions, sentences, vectors_of
from benchmarks.signals import NAMESPACES, OFF
from benchmarks.timing import PASSES, milliseconds
from nacre.types.search import Mode

QUERIES = 200
UNCACHED = nacre.Limits(results_cached=0)  # each question is asked several times
PREDICATES = ("works at", "depends on", "uses", "is married to", "reports to", "maintains", "knows", "owns")
USED = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--size", type=int, default=100_000)
    options = parser.parse_args()
    texts = sentences(options.data, options.size)
    asked = questions(options.data, QUERIES)
    vectors = vectors_of([*texts, *asked])
    prepared = Prepared([*texts, *asked], np.asarray(vectors))
    rows: list[dict[str, object]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        nacre.open(Path(folder) / "overhead.db", embedder=prepared, limits=UNCACHED) as memory,
    ):
        ids = [receipt.id for receipts in memory.remember_batches(dressed(texts)) for receipt in receipts]
        use(memory, asked)
        known = {"memories": len(ids), "relations": len(ids) // 5}
        for mode in get_args(Mode):
            on, off = passes(memory, asked, mode)
            added = 1000 * (statistics.median(on) - statistics.median(off))
            rows.append(
                known
                | {
                    "mode": mode,
                    "on": milliseconds(on),
                    "off": milliseconds(off),
                    "added at the median, ms": f"{added:.2f}",
                }
            )
    report.write("overhead", rows)


def dressed(texts: Sequence[str]) -> Iterator[nacre.NewMemory]:
    for number, text in enumerate(texts):
        relation = nacre.NewFact(
            subject=f"Person {number % 2_003}",
            predicate=PREDICATES[number % len(PREDICATES)],
            object=f"Thing {number % 509}",
            type="relationship",
            relation=True,
        )
        yield nacre.NewMemory(
            text=text, namespace=NAMESPACES[number % len(NAMESPACES)], facts=[relation] if number % 5 == 0 else []
        )


def use(memory: nacre.Nacre, asked: Sequence[str]) -> None:
    marked = 0
    for query in asked:
        hits = memory.search(query, mode="keyword").hits[:10]
        marked += len(memory.mark([hit.id for hit in hits], "used")) if hits else 0
        if marked >= USED:
            return


def passes(memory: nacre.Nacre, asked: Sequence[str], mode: Mode) -> tuple[list[float], list[float]]:
    """In turns, question by question, so that other work on the machine slows both down."""
    found: list[tuple[list[float], list[float]]] = []
    for _ in range(PASSES):
        on, off = [], []
        for query in asked:
            on.append(timed(memory, query, mode, nacre.Recipe(), collapse=True))
            off.append(timed(memory, query, mode, OFF, collapse=False))
        found.append((on, off))
    return min((on for on, _ in found), key=statistics.median), min((off for _, off in found), key=statistics.median)


def timed(memory: nacre.Nacre, query: str, mode: Mode, recipe: nacre.Recipe, *, collapse: bool) -> float:
    start = time.perf_counter()
    memory.search(query, mode=mode, limit=20, recipe=recipe, collapse=collapse)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
