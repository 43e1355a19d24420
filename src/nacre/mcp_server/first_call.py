"""Answers a client up to its first tool call before the SDK is loaded, which takes longer than the call.

Only plain messages are answered here: `ping`, the list of tools, and one call of a tool that does not talk with the
client meanwhile. Everything else is left to the SDK, which gets the lines that it has to know of. The answers are the
SDK's (tests/mcp_server/test_first_call.py).
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nacre.mcp_server import arguments, tool_json
from nacre.mcp_server.spaces import ROOTS_WAIT_S, SpaceEngines, space_of_roots
from nacre.mcp_server.tool import Tool
from nacre.types.memory import Json

_ROOTS = "nacre-roots"  # the id of our request for the client's roots
_READ_BYTES = 65_536
_log = logging.getLogger("nacre")

Message = dict[str, Any]


class Lines:
    """The lines of a pipe, read by a thread of its own, so that one can wait for the next one only so long."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, name="nacre-stdin", daemon=True).start()

    def next(self, timeout_s: float | None = None) -> bytes:
        """The next line; empty at the end. Raises `queue.Empty` after the time."""
        line = self._lines.get(timeout=timeout_s)
        if not line:
            self._lines.put(b"")  # it has ended for all who ask
        return line

    def _read(self) -> None:
        """With `os.read`, because a thread in a buffered read would block the end of the process."""
        begun = b""
        while data := os.read(self._pipe, _READ_BYTES):
            *whole, begun = (begun + data).split(b"\n")
            for each in whole:
                self._lines.put(_whole_characters(each) + b"\n")
        if begun:
            self._lines.put(begun)
        self._lines.put(b"")


class Handover(NamedTuple):
    """What the SDK goes on with: lines that it has to read first, and the client's space where that is known."""

    lines: tuple[bytes, ...]
    space: str | None


class FirstCall:
    """Answers one client over stdio until its first tool call is done."""

    def __init__(
        self,
        lines: Lines,
        send: Callable[[Json], None],
        engines: SpaceEngines,
        tools: Sequence[Tool],
        folder: Path | None,
        session: str | None,
    ) -> None:
        self._lines = lines
        self._send = send
        self._engines = engines
        self._tools = {each.name: each for each in tools}
        self._folder = folder
        self._session = session
        self._later: list[bytes] = []  # lines that came while the client was asked for its roots

    def serve(self, capabilities: Mapping[str, Any]) -> Handover:
        """`capabilities` are the client's."""
        known: list[bytes] = []  # notifications that the SDK has to know of
        while line := self._lines.next():
            message = _parsed(line)
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
                    memory, given = self._engines.memory(space), params.get("arguments", {})
                    call = arguments.call_of(tool, memory, given, self._session, _not_reported)
                    self._answer(number, tool_json.answered(tool, call, self._tools))
                    return Handover((*known, *self._later), space)
                case _:
                    return Handover((*known, line), None)
        return Handover(tuple(known), None)

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
        self._send({"jsonrpc": "2.0", "id": _ROOTS, "method": "roots/list"})
        until = time.monotonic() + ROOTS_WAIT_S
        while True:
            try:
                line = self._lines.next(max(0.0, until - time.monotonic()))
            except queue.Empty:
                _log.warning("the client did not list its roots within %g s", ROOTS_WAIT_S)
                return None
            message = _parsed(line)
            if message.get("id") == _ROOTS and "method" not in message:
                result = message.get("result")
                roots = result.get("roots") if isinstance(result, dict) else None
                named = [each.get("uri") for each in roots if isinstance(each, dict)] if isinstance(roots, list) else []
                return space_of_roots(each for each in named if isinstance(each, str))
            if not line:
                return None
            self._later.append(line)

    def _answer(self, number: Json, result: Json) -> None:
        self._send({"jsonrpc": "2.0", "id": number, "result": result})


def _whole_characters(line: bytes) -> bytes:
    """JSON in which half a character is U+FFFD. JavaScript escapes one where a text was cut in the middle of an emoji;
    the SDK takes no such line, and the client would wait for an answer."""
    if b"\\ud" not in line.lower():
        return line
    import re  # rarely needed

    pair = rb"ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
    escape = re.compile(rb"\\(?:" + pair + rb"|(?P<half>ud[89a-f][0-9a-f]{2})|.)", re.IGNORECASE)
    return escape.sub(lambda found: rb"\ufffd" if found["half"] else found[0], line)


def _parsed(line: bytes) -> Message:
    """A message as an object; empty for anything that the SDK has to judge."""
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return {}
    number = message.get("id", 0)
    return message if isinstance(number, str | int) and not isinstance(number, bool) else {}


def _not_reported(_: object) -> None:
    """Tools that report progress are left to the SDK."""
