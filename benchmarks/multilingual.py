"""What does the multilingual model find by meaning alone, in a language and across languages, and what does it cost?

    python -m benchmarks.multilingual [--data ../shared/eval]

A document counts by its best passage. Passages are cut as the engine cuts them, for each model by its own pieces.
Across languages, the questions of one language are asked of the English paragraphs: the sets xquad-* are translations
of each other, with the same ids. Half of the questions is asked, on which nothing was chosen; of jsquad-ja the first
1000 of them. Times are processor time on one thread, the best of five passes, so that other work changes them little.

    python tools/build_use_multilingual.py --variant triples --out FOLDER
    python -m benchmarks.multilingual --variants FOLDER [FOLDER ...]

compares other forms of the word table with the shipped one, instead. The first folder is what cosines are to. `--cost`
measures speed, start and memory, instead.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common import report
from benchmarks.common.labelled_sets import LabelledSet, Query, half, load
from benchmarks.common.paths import EVAL
from nacre.analysis.chunking import split_passages
from nacre.embedders import use_multilingual
from nacre.embedders.minilm import MiniLM
from nacre.embedders.use_multilingual import UseMultilingual
from nacre.evaluation.metrics import ndcg

if TYPE_CHECKING:
    from nacre.interfaces import Embedder
    from nacre.types.memory import FloatMatrix

ENGLISH = "xquad-en"
SETS = (ENGLISH, *(f"xquad-{each}" for each in ("de", "es", "ru", "ar", "th", "zh", "hi")), "jsquad-ja", "autorag-ko")
QUESTIONS_MAX = 1000
RANKS = 10
PASSES = 5
FEW, SPEED_PASSAGES = 50, 500
MODELS: dict[str, Callable[[], Embedder]] = {
    "USE-multilingual": lambda: UseMultilingual(threads=1),
    "MiniLM": lambda: MiniLM(threads=1),
}


def main() -> None:
    parser = report.parser(__doc__, "multilingual")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=SETS, help="(default: all)")
    parser.add_argument("--sizes", nargs="*", type=int, default=[], help="also try passages of so many pieces")
    parser.add_argument("--variants", nargs="+", type=Path, help="folders of other forms of the model")
    parser.add_argument("--cost", action="store_true", help="measure speed, start and memory")
    parser.add_argument("--start", choices=list(MODELS), help="measure the start of this process, and no more")
    options = parser.parse_args()
    if options.start:
        start(options.start)
        return
    sets = [load(options.data, name) for name in options.sets]
    if options.variants:
        tables = {"Forms of the word table": variants(sets, options.variants)}
    elif options.cost:
        tables = {"Cost": [cost(name, sets) for name in MODELS]}
    else:
        tables = {"By meaning alone, nDCG@10": quality(sets, options.sizes)}
    report.write(options.name, tables)


def quality(sets: Sequence[LabelledSet], sizes: Sequence[int]) -> list[dict[str, object]]:
    model = UseMultilingual()
    rows: dict[str, dict[str, object]] = {labelled.name: {"set": labelled.name} for labelled in sets}
    for labelled in sets:
        coverage = (model.vocabulary_coverage(query.text) for query in questions(labelled))
        rows[labelled.name]["coverage of a question"] = f"{statistics.mean(coverage):.2f}"
    for size in (model.pieces_max, *sizes):
        english = None
        for labelled in sets:
            store = Passages(labelled, model, size)
            row = rows[labelled.name]
            row[f"{size} pieces"] = f"{store.ndcg(questions(labelled)):.3f}"
            if labelled.name == ENGLISH:
                english = store
            elif english and labelled.name.startswith("xquad-"):
                row[f"{size} pieces, on English"] = f"{english.ndcg(questions(labelled)):.3f}"
    return list(rows.values())


def variants(sets: Sequence[LabelledSet], folders: Sequence[Path]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    exact: list[FloatMatrix] = []
    for folder in (*folders, None):
        model = UseMultilingual(folder=folder)
        stores = {labelled.name: Passages(labelled, model, model.pieces_max) for labelled in sets}
        vectors = [store.vectors for store in stores.values()]
        exact = exact or vectors
        cosines = np.concatenate([(ours * theirs).sum(axis=1) for ours, theirs in zip(vectors, exact, strict=True)])
        foreign = [labelled for labelled in sets if labelled.name.startswith("xquad-") and labelled.name != ENGLISH]
        file = (folder or use_multilingual.installed() or Path()) / use_multilingual.MODEL
        rows.append(
            {
                "word table": folder.name if folder else "shipped",
                "file, MB": f"{file.stat().st_size / 1e6:.1f}",
                "mean cosine": f"{cosines.mean():.4f}",
                "least cosine": f"{cosines.min():.3f}",
                "same language": f"{statistics.mean(stores[each.name].ndcg(questions(each)) for each in sets):.4f}",
                "on English": f"{statistics.mean(stores[ENGLISH].ndcg(questions(each)) for each in foreign):.4f}",
            }
        )
    return rows


def questions(labelled: LabelledSet) -> list[Query]:
    return [query for query in labelled.queries if half(query.id) == "report"][:QUESTIONS_MAX]


class Passages:
    """The documents of a set as passages of at most `pieces` pieces, with their vectors."""

    def __init__(self, labelled: LabelledSet, model: Embedder, pieces: int) -> None:
        self._labelled = labelled
        self._model = model
        cut = [passages(model, document.text, pieces) for document in labelled.documents]
        self._first = np.cumsum([0, *map(len, cut[:-1])])
        self.vectors = model.embed_passages([each for several in cut for each in several])

    def ndcg(self, queries: Sequence[Query]) -> float:
        names = [document.id for document in self._labelled.documents]
        asked: FloatMatrix = np.stack([self._model.embed_query(query.text) for query in queries])
        best = np.maximum.reduceat(asked @ self.vectors.T, self._first, axis=1)
        found = []
        for query, cosines in zip(queries, best, strict=True):
            ranking = [names[row] for row in np.argsort(-cosines, kind="stable")[:RANKS]]
            found.append(ndcg(ranking, self._labelled.qrels[query.id], RANKS))
        return float(np.mean(found))


def passages(model: Embedder, text: str, pieces: int) -> list[str]:
    return [text[start:end] for start, end in split_passages(text, model.weigh(text), pieces)]


def cost(name: str, sets: Sequence[LabelledSet]) -> dict[str, object]:
    """In processor time, except the start of a process, which is measured in one of its own."""
    model = MODELS[name]()
    texts = [
        each
        for labelled in sets
        for document in labelled.documents[:100]
        for each in passages(model, document.text, model.pieces_max)
    ]
    texts = texts[:: max(1, len(texts) // SPEED_PASSAGES)][:SPEED_PASSAGES]
    asked = [query.text for labelled in sets for query in questions(labelled)[:FEW]]
    characters = sum(map(len, texts))
    model.embed_query(asked[0])
    bulk = min(taken(lambda: model.embed_passages(texts)) for _ in range(PASSES))
    alone = [min(taken(partial(model.embed_query, text)) for _ in range(PASSES)) for text in asked]
    pieces = sum(sum(weight for _, weight in model.weigh(text)) for text in texts)
    command = [sys.executable, "-m", "benchmarks.multilingual", "--start", name]
    starts = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(PASSES)]
    return {
        "model": name,
        "pieces/s": round(pieces / bulk),
        "characters/s": round(characters / bulk),
        "question, ms": f"{1000 * statistics.median(alone):.2f}",
        "first question, ms": min(float(each) for each, _ in starts),
        "MB more": min(float(each) for _, each in starts),
    }


def taken(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def start(name: str) -> None:
    """Print the processor time from before the model is loaded to the first vector, and the memory that it takes."""
    from nacre.runtime import native_packages

    native_packages.onnxruntime()
    before = resident()
    spent = taken(lambda: MODELS[name]().embed_query("Wo ist der Bahnhof?"))
    print(f"{1000 * spent:.0f} {resident() - before:.0f}")


def resident() -> float:
    """Megabytes of this process in memory, on Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
