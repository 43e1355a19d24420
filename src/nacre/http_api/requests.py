"""A request as a value, and how its body arrives."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote

from nacre.errors import InvalidInput
from nacre.http_api.answers import Refusal
from nacre.http_api.limits import BODY_BYTES_MAX
from nacre.serialization.routes import LOG_HEADER

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


_TRUE = ("true", "1", "")
_FALSE = ("false", "0")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Gone(Exception):
    """The client has closed the connection before the whole request came."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # with ids percent-encoded, so that one with a slash is one part; words are plain
    headers: Mapping[str, str]  # by name in lower case; of several, the last
    pairs: tuple[tuple[str, str], ...]  # of the query of the URL
    address: str  # of the client

    def flag(self, name: str) -> bool:
        """Whether the URL has `name=true`."""
        return dict(self.pairs).get(name, "false").lower() in _TRUE

    @property
    def logged(self) -> bool:
        """Whether it enters the recall log."""
        said = self.headers.get(LOG_HEADER.lower(), "true")
        if said.lower() not in _TRUE + _FALSE:
            raise InvalidInput(LOG_HEADER, f"is {said[:40]!r}; true or false are allowed")
        return said.lower() in _TRUE

    def has(self, version: str) -> bool:
        """Whether the client has this version already, as If-None-Match says."""
        known = [each.strip().removeprefix("W/") for each in self.headers.get("if-none-match", "").split(",")]
        return version in known or known == ["*"]


def request_of(scope: Scope) -> Request:
    """The request of a scope. Raises InvalidInput for a URL that is no text."""
    client = scope.get("client") or ("",)
    return Request(
        scope["method"],
        _path(scope),
        {name.decode("latin-1").lower(): _header(value) for name, value in scope["headers"]},
        _pairs(scope["query_string"]),
        client[0],
    )


def _path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    text = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    return "/".join(quote(_decoded("path", part), safe="") for part in text.split("/"))


def _pairs(query: bytes) -> tuple[tuple[str, str], ...]:
    text = query.decode("latin-1")
    _decoded("query", text)
    return tuple(parse_qsl(text, keep_blank_values=True))


def _decoded(name: str, text: str) -> str:
    try:
        if text.isascii() and not _NO_ESCAPE.search(text):
            return unquote(text, errors="strict")
    except UnicodeDecodeError:
        pass
    raise InvalidInput(name, "of the URL is no UTF-8 with percent-encoding; encode each name and value")


def check_flag(name: str, several: list[str]) -> None:
    """Raise InvalidInput for a flag of the URL that says neither yes nor no."""
    if len(several) > 1:
        raise InvalidInput(name, "is given twice; give it once")
    if several[0].lower() not in _TRUE + _FALSE:
        raise InvalidInput(name, f"is {several[0][:40]!r}; true or false are allowed")


def _header(value: bytes) -> str:
    """Names of spaces are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def chunks(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it arrives. Raises Gone if the client goes away."""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Gone
        if event.get("body"):
            yield event["body"]
        if not event.get("more_body"):
            return


async def until_gone(receive: Receive) -> None:
    """Wait until the client goes away. For after the body."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def whole_body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The body, if it is not too large."""
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > BODY_BYTES_MAX:
        raise _too_large()
    parts, size = [], 0
    async for part in chunks(receive):
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> Refusal:
    megabytes = BODY_BYTES_MAX // 2**20
    remedy = "send many memories by POST /v1/memories/lines, which has no limit"
    return Refusal(413, "TooLarge", f"the body is larger than {megabytes} MiB; {remedy}", {"connection": "close"})
