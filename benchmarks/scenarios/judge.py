"""Judges what questions got. Everything is computed from labels, so that it can be checked with a pencil.

Means are over questions. A memory that is shown only as a near-duplicate of another is not shown. What a world does
not have is None: a class without stale memories has no pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from benchmarks.scenarios.worlds import Question

NOISE = 0.5  # of the quoted memories: below this share of useful ones a context is noisy
FAILURES = ("recall", "pairs", "context", "stale", "lost", "answered", "noise")


class Shown(NamedTuple):
    """A hit, by the label of its memory."""

    label: str
    relevance: float
    reasons: str


class ContextGiven(NamedTuple):
    """What a context holds. `superseded`: the quoted memories of which its text says that they no longer hold."""

    quoted: tuple[str, ...]
    superseded: frozenset[str]
    tokens: int
    nothing_answers: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What one question got from the search, best first, and from the context."""

    world: str
    class_name: str
    question: Question
    hits: tuple[Shown, ...]
    context: ContextGiven


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of a set of questions.

    recall_3, recall_5    share of the answers among the first hits; with `any`, 1 if one is there
    mrr                   1 / the place of the first answer; 0 where none is found
    pairs                 share of (answer, stale) pairs with the answer above; see `pairs`
    context_recall        share of the answers that the context quotes; `any` as above
    context_precision     share of the quoted memories that are answers or fine; an empty context of a question that
                          has answers counts as 0, so that silence never raises it
    context_tokens        mean size of the contexts of questions that have answers
    stale_in_context      share of the questions with stale memories whose context quotes one as if it still held
    abstention            share of the questions without answers whose context is empty or says that nothing answers
    lost                  the same share of the questions with answers
    auc                   how often the best relevance is higher for a question with answers than for one without;
                          ties count half
    """

    questions: int
    recall_3: float | None
    recall_5: float | None
    mrr: float | None
    pairs: float | None
    context_recall: float | None
    context_precision: float | None
    context_tokens: float | None
    stale_in_context: float | None
    abstention: float | None
    lost: float | None
    auc: float | None


def scores(asked: Sequence[Asked]) -> Scores:
    answerable = [each for each in asked if each.question.answerable]
    unanswerable = [each for each in asked if not each.question.answerable]
    updates = [each for each in asked if each.question.stale]
    won = [pair for each in updates for pair in pairs(each)]
    return Scores(
        questions=len(asked),
        recall_3=_mean(answerable, lambda each: recall(each, 3)),
        recall_5=_mean(answerable, lambda each: recall(each, 5)),
        mrr=_mean(answerable, reciprocal_rank),
        pairs=fmean(won) if won else None,
        context_recall=_mean(answerable, context_recall),
        context_precision=_mean(answerable, context_precision),
        context_tokens=_mean(answerable, lambda each: each.context.tokens),
        stale_in_context=_mean(updates, quotes_stale),
        abstention=_mean(unanswerable, lambda each: each.context.nothing_answers),
        lost=_mean(answerable, lambda each: each.context.nothing_answers),
        auc=auc([best_relevance(each) for each in answerable], [best_relevance(each) for each in unanswerable]),
    )


# ---------------------------------------------------------------- one question


def recall(asked: Asked, first: int) -> float:
    return _share_found(asked.question, [hit.label for hit in asked.hits[:first]])


def reciprocal_rank(asked: Asked) -> float:
    return next((1 / place for place, hit in enumerate(asked.hits, 1) if hit.label in asked.question.answers), 0.0)


def pairs(asked: Asked) -> list[bool]:
    """For each pair of an answer and a stale memory, whether the answer stands above.

    A stale memory that is not shown is below; an answer that is not shown has lost. Where one answer is enough, only
    the first of them is compared.
    """
    places = {hit.label: place for place, hit in enumerate(asked.hits)}
    beyond = len(asked.hits)
    answers = sorted(places.get(each, beyond) for each in asked.question.answers)
    compared = answers[:1] if asked.question.any else answers
    return [answer < places.get(stale, beyond) for answer in compared for stale in asked.question.stale]


def context_recall(asked: Asked) -> float:
    return _share_found(asked.question, asked.context.quoted)


def context_precision(asked: Asked) -> float:
    quoted, useful = asked.context.quoted, {*asked.question.answers, *asked.question.fine}
    return fmean(each in useful for each in quoted) if quoted else 0.0


def quotes_stale(asked: Asked) -> bool:
    """Whether the context quotes a stale memory and does not say that it is superseded."""
    return any(each in asked.context.quoted and each not in asked.context.superseded for each in asked.question.stale)


def best_relevance(asked: Asked) -> float:
    return max((hit.relevance for hit in asked.hits), default=0.0)


def failures(asked: Asked) -> list[str]:
    """What went wrong, as names from FAILURES."""
    if not asked.question.answerable:
        return [] if asked.context.nothing_answers else ["answered"]
    wrong = {
        "recall": recall(asked, 3) < 1,
        "pairs": not all(pairs(asked)),
        "context": context_recall(asked) < 1,
        "stale": quotes_stale(asked),
        "lost": asked.context.nothing_answers,
        "noise": bool(asked.context.quoted) and context_precision(asked) < NOISE,
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


def _share_found(question: Question, shown: Sequence[str]) -> float:
    found = [each in shown for each in question.answers]
    return float(any(found)) if question.any else fmean(found)


# ---------------------------------------------------------------- many questions


def auc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """The area under the ROC curve: how often one of `higher` exceeds one of `lower`, ties counting half."""
    if not higher or not lower:
        return None
    return fmean((one > other) + (one == other) / 2 for one in higher for other in lower)


def _mean(asked: Sequence[Asked], figure: Callable[[Asked], float]) -> float | None:
    return fmean(map(figure, asked)) if asked else None
