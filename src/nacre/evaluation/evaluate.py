"""Runs questions with known answers against a store, and reports metrics and where answers were lost.

Open the engine without a recall log: these questions must not enter it. Nothing here writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from nacre import validation
from nacre.engine.engine import Nacre
from nacre.engine.explain import WhyNot
from nacre.errors import InvalidInput
from nacre.evaluation import metrics
from nacre.evaluation.metrics import METRICS, Estimate
from nacre.evaluation.questions import JudgedQuestion, Questions
from nacre.types.memory import Progress
from nacre.types.recipe import USUAL_RECIPE, Recipe
from nacre.types.search import Filter, Hit, Mode, SearchRequest

Report: TypeAlias = Callable[[Progress], None]
Scores: TypeAlias = Mapping[str, float]  # of one question, by metric

_EXAMPLES = 3  # of missed answers per stage and mode
_EXPLAINED_MAX = 100  # missed answers per mode: each explanation takes as long as several searches


class Miss(NamedTuple):
    """An answer that a search did not return, and the stage at which it was lost."""

    query: str
    memory_id: str
    left_out: WhyNot


@dataclass(frozen=True, slots=True)
class ModeResult:
    """The results of one mode on all questions. At most 100 of the missed answers are explained."""

    mode: Mode
    metrics: Mapping[str, Estimate]
    missed: int
    stages: Mapping[str, int]  # missed answers by the stage that lost them
    examples: tuple[Miss, ...]
    wrong: int  # results that were marked as wrong before
    notes: tuple[str, ...]  # notes of every question, which are about the store


class _Outcome(NamedTuple):
    """The result of one question."""

    scores: Scores
    missed: tuple[str, ...]  # the first memory of each missed answer
    wrong: int
    notes: frozenset[str]


def evaluate(
    memory: Nacre,
    questions: Questions,
    modes: Sequence[str],
    limit: int,
    seed: int,
    report: Report,
    recipe: Recipe = USUAL_RECIPE,
) -> list[ModeResult]:
    """Run every question in each mode, as an ordinary search: lenses that the question selects apply here as well."""
    if not questions.judged:
        raise InvalidInput("questions", _no_questions(questions))
    outcomes: dict[Mode, list[_Outcome]] = {validation.mode(mode): [] for mode in modes}
    explained: dict[Mode, list[Miss]] = {mode: [] for mode in outcomes}
    count = progress_counter(report, len(questions.judged) * len(outcomes))
    for judged in questions.judged:
        for mode in outcomes:
            request = question_request(judged, recipe, mode=mode, limit=limit)
            outcome = run_question(memory, judged, request)
            outcomes[mode].append(outcome)
            for memory_id in outcome.missed[: _EXPLAINED_MAX - len(explained[mode])]:
                explained[mode].append(Miss(judged.query, memory_id, memory.why_not(request, memory_id)))
            count()
    return [_mode_result(mode, outcomes[mode], explained[mode], seed) for mode in outcomes]


def _no_questions(questions: Questions) -> str:
    match questions.source:
        case "file":
            return "none has an answer among the live memories of its space; give ids or texts that exist there"
        case "log":
            return (
                "none is judged; open memories that a search returned (`nacre get`), or mark them (`nacre mark used`)"
            )
        case "probes":
            return "there are no memories with words in this space; store some first"


def question_request(judged: JudgedQuestion, recipe: Recipe, **how: Any) -> SearchRequest:
    """The search for a question. Reranking has no time limit: the numbers must not depend on what else the machine
    does, nor on which scores an earlier search has left in the cache."""
    return SearchRequest(
        query=judged.query,
        where=Filter(spaces=(judged.space,)),
        as_of=judged.as_of,
        recipe=replace(recipe, rerank_ms=0),
        **how,
    )


def run_question(memory: Nacre, judged: JudgedQuestion, request: SearchRequest) -> _Outcome:
    result = memory.search(request)
    ranking = _ranking(result.hits, judged)
    return _Outcome(
        metrics.scores(ranking, {answer[0]: 1 for answer in judged.answers}),
        tuple(answer[0] for answer in judged.answers if answer[0] not in ranking),
        sum(hit.id in judged.wrong for hit in result.hits),
        frozenset(result.notes),
    )


def _ranking(hits: Sequence[Hit], judged: JudgedQuestion) -> list[str]:
    """For each hit, the first memory of its answer; "" if it is no answer, or if an earlier hit has the same answer."""
    answer_of = {each: answer[0] for answer in judged.answers for each in answer}
    ranking: list[str] = []
    for hit in hits:
        answers = [answer_of[each] for each in (hit.id, *hit.similar) if each in answer_of]
        ranking.append(next((each for each in answers if each not in ranking), ""))
    return ranking


def _mode_result(mode: Mode, outcomes: Sequence[_Outcome], explained: Sequence[Miss], seed: int) -> ModeResult:
    stages: dict[str, int] = dict(Counter(each.left_out.stage for each in explained).most_common())
    return ModeResult(
        mode,
        estimates([each.scores for each in outcomes], seed),
        sum(len(each.missed) for each in outcomes),
        stages,
        tuple(each for stage in stages for each in islice(_lost_at(stage, explained), _EXAMPLES)),
        sum(each.wrong for each in outcomes),
        tuple(sorted(frozenset[str].intersection(*(each.notes for each in outcomes)))),
    )


def _lost_at(stage: str, missed: Iterable[Miss]) -> Iterator[Miss]:
    return (each for each in missed if each.left_out.stage == stage)


def estimates(scores: Sequence[Scores], seed: int) -> dict[str, Estimate]:
    return {name: metrics.estimate([each[name] for each in scores], seed) for name in METRICS}


def progress_counter(report: Report, total: int) -> Callable[[], None]:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        report(Progress(done, total))

    return count
