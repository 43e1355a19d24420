"""The server over stdio, for one client. Standard output carries the protocol and nothing else."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from nacre.config import project_space
from nacre.config.settings import Settings
from nacre.ids import new_ids
from nacre.mcp_server import sdk
from nacre.mcp_server.handshake import FirstLineReplayed, WithoutEarlyAnswer, early_answer
from nacre.mcp_server.tool import Tool

if TYPE_CHECKING:
    from nacre.hooks.listener import Listener
    from nacre.mcp_server.spaces import SpaceEngines


def serve(settings: Settings, tools: Sequence[Tool], *, tools_only: bool, session: str | None) -> None:
    """Answer the client until it closes standard input."""
    requests, answers = _claimed()
    first = requests.readline()
    early = early_answer(first, tools_only=tools_only)
    if early is not None:
        answers.write(json.dumps(early, ensure_ascii=False).encode() + b"\n")
        answers.flush()
    sdk.load()

    import anyio

    from nacre.hooks.listener import Listener
    from nacre.mcp_server.spaces import SpaceEngines

    engines = SpaceEngines(settings)
    hooks = Listener(settings, engines.memory)
    hooks.start()
    # The thread that reads the next line cannot be interrupted, so a signal ends the process without it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: _stop(engines, hooks, caught))
    try:
        anyio.run(_serve, engines, tools, tools_only, session, first, early, requests, answers)
    except* BrokenPipeError:  # the client is gone, and nobody can read an error
        pass
    finally:
        hooks.close()
        engines.close()


def _stop(engines: SpaceEngines, hooks: Listener, caught: int) -> None:
    hooks.close()
    engines.close()
    os._exit(128 + caught)


def _claimed() -> tuple[BinaryIO, BinaryIO]:
    """Standard input, and standard output for the protocol alone: other prints of this process go to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


async def _serve(
    engines: SpaceEngines,
    tools: Sequence[Tool],
    tools_only: bool,
    session: str | None,
    first: bytes,
    early: dict[str, Any] | None,
    requests: BinaryIO,
    answers: BinaryIO,
) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from nacre.mcp_server.server import RequestHandlers, build_server

    lines = anyio.wrap_file(io.TextIOWrapper(requests, encoding="utf-8", errors="replace"))
    writer = anyio.wrap_file(io.TextIOWrapper(answers, encoding="utf-8", newline="\n"))
    stdin = FirstLineReplayed(first.decode("utf-8", "replace"), lines)
    stdout = WithoutEarlyAnswer(None if early is None else early["id"], writer)
    handlers = RequestHandlers(engines, tools, project_space.working(), session or _new_session())
    server = build_server(handlers, tools_only=tools_only)
    async with stdio_server(cast("Any", stdin), cast("Any", stdout)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _new_session() -> str:
    from datetime import UTC, datetime

    return f"mcp-{new_ids(datetime.now(UTC), 1)[0]}"
