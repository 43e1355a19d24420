"""What memories say, as values: facts, entities, and relations between them.

A fact belongs to one memory. A relation is a fact whose object is an entity. Defaults stand here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, TypedDict

FactType: TypeAlias = Literal[
    "identity", "preference", "relationship", "location", "config", "decision", "kv", "state", "temporal"
]
Origin: TypeAlias = Literal["given", "extracted"]
Reinforcement: TypeAlias = Literal["explicit", "import", "reference", "recall"]

# By how much confidence fades in a day: effective = confidence · exp(-rate · days).
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
    """A fact to be kept with a memory.

    `decay_rate=None` is the rate of its type. `relation`: the object is an entity. `single`: a newer value
    takes the place of this one; None leaves that to the predicate. `quote` is the part of the text that says it.
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
    """A fact as kept. It holds from `valid_from` up to, not including, `valid_to`."""

    id: str
    memory_id: str
    space: str
    subject: str
    predicate: str
    object: str
    type: FactType
    confidence: float
    decay_rate: float
    reinforced: datetime  # its fading counts from here
    touched: datetime  # when it was last reinforced
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None
    quote: str | None
    relation: bool
    single: bool
    origin: Origin
    ends: datetime | None = None  # the end that was given; `valid_to` may be earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """An entity that a memory is about. Aliases are other names of the same."""

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


# ---------------------------------------------------------------- questions


class FactOptions(TypedDict, total=False):
    """What `facts(…)` takes: the fields of FactQuery."""

    spaces: Sequence[str]
    subject: str | None
    predicate: str | None
    object: str | None
    type: FactType | None
    memory_id: str | None
    relations: bool
    as_of: datetime | None
    history: bool
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuery:
    """Which facts. Names are compared without regard to case, a subject or object by its aliases, too.

    `spaces=()` means the space the engine was opened with. `relations` leaves out facts about no entity.
    `as_of=None` is now; `history` gives those that hold no longer or not yet, too.
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
    limit: int = 100


# ---------------------------------------------------------------- answers


class Belief(NamedTuple):
    """A fact and how far it is believed at the time of asking."""

    fact: Fact
    effective: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Facts that hold at the same time and cannot all be true."""

    subject: str
    predicate: str
    beliefs: tuple[Belief, ...]


@dataclass(frozen=True, slots=True)
class RelatedEntity:
    """An entity some relations away, with the relations that lead to it."""

    name: str
    distance: int
    path: tuple[Fact, ...]
