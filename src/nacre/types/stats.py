"""Counts: document frequencies, facets and statistics of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

from nacre.query.ast import Term


class Frequencies(NamedTuple):
    """The number of live memories, and the document frequency of each token. Tokens that no memory has are missing.

    `length` is that of all these memories together, in tokens. `prefixes` has for each prefix that was asked for the
    sum of the frequencies of all tokens that begin with it.
    """

    memories: int
    having: Mapping[str, int]
    length: int = 0
    prefixes: Mapping[str, int] = MappingProxyType({})

    def of(self, term: Term) -> int:
        """How many memories count as having a term, which is at most all of them."""
        counted = self.prefixes if term.prefix else self.having
        return min(counted.get(term.text, 0), self.memories)

    @property
    def mean_length(self) -> float:
        return self.length / self.memories


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetCounts:
    """A store's counts of a query's matches. `created` counts by quarters of an hour, in UTC."""

    total: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    tags: Mapping[str, int]
    sources: Mapping[str, int]
    created: Mapping[datetime, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Facet counts of a query's matches: the values of each field with their numbers, the most frequent first."""

    total: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    tags: Mapping[str, int]
    sources: Mapping[str, int]
    months: Mapping[str, int]  # like 2026-03, in the user's time zone, in order
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Statistics of a store. Counts are of live memories unless noted."""

    memories: int
    forgotten: int
    passages: int
    pending: int  # live memories that have no vectors of the store's model yet
    pending_tokens: int  # live memories that have vectors, but no token vectors of the store's token model
    token_bytes: int  # of the token vectors, packed
    events: int
    spaces: Mapping[str, int]
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    model: str | None  # fingerprint of the model the vectors come from
    token_model: str | None  # that of the token vectors
    further_models: Mapping[str, int]  # by fingerprint of a further model, live memories that it has yet to embed
    stored_memories: Mapping[str, int]  # by space, forgotten ones included, as quotas count them
    stored_bytes: Mapping[str, int]  # by space, as quotas count them
    quotas: Mapping[str, int]  # that are set, by the names of their settings
    schema_version: int
    size_bytes: int  # of the file and its log
    index_bytes: int = 0  # of the index files beside it
    # That of a store in PostgreSQL: ready, building or missing. None: so few vectors need none, or it is in a file.
    vector_index: Literal["ready", "building", "missing"] | None = None
