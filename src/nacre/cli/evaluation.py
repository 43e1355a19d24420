"""Commands that measure and tune search quality: eval, tune."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import click

from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, lines_of, opened, recipe_fields, settings_of, to_recipe
from nacre.errors import InvalidInput
from nacre.evaluation import evaluate, questions
from nacre.evaluation import tune as tuner
from nacre.evaluation.evaluate import ModeResult
from nacre.evaluation.metrics import METRICS, Estimate
from nacre.evaluation.questions import Lines, Questions, Source
from nacre.evaluation.tune import TuneResult
from nacre.query.lexer import preview
from nacre.serialization import evaluation
from nacre.types.recipe import USUAL_RECIPE
from nacre.types.search import Mode, SearchRequest

_LIMIT = SearchRequest(query="").limit
_SHOWN = 10  # how many recipes, and questions without an answer, are listed
_COLUMN = 21  # three of them fit into 80 columns


def _questions(command: Any) -> Any:
    """The source of the questions, FILE or --from, and the seed of all random choices."""
    for decorate in (
        common,
        click.option("--seed", type=int, default=questions.SEED, show_default=True, help="Seed of all random choices."),
        click.option(
            "--from",
            "source",
            type=click.Choice(get_args(Source)),
            help="Source of the questions; default: FILE if given.",
        ),
        click.argument("file", required=False, type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def _lines_of(file: Path | None) -> AbstractContextManager[Lines | None]:
    return nullcontext() if file is None else lines_of(file)


# ---------------------------------------------------------------- eval


@nacre.command("eval")
@_questions
@click.option("--mode", "modes", metavar="MODE", multiple=True, help="Only this mode. Repeatable.")
@click.option("--limit", type=int, default=_LIMIT, show_default=True, help="Hits per question.")
@click.option("--sample", type=int, metavar="NUMBER", help="Number of questions, drawn at random.")
@recipe_fields
@click.pass_context
def eval_(
    context: click.Context,
    /,
    file: Path | None,
    source: Any,
    seed: int,
    modes: Any,
    limit: int,
    sample: int | None,
    recipe: tuple[str, ...],
) -> None:
    """Measure search quality. Asks questions with known answers, and counts which stage drops missed answers.

    FILE has one question per line: {"query": …, "ids": […]}, {"query": …, "answer": "text"}, or query, tab, id.
    """
    space, weights = settings_of(context).space.value, to_recipe(recipe) or USUAL_RECIPE
    with _lines_of(file) as lines, opened(context, log=False) as memory, render.progress("searching") as bar:
        asked = questions.load_questions(memory, space, source, lines, sample=sample, seed=seed)
        measured = evaluate.evaluate(memory, asked, modes or get_args(Mode), limit, seed, bar, weights)
    answer(context, evaluation.report(asked, measured), _report_lines(asked, measured))


def _report_lines(asked: Questions, measured: Sequence[ModeResult]) -> Iterator[render.Line]:
    yield _about_line(asked, len(asked.judged))
    yield from _left_out_lines(asked)
    yield []
    yield _row("", [each.mode for each in measured], "bold")
    for name in METRICS:
        yield _row(name, [_interval(each.metrics[name]) for each in measured])
    yield _row("missed", [f"{each.missed:,}" for each in measured])
    for stage in dict.fromkeys(stage for each in measured for stage in each.stages):
        yield _row(f"  {stage}", [f"{each.stages.get(stage, 0):,}" for each in measured], "dim")
    if any(each.wrong for each in measured):
        yield _row("marked wrong", [f"{each.wrong:,}" for each in measured])
    for each in measured[-1].examples:
        yield []
        yield [(each.left_out.stage, "bold"), (f"  {preview(each.query)}  ", ""), (each.memory_id, "cyan")]
        yield [render.INDENT, (f"{each.left_out.explanation}; to include it: {each.left_out.remedy}", "dim")]
    for note in dict.fromkeys(note for each in measured for note in each.notes):
        yield [(f"note: {note}", "dim")]


def _about_line(asked: Questions, number: int) -> render.Line:
    noun = "probe" if asked.source == "probes" else "question"
    count, named = counted(number, noun).split(" ", 1)
    return [(f"{count} ", "bold"), (named + evaluation.ABOUT[asked.source].removeprefix(f"{noun}s"), "")]


def _left_out_lines(asked: Questions) -> Iterator[render.Line]:
    if asked.unanswered:
        named = "; ".join(preview(each) for each in islice(asked.unanswered, _SHOWN))
        more = "; …" if len(asked.unanswered) > _SHOWN else ""
        yield [(f"skipped, no live memory of the space answers them: {named}{more}", "dim")]
    if asked.elsewhere:
        yield [(f"skipped, they are about other spaces: {asked.elsewhere:,}", "dim")]


def _row(name: str, cells: Sequence[str], style: str = "") -> render.Line:
    return [(f"{name:<13}", "dim"), ("".join(f"{cell:<{_COLUMN}}" for cell in cells).rstrip(), style)]


def _interval(estimate: Estimate) -> str:
    return f"{estimate.mean:.3f} ({estimate.low:.3f}–{estimate.high:.3f})"


# ---------------------------------------------------------------- tune


@nacre.command()
@_questions
@click.option("--apply", "apply_", is_flag=True, help="If a better recipe is found, use it for searches of this space.")
@click.option("--undo", is_flag=True, help="Return to the default recipe.")
@click.pass_context
def tune(context: click.Context, /, file: Path | None, source: Any, seed: int, apply_: bool, undo: bool) -> None:
    """Look for a better recipe. Selects it on half of the questions, and verifies it on the other half.

    FILE is as for `eval`. Without --apply, nothing is written.
    """
    if undo:
        if file is not None or source is not None or apply_:
            raise InvalidInput("undo", "removes what was applied; omit FILE, --from and --apply")
        with opened(context, log=False) as memory:
            tuner.undo(memory)
        answer(context, {"undone": True}, [[("searches of this space use the default recipe again", "")]])
        return
    space = settings_of(context).space.value
    with _lines_of(file) as lines, opened(context, log=False) as memory, render.progress("trying recipes") as bar:
        asked = tuner.tuning_questions(memory, space, source, lines)
        tuning = tuner.tune(memory, asked, seed, bar)
        applied = apply_ and tuning.better
        if applied:
            tuner.apply(memory, tuning)
    encoded = asdict(tuning) | {
        "source": asked.source,
        "about": evaluation.ABOUT[asked.source],
        "unanswered": list(asked.unanswered),
        "elsewhere": asked.elsewhere,
        "attempts": [each._asdict() for each in tuning.attempts],
        "changes": {name: {"from": old, "to": new} for name, (old, new) in tuning.changes.items()},
        **{name: evaluation.estimates(getattr(tuning, name)) for name in ("before", "after", "difference")},
        "better": tuning.better,
        "applied": applied,
    }
    answer(context, encoded, _tuning_lines(asked, tuning, applied))


def _tuning_lines(asked: Questions, tuning: TuneResult, applied: bool) -> Iterator[render.Line]:
    yield _about_line(asked, tuning.chosen_on + tuning.held_out)
    yield from _left_out_lines(asked)
    gains = [each for each in tuning.attempts if each.ndcg > tuning.start]
    gained = f"{len(gains)} of {len(tuning.attempts)} changes {'improves' if len(gains) == 1 else 'improve'} it"
    yield [(f"selection half: {tuner.TARGET_METRIC} {tuning.start:.3f} with the recipe in use; {gained}", "")]
    for each in gains[:_SHOWN]:
        yield [render.INDENT, (f"{each.ndcg:.3f}  {each.ndcg - tuning.start:+.3f}  {each.field} {each.value:g}", "")]
    if not tuning.changes:
        yield [("no change improves on the recipe in use", "bold")]
        return
    combined = ", ".join(f"{name} {old:g} → {new:g}" for name, (old, new) in tuning.changes.items())
    yield [("combined: ", ""), (combined, "bold")]
    yield [("verification half:", "")]
    yield _row("", ["before", "after", "difference"], "bold")
    for name in METRICS:
        cells = [_interval(each[name]) for each in (tuning.before, tuning.after)]
        change = tuning.difference[name]
        yield _row(name, [*cells, f"{change.mean:+.3f} ({change.low:+.3f} to {change.high:+.3f})"])
    yield [(_verdict(tuning, applied), "bold")]


def _verdict(tuning: TuneResult, applied: bool) -> str:
    if tuning.difference[tuner.TARGET_METRIC].high < 0:
        return f"not confirmed: {tuner.TARGET_METRIC} is worse on the verification half. The recipe in use stays"
    if not tuning.better:
        return f"not confirmed: the interval of {tuner.TARGET_METRIC} includes 0. The recipe in use stays"
    if not applied:
        return "confirmed; --apply makes searches of this space use it"
    if not tuning.recipe:
        return "applied: searches of this space use the default recipe again"
    return f"applied: searches of this space use the lens {tuner.TUNED}; `nacre tune --undo` removes it"
