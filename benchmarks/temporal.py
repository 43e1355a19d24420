"""What to do with the time that a question names: nothing, a boost, or a restriction.

    python -m benchmarks.temporal [--data ../shared/eval] [--half report]

Only questions that name a time count, of conversations whose turns have dates, by keyword.
"""

from __future__ import annotations

import argparse
from datetime import UTC
from pathlib import Path

import nacre
from benchmarks import report
from benchmarks.filling import LIMIT, Filled, filled
from benchmarks.judging import Answer, score
from benchmarks.labelled import half, load
from nacre.query.dates import mentions
from nacre.types.memory import DEFAULT_SPACE

SETS = ("locomo", "locomo-session")
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--half", choices=["choose", "report", "all"], default="report")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in SETS:
        with filled(load(arguments.data, name), "keyword") as store:
            rows += [row(store, f"boost {weight:g}", answers(store, arguments.half, weight)) for weight in WEIGHTS]
            rows.append(row(store, "restriction", answers(store, arguments.half, None)))
    report.write("temporal", rows)


def answers(store: Filled, part: str, weight: float | None) -> list[Answer]:
    """A weight of None restricts to the time named."""
    given = []
    for query in store.labelled.queries:
        store.clock.ask(query.scope)
        named = mentions(query.text, store.clock(), UTC)
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
