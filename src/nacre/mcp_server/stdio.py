"""The server over stdio, for one client. Standard output carries the protocol and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from nacre.config import project_space
from nacre.config.settings import Settings
from nacre.ids import new_ids
from nacre.mcp_server import sdk
from nacre.mcp_server.client_pipe import ClientPipe
from nacre.mcp_server.first_call import FirstCall, Handover
from nacre.mcp_server.handshake import LinesReplayed, WithoutEarlyAnswer, early_answer
from nacre.mcp_server.server_info import Profile
from nacre.mcp_server.tool import Tool

if TYPE_CHECKING:
    from nacre.hooks.listener import Listener
    from nacre.mcp_server.spaces import SpaceEngines


def serve(settings: Settings, tools: Sequence[Tool], *, profile: Profile, session: str | None) -> None:
    """Answer the client until it closes standard input."""
    pipe = _claimed()
    first, asked = pipe.next()
    early = early_answer(first, profile=profile)
    if early is not None:
        pipe.send(early)

    from nacre.hooks.listener import Listener
    from nacre.mcp_server.spaces import SpaceEngines

    engines = SpaceEngines(settings)
    hooks = Listener(settings, engines.memory)
    hooks.start()
    # The thread that reads the next line cannot be interrupted, so a signal ends the process without it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: _stop(engines, hooks, caught))
    session = session or _new_session()
    try:
        handed = Handover((), None)
        if early is not None:
            call = FirstCall(pipe, engines, tools, project_space.working(), session)
            handed = call.serve(asked["params"]["capabilities"])
        sdk.load()

        import anyio

        lines = LinesReplayed((first, *handed.lines), pipe)
        answers = WithoutEarlyAnswer(None if early is None else early["id"], pipe)
        anyio.run(_serve, engines, tools, profile, session, handed.space, lines, answers)
    except* BrokenPipeError:  # the client is gone, and nobody can read an error
        pass
    finally:
        hooks.close()
        engines.close()


def _stop(engines: SpaceEngines, hooks: Listener, caught: int) -> None:
    hooks.close()
    engines.close()
    os._exit(128 + caught)


def _claimed() -> ClientPipe:
    """Standard input, and standard output for the protocol alone: other prints of this process go to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    return ClientPipe(sys.stdin.fileno(), write)


async def _serve(
    engines: SpaceEngines,
    tools: Sequence[Tool],
    profile: Profile,
    session: str,
    space: str | None,
    lines: LinesReplayed,
    answers: WithoutEarlyAnswer,
) -> None:
    """Serve by the SDK."""
    from mcp.server.stdio import stdio_server

    from nacre.mcp_server.server import RequestHandlers, build_server

    handlers = RequestHandlers(engines, tools, project_space.working(), session, space)
    server = build_server(handlers, profile=profile)
    async with stdio_server(cast("Any", lines), cast("Any", answers)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _new_session() -> str:
    from datetime import UTC, datetime

    return f"mcp-{new_ids(datetime.now(UTC), 1)[0]}"
