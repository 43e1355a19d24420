"""Facts, entities and relations, and the queries and results about them.

A fact belongs to one memory. A relation is a fact whose object is an entity. All defaults are defined here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, TypedDict

FactType: TypeAlias = Literal[
    "identity", "preference", "relationship", "location", "config", "decision", "kv", "state", "temporal"
]
Origin: TypeAlias = Literal["given", "extracted"]
Reinforcement: TypeAlias = Literal["explicit", "import", "reference", "recall"]

# Decay rates of confidence: effective = confidence · exp(-rate · days).
DECAY_PER_DAY: Mapping[FactType, float] = MappingProxyType(
    {
        "identity": 0.01,
        "preference": 0.02,
        "relationship": 0.02,
        "location": 0.03,
        "config": 0.03,
        "decision": 0.05,
        "kv": 0.05,
        "state": 0.10,
        "temporal": 0.15,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to store with a memory.

    `decay_rate=None` is the rate of its type. `relation` means that the object is an entity. `single` means that a
    newer value supersedes this one; None decides by the predicate. `quote` is the part of the text that states it.
    """

    subject: str
    predicate: str
    object: str
    type: FactType = "kv"
    confidence: float = 1.0
    decay_rate: float | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    quote: str | None = None
    relation: bool = False
    single: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A stored fact. It is current from `valid_from` up to, not including, `valid_to`."""

    id: str
    memory_id: str
    space: str
    subject: str
    predicate: str
    object: str
    type: FactType
    confidence: float
    decay_rate: float
    reinforced: datetime  # the start of its decay
    touched: datetime  # when it was last reinforced
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None
    quote: str | None
    relation: bool
    single: bool
    origin: Origin
    ends: datetime | None = None  # the given end; `valid_to` is earlier if the fact was superseded
    notes: tuple[str, ...] = field(default=(), compare=False)  # of `add_facts` and `state_fact`: on secrets

    @property
    def statement(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """An entity that a memory is about. Aliases are its other names."""

    name: str
    type: str | None = None
    aliases: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A canonical name with its aliases, in one space."""

    name: str
    space: str
    type: str | None
    aliases: tuple[str, ...]


# ---------------------------------------------------------------- queries


class FactOptions(TypedDict, total=False):
    """The keyword arguments of `facts(…)`: the fields of FactQuery."""

    spaces: Sequence[str]
    subject: str | None
    predicate: str | None
    object: str | None
    type: FactType | None
    memory_id: str | None
    relations: bool
    as_of: datetime | None
    history: bool
    min_confidence: float
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuery:
    """Selects facts. Names are compared ignoring case; subjects and objects also match by their aliases.

    `spaces=()` means the space the engine was opened with. `relations` selects only relations. `as_of=None` is now.
    `history` includes facts that are no longer, or not yet, current. `min_confidence` is the least effective confidence
    at that time.
    """

    spaces: Sequence[str] = ()
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    type: FactType | None = None
    memory_id: str | None = None
    relations: bool = False
    as_of: datetime | None = None
    history: bool = False
    min_confidence: float = 0.0
    limit: int = 100


# ---------------------------------------------------------------- results


class Belief(NamedTuple):
    """A fact with its effective confidence at the time of the query."""

    fact: Fact
    effective: float


class Statement(NamedTuple):
    """A memory that takes part in a disagreement. `since` is when it happened, or else was written."""

    memory_id: str
    text: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Facts that are current at the same time but contradict each other; or two memories that may do so.

    In the second case `beliefs` is empty, `subject` has the words that both memories share, and `predicate` the words
    by which the newer one shows a change. `memories` are the oldest first.
    """

    subject: str
    predicate: str
    beliefs: tuple[Belief, ...]
    memories: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class RelatedEntity:
    """An entity that is connected by relations. `path` are these relations, and `distance` is their number."""

    name: str
    distance: int
    path: tuple[Fact, ...]
