"""Many clients over streamable HTTP. Nobody beyond this machine is listened to without a token."""

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
from nacre.mcp_server.tool import Tool

PATH = "/mcp"
TOKEN_CHARS_MIN = 16


def serve(settings: Settings, tools: Sequence[Tool], *, whole: bool, host: str, port: int, token: str | None) -> None:
    """Answer clients until interrupted."""
    if token is not None and len(token) < TOKEN_CHARS_MIN:
        raise InvalidInput("token", f"is too short; give at least {TOKEN_CHARS_MIN} characters")
    if not is_loopback(host) and token is None:
        raise InvalidInput(
            "host", f"{host} can be reached from other machines; give a token, too (NACRE_TOKEN or --token-file)"
        )
    sdk.load()

    import uvicorn

    from nacre.mcp_server.places import Places

    places = Places(settings)
    # uvicorn stops in good order and then raises the signal anew: that must not end us before the log is written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        # uvicorn writes to stderr; what a client asks is nobody's business, so requests are not logged.
        uvicorn.run(app(places, tools, whole=whole, host=host, token=token), host=host, port=port, access_log=False)
    finally:
        places.close()


def app(places: Any, tools: Sequence[Tool], *, whole: bool, host: str, token: str | None) -> Any:
    """The ASGI application."""
    from mcp.server.transport_security import TransportSecuritySettings

    from nacre.mcp_server.server import AgentsDoor, server

    made = server(AgentsDoor(places, tools, project_space.working(), None), whole=whole)
    # A page in a browser must not reach a server on its own machine through a name that it has pointed there. With a
    # token it cannot, and under which names the server is called is not known.
    local = None if is_loopback(host) else TransportSecuritySettings(enable_dns_rebinding_protection=False)
    application = made.streamable_http_app(
        streamable_http_path=PATH, host="127.0.0.1" if is_loopback(host) else host, transport_security=local
    )
    return application if token is None else guarded(application, token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(application: Any, token: str) -> Any:
    """The application for those who have the token, as `Authorization: Bearer …`."""
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
