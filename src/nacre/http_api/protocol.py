"""How a connection ends when the server stops: who only listens is let go, and other answers are finished."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final

from nacre.http_api.requests import Scope
from nacre.mcp_server.http_limits import TimedProtocol

_ABORT: Final = "nacre.abort"
_TAKES_LONG: Final = "nacre.takes-long"
_STOPPING: Final = "nacre.stopping"  # in the scope of a request that would not end by itself


class ServerProtocol(TimedProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """asyncio sends small packets at once only on sockets that it has made. Without that an answer takes 40 ms."""
        accepted = transport.get_extra_info("socket")
        with suppress(OSError):  # closed already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        served = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope[_ABORT] = transport.abort
            await served(scope, receive, send)

        self.app = app

    def _too_slow(self) -> None:
        if self.cycle is None or self.cycle.response_complete or _TAKES_LONG not in dict(self.cycle.scope):
            super()._too_slow()

    def shutdown(self) -> None:
        waiting = None if self.cycle is None else dict(self.cycle.scope).get(_STOPPING)
        if isinstance(waiting, asyncio.Event):
            waiting.set()
        super().shutdown()


def takes_long(scope: Scope) -> None:
    """The body of this request may arrive for hours. Who reads it has to see that it goes on."""
    scope[_TAKES_LONG] = True


async def abort(scope: Scope) -> None:
    """Close the connection without waiting for a client that takes nothing."""
    scope.get(_ABORT, _nothing)()
    await asyncio.sleep(0)  # now uvicorn knows that it is closed, and misses no answer


def _nothing() -> None:
    """For a scope that another server has made."""


def stopping(scope: Scope) -> asyncio.Event:
    """Is set when the server stops while this request is being answered."""
    event = scope[_STOPPING] = asyncio.Event()
    return event
