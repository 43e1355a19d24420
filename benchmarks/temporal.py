"""What should a search do with a time that the question names: ignore it, boost memories of that time, or filter?

    python -m benchmarks.temporal [--data ../shared/eval] [--half report]

Measured by keyword on the questions that name a time, of conversations whose turns have dates.
"""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import nacre
from benchmarks.common import report
from benchmarks.common.filled_store import LIMIT, Filled, filled
from benchmarks.common.labelled_sets import half, load
from benchmarks.common.paths import EVAL
from benchmarks.common.scoring import Answer, score
from nacre.query.dates import find_mentions
from nacre.types.memory import DEFAULT_SPACE

SETS = ("locomo", "locomo-session")
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)


def main() -> None:
    parser = report.parser(__doc__, "temporal")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--half", choices=["choose", "report", "all"], default="report", help="which questions to ask")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in SETS:
        with filled(load(arguments.data, name), "keyword") as store:
            rows += [row(store, f"boost {weight:g}", answers(store, arguments.half, weight)) for weight in WEIGHTS]
            rows.append(row(store, "filter", answers(store, arguments.half, None)))
    report.write(arguments.name, {"Questions that name a time": rows})


def answers(store: Filled, part: str, weight: float | None) -> list[Answer]:
    """With a weight of None the named time is a filter."""
    given = []
    for query in store.labelled.queries:
        store.clock.ask(query.scope)
        named = find_mentions(query.text, store.clock(), UTC)
        if not named or part not in ("all", half(query.id)):
            continue
        period = named[0].period
        where = nacre.Filter(
            spaces=[query.scope or DEFAULT_SPACE],
            created_from=period.start if weight is None else None,
            created_until=period.end if weight is None else None,
        )
        recipe = nacre.Recipe(temporal_weight=weight or 0)
        hits = store.memory.search(query.text, mode="keyword", limit=LIMIT, where=where, recipe=recipe).hits
        given.append(Answer(query.id, [each for hit in hits for each in store.documents[hit.id]], 0.0))
    return given


def row(store: Filled, label: str, given: list[Answer]) -> dict[str, object]:
    scores = score(given, store.labelled.qrels)
    return {
        "set": store.labelled.name,
        "questions": scores.queries,
        "time named": label,
        "R@5": f"{scores.recall_5:.4f}",
        "R@10": f"{scores.recall_10:.4f}",
        "nDCG@10": f"{scores.ndcg_10:.4f}",
    }


if __name__ == "__main__":
    main()
