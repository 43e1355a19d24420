"""The questions of the speed benchmark as files, so that no searching process holds the whole population."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.rivals.base import Question

Nearest: TypeAlias = Mapping[str, Sequence[Sequence[str]]]  # by tag ("": all memories), then by question: texts


@dataclass(frozen=True, slots=True)
class Questions:
    """Measured questions, others for warming up, and the exact nearest neighbours of the first measured ones."""

    measured: Sequence[Question]
    warming: Sequence[Question]
    nearest: Nearest


def write(folder: Path, questions: Questions) -> None:
    every = [*questions.measured, *questions.warming]
    np.save(folder / "vectors.npy", np.stack([question.vector for question in every]))
    texts = {"measured": len(questions.measured), "texts": [each.text for each in every], "nearest": questions.nearest}
    (folder / "questions.json").write_text(json.dumps(texts), "utf-8")


def read(folder: Path) -> Questions:
    given = json.loads((folder / "questions.json").read_text("utf-8"))
    every = [
        Question(text, vector) for text, vector in zip(given["texts"], np.load(folder / "vectors.npy"), strict=True)
    ]
    return Questions(every[: given["measured"]], every[given["measured"] :], given["nearest"])
