"""A tool as values: what a client is told of it, and what it does. Nothing here knows the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nacre.engine.engine import Nacre
from nacre.types.memory import Json, Progress

Effect = Literal["reads", "adds", "changes"]  # "changes" may hide or delete what was there


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: what was given, by whom, and on which memory."""

    memory: Nacre  # opened with the caller's space, and confined to it
    arguments: Mapping[str, Any]
    session: str | None  # of the caller, for the recall log; None where the protocol knows none
    report: Callable[[Progress], None]  # tells the caller how far long work has come


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives back. `text` is what a model reads where the JSON would say it worse."""

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
    repeatable: bool = True  # called again with the same arguments, it changes nothing more
