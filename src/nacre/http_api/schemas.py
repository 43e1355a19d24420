"""JSON Schemas of the arguments and results of verbs, made from their types.

Where the JSON of a result is not field by field like its type, `_SHAPES` says how it differs; tests hold every answer
against its schema.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal

from nacre.engine.explain import Why
from nacre.query.lenses import Lens
from nacre.serialization.arguments import Parameter, members
from nacre.serialization.results import hints_of
from nacre.types.facts import Belief, Disagreement, Fact, NewEntity, NewFact
from nacre.types.health import Finding, Health
from nacre.types.memory import Forgotten, Json, Memory, NewMemory, Purged, Span, Update
from nacre.types.recall_log import Receipt
from nacre.types.recipe import WEIGHTS, Recipe, Tuning
from nacre.types.search import Filter, Hit
from nacre.types.transfer import Record
from nacre.types.views import Fetched, Timeline, TimelineEntry

Schema = dict[str, Json]

_SIMPLE: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
_TIME: Final = "A time in ISO 8601, or as people write it: 7d, yesterday, 2026-03."
_EXPIRY: Final = "A time to come in ISO 8601, or how long from now: 90s, 30m, 12h, 7d, 2w, 6mo or 1y."
_INPUTS: Final = (NewMemory, NewFact, NewEntity, Filter, Lens, Recipe)


class Schemas:
    """Collects the schemas of named types, which others refer to."""

    def __init__(self) -> None:
        self.components: dict[str, Json] = {}

    # ---- arguments

    def argument(self, parameter: Parameter) -> Schema:
        """The schema of an argument in a body. One that is null counts as not given."""
        return self._given(parameter.hint, nullable=not parameter.required)

    def _given(self, hint: Any, *, nullable: bool = True) -> Schema:
        found = [each for inner in members(hint) for each in self._one_given(inner)]
        if timedelta in members(hint):
            found = [{"type": "string", "minLength": 1, "description": _EXPIRY, "examples": ["90d"]}]
        if nullable:
            found.append({"type": "null"})
        return _any_of(_unique(found))

    def _exact(self, hint: Any) -> Schema:
        """The schema of a value that only stands for itself: a list is no text, and a time is in ISO 8601."""
        if datetime in members(hint):
            return _any_of([{"type": "string", "format": "date-time"}, {"type": "null"}])
        found = [each for inner in members(hint) for each in self._one_given(inner)]
        if any(each.get("type") == "array" for each in found):
            found = [each for each in found if each.get("type") != "string"]
        return _any_of([*found, {"type": "null"}] if NoneType in typing.get_args(hint) else found)

    def _one_given(self, hint: Any) -> list[Schema]:
        """What stands for a value of this type; nothing if it has no JSON."""
        if hint in _SIMPLE:
            return [{"type": _SIMPLE[hint]}]
        if hint is datetime:
            return [
                {"type": "string", "minLength": 1, "description": _TIME, "examples": ["7d", "2026-03-01T12:30:00Z"]}
            ]
        if hint in _INPUTS:
            return [self._input(hint)]
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal:
            return [{"type": "string", "enum": [*inner]}]
        if origin in (Sequence, Iterable, list, tuple):
            items: list[Schema] = [{"type": "array", "items": self._given(inner[0], nullable=False)}]
            return [{"type": "string"}, *items] if inner[0] is str else items  # one text is a list of one
        if origin is Mapping:
            return [{"type": "object"}]
        return [{"type": "string"}] if origin is PathLike or hint is PathLike else []

    def _input(self, of: type) -> Schema:
        if of.__name__ not in self.components:
            self.components[of.__name__] = {}  # before its fields: types may refer to themselves
            if of is Recipe:
                hints = {**typing.get_type_hints(Recipe), **typing.get_type_hints(Tuning)}
                fields: dict[str, Schema] = {
                    name: {"anyOf": [self._given(hints[name], nullable=False), {"type": "string", "minLength": 1}]}
                    for name in WEIGHTS
                }
                required: list[str] = []
            else:
                hints = hints_of(of)
                own = [each for each in dataclasses.fields(of) if each.init and each.name != "built_in"]
                given = self._exact if of in (Filter, Lens) else self._given
                fields = {each.name: given(hints[each.name]) for each in own}
                required = [each.name for each in own if not _has_default(each)]
            self.components[of.__name__] = _object(fields, required) | {"additionalProperties": False}
        return _reference(of)

    # ---- results

    def result(self, hint: Any) -> Schema:
        """The schema of a result."""
        if hint in _SIMPLE:
            return {"type": _SIMPLE[hint]}
        if hint is datetime:
            return {"type": "string", "format": "date-time"}
        if hint is Path:
            return {"type": "string"}
        if hint is Span:
            return {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
        if hint == Record:
            return {"type": "object"}
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal:
            return {"type": "string", "enum": [*inner]}
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self.result(inner[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.result(inner[1])}
        if origin in (typing.Union, UnionType):
            return {"anyOf": [*(_unique([self.result(each) for each in inner]))]}
        if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
            return self._output(hint)
        return {}

    def _output(self, of: type) -> Schema:
        name = f"{of.__name__}Result" if of in _INPUTS else of.__name__
        if name not in self.components:
            self.components[name] = {}
            if of in _SHAPES:
                shape = _SHAPES[of]
                fields = self._of_type(shape.like, shape.without) | {
                    each: self.result(inner) for each, inner in shape.more.items()
                }
            else:
                shape = _Shape()
                fields = self._of_type(of, ())
            required = [each for each in fields if each not in shape.optional]
            if of in _INPUTS:  # what does not differ from its default is left out
                required = ["name"] if of is Lens else []
            self.components[name] = _object(fields, required)
        return {"$ref": f"#/components/schemas/{name}"}

    def _of_type(self, of: type | None, without: Sequence[str]) -> dict[str, Schema]:
        if of is None:
            return {}
        names = [each.name for each in dataclasses.fields(of)] if dataclasses.is_dataclass(of) else of._fields  # type: ignore[attr-defined]
        hints = hints_of(of)
        return {name: self.result(hints[name]) for name in names if name not in without}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Shape:
    """How the JSON of a type differs from it: it is like `like`, or nothing, `without` some fields and with `more`."""

    like: type | None = None
    without: tuple[str, ...] = ()
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    optional: tuple[str, ...] = ()


_LINKS: Mapping[str, Any] = {
    "updates": list[str],
    "updated_by": list[str],
    "entities": list[dict[str, Any]],
    "neighbours": list[TimelineEntry],
}
_OF_MEMORY = ("space", "kind", "namespace", "tags", "source", "session", "position", "happened", "pinned", "importance")
_MEMORY_HINTS = typing.get_type_hints(Memory)


class MemoryInFull:
    """A memory with what links it to others. It has no type of its own in the library."""


_SHAPES: Mapping[Any, _Shape] = {
    Belief: _Shape(like=Fact, more={"effective": float}, optional=("touched", "ends", "notes")),
    Disagreement: _Shape(like=Disagreement, without=("beliefs",), more={"facts": list[Belief]}),
    Fact: _Shape(like=Fact, optional=("touched", "ends", "notes")),
    Fetched: _Shape(
        more={"memories": list[MemoryInFull], "missing": list[str], "links": list[Update]}, optional=("links",)
    ),
    Forgotten: _Shape(more={"forgotten": list[str], "missing": list[str]}, optional=("missing",)),
    Health: _Shape(more={"sound": bool, "findings": list[Finding]}),
    Hit: _Shape(
        like=Hit,
        without=("memory", "beliefs", "facts"),
        more={
            "id": str,
            **{name: _MEMORY_HINTS[name] for name in _OF_MEMORY},
            "created": datetime,
            "facts": list[dict[str, Any]],  # with their confidence, if that was asked for
            "memory": Memory,
            "all_facts": list[Fact],
        },
        optional=("memory", "all_facts"),
    ),
    Memory: _Shape(like=Memory, optional=("notes",)),
    MemoryInFull: _Shape(like=Memory, more=_LINKS, optional=("notes", *_LINKS)),
    Receipt: _Shape(like=Receipt, optional=("origin", "repeat")),
    Purged: _Shape(more={"purged": list[str], "scrubbed": bool, "pending": str | None}),
    Timeline: _Shape(like=Timeline, optional=("histogram",)),
    Why: _Shape(like=Why),
}


def _object(fields: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": {**fields}}
    return schema | {"required": [*required]} if required else schema


def _reference(of: type) -> Schema:
    return {"$ref": f"#/components/schemas/{of.__name__}"}


def without_null(schema: Schema) -> Schema:
    """The schema of the same value where it cannot be null."""
    several = schema.get("anyOf")
    if not isinstance(several, list):
        return schema
    return _any_of([each for each in several if isinstance(each, dict) and each != {"type": "null"}])


def _any_of(several: list[Schema]) -> Schema:
    return several[0] if len(several) == 1 else {"anyOf": [*several]}


def _unique(schemas: Sequence[Schema]) -> list[Schema]:
    found: list[Schema] = []
    for each in schemas:
        if each not in found:
            found.append(each)
    return found


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
