"""A call of a verb as a request over HTTP, by the verb's route. Nothing is sent here."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode
from uuid import uuid4

from nacre import validation
from nacre.errors import NacreError
from nacre.serialization import arguments, encode, transfer
from nacre.serialization.routes import PREFIX, ROUTES, Method, Route
from nacre.types.memory import Json
from nacre.types.transfer import Record

Refuse: TypeAlias = Callable[[int, NacreError], None]  # is told the number of a bad item, from 1, and what is wrong

WHOLE_HITS: Final = frozenset({"search", "related", "why"})  # verbs whose hits come with their memories, if asked
_UPLOAD_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Request:
    """`target` is the path and the query, below the server's URL."""

    verb: str
    method: Method
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False  # it may be sent again even if the server may have carried it out


def request_of(verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Request:
    """The request of a call. Raises TypeError where the verb itself would, and InvalidInput for what has no JSON."""
    route = ROUTES[verb.__name__]
    given = arguments.written(verb, args, named)
    path = PREFIX + re.sub(r"{(\w+)}", lambda found: _segment(found[1], given.pop(found[1], None)), route.path)
    method = "POST" if route.posts else route.method
    flags = [("texts", "true")] if route.verb in WHOLE_HITS else []
    if method in ("GET", "DELETE"):
        return _request(route, method, path, [*_pairs(verb, given), *flags], None)
    return _request(route, method, path, flags, json_bytes(given))


def batch_request(items: list[bytes]) -> Request:
    """Remember items that are written already."""
    route = ROUTES["remember_many"]
    return _request(route, route.method, PREFIX + route.path, [], b'{"items":[' + b",".join(items) + b"]}")


def lines_request(verb: str, body: bytes | None, *, keep_going: bool) -> Request:
    """A verb whose items are the lines of the body; None: they are sent apart from the request."""
    route = ROUTES[verb]
    flags = [("keep_going", "true")] if keep_going else []
    return _request(route, route.method, PREFIX + route.path, flags, body)


def _request(route: Route, method: Method, path: str, pairs: list[tuple[str, str]], body: bytes | None) -> Request:
    streams = route.lines_out or route.lines_in is not None
    keyed = not route.safe and not streams
    headers = {"Accept": "application/x-ndjson" if route.lines_out else "application/json"}
    if route.lines_in is not None:
        headers["Content-Type"] = "application/x-ndjson"
    elif body is not None:
        headers["Content-Type"] = "application/json"
    if keyed:
        headers["Idempotency-Key"] = uuid4().hex
    target = path + (f"?{urlencode(pairs, errors='replace')}" if pairs else "")
    return Request(route.verb, method, target, body, headers, route.repeatable or keyed)


def _segment(name: str, value: object) -> str:
    """An argument in the path. Dots alone would be read as a step in it."""
    text = quote(validation.any_text(name, value), safe="", errors="replace")
    return text.replace(".", "%2E") if text in (".", "..") else text


def _pairs(verb: Callable[..., Any], given: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Arguments in the query of a URL: a list repeats its name, an object is JSON."""
    defaults = {each.name: each.default for each in arguments.parameters_of(verb)}
    for name, value in given.items():
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            if not value and defaults[name] is None:  # none of all; without the name it would be all
                value = [""]
            yield from ((name, str(each)) for each in value)
        elif isinstance(value, str):
            yield name, value
        elif value is not None:
            yield name, json_bytes(value).decode()


def json_bytes(value: Json) -> bytes:
    """Compact JSON. Half a character, which UTF-8 cannot say, is escaped: the server says what is wrong with it."""
    try:
        return encode.dumps(value, indent=None).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


# ---------------------------------------------------------------- records of an export


@dataclass(frozen=True, slots=True)
class Upload:
    """A request whose body is sent in chunks, as far as they are made."""

    request: Request
    chunks: Iterator[bytes]
    refused: Refuse | None


def upload_of(verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Upload:
    """The request of `load`."""
    bound = inspect.signature(verb).bind(None, *args, **named).arguments
    records, refused = bound["records"], bound.get("refused")
    validation.iterable("records", records)
    if refused is not None:
        validation.function("refused", refused)
    return Upload(lines_request("load", None, keep_going=refused is not None), _chunks(records), refused)


def _chunks(records: Iterable[Record]) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for line in transfer.lines(records):
        parts.append(line.encode("utf-8", "replace"))
        size += len(parts[-1])
        if size >= _UPLOAD_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
