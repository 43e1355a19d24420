"""Requests and results of `timeline`, `get` and `context`. All defaults are defined here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias, TypedDict, overload

from nacre.types.facts import Entity
from nacre.types.memory import Memory, Update
from nacre.types.recipe import USUAL_RECIPE, Recipe
from nacre.types.search import Filter, RerankMode

Bucket: TypeAlias = Literal["day", "week", "month"]


# ---------------------------------------------------------------- timeline


class TimelineOptions(TypedDict, total=False):
    """The keyword arguments of `timeline(start, end, …)`: the other fields of TimelineRequest."""

    where: Filter
    limit: int
    oldest_first: bool
    forgotten: bool
    cursor: str | None
    around: str | None
    span: int
    histogram: Bucket | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """A page of summaries by creation time. `forgotten` lists the soft-deleted ones instead.

    `start` is inclusive, `end` exclusive; with times in `where`, the narrower range counts. `around` is the id of a
    memory to show with `span` memories before it and as many after it; then `limit` is ignored, and `where.spaces=()`
    means the space of that memory. `histogram` counts all memories that match, not only those on the page.
    """

    start: datetime | None = None
    end: datetime | None = None
    where: Filter = field(default_factory=Filter)
    limit: int = 50
    oldest_first: bool = False
    forgotten: bool = False
    cursor: str | None = None  # the `next` of the previous page
    around: str | None = None
    span: int = 5
    histogram: Bucket | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    id: str
    created: datetime
    happened: datetime | None = None
    space: str
    kind: str
    namespace: str
    tags: tuple[str, ...]
    session: str | None
    position: int | None
    summary: str  # the given one, or the beginning of the text
    pinned: bool = False
    anchor: bool = False  # the memory of `around`


@dataclass(frozen=True, slots=True)
class Timeline:
    entries: tuple[TimelineEntry, ...]
    next: str | None  # cursor of the next page, None on the last
    # By bucket, like 2026-11-15, 2026-W46 or 2026-11, in the user's time zone, in order; empty unless requested.
    histogram: Mapping[str, int] = field(default_factory=dict)


# ---------------------------------------------------------------- get


class Neighbours(NamedTuple):
    """The ids of the memories before and after one in its session, both in the session's order."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fetched(Sequence[Memory]):
    """Memories in the requested order. It is a sequence of them, with what else was requested as attributes."""

    memories: tuple[Memory, ...]
    missing: tuple[str, ...] = ()  # ids that no memory has
    entities: Mapping[str, tuple[Entity, ...]] = field(default_factory=dict)  # by memory; empty unless requested
    # By memory, its neighbours in the session, in order; empty unless requested.
    neighbours: Mapping[str, tuple[TimelineEntry, ...]] = field(default_factory=dict)
    updates: tuple[Update, ...] = ()  # from and to these memories, between live ones

    def __len__(self) -> int:
        return len(self.memories)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    @overload
    def __getitem__(self, at: int) -> Memory: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Memory, ...]: ...

    def __getitem__(self, at: int | slice) -> Memory | tuple[Memory, ...]:
        return self.memories[at]


# ---------------------------------------------------------------- context


class ContextOptions(TypedDict, total=False):
    """The keyword arguments of `context(query, budget_tokens, …)`: the other fields of ContextRequest."""

    where: Filter
    recipe: Recipe
    session: str | None
    folder: str | None
    repeat: bool
    min_score: float | None
    as_of: datetime | None
    rerank: RerankMode | bool
    count: Callable[[str], int] | None
    origin: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """A request for the memories about a query, packed into a text for an agent's prompt.

    Memories that were delivered to the session in full, a short time ago, are left out. `repeat` says that the session
    has lost them: they are given again, and earlier deliveries no longer count. Without a session nothing is left out;
    `origin` is the connection that asks, for the recall log. `count` counts the tokens of a text; None uses the
    embedder's tokenizer. `min_score=None` quotes what bears on the query, and nothing if no memory answers it; a number
    quotes everything that is at least that relevant. `rerank` is that of the search.
    """

    query: str
    budget_tokens: int = 1_500
    where: Filter = field(default_factory=Filter)
    recipe: Recipe = field(default_factory=lambda: USUAL_RECIPE)
    session: str | None = None
    folder: str | None = None
    repeat: bool = False
    min_score: float | None = None
    as_of: datetime | None = None
    rerank: RerankMode | bool = "fast"
    count: Callable[[str], int] | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Quoted:
    """A memory in a context. `excerpt`: only a part of its text. `instead_of`: older memories that it supersedes."""

    id: str
    relevance: float
    excerpt: bool
    instead_of: tuple[str, ...] = ()


class LeftOut(NamedTuple):
    """A relevant memory that is not in the context. `delivered`: the session was given it before."""

    id: str
    why: Literal["budget", "delivered", "superseded"]


# Why a context is as it is: it quotes memories; no memory answers; the session was given all of them; no room.
ContextOutcome: TypeAlias = Literal["answered", "nothing", "delivered", "budget"]


@dataclass(frozen=True, slots=True)
class Context:
    """Memories packed into a text within the token budget, the most useful first.

    If none is quoted, `outcome` says why, and so does the text in one line.
    """

    text: str
    tokens: int
    quoted: tuple[Quoted, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    receipt: str | None = field(default=None, compare=False)  # its id in the recall log
    outcome: ContextOutcome = "answered"
