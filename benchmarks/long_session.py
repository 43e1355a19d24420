"""How long does remembering one more turn take in a long session that was given much?

    python -m benchmarks.long_session [--turns 1000 20000] [--remembered 200]

The turns are made-up words, embedded by hashing, so that the model's time does not hide that of the store. One search
for every twenty turns delivers ten memories to the session.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import nacre
from benchmarks.common import report
from nacre.embedders.hashing import Hashing

SESSION = "the session"
TURNS_A_SEARCH = 20
_WORDS = [
    f"{first}{last}" for first in "bcdfghklmnprst" for last in ("ana", "ero", "ila", "opa", "undi", "esti", "ume")
]


def turns(chance: Random) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"turn {number}: " + " ".join(chance.choices(_WORDS, k=chance.randint(8, 40)))


def measured(before: int, remembered: int) -> report.Row:
    """One row of the table, for a session that has this many turns already."""
    chance = Random(before)
    texts = turns(chance)
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "session.db", embedder=Hashing()) as memory:
        memory.remember_many(nacre.NewMemory(text=next(texts), session=SESSION) for _ in range(before))
        for _ in range(before // TURNS_A_SEARCH):
            memory.search(" ".join(chance.choices(_WORDS, k=5)), session=SESSION, rerank=False)
        memory.remember(next(texts), session=SESSION)  # reads what was delivered
        took = []
        for _ in range(remembered):
            text = next(texts)
            start = time.perf_counter()
            memory.remember(text, session=SESSION)
            took.append((time.perf_counter() - start) * 1000)
    return {
        "turns before": before,
        "searches before": before // TURNS_A_SEARCH,
        "median ms": round(statistics.median(took), 2),
        "p95 ms": round(statistics.quantiles(took, n=20)[-1], 2),
    }


def main() -> None:
    parser = report.parser(__doc__, "long_session")
    parser.add_argument("--turns", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--remembered", type=int, default=200)
    arguments = parser.parse_args()
    rows = [measured(each, arguments.remembered) for each in arguments.turns]
    report.write(arguments.name, {"Remembering one turn": rows})


if __name__ == "__main__":
    main()
