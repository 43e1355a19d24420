"""What an export has: records that say all of a store, and that another store can take in.

A header comes first, then memories, facts, entities, updates, near-duplicates, lenses, what was dropped, and events of
memories that are gone. `changed` is the time of the last change, where the store keeps one, by which the newer of two
records wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, TypeAlias

from nacre.types.facts import Fact
from nacre.types.memory import Json, Memory, Span
from nacre.types.search import Filter

FORMAT = "nacre-export"
FORMAT_VERSION = 1

DroppedKind: TypeAlias = Literal["fact", "entity", "update", "lens"]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is exported. `where=None` is everything, `since=0` from the beginning."""

    at: datetime
    where: Filter | None = None  # memories, and what belongs to them
    since: int | datetime = 0  # only what changed after this number, or since this time
    vectors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first record of an export. The next one continues after `seq`."""

    store: str  # its id
    at: datetime
    seq: int
    since: int = 0
    where: str = ""  # the filter as JSON
    vectors: bool = False
    model: str | None = None
    token_model: str | None = None
    further_models: tuple[str, ...] = ()  # whose vectors are among the records
    memories: int = 0  # how many follow
    version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """An event with an identity that is the same in every store."""

    uid: str
    at: datetime
    action: str
    memory_id: str
    space: str
    before: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class StoredPassages:
    """Passages as they are stored: packed vectors, and the packed token vectors of the first passages."""

    spans: tuple[Span, ...]
    vectors: tuple[bytes, ...]
    tokens: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    memory: Memory
    events: tuple[EventRecord, ...] = ()  # the oldest first
    passages: StoredPassages | None = None
    further: Mapping[str, StoredPassages] = field(default_factory=dict)  # by fingerprint of a further model


@dataclass(frozen=True, slots=True)
class FactRecord:
    fact: Fact
    text: str | None = None  # the hash of the text that it was extracted from


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRecord:
    space: str
    name: str
    type: str | None
    kept: bool  # it stays even if no memory is about it
    aliases: tuple[str, ...]
    memory_ids: tuple[str, ...]  # linked by callers
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    newer: str
    older: str
    cue: str
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class SimilarRecord:
    """Two near-duplicates, as long as their texts have these hashes. `apart`: somebody has separated them."""

    one: str
    other: str
    texts: tuple[str, str]
    apart: bool


@dataclass(frozen=True, slots=True)
class LensRecord:
    space: str
    name: str
    body: str
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that was dropped, by its kind and its name."""

    kind: DroppedKind
    space: str
    name: str
    changed: datetime


Record: TypeAlias = (
    Header
    | MemoryRecord
    | FactRecord
    | EntityRecord
    | UpdateRecord
    | SimilarRecord
    | LensRecord
    | Dropped
    | EventRecord
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCounts:
    """What an import did, by number of memories, and of other things that were new or changed."""

    added: int = 0
    updated: int = 0  # the record was newer
    kept: int = 0  # the stored memory was newer
    unchanged: int = 0
    purged: int = 0  # here, because they were purged there
    displaced: int = 0  # forgotten, because a newer memory has the same key or text
    left_out: int = 0  # purged here, or of another space
    facts: int = 0
    entities: int = 0
    updates: int = 0
    lenses: int = 0
    events: int = 0
    screened: int = 0  # memories with private parts, which were not stored, or secrets, handled as the policy says

    def __add__(self, other: LoadCounts) -> LoadCounts:
        return LoadCounts(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(LoadCounts)}
        )


def update_name(newer: str, older: str) -> str:
    """The name of an update among what was dropped."""
    return f"{newer} {older}"
