"""What a question says about time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from nacre.types.memory import Span
from nacre.types.search import Period

Order: TypeAlias = Literal["first", "last"]
Relation: TypeAlias = Literal["before", "after", "since"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A time expression inside a text."""

    span: Span
    period: Period


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event that a question counts from: "the migration" in "what changed after the migration"."""

    relation: Relation
    span: Span  # of the event
    text: str


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """`rest` is the question without the words of its periods, its order and its relation to an event.

    `listing`: little but the period is asked for, as in "what happened in June".
    """

    mentions: tuple[Mention, ...]
    order: Order | None
    anchor: Anchor | None
    asks_when: bool
    asks_past: bool
    rest: str
    listing: bool
