"""An embedder whose vectors are given in advance, so that a benchmark measures everything but the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nacre.embedders.minilm import MiniLM
from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


class GivenVectors:
    """Returns the vectors of the passages and questions that it was given.

    A question that finds nothing is searched again with a corrected spelling, whose vector nobody has computed. It gets
    the vector of the question that was given last.
    """

    pieces_max = 254

    def __init__(self) -> None:
        self.fingerprint = MiniLM().fingerprint
        self._passages: dict[str, FloatVector] = {}
        self._questions: dict[str, FloatVector] = {}
        self._last: FloatVector | None = None

    def give_passages(self, texts: Sequence[str], vectors: FloatMatrix) -> None:
        """Replace the passages that were given before."""
        self._passages = dict(zip(texts, vectors, strict=True))

    def give_question(self, text: str, vector: FloatVector) -> None:
        self._questions[text] = self._last = vector

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text else 0.0

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(0, len(text)), 1)]  # every text is one passage, as for the other engines

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        return np.stack([self._passages[text] for text in texts])

    def embed_query(self, text: str) -> FloatVector:
        vector = self._questions.get(text, self._last)
        assert vector is not None
        return vector
