"""Worlds: small stores with a clock, and questions whose answers are known. Loading checks every field.

`worlds/CLASS.json` holds the worlds of one class, `worlds/bases/NAME.json` memories that several worlds share as
distractors. benchmarks/README.md describes the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "worlds"

CLASSES = (
    "updates",
    "time",
    "nothing",
    "words",
    "session",
    "several",
    "identifiers",
    "negation",
    "preferences",
    "languages",
)
WORLDS_MIN = 10  # of a class
MEMORIES_MIN, MEMORIES_MAX = 8, 40  # of a world, without its base
QUESTIONS_MAX = 4

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WORLD = {"name", "now", "base", "memories", "questions"}
_MEMORY = {"id", "text", "created", "session", "position", "kind", "source"}
_BASE_MEMORY = {"text", "created"}
_QUESTION = {"ask", "answers", "stale", "fine", "any"}


class BadWorld(ValueError):
    """Names the file, the world and the field."""


@dataclass(frozen=True, slots=True)
class WorldMemory:
    """A memory to write. `label` is its id in the file; the store gives it another."""

    label: str
    text: str
    created: datetime
    session: str | None = None
    position: int | None = None
    kind: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the labels that judge it. Without `answers`, nothing in the world answers it.

    `any`: one of the answers is enough. `stale` memories must stand below every answer. `fine` ones are useful, and
    not needed.
    """

    ask: str
    answers: tuple[str, ...]
    stale: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()
    any: bool = False

    @property
    def answerable(self) -> bool:
        return bool(self.answers)


@dataclass(frozen=True, slots=True)
class World:
    """A store and its questions. `memories` include those of the base, in the order in which they are written.

    The first `common` are of the base: other worlds begin with the same.
    """

    name: str
    class_name: str
    now: datetime
    memories: tuple[WorldMemory, ...]
    questions: tuple[Question, ...]
    common: int = 0


def load(folder: Path = FOLDER, classes: Sequence[str] = CLASSES) -> list[World]:
    """The worlds of these classes. Raises BadWorld."""
    bases = {path.stem: _base(path) for path in sorted((folder / "bases").glob("*.json"))}
    worlds: list[World] = []
    seen: dict[str, str] = {}
    for class_name in classes:
        path = folder / f"{class_name}.json"
        found = _list(_json(path), path.name)
        if len(found) < WORLDS_MIN:
            raise BadWorld(f"{path.name}: has {len(found)} worlds; at least {WORLDS_MIN} are needed")
        for number, data in enumerate(found):
            world = _world(data, class_name, bases, f"{path.name}, world {number}")
            if world.name in seen:
                raise BadWorld(f"{path.name}, world {world.name}, name: {seen[world.name]} has this name, too")
            seen[world.name] = path.name
            worlds.append(world)
    return worlds


# ---------------------------------------------------------------- the parts of a world


def _world(data: Any, class_name: str, bases: Mapping[str, Sequence[WorldMemory]], place: str) -> World:
    fields = _fields(data, _WORLD, place)
    name = _text(fields, "name", place)
    place = f"{class_name}.json, world {name}"
    if not _NAME.fullmatch(name):
        raise BadWorld(f"{place}, name: is not kebab-case")
    now = _moment(fields, "now", place)
    memories = [
        _memory(each, f"{place}, memories[{number}]")
        for number, each in enumerate(_list(fields.get("memories"), f"{place}, memories"))
    ]
    if not MEMORIES_MIN <= len(memories) <= MEMORIES_MAX:
        raise BadWorld(f"{place}, memories: has {len(memories)}; allowed: {MEMORIES_MIN} to {MEMORIES_MAX}")
    _check_unique([each.label for each in memories], f"{place}, memories, id")
    base = _text(fields, "base", place) if fields.get("base") is not None else None
    if base is not None and base not in bases:
        raise BadWorld(f"{place}, base: {base!r} is unknown; there are: {', '.join(bases) or 'none'}")
    everything = [*memories, *(bases[base] if base is not None else ())]
    for each in everything:
        if each.created >= now:
            raise BadWorld(f"{place}, memory {each.label}.created: {each.created.isoformat()} is not before `now`")
    # An equal text is stored once, so two labels would name one memory.
    _check_unique([each.text for each in everything], f"{place}, memories, text")
    questions = _list(fields.get("questions"), f"{place}, questions")
    if not 1 <= len(questions) <= QUESTIONS_MAX:
        raise BadWorld(f"{place}, questions: has {len(questions)}; allowed: 1 to {QUESTIONS_MAX}")
    labels = {each.label for each in memories}
    everything.sort(key=lambda each: each.created)
    return World(
        name,
        class_name,
        now,
        tuple(everything),
        tuple(_question(each, labels, f"{place}, questions[{number}]") for number, each in enumerate(questions)),
        next(at for at, each in enumerate(everything) if each.label in labels),
    )


def _memory(data: Any, place: str) -> WorldMemory:
    fields = _fields(data, _MEMORY, place)
    session, position = _optional(fields, "session", place), fields.get("position")
    if position is not None and (not isinstance(position, int) or isinstance(position, bool) or position < 0):
        raise BadWorld(f"{place}.position: {position!r} is not a number from 0")
    if position is not None and session is None:
        raise BadWorld(f"{place}.position: needs a session")
    return WorldMemory(
        label=_text(fields, "id", place),
        text=_text(fields, "text", place),
        created=_moment(fields, "created", place),
        session=session,
        position=position,
        kind=_optional(fields, "kind", place),
        source=_optional(fields, "source", place),
    )


def _question(data: Any, labels: set[str], place: str) -> Question:
    fields = _fields(data, _QUESTION, place)
    named = {field: _labels(fields, field, labels, place) for field in ("answers", "stale", "fine")}
    if "answers" not in fields:
        raise BadWorld(f"{place}.answers: is missing; [] means that nothing answers")
    _check_unique([label for several in named.values() for label in several], f"{place}, answers, stale and fine")
    either = fields.get("any", False)
    if not isinstance(either, bool):
        raise BadWorld(f"{place}.any: {either!r} is not true or false")
    if either and len(named["answers"]) < 2:
        raise BadWorld(f"{place}.any: needs two answers or more")
    if named["stale"] and not named["answers"]:
        raise BadWorld(f"{place}.stale: needs an answer that it must stand below")
    return Question(_text(fields, "ask", place), named["answers"], named["stale"], named["fine"], either)


def _base(path: Path) -> list[WorldMemory]:
    memories = []
    for number, data in enumerate(_list(_json(path), path.name)):
        place = f"bases/{path.name}, [{number}]"
        fields = _fields(data, _BASE_MEMORY, place)
        memories.append(
            WorldMemory(f"{path.stem}:{number}", _text(fields, "text", place), _moment(fields, "created", place))
        )
    return memories


# ---------------------------------------------------------------- fields


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadWorld(f"{path.name}: cannot be read from {path.parent}") from error
    except ValueError as error:
        raise BadWorld(f"{path.name}: is not JSON: {error}") from error


def _list(data: Any, place: str) -> list[Any]:
    if not isinstance(data, list):
        raise BadWorld(f"{place}: is not a list")
    return data


def _fields(data: Any, known: set[str], place: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise BadWorld(f"{place}: is not an object")
    for field in data.keys() - known:
        raise BadWorld(f"{place}.{field}: is unknown; allowed: {', '.join(sorted(known))}")
    return data


def _text(fields: Mapping[str, Any], field: str, place: str) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not value.strip():
        raise BadWorld(f"{place}.{field}: {value!r} is not a text")
    return value


def _optional(fields: Mapping[str, Any], field: str, place: str) -> str | None:
    return None if fields.get(field) is None else _text(fields, field, place)


def _moment(fields: Mapping[str, Any], field: str, place: str) -> datetime:
    text = _text(fields, field, place)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadWorld(f"{place}.{field}: {text!r} is not a time in ISO 8601") from error
    if moment.tzinfo is None:
        raise BadWorld(f"{place}.{field}: {text!r} has no time zone; add Z")
    return moment.astimezone(UTC)


def _labels(fields: Mapping[str, Any], field: str, labels: set[str], place: str) -> tuple[str, ...]:
    found = _list(fields.get(field, []), f"{place}.{field}")
    for label in found:
        if label not in labels:
            raise BadWorld(f"{place}.{field}: no memory of the world has the id {label!r}")
    return tuple(found)


def _check_unique(values: Sequence[str], place: str) -> None:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise BadWorld(f"{place}: {value!r} is there twice")
