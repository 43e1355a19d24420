"""Searches for a better recipe on questions with known answers, and applies it as a lens.

Half of the questions choose the recipe, the other half tests it. Open the engine without a recall log: these
questions must not enter it. Only `apply` and `undo` write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nacre.analysis.wording import counted
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.evaluation.evaluate import Report, Scores, estimates, progress_counter, question_request, run_question
from nacre.evaluation.metrics import METRICS, Estimate, seeded_random
from nacre.evaluation.questions import (
    JUDGED_MIN,
    JudgedQuestion,
    Lines,
    Questions,
    Source,
    load_questions,
)
from nacre.query.lenses import NONE, Lens
from nacre.types.recipe import WEIGHTS, Recipe, adjusted, weights_of

TUNED = "tuned"  # the name of the lens that holds the tuned recipe
TARGET_METRIC = "nDCG@10"
_EVERY_QUESTION = ("*",)  # the trigger of a lens that every question selects
_TUNED_MAX = 400  # questions; half of them choose the recipe, and the vectors of that many are cached
_ROUNDS = 2  # of the hill climb: the best value of a field may depend on the others
_GAIN_MIN = 0.001  # of nDCG; smaller gains are ignored
_VALUES: Mapping[str, tuple[float, ...]] = {
    "alpha": (0.1, 0.3, 0.5, 0.65, 0.75, 0.85, 0.95),
    "semantic_floor": (0.0, 0.1, 0.2, 0.3, 0.4),
    "echo_next": (0.0, 0.25, 0.5, 0.75),
    "echo_back": (0.0, 0.2, 0.4),
    "maxsim_weight": (0.0, 2.0, 4.0, 8.0),
    "rerank_weight": (0.0, 0.1, 0.2, 0.3),
    "recency_weight": (0.0, 0.1, 0.3, 1.0),
    "bm25_k1": (0.5, 0.9, 1.5),
    "bm25_b": (0.4, 0.7, 1.0),
}


class Attempt(NamedTuple):
    """One field of the recipe with another value, and the resulting nDCG@10."""

    field: str
    value: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The attempts on half of the questions, and the best recipe's results on the other half.

    `recipe` holds the fields that differ from the default recipe. `after` and `difference` are empty if nothing should
    change.
    """

    chosen_on: int
    held_out: int
    start: float  # nDCG@10 of the current recipe on the first half
    attempts: tuple[Attempt, ...]
    changes: Mapping[str, tuple[float, float]]  # by field: from, to
    recipe: Mapping[str, Any]
    before: Mapping[str, Estimate]
    after: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]

    @property
    def better(self) -> bool:
        """Whether the recipe is significantly better on the held-out questions."""
        return bool(self.difference) and self.difference[TARGET_METRIC].low > 0


def tuning_questions(memory: Nacre, space: str, source: Source | None, lines: Lines | None) -> Questions:
    """The judged questions of one space; raises InvalidInput if there are fewer than JUDGED_MIN."""
    if source == "probes":
        raise InvalidInput(
            "from",
            "is probes, which are made of a memory's own words regardless of its age and so favour some recipes; "
            "tune on judged questions: file or log",
        )
    found = load_questions(memory, space, source or ("log" if lines is None else "file"), lines)
    judged = tuple(each for each in found.judged if each.space == space)
    if len(judged) < JUDGED_MIN:
        raise InvalidInput(
            "questions",
            f"{counted(len(judged), 'has', 'have')} a known answer in space {space}, and {JUDGED_MIN} are needed; give "
            "a file with questions and answers, or open results (`nacre get`) or mark them (`nacre mark used`), and "
            "tune later",
        )
    return replace(found, judged=judged, elsewhere=len(found.judged) - len(judged))


def tune(memory: Nacre, questions: Questions, seed: int, report: Report) -> TuneResult:
    """Choose a recipe on half of the questions, and test it on the other half."""
    start = _current_recipe(memory)
    sample = seeded_random(seed).sample(questions.judged, min(len(questions.judged), _TUNED_MAX))
    half = len(sample) // 2
    attempts_max = 1 + (1 + _ROUNDS) * sum(map(len, _VALUES.values()))
    count = progress_counter(report, attempts_max * half + 2 * (len(sample) - half))
    chooser = _RecipeScores(memory, sample[:half], count)
    attempts = [
        Attempt(name, value, chooser.ndcg(_with(start, name, value))) for name, value in _alternatives(start, _VALUES)
    ]
    best = _hill_climb(chooser, start, attempts)
    tester = _RecipeScores(memory, sample[half:], count)
    before, after = tester.scores(start), tester.scores(best)
    differences = [{name: new[name] - old[name] for name in METRICS} for old, new in zip(before, after, strict=True)]
    changed = _changed_fields(best, start)
    return TuneResult(
        half,
        len(sample) - half,
        chooser.ndcg(start),
        tuple(sorted(attempts, key=lambda each: -each.ndcg)),
        {name: (getattr(start, name), value) for name, value in changed.items()},
        _changed_fields(best, Recipe()),
        estimates(before, seed),
        estimates(after, seed) if changed else {},
        estimates(differences, seed) if changed else {},
    )


class _RecipeScores:
    """The scores of recipes on a set of questions, without lenses. Each recipe is evaluated once."""

    def __init__(self, memory: Nacre, judged: Sequence[JudgedQuestion], count: Callable[[], None]) -> None:
        self._memory = memory
        self._judged = judged
        self._count = count
        self._scores: dict[str, list[Scores]] = {}

    def scores(self, recipe: Recipe) -> list[Scores]:
        """The scores of each question."""
        if repr(recipe) not in self._scores:
            self._scores[repr(recipe)] = [self._evaluate(recipe, each) for each in self._judged]
        return self._scores[repr(recipe)]

    def ndcg(self, recipe: Recipe) -> float:
        return sum(each[TARGET_METRIC] for each in self.scores(recipe)) / len(self._judged)

    def _evaluate(self, recipe: Recipe, judged: JudgedQuestion) -> Scores:
        self._count()
        return run_question(self._memory, judged, question_request(judged, recipe, lens=NONE)).scores


def _hill_climb(tried: _RecipeScores, start: Recipe, attempts: Sequence[Attempt]) -> Recipe:
    """Hill climbing from the current recipe: one field at a time to its best value, the most promising first."""
    promising = sorted(attempts, key=lambda each: -each.ndcg)
    gains = [each.field for each in promising if each.ndcg > tried.ndcg(start) + _GAIN_MIN]
    best = start
    for name in list(dict.fromkeys(gains)) * _ROUNDS:
        for _, value in _alternatives(best, {name: _VALUES[name]}):
            other = _with(best, name, value)
            if tried.ndcg(other) > tried.ndcg(best) + _GAIN_MIN:
                best = other
    return best


def _alternatives(recipe: Recipe, values: Mapping[str, Iterable[float]]) -> list[tuple[str, float]]:
    """The fields with the other values to try."""
    current = weights_of(recipe)
    return [(name, value) for name, several in values.items() for value in several if value != current[name]]


def _with(recipe: Recipe, name: str, value: Any) -> Recipe:
    return adjusted(recipe, **{name: value})


# ---------------------------------------------------------------- the tuned lens


def apply(memory: Nacre, tuning: TuneResult) -> None:
    """Save the recipe as a lens for every search of the space that has no other lens."""
    if not tuning.better:
        raise InvalidInput("tuning", "is not better; there is nothing to apply")
    if not tuning.recipe:  # the default recipe is the better one
        memory.drop_lens(TUNED)
        return
    old, new = tuning.before[TARGET_METRIC].mean, tuning.after[TARGET_METRIC].mean
    description = f"Tuned: {TARGET_METRIC} {old:.3f} → {new:.3f} on {tuning.held_out} held-out questions"
    memory.save_lens(Lens(name=TUNED, description=description, recipe=tuning.recipe, questions=_EVERY_QUESTION))


def undo(memory: Nacre) -> None:
    """Delete the tuned lens."""
    if _tuned_lens(memory) is None:
        raise NotFound((TUNED,), "nothing was tuned in this space", what="lens")
    memory.drop_lens(TUNED)


def _current_recipe(memory: Nacre) -> Recipe:
    lens = _tuned_lens(memory)
    changes = {} if lens is None else {name: lens.recipe[name] for name in WEIGHTS if name in lens.recipe}
    return adjusted(Recipe(), **changes)


def _tuned_lens(memory: Nacre) -> Lens | None:
    """The lens of an earlier tuning. Raises InvalidInput for a user's own lens of the same name."""
    lens = next((each for each in memory.lenses() if each.name == TUNED), None)
    if lens is not None and lens != Lens(
        name=TUNED, description=lens.description, recipe=lens.recipe, questions=_EVERY_QUESTION
    ):
        raise InvalidInput("lens", f"{TUNED} is a lens of your own; save it under another name and delete it first")
    return lens


def _changed_fields(recipe: Recipe, other: Recipe) -> dict[str, Any]:
    """The weights in which a recipe differs from another, with their values."""
    others = weights_of(other)
    return {name: value for name, value in weights_of(recipe).items() if value != others[name]}
