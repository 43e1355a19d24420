"""Feature hashing of words and character trigrams: fast, without a model, and without semantics."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

PIECES_MAX = 254
UNIT_CHARS_MAX = 64
UNIT = re.compile(rf"\S{{1,{UNIT_CHARS_MAX}}}")
WORD = re.compile(r"\w+")


class Hashing:
    """Texts with common words, or parts of words, get similar vectors. Equal on every machine."""

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions

    @property
    def fingerprint(self) -> str:
        return f"hashing/1/{self._dimensions}"

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(*unit.span()), 1) for unit in UNIT.finditer(text)]

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text.strip() else 0.0

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        vectors: FloatMatrix = np.zeros((len(texts), self._dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for feature, count in _features(text).items():
                number = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                vector[(number >> 1) % self._dimensions] += count if number & 1 else -count
            if not vector.any():
                vector[0] = 1
        vectors /= np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self.embed_passages([text])[0]
        return vector


def _features(text: str) -> Counter[str]:
    features: Counter[str] = Counter()
    for word in WORD.findall(text.lower()):
        features[word] += 2  # a whole word weighs more than its trigrams
        padded = f"<{word}>"
        features.update(padded[start : start + 3] for start in range(len(padded) - 2))
    return features
