"""How rankings are judged: question by question, and how far the means could be chance.

An interval holds 95 % of the means that come out when the questions are drawn anew from those that were asked. Sets
with the same questions (one text in eight languages) are drawn together, since their luck is the same.
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

from benchmarks.labelled import Grades, Query, ndcg, recall, reciprocal_rank

METRICS: Mapping[str, Callable[[Sequence[str], Grades], float]] = {
    "R@5": partial(recall, k=5),
    "R@10": partial(recall, k=10),
    "nDCG@10": partial(ndcg, k=10),
    "MRR@10": partial(reciprocal_rank, k=10),
}
DRAWS = 2_000
OUTSIDE = (2.5, 97.5)  # percentiles between which an interval lies

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
    """One metric of some questions: those of a set, or of a category of it."""

    ids: tuple[str, ...]
    values: Floats


class Figure(NamedTuple):
    mean: float
    low: float
    high: float

    @property
    def beyond_chance(self) -> bool:
        """As a difference: its sign is the same over the whole interval."""
        return self.low > 0 or self.high < 0


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
    """`queries` tell the categories."""
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
    """The median, and what one question in twenty takes at least; in milliseconds."""
    taken = sorted(found.milliseconds.tolist())
    return statistics.median(taken), taken[int(len(taken) * 0.95)]


def figure(parts: Sequence[Part]) -> Figure:
    """The mean over the parts, each counting the same, of the mean of each."""
    drawn = np.mean([_draws(part.ids) @ part.values for part in parts], axis=0)
    low, high = np.percentile(drawn, OUTSIDE)
    return Figure(float(np.mean([part.values.mean() for part in parts])), float(low), float(high))


def difference(ours: Sequence[Part], theirs: Sequence[Part]) -> Figure:
    """How far ours are above theirs on the same questions."""
    return figure([Part(a.ids, a.values - b.values) for a, b in zip(ours, theirs, strict=True)])


@lru_cache(maxsize=32)
def _draws(ids: tuple[str, ...]) -> Floats:
    """One row a draw: the share that each question has in it. The same in every run."""
    seed = hashlib.sha256("\n".join(ids).encode()).digest()[:8]
    chance = np.random.default_rng(int.from_bytes(seed, "big"))
    return chance.multinomial(len(ids), np.full(len(ids), 1 / len(ids)), DRAWS) / len(ids)


# ---------------------------------------------------------------- standings

GROUPS: Mapping[str, Sequence[str]] = {
    "conversation": ("locomo", "locomo-session"),
    "documents": ("scifact", "nfcorpus", "hotpotqa-1k"),
    "code": ("cosqa",),
    "languages": (
        *("jsquad-ja", "cmrc2018-zh", "autorag-ko"),
        *(f"xquad-{language}" for language in ("en", "zh", "es", "ar", "th", "hi", "ru", "de")),
    ),
}
SETS = tuple(name for names in GROUPS.values() for name in names)

Row: TypeAlias = Mapping[str, str]
Results: TypeAlias = Mapping[str, Mapping[str, Judged]]  # by set, then by contender


def groups_of(sets: Sequence[str]) -> dict[str, list[str]]:
    """The groups that were measured, and all sets together. What belongs to no group counts among all only."""
    if len(sets) == 1:
        return {}
    found = {f"mean, {name}": [each for each in sets if each in members] for name, members in GROUPS.items()}
    return {name: members for name, members in found.items() if members} | {"mean, all sets": list(sets)}


def lines_of(results: Results) -> dict[str, list[str]]:
    """What a table has a line for: each set, then each group of sets."""
    return {name: [name] for name in results} | groups_of(list(results))


def contenders_of(results: Results) -> list[str]:
    """All that are in any set, in the order they were given."""
    return list(dict.fromkeys(contender for found in results.values() for contender in found))


def parts_of(results: Results, sets: Sequence[str], contender: str, metric: str) -> list[Part] | None:
    """None where it did not answer one of the sets: such means are not comparable."""
    if any(contender not in results[name] for name in sets):
        return None
    return [results[name][contender].part(metric) for name in sets]


def matrix_rows(results: Results, metric: str) -> list[Row]:
    """Sets and contenders against each other, the longer side downwards. The best of each set is bold."""
    contenders, lines = contenders_of(results), lines_of(results)
    cells: dict[tuple[str, str], str] = {}
    for line, sets in lines.items():
        found = {each: parts_of(results, sets, each, metric) for each in contenders}
        means = {each: f"{figure(parts).mean:.4f}" for each, parts in found.items() if parts}
        best = max(means.values(), default="")
        cells |= {(line, each): f"**{mean}**" if mean == best else mean for each, mean in means.items()}
    if len(lines) >= len(contenders):
        return [{metric: line} | {each: cells.get((line, each), "") for each in contenders} for line in lines]
    return [{metric: each} | {line: cells.get((line, each), "") for line in lines} for each in contenders]


def figure_rows(results: Results, documents: Mapping[str, int]) -> list[Row]:
    rows: list[Row] = []
    for line, sets in lines_of(results).items():
        for contender in contenders_of(results):
            figures = figures_of(results, sets, contender)
            if figures is None:
                continue
            row = {"set": line, "documents": "", "questions": "", "found by": contender}
            row |= {metric: _with_error(each) for metric, each in figures.items()}
            if line in documents:
                found = results[line][contender]
                p50_ms, p95_ms = latency(found)
                row |= {"documents": f"{documents[line]:,}", "questions": f"{len(found.ids):,}"}
                row |= {"p50 ms": f"{p50_ms:.2f}", "p95 ms": f"{p95_ms:.2f}"}
            rows.append(row)
    return rows


def figures_of(results: Results, sets: Sequence[str], contender: str) -> dict[str, Figure] | None:
    found = {metric: parts_of(results, sets, contender, metric) for metric in METRICS}
    return {metric: figure(parts) for metric, parts in found.items() if parts} or None


def category_figures(found: Judged, metric: str) -> dict[str, Figure]:
    """Of each category, and the mean over them, in which a rare one counts as much as a common one."""
    parts = found.parts_by_category(metric)
    figures = {category: figure([part]) for category, part in parts.items()}
    return figures | ({"mean over categories": figure(list(parts.values()))} if parts else {})


def category_rows(results: Results) -> list[Row]:
    rows: list[Row] = []
    for name, by_contender in results.items():
        for contender, found in by_contender.items():
            figures = {metric: category_figures(found, metric) for metric in METRICS}
            for category in figures["nDCG@10"]:
                asked = sum(each == category for each in found.categories) or len(found.ids)
                row = {"set": name, "found by": contender, "category": category, "questions": f"{asked:,}"}
                rows.append(row | {metric: _with_error(figures[metric][category]) for metric in METRICS})
    return rows


def verdict_rows(results: Results, ours: str, rivals: Sequence[str], metric: str) -> list[Row]:
    """Ours against the best rival of each set. "Within error": the interval of the difference has 0 inside."""
    rows: list[Row] = []
    for line, sets in lines_of(results).items():
        found = {each: parts_of(results, sets, each, metric) for each in rivals}
        theirs = {each: parts for each, parts in found.items() if parts}
        own = parts_of(results, sets, ours, metric)
        if own is None or not theirs:
            continue
        means = {each: figure(parts).mean for each, parts in theirs.items()}
        best = max(means, key=means.__getitem__)
        ahead = difference(own, theirs[best])
        rows.append(
            {metric: line, ours: f"{figure(own).mean:.4f}", "best rival": best, "its": f"{means[best]:.4f}"}
            | {"ahead by": _signed(ahead), "95 %": f"{ahead.low:+.4f} to {ahead.high:+.4f}"}
            | {"best?": ("yes" if ahead.mean >= 0 else "NO") + ("" if ahead.beyond_chance else ", within error")}
        )
    return rows


def change_rows(results: Results, base: str, metric: str) -> list[Row]:
    """How far each contender is from `base`, in the mean of each group; * where that is more than chance."""
    columns = groups_of(list(results)) or lines_of(results)
    rows: list[Row] = []
    for contender in contenders_of(results):
        row = {f"{metric} against {base}": contender}
        for group, sets in columns.items():
            parts, based = (parts_of(results, sets, each, metric) for each in (contender, base))
            if parts and based:
                change = difference(parts, based)
                row[group] = _signed(change) + ("*" if change.beyond_chance else "")
        rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> str:
    """As Markdown that reads well as it is."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _with_error(found: Figure) -> str:
    return f"{found.mean:.4f} ± {(found.high - found.low) / 2:.3f}"


def _signed(found: Figure) -> str:
    return f"{found.mean:+.4f}"
