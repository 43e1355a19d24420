"""Calls of verbs as raw requests over HTTP: what an engine is asked is noted, and asked again of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx

import openapi_checks
from nacre.engine.engine import Nacre
from nacre.http_api.verbs import verbs
from nacre.serialization import arguments, encode, transfer
from nacre.serialization.routes import PREFIX, ROUTES
from nacre.types.transfer import Record
from servers import lines


@dataclass
class Called:
    """A call of a verb, and its answer as the codec writes it. It has none if the verb has raised an error."""

    verb: str
    given: dict[str, Any]
    answer: Any = None


class Noting:
    """An engine that notes which verbs it was asked, with what."""

    def __init__(self, memory: Nacre) -> None:
        self._memory = memory
        self.called: list[Called] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._memory, name)
        if name not in ROUTES:
            return function

        def call(*arguments: Any, **named: Any) -> Any:
            listed = [list(each) if isinstance(each, Iterator) else each for each in arguments]
            called = Called(name, _as_json(getattr(Nacre, name), listed, named))
            self.called.append(called)
            result = function(*listed, **named)
            if not ROUTES[name].lines_out:
                called.answer = None if result is None else verbs()[name].write(result)
                return result
            items = list(result)
            called.answer = (
                [json.loads(each) for each in transfer.lines(items)]
                if name == "export"
                else [verbs()[name].write(each) for each in items]
            )
            return iter(items)

        return call


def _as_json(verb: Callable[..., Any], given: Iterable[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The clock of a test is not that of the machine, so a lifetime stays one."""
    plain = {
        name: f"{int(each.total_seconds())}s" if isinstance(each, timedelta) else each for name, each in named.items()
    }
    return arguments.written(verb, tuple(given), plain)


def send(client: httpx.Client, called: Called, method: str | None = None, **flags: str) -> httpx.Response:
    """The answer to a call: by the method of its route, or by POST where that is a second way. It is as documented."""
    answer = _send(client, called, method, **flags)
    openapi_checks.check(answer, called.verb, method)
    return answer


def _send(client: httpx.Client, called: Called, method: str | None, **flags: str) -> httpx.Response:
    route = ROUTES[called.verb]
    method = method or route.method
    given = {name: each for name, each in called.given.items() if name not in route.in_path}
    path = PREFIX + re.sub(r"{(\w+)}", lambda found: quote(str(called.given[found[1]]), safe=""), route.path)
    if route.lines_in is not None:
        items = given[route.lines_in]
        body = "\n".join(
            transfer.lines(items)
            if items and isinstance(items[0], Record)
            else [encode.dumps(each, indent=None) for each in items]
        )
        return client.request(method, path, params=flags, content=body.encode())
    if method in ("GET", "DELETE"):
        return client.request(method, path, params=[*in_query(given), *flags.items()])
    body = json.dumps(given, ensure_ascii=True)
    headers = {"Content-Type": "application/json"}
    return client.request(method, path, params=flags, content=body, headers=headers)


def in_query(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A list repeats its name, an object is JSON, and nothing is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        if isinstance(value, list):
            pairs += [(name, str(each)) for each in value]
        elif value is not None:
            pairs.append((name, value if isinstance(value, str) else json.dumps(value)))
    return pairs


def raw(client: httpx.Client, called: Called) -> Any:
    """The JSON of a good answer."""
    answer = send(client, called)
    if answer.status_code == 204:
        assert answer.content == b""
        return None
    assert answer.status_code == 200, answer.text
    if ROUTES[called.verb].lines_out:
        return lines(answer)
    assert answer.headers["content-type"] == "application/json"
    return answer.json()
