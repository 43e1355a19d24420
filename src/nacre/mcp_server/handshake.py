"""Answers `initialize` before the SDK is loaded.

Clients start a server and wait for its answer to `initialize`, some of them only briefly. That answer needs the
server's name, version and instructions alone, so it is sent at once, and the SDK is loaded while the client reads it.
The SDK then gets the same request. Its answer is the same (tests/mcp_server/test_mcp_server.py) and is not sent again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from nacre.mcp_server import server_info
from nacre.mcp_server.client_pipe import ClientPipe
from nacre.mcp_server.server_info import Profile
from nacre.types.memory import Json

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # of the protocol, that begin with `initialize`
ANSWERS_WAIT_S = 10.0  # for requests that are in work when the client closes its end


def early_answer(line: bytes, *, profile: Profile) -> dict[str, Json] | None:
    """The answer to a line that is a plain `initialize`; anything else is left to the SDK."""
    try:
        request = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    match request:
        case {
            "jsonrpc": "2.0",
            "id": str() | int() as number,
            "method": "initialize",
            "params": {
                "protocolVersion": str() as version,
                "capabilities": dict() as capabilities,
                "clientInfo": {"name": str(), "version": str()} as client,
                **more,
            },
        } if version in VERSIONS and not isinstance(number, bool) and not more:
            if _are_plain(capabilities) and all(isinstance(each, str) for each in client.values()):
                return {"jsonrpc": "2.0", "id": number, "result": _result(version, profile=profile)}
    return None


def _are_plain(capabilities: dict[str, Any]) -> bool:
    """Whether the SDK certainly accepts them."""
    for name, value in capabilities.items():
        if name not in ("roots", "sampling", "elicitation", "experimental") or not isinstance(value, dict):
            return False
        kind = bool if name == "roots" else dict
        if not all(isinstance(each, kind) for each in value.values()):
            return False
    return True


def _result(version: str, *, profile: Profile) -> dict[str, Json]:
    unchanging: dict[str, Json] = {"listChanged": False}
    extras: dict[str, Json] = {
        "completions": {},
        "prompts": unchanging,
        "resources": {"subscribe": False, **unchanging},
    }
    server: dict[str, Json] = {"name": server_info.NAME, "title": server_info.TITLE, "version": server_info.VERSION}
    return {
        "protocolVersion": version,
        "capabilities": {**({} if profile.tools_only else extras), "logging": {}, "tools": unchanging},
        "serverInfo": server,
        "instructions": profile.instructions,
    }


class LinesReplayed:
    """The client's lines for the SDK, beginning with those that were read before it was loaded."""

    def __init__(self, first: Sequence[bytes], pipe: ClientPipe) -> None:
        self._first = first
        self._pipe = pipe

    async def __aiter__(self) -> AsyncIterator[str]:
        import anyio.to_thread

        for line in self._first:
            if line:
                yield line.decode()
        while line := (await anyio.to_thread.run_sync(self._pipe.next, abandon_on_cancel=True))[0]:
            yield line.decode()
        # At the end of its input the SDK drops what it is working on.
        await anyio.to_thread.run_sync(self._pipe.settle, ANSWERS_WAIT_S, abandon_on_cancel=True)


class WithoutEarlyAnswer:
    """Writes all answers of the SDK except the one that was sent early."""

    def __init__(self, answered: Json, pipe: ClientPipe) -> None:
        self._answered = answered  # the id of the request; None if nothing was answered early
        self._pipe = pipe

    async def write(self, line: str) -> None:
        import anyio.to_thread

        if self._answered is not None and json.loads(line).get("id") == self._answered:
            self._answered = None
            return
        await anyio.to_thread.run_sync(self._pipe.write, line.encode())

    async def flush(self) -> None:
        """Each line is sent at once."""
