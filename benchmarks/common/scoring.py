"""Metrics of rankings per question, and bootstrap intervals of their means.

An interval holds 95 % of the means of resampled questions. Sets with the same questions (one text in eight languages)
are resampled together, because a question is equally hard in all of them.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.common.labelled_sets import Query
from nacre.evaluation.metrics import Grades, ndcg, recall, reciprocal_rank

METRICS: Mapping[str, Callable[[Sequence[str], Grades], float]] = {
    "R@5": partial(recall, k=5),
    "R@10": partial(recall, k=10),
    "nDCG@10": partial(ndcg, k=10),
    "MRR@10": partial(reciprocal_rank, k=10),
}
RESAMPLES = 2_000
ENDS = (2.5, 97.5)  # percentiles at the ends of an interval

Floats: TypeAlias = npt.NDArray[np.float64]


class Answer(NamedTuple):
    query_id: str
    documents: Sequence[str]  # best first
    seconds: float


@dataclass(frozen=True, slots=True)
class Scores:
    queries: int
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float
    p50_ms: float
    p95_ms: float


class Part(NamedTuple):
    """One metric of the questions of a set, or of one category of it."""

    ids: tuple[str, ...]
    values: Floats


class Figure(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Judged:
    """The answers to the questions of a set."""

    ids: tuple[str, ...]
    categories: tuple[str | None, ...]
    values: Mapping[str, Floats]  # by metric, one for each question
    milliseconds: Floats

    def part(self, metric: str) -> Part:
        return Part(self.ids, self.values[metric])

    def parts_by_category(self, metric: str) -> dict[str, Part]:
        """In alphabetical order. Empty where the set has no categories."""
        found = {}
        for category in sorted({each for each in self.categories if each is not None}):
            at = [place for place, each in enumerate(self.categories) if each == category]
            found[category] = Part(tuple(self.ids[place] for place in at), self.values[metric][at])
        return found


def judged(answers: Sequence[Answer], qrels: Mapping[str, Grades], queries: Sequence[Query] = ()) -> Judged:
    """Score the answers. `queries` are needed for the categories only."""
    categories = {query.id: query.category for query in queries}
    return Judged(
        tuple(answer.query_id for answer in answers),
        tuple(categories.get(answer.query_id) for answer in answers),
        {
            metric: np.array([judge(answer.documents, qrels[answer.query_id]) for answer in answers])
            for metric, judge in METRICS.items()
        },
        np.array([1000 * answer.seconds for answer in answers]),
    )


def score(answers: Sequence[Answer], qrels: Mapping[str, Grades]) -> Scores:
    found = judged(answers, qrels)
    p50_ms, p95_ms = latency(found)
    recall_5, recall_10, ndcg_10, mrr_10 = (float(found.values[metric].mean()) for metric in METRICS)
    return Scores(len(answers), recall_5, recall_10, ndcg_10, mrr_10, p50_ms, p95_ms)


def latency(found: Judged) -> tuple[float, float]:
    """The median and the 95th percentile in milliseconds."""
    taken = sorted(found.milliseconds.tolist())
    return statistics.median(taken), taken[int(len(taken) * 0.95)]


def figure(parts: Sequence[Part]) -> Figure:
    """The mean of the means of the parts: every part has the same weight."""
    resampled = np.mean([_resamples(part.ids) @ part.values for part in parts], axis=0)
    low, high = np.percentile(resampled, ENDS)
    return Figure(float(np.mean([part.values.mean() for part in parts])), float(low), float(high))


def difference(ours: Sequence[Part], theirs: Sequence[Part]) -> Figure:
    """By how much ours are higher than theirs, on the same questions."""
    return figure([Part(a.ids, a.values - b.values) for a, b in zip(ours, theirs, strict=True)])


@lru_cache(maxsize=32)
def _resamples(ids: tuple[str, ...]) -> Floats:
    """One row per resample: the share of each question in it. The same in every run."""
    seed = hashlib.sha256("\n".join(ids).encode()).digest()[:8]
    chance = np.random.default_rng(int.from_bytes(seed, "big"))
    return chance.multinomial(len(ids), np.full(len(ids), 1 / len(ids)), RESAMPLES) / len(ids)
