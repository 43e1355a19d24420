"""Timing of calls, and percentiles."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec

P = ParamSpec("P")
PASSES = 5  # the best one counts, because other work on the machine only slows a pass down


def timed(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> float:
    start = time.perf_counter()
    call(*args, **kwargs)
    return time.perf_counter() - start


def milliseconds(taken: Sequence[float]) -> str:
    if len(taken) == 1:
        return f"{1000 * taken[0]:.1f} ms"
    return f"p50 {1000 * statistics.median(taken):.2f} ms, p95 {1000 * percentile(taken, 95):.2f} ms"


def percentile(taken: Sequence[float], percent: int) -> float:
    ordered = sorted(taken)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def spread(taken: Sequence[float]) -> dict[str, float | int | None]:
    """Percentiles in milliseconds. Below a hundred samples there is no 99th percentile."""
    return {
        "p50": round(1000 * statistics.median(taken), 3),
        "p95": round(1000 * percentile(taken, 95), 3),
        "p99": round(1000 * percentile(taken, 99), 3) if len(taken) >= 100 else None,
        "asked": len(taken),
    }
