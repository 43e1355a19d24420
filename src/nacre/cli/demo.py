"""`nacre demo`: questions to the bundled sample memories, one of them in all three search modes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of, with_reasons
from nacre.config import keys
from nacre.config.factory import open_store
from nacre.config.settings import Settings, Sourced
from nacre.engine.engine import Nacre
from nacre.serialization import decode, encode
from nacre.types.memory import DEFAULT_SPACE, Json, NewMemory, Progress
from nacre.types.recipe import USUAL_RECIPE, adjusted
from nacre.types.search import Mode, SearchResult
from nacre.types.views import Context

SAMPLES = Path(__file__).parent.parent / "demo" / "memories.jsonl"
FACTS = SAMPLES.with_name("facts.jsonl")  # for the page, which draws them
QUESTION = "Why did we lower BOOKING_TIMEOUT_MS?"
CORRECTED = "How long is a bench held for a payment?"  # a later memory has another value
UNKNOWN = "Which insurance covers the company bikes?"  # no memory says
_STORE = "demo.db"
_HITS = 3
_HITS_CORRECTED = 2

_INTRODUCTIONS: dict[Mode, str] = {
    "keyword": "--mode keyword: memories that share words with the question (BM25)",
    "semantic": "--mode semantic: memories close in meaning to the question (MiniLM)",
    "hybrid": "--mode hybrid, the default: fused and reranked, here with all reasons (--why)",
}


class _More(NamedTuple):
    """What the demo shows besides, unless it is asked something else."""

    corrected: SearchResult
    unknown: Context


@nacre.command()
@click.argument("question", nargs=-1)
@with_reasons
@click.option("--ui", is_flag=True, help="Show the samples in the browser instead.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port of the page; 0 chooses a free one.")
@common
@click.pass_context
def demo(context: click.Context, question: tuple[str, ...], why: bool, ui: bool, port: int) -> None:
    """Search 212 sample memories in all three modes. Uses a temporary store.

    Without QUESTION, it also shows a memory that was corrected, and a question that nothing answers.
    """
    query = " ".join(question) or QUESTION
    settings = settings_of(context)
    lines = SAMPLES.read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory(prefix="nacre-demo-") as folder, _opened(Path(folder), settings) as memory:
        _remember(memory, lines, FACTS.read_text("utf-8").splitlines() if ui else ())
        if ui:
            for each in (query, CORRECTED, UNKNOWN):  # so that the recall log has something to show
                memory.search(each)
            memory.close()
            _show_page(settings, Path(folder), port)
            return
        unhurried = adjusted(USUAL_RECIPE, rerank_ms=0)  # the same on every machine
        results = {mode: memory.search(query, mode=mode, limit=_HITS, recipe=unhurried) for mode in get_args(Mode)}
        more = None
        if not question:
            more = _More(
                memory.search(CORRECTED, limit=_HITS_CORRECTED, recipe=unhurried),
                memory.context(UNKNOWN, recipe=unhurried),
            )
    encoded: dict[str, Json] = {mode: encode.search_result(each) for mode, each in results.items()}
    if more is not None:
        encoded |= {"corrected": encode.search_result(more.corrected), "unknown": encode.context(more.unknown)}
    answer(context, encoded, _demo_lines(query, len(lines), results, more, why))


def _opened(folder: Path, settings: Settings) -> Nacre:
    return open_store(
        folder / _STORE,
        embedder=settings.embedder.value,
        threads=settings.threads.value,
        key=keys.of_settings(settings, os.environ),
    )


def _remember(memory: Nacre, lines: Sequence[str], facts: Sequence[str]) -> None:
    stated = [json.loads(each) for each in facts]

    def with_facts(line: str, number: int) -> NewMemory:
        new = decode.new_memory_line(line, number)
        its = [fact for each in stated if new.text.startswith(each["memory"]) for fact in each["facts"]]
        return replace(new, facts=[decode.new_fact("facts", each) for each in its])

    with render.progress(f"remembering {len(lines)} sample memories") as bar:
        done = 0
        for receipts in memory.remember_batches(map(with_facts, lines, range(1, len(lines) + 1))):
            done += len(receipts)
            bar(Progress(done, len(lines)))


def _show_page(settings: Settings, folder: Path, port: int) -> None:
    """Serve the page of the samples until interrupted."""
    from nacre.cli.serve import show
    from nacre.http_api import serving
    from nacre.http_api.options import Options

    serving.require()
    of_demo = replace(settings, store=Sourced(folder / _STORE, "demo"), space=Sourced(DEFAULT_SPACE, "default"))
    listening = serving.Listening(port=port)
    options = Options(space=DEFAULT_SPACE, hosts=serving.usual_hosts(listening, ()), access_log=False)

    def ready(url: str) -> None:
        render.tell(f"the samples are at {url} until Ctrl+C; the store is temporary")
        show(url)

    serving.serve(of_demo, listening, options, ready)


def _demo_lines(
    query: str, memories: int, results: dict[Mode, SearchResult], more: _More | None, why: bool
) -> Iterator[render.Line]:
    yield [(f"{memories} sample memories of a small team. Question: ", "dim"), (query, "bold")]
    for mode, result in results.items():
        yield []
        yield [(_INTRODUCTIONS[mode], "bold green")]
        yield from render.search_lines(result, why=why or mode == "hybrid")
    if more is not None:
        yield []
        yield [("What was corrected steps back. Question: ", "bold green"), (CORRECTED, "bold")]
        yield from render.search_lines(more.corrected, why=why)
        yield []
        yield [("Where nothing answers, a context says so. Question: ", "bold green"), (UNKNOWN, "bold")]
        yield from render.context_lines(more.unknown)
    yield []
    command = "nacre" if shutil.which("nacre") else sys.argv[0]
    yield [("See them in the browser: ", "dim"), (f"{command} demo --ui", "")]
    yield [("Try another question: ", "dim"), ('nacre demo "Why do customers get charged twice?"', "")]
    yield [("Or your own memories: ", "dim"), ('nacre remember "…"', ""), (", then ", "dim"), ('nacre search "…"', "")]
