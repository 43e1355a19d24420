"""Short constructors of JSON Schemas.

A model reads the schemas of all tools at the start of each conversation, so a schema has only the keys it needs.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.types.memory import Json

Schema = dict[str, Json]


def string(description: str = "") -> Schema:
    return _typed("string", description)


def integer(description: str = "") -> Schema:
    return _typed("integer", description)


def number(description: str = "") -> Schema:
    return _typed("number", description)


def boolean(description: str = "") -> Schema:
    return _typed("boolean", description)


def enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def array(items: Schema | None = None, description: str = "") -> Schema:
    """An array; of strings if `items` is None."""
    return {**_typed("array", description), "items": items or {"type": "string"}}


def obj(properties: Mapping[str, Schema] | None = None, required: tuple[str, ...] = ()) -> Schema:
    """An object; any object if `properties` is None."""
    if properties is None:
        return {"type": "object"}
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return schema | {"required": list(required)} if required else schema


def _typed(name: str, description: str) -> Schema:
    schema: Schema = {"type": name}
    return schema | {"description": description} if description else schema
