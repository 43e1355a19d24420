"""Real English sentences and questions for measuring speed, and their vectors, kept between runs."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nacre.embedders.minilm import MiniLM
from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

CACHE = Path(__file__).parent / ".cache"
SETS = ("locomo", "scifact", "nfcorpus", "hotpotqa-1k", "xquad-en")
_SLICE = 4_096


def sentences(data: Path, count: int) -> list[str]:
    """`count` different sentences of the English sets, shuffled with a fixed seed.

    When there are not enough, the first half of one and the second half of another make further ones.
    """
    found: dict[str, None] = {}
    for name in SETS:
        for document in _lines(data / name / "corpus.jsonl.gz"):
            for sentence in re.split(r"(?<=[.!?])\s+", document["text"]):
                if len(sentence) > 20:
                    found[sentence] = None
    texts = list(found)
    rng = random.Random(7)
    rng.shuffle(texts)
    real = len(texts)
    while len(texts) < count:
        first, second = texts[rng.randrange(real)].split(), texts[rng.randrange(real)].split()
        texts.append(" ".join(first[: len(first) // 2] + second[len(second) // 2 :]))
    return texts[:count]


def questions(data: Path, count: int) -> list[str]:
    """Natural questions, full of common words; quotation marks would make phrases of them."""
    found = [
        query["text"].replace('"', "").strip() for name in SETS for query in _lines(data / name / "queries.jsonl.gz")
    ]
    random.Random(7).shuffle(found)
    return found[:count]


def vectors_of(texts: Sequence[str]) -> FloatMatrix:
    """Real vectors of the shipped model, computed once and kept."""
    model = MiniLM()
    digest = hashlib.sha256("\x00".join([model.fingerprint, *texts]).encode()).hexdigest()[:16]
    path = CACHE / f"vectors-{digest}.npy"
    if not path.is_file():
        CACHE.mkdir(exist_ok=True)
        parts = []
        for start in range(0, len(texts), _SLICE):
            parts.append(model.embed_passages(texts[start : start + _SLICE]))
            print(f"embedded {start + len(parts[-1]):,} of {len(texts):,}", file=sys.stderr)
        np.save(path, np.concatenate(parts).astype(np.float16))
    vectors: FloatMatrix = np.load(path).astype(np.float32)
    return vectors


class Prepared:
    """An embedder that looks vectors up, so that what is measured is everything else."""

    pieces_max = 254

    def __init__(self, texts: Sequence[str], vectors: FloatMatrix) -> None:
        self.fingerprint = MiniLM().fingerprint
        self._texts = texts
        self._at = {text: at for at, text in enumerate(texts)}
        self._vectors = vectors

    def text(self, at: int) -> str:
        return self._texts[at]

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text else 0.0

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(0, len(text)), 1)]  # sentences are one passage each

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        return self._vectors[[self._at[text] for text in texts]]

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self._vectors[self._at[text]]
        return vector


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
