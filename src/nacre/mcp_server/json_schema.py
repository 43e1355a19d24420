"""Short constructors of JSON Schemas, some of them made from the dataclasses and limits that validation uses.

A model reads the schemas of all tools at the start of each conversation, so a schema has only the keys it needs.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, cast

from nacre.types.memory import Json
from nacre.types.recipe import Recipe
from nacre.validation import LIMITS

Schema = dict[str, Json]

_NAMES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    datetime: "string",
    Recipe: "object",
}
_UNBOUNDED = 2**31  # a bound beyond this tells a model nothing


def string(description: str = "") -> Schema:
    return _typed("string", description)


def integer(description: str = "", bounds: str = "") -> Schema:
    return _bounded(_typed("integer", description), bounds)


def number(description: str = "", bounds: str = "") -> Schema:
    return _bounded(_typed("number", description), bounds)


def boolean(description: str = "") -> Schema:
    return _typed("boolean", description)


def enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def array(items: Schema | None = None, description: str = "") -> Schema:
    """An array; of strings if `items` is None."""
    return {**_typed("array", description), "items": items or {"type": "string"}}


def mapping(values: Schema) -> Schema:
    """An object with any keys, whose values are alike."""
    return {"type": "object", "additionalProperties": values}


def obj(properties: Mapping[str, Schema] | None = None, required: tuple[str, ...] = ()) -> Schema:
    """An object; any object if `properties` is None."""
    if properties is None:
        return {"type": "object"}
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return schema | {"required": list(required)} if required else schema


def closed(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object with these properties and no others."""
    return obj(properties, required) | {"additionalProperties": False}


# ---------------------------------------------------------------- from dataclasses and limits


def of(owner: type, name: str, description: str = "", bounds: str = "") -> Schema:
    """The schema of a dataclass's field: its type, default and bounds.

    `bounds` names the range where it is not called like the field.
    """
    schema = {**fields_of(owner)[name]}
    if description:
        schema["description"] = description
    return _bounded(schema, bounds or name)


def _bounded(schema: Schema, name: str) -> Schema:
    """With the range of this name, if there is one: the one that validation checks."""
    if schema["type"] not in ("integer", "number") or name not in LIMITS.ranges:
        return schema
    least, most = LIMITS.ranges[name]
    return schema | {"minimum": least} | ({"maximum": most} if most < _UNBOUNDED else {})


@cache
def fields_of(owner: type) -> Mapping[str, Schema]:
    """The schemas of a dataclass's fields, with their defaults. Fields that JSON has no type for are left out."""
    hints = typing.get_type_hints(owner)
    found: dict[str, Schema] = {}
    for each in dataclasses.fields(owner):
        schema = _of_hint(hints[each.name])
        if schema is not None:
            usual = each.default is not dataclasses.MISSING and each.default not in (None, ())
            found[each.name] = {**schema, "default": cast("Json", each.default)} if usual else schema
    return found


def _of_hint(hint: Any) -> Schema | None:
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return enum(*inner)
    if origin in (typing.Union, UnionType):
        several = [each for each in inner if each is not NoneType]
        if all(typing.get_origin(each) is Literal for each in several):
            return enum(*(value for each in several for value in typing.get_args(each)))
        return _of_hint(several[-1])  # `str | Sequence[str]` is an array: a single one counts as one of one
    if origin in (Sequence, tuple):
        items = _of_hint(inner[0])
        return None if items is None else array(items)
    return obj() if origin is Mapping else None


def _typed(name: str, description: str) -> Schema:
    schema: Schema = {"type": name}
    return schema | {"description": description} if description else schema
