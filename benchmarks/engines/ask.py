"""A process that opens one engine's store, searches it, and tells how long that took, as JSON.

python -m benchmarks.engines.ask ENGINE STORE ASKED

It has done nothing else, so its memory is what searching takes.
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

from benchmarks.engines import asked as files
from benchmarks.engines import loaded
from benchmarks.engines.asked import Asked
from benchmarks.engines.engine import TAGS, Engine, Found, Opened, ParsedQuery
from benchmarks.timing import PASSES, spread, timed

OPENS = 5
SECONDS_MAX = 12.0  # of asking one kind of question in one way
SLOW_S = 0.1  # a search that takes longer is measured in one pass
ASKED_MIN = 5

Ask: TypeAlias = Callable[[ParsedQuery], Sequence[Found]]


def main() -> None:
    name, store, asked = sys.argv[1:]
    print(json.dumps(measured(loaded(name), Path(store), files.read(Path(asked)))))


def measured(engine: Engine, folder: Path, asked: Asked) -> dict[str, object]:
    before = resident()
    figures: dict[str, object] = opening(engine, folder, asked.questions)
    opened = engine.open(folder)
    tags: list[str | None] = [None, *TAGS]
    figures["latency_ms"] = {
        kind: {tag or "all": latencies(partial(opened.search, kind, tag=tag), asked) for tag in tags}
        for kind in engine.kinds
    }
    figures["memory_mb"] = {"before": before, "after": resident()}
    figures["recall"] = {tag or "all": recall(opened, asked, tag) for tag in tags}
    opened.close()
    return figures


def opening(engine: Engine, folder: Path, questions: Sequence[ParsedQuery]) -> dict[str, object]:
    """The time until the store is open, and that of the first search then; the very first warms files and imports."""
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


def latencies(ask: Ask, asked: Asked) -> dict[str, float | int | None]:
    """Of the pass with the lowest median, after other questions have warmed everything up."""
    deadline = time.perf_counter() + SECONDS_MAX
    warming = _pass(ask, asked.others, time.perf_counter() + SECONDS_MAX / 5)
    usual = statistics.median(warming[len(warming) // 2 :])
    passes = 1 if usual > SLOW_S else PASSES
    count = min(len(asked.questions), max(ASKED_MIN, int(SECONDS_MAX * 0.7 / passes / usual)))
    found = [_pass(ask, asked.questions[:count], deadline) for _ in range(passes)]
    return spread(min((each for each in found if len(each) == len(found[0])), key=statistics.median))


def _pass(ask: Ask, questions: Sequence[ParsedQuery], deadline: float) -> list[float]:
    taken: list[float] = []
    for question in questions:
        if len(taken) >= ASKED_MIN and time.perf_counter() > deadline:
            break
        taken.append(timed(ask, question))
    return taken


def recall(opened: Opened, asked: Asked, tag: str | None) -> dict[str, float | int]:
    """The share of the exact nearest that is found."""
    deadline = time.perf_counter() + SECONDS_MAX
    shares: list[float] = []
    for question, nearest in zip(asked.questions, asked.truth[tag or ""], strict=False):
        if len(shares) >= ASKED_MIN and time.perf_counter() > deadline:
            break
        found = {each.text for each in opened.nearest(question, tag)}
        shares.append(len(found.intersection(nearest)) / len(nearest))
    return {"at_10": round(statistics.mean(shares), 4), "asked": len(shares)}


def resident() -> dict[str, float] | None:
    """What of this process is in memory: all of it, what nothing else shares, and mapped files. Linux only."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return None
    names = {"rss": "VmRSS", "anon": "RssAnon", "file": "RssFile"}
    return {name: round(int(status.partition(f"{field}:")[2].split()[0]) / 1024, 1) for name, field in names.items()}


if __name__ == "__main__":
    main()
