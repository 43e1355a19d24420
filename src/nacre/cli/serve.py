"""Commands that serve programs and people over HTTP: serve, ui."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nacre import validation
from nacre.cli import render
from nacre.cli.group import nacre
from nacre.cli.options import common, in_order, settings_of
from nacre.validation import LIMITS

_PORT = click.IntRange(0, 65_535)


def _listening(command: Any) -> Any:
    """Where the server listens, and whom it answers."""
    folder = click.Path(path_type=Path, file_okay=False)
    return in_order(
        command,
        [
            click.option(
                "--host",
                default="127.0.0.1",
                show_default=True,
                help="The address to listen on; others than this machine's own need tokens.",
            ),
            click.option("--port", type=_PORT, default=8642, show_default=True, help="The port; 0 chooses a free one."),
            click.option(
                "--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes."
            ),
            click.option("--require-token", is_flag=True, help="Answer nobody without a token, also on this machine."),
            click.option(
                "--allowed-host", "hosts", metavar="NAME", multiple=True, help="A further host name of this server."
            ),
            click.option(
                "--requests-per-minute",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Of each token; 0: any number.",
            ),
            click.option("--backups", type=folder, help="The folder that backups over HTTP are written to."),
            click.option("--tls-cert", type=click.Path(path_type=Path), help="The certificate, for HTTPS."),
            click.option("--tls-key", type=click.Path(path_type=Path), help="The key of the certificate."),
            click.option(
                "--proxy",
                "proxies",
                metavar="ADDRESS",
                multiple=True,
                help="A reverse proxy whose X-Forwarded-For is believed.",
            ),
            click.option("--tools", metavar="GROUPS", default="", help="Further tools for agents; see `nacre mcp`."),
            click.option(
                "--defer-embeddings", is_flag=True, help="Store without embedding: workers embed (`nacre worker`)."
            ),
            click.option("--no-access-log", is_flag=True, help="Log no requests."),
        ],
    )


@nacre.command()
@_listening
@common
@click.pass_context
def serve(context: click.Context, /, **given: Any) -> None:
    """Serve programs, agents and the page over HTTP.

    The page is at /, the API at /v1 (described at /openapi.json), and agents connect to /mcp.
    """
    _serve(context, given)


@nacre.command()
@_listening
@common
@click.pass_context
def ui(context: click.Context, /, **given: Any) -> None:
    """Open the page in a browser. Serves it until interrupted, unless a server already listens there."""
    url = f"http://{given['host']}:{given['port']}"
    if _is_ours(url):
        show(url)
    else:
        _serve(context, given, show)


def show(url: str) -> None:
    """Open a browser, or tell what to open where there is none."""
    import webbrowser

    if not webbrowser.open(url):
        render.tell(f"open {url} in a browser")


def _is_ours(url: str) -> bool:
    """Whether a server of Nacre answers there."""
    from urllib.error import URLError
    from urllib.request import urlopen

    from nacre.serialization.routes import VERSION_HEADER

    try:
        with urlopen(f"{url}/healthz", timeout=2) as answer:  # noqa: S310  # the URL is ours
            return VERSION_HEADER in answer.headers
    except (URLError, OSError, ValueError):
        return False


def _serve(context: click.Context, given: dict[str, Any], then: Callable[[str], None] | None = None) -> None:
    from nacre.http_api import serving
    from nacre.http_api.callers import is_loopback
    from nacre.http_api.options import Options

    serving.require()
    settings = settings_of(context)
    validation.space_name(settings.space.value, LIMITS)  # at the start, not in the answer to each request
    listening = serving.Listening(
        host=given["host"],
        port=given["port"],
        workers=given["workers"],
        certificate=given["tls_cert"],
        certificate_key=given["tls_key"],
        proxies=",".join(given["proxies"]),
    )
    options = Options(
        space=settings.space.value,
        fixed_space=settings.space.source != "default",
        hosts=serving.usual_hosts(listening, given["hosts"]),
        token_needed=given["require_token"] or not is_loopback(listening.host),
        requests_per_minute=given["requests_per_minute"],
        backups=given["backups"],
        tools=given["tools"],
        workers=listening.workers,
        access_log=not given["no_access_log"],
        defer_embeddings=given["defer_embeddings"],
    )

    def ready(url: str) -> None:
        render.tell(f"serving {settings.store.value} at {url} (Ctrl+C stops it)")
        if then is not None:
            then(url)

    serving.serve(settings, listening, options, ready)
