"""English sentences and questions of the labelled sets, and cached vectors of the shipped model."""

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

from benchmarks.common.paths import CACHE
from nacre.embedders.minilm import MiniLM

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix


SETS = ("locomo", "scifact", "nfcorpus", "hotpotqa-1k", "xquad-en")
_SLICE = 4_096


def sentences(data: Path, count: int) -> list[str]:
    """`count` different sentences of the English sets, shuffled with a fixed seed.

    When there are not enough, further ones are made of the first half of one and the second half of another.
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
    """Natural questions. Quotation marks are removed, because they would turn words into phrases."""
    found = [
        query["text"].replace('"', "").strip() for name in SETS for query in _lines(data / name / "queries.jsonl.gz")
    ]
    random.Random(7).shuffle(found)
    return found[:count]


def vectors_of(texts: Sequence[str]) -> FloatMatrix:
    """Vectors of the shipped model, computed once and cached."""
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


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
