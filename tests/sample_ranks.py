"""The sample memories in a store, and the ranks that their README promises, by question."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nacre
from nacre.cli.demo import SAMPLES
from nacre.serialization import decode

_ROW = re.compile(
    r"^\| `?(?P<query>[^|]+?)`? \| (?P<expected>.+?) … \| (?P<ranks>[–\d]+ \| [–\d]+ \| [–\d]+) \|$", re.M
)
# Question, the beginning of the memory that answers it, and its rank in each mode.
PROMISED = [
    (row["query"], row["expected"], [None if rank == "–" else int(rank) for rank in row["ranks"].split(" | ")])
    for row in _ROW.finditer((SAMPLES.parent / "README.md").read_text("utf-8"))
]


def sample_store(path: Path) -> Path:
    """The memories of the demo, with vectors of the real model."""
    now = datetime.now(UTC)
    with nacre.open(path) as memory:
        lines = SAMPLES.read_text("utf-8").splitlines()
        memory.remember_many([_sample(line, number, now) for number, line in enumerate(lines, 1)])
    return path


def _sample(line: str, number: int, now: datetime) -> nacre.NewMemory:
    """A memory of the demo, moved to a time of day twelve hours from now: recency counts whole days, and no memory
    becomes a day older while the doors are asked one after the other."""
    memory = decode.new_memory_line(line, number)
    assert memory.created is not None
    age = now - memory.created
    return replace(memory, created=now - timedelta(days=max(0, age.days), hours=12))
