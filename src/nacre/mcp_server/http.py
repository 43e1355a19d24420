"""The server over streamable HTTP, for many clients. Clients on other machines need a token."""

from __future__ import annotations

import hmac
import ipaddress
import signal
import sys
from collections.abc import Sequence
from typing import Any

from nacre.config import project_space
from nacre.config.settings import Settings
from nacre.errors import InvalidInput
from nacre.mcp_server import sdk
from nacre.mcp_server.server_info import Profile
from nacre.mcp_server.tool import Tool

PATH = "/mcp"
TOKEN_CHARS_MIN = 16


def serve(
    settings: Settings, tools: Sequence[Tool], *, profile: Profile, host: str, port: int, token: str | None
) -> None:
    """Answer clients until interrupted."""
    if token is not None and len(token) < TOKEN_CHARS_MIN:
        raise InvalidInput("token", f"is too short; give at least {TOKEN_CHARS_MIN} characters")
    if not is_loopback(host) and token is None:
        raise InvalidInput(
            "host", f"{host} can be reached from other machines; give a token, too (NACRE_TOKEN or --token-file)"
        )
    sdk.load()

    import uvicorn

    from nacre.hooks.listener import Listener
    from nacre.mcp_server import http_limits
    from nacre.mcp_server.spaces import SpaceEngines

    engines = SpaceEngines(settings)
    hooks = Listener(settings, engines.memory)
    hooks.start()
    # uvicorn shuts down and then raises the signal again: by default it would end us before the log is written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        # uvicorn writes to stderr. Requests are private, so they are not logged.
        application = app(engines, tools, profile=profile, host=host, token=token)
        uvicorn.run(
            application,
            host=host,
            port=port,
            access_log=False,
            http=http_limits.TimedProtocol,
            ws="none",
            timeout_keep_alive=http_limits.KEEP_ALIVE_S,
            timeout_graceful_shutdown=http_limits.SHUTDOWN_S,
            limit_concurrency=http_limits.CONNECTIONS_MAX,
        )
    finally:
        hooks.close()
        engines.close()


def app(engines: Any, tools: Sequence[Tool], *, profile: Profile, host: str, token: str | None) -> Any:
    """The ASGI application."""
    from mcp.server.transport_security import TransportSecuritySettings

    from nacre.mcp_server import http_limits
    from nacre.mcp_server.server import RequestHandlers, build_server

    handlers = RequestHandlers(engines, tools, project_space.working(), None)
    server = build_server(handlers, profile=profile)
    # On loopback the SDK checks the Host header, against DNS rebinding by a page in a browser. Elsewhere the token
    # protects the server, and its host names are not known.
    local = None if is_loopback(host) else TransportSecuritySettings(enable_dns_rebinding_protection=False)
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        host="127.0.0.1" if is_loopback(host) else host,
        transport_security=local,
        max_request_body_size=http_limits.REQUEST_BYTES_MAX,
        session_idle_timeout=http_limits.SESSION_IDLE_S,
        max_sessions=2 * http_limits.SESSIONS_MAX,  # never reached: the oldest ends before
    )
    limited = http_limits.SessionLimit(application, PATH)
    return limited if token is None else guarded(limited, token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(application: Any, token: str) -> Any:
    """The application for requests with the token, as `Authorization: Bearer …`."""
    expected = f"Bearer {token}".encode()

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, expected):
                await _refuse(send)
                return
        await application(scope, receive, send)

    return guard


async def _refuse(send: Any) -> None:
    body = b'{"error": {"type": "Unauthorized", "message": "give the token as Authorization: Bearer TOKEN"}}'
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
