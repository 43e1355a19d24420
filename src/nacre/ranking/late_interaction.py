"""Late interaction: a query and a passage are compared token by token.

Token vectors are L2-normalised. A passage's are packed into few bits a dimension.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nacre.types.tokens import TokenFormat

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

_LEVELS = 16
_SPREAD = 3.0  # of 4 bits, in standard deviations of a dimension: hardly any value lies beyond
_INT8_MAX = 127


def pack(matrix: FloatMatrix, form: TokenFormat) -> bytes:
    """The vectors of tokens as they are stored, one after another."""
    import numpy as np

    if form.bits == 8:
        return bytes(np.rint(matrix * _INT8_MAX).clip(-_INT8_MAX, _INT8_MAX).astype(np.int8).tobytes())
    most = _most(form.dimensions)
    levels = np.rint((matrix + most) * ((_LEVELS - 1) / (2 * most))).clip(0, _LEVELS - 1).astype(np.uint8)
    return bytes((levels[:, 0::2] | levels[:, 1::2] << 4).tobytes())


def unpack(packed: bytes, form: TokenFormat) -> FloatMatrix:
    """The vectors of tokens, one row each."""
    import numpy as np

    if form.bits == 8:
        matrix: FloatMatrix = np.frombuffer(packed, np.int8).astype(np.float32) * np.float32(1 / _INT8_MAX)
    else:
        matrix = _pairs(form.dimensions)[np.frombuffer(packed, np.uint8)].view(np.float32)
    return matrix.reshape(-1, form.dimensions)


def _most(dimensions: int) -> float:
    return _SPREAD / math.sqrt(dimensions)


@lru_cache(maxsize=4)
def _pairs(dimensions: int) -> Any:
    """By byte, the values of its two dimensions, as one number of 8 bytes: looking up one is twice as fast as two."""
    import numpy as np

    most = _most(dimensions)
    levels = (np.arange(_LEVELS) * (2 * most / (_LEVELS - 1)) - most).astype(np.float32)
    byte = np.arange(_LEVELS * _LEVELS)
    return np.stack([levels[byte % _LEVELS], levels[byte // _LEVELS]], axis=1).view(np.float64)[:, 0]
