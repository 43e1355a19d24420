"""Which index for nearest vectors is best: recall, search time, and the time to build it?

    python -m benchmarks.vector_search [--size 1000000] [--data ../shared/train]

Compared on the same vectors (benchmarks/common/population.py): a scan in 8 bits; an inverted file over k-means cells in
8 bits, probing more and more cells; HNSW over half precision and over 8 bits, with wider and wider searches. The best
hundred of each are compared again in full precision, as the store does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numkong
import numpy as np
import numpy.typing as npt

from benchmarks.common import report
from benchmarks.common.paths import TRAIN
from benchmarks.common.population import QUESTIONS, population
from nacre.runtime.native_packages import usearch_index
from nacre.storage.sqlite.index.segment_builder import quantised
from nacre.types.hnsw import USUAL_HNSW

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

FOUND = 100
WANTED = 10
CELLS = 2_048
TRAINED_PER_CELL = 64
ROUNDS = 8
PROBED = (16, 64, 128)
EXPANSIONS = (64, 128, 256)
_SLICE = 8_192

Row = dict[str, object]
Places = npt.NDArray[np.int64]
Search = Callable[["FloatVector"], Places]


def main() -> None:
    parser = report.parser(__doc__, "vector-search")
    parser.add_argument("--data", type=Path, default=TRAIN, help="folder of SQuAD and QMSum (default: %(default)s)")
    parser.add_argument("--size", type=int, default=1_000_000, help="number of vectors (default: %(default)s)")
    arguments = parser.parse_args()
    people = population(arguments.data, QUESTIONS)
    vectors = np.concatenate([vectors for _, vectors in people.memories(arguments.size)])
    asked = people.question_vectors[:200]
    exact = [_best(vectors @ question, WANTED) for question in asked]
    whole = quantised(vectors)
    rows: list[Row] = []

    def measure(way: str, built_s: float, search: Search) -> None:
        taken, shares = [], []
        for question, right in zip(asked, exact, strict=True):
            begun = time.perf_counter()
            found = search(question)
            taken.append(time.perf_counter() - begun)
            best = found[_best(vectors[found] @ question, WANTED)]
            shares.append(len(set(best.tolist()) & set(right.tolist())) / WANTED)
        rows.append(
            {
                "index": way,
                "build, s": round(built_s),
                "recall@10": f"{np.mean(shares):.3f}",
                "p50, ms": f"{1000 * float(np.median(taken)):.2f}",
            }
        )
        print(rows[-1])

    measure("scan, 8 bits", 0, lambda question: _best(_dots(whole, question), FOUND))
    begun = time.perf_counter()
    cells = Cells(vectors, whole)
    built = time.perf_counter() - begun
    for many in PROBED:
        measure(f"{many} of {CELLS} cells, 8 bits", built, partial(cells.near, many=many))
    for dtype, stored in (("f16", vectors.astype(np.float16)), ("i8", whole)):
        begun = time.perf_counter()
        graph = hnsw(dtype, stored)
        built = time.perf_counter() - begun
        for expansion in EXPANSIONS:
            graph.expansion_search = expansion
            measure(f"HNSW {dtype}, width {expansion}", built, _graph_search(graph, dtype))
    report.write(arguments.name, {f"{arguments.size:,} vectors": rows})


class Cells:
    """An inverted file: vectors grouped by the nearest of the k-means centroids."""

    def __init__(self, vectors: FloatMatrix, whole: npt.NDArray[np.int8]) -> None:
        rng = np.random.default_rng(7)
        sample = vectors[rng.choice(len(vectors), min(len(vectors), CELLS * TRAINED_PER_CELL), replace=False)]
        self._centroids = sample[:CELLS].copy()
        for _ in range(ROUNDS):
            own = self._nearest_centroid(sample)
            sums = np.zeros_like(self._centroids)
            np.add.at(sums, own, sample)
            self._centroids = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        own = self._nearest_centroid(vectors)
        self._order = np.argsort(own, kind="stable")
        self._begin = np.searchsorted(own[self._order], np.arange(CELLS + 1))
        self._whole = whole[self._order]

    def near(self, question: FloatVector, many: int) -> Places:
        cells = np.argpartition(-(self._centroids @ question), many)[:many]
        places = np.concatenate([np.arange(self._begin[cell], self._begin[cell + 1]) for cell in np.sort(cells)])
        found: Places = self._order[places[_best(_dots(self._whole[places], question), FOUND)]]
        return found

    def _nearest_centroid(self, vectors: FloatMatrix) -> Places:
        parts = range(0, len(vectors), _SLICE)
        return np.concatenate([np.argmax(vectors[at : at + _SLICE] @ self._centroids.T, axis=1) for at in parts])


def hnsw(dtype: str, stored: npt.NDArray[Any]) -> Any:
    graph = usearch_index()(
        ndim=stored.shape[1],
        metric="cos",
        dtype=dtype,
        connectivity=USUAL_HNSW.connectivity,
        expansion_add=USUAL_HNSW.expansion_add,
    )
    for start in range(0, len(stored), _SLICE):
        part = stored[start : start + _SLICE]
        graph.add(np.arange(start, start + len(part), dtype=np.uint64), part)
    return graph


def _graph_search(graph: Any, dtype: str) -> Search:
    def search(question: FloatVector) -> Places:
        asked = quantised(question[None])[0] if dtype == "i8" else question.astype(np.float16)
        found: Places = graph.search(asked, FOUND).keys.astype(np.int64)
        return found

    return search


def _dots(whole: npt.NDArray[np.int8], question: FloatVector) -> FloatVector:
    products: FloatVector = np.array(numkong.cdist(quantised(question[None]), whole, metric="dot"), np.float32)
    return products.reshape(len(whole))


def _best(scores: Sequence[float] | FloatVector, many: int) -> Places:
    return np.argpartition(-np.asarray(scores), min(many, len(scores) - 1))[:many]


if __name__ == "__main__":
    main()
