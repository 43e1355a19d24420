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
from nacre.mcp_server.first_call import FirstCall, Handover, Lines
from nacre.mcp_server.handshake import LinesReplayed, WithoutEarlyAnswer, early_answer
from nacre.mcp_server.server_info import Profile
from nacre.mcp_server.tool import Tool
from nacre.types.memory import Json

if TYPE_CHECKING:
    from nacre.hooks.listener import Listener
    from nacre.mcp_server.spaces import SpaceEngines


def serve(settings: Settings, tools: Sequence[Tool], *, profile: Profile, session: str | None) -> None:
    """Answer the client until it closes standard input."""
    lines, answers = _claimed()

    def send(message: Json) -> None:
        answers.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        answers.flush()

    first = lines.next()
    early = early_answer(first, profile=profile)
    if early is not None:
        send(early)

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
            capabilities = json.loads(first)["params"]["capabilities"]
            handed = FirstCall(lines, send, engines, tools, project_space.working(), session).serve(capabilities)
        sdk.load()

        import anyio

        replayed = LinesReplayed((first, *handed.lines), lines.next)
        answered = None if early is None else early["id"]
        anyio.run(_serve, engines, tools, profile, session, handed.space, replayed, answered, answers)
    except* BrokenPipeError:  # the client is gone, and nobody can read an error
        pass
    finally:
        hooks.close()
        engines.close()


def _stop(engines: SpaceEngines, hooks: Listener, caught: int) -> None:
    hooks.close()
    engines.close()
    os._exit(128 + caught)


def _claimed() -> tuple[Lines, BinaryIO]:
    """Standard input, and standard output for the protocol alone: other prints of this process go to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return Lines(sys.stdin.fileno()), answers


async def _serve(
    engines: SpaceEngines,
    tools: Sequence[Tool],
    profile: Profile,
    session: str,
    space: str | None,
    lines: LinesReplayed,
    answered: Json,
    answers: BinaryIO,
) -> None:
    """Serve by the SDK. `answered` is the id of the request whose answer was sent before."""
    import anyio
    from mcp.server.stdio import stdio_server

    from nacre.mcp_server.server import RequestHandlers, build_server

    writer = anyio.wrap_file(io.TextIOWrapper(answers, encoding="utf-8", newline="\n"))
    handlers = RequestHandlers(engines, tools, project_space.working(), session, space)
    server = build_server(handlers, profile=profile)
    stdout = WithoutEarlyAnswer(answered, writer)
    async with stdio_server(cast("Any", lines), cast("Any", stdout)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _new_session() -> str:
    from datetime import UTC, datetime

    return f"mcp-{new_ids(datetime.now(UTC), 1)[0]}"
