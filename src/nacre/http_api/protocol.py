"""How a connection ends when the server stops: who only listens is let go, and other answers are finished."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from nacre.http_api.requests import Scope
from nacre.mcp_server.http_limits import TimedProtocol

_STOPPING: Final = "nacre.stopping"  # in the scope of a request that would not end by itself


class ServerProtocol(TimedProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """asyncio sends small packets at once only on sockets that it has made. Without that an answer takes 40 ms."""
        accepted = transport.get_extra_info("socket")
        with suppress(OSError):  # closed already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)

    def shutdown(self) -> None:
        waiting = None if self.cycle is None else dict(self.cycle.scope).get(_STOPPING)
        if isinstance(waiting, asyncio.Event):
            waiting.set()
        super().shutdown()


def stopping(scope: Scope) -> asyncio.Event:
    """Is set when the server stops while this request is being answered."""
    event = scope[_STOPPING] = asyncio.Event()
    return event
