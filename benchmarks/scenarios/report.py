"""The figures of the scenarios by half and class, their tables, and the failed questions for reading by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.common.labelled_sets import half
from benchmarks.common.report import Figures, Row, Tables
from benchmarks.scenarios import judge
from benchmarks.scenarios.judge import Asked
from benchmarks.scenarios.worlds import CLASSES, World

HALVES = ("report", "choose", "all")
ALL = "all"
HITS_SHOWN = 5
TEXT_CHARS = 110

COLUMNS = {
    "worlds": "worlds",
    "questions": "questions",
    "recall_3": "R@3",
    "recall_5": "R@5",
    "mrr": "MRR",
    "pairs": "pairs",
    "context_recall": "context recall",
    "context_precision": "precision",
    "context_tokens": "tokens",
    "stale_in_context": "stale in context",
    "abstention": "abstention",
    "lost": "lost",
    "auc": "AUC",
}


def in_half(name: str, world: str) -> bool:
    """Worlds are split by a hash of their names."""
    return name in ("all", half(world))


def figures(asked: Sequence[Asked], part: str) -> dict[str, Any]:
    """By half and class. Where all worlds were asked, each half has its own figures, too."""
    halves = HALVES if part == "all" else (part,)
    return {"halves": {name: by_class([each for each in asked if in_half(name, each.world)]) for name in halves}}


def by_class(asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    """The scores of each class and of all, as JSON."""
    present = [name for name in CLASSES if any(each.class_name == name for each in asked)]
    groups = {name: [each for each in asked if each.class_name == name] for name in present} | {ALL: list(asked)}
    return {
        name: {"worlds": len({each.world for each in group})}
        | {field: _rounded(value) for field, value in asdict(judge.scores(group)).items()}
        for name, group in groups.items()
    }


def tables(figures: Figures) -> Tables:
    """A table for each half."""
    titles = {"report": "Report half", "choose": "Choose half", "all": "All worlds"}
    return {
        titles[name]: [_row(class_name, found) for class_name, found in classes.items()]
        for name, classes in figures["halves"].items()
    }


def failed(asked: Sequence[Asked], worlds: Sequence[World], kinds: Sequence[str]) -> Iterator[str]:
    """A paragraph for each question that failed in one of these ways."""
    texts = {world.name: {each.label: each.text for each in world.memories} for world in worlds}
    for each in asked:
        wrong = [name for name in judge.failures(each) if name in kinds]
        if wrong:
            yield _paragraph(each, wrong, texts[each.world])


def _paragraph(asked: Asked, wrong: Sequence[str], texts: Mapping[str, str]) -> str:
    question, context = asked.question, asked.context
    lines = [f"{asked.class_name}/{asked.world}  [{', '.join(wrong)}]", f"  ask: {question.ask}"]
    lines += [f"  {'any of' if question.any else 'answer'} {_memory(each, texts)}" for each in question.answers]
    lines += [] if question.answers else ["  nothing answers"]
    lines += [f"  stale  {_memory(each, texts)}" for each in question.stale]
    for place, hit in enumerate(asked.hits[:HITS_SHOWN], 1):
        lines += [f"  {place}. {_mark(hit.label, asked)} {hit.relevance:.2f} {_memory(hit.label, texts)}"]
        lines += [f"       {hit.reasons}"]
    quoted = " ".join(f"{_mark(each, asked)}{each}" for each in context.quoted) or "empty"
    return "\n".join([*lines, f"  context: {quoted} ({context.tokens} tokens)"])


def _mark(label: str, asked: Asked) -> str:
    """+ an answer, ~ fine, ! stale, - anything else."""
    question = asked.question
    marks = {"+": question.answers, "~": question.fine, "!": question.stale}
    return next((mark for mark, labels in marks.items() if label in labels), "-")


def _memory(label: str, texts: Mapping[str, str]) -> str:
    text = " ".join(texts[label].split())
    return f"{label}: {text if len(text) <= TEXT_CHARS else text[:TEXT_CHARS] + '…'}"


def _row(class_name: str, found: Mapping[str, Any]) -> Row:
    return {"class": class_name} | {title: _cell(field, found[field]) for field, title in COLUMNS.items()}


def _cell(field: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if isinstance(value, int) or field == "context_tokens" else f"{value:.3f}"


def _rounded(value: float | None) -> float | None:
    return round(value, 4) if isinstance(value, float) else value
