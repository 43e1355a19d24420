"""A process that opens the store of one engine, searches it, and prints how long that took, as JSON.

python -m benchmarks.common.speed_search ENGINE STORE QUESTIONS

It does nothing else, so that its memory is what searching takes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from benchmarks.common import speed_questions as files
from benchmarks.common.speed_questions import Questions
from benchmarks.common.timing import PASSES, spread, timed
from benchmarks.rivals import speed_engine
from benchmarks.rivals.base import TAGS, Engine, Found, Opened, Question

OPENS = 5
SECONDS_MAX = 12.0  # for one kind of search with one filter
SLOW_S = 0.1  # searches that take longer are measured in one pass
ASKED_MIN = 5

Ask: TypeAlias = Callable[[Question], Sequence[Found]]


def main() -> None:
    name, store, questions = sys.argv[1:]
    print(json.dumps(measured(speed_engine(name), Path(store), files.read(Path(questions)))))


def measured(engine: Engine, folder: Path, questions: Questions) -> dict[str, object]:
    before = resident()
    figures: dict[str, object] = opening(engine, folder, questions.measured)
    opened = engine.open(folder)
    tags: list[str | None] = [None, *TAGS]
    figures["latency_ms"] = {
        kind: {tag or "all": latencies(partial(opened.search, kind, tag=tag), questions) for tag in tags}
        for kind in engine.kinds
    }
    figures["memory_mb"] = {"before": before, "after": resident()}
    figures["recall"] = {tag or "all": recall(opened, questions, tag) for tag in tags}
    opened.close()
    return figures


def opening(engine: Engine, folder: Path, questions: Sequence[Question]) -> dict[str, object]:
    """The time to open the store and the time of the first search after that. The first round warms up the files."""
    opens, firsts = [], []
    kind = engine.kinds[-1]
    for question in questions[:OPENS]:
        start = time.perf_counter()
        opened = engine.open(folder)
        opens.append(time.perf_counter() - start)
        firsts.append(timed(opened.search, kind, question, None))
        opened.close()
    return {
        "open_ms": round(1000 * statistics.median(opens), 3),
        "first_open_ms": round(1000 * opens[0], 3),
        "first_search_ms": round(1000 * statistics.median(firsts), 3),
        "first_search_of_process_ms": round(1000 * firsts[0], 3),
    }


def latencies(ask: Ask, questions: Questions) -> dict[str, float | int | None]:
    """Percentiles of the pass with the lowest median, after a warm-up with other questions."""
    deadline = time.perf_counter() + SECONDS_MAX
    warming = _pass(ask, questions.warming, time.perf_counter() + SECONDS_MAX / 5)
    usual = statistics.median(warming[len(warming) // 2 :])
    passes = 1 if usual > SLOW_S else PASSES
    count = min(len(questions.measured), max(ASKED_MIN, int(SECONDS_MAX * 0.7 / passes / usual)))
    found = [_pass(ask, questions.measured[:count], deadline) for _ in range(passes)]
    return spread(min((each for each in found if len(each) == len(found[0])), key=statistics.median))


def _pass(ask: Ask, questions: Sequence[Question], deadline: float) -> list[float]:
    taken: list[float] = []
    for question in questions:
        if len(taken) >= ASKED_MIN and time.perf_counter() > deadline:
            break
        taken.append(timed(ask, question))
    return taken


def recall(opened: Opened, questions: Questions, tag: str | None) -> dict[str, float | int]:
    """The share of the exact nearest neighbours that is found."""
    deadline = time.perf_counter() + SECONDS_MAX
    shares: list[float] = []
    for question, nearest in zip(questions.measured, questions.nearest[tag or ""], strict=False):
        if len(shares) >= ASKED_MIN and time.perf_counter() > deadline:
            break
        found = {each.text for each in opened.nearest(question, tag)}
        shares.append(len(found.intersection(nearest)) / len(nearest))
    return {"at_10": round(statistics.mean(shares), 4), "asked": len(shares)}


def resident() -> dict[str, float] | None:
    """Resident memory of this process in MB: all, anonymous, and mapped files. Linux only."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return None
    names = {"rss": "VmRSS", "anon": "RssAnon", "file": "RssFile"}
    return {name: round(int(status.partition(f"{field}:")[2].split()[0]) / 1024, 1) for name, field in names.items()}


if __name__ == "__main__":
    main()
