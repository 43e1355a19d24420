"""A memory as the reference store keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.types.memory import Identity, Memory, Passages, Span, Tokens
from nacre.types.tokens import TOKEN_PASSAGES_MAX


@dataclass(frozen=True, slots=True)
class StoredMemory:
    memory: Memory
    content_hash: bytes
    tokens: Tokens
    spans: tuple[Span, ...] | None  # of its passages; None: no vectors of the store's model
    blobs: tuple[bytes, ...]  # the vectors of its passages
    token_blobs: tuple[bytes, ...] | None = None  # the token vectors of its first passages; None: none of that model

    @property
    def identity(self) -> Identity:
        return self.memory.space, self.memory.key or self.content_hash

    @property
    def is_live(self) -> bool:
        return self.memory.deleted is None

    @property
    def lacks_vectors(self) -> bool:
        return self.is_live and self.spans is None

    @property
    def lacks_tokens(self) -> bool:
        return self.is_live and self.spans is not None and self.token_blobs is None


def token_blobs_of(passages: Passages) -> tuple[bytes, ...] | None:
    return None if passages.tokens is None else passages.tokens[:TOKEN_PASSAGES_MAX]


def blobs_of(passages: Passages) -> tuple[bytes, ...]:
    from nacre.storage.vectors import pack

    return tuple(pack(vector) for vector in passages.vectors)
