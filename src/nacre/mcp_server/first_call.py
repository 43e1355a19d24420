"""Answers a client up to its first tool call before the SDK is loaded, which takes longer than the call.

Only plain messages are answered here: `ping`, the list of tools, and one call of a tool that does not talk with the
client meanwhile. Everything else is left to the SDK, which gets the lines that it has to know of. The answers are the
SDK's (tests/mcp_server/test_first_call.py).
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nacre.errors import NacreError
from nacre.mcp_server import arguments, tool_json
from nacre.mcp_server.client_pipe import ClientPipe
from nacre.mcp_server.spaces import ROOTS_WAIT_S, SpaceEngines, space_of_roots
from nacre.mcp_server.tool import Tool
from nacre.types.memory import Json

_ROOTS = "nacre-roots"  # the id of our request for the client's roots
_log = logging.getLogger("nacre")


class Handover(NamedTuple):
    """What the SDK goes on with: lines that it has to read first, and the client's space where that is known."""

    lines: tuple[bytes, ...]
    space: str | None


class FirstCall:
    """Answers one client over stdio until its first tool call is done."""

    def __init__(
        self,
        pipe: ClientPipe,
        engines: SpaceEngines,
        tools: Sequence[Tool],
        folder: Path | None,
        session: str | None,
    ) -> None:
        self._pipe = pipe
        self._engines = engines
        self._tools = {each.name: each for each in tools}
        self._folder = folder
        self._session = session
        self._later: list[bytes] = []  # lines that came while the client was asked for its roots

    def serve(self, capabilities: Mapping[str, Any]) -> Handover:
        """`capabilities` are the client's."""
        known: list[bytes] = []  # notifications that the SDK has to know of
        while (incoming := self._pipe.next())[0]:
            line, message = incoming
            params: Any = message.get("params")
            match message:
                case {"method": "notifications/initialized"} if "id" not in message:
                    known.append(line)
                case {"id": number, "method": "ping"} if not params:
                    self._answer(number, {})
                case {"id": number, "method": "tools/list"} if not params:
                    self._answer(number, {"tools": [tool_json.listed(each) for each in self._tools.values()]})
                case {"id": number, "method": "tools/call"} if tool := self._plain(params):
                    space = self._space(capabilities)
                    self._answer(number, self._called(tool, params.get("arguments", {}), space))
                    return Handover((*known, *self._later), space)
                case _:
                    return Handover((*known, line), None)
        return Handover(tuple(known), None)

    def _called(self, tool: Tool, given: Mapping[str, Any], space: str) -> Json:
        """The result of a call, also where the store cannot be opened."""
        try:
            memory = self._engines.memory(space)
        except NacreError as error:
            return tool_json.failed(str(error), self._tools)
        call = arguments.call_of(tool, memory, given, self._session, _not_reported)
        return tool_json.answered(tool, call, self._tools)

    def _plain(self, params: object) -> Tool | None:
        """The tool, if the call needs nothing from the client."""
        if not isinstance(params, dict) or not params.keys() <= {"name", "arguments", "_meta"}:
            return None
        if not isinstance(params.get("arguments", {}), dict) or not isinstance(params.get("_meta", {}), dict):
            return None
        name = params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None or tool.converses else tool

    def _space(self, capabilities: Mapping[str, Any]) -> str:
        asked = self._engines.fixed is None and "roots" in capabilities
        return self._engines.fixed or (self._asked() if asked else None) or self._engines.fallback(self._folder)

    def _asked(self) -> str | None:
        """The space of the client's roots; None if it names none in time."""
        self._pipe.send({"jsonrpc": "2.0", "id": _ROOTS, "method": "roots/list"})
        until = time.monotonic() + ROOTS_WAIT_S
        while True:
            try:
                line, message = self._pipe.next(max(0.0, until - time.monotonic()))
            except queue.Empty:
                _log.warning("the client did not list its roots within %g s", ROOTS_WAIT_S)
                return None
            if message.get("id") == _ROOTS and "method" not in message:
                result = message.get("result")
                roots = result.get("roots") if isinstance(result, dict) else None
                named = [each.get("uri") for each in roots if isinstance(each, dict)] if isinstance(roots, list) else []
                return space_of_roots(each for each in named if isinstance(each, str))
            if not line:
                return None
            self._later.append(line)

    def _answer(self, number: Json, result: Json) -> None:
        self._pipe.send({"jsonrpc": "2.0", "id": number, "result": result})


def _not_reported(_: object) -> None:
    """Tools that report progress are left to the SDK."""
