"""The command that serves agents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre import validation
from nacre.analysis import encodings
from nacre.cli.group import nacre
from nacre.cli.options import common, settings_of
from nacre.errors import InvalidInput
from nacre.validation import LIMITS

if TYPE_CHECKING:
    from nacre.mcp_server.server_info import Profile
    from nacre.mcp_server.tool import Tool

GRAPH = "knowledge-graph"


@nacre.command()
@click.option(
    "--tools",
    metavar="GROUPS",
    default="",
    help="Groups of further tools, separated by commas, or all; or chatgpt alone.",
)
@click.option(
    "--compat", metavar="NAME", help=f"{GRAPH}: offer the nine tools of the MCP reference memory server instead."
)
@click.option(
    "--session", metavar="SESSION", help="The name of the connection, for the log and the origin of memories."
)
@click.option("--http", is_flag=True, help="Serve many clients over streamable HTTP instead of one over stdio.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; others than this machine need a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8642,
    show_default=True,
    help="The port to listen on; 0 chooses a free one.",
)
@click.option("--token-file", type=click.Path(path_type=Path), help="A file that holds the token; or set NACRE_TOKEN.")
@common
@click.pass_context
def mcp(
    context: click.Context,
    tools: str,
    compat: str | None,
    session: str | None,
    http: bool,
    host: str,
    port: int,
    token_file: Path | None,
) -> None:
    """Serve agents over the Model Context Protocol."""
    from nacre.mcp_server import sdk, server_info

    sdk.require()

    settings = settings_of(context)
    validation.space_name(settings.space.value, LIMITS)  # at the start, not in the answer to each call
    if session is not None:
        validation.session_name(session, LIMITS)
    if compat not in (None, GRAPH):
        raise InvalidInput("compat", f"{compat!r} is unknown; allowed: {GRAPH}")
    if compat and tools:
        raise InvalidInput("tools", "cannot be combined with --compat; give one of the two")
    offered = _graph_tools() if compat else _tools(tools)
    profile = server_info.GRAPH if compat else _profile(offered)
    if http:
        from nacre.mcp_server import http as over_http

        token = _token(token_file)
        over_http.serve(settings, offered, profile=profile, host=host, port=port, token=token)
    else:
        from nacre.mcp_server import stdio

        stdio.serve(settings, offered, profile=profile, session=session)


def _tools(groups: str) -> Sequence[Tool]:
    from nacre.mcp_server.tools import chosen

    return chosen(groups)


def _profile(offered: Sequence[Tool]) -> Profile:
    from nacre.mcp_server import chatgpt_tools, server_info

    return server_info.CHATGPT if offered is chatgpt_tools.TOOLS else server_info.MEMORY


def _graph_tools() -> Sequence[Tool]:
    from nacre.mcp_server.graph_tools import TOOLS

    return TOOLS


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("NACRE_TOKEN") or None
    try:
        return encodings.decoded(file.read_bytes()).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("token-file", f"{file} cannot be read ({error})") from None
