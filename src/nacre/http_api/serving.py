"""Runs the server: one process, or several that share the port and the store's file."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import ssl
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from nacre.config.factory import open_from_settings
from nacre.config.settings import Settings, Sourced
from nacre.errors import InvalidInput, StoreUnavailable
from nacre.hooks.listener import Listener
from nacre.http_api.callers import LOOPBACK_NAMES, is_loopback
from nacre.http_api.limits import DRAIN_S, WORKER_START_S
from nacre.http_api.options import NUMBERS_FOLDER, Options
from nacre.mcp_server import sdk
from nacre.runtime.onnx_models import EMBEDDER, MODEL, RERANKER, TOKENS, load_ahead

PORT: Final = 8642


def require() -> None:
    """Raise InvalidInput where the packages of the server are not installed."""
    from importlib.util import find_spec

    sdk.require()
    if find_spec("prometheus_client") is None:
        raise InvalidInput(
            "serve", "the package prometheus-client is missing; install it with `pip install 'nacre-memory[server]'`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a server listens, and with how many processes."""

    host: str = "127.0.0.1"
    port: int = PORT
    workers: int = 1
    certificate: Path | None = None  # with its key: HTTPS
    certificate_key: Path | None = None
    proxies: str = ""  # addresses of reverse proxies whose X-Forwarded-For is believed

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Served:
    """Makes the application of a process. It is pickled for workers."""

    settings: Settings
    options: Options

    def __call__(self) -> Any:
        from nacre.http_api.application import Application

        _begin_logging(self.options.access_log)
        settings = self.settings
        if settings.embedder.value not in (
            "minilm-cuda",
            "hashing",
            "none",
        ):  # the first search need not wait for the models
            load_ahead(
                [each / MODEL for each in (EMBEDDER, *([TOKENS] if settings.token_vectors.value else []), RERANKER)]
            )
        opened = partial(open_from_settings, settings, defer_embeddings=self.options.defer_embeddings)
        return Application(opened, self.options, partial(Listener, settings))


def _begin_logging(requests: bool) -> None:
    """Logs go to stderr. Requests are logged without their arguments, which may have texts of memories."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s", level=logging.WARNING)
    access = logging.getLogger("nacre.access")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    access.handlers, access.propagate = [handler], False
    access.setLevel(logging.INFO if requests else logging.WARNING)


def usual_hosts(listening: Listening, more: tuple[str, ...]) -> frozenset[str]:
    """The names of a server that only this machine reaches. Elsewhere a token is needed, and names are not known."""
    if not is_loopback(listening.host):
        return frozenset(each.lower() for each in more)
    return LOOPBACK_NAMES | {each.lower() for each in (listening.host, *more)}


def check(listening: Listening, options: Options) -> None:
    """Raise InvalidInput for what must not be served."""
    if not is_loopback(listening.host) and not options.token_needed:
        raise InvalidInput("host", f"{listening.host} can be reached from other machines, which need tokens")
    if (listening.certificate is None) != (listening.certificate_key is None):
        raise InvalidInput("tls-key", "a certificate and its key belong together; give both")
    for path in (listening.certificate, listening.certificate_key):
        if path is not None and not path.is_file():
            raise InvalidInput("tls-cert", f"{path} is not a file")
    if listening.certificate is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listening.certificate, listening.certificate_key)
        except (OSError, ValueError) as error:
            raise InvalidInput("tls-cert", f"and --tls-key are no certificate in PEM and its key ({error})") from None


def serve(settings: Settings, listening: Listening, options: Options, ready: Callable[[str], None]) -> None:
    """Answer until interrupted. `ready` is called with the address once the port is open."""
    check(listening, options)
    open_from_settings(settings).close()  # what is wrong with it is an error of this command, not of a worker
    sdk.load()
    import uvicorn

    from nacre.http_api.protocol import ServerProtocol
    from nacre.mcp_server import http_limits

    if listening.workers > 1 and settings.threads.source == "default":  # processes use the cores, not threads
        settings = replace(settings, threads=Sourced(1, "default"))
    config = uvicorn.Config(
        Served(settings, options),
        factory=True,
        host=listening.host,
        port=listening.port,
        workers=listening.workers,
        access_log=False,  # ours has no texts of queries
        log_level="warning",
        http=ServerProtocol,
        ws="none",
        lifespan="on",
        proxy_headers=bool(listening.proxies),
        forwarded_allow_ips=listening.proxies or None,
        server_header=False,
        timeout_keep_alive=http_limits.KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        timeout_worker_healthcheck=WORKER_START_S,
        limit_concurrency=http_limits.CONNECTIONS_MAX,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.certificate_key,
    )
    try:
        socket = config.bind_socket()
    except SystemExit:  # uvicorn has said why
        raise StoreUnavailable(
            f"port: {listening.host}:{listening.port} cannot be listened on; another program may use it: "
            "choose another --port"
        ) from None
    socket.listen(config.backlog)  # who connects from here on waits until the application is there
    host, port = socket.getsockname()[:2]
    ready(Listening(host=host, port=port, certificate=listening.certificate).url)
    # uvicorn shuts down and then raises the signal again: by default it would end us before others are told.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        if listening.workers > 1:
            _run_workers(config, socket)
        else:
            uvicorn.Server(config).run([socket])


def _run_workers(config: Any, socket: Any) -> None:
    from uvicorn.supervisors import Multiprocess

    folder = tempfile.mkdtemp(prefix="nacre-metrics-")
    os.environ[NUMBERS_FOLDER] = folder  # the workers read it when they start
    try:
        Multiprocess(config, sockets=[socket]).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
