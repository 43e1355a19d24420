"""Which step of a hybrid search takes how much of its time?

    python -m benchmarks.speed --engines nacre --keep DIR
    python -m benchmarks.profiled DIR/nacre-10000-100000/store/memories.db DIR/nacre-1000000-100000/store/memories.db

Two hundred natural questions under cProfile, which slows Python down but not SQLite or numpy: read the shares, not the
milliseconds. Both channels run in the caller, so that nothing overlaps.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from pathlib import Path

import nacre
from benchmarks import report
from benchmarks.engines.engine import ParsedQuery
from benchmarks.engines.nacre import UNCACHED, Known
from benchmarks.population import QUESTIONS, population
from nacre.engine import candidates

# What a step is, by file and function. Steps that others are part of come without them.
STEPS = {
    "whole search": ("searching.py", "search"),
    "checking, lens": ("searching.py", "_through_lens"),
    "understanding the question": ("asking.py", "understand"),
    "by words": ("store.py", "lexical"),
    "– of it, postings": ("postings.py", "best"),
    "by meaning": ("store.py", "semantic"),
    "– of it, candidates in 8 bits": ("semantic.py", "_candidates"),
    "– of it, cosines from the rows": ("semantic.py", "_compared"),
    "signals of the candidates": ("store.py", "signals"),
    "fusing": ("fuse.py", "fuse"),
    "recency and its reasons": ("boost.py", "recency"),
    "spelling suggestions": ("asking.py", "did_you_mean"),
    "relevance, near-duplicates": ("recall.py", "_sifted"),
    "texts and snippets of ten hits": ("recall.py", "result"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/train"))
    arguments = parser.parse_args()
    people = population(arguments.data, QUESTIONS)
    asked = [ParsedQuery(*each) for each in zip(people.questions, people.question_vectors, strict=True)]
    candidates.PARALLEL_MEMORIES_MIN = 1 << 62  # one thread, so that a profile shows everything
    shares: dict[str, dict[str, object]] = {step: {"step": step} for step in STEPS}
    for path in arguments.stores:
        embedder = Known()
        with nacre.open(path, embedder=embedder, limits=UNCACHED, create=False) as memory:
            memories = f"{memory.stats().memories:,}"
            profile = cProfile.Profile()
            for at, question in enumerate(asked):
                embedder.meet(question)
                if at >= len(asked) // 2:
                    profile.enable()
                memory.search(question.text, limit=10)
                profile.disable()
        taken = steps(pstats.Stats(profile))
        for step, seconds in taken.items():
            shares[step][memories] = f"{seconds / taken['whole search']:.0%}"
    report.write("profile", list(shares.values()))


def steps(stats: pstats.Stats) -> dict[str, float]:
    """Seconds by step, with all that it calls."""
    found = dict.fromkeys(STEPS, 0.0)
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():  # type: ignore[attr-defined]
        for step, (home, function) in STEPS.items():
            if name == function and Path(file).name == home:
                found[step] = max(found[step], cumulative)
    return found


if __name__ == "__main__":
    main()
