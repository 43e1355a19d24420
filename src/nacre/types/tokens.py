"""Token vectors: one small vector for each kept word piece of a text, for late interaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


# Token vectors of so many passages of a memory are kept, about 15,000 words. A text of a million characters would take
# five megabytes, and a search looks at its best few passages anyway.
TOKEN_PASSAGES_MAX = 64


class TokenFormat(NamedTuple):
    """How token vectors are packed into bytes: 4 or 8 bits for each dimension, of which there is an even number."""

    dimensions: int
    bits: int

    @property
    def token_bytes(self) -> int:
        return self.dimensions * self.bits // 8


class QueryTokens(NamedTuple):
    """The token vectors of a query, L2-normalised, with the weight of each. The weights sum to 1."""

    words: tuple[Span, ...]  # where in the query each token stands
    vectors: FloatMatrix  # tokens × dimensions
    weights: FloatVector
