"""A memory as the reference store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nacre.types.memory import Identity, Memory, Passages, Span, Tokens
from nacre.types.tokens import TOKEN_PASSAGES_MAX


class FurtherPassages(NamedTuple):
    """The passages of a memory by a further model: none where it does not know the language."""

    spans: tuple[Span, ...]
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoredMemory:
    memory: Memory
    content_hash: bytes
    tokens: Tokens
    spans: tuple[Span, ...] | None  # of its passages; None: no vectors of the store's model
    blobs: tuple[bytes, ...]  # the vectors of its passages
    token_blobs: tuple[bytes, ...] | None = None  # the token vectors of its first passages; None: none of that model
    further: Mapping[str, FurtherPassages] = field(default_factory=dict)  # by fingerprint; missing: pending

    @property
    def identity(self) -> Identity:
        return self.memory.space, self.memory.key or self.content_hash

    @property
    def is_live(self) -> bool:
        return self.memory.deleted is None

    @property
    def lacks_vectors(self) -> bool:
        return self.is_live and self.spans is None

    def lacks_vectors_of(self, model: str | None) -> bool:
        """Whether a further model has yet to embed it; None: the store's own."""
        return self.lacks_vectors if model is None else self.is_live and model not in self.further

    @property
    def lacks_tokens(self) -> bool:
        return self.is_live and self.spans is not None and self.token_blobs is None


def token_blobs_of(passages: Passages) -> tuple[bytes, ...] | None:
    return None if passages.tokens is None else passages.tokens[:TOKEN_PASSAGES_MAX]


def blobs_of(passages: Passages) -> tuple[bytes, ...]:
    from nacre.storage.vectors import pack

    return tuple(pack(vector) for vector in passages.vectors)
