"""How vectors are stored and compared: the same on every store.

Vectors are kept in half precision: it halves the file and moves a cosine by less than 0.001.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nacre.errors import EmbedderError
from nacre.types.tokens import TokenFormat

if TYPE_CHECKING:
    import numpy.typing as npt

    from nacre.types.memory import FloatMatrix, FloatVector

STORED = np.dtype("<f2")


def checked(vectors: npt.ArrayLike, texts: int) -> FloatMatrix:
    """The vectors of an embedder. Raises EmbedderError unless there is one of finite numbers for each text."""
    matrix: FloatMatrix = np.asarray(vectors, np.float32)
    if matrix.ndim != 2 or len(matrix) != texts or not matrix.size:
        raise EmbedderError(
            f"embedder: an array of shape {matrix.shape} is not one row of numbers for each of {texts} texts"
        )
    if not np.isfinite(matrix).all():
        raise EmbedderError("embedder: a vector has NaN or infinity; all numbers must be finite")
    return matrix


def checked_tokens(packed: Sequence[bytes], texts: int, form: TokenFormat) -> list[bytes]:
    """The packed token vectors of an embedder. Raises EmbedderError unless there are whole ones for each text."""
    listed = list(packed)
    if len(listed) != texts or not all(
        isinstance(each, bytes) and len(each) % form.token_bytes == 0 for each in listed
    ):
        raise EmbedderError(
            f"embedder: its token vectors are not {texts} texts of bytes, each a multiple of {form.token_bytes}"
        )
    return listed


def pack(vector: FloatVector) -> bytes:
    """A vector as it is stored."""
    return vector.astype(STORED).tobytes()


def unpack(blobs: list[bytes]) -> FloatMatrix:
    """Stored vectors as a matrix, one row each."""
    return np.frombuffer(b"".join(blobs), dtype=STORED).reshape(len(blobs), -1).astype(np.float32)


def are_finite(blobs: Sequence[bytes]) -> bool:
    """Whether stored vectors are numbers."""
    return all(len(each) % STORED.itemsize == 0 for each in blobs) and bool(np.isfinite(unpack(list(blobs))).all())


def cosines(matrix: FloatMatrix, query: FloatVector) -> FloatVector:
    """The cosine of each row with the query.

    A row's value depends on that row alone (a matrix product may sum in another order for another
    shape), so that a store gives the same score however it came by its candidates.
    """
    rows = matrix.astype(np.float32, copy=False)
    dots = np.multiply(rows, query).sum(axis=1)
    norms = np.sqrt(np.multiply(rows, rows).sum(axis=1)) * np.float32(np.sqrt(np.dot(query, query)))
    result: FloatVector = np.clip(dots / np.maximum(norms, np.float32(1e-12)), -1, 1)
    return result
