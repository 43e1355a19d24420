"""A tool as a value: its name, description and schemas, and the function that answers a call. No protocol here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nacre.types.memory import Json, Progress

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre

Effect = Literal["reads", "adds", "changes"]  # "changes" may hide or delete memories


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    memory: Nacre  # confined to the caller's space
    arguments: Mapping[str, Any]
    session: str | None  # of the connection: recall log and origin of memories; None where the protocol has no sessions
    report: Callable[[Progress], None]  # sends progress of long work to the caller


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. `text` replaces the JSON as the text that a model reads."""

    content: dict[str, Json]
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    effect: Effect
    answer: Callable[[Call], Answer]
    input: dict[str, Json]  # JSON Schema of an object
    output: dict[str, Json]
    title: str | None = None
    repeatable: bool = True  # a second call with the same arguments changes nothing more
    converses: bool = False  # a call may talk with the client before it answers: a question, or progress
