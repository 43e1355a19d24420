"""What must a client over HTTP keep to? How long a request may take to arrive, and how many sessions there are.

uvicorn waits without end for the head and the body of a request, so a few slow connections could hold the server. The
SDK refuses new sessions when there are too many; here the one that was idle longest ends instead, so that clients
that went away without a word do not lock out others. Import it after `sdk.load()`.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_BYTES_MAX = 16 * 2**20
HEAD_S = 10.0  # from the connection, or from the first byte of a later request, to the end of its head
BODY_S = 60.0  # from then on to the end of its body
KEEP_ALIVE_S = 30  # between two requests of one connection
SESSIONS_MAX = 256
SESSION_IDLE_S = 30 * 60.0
CONNECTIONS_MAX = 1_024
SHUTDOWN_S = 5

_SESSION = b"mcp-session-id"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class TimedProtocol(H11Protocol):
    """A connection that is closed when a request takes too long to arrive."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._timed: object = None  # the state of h11 that the timer is for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """Start the timer for what the client has to send now. More data of the same part does not extend it."""
        state = self.conn.their_state
        if state is self._timed:
            return
        self._stop()
        seconds = {h11.IDLE: HEAD_S, h11.SEND_BODY: BODY_S}.get(state)
        if seconds is not None:
            self._timed = state
            self._timer = self.loop.call_later(seconds, self._too_slow)

    def _stop(self) -> None:
        self._timed = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_response_complete(self) -> None:
        """From here on uvicorn's own timer for idle connections counts, unless more of a request is to come."""
        self._stop()
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]:
            self._watch()

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(_TOO_SLOW)
            self.transport.close()


class SessionLimit:
    """Ends the session that was idle longest when there are too many, and says so to a client that still uses it."""

    def __init__(self, application: Any, path: str) -> None:
        self._application = application
        self._path = path
        self._sessions: OrderedDict[bytes, int] = OrderedDict()  # requests in work; the latest used is the last

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._application(scope, receive, send)
            return
        session = _header(scope["headers"], _SESSION)
        if session is None:
            await self._application(scope, receive, self._noting(scope, send))
            return
        self._begin(session)
        try:
            await self._application(scope, receive, _explaining(send))
        finally:
            self._end(session, gone=scope["method"] == "DELETE")

    def _begin(self, session: bytes) -> None:
        if session in self._sessions:
            self._sessions[session] += 1
            self._sessions.move_to_end(session)

    def _end(self, session: bytes, *, gone: bool) -> None:
        if gone:
            self._sessions.pop(session, None)
        elif session in self._sessions:
            self._sessions[session] -= 1
            self._sessions.move_to_end(session)

    def _noting(self, scope: Any, send: Any) -> Any:
        """A `send` that notes the session which an answer opens."""

        async def noting(event: Any) -> None:
            if event["type"] == "http.response.start":
                opened = _header(event.get("headers", ()), _SESSION)
                if opened is not None and event["status"] < 400:
                    self._sessions[opened] = 0
                    while len(self._sessions) > SESSIONS_MAX:
                        await self._end_oldest(scope)
            await send(event)

        return noting

    async def _end_oldest(self, scope: Any) -> None:
        """By the request that a client ends its session with."""
        idle = (each for each, requests in self._sessions.items() if requests == 0)
        oldest = next(idle, next(iter(self._sessions)))
        del self._sessions[oldest]
        kept = [each for each in scope["headers"] if each[0] in (b"host", b"accept", b"authorization")]
        await self._application(
            {**scope, "method": "DELETE", "headers": [*kept, (_SESSION, oldest)]}, _no_body, _nowhere
        )


def _explaining(send: Any) -> Any:
    """A `send` that says why a session is unknown."""
    unknown = False

    async def explaining(event: Any) -> None:
        nonlocal unknown
        if event["type"] == "http.response.start" and event["status"] == 404:
            unknown = True
            body = _unknown_session()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({**event, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        elif not unknown:
            await send(event)

    return explaining


def _unknown_session() -> bytes:
    """A client that reads 404 begins a new session, as the protocol says."""
    said = (
        f"Session not found: it ended after {SESSION_IDLE_S / 60:g} minutes without a request, or was the one "
        f"idle longest of more than {SESSIONS_MAX}. Send initialize again"
    )
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": said}}).encode()


def _header(headers: Any, name: bytes) -> bytes | None:
    return next((value for each, value in headers if each.lower() == name), None)


async def _no_body() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(_: Any) -> None:
    pass
