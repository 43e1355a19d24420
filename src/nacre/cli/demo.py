"""`nacre demo`: one question to the bundled sample memories, in all three search modes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of, with_reasons
from nacre.config.factory import open_store
from nacre.serialization import decode, encode
from nacre.types.memory import Json, Progress
from nacre.types.search import Mode, SearchResult

SAMPLES = Path(__file__).parent.parent / "demo" / "memories.jsonl"
QUESTION = "Why did we lower BOOKING_TIMEOUT_MS?"
_HITS = 3

_INTRODUCTIONS: dict[Mode, str] = {
    "keyword": "--mode keyword: memories that share words with the question (BM25)",
    "semantic": "--mode semantic: memories close in meaning to the question (MiniLM)",
    "hybrid": "--mode hybrid, the default: fused and reranked, here with all reasons (--why)",
}


@nacre.command()
@click.argument("question", nargs=-1)
@with_reasons
@common
@click.pass_context
def demo(context: click.Context, question: tuple[str, ...], why: bool) -> None:
    """Search 212 sample memories in all three modes. Uses a temporary store."""
    query = " ".join(question) or QUESTION
    settings = settings_of(context)
    lines = SAMPLES.read_text("utf-8").splitlines()
    with (
        tempfile.TemporaryDirectory(prefix="nacre-demo-") as folder,
        open_store(
            Path(folder) / "demo.db", embedder=settings.embedder.value, threads=settings.threads.value
        ) as memory,
    ):
        with render.progress(f"remembering {len(lines)} sample memories") as bar:
            done = 0
            for receipts in memory.remember_batches(map(decode.new_memory_line, lines, range(1, len(lines) + 1))):
                done += len(receipts)
                bar(Progress(done, len(lines)))
        results = {mode: memory.search(query, mode=mode, limit=_HITS) for mode in get_args(Mode)}
    encoded: Json = {mode: encode.search_result(each) for mode, each in results.items()}
    answer(context, encoded, _demo_lines(query, len(lines), results, why))


def _demo_lines(query: str, memories: int, results: dict[Mode, SearchResult], why: bool) -> Iterator[render.Line]:
    yield [(f"{memories} sample memories of a small team. Question: ", "dim"), (query, "bold")]
    for mode, result in results.items():
        yield []
        yield [(_INTRODUCTIONS[mode], "bold green")]
        yield from render.search_lines(result, why=why or mode == "hybrid")
    yield []
    yield [("Try another question: ", "dim"), ('nacre demo "Why do customers get charged twice?"', "")]
    yield [("Or your own memories: ", "dim"), ('nacre remember "…"', ""), (", then ", "dim"), ('nacre search "…"', "")]
