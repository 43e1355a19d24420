"""A memory that holds a labelled set, and the answers to its questions."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import nacre
from benchmarks.common.embedding_cache import CachedEmbedder
from benchmarks.common.labelled_sets import Document, Half, LabelledSet, Query, half
from benchmarks.common.scoring import Answer
from nacre.config import embedders
from nacre.config.settings import EMBEDDER
from nacre.embedders.minilm import MiniLM
from nacre.embedders.use_multilingual import UseMultilingual
from nacre.interfaces import TokenEmbedder
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.search import Mode

LIMIT = 10

Part: TypeAlias = Half | Literal["all"]


class Way(NamedTuple):
    """How a question is searched."""

    mode: Mode
    recipe: nacre.Recipe


@dataclass(frozen=True, slots=True)
class Filled:
    """An open memory that holds a set."""

    labelled: LabelledSet
    memory: nacre.Nacre
    mode: Mode
    documents: Mapping[str, Sequence[str]]  # by memory id; documents with equal text share one memory
    clock: Clock
    path: Path

    def answers(self, ways: Sequence[Way], part: Part = "all", limit: int = LIMIT) -> Sequence[Sequence[Answer]]:
        """For each way, the answers to all queries of the part."""
        answers: list[list[Answer]] = [[] for _ in ways]
        for query in queries_of(self.labelled, part):
            where = nacre.Filter(spaces=[query.scope or DEFAULT_SPACE])
            self.clock.ask(query.scope)
            for (mode, recipe), given in zip(ways, answers, strict=True):
                start = time.perf_counter()
                hits = self.memory.search(query.text, mode=mode, limit=limit, where=where, recipe=recipe).hits
                seconds = time.perf_counter() - start
                given.append(Answer(query.id, [each for hit in hits for each in self.documents[hit.id]], seconds))
        return answers


class Clock:
    """Questions are asked the day after the last document of their scope, whenever the benchmark runs."""

    def __init__(self, labelled: LabelledSet) -> None:
        self._last: dict[str | None, datetime] = {}
        for document in labelled.documents:
            if document.created is not None:
                last = self._last.get(document.scope, document.created)
                self._last[document.scope] = max(last, document.created)
        self._now = datetime.now(UTC)

    def ask(self, scope: str | None) -> None:
        if scope in self._last:
            self._now = self._last[scope] + timedelta(days=1)

    def __call__(self) -> datetime:
        return self._now


@contextmanager
def filled(
    labelled: LabelledSet,
    mode: Mode,
    *,
    title_as_summary: bool = False,
    threads: int = 0,
    namespaces: Sequence[str] = (),
    embedder_name: str = EMBEDDER,
    multilingual: bool = False,
) -> Iterator[Filled]:
    """Fill a store in a temporary folder, which is deleted afterwards. Namespaces are assigned in turn."""
    clock = Clock(labelled)
    embedder = None if mode == "keyword" else embedder_for(labelled, threads, embedder_name)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(path := Path(folder) / "quality.db", embedder, clock, threads, multilingual) as memory,
    ):
        new = (
            replace(
                new_memory(document, title_as_summary=title_as_summary),
                namespace=namespaces[number % len(namespaces)] if namespaces else "general",
            )
            for number, document in enumerate(labelled.documents)
        )
        documents: dict[str, list[str]] = defaultdict(list)
        receipts = (receipt for batch in memory.remember_batches(new) for receipt in batch)
        for receipt, document in zip(receipts, labelled.documents, strict=True):
            documents[receipt.id].append(document.id)
        yield Filled(labelled, memory, mode, documents, clock, path)


def opened(
    path: Path, embedder: CachedEmbedder | None, clock: Clock, threads: int = 0, multilingual: bool = False
) -> nacre.Nacre:
    """Nacre with its defaults, except that vectors come from the cache and nothing is logged.

    The vectors of the multilingual model are not cached.
    """
    reranker = NacreRerank(threads or None)
    further: Any = UseMultilingual(threads or None) if multilingual and embedder is not None else "off"
    return nacre.open(
        path, embedder=embedder, reranker=reranker, multilingual=further, clock=clock, time_zone=UTC, log=False
    )


def new_memory(document: Document, *, title_as_summary: bool) -> nacre.NewMemory:
    return nacre.NewMemory(
        text=document.body if title_as_summary else document.text,
        summary=document.title if title_as_summary else None,
        space=document.scope or DEFAULT_SPACE,
        session=document.session,
        position=document.position,
        created=document.created,
    )


def embedder_for(labelled: LabelledSet, threads: int, name: str = EMBEDDER) -> CachedEmbedder:
    """The shipped model, or another one with its token vectors, and a cache that has the questions in memory."""
    threads = threads or os.cpu_count() or 1
    chosen = MiniLM(threads) if name == EMBEDDER else embedders.named(name, threads)
    assert isinstance(chosen, TokenEmbedder)
    embedder = CachedEmbedder(chosen, threads=threads)
    embedder.load_queries([query.text for query in labelled.queries])
    return embedder


def queries_of(labelled: LabelledSet, part: Part) -> list[Query]:
    return [query for query in labelled.queries if part in ("all", half(query.id))]
