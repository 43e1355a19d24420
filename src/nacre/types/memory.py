"""Memories on their way in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

from nacre.types.facts import Fact, NewEntity, NewFact

if TYPE_CHECKING:  # numpy costs 90 ms to import; keyword search never needs it
    import numpy as np
    import numpy.typing as npt

    FloatMatrix: TypeAlias = npt.NDArray[np.float32]  # one row a text
    FloatVector: TypeAlias = npt.NDArray[np.float32]

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


JsonScalar: TypeAlias = str | int | float | bool | None


DEFAULT_SPACE = "default"


BREAK = "|"  # a token that no text has: what stands on its two sides is not side by side


class MemoryFields(TypedDict, total=False):
    """The optional fields of a new memory, and what `update` may change (with `text`)."""

    kind: str
    namespace: str
    summary: str | None
    tags: Sequence[str]
    source: str | None
    session: str | None
    position: int | None
    metadata: Mapping[str, Json]
    importance: float
    happened: datetime | None


class NewMemoryFields(MemoryFields, total=False):
    """What `remember(text, …)` takes besides the text."""

    space: str | None
    created: datetime | None
    facts: Sequence[NewFact]
    entities: Sequence[str | NewEntity]
    extract: bool | None


class Changes(MemoryFields, total=False):
    """What `update(id, …)` takes: only the fields named are changed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A text to remember. `space=None` means the space the engine was opened with.

    `created` is when it was remembered, `happened` when what it tells took place, where that differs.
    `extract=None` leaves it to the engine whether facts are read from the text.
    """

    text: str
    space: str | None = None
    kind: str = "note"
    namespace: str = "general"
    summary: str | None = None
    tags: Sequence[str] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    importance: float = 0.5
    created: datetime | None = None
    happened: datetime | None = None
    facts: Sequence[NewFact] = ()
    entities: Sequence[str | NewEntity] = ()
    extract: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A remembered text with its metadata, as stored."""

    id: str
    space: str
    kind: str
    namespace: str
    text: str
    summary: str | None
    tags: tuple[str, ...]
    source: str | None
    session: str | None
    position: int | None
    metadata: Mapping[str, Json]
    importance: float
    created: datetime
    updated: datetime
    deleted: datetime | None = None
    happened: datetime | None = None
    facts: tuple[Fact, ...] = field(default=(), compare=False)  # filled where a memory is given in full


class Remembered(NamedTuple):
    """The receipt for one remembered text. `duplicate`: the same text was there already, under this id.

    `recalled`: the text only gives back what its own session was told, by these memories; nothing was stored.
    """

    id: str
    duplicate: bool
    recalled: tuple[str, ...] = ()


class Span(NamedTuple):
    """A slice of a text: characters from `start` up to, not including, `end`."""

    start: int
    end: int


class Tokens(NamedTuple):
    """What the one tokeniser makes of a memory.

    `words` of the text keep their order; `forms` are further names for them. Each label has all its
    tokens in one row, with BREAK between words that do not stand side by side.
    """

    words: tuple[str, ...]
    forms: tuple[str, ...]
    length: int  # of the text, in words; a spelling that was folded counts a little longer
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passages:
    """Where a text was cut, and one vector for each slice."""

    spans: tuple[Span, ...]
    vectors: FloatMatrix


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory ready to be written: row, tokens and (when there is an embedder) passages."""

    memory: Memory
    content_hash: bytes
    tokens: Tokens
    passages: Passages | None
    facts: tuple[Fact, ...] = ()
    entities: tuple[NewEntity, ...] = ()
    sketch: tuple[int, ...] = ()  # by which texts that are nearly the same are looked up


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only log. `before` holds what an update replaced."""

    seq: int
    at: datetime
    action: str
    memory_id: str
    before: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far long work has come."""

    done: int
    total: int
