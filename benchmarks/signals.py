"""What do signals (facts, entities, intent, usage, near-duplicates) change in quality, and what do they cost in time?

    python -m benchmarks.signals quality [--data ../shared/eval] [--sets locomo,scifact] [--modes keyword,hybrid]
    python -m benchmarks.signals time [--data ../shared/eval] [--size 100000]

quality: the same stores are searched with all signals off, with the defaults, and without intent. Facts and entities
are extracted from the texts as usual. Labelled sets have no namespaces, so namespaces are assigned in turn: to intent
they are noise, which is its worst case. Recency is on in all variants.

time: the same store is searched with the defaults and with all signals off, alternating. Every fifth memory has a
relation, all have namespaces, and a thousand were used before, so that every signal has work to do. "Off" still reads
the data of the signals. Each figure is from the pass with the lowest median, without the embedding of the question.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import get_args

import nacre
from benchmarks.common import report
from benchmarks.common.filled_store import LIMIT, Filled, filled
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.labelled_sets import load
from benchmarks.common.paths import EVAL
from benchmarks.common.quality_report import SETS
from benchmarks.common.scoring import Answer, score
from benchmarks.common.sentences import questions, sentences, vectors_of
from benchmarks.common.timing import PASSES, milliseconds
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.search import Mode

OFF = nacre.Recipe(confidence_weight=0, min_confidence=0, entity_weight=0, intent_weight=0, usage_weight=0)
VARIANTS = {  # recipe, and whether near-duplicates are shown as one hit
    "off": (OFF, False),
    "on": (nacre.Recipe(), True),
    "without intent": (nacre.Recipe(intent_weight=0), True),
}
NAMESPACES = ("decisions", "patterns", "learnings", "context", "apis", "config", "blockers", "testing", "general")
PREDICATES = ("works at", "depends on", "uses", "is married to", "reports to", "maintains", "knows", "owns")
QUERIES = 200
USED = 1_000
UNCACHED = nacre.Limits(results_cached=0)  # every question is asked several times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "time"))
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="quality: comma-separated names (default: all)")
    parser.add_argument("--modes", default="keyword,hybrid", help="quality: (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="quality: parallel processes (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100_000, help="time: memories (default: %(default)s)")
    parser.add_argument("--name", help="name of the files under benchmarks/results/ (default: signals-WHAT)")
    options = parser.parse_args()
    name = options.name or f"signals-{options.what}"
    if options.what == "quality":
        sets, modes = options.sets.split(","), options.modes.split(",")
        report.write(
            name, {"nDCG@10 with all signals off and on": quality_rows(options.data, sets, modes, options.jobs)}
        )
    else:
        report.write(name, {"Time of a search with all signals on and off": time_rows(options.data, options.size)})


# ---------------------------------------------------------------- quality


def quality_rows(data: Path, sets: Sequence[str], modes: Sequence[Mode], jobs: int) -> list[dict[str, object]]:
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(jobs) as processes:
        return [row for mode in modes for row in processes.map(partial(quality_row, data, mode, threads), sets)]


def quality_row(data: Path, mode: Mode, threads: int, name: str) -> dict[str, object]:
    with filled(load(data, name), mode, threads=threads, namespaces=NAMESPACES) as store:
        found = {variant: score(given, store.labelled.qrels).ndcg_10 for variant, given in answers(store).items()}
        spaces = list(store.memory.stats().spaces)
        facts = len(store.memory.facts(spaces=spaces, history=True, limit=10_000))
    return {
        "set": name,
        "mode": mode,
        "memories": len(store.documents),
        "facts": facts,
        "nDCG@10 off": f"{found['off']:.4f}",
        "nDCG@10 on": f"{found['on']:.4f}",
        "change, points": f"{100 * (found['on'] - found['off']):+.2f}",
        "without intent": f"{100 * (found['without intent'] - found['off']):+.2f}",
    }


def answers(store: Filled) -> dict[str, list[Answer]]:
    given: dict[str, list[Answer]] = {variant: [] for variant in VARIANTS}
    for query in store.labelled.queries:
        store.clock.ask(query.scope)
        where = nacre.Filter(spaces=[query.scope or DEFAULT_SPACE])
        for variant, (recipe, collapse) in VARIANTS.items():
            hits = store.memory.search(
                query.text, mode=store.mode, limit=LIMIT, where=where, recipe=recipe, collapse=collapse
            ).hits
            found = [each for hit in hits for each in store.documents[hit.id]]
            given[variant].append(Answer(query.id, found, 0.0))
    return given


# ---------------------------------------------------------------- time


def time_rows(data: Path, size: int) -> list[dict[str, object]]:
    texts = sentences(data, size)
    asked = questions(data, QUERIES)
    vectors = vectors_of([*texts, *asked])
    embedder = GivenVectors()
    embedder.give_passages(texts, vectors[: len(texts)])
    for text, vector in zip(asked, vectors[len(texts) :], strict=True):
        embedder.give_question(text, vector)
    rows: list[dict[str, object]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        nacre.open(Path(folder) / "signals.db", embedder=embedder, reranker=None, limits=UNCACHED) as memory,
    ):
        ids = [receipt.id for receipts in memory.remember_batches(memories(texts)) for receipt in receipts]
        use(memory, asked)
        for mode in get_args(Mode):
            on, off = passes(memory, asked, mode)
            added = 1000 * (statistics.median(on) - statistics.median(off))
            rows.append(
                {
                    "memories": len(ids),
                    "relations": len(ids) // 5,
                    "mode": mode,
                    "on": milliseconds(on),
                    "off": milliseconds(off),
                    "added at the median, ms": f"{added:.2f}",
                }
            )
    return rows


def memories(texts: Sequence[str]) -> Iterator[nacre.NewMemory]:
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
    """Mark about USED memories as used."""
    marked = 0
    for query in asked:
        hits = memory.search(query, mode="keyword").hits[:10]
        marked += len(memory.mark([hit.id for hit in hits], "used")) if hits else 0
        if marked >= USED:
            return


def passes(memory: nacre.Nacre, asked: Sequence[str], mode: Mode) -> tuple[list[float], list[float]]:
    """Alternating question by question, so that other work on the machine slows both down."""
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
