"""How much processor time does an embedder take, on one thread?

    python -m benchmarks.embedders minilm onnx:DIR [--set xquad-en] [--name embedders]

Embedders take turns, in several rounds, and the least of each is kept: others that use the machine make it longer.
What endpoints compute is not seen. `python -m benchmarks.quality --embedder onnx:DIR` says how well one finds.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import report
from benchmarks.common.labelled_sets import load
from benchmarks.common.paths import EVAL
from nacre.config import embedders
from nacre.config.settings import EMBEDDER
from nacre.embedders.minilm import MiniLM
from nacre.interfaces import Embedder

QUESTIONS, PASSAGES, ROUNDS = 100, 60, 3


def fresh(name: str) -> Embedder:
    return MiniLM(threads=1) if name == EMBEDDER else embedders.foreign(name, 1)


def measured(name: str, questions: Sequence[str], passages: Sequence[str]) -> dict[str, float]:
    """Milliseconds of processor time."""
    embedder = fresh(name)
    start = time.process_time()
    embedder.embed_query("warm")
    loaded = time.process_time() - start
    each = []
    for question in questions:
        start = time.process_time()
        embedder.embed_query(question)
        each.append(time.process_time() - start)
    start = time.process_time()
    embedder.embed_passages(passages)
    taken = (time.process_time() - start) / len(passages)
    return {"loading": 1000 * loaded, "question": 1000 * statistics.median(each), "passage": 1000 * taken}


def main() -> None:
    parser = report.parser(__doc__, "embedders")
    parser.add_argument("embedders", nargs="+", help=f"{EMBEDDER}, or what the setting `embedder` names")
    parser.add_argument("--data", type=Path, default=EVAL, help="the folder of labelled sets (default: %(default)s)")
    parser.add_argument("--set", default="xquad-en", help="whose texts are embedded (default: %(default)s)")
    options = parser.parse_args()
    labelled = load(options.data, options.set)
    questions = [each.text for each in labelled.queries[:QUESTIONS]]
    passages = [each.text for each in labelled.documents[:PASSAGES]]
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(ROUNDS):
        for name in options.embedders:
            found[name].append(measured(name, questions, passages))
    rows = [
        {"embedder": fresh(name).fingerprint}
        | {f"{kind}, ms": f"{min(each[kind] for each in rounds):.1f}" for kind in ("loading", "question", "passage")}
        for name, rounds in found.items()
    ]
    words = statistics.mean(len(each.split()) for each in passages)
    note = f"Processor time on one thread: {len(questions)} questions and {len(passages)} passages of {options.set}, "
    report.write(
        options.name, {"Processor time": rows}, [f"{note}{words:.0f} words each, the least of {ROUNDS} rounds."]
    )


if __name__ == "__main__":
    main()
