"""One client at the other end of a pipe. Standard output carries the protocol and nothing else."""

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
from nacre.mcp_server.handshake import Replayed, Unrepeated, early_answer
from nacre.mcp_server.tool import Tool

if TYPE_CHECKING:
    from nacre.mcp_server.places import Places


def serve(settings: Settings, tools: Sequence[Tool], *, whole: bool, session: str | None) -> None:
    """Answer the client until it closes the pipe."""
    requests, answers = _claimed()
    first = requests.readline()
    early = early_answer(first, whole=whole)
    if early is not None:
        answers.write(json.dumps(early, ensure_ascii=False).encode() + b"\n")
        answers.flush()
    sdk.load()

    import anyio

    from nacre.mcp_server.places import Places

    places = Places(settings)
    # The thread that waits for the next line cannot be woken, so a signal does not wait for it either.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: _stop(places, caught))
    try:
        anyio.run(_serve, places, tools, whole, session, first, early, requests, answers)
    except* BrokenPipeError:  # the client is gone, and nobody is left to be told
        pass
    finally:
        places.close()


def _stop(places: Places, caught: int) -> None:
    places.close()
    os._exit(128 + caught)


def _claimed() -> tuple[BinaryIO, BinaryIO]:
    """The two ends of the pipe for us alone: whatever else prints in this process goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


async def _serve(
    places: Places,
    tools: Sequence[Tool],
    whole: bool,
    session: str | None,
    first: bytes,
    early: dict[str, Any] | None,
    requests: BinaryIO,
    answers: BinaryIO,
) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from nacre.mcp_server.server import AgentsDoor, server

    lines = anyio.wrap_file(io.TextIOWrapper(requests, encoding="utf-8", errors="replace"))
    writer = anyio.wrap_file(io.TextIOWrapper(answers, encoding="utf-8", newline="\n"))
    stdin = Replayed(first.decode("utf-8", "replace"), lines)
    stdout = Unrepeated(None if early is None else early["id"], writer)
    made = server(AgentsDoor(places, tools, project_space.working(), session or _new_session()), whole=whole)
    async with stdio_server(cast("Any", stdin), cast("Any", stdout)) as (read, write):
        await made.run(read, write, made.create_initialization_options())


def _new_session() -> str:
    from datetime import UTC, datetime

    return f"mcp-{new_ids(datetime.now(UTC), 1)[0]}"
