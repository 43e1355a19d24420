"""`nacre demo`: the sample memories in a temporary store, and one question asked in three ways."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import get_args

from nacre.cli import render
from nacre.config.factory import open_store
from nacre.config.settings import Settings
from nacre.serialization import decode, encode
from nacre.types.memory import Progress
from nacre.types.search import Mode

SAMPLES = Path(__file__).parent.parent / "demo" / "memories.jsonl"
QUESTION = "Why did we lower BOOKING_TIMEOUT_MS?"
_HITS = 3

_INTRODUCTIONS: dict[Mode, str] = {
    "keyword": "By words (BM25): memories that share words with the question",
    "semantic": "By meaning (MiniLM): memories that say something alike",
    "hybrid": "By both, each as far as it stands out: the default",
}


def run_demo(question: str | None, settings: Settings, *, as_json: bool) -> None:
    question = question or QUESTION
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
        results = {mode: memory.search(question, mode=mode, limit=_HITS) for mode in get_args(Mode)}
        if as_json:
            sys.stdout.write(encode.dumps({mode: encode.search_result(each) for mode, each in results.items()}) + "\n")
            return
        render.show([[(f"{done} sample memories of a small team. The question: ", "dim"), (question, "bold")]])
        for mode, result in results.items():
            render.show([[], [(_INTRODUCTIONS[mode], "bold green")], *render.search_lines(result)])
        render.show(
            [
                [],
                [("Ask another: ", "dim"), ('nacre demo "Why do customers get charged twice?"', "")],
                [("Your own:    ", "dim"), ('nacre remember "…"', ""), (" and then ", "dim"), ('nacre search "…"', "")],
            ]
        )
