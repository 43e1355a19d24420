"""A call of a verb as a request over HTTP, by the verb's route. Nothing is sent here."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import NoneType
from typing import Any, Final, TypeAlias, get_args
from urllib.parse import quote, urlencode
from uuid import uuid4

from nacre import validation
from nacre.errors import InvalidInput, NacreError, NotFound
from nacre.serialization import arguments, encode, transfer
from nacre.serialization.arguments import Parameter
from nacre.serialization.routes import PREFIX, ROUTES, Method, Route
from nacre.types.memory import Json
from nacre.types.transfer import Record

Refuse: TypeAlias = Callable[[int, NacreError], None]  # is told the number of a bad item, from 1, and what is wrong

WHOLE_HITS: Final = frozenset({"search", "related", "why"})  # verbs whose hits come with their memories, if asked
_UPLOAD_BYTES: Final = 65_536
_TARGET_CHARS_MAX: Final = 60_000  # the head of a request may have 64 KiB


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
    target = path + (f"?{urlencode(pairs)}" if pairs else "")
    if len(target) > _TARGET_CHARS_MAX:
        longest = max((name for name, _ in pairs), key=[name for name, _ in pairs].count, default="path")
        raise InvalidInput(longest, f"is too long for a URL of {_TARGET_CHARS_MAX:,} characters; ask for it in parts")
    return Request(route.verb, method, target, body, headers, route.repeatable or keyed)


def _segment(name: str, value: object) -> str:
    """An argument in the path. Dots alone would be read as a step in it."""
    if value == "":  # it would be another path
        hint = {"hint": "see `nacre token list`", "what": "token"} if name == "token_id" else {}
        raise NotFound(("",), **hint)
    text = quote(_text(name, value), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text


def _pairs(verb: Callable[..., Any], given: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Arguments in the query of a URL: a list repeats its name, an object is JSON."""
    known = {each.name: each for each in arguments.parameters_of(verb)}
    for name, value in given.items():
        if value is not None:
            yield from ((name, each) for each in _in_url(known[name], name, value))


def _in_url(of: Parameter, name: str, value: Json) -> list[str]:
    """An argument as texts. In a URL all is text, so the server would not see that something else was meant."""
    hints = arguments.members(of.hint)
    match of.kind:
        case "texts" if str not in hints or isinstance(value, list):
            if not isinstance(value, list):
                raise InvalidInput(name, f"must be a list of texts, not {type(value).__name__}")
            none_of_all = not value and NoneType in get_args(of.hint)  # without the name it would be all
            return [""] if none_of_all else [_text(name, each) for each in value]
        case "boolean":
            return ["true" if validation.yes_or_no(name, value) else "false"]
        case "object" if isinstance(value, list | dict):
            return [json_bytes(value).decode()]
        case "number" if not isinstance(value, str) or datetime not in hints:
            return [json_bytes(value).decode()]
    return [_text(name, value)]


def _text(name: str, value: object) -> str:
    text = validation.any_text(name, value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(name, "contains a lone surrogate; only valid Unicode text is allowed") from None
    return text


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


def _record(value: Record) -> Record:
    kinds: tuple[type, ...] = get_args(Record)
    if not isinstance(value, kinds):
        raise InvalidInput("records", f"must be those of an export, not {type(value).__name__}")
    return value


def _chunks(records: Iterable[Record]) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for line in transfer.lines(map(_record, records)):
        parts.append(line.encode("utf-8", "replace"))
        size += len(parts[-1])
        if size >= _UPLOAD_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
