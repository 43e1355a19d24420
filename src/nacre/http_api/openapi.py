"""The OpenAPI document, made from the table of routes and the signatures of the verbs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from nacre import __version__
from nacre.http_api.answers import EVENTS, JSON, LINES
from nacre.http_api.limits import IDEMPOTENCY_KEY_CHARS_MAX
from nacre.http_api.repeated import HEADER as IDEMPOTENCY_KEY
from nacre.http_api.schemas import MemoryInFull, Schema, Schemas, without_null
from nacre.http_api.verbs import FLAGS, UNCHANGED_SINCE, Verb, verbs
from nacre.serialization.arguments import Parameter
from nacre.serialization.routes import LOG_HEADER, PREFIX, SPACE_HEADER, Route
from nacre.types.changes import ChangePage
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_DESCRIPTION: Final = (
    "Local, layered memory for AI agents. Each path is a verb of the library `nacre`, with the same arguments and "
    "results. Errors name the field, the problem and what to do."
)
_STATUSES: Mapping[str, str] = {
    "400": "An argument is unknown, missing or wrong.",
    "401": "A token is missing, unknown, expired or revoked.",
    "403": "The token may not do this, or not in this space; or the request comes from a page of another site.",
    "404": "There is no such path, memory, fact, entity or token.",
    "405": "The path does not know this method.",
    "409": "The change contradicts what is stored, or its Idempotency-Key was used before.",
    "412": "The memory has changed since the version in If-Match.",
    "413": "The body is too large.",
    "429": "Too many requests, or failed sign-ins; wait as Retry-After says.",
    "500": "The store is damaged, or the server has a bug.",
    "503": "The store or a model is busy or away; wait as Retry-After says.",
    "507": "A quota or the disk is full.",
}
_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("memories", ("/memories",)),
    ("finding", ("/search", "/why", "/facets", "/context", "/timeline", "/count-tokens", "/screen", "/audit")),
    ("facts", ("/facts", "/conflicts", "/unlink")),
    ("entities", ("/entities",)),
    ("recall log and lenses", ("/receipts", "/mark", "/lens")),
    ("changes, in and out", ("/changes", "/export", "/load")),
)


def document() -> dict[str, Json]:
    """The whole document. It depends on the version of Nacre alone."""
    schemas = Schemas()
    paths: dict[str, dict[str, Json]] = {}
    for verb in verbs().values():
        methods = (verb.route.method, *(("POST",) if verb.route.posts else ()))
        for method in methods:
            operation = _operation(verb, method, schemas)
            paths.setdefault(PREFIX + verb.route.path, {})[method.lower()] = operation
    _add_special(paths, schemas)
    _add_links(paths)
    schemas.components["Error"] = _ERROR
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nacre",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "tags": [{"name": name} for name in (*(name for name, _ in _GROUPS), "upkeep", "server")],
        "paths": {path: {**operations} for path, operations in sorted(paths.items())},
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(verb: Verb, method: str, schemas: Schemas) -> dict[str, Json]:
    route = verb.route
    summary, _, rest = inspect.getdoc(verb.call).partition("\n")  # type: ignore[union-attr]
    in_body = method not in ("GET", "DELETE") and route.lines_in is None
    twin = method != route.method
    operation: dict[str, Json] = {
        "operationId": f"{route.verb}_by_post" if twin else route.verb,
        "summary": summary,
        "tags": [_group(route)],
        "parameters": [*_parameters(verb, schemas, in_body=in_body)],
        "responses": _responses(verb, schemas),
        "x-role": route.role,
    }
    if rest.strip():
        operation["description"] = rest.strip()
    if route.lines_in is not None:
        operation["requestBody"] = {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}
        schemas.argument(Parameter("item", NewMemory, True, None, lambda _, value: value, "object"))
    elif in_body:
        fields = {name: each for name, each in verb.known.items() if name not in route.in_path}
        if fields:
            operation["requestBody"] = _body(fields, schemas)
    return operation


def _body(fields: Mapping[str, Parameter], schemas: Schemas) -> dict[str, Json]:
    needed = [name for name, each in fields.items() if each.required]
    schema: Schema = {
        "type": "object",
        "properties": {name: schemas.argument(each) for name, each in fields.items()},
        "additionalProperties": False,
    }
    return {
        "required": bool(needed),
        "content": {JSON: {"schema": schema | ({"required": [*needed]} if needed else {})}},
    }


def _parameters(verb: Verb, schemas: Schemas, *, in_body: bool) -> list[Json]:
    route = verb.route
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in route.in_path
    ]
    if not in_body:
        found += [_in_query(each, schemas) for name, each in verb.known.items() if name not in route.in_path]
    found += [_query(name, {"type": "boolean"}, FLAGS[name]) for name in verb.flags]
    found += _PLACE
    if not route.safe and not route.lines_out:
        about = "With the same key the same request is carried out once, and its answer is given again for a day."
        found.append(_header(IDEMPOTENCY_KEY.title(), about, minLength=1, maxLength=IDEMPOTENCY_KEY_CHARS_MAX))
    if UNCHANGED_SINCE in verb.known:
        found.append(_header("If-Match", "The ETag of the memory that is to be changed, or *.", minLength=1))
    if route.verb == "changes":
        about = "The number of the last event that was received."
        found.append(_header("Last-Event-ID", about, pattern="^[0-9]{1,18}$"))
    return found


def _in_query(parameter: Parameter, schemas: Schemas) -> Json:
    """How an argument is written in the query of a URL."""
    schema = schemas.argument(parameter)
    written: dict[str, Json] = {"name": parameter.name, "in": "query", "required": parameter.required}
    if parameter.kind == "texts":
        return {**written, "schema": {"type": "array", "items": {"type": "string"}}, "explode": True}
    if parameter.kind == "object":
        return {**written, "content": {JSON: {"schema": schema}}}
    return {**written, "schema": without_null(schema)}  # a URL has no null


def _query(name: str, schema: Schema, about: str) -> Json:
    return {"name": name, "in": "query", "schema": schema, "description": about}


def _header(name: str, about: str, **limits: str | int) -> Json:
    return {"name": name, "in": "header", "schema": {"type": "string", **limits}, "description": about}


_PLACE: list[Json] = [
    _header(
        SPACE_HEADER,
        "The space to work in; default: the token's first, or the server's.",
        pattern=r"\S",
        maxLength=LIMITS.name_chars_max,
    ),
    {
        "name": LOG_HEADER,
        "in": "header",
        "schema": {"type": "boolean", "default": True},
        "description": "Whether the request enters the recall log.",
    },
]


def _responses(verb: Verb, schemas: Schemas) -> dict[str, Json]:
    route = verb.route
    if route.lines_out:
        item = schemas.result(verb.result)
        about = "One item a line. After an error the last line has it."
        done: dict[str, Json] = {"200": {"description": about, "content": {LINES: {"schema": {}, "x-item": item}}}}
    elif verb.result is type(None):
        done = {"204": {"description": "Done."}}
    else:
        content: dict[str, Json] = {JSON: {"schema": schemas.result(verb.result)}}
        if verb.result is ChangePage:
            content[EVENTS] = {"schema": {"type": "string"}}
        done = {"200": {"description": "Done.", "content": content}}
    return done | _errors(_STATUSES)


def _errors(statuses: Mapping[str, str]) -> dict[str, Json]:
    content: Json = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": about, "content": content} for status, about in statuses.items()}


def _group(route: Route) -> str:
    return next((name for name, starts in _GROUPS if route.path.startswith(starts)), "upkeep")


# ---------------------------------------------------------------- what is no verb


def _add_special(paths: dict[str, dict[str, Json]], schemas: Schemas) -> None:
    get = verbs()["get"]
    taken: list[Json] = [_in_query(get.known[name], schemas) for name in ("entities", "neighbours", "session")]
    known = _header("If-None-Match", "The ETag of a version that is known already.")
    in_path: Json = {"name": "memory_id", "in": "path", "required": True, "schema": {"type": "string"}}
    paths[f"{PREFIX}/memories/{{memory_id}}"]["get"] = _special(
        "get_one",
        "One memory in full, with its version as ETag.",
        schemas.result(MemoryInFull),
        [in_path, *taken, *_PLACE, known],
    ) | {"tags": ["memories"]}
    responses = paths[f"{PREFIX}/memories/{{memory_id}}"]["get"]["responses"]  # type: ignore[index,call-overload]
    responses["304"] = {"description": "It has not changed since the version in If-None-Match."}  # type: ignore[index,call-overload]
    session: Schema = {
        "type": "object",
        "required": ["version", "role", "space", "spaces", "token", "time_zone"],
        "properties": {
            "version": {"type": "string"},
            "role": {"type": "string", "enum": ["read", "write", "admin"]},
            "space": {"type": "string"},
            "spaces": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "token": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "time_zone": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
    paths[f"{PREFIX}/session"] = {"get": _special("session", "Who asks, and what they may do.", session, _PLACE)}
    about = "How well searches are answered, by what was opened and used of those in the recall log."
    paths[f"{PREFIX}/evaluation"] = {"get": _special("evaluation", about, {"type": "object"}, _PLACE)}


def _special(name: str, summary: str, schema: Schema, parameters: list[Json]) -> dict[str, Json]:
    done: dict[str, Json] = {"200": {"description": "Done.", "content": {JSON: {"schema": schema}}}}
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["server"],
        "parameters": parameters,
        "responses": done | _errors(_STATUSES),
        "x-role": "read",
    }


def _add_links(paths: dict[str, Any]) -> None:
    """What can be asked with the id of a new memory."""
    taking = [each for path, several in paths.items() if "{memory_id}" in path for each in several.values()]
    remember = paths[f"{PREFIX}/memories"]["post"]
    remember["responses"]["200"]["links"] = {
        each["operationId"]: {"operationId": each["operationId"], "parameters": {"memory_id": "$response.body#/id"}}
        for each in taking
    }


_ERROR: Any = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "message"],
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string"},
                "problem": {"type": "string"},
                "remedy": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "errors": {"type": "array", "items": {"type": "object"}},
                "ids": {"type": "array", "items": {"type": "string"}},
                "quota": {"type": "string"},
                "limit": {"type": "integer"},
                "used": {"type": "integer"},
            },
        }
    },
}
