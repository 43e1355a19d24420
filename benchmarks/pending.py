"""How well are memories ranked that have no vectors yet?

    python -m benchmarks.pending [--sets locomo scifact] [--documents 800] [--queries 100]

The first documents of a set, with those that answer its first questions, are remembered with vectors. Then a share of
the vectors is deleted at random, as if these memories had been remembered with `defer_embeddings`. Searches are not
reranked: what is measured is the fusion.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import apsw

from benchmarks.common import report
from benchmarks.common.filled_store import Filled, Way, embedder_for, filled, opened
from benchmarks.common.labelled_sets import LabelledSet, load
from benchmarks.common.paths import EVAL
from nacre.evaluation.metrics import ndcg
from nacre.types.recipe import Recipe

SHARES = (0.0, 0.1, 0.5, 1.0)
FUSION_ALONE = Recipe(maxsim_weight=0, rerank_weight=0)


def part_of(labelled: LabelledSet, documents: int, queries: int) -> LabelledSet:
    asked = labelled.queries[:queries]
    answering = {each for query in asked for each in labelled.qrels[query.id]}
    wanted = {None, *(query.scope for query in asked)}
    others = [each for each in labelled.documents if each.id not in answering and each.scope in wanted]
    kept = {each.id for each in others[: max(0, documents - len(answering))]} | answering
    return replace(labelled, documents=tuple(each for each in labelled.documents if each.id in kept), queries=asked)


def without_vectors(full: Filled, share: float, folder: Path) -> Path:
    """A copy of the store in which this share of the memories has no vectors."""
    path = folder / f"{share}.db"
    with apsw.Connection(str(full.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    db = apsw.Connection(str(path))
    chance = Random(5)
    gone = [(row,) for (row,) in db.execute("SELECT row FROM memories ORDER BY row") if chance.random() < share]
    with db:
        db.executemany("DELETE FROM passages WHERE row = ?", gone)
        db.executemany("UPDATE memories SET embedded = 0 WHERE row = ?", gone)
    db.close()
    return path


def measured(labelled: LabelledSet) -> list[report.Row]:
    rows: list[report.Row] = []
    with filled(labelled, "hybrid") as full:
        for share in SHARES:
            path = without_vectors(full, share, full.path.parent)
            with opened(path, embedder_for(labelled, 0), full.clock) as memory:
                (answers,) = replace(full, memory=memory).answers([Way("hybrid", FUSION_ALONE)])
            scores = [ndcg(each.documents, labelled.qrels[each.query_id], 10) for each in answers]
            rows.append(
                {
                    "set": labelled.name,
                    "without vectors": f"{share:.0%}",
                    "nDCG@10": round(sum(scores) / len(scores), 4),
                }
            )
    return rows


def main() -> None:
    parser = report.parser(__doc__, "pending")
    parser.add_argument("--data", type=Path, default=EVAL)
    parser.add_argument("--sets", nargs="+", default=["locomo", "scifact"])
    parser.add_argument("--documents", type=int, default=800)
    parser.add_argument("--queries", type=int, default=100)
    arguments = parser.parse_args()
    parts = [part_of(load(arguments.data, each), arguments.documents, arguments.queries) for each in arguments.sets]
    report.write(
        arguments.name, {"Searches among memories without vectors": [row for each in parts for row in measured(each)]}
    )


if __name__ == "__main__":
    main()
