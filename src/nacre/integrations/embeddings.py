"""LangChain's embeddings as an embedder of Nacre."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

WORDS_MAX = 256  # in one passage
_WORD = re.compile(r"\S{1,24}")  # also a piece of a text without spaces
_TEXTS_AT_ONCE = 256
# What tells models of one class apart, in the classes of LangChain's own packages.
_NAMES = ("model", "model_name", "model_id", "deployment", "dimensions", "size")


class Embeddings(Protocol):
    """What LangChain's `Embeddings` have."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...


class LangChainEmbedder:
    """An embedder for `nacre.open` that asks LangChain's embeddings for its vectors.

    A store refuses vectors of another model, which it knows by `name`: by default the class of the embeddings and what
    they say of their model. Give a name where that does not tell two models apart.
    """

    def __init__(self, embeddings: Embeddings, name: str | None = None) -> None:
        self._embeddings = embeddings
        self.fingerprint = f"langchain/{name or _name(embeddings)}"
        self.pieces_max = WORDS_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(*word.span()), 1) for word in _WORD.finditer(text)]

    def vocabulary_coverage(self, text: str) -> float:
        return 1.0 if text.strip() else 0.0

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        rows = [np.asarray(several, np.float32) for several in self._in_batches(texts)]
        return _normalised(np.concatenate(rows))

    def embed_query(self, text: str) -> FloatVector:
        import numpy as np

        vector: FloatVector = _normalised(np.asarray([self._embeddings.embed_query(text)], np.float32))[0]
        return vector

    def _in_batches(self, texts: Sequence[str]) -> Iterator[list[list[float]]]:
        for start in range(0, max(1, len(texts)), _TEXTS_AT_ONCE):
            yield self._embeddings.embed_documents(list(texts[start : start + _TEXTS_AT_ONCE]))


def _normalised(rows: FloatMatrix) -> FloatMatrix:
    import numpy as np

    lengths = np.sqrt(np.square(rows).sum(axis=-1, keepdims=True))
    vectors: FloatMatrix = rows / np.maximum(lengths, np.float32(1e-12))
    return vectors


def _name(embeddings: Embeddings) -> str:
    kind = type(embeddings)
    told = (getattr(embeddings, name, None) for name in _NAMES)
    return "/".join([f"{kind.__module__}.{kind.__qualname__}", *(str(each) for each in told if each is not None)])
