"""What the signals cost in quality: the same stores asked with all signals off and with all at their defaults.

    python -m benchmarks.signals [--data ../shared/eval] [--sets locomo,scifact] [--modes keyword,hybrid]

Facts are read from the texts as they are for anybody, and entities come from them. Labelled sets have no namespaces,
so they are dealt out in turn: whatever intent makes of them is noise, the worst it can do. Recency, which the
plain recipe has, is on in both.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nacre
from benchmarks import report
from benchmarks.labelled import load
from benchmarks.quality import DATA, LIMIT, SETS, Answer, Filled, filled, score
from nacre.types import DEFAULT_SPACE, Mode

OFF = nacre.Recipe(confidence_weight=0, min_confidence=0, entity_weight=0, intent_weight=0, usage_weight=0)
NAMESPACES = ("decisions", "patterns", "learnings", "context", "apis", "config", "blockers", "testing", "general")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--modes", default="keyword,hybrid")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with ProcessPoolExecutor(options.jobs) as processes:
        for mode in options.modes.split(","):
            threads = max(1, (os.cpu_count() or 1) // options.jobs)
            rows += processes.map(partial(measured, options.data, mode, threads), options.sets.split(","))
    report.write("signals", rows)


def measured(data: Path, mode: Mode, threads: int, name: str) -> dict[str, object]:
    with filled(load(data, name), mode, threads=threads, namespaces=NAMESPACES) as store:
        off = score(answers(store, OFF, collapse=False), store.labelled.qrels).ndcg_10
        on = score(answers(store, nacre.Recipe(), collapse=True), store.labelled.qrels).ndcg_10
        without_intent = score(
            answers(store, nacre.Recipe(intent_weight=0), collapse=True), store.labelled.qrels
        ).ndcg_10
        spaces = list(store.memory.stats().spaces)
        facts = len(store.memory.facts(spaces=spaces, history=True, limit=10_000))
    return {
        "set": name,
        "mode": mode,
        "memories": len(store.documents),
        "facts": facts,
        "nDCG@10 off": f"{off:.4f}",
        "nDCG@10 on": f"{on:.4f}",
        "change, points": f"{100 * (on - off):+.2f}",
        "without intent": f"{100 * (without_intent - off):+.2f}",
    }


def answers(store: Filled, recipe: nacre.Recipe, *, collapse: bool) -> Sequence[Answer]:
    given = []
    for query in store.labelled.queries:
        store.clock.ask(query.scope)
        where = nacre.Filter(spaces=[query.scope or DEFAULT_SPACE])
        hits = store.memory.search(
            query.text, mode=store.mode, limit=LIMIT, where=where, recipe=recipe, collapse=collapse
        ).hits
        found = [each for hit in hits for each in store.documents[hit.id]]
        given.append(Answer(query.id, found, 0.0))
    return given


if __name__ == "__main__":
    main()
