"""How a connection ends when the server stops: who only listens is let go, and other answers are finished."""

from __future__ import annotations

import asyncio
from typing import Final

from nacre.http_api.requests import Scope
from nacre.mcp_server.http_limits import TimedProtocol

_STOPPING: Final = "nacre.stopping"  # in the scope of a request that would not end by itself


class ServerProtocol(TimedProtocol):
    def shutdown(self) -> None:
        waiting = None if self.cycle is None else dict(self.cycle.scope).get(_STOPPING)
        if isinstance(waiting, asyncio.Event):
            waiting.set()
        super().shutdown()


def stopping(scope: Scope) -> asyncio.Event:
    """Is set when the server stops while this request is being answered."""
    event = scope[_STOPPING] = asyncio.Event()
    return event
