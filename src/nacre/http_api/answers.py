"""What goes back to the client: JSON and errors with their statuses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nacre import __version__
from nacre.errors import NacreError
from nacre.serialization import encode
from nacre.serialization.routes import VERSION_HEADER
from nacre.types.memory import Json

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"
_RETRY_S = 1  # after which a store that is locked, or a server with much to do, may be asked again

_log = logging.getLogger("nacre")


class Refusal(Exception):
    """The server itself refuses a request, before any verb is called."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `kind` is the type of its body."""

    status: int
    body: bytes = b""
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        named = {"content-length": str(len(self.body)), **self.headers}
        if self.body:
            named["content-type"] = self.kind
        if self.status in (204, 304):
            del named["content-length"]
        return [(name.encode(), value.encode("latin-1")) for name, value in named.items()]


_COMMON: Mapping[str, str] = {  # of every answer that does not say otherwise
    VERSION_HEADER.lower(): __version__,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


def with_common(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with those that every answer has."""
    own = list(headers)
    names = {name.lower() for name, _ in own}
    common = [(name.encode(), value.encode()) for name, value in _COMMON.items()]
    return [*own, *(each for each in common if each[0] not in names)]


def json_answer(value: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, encode.dumps(value, indent=None).encode("utf-8", "replace"), headers=headers or {})


def failure(error: Exception) -> Answer:
    """The answer to a request that failed. Of a bug only the type is told: its message may quote a memory."""
    status = 500
    headers: Mapping[str, str] = {}
    if isinstance(error, Refusal):
        status, headers = error.status, error.headers
    elif isinstance(error, NacreError):
        status = encode.http_status(error)
        headers = {"retry-after": str(_RETRY_S)} if status == 503 else {}
    return json_answer(failed(error), status, headers)


def failed(error: Exception) -> Json:
    """The body of such an answer, or the last line of a stream that failed after its start."""
    if isinstance(error, Refusal):
        return {"error": {"type": error.kind, "message": str(error)}}
    if isinstance(error, NacreError):
        return encode.error(error)
    _log.error("a request failed", exc_info=error)
    said = f"the request failed inside the server ({type(error).__name__}); its log on stderr says why"
    return {"error": {"type": "InternalError", "message": said}}
