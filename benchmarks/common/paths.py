"""Where the benchmarks read and write."""

from __future__ import annotations

from pathlib import Path

EVAL = Path("../shared/eval")  # labelled sets
TRAIN = Path("../shared/train")  # SQuAD and QMSum

BENCHMARKS = Path(__file__).parents[1]
CACHE = BENCHMARKS / ".cache"  # vectors and exact results, computed once
RESULTS = BENCHMARKS / "results"
