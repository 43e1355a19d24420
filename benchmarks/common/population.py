"""Any number of memories with vectors, and questions, for measuring speed.

Up to REAL_MAX, memories are sentences of SQuAD and QMSum, shuffled with a fixed seed, with vectors of the shipped
model. Each further memory joins two of these sentences. Its vector is the sum of their vectors plus a little noise,
normalised: a text of two sentences lies between them, so clusters stay as in real text. Questions are SQuAD's.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.sentences import vectors_of

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

REAL_MAX = 100_000
QUESTIONS = 400  # whose vectors are cached; a benchmark may ask fewer
NOISE = 0.1  # length of what is added to a vector of length 1
_CHARS = range(21, 600)
_SEED = 7
_SLICE = 10_000


@dataclass(frozen=True)
class Population:
    """Texts and questions in a fixed order."""

    sentences: tuple[str, ...]
    questions: tuple[str, ...]

    @cached_property
    def _vectors(self) -> FloatMatrix:
        return vectors_of([*self.sentences, *self.questions])

    @property
    def question_vectors(self) -> FloatMatrix:
        return self._vectors[len(self.sentences) :]

    def memories(self, count: int) -> Iterator[tuple[list[str], FloatMatrix]]:
        """The first `count` memories in slices, so that not all are in memory at once."""
        real = len(self.sentences)
        for start in range(0, min(count, real), _SLICE):
            end = min(start + _SLICE, count, real)
            yield list(self.sentences[start:end]), self._vectors[start:end]
        for start in range(real, count, _SLICE):
            yield self._made(start, min(start + _SLICE, count))

    def _made(self, start: int, end: int) -> tuple[list[str], FloatMatrix]:
        rng = np.random.default_rng([_SEED, start])
        first, second = rng.integers(0, len(self.sentences), (2, end - start))
        texts = [f"{self.sentences[a]} {self.sentences[b]}" for a, b in zip(first, second, strict=True)]
        noise = rng.standard_normal((end - start, self._vectors.shape[1]), dtype=np.float32)
        noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
        mixed = self._vectors[first] + self._vectors[second]
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        mixed += noise
        return texts, mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def population(data: Path, questions: int, real: int = REAL_MAX) -> Population:
    """`data` is a folder with squad-train-v1.1.json.gz and qmsum/corpus.jsonl.gz."""
    with gzip.open(data / "squad-train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        paragraphs = [each for article in json.load(file)["data"] for each in article["paragraphs"]]
    with gzip.open(data / "qmsum" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        said = [json.loads(line)["text"] for line in lines]
    sentences = {
        sentence: None
        for text in [*(each["context"] for each in paragraphs), *said]
        for sentence in re.split(r'(?<=[.!?])\s+(?=[A-Z0-9"(])', text)
        if len(sentence) in _CHARS
    }
    # Quotation marks would turn words into phrases.
    asked = {each["question"].replace('"', "").strip(): None for part in paragraphs for each in part["qas"]}
    rng = random.Random(_SEED)
    shuffled = rng.sample(list(sentences), min(real, len(sentences)))
    return Population(tuple(shuffled), tuple(rng.sample(list(asked), questions)))
