"""A population of memories for measuring speed: any number of texts with vectors, and questions about them.

Up to REAL_MAX, memories are real sentences (of Wikipedia paragraphs and of meetings: SQuAD and QMSum, shuffled with a
fixed seed), with vectors of the shipped model. Above, each further memory is made of two of these sentences, and its
vector is the sum of theirs with a little noise, brought to length 1: a text of two sentences lies between them, so
clusters stay as they are in real text. Questions are SQuAD's, full of common words.
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

from benchmarks.corpus import vectors_of

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

REAL_MAX = 100_000
QUESTIONS = 400  # vectors are kept for this many; a benchmark may ask fewer
NOISE = 0.1  # length of what is added to a vector of length 1
_CHARS = range(21, 600)
_SEED = 7
_SLICE = 10_000


@dataclass(frozen=True)
class Population:
    """Texts and questions in a fixed order, whatever their number."""

    sentences: tuple[str, ...]
    questions: tuple[str, ...]

    @cached_property
    def _vectors(self) -> FloatMatrix:
        return vectors_of([*self.sentences, *self.questions])

    @property
    def question_vectors(self) -> FloatMatrix:
        return self._vectors[len(self.sentences) :]

    def memories(self, count: int) -> Iterator[tuple[list[str], FloatMatrix]]:
        """The first `count` memories in slices of texts and vectors, without ever holding all of them."""
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
    """What there is under `data`, which holds SQuAD and QMSum as ../shared/train does."""
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
    # Quotation marks would make phrases of what they enclose.
    asked = {each["question"].replace('"', "").strip(): None for part in paragraphs for each in part["qas"]}
    rng = random.Random(_SEED)
    shuffled = rng.sample(list(sentences), min(real, len(sentences)))
    return Population(tuple(shuffled), tuple(rng.sample(list(asked), questions)))
