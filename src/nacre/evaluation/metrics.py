"""How well does a ranking answer a question whose answers are known, and how sure is the mean of many?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Grades: TypeAlias = Mapping[str, int]  # by name of a document; above 0 is evidence

RESAMPLES = 2_000
_TAIL = 0.025  # on each side of an interval of 95 %


# ---------------------------------------------------------------- one question


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of the evidence that is among the first k."""
    evidence = {document for document, grade in grades.items() if grade > 0}
    return len(evidence.intersection(ranking[:k])) / len(evidence)


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """As trec_eval and BEIR compute it: the grade itself is the gain, discounted by log2(place + 1)."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return _discounted([grades.get(document, 0) for document in ranking[:k]]) / _discounted(best[:k])


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 / the place of the first evidence, 0 if there is none among the first k."""
    places = (place for place, document in enumerate(ranking[:k], 1) if grades.get(document, 0) > 0)
    return 1 / next(places, math.inf)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


_METRICS: Mapping[str, tuple[Callable[[Sequence[str], Grades, int], float], int]] = {
    "recall@5": (recall, 5),
    "recall@10": (recall, 10),
    "nDCG@10": (ndcg, 10),
    "MRR@10": (reciprocal_rank, 10),
}
METRICS: tuple[str, ...] = tuple(_METRICS)


def scores(ranking: Sequence[str], grades: Grades) -> dict[str, float]:
    """Every metric of one question, by name."""
    return {name: metric(ranking, grades, k) for name, (metric, k) in _METRICS.items()}


# ---------------------------------------------------------------- many questions


class Estimate(NamedTuple):
    """A mean, and the interval that holds 95 % of the means of other questions like these."""

    mean: float
    low: float
    high: float


def estimate(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> Estimate:
    """The mean with its percentile bootstrap interval; of differences question by question, a paired one.

    The same seed draws the same questions, whatever was measured of them.
    """
    drawn = random.Random(seed)  # noqa: S311 - nothing is kept secret by it, and it must repeat
    means = sorted(_mean(drawn.choices(values, k=len(values))) for _ in range(resamples))
    low = int(_TAIL * resamples)
    return Estimate(_mean(values), means[low], means[resamples - 1 - low])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)  # exact: gains and losses that cancel each other are 0, not nearly 0
