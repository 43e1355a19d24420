"""What the package httpx is told, and what its errors and answers mean, with and without async.

This module and the two connections are the only ones that import httpx, so that `nacre.AsyncNacre` on a local engine
needs no extra.
"""

from __future__ import annotations

import ssl
from typing import Final, TypeVar

import httpx

import nacre
from nacre import validation
from nacre.client.answers import Head, broken_off, unavailable
from nacre.client.requests import Request
from nacre.client.retries import Failure
from nacre.client.server import Place, Server
from nacre.errors import InvalidInput, ServerError, ServerUnavailable

_CONNECT_S: Final = 5.0  # for one attempt: an address that does not answer is tried again
# A server of Nacre closes idle connections after 30 s. This is less, so that no request meets one that is just closing.
_IDLE_S: Final = 25.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

C = TypeVar("C", httpx.Client, httpx.AsyncClient)


def opened(kind: type[C], server: Server) -> C:
    """A client of httpx. Loopback is reached without the proxy that the environment may name."""
    try:
        return kind(
            headers={"User-Agent": f"nacre/{nacre.__version__}", **server.headers()},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=_IDLE_S),
            trust_env=httpx.URL(server.url).host not in _LOOPBACK,
            # Those that SSL_CERT_FILE names, or else certifi. To load certificates takes 20 ms.
            verify=httpx.create_ssl_context() if server.url.startswith("https:") else False,
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InvalidInput("url", f"{validation.shown(server.url)} is no URL of a server ({error})") from None
    except OSError as error:
        raise InvalidInput("SSL_CERT_FILE", f"of the environment names no certificates ({error})") from None
    except (ImportError, ValueError) as error:
        raise InvalidInput("proxy", f"that of the environment cannot be used ({error})") from None


def headers(request: Request, place: Place) -> httpx.Headers:
    """Names of spaces are UTF-8."""
    named = {name.encode(): value.encode() for name, value in (*request.headers.items(), *place.headers().items())}
    return httpx.Headers(named)


def timeout(left_s: float) -> httpx.Timeout:
    """Of one attempt. In a stream it is also the longest wait for the next part."""
    return httpx.Timeout(left_s, connect=min(left_s, _CONNECT_S))


def head_of(response: httpx.Response) -> Head:
    return Head(response.status_code, {name.lower(): value for name, value in response.headers.items()})


def failure_of(error: httpx.HTTPError) -> Failure | None:
    """Whether anything of the request may have reached the server. None: it would not be sent another time either."""
    if isinstance(error, httpx.LocalProtocolError) or _tls(error) is not None:
        return None
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError)
    return Failure("unsent" if unsent else "lost")


def error_of(error: httpx.HTTPError, server: Server) -> ServerUnavailable:
    """The error of a request that got no answer."""
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ServerUnavailable(
            f"server: {server.url} gave no answer within {server.timeout_s:g} s; connect with a longer timeout_s, or "
            "look at what the server does"
        )
    tls = _tls(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return ServerUnavailable(
            f"server: the certificate of {server.url} is not trusted ({tls.verify_message}); name the file of who "
            "signed it in the environment variable SSL_CERT_FILE, or check the URL"
        )
    if tls is not None:
        return ServerUnavailable(
            f"server: {server.url} speaks no TLS ({tls.reason}); connect with http://, or check it"
        )
    failure = failure_of(error)
    if failure is not None and failure.kind == "lost":
        return broken_off(server.url, _reason(error))
    return ServerUnavailable(unavailable(server.url, _reason(error)))


def _tls(error: BaseException | None) -> ssl.SSLError | None:
    """What was wrong when the connection was to be encrypted, if that is the cause."""
    if not isinstance(error, httpx.ConnectError):
        return None
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _reason(error: httpx.HTTPError) -> str:
    return str(error).strip() or type(error).__name__


def closed(server: Server) -> ServerUnavailable:
    return ServerUnavailable(f"server: the connection to {server.url} is closed; connect again")


def of_another_loop(server: Server) -> ServerError:
    return ServerError(f"server: the connection to {server.url} belongs to another event loop; connect in each")
