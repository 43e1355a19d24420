"""Arguments as models send them: a number as a text, a list as one text, a list as JSON in a text.

Such an argument is read as its schema says if there is one way to read it, and a note says so. Everything else stays
as it was given, and the engine's own checks refuse it with what is allowed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nacre.mcp_server import json_schema
from nacre.mcp_server.tool import Call, Tool
from nacre.types.memory import Json, Progress
from nacre.types.search import Filter

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NULLS = frozenset({"", "null", "None"})  # not "none", which is a lens
_WITH_COMMAS = frozenset({"names", "aliases", "questions"})  # lists of texts that may have commas
_IDS = frozenset({"ids", "memory_ids", "supersedes"})  # lists of texts without spaces, as a context lists them
_JSON_CHARS_MAX = 1_000_000  # of a list or an object in a text
_QUOTED_CHARS = 24  # of a value in a note


class Read(NamedTuple):
    """Arguments as a tool takes them, and notes on those that were given otherwise."""

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


def read(tool: Tool, given: Mapping[str, Any]) -> Read:
    """The arguments of a call. Unknown ones are passed on: the tool refuses them, and knows which it has."""
    if tool.strict:
        return Read(dict(given))
    accepted: Mapping[str, Any] = {}
    if tool.request is not None:  # filters are arguments of their own, next to the fields of the request
        accepted = {**json_schema.fields_of(Filter), **json_schema.fields_of(tool.request)}
    schemas = {**accepted, **_mapping(tool.input.get("properties"))}
    required = tool.input.get("required")
    arguments: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in given.items():
        schema = schemas.get(name)
        if schema is None:
            arguments[name] = value
            continue
        optional = not isinstance(required, list) or name not in required
        fitted = value if _is_nothing(value, schema) else _fitted(name, value, schema, accepted)
        if optional and _is_nothing(fitted, schema):
            notes.append(f"{name}: {_quoted(value)} was read as not given")
            continue
        arguments[name] = fitted
        if not _same(fitted, value):
            before, after = _quoted(value), _quoted(fitted)
            changed = before != after  # otherwise what differs is further inside, and not quoted
            notes.append(f"{name}: {before} was read as {after if changed else 'its schema says'}")
    return Read(arguments, tuple(notes))


def call_of(
    tool: Tool, memory: Nacre, given: Mapping[str, Any], session: str | None, report: Callable[[Progress], None]
) -> Call:
    """A call with its arguments as the tool takes them."""
    arguments, notes = read(tool, given)
    return Call(memory, arguments, session, report, notes)


def _is_nothing(value: object, schema: Mapping[str, Any]) -> bool:
    return isinstance(value, str) and value.strip() in _NULLS and value not in schema.get("enum", ())


def _fitted(name: str, value: Any, schema: Mapping[str, Any], accepted: Mapping[str, Any]) -> Any:
    """The value as its schema has it; unchanged if that is not plain. Objects in lists have `accepted` fields, too."""
    match schema.get("type"):
        case "integer":
            return _whole(value)
        case "number":
            return _number(value)
        case "boolean":
            return _truth(value)
        case "array":
            return _list(name, value, _mapping(schema.get("items")), accepted)
        case "object":
            return _object(value, _mapping(schema.get("properties")))
        case "string":
            return _text(value, schema)
    return value


def _whole(value: Any) -> Any:
    number = _number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    for reader in (int, float):
        try:
            number = reader(value.strip())
        except ValueError:  # also an integer of too many digits
            continue
        return number if math.isfinite(number) else value
    return value


def _truth(value: Any) -> Any:
    if isinstance(value, str | int | float):
        said = str(value).strip().casefold()
        return True if said in _TRUE else False if said in _FALSE else value
    return value


def _text(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | int | float):
        (value,) = value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and "enum" in schema:
        said = value.strip().casefold()
        return next((each for each in schema["enum"] if each.casefold() == said), value)
    return value


def _list(name: str, value: Any, items: Mapping[str, Any], accepted: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        parsed = _parsed(value)
        if isinstance(parsed, list):
            value = parsed
        elif items.get("type") == "string":
            if name in _IDS and " " in value.strip():
                value = value.replace(",", " ").split()
            else:
                value = value.split(",") if "," in value and name not in _WITH_COMMAS else [value]
                value = [each.strip() for each in value if each.strip()] if len(value) > 1 else value
        elif isinstance(parsed, dict):
            value = [parsed]
    elif isinstance(value, dict) and items.get("type") == "object":
        value = [value]
    if not isinstance(value, list):
        return value
    if items.get("type") == "object":
        return [_object(each, {**accepted, **_mapping(items.get("properties"))}) for each in value]
    return [_fitted(name, each, items, accepted) for each in value]


def _object(value: Any, schemas: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        parsed = _parsed(value)
        value = parsed if isinstance(parsed, dict) else value
    if not isinstance(value, dict):
        return value
    return {name: _fitted(name, each, schemas[name], {}) if name in schemas else each for name, each in value.items()}


def _parsed(text: str) -> Any:
    """JSON in a text; None if it is none."""
    if text.lstrip()[:1] not in ("[", "{") or len(text) > _JSON_CHARS_MAX:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _same(read: Any, given: Any) -> bool:
    """Whether nothing has to be said: the same value, or a single one as a list of one."""
    return bool(type(read) is type(given) and read == given) or bool(read == [given])


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]}…"


def _mapping(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
