"""JSON Schemas in few words: every one of them is read by a model at the start of each conversation."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.types.memory import Json

Schema = dict[str, Json]


def text(said: str = "", **more: Json) -> Schema:
    return _typed("string", said, more)


def whole(said: str = "", **more: Json) -> Schema:
    return _typed("integer", said, more)


def number(said: str = "", **more: Json) -> Schema:
    return _typed("number", said, more)


def switch(said: str = "") -> Schema:
    return _typed("boolean", said, {})


def one_of(*words: str, said: str = "") -> Schema:
    return _typed("string", said, {"enum": list(words)})


def listed(items: Schema | None = None, said: str = "") -> Schema:
    return _typed("array", said, {"items": items or {"type": "string"}})


def record(properties: Mapping[str, Schema] | None = None, needed: tuple[str, ...] = ()) -> Schema:
    """An object. Without properties: any."""
    if properties is None:
        return {"type": "object"}
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return schema | {"required": list(needed)} if needed else schema


def _typed(name: str, said: str, more: Mapping[str, Json]) -> Schema:
    schema: Schema = {"type": name}
    return schema | ({"description": said} if said else {}) | dict(more)
