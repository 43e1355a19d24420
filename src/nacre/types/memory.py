"""Memories: new ones, stored ones, and the values of the write path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

from nacre.types.facts import Fact, NewEntity, NewFact

if TYPE_CHECKING:  # numpy costs 90 ms to import; keyword search never needs it
    import numpy as np
    import numpy.typing as npt

    FloatMatrix: TypeAlias = npt.NDArray[np.float32]  # one row per text
    FloatVector: TypeAlias = npt.NDArray[np.float32]

# What makes two memories the same: their space, and the caller's key or, without one, the hash of the text.
Identity: TypeAlias = tuple[str, "str | bytes"]

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


JsonScalar: TypeAlias = str | int | float | bool | None


DEFAULT_SPACE = "default"


STANDING_KINDS = ("preference", "instruction")  # what holds for everything that is done
DEFAULT_KIND = "note"
DEFAULT_NAMESPACE = "general"
DEFAULT_IMPORTANCE = 0.5


BREAK = "|"  # separates tokens that are not adjacent; no text has this token


class MemoryFields(TypedDict, total=False):
    """The optional fields of a new memory. `update` can change these and `text`."""

    kind: str | None
    namespace: str
    summary: str | None
    tags: Sequence[str]
    source: str | None
    session: str | None
    position: int | None
    metadata: Mapping[str, Json]
    importance: float
    happened: datetime | None
    pinned: bool
    origin: str | None
    key: str | None
    expires: datetime | timedelta | None
    language: str | None


class NewMemoryFields(MemoryFields, total=False):
    """The keyword arguments of `remember(text, …)`."""

    space: str | None
    created: datetime | None
    facts: Sequence[NewFact]
    entities: Sequence[str | NewEntity]
    extract: bool | None
    supersedes: str | Sequence[str]


class Changes(MemoryFields, total=False):
    """The keyword arguments of `update(id, …)`. Only the given fields are changed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A text to remember. `space=None` means the space the engine was opened with.

    `created` is the time of remembering, `happened` the time of the event, if that differs. `session` is the
    conversation that it is a turn of; `origin` is the connection or run that wrote it. `pinned` keeps it in every
    context that has room. `extract=None` leaves it to the engine whether facts are extracted from the text.
    `kind=None` means a note; with extraction, a text that is recognised as a preference or an instruction gets that
    kind. `supersedes` are the ids of memories that this one replaces. `key` is the caller's own name for it, unique in
    its space: remembering it again updates the memory. After `expires`, a time or a duration from now, it is forgotten.
    `language` is the ISO 639-1 code of the language of the text; None: it is recognised, if it is clear.
    """

    text: str
    space: str | None = None
    kind: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    summary: str | None = None
    tags: Sequence[str] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    importance: float = DEFAULT_IMPORTANCE
    created: datetime | None = None
    happened: datetime | None = None
    pinned: bool = False
    origin: str | None = None
    key: str | None = None
    expires: datetime | timedelta | None = None
    language: str | None = None
    facts: Sequence[NewFact] = ()
    entities: Sequence[str | NewEntity] = ()
    extract: bool | None = None
    supersedes: str | Sequence[str] = ()


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
    pinned: bool = False
    origin: str | None = None
    key: str | None = None
    expires: datetime | None = None
    language: str | None = None
    facts: tuple[Fact, ...] = field(default=(), compare=False)  # loaded where a memory is returned in full, as by `get`
    notes: tuple[str, ...] = field(default=(), compare=False)  # of `update`: on private parts and secrets

    @property
    def moment(self) -> datetime:
        """When it happened, or else was created."""
        return self.happened or self.created

    def seen_at(self, now: datetime) -> Memory:
        """The memory as of a time: one that has expired is forgotten, whether or not the store has done so yet."""
        over = self.deleted is None and self.expires is not None and self.expires <= now
        return replace(self, deleted=self.expires) if over else self

    def changed_at(self, now: datetime) -> datetime:
        """The time of a change that is made now: later than all before it, whatever the clock says."""
        last = self.updated if self.deleted is None else max(self.updated, self.deleted)
        return max(now, last + timedelta(microseconds=1))

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of a conversation, and not a note."""
        return self.position is not None or self.kind == "episode"


class Remembered(NamedTuple):
    """The receipt for one remembered text. `duplicate` means that its key or its text was stored already, as this id.

    `changed` names what that memory gained or what was replaced in it; its history has what was there before.
    `recalled` are memories that were delivered to the same session, if the text only repeats these. Then nothing was
    stored. `notes` say where private parts were left out and where secrets were found, never what these are.
    """

    id: str
    duplicate: bool
    recalled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Forgotten(NamedTuple):
    """The memories that `forget` hid, and the ids that no memory has."""

    ids: tuple[str, ...]
    missing: tuple[str, ...] = ()


class Purged(NamedTuple):
    """The memories that `purge` deleted. `pending` says why bytes of them may still be in the store's files.

    Of a file they are removed by the next write that can, of any process; PostgreSQL overwrites them in its own time.
    None: nothing is left.
    """

    ids: tuple[str, ...]
    pending: str | None = None

    @property
    def scrubbed(self) -> bool:
        return self.pending is None


class Update(NamedTuple):
    """A newer memory that updates an older one; both stay. `cue` are the words that show it, empty if it was given."""

    newer: str
    older: str
    cue: str = ""


class Span(NamedTuple):
    """A slice of a text: characters from `start` up to, not including, `end`."""

    start: int
    end: int


class Tokens(NamedTuple):
    """The tokens of a memory.

    `words` are those of the text, in order; `forms` are other tokens for the same words, such as stems. Each label has
    all its tokens in one row, with BREAK between tokens that are not adjacent.
    """

    words: tuple[str, ...]
    forms: tuple[str, ...]
    length: int  # of the text, in words; a word that lost diacritics counts twice
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a text: their spans, and one vector for each.

    `tokens` are the packed token vectors of each passage, b"" where no token is kept. None: without token vectors.
    """

    spans: tuple[Span, ...]
    vectors: FloatMatrix
    tokens: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory ready to be written: row, tokens and, with an embedder, passages."""

    memory: Memory
    content_hash: bytes
    tokens: Tokens
    passages: Passages | None
    facts: tuple[Fact, ...] = ()
    entities: tuple[NewEntity, ...] = ()
    sketch: tuple[int, ...] = ()  # by which near-duplicates are looked up
    updates: tuple[Update, ...] = ()  # of older memories by this one
    # By fingerprint of a further model: passages of its own, none where it does not know the language of the text.
    further: Mapping[str, Passages] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        return self.memory.space, self.memory.key or self.content_hash


class Replacement(NamedTuple):
    """A changed memory, and the memory that it takes the place of."""

    entry: Entry
    previous: Memory


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the append-only log. `before` holds the values that an update replaced."""

    seq: int
    at: datetime
    action: str
    memory_id: str
    before: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a long operation."""

    done: int
    total: int
