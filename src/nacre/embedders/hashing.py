"""Feature hashing of words and character trigrams: fast, without a model, and without semantics."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from nacre.analysis import stopwords
from nacre.types.memory import Span
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

PIECES_MAX = 254
UNIT_CHARS_MAX = 64
UNIT = re.compile(rf"\S{{1,{UNIT_CHARS_MAX}}}")
WORD = re.compile(r"\w+")
TOKEN_FORMAT = TokenFormat(dimensions=64, bits=4)


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

    # ---- token vectors: one for each word, the same wherever it stands

    @property
    def token_fingerprint(self) -> str:
        return f"hashing-tokens/1/{TOKEN_FORMAT.dimensions}/{TOKEN_FORMAT.bits}"

    @property
    def token_format(self) -> TokenFormat:
        return TOKEN_FORMAT

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        from nacre.ranking.late_interaction import pack

        words = [[text[span.start : span.end] for span in self.token_spans(text)] for text in texts]
        packed = pack(_word_vectors([word for several in words for word in several]), TOKEN_FORMAT)
        ends = list(accumulate(len(several) * TOKEN_FORMAT.token_bytes for several in words))
        return self.embed_passages(texts), [packed[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def query_tokens(self, text: str) -> QueryTokens:
        import numpy as np

        spans = tuple(self.token_spans(text))
        weights = np.full(len(spans), 1 / max(1, len(spans)), np.float32)
        return QueryTokens(spans, _word_vectors([text[span.start : span.end] for span in spans]), weights)

    def token_spans(self, text: str) -> list[Span]:
        return [Span(*word.span()) for word in WORD.finditer(text) if word[0].lower() not in stopwords.WORDS]


def _word_vectors(words: Sequence[str]) -> FloatMatrix:
    """A vector of equal numbers for each word, with a sign for each bit of its hash. Packing does not change it."""
    import numpy as np

    hashed = (
        hashlib.blake2b(word.lower().encode("utf-8", "surrogatepass"), digest_size=TOKEN_FORMAT.dimensions // 8)
        for word in words
    )
    bits = np.unpackbits(np.frombuffer(b"".join(each.digest() for each in hashed), np.uint8))
    vectors: FloatMatrix = (bits * np.float32(2) - np.float32(1)).reshape(-1, TOKEN_FORMAT.dimensions)
    return vectors / np.float32(np.sqrt(TOKEN_FORMAT.dimensions))


def _features(text: str) -> Counter[str]:
    features: Counter[str] = Counter()
    for word in WORD.findall(text.lower()):
        features[word] += 2  # a whole word weighs more than its trigrams
        padded = f"<{word}>"
        features.update(padded[start : start + 3] for start in range(len(padded) - 2))
    return features
