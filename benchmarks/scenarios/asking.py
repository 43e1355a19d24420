"""Fills a store with each world and asks its questions, as a user of the library does."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import nacre
from benchmarks.common.embedding_cache import CachedEmbedder
from benchmarks.common.paths import CACHE
from benchmarks.scenarios.judge import Asked, ContextGiven, Shown
from benchmarks.scenarios.worlds import Question, World, WorldMemory
from nacre.config.factory import Models, load_models
from nacre.interfaces import TokenEmbedder
from nacre.types.recipe import USUAL_RECIPE
from nacre.types.search import Hit, Reason
from nacre.types.views import Context

LIMIT = 10
BUDGET_TOKENS = 300

# The parts of a quotation: the attributes of its tag and its body, which ends in notes.
_QUOTATION = re.compile(r'<memory id="(?P<id>[^"]+)"(?P<tag>[^>\n]*)>\n(?P<body>.*?)\n</memory[^>\n]*>', re.DOTALL)
_NOTES = re.compile(r'notes="(\d+)"')
_SUPERSEDED = re.compile(r"\bsuperseded\b|^\[now: ", re.MULTILINE)


def ask_all(worlds: Iterable[World], cache: Path = CACHE, recipe: nacre.Recipe = USUAL_RECIPE) -> Iterator[list[Asked]]:
    """For each world what its questions got, with the models that `nacre.open` uses."""
    models = load_models("minilm", "auto", 0)
    assert isinstance(models.embedder, TokenEmbedder)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(CachedEmbedder(models.embedder, cache)) as embedder,  # a base is embedded once, not in each world
    ):
        beginnings = Beginnings(Path(folder))
        for world in worlds:
            yield ask(world, Models(embedder, models.reranker), recipe, beginnings)


class Beginnings:
    """Stores of what worlds have in common: the memories of their base that are older than any of their own.

    Most worlds of a base begin with all of it, which is written once and copied.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[Sequence[WorldMemory], tuple[Path, Mapping[str, str]]] = {}

    def begin(self, world: World, models: Models, path: Path) -> dict[str, str]:
        """Make the store of a world, with its beginning; the labels of what is in it, by id."""
        common = world.memories[: world.common]
        if not common:
            return {}
        if common not in self._written:
            stored = self._folder / f"{len(self._written)}.db"
            clock = _Clock(world.now)
            with _opened(stored, models, clock) as memory:
                self._written[common] = stored, _written(memory, clock, common)
        stored, labels = self._written[common]
        shutil.copyfile(stored, path)
        return dict(labels)


def ask(
    world: World, models: Models, recipe: nacre.Recipe = USUAL_RECIPE, beginnings: Beginnings | None = None
) -> list[Asked]:
    """Each memory is written when it was created, and the questions are asked at the world's `now`.

    Nothing is logged, so that no question changes what the next one gets.
    """
    clock = _Clock(world.now)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.db"
        common, labels = (world.common, beginnings.begin(world, models, path)) if beginnings is not None else (0, {})
        with _opened(path, models, clock) as memory:
            labels |= _written(memory, clock, world.memories[common:])
            clock.now = world.now
            return [_asked(memory, world, question, labels, recipe) for question in world.questions]


def _opened(path: Path, models: Models, clock: _Clock) -> nacre.Nacre:
    return nacre.open(path, embedder=models.embedder, reranker=models.reranker, clock=clock, time_zone=UTC, log=False)


def _written(memory: nacre.Nacre, clock: _Clock, memories: Sequence[WorldMemory]) -> dict[str, str]:
    """Labels by id."""
    labels = {}
    for each in memories:
        clock.now = each.created
        receipt = memory.remember(
            each.text,
            created=each.created,
            session=each.session,
            position=each.position,
            kind=each.kind,
            source=each.source,
        )
        labels[receipt.id] = each.label
    return labels


def _asked(
    memory: nacre.Nacre, world: World, question: Question, labels: Mapping[str, str], recipe: nacre.Recipe
) -> Asked:
    hits = memory.search(question.ask, limit=LIMIT, recipe=recipe).hits
    context = memory.context(question.ask, budget_tokens=BUDGET_TOKENS, repeat=True, recipe=recipe)
    return Asked(
        world.name,
        world.class_name,
        question,
        tuple(Shown(labels[hit.id], hit.relevance or 0.0, _reasons(hit)) for hit in hits),
        ContextGiven(
            tuple(labels[each.id] for each in context.quoted),
            frozenset(labels[each] for each in superseded_ids(context.text)),
            context.tokens,
            nothing_answers(context),
        ),
    )


def nothing_answers(context: Context) -> bool:
    """Whether an agent learns from the context that the store has no answer."""
    return not context.quoted


def superseded_ids(text: str) -> set[str]:
    """The memories in the text of a context of which a note or the tag says that they no longer hold."""
    found = set()
    for quotation in _QUOTATION.finditer(text):
        notes = _NOTES.search(quotation["tag"])
        lines = quotation["body"].split("\n")
        said = [quotation["tag"], *(lines[-int(notes[1]) :] if notes else [])]
        if _SUPERSEDED.search("\n".join(said)):
            found.add(quotation["id"])
    return found


def _reasons(hit: Hit) -> str:
    return " ".join(map(_reason, hit.reasons))


def _reason(reason: Reason) -> str:
    return f"{reason.signal}{'+' if reason.effect == 'add' else '×'}{reason.value:.2f}"


class _Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now
