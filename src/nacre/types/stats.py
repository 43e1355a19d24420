"""How many of what: the values in which stores and answers count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class Frequencies(NamedTuple):
    """How many live memories there are, and how many have each of some tokens; a token none has is missing."""

    memories: int
    having: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetCounts:
    """What a store counts of a query's matches. `created` counts by quarters of an hour, in UTC."""

    total: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    tags: Mapping[str, int]
    sources: Mapping[str, int]
    created: Mapping[datetime, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """How a query's matches are spread: values with their number of memories, the most frequent first."""

    total: int
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    tags: Mapping[str, int]
    sources: Mapping[str, int]
    months: Mapping[str, int]  # like 2026-03, in the user's time zone, in order
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a store holds. Counts are of live memories unless they say otherwise."""

    memories: int
    forgotten: int
    passages: int
    pending: int  # live memories without vectors of the store's model
    events: int
    spaces: Mapping[str, int]
    kinds: Mapping[str, int]
    namespaces: Mapping[str, int]
    model: str | None  # fingerprint of the model the vectors come from
    schema_version: int
    size_bytes: int
