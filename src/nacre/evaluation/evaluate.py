"""Questions whose answers are known, asked of a store: is the answer found, what loses it, would another recipe help?

The engine that asks them should keep no log, because nobody asked them. Only `apply` and `undo` write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from nacre.engine.engine import Nacre
from nacre.engine.explain import WhyNot
from nacre.errors import InvalidInput, NotFound
from nacre.evaluation import metrics
from nacre.evaluation.metrics import METRICS, Estimate
from nacre.evaluation.questions import JUDGED_MIN, Judged, Lines, Questions, Source, gathered, seeded
from nacre.query.lenses import NONE, Lens
from nacre.types.memory import Progress
from nacre.types.recipe import WEIGHTS, Recipe, adjusted, weights_of
from nacre.types.search import Filter, Hit, Mode, SearchRequest

Report: TypeAlias = Callable[[Progress], None]
Scores: TypeAlias = Mapping[str, float]  # of one question, by metric

TUNED = "tuned"  # the lens that keeps what was tuned
_EXAMPLES = 3  # of answers that were lost at one stage, each mode
_EXPLAINED_MAX = 100  # of them, each mode: to explain one takes as long as several searches
_EVERY_QUESTION = ("*",)  # what a lens looks for that every question selects
CHOSEN_BY = "nDCG@10"

_TUNED_MAX = 400  # questions; half of them choose, and the vectors of so many are cached
_ROUNDS = 2  # in which fields are tried again, each beside what the others became
_WORTH = 0.001  # of nDCG; a smaller gain is none
_VALUES: Mapping[str, tuple[float, ...]] = {
    "alpha": (0.1, 0.3, 0.5, 0.65, 0.75, 0.85, 0.95),
    "semantic_floor": (0.0, 0.1, 0.2, 0.3, 0.4),
    "echo_next": (0.0, 0.25, 0.5, 0.75),
    "echo_back": (0.0, 0.2, 0.4),
    "rerank_weight": (0.0, 0.1, 0.15, 0.25),
    "recency_weight": (0.0, 0.1, 0.3, 1.0),
    "bm25_k1": (0.5, 0.9, 1.5),
    "bm25_b": (0.4, 0.7, 1.0),
}


# ---------------------------------------------------------------- measuring


class Miss(NamedTuple):
    """An answer that was not given, and where it was lost."""

    query: str
    memory_id: str
    left_out: WhyNot


@dataclass(frozen=True, slots=True)
class Measured:
    """How one mode answered all questions. Of the answers it missed, at most a hundred are explained."""

    mode: Mode
    metrics: Mapping[str, Estimate]
    missed: int
    stages: Mapping[str, int]  # at which they were lost
    examples: tuple[Miss, ...]
    wrong: int  # memories that were given again though somebody found them wrong
    notes: tuple[str, ...]  # that every question got: they are about the store


class _Outcome(NamedTuple):
    """What one question got."""

    scores: Scores
    missed: tuple[str, ...]  # of each answer that was not given, the first memory
    wrong: int
    notes: frozenset[str]


def evaluate(
    memory: Nacre, questions: Questions, modes: Sequence[Mode], limit: int, seed: int, report: Report
) -> list[Measured]:
    """Every question asked in each mode, as a search asks it: a lens that selects itself acts here, too."""
    if not questions.judged:
        raise InvalidInput("questions", _none(questions))
    outcomes: dict[Mode, list[_Outcome]] = {mode: [] for mode in modes}
    explained: dict[Mode, list[Miss]] = {mode: [] for mode in modes}
    counted = _counting(report, len(questions.judged) * len(outcomes))
    for judged in questions.judged:
        for mode in outcomes:
            request = _request(judged, mode=mode, limit=limit)
            outcome = _asked(memory, judged, request)
            outcomes[mode].append(outcome)
            for memory_id in outcome.missed[: _EXPLAINED_MAX - len(explained[mode])]:
                explained[mode].append(Miss(judged.query, memory_id, memory.why_not(request, memory_id)))
            counted()
    return [_measured(mode, outcomes[mode], explained[mode], seed) for mode in outcomes]


def _none(questions: Questions) -> str:
    match questions.source:
        case "file":
            return "none has an answer among the live memories of its space; name ids or texts that are there"
        case "log":
            return "none is judged: open memories that a search gave (`nacre get`), or `nacre mark used` them"
        case "probes":
            return "there are no memories with words in this space; remember some first"


def _request(judged: Judged, **how: Any) -> SearchRequest:
    return SearchRequest(query=judged.query, where=Filter(spaces=(judged.space,)), as_of=judged.as_of, **how)


def _asked(memory: Nacre, judged: Judged, request: SearchRequest) -> _Outcome:
    result = memory.search(request)
    ranking = _ranking(result.hits, judged)
    return _Outcome(
        metrics.scores(ranking, {answer[0]: 1 for answer in judged.answers}),
        tuple(answer[0] for answer in judged.answers if answer[0] not in ranking),
        sum(hit.id in judged.wrong for hit in result.hits),
        frozenset(result.notes),
    )


def _ranking(hits: Sequence[Hit], judged: Judged) -> list[str]:
    """The answer that each hit gives, by its first memory; "" for none, and for one that was given before."""
    answer_of = {each: answer[0] for answer in judged.answers for each in answer}
    ranking: list[str] = []
    for hit in hits:
        given = [answer_of[each] for each in (hit.id, *hit.similar) if each in answer_of]
        ranking.append(next((each for each in given if each not in ranking), ""))
    return ranking


def _measured(mode: Mode, outcomes: Sequence[_Outcome], explained: Sequence[Miss], seed: int) -> Measured:
    stages: dict[str, int] = dict(Counter(each.left_out.stage for each in explained).most_common())
    return Measured(
        mode,
        _estimates([each.scores for each in outcomes], seed),
        sum(len(each.missed) for each in outcomes),
        stages,
        tuple(each for stage in stages for each in islice(_lost_at(stage, explained), _EXAMPLES)),
        sum(each.wrong for each in outcomes),
        tuple(sorted(frozenset[str].intersection(*(each.notes for each in outcomes)))),
    )


def _lost_at(stage: str, missed: Iterable[Miss]) -> Iterator[Miss]:
    return (each for each in missed if each.left_out.stage == stage)


def _estimates(scores: Sequence[Scores], seed: int) -> dict[str, Estimate]:
    return {name: metrics.estimate([each[name] for each in scores], seed) for name in METRICS}


def _counting(report: Report, total: int) -> Callable[[], None]:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        report(Progress(done, total))

    return count


# ---------------------------------------------------------------- tuning


class Attempt(NamedTuple):
    """One field of the recipe at another value, and nDCG@10 with it."""

    field: str
    value: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was tried on half of the questions, and what became of the best on the other half.

    `recipe` are the fields that differ from the usual ones; `after` and `difference` are empty where nothing is to be
    changed.
    """

    chosen_on: int
    held_out: int
    start: float  # nDCG@10 of the recipe in use, where the choice was made
    attempts: tuple[Attempt, ...]
    changes: Mapping[str, tuple[float, float]]  # by field: from, to
    recipe: Mapping[str, Any]
    before: Mapping[str, Estimate]
    after: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]

    @property
    def better(self) -> bool:
        """Whether it is on questions that nothing was chosen on, by more than chance."""
        return bool(self.difference) and self.difference[CHOSEN_BY].low > 0


def to_tune_on(memory: Nacre, space: str, source: Source | None, lines: Lines | None) -> Questions:
    """Judged questions of one space, enough of them to choose by."""
    if source == "probes":
        said = "probes have a memory's own words and say nothing of its age, so they favour some recipes"
        raise InvalidInput("from", f"{said}; tune on judged questions: file or log")
    found = gathered(memory, space, source or ("log" if lines is None else "file"), lines)
    judged = tuple(each for each in found.judged if each.space == space)
    if len(judged) < JUDGED_MIN:
        raise InvalidInput(
            "questions",
            f"{len(judged)} have a known answer in space {space}, and {JUDGED_MIN} are needed; give a file with "
            "questions and answers, or open what searches find (`nacre get`) or `nacre mark used` it, and tune later",
        )
    return replace(found, judged=judged, elsewhere=len(found.judged) - len(judged))


def tune(memory: Nacre, questions: Questions, seed: int, report: Report) -> Tuning:
    """Choose a recipe on half of the questions, and measure it on the other half."""
    start = _in_use(memory)
    mixed = seeded(seed).sample(questions.judged, min(len(questions.judged), _TUNED_MAX))
    half = len(mixed) // 2
    attempts_max = 1 + (1 + _ROUNDS) * sum(map(len, _VALUES.values()))
    counted = _counting(report, attempts_max * half + 2 * (len(mixed) - half))
    choosing = _Tried(memory, mixed[:half], counted)
    attempts = [
        Attempt(name, value, choosing.ndcg(_with(start, name, value))) for name, value in _neighbours(start, _VALUES)
    ]
    best = _climbed(choosing, start, attempts)
    holding = _Tried(memory, mixed[half:], counted)
    before, after = holding.scores(start), holding.scores(best)
    differences = [{name: new[name] - old[name] for name in METRICS} for old, new in zip(before, after, strict=True)]
    changed = _other(best, start)
    return Tuning(
        half,
        len(mixed) - half,
        choosing.ndcg(start),
        tuple(sorted(attempts, key=lambda each: -each.ndcg)),
        {name: (getattr(start, name), value) for name, value in changed.items()},
        _other(best, Recipe()),
        _estimates(before, seed),
        _estimates(after, seed) if changed else {},
        _estimates(differences, seed) if changed else {},
    )


class _Tried:
    """Recipes tried on questions. None is tried twice, and no lens acts."""

    def __init__(self, memory: Nacre, judged: Sequence[Judged], counted: Callable[[], None]) -> None:
        self._memory = memory
        self._judged = judged
        self._counted = counted
        self._known: dict[str, list[Scores]] = {}

    def scores(self, recipe: Recipe) -> list[Scores]:
        """Of each question."""
        if repr(recipe) not in self._known:
            self._known[repr(recipe)] = [self._asked(recipe, each) for each in self._judged]
        return self._known[repr(recipe)]

    def ndcg(self, recipe: Recipe) -> float:
        return sum(each[CHOSEN_BY] for each in self.scores(recipe)) / len(self._judged)

    def _asked(self, recipe: Recipe, judged: Judged) -> Scores:
        self._counted()
        return _asked(self._memory, judged, _request(judged, recipe=recipe, lens=NONE)).scores


def _climbed(tried: _Tried, start: Recipe, attempts: Sequence[Attempt]) -> Recipe:
    """From what is in use, field after field to its best value, those first that promise most."""
    promising = sorted(attempts, key=lambda each: -each.ndcg)
    gains = [each.field for each in promising if each.ndcg > tried.ndcg(start) + _WORTH]
    best = start
    for name in list(dict.fromkeys(gains)) * _ROUNDS:
        for _, value in _neighbours(best, {name: _VALUES[name]}):
            other = _with(best, name, value)
            if tried.ndcg(other) > tried.ndcg(best) + _WORTH:
                best = other
    return best


def _neighbours(recipe: Recipe, values: Mapping[str, Iterable[float]]) -> list[tuple[str, float]]:
    """The values that fields may have instead."""
    current = weights_of(recipe)
    return [(name, value) for name, several in values.items() for value in several if value != current[name]]


def _with(recipe: Recipe, name: str, value: Any) -> Recipe:
    return adjusted(recipe, **{name: value})


# ---------------------------------------------------------------- what was tuned


def apply(memory: Nacre, tuning: Tuning) -> None:
    """Make it what every search of the space uses, unless it names a lens, or another lens selects itself."""
    if not tuning.better:
        raise InvalidInput("tuning", "is not better; there is nothing to apply")
    if not tuning.recipe:  # the usual recipe is the better one
        memory.drop_lens(TUNED)
        return
    old, new = tuning.before[CHOSEN_BY].mean, tuning.after[CHOSEN_BY].mean
    said = f"Tuned: {CHOSEN_BY} {old:.3f} → {new:.3f} on {tuning.held_out} questions it was not chosen on"
    memory.save_lens(Lens(name=TUNED, description=said, recipe=tuning.recipe, questions=_EVERY_QUESTION))


def undo(memory: Nacre) -> None:
    """Search as usual again."""
    if _kept(memory) is None:
        raise NotFound((TUNED,), "nothing was tuned in this space", what="lens")
    memory.drop_lens(TUNED)


def _in_use(memory: Nacre) -> Recipe:
    kept = _kept(memory)
    changes = {} if kept is None else {name: kept.recipe[name] for name in WEIGHTS if name in kept.recipe}
    return adjusted(Recipe(), **changes)


def _kept(memory: Nacre) -> Lens | None:
    """What was tuned before. A lens of somebody else that has its name is not touched."""
    kept = next((each for each in memory.lenses() if each.name == TUNED), None)
    if kept is not None and kept != Lens(
        name=TUNED, description=kept.description, recipe=kept.recipe, questions=_EVERY_QUESTION
    ):
        raise InvalidInput("lens", f"{TUNED} is a lens of your own; save it under another name and delete it first")
    return kept


def _other(recipe: Recipe, than: Recipe) -> dict[str, Any]:
    """The weights in which a recipe is another."""
    others = weights_of(than)
    return {name: value for name, value in weights_of(recipe).items() if value != others[name]}
