"""The agents' endpoint: the Model Context Protocol on the same port, with the same tokens."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Final

from nacre.engine.engine import Nacre
from nacre.http_api.answers import Refusal
from nacre.http_api.callers import Caller
from nacre.http_api.engines import Engines
from nacre.http_api.requests import Receive, Scope, Send
from nacre.mcp_server import sdk

PATH: Final = "/mcp"
_OWNERS_KEPT: Final = 10_000
CALLER: Final = "nacre.caller"  # in the scope of a request


class Agents:
    """Answers agents. Sessions stay in one process, so with several workers each request stands for itself."""

    def __init__(self, engines: SpacesOfTokens, tools: str, *, sessions: bool) -> None:
        self._engines = engines
        self._tools = tools
        self._sessions = sessions
        self._stack = AsyncExitStack()
        self._owners: dict[bytes, str] = {}  # who has begun a session, by its id

    async def start(self) -> None:
        sdk.load()
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from nacre.http_api.agent_requests import TokenHandlers
        from nacre.mcp_server import http_limits, server_info
        from nacre.mcp_server.server import build_server
        from nacre.mcp_server.tools import chosen

        handlers = TokenHandlers(self._engines, chosen(self._tools), None, None)
        manager = StreamableHTTPSessionManager(
            build_server(handlers, profile=server_info.MEMORY),
            stateless=not self._sessions,
            max_request_body_size=http_limits.REQUEST_BYTES_MAX,
            session_idle_timeout=http_limits.SESSION_IDLE_S if self._sessions else None,
            max_sessions=2 * http_limits.SESSIONS_MAX,  # never reached: the oldest ends before
        )
        await self._stack.enter_async_context(manager.run())
        self._application = http_limits.SessionLimit(manager.handle_request, PATH)

    async def answer(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session_in(scope["headers"])
        if session is not None and self._owners.get(session, caller.id) != caller.id:
            raise Refusal(404, "NotFound", "Session not found: another token has begun it. Send initialize again")
        scope[CALLER] = caller
        await self._application(scope, receive, self._noting(caller, send))

    def _noting(self, caller: Caller, send: Send) -> Send:
        """A `send` that notes whose the session is which an answer opens."""

        async def noting(event: MutableMapping[str, Any]) -> None:
            opened = _session_in(event.get("headers", ()))
            if opened is not None:
                self._owners[opened] = caller.id
                if len(self._owners) > _OWNERS_KEPT:
                    del self._owners[next(iter(self._owners))]  # of a session that has ended long ago
            await send(event)

        return noting

    async def stop(self) -> None:
        await self._stack.aclose()


class SpacesOfTokens:
    """Engines for agents: each works in one space and sees no other."""

    def __init__(self, engines: Engines, usual: str, fixed: str | None) -> None:
        """`usual` is the space where nothing names one; `fixed` is for all clients, whatever their project."""
        self._engines = engines
        self._kept: dict[str, Nacre] = {}
        self._open = ExitStack()  # what is kept here is in use
        self._lock = threading.Lock()
        self.usual = usual
        self.fixed = fixed

    def fallback(self, _: Path | None) -> str:
        """The space of a client that names no project."""
        return self.usual

    def memory(self, space: str) -> Nacre:
        """The engine of a space. It stays open: agents have few spaces, and a call may take long."""
        with self._lock:
            if space not in self._kept:
                self._kept[space] = self._open.enter_context(self._engines.of(space, (space,)))
            return self._kept[space]


def _session_in(headers: Any) -> bytes | None:
    return next((value for name, value in headers if name.lower() == b"mcp-session-id"), None)
