"""The ranks that the README of the sample memories promises, by question."""

from __future__ import annotations

import re

from nacre.cli.demo import SAMPLES

_ROW = re.compile(
    r"^\| `?(?P<query>[^|]+?)`? \| (?P<expected>.+?) … \| (?P<ranks>[–\d]+ \| [–\d]+ \| [–\d]+) \|$", re.M
)
# Question, the beginning of the memory that answers it, and its rank in each mode.
PROMISED = [
    (row["query"], row["expected"], [None if rank == "–" else int(rank) for rank in row["ranks"].split(" | ")])
    for row in _ROW.finditer((SAMPLES.parent / "README.md").read_text("utf-8"))
]
