"""Ranking metrics for questions with known answers, and bootstrap intervals of their means."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Grades: TypeAlias = Mapping[str, int]  # by document; a grade above 0 is relevant

RESAMPLES = 2_000
_TAIL = 0.025  # on each side of a 95 % interval


# ---------------------------------------------------------------- one question


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of the relevant documents among the first k."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant)


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """As trec_eval and BEIR compute it: the gain is the grade itself, discounted by log2(rank + 1)."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return _discounted([grades.get(document, 0) for document in ranking[:k]]) / _discounted(best[:k])


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 / the rank of the first relevant document, or 0 if there is none among the first k."""
    ranks = (rank for rank, document in enumerate(ranking[:k], 1) if grades.get(document, 0) > 0)
    return 1 / next(ranks, math.inf)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


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
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def seeded_random(seed: int) -> random.Random:
    """A random generator that repeats its values for the same seed."""
    return random.Random(seed)  # noqa: S311 - not for secrets, and it must be repeatable


def estimate(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> Estimate:
    """The mean with its percentile bootstrap interval. For differences per question, this is a paired bootstrap.

    The same seed draws the same questions for every metric.
    """
    drawn = seeded_random(seed)
    means = sorted(_mean(drawn.choices(values, k=len(values))) for _ in range(resamples))
    low = int(_TAIL * resamples)
    return Estimate(_mean(values), means[low], means[resamples - 1 - low])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)  # exact, so that gains and losses that cancel out give 0
