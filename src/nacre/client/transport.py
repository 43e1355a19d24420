"""What the package httpx is told, and what its errors and answers mean, with and without async.

This module and the two connections are the only ones that import httpx, so that `nacre.AsyncNacre` on a local engine
needs no extra.
"""

from __future__ import annotations

from typing import Any, Final

import httpx

import nacre
from nacre.client.answers import Head, broken_off, unavailable
from nacre.client.requests import Request
from nacre.client.retries import Failure
from nacre.client.server import Place, Server
from nacre.errors import ServerUnavailable

_CONNECT_S: Final = 5.0  # for one attempt: an address that does not answer is tried again
# A server of Nacre closes idle connections after 5 s. This is less, so that no request meets one that is just closing.
_IDLE_S: Final = 4.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def options(server: Server) -> dict[str, Any]:
    """The arguments of a client. Loopback is reached without the proxy that the environment may name."""
    return {
        "headers": {"User-Agent": f"nacre/{nacre.__version__}", **server.headers()},
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=_IDLE_S),
        "mounts": {f"all://{host}": None for host in _LOOPBACK},
        "verify": server.url.startswith("https:"),  # to load certificates takes 20 ms
    }


def headers(request: Request, place: Place) -> httpx.Headers:
    """Names of spaces are UTF-8."""
    named = {name.encode(): value.encode() for name, value in (*request.headers.items(), *place.headers().items())}
    return httpx.Headers(named)


def timeout(left_s: float) -> httpx.Timeout:
    """Of one attempt. In a stream it is also the longest wait for the next part."""
    return httpx.Timeout(left_s, connect=min(left_s, _CONNECT_S))


def head_of(response: httpx.Response) -> Head:
    return Head(response.status_code, {name.lower(): value for name, value in response.headers.items()})


def failure_of(error: httpx.HTTPError) -> Failure:
    """Whether anything of the request may have reached the server."""
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError)
    return Failure("unsent" if unsent else "lost")


def error_of(error: httpx.HTTPError, server: Server) -> ServerUnavailable:
    """The error of a request that got no answer."""
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ServerUnavailable(
            f"server: {server.url} gave no answer within {server.timeout_s:g} s; connect with a longer timeout_s, or "
            "look at what the server does"
        )
    if failure_of(error).kind == "lost":
        return broken_off(server.url, _reason(error))
    return ServerUnavailable(unavailable(server.url, _reason(error)))


def _reason(error: httpx.HTTPError) -> str:
    return str(error).strip() or type(error).__name__


def closed(server: Server) -> ServerUnavailable:
    return ServerUnavailable(f"server: the connection to {server.url} is closed; connect again")
