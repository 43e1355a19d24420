"""Holds answers against the OpenAPI document: their status, the type of their content, and their schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

from nacre.http_api import openapi
from nacre.http_api.answers import EVENTS, JSON, LINES
from nacre.serialization.routes import PREFIX, ROUTES


@cache
def document() -> dict[str, Any]:
    return openapi.document()


@cache
def _validator(schema: str) -> Any:
    """Of a schema that may refer to components."""
    return jsonschema_rs.Draft202012Validator(
        {**json.loads(schema), "components": document()["components"]}, validate_formats=True
    )


def check_value(value: Any, schema: Any) -> None:
    problem = next(iter(_validator(json.dumps(schema)).iter_errors(value)), None)
    assert problem is None, f"{list(problem.instance_path)}: {problem.message[:500]}"


def check(answer: httpx.Response, verb: str, method: str | None = None) -> None:
    """Fail unless an answer is as documented."""
    route = ROUTES[verb]
    check_operation(answer, PREFIX + route.path, method or route.method)


def check_operation(answer: httpx.Response, path: str, method: str) -> None:
    operation = document()["paths"][path][method.lower()]
    documented = operation["responses"]
    assert str(answer.status_code) in documented, (path, answer.status_code)
    contents = documented[str(answer.status_code)].get("content", {})
    if not contents:
        assert answer.content == b""
        return
    kind = answer.headers["content-type"]
    assert kind in contents, (path, kind)
    if kind == JSON:
        check_value(answer.json(), contents[kind]["schema"])
    elif kind == LINES:
        for line in filter(None, answer.text.split("\n")):
            value = json.loads(line)
            error = isinstance(value, dict) and "error" in value
            check_value(value, _error_schema() if error else contents[kind]["x-item"])
    else:
        assert kind == EVENTS


def _error_schema() -> Any:
    return {"$ref": "#/components/schemas/Error"}
