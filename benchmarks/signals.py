"""What the signals cost in quality: the same stores asked with all signals off and with all at their defaults.

    python -m benchmarks.signals [--data ../shared/eval] [--sets locomo,scifact] [--modes keyword,hybrid]

Facts are read from the texts as they are for anybody, and entities come from them. Labelled sets have no namespaces,
so they are dealt out in turn: whatever intent makes of them is noise, the worst it can do. Recency, which the
plain recipe has, is on in both.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nacre
from benchmarks import report
from benchmarks.filling import LIMIT, Filled, filled
from benchmarks.judging import SETS, Answer, score
from benchmarks.labelled import DATA, load
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.search import Mode

OFF = nacre.Recipe(confidence_weight=0, min_confidence=0, entity_weight=0, intent_weight=0, usage_weight=0)
NAMESPACES = ("decisions", "patterns", "learnings", "context", "apis", "config", "blockers", "testing", "general")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--modes", default="keyword,hybrid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--name", default="signals", help="of the results (default: %(default)s)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with ProcessPoolExecutor(options.jobs) as processes:
        for mode in options.modes.split(","):
            threads = max(1, (os.cpu_count() or 1) // options.jobs)
            rows += processes.map(partial(measured, options.data, mode, threads), options.sets.split(","))
    report.write(options.name, rows)


VARIANTS = {
    "off": (OFF, False),
    "on": (nacre.Recipe(), True),
    "without intent": (nacre.Recipe(intent_weight=0), True),
}


def measured(data: Path, mode: Mode, threads: int, name: str) -> dict[str, object]:
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
    """Each question in every variant at once: it is embedded once."""
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


if __name__ == "__main__":
    main()
