"""A tool as a value: its name, description and schemas, and the function that answers a call. No protocol here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    notes: Sequence[str] = ()  # on arguments that were read otherwise than given


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. `text` replaces the JSON as the text that a model reads. `meta` is for programs: clients do
    not hand it to a model."""

    content: dict[str, Json]
    text: str | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    title: str
    description: str
    effect: Effect
    answer: Callable[[Call], Answer]
    input: dict[str, Json]  # JSON Schema of an object
    output: dict[str, Json] | None = None  # None: not described in advance
    text_only: bool = False  # no structured content: every client hands over the text, and its size is known
    strict: bool = False  # arguments must be as the schema says; the answer has no notes
    request: type | None = None  # the dataclass whose fields are accepted, too, where the schema does not name them
    repeatable: bool = True  # a second call with the same arguments changes nothing more
    converses: bool = False  # a call may talk with the client before it answers: a question, or progress
