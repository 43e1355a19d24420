"""How the vectors of word pieces become one vector, as sentence-transformers does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix


def pooled(states: FloatMatrix, modes: Sequence[str], skipped: int = 0) -> FloatMatrix:
    """One row for each text. `states` are texts of equal length by word pieces by numbers.

    The first `skipped` pieces, those of a prompt, count in no mean and no maximum.
    """
    import numpy as np

    counted = states[:, skipped:]
    pieces = counted.shape[1]
    parts: list[FloatMatrix] = []
    for mode in modes:
        match mode:
            case "cls":
                parts.append(states[:, 0])
            case "max":
                parts.append(counted.max(axis=1))
            case "mean":
                parts.append(counted.sum(axis=1) / np.float32(pieces))
            case "mean_sqrt_len_tokens":
                parts.append(counted.sum(axis=1) / np.sqrt(np.float32(pieces)))
            case "weightedmean":  # a later piece has seen more of the text
                weights = np.arange(skipped + 1, states.shape[1] + 1, dtype=np.float32)
                parts.append((counted * weights[:, None]).sum(axis=1) / weights.sum())
            case "lasttoken":
                parts.append(states[:, -1])
            case _:
                raise ValueError(mode)
    return np.concatenate(parts, axis=1)


def normalised(rows: FloatMatrix) -> FloatMatrix:
    """Rows of length 1."""
    import numpy as np

    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    vectors: FloatMatrix = rows / np.maximum(lengths, np.float32(1e-12))
    return vectors
