"""A request as a value, and how its body arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from nacre.http_api.answers import Refusal
from nacre.http_api.limits import BODY_BYTES_MAX

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gone(Exception):
    """The client has closed the connection before the whole request came."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]  # by name in lower case; of several, the last
    pairs: tuple[tuple[str, str], ...]  # of the query of the URL
    address: str  # of the client

    def flag(self, name: str) -> bool:
        """Whether the URL has `name=true`."""
        return ("true", "1").count(dict(self.pairs).get(name, "").lower()) > 0


def request_of(scope: Scope) -> Request:
    client = scope.get("client") or ("",)
    return Request(
        scope["method"],
        scope["path"],
        {name.decode("latin-1").lower(): _header(value) for name, value in scope["headers"]},
        tuple(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="strict")),
        client[0],
    )


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
