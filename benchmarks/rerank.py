"""What do late interaction and the cross-encoder gain in quality and cost in time?

    python -m benchmarks.rerank [--data ../shared/eval] [--sets locomo,scifact] [--few 4,6,10,30] [--ms 15]

Measured on the half of the questions on which parameters are chosen. Each way has its own engine, so that none profits
from the cached scores of another. Times are of whole searches without the embedding of the question. The first row is
the cross-encoder alone: 20 texts of 60 word pieces with a question of 10.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nacre
from benchmarks.common import report, scoring
from benchmarks.common.filled_store import Filled, Way, embedder_for, filled, opened, queries_of
from benchmarks.common.labelled_sets import load
from benchmarks.common.paths import EVAL
from nacre.interfaces import RerankText
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.types.recipe import adjusted

TEXTS, TEXT_PIECES = 20, 60
ROUNDS = 15


def main() -> None:
    parser = report.parser(__doc__, "rerank")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument(
        "--sets", default="locomo,locomo-session,scifact,hotpotqa-1k,cosqa", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--few", default="4,6,10,30", help="numbers of texts for the cross-encoder to read (default: %(default)s)"
    )
    parser.add_argument("--questions", type=int, default=150, help="at most, of each set (default: %(default)s)")
    parser.add_argument("--ms", type=int, default=0, help="time limit; 0: none (default: %(default)s)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = [{"set": "the model alone", "reranked": TEXTS} | model_alone()]
    print(rows[-1], flush=True)
    for name in options.sets.split(","):
        labelled = load(options.data, name)
        with filled(labelled, "hybrid") as store:
            for way, recipe in ways(list(map(int, options.few.split(","))), options.ms).items():
                rows.append({"set": name, "reranked": way} | measured(store, recipe, options.questions))
                print(rows[-1], flush=True)
    report.write(options.name, {"Quality and time by the way of reranking": rows})


def ways(few: Sequence[int], milliseconds: int) -> dict[str, nacre.Recipe]:
    """Recipes by name. Without late interaction, the cross-encoder reads 30."""
    read = {f"MaxSim, then {each} read": {"rerank_few": each, "rerank_ms": milliseconds} for each in few}
    given: dict[str, dict[str, Any]] = {
        "no": {"maxsim_weight": 0, "rerank_weight": 0},
        "30 read": {"maxsim_weight": 0, "rerank_few": 30, "rerank_ms": milliseconds},
        "MaxSim": {"rerank_weight": 0},
        **read,
    }
    return {name: adjusted(nacre.Recipe(), **fields) for name, fields in given.items()}


def model_alone() -> dict[str, object]:
    model = NacreRerank()
    question = "where is the blue key of the old shed ?"  # every word is one piece
    taken = []
    for number in range(ROUNDS):
        texts = [RerankText(" ".join(["key"] * (TEXT_PIECES - 2) + [str(number), str(each)])) for each in range(TEXTS)]
        start = time.perf_counter()
        model.scores(question, texts)
        taken.append(1000 * (time.perf_counter() - start))
    return {"p50 ms": round(statistics.median(taken)), "p95 ms": round(max(taken[1:]))}


def measured(store: Filled, recipe: nacre.Recipe, questions: int) -> dict[str, object]:
    labelled = store.labelled
    chosen = replace(labelled, queries=tuple(queries_of(labelled, "choose")[:questions]))
    with opened(store.path, embedder_for(chosen, 0), store.clock) as memory:
        memory.search("warm", recipe=recipe)
        (answers,) = replace(store, labelled=chosen, memory=memory).answers([Way("hybrid", recipe)], "choose")
    scores = scoring.score(answers, labelled.qrels)
    return {
        "nDCG@10": round(scores.ndcg_10, 4),
        "R@5": round(scores.recall_5, 4),
        "p50 ms": round(scores.p50_ms),
        "p95 ms": round(scores.p95_ms),
    }


if __name__ == "__main__":
    main()
