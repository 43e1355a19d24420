"""What is asked of every engine, as files: no process that searches needs the population in its memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.engines.engine import ParsedQuery

Truth: TypeAlias = Mapping[str, Sequence[Sequence[str]]]  # by tag ("" for all): texts of the nearest, by question


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions that are measured, others to warm up with, and what exact search finds for the first of them."""

    questions: Sequence[ParsedQuery]
    others: Sequence[ParsedQuery]
    truth: Truth


def write(folder: Path, asked: Asked) -> None:
    every = [*asked.questions, *asked.others]
    np.save(folder / "vectors.npy", np.stack([question.vector for question in every]))
    texts = {"questions": len(asked.questions), "texts": [each.text for each in every], "truth": asked.truth}
    (folder / "asked.json").write_text(json.dumps(texts), "utf-8")


def read(folder: Path) -> Asked:
    given = json.loads((folder / "asked.json").read_text("utf-8"))
    every = [
        ParsedQuery(text, vector) for text, vector in zip(given["texts"], np.load(folder / "vectors.npy"), strict=True)
    ]
    return Asked(every[: given["questions"]], every[given["questions"] :], given["truth"])
