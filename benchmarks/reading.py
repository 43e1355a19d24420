"""What reading again gains and costs, by how many candidates are read.

    python -m benchmarks.reading [--sets locomo,scifact] [--pools 0,10,30] [--questions 150]

On the half of the questions that chooses. Each number of candidates has an engine of its own, so that none profits from
what another has read. Times are of whole searches, without the embedding of the question. The first row is the model
alone: 20 texts of 60 word pieces with a question of 10.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import nacre
from benchmarks import judging, report
from benchmarks.filling import Filled, Way, embedder_for, filled, queries_of
from benchmarks.labelled import DATA, load
from nacre.interfaces import RerankText
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.storage.sqlite import SqliteStore

TEXTS, TEXT_PIECES = 20, 60
ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default="locomo,locomo-session,scifact,hotpotqa-1k,cosqa")
    parser.add_argument("--pools", default="0,5,10,20,30,50", help="candidates that are read; 0: none")
    parser.add_argument("--questions", type=int, default=150, help="of each set, at the most")
    options = parser.parse_args()
    rows: list[dict[str, object]] = [{"set": "the model alone", "read": TEXTS} | alone()]
    print(rows[-1], flush=True)
    for name in options.sets.split(","):
        labelled = load(options.data, name)
        with filled(labelled, "hybrid") as store:
            for pool in map(int, options.pools.split(",")):
                rows.append({"set": name, "read": pool} | measured(store, pool, options.questions))
                print(rows[-1], flush=True)
    report.write("reading", rows)


def alone() -> dict[str, object]:
    model = NacreRerank()
    question = "where is the blue key of the old shed ?"  # each word is a piece
    taken = []
    for number in range(ROUNDS):
        texts = [RerankText(" ".join(["key"] * (TEXT_PIECES - 2) + [str(number), str(each)])) for each in range(TEXTS)]
        start = time.perf_counter()
        model.scores(question, texts)
        taken.append(1000 * (time.perf_counter() - start))
    return {"p50 ms": round(statistics.median(taken)), "p95 ms": round(max(taken[1:]))}


def measured(store: Filled, pool: int, questions: int) -> dict[str, object]:
    recipe = nacre.Recipe(rerank_pool=pool) if pool else nacre.Recipe(rerank_weight=0)
    labelled = store.labelled
    chosen = replace(labelled, queries=tuple(queries_of(labelled, "choose")[:questions]))
    engine = nacre.Nacre(
        SqliteStore(store.path),
        embedder_for(chosen, 0),
        reranker=NacreRerank(),
        clock=store.clock,
        zone=UTC,
        log=False,
    )
    with engine:
        engine.search("warm", recipe=recipe)
        (answers,) = replace(store, labelled=chosen, memory=engine).answers([Way("hybrid", recipe)], "choose")
    scores = judging.score(answers, labelled.qrels)
    p50, p95 = judging.latency(judging.judged(answers, labelled.qrels, chosen.queries))
    return {
        "nDCG@10": round(scores.ndcg_10, 4),
        "R@5": round(scores.recall_5, 4),
        "p50 ms": round(p50),
        "p95 ms": round(p95),
    }


if __name__ == "__main__":
    main()
