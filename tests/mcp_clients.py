"""What the tests of the agent's door share: coroutines as tests, a server in this process, servers in others."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
from mcp import Client
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from nacre.config import settings
from nacre.mcp_server.server import RequestHandlers, build_server
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tool import Tool

MODES = ("legacy", "auto")  # with `initialize`, and the protocol of 2026 without it
ANSWER_SECONDS = 30  # how long a process may take before a test gives up on it
VERSION = "2025-06-18"


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A coroutine as a test. What failed is raised as it is, not in the groups of the tasks it passed through."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        try:
            anyio.run(functools.partial(test, *arguments, **named))
        except BaseExceptionGroup as group:
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            raise error from None

    return run


# ---------------------------------------------------------------- in this process


def engines_on(store: Path | str, **flags: object) -> SpaceEngines:
    """Memories in this store, with nothing of the machine's own settings."""
    given = {"store": store, "embedder": "hashing", **flags}
    return SpaceEngines(settings.load(given, {"NACRE_CONFIG": f"{store}.toml"}))


def served(
    engines: SpaceEngines, tools: Sequence[Tool], folder: Path, session: str | None = "this session"
) -> Server[Any]:
    return build_server(RequestHandlers(engines, tools, folder, session))


def said(result: Any) -> str:
    """What a model reads."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def handed_over(result: types.CallToolResult) -> str:
    """What a client hands to a model that prefers structured content, and falls back to the text."""
    content = result.structured_content
    return said(result) if content is None else json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def given(result: types.CallToolResult) -> dict[str, Any]:
    """What a program reads: structured content, JSON as text, or a text with what is known about it."""
    assert not result.is_error, said(result)
    if result.structured_content is not None:
        assert isinstance(result.structured_content, dict)
        return result.structured_content
    if said(result).startswith("{"):
        found: dict[str, Any] = json.loads(said(result))
        return found
    known = {name: value for name, value in (result.meta or {}).items() if name.startswith("nacre/")}
    return {"text": said(result)} | {name.removeprefix("nacre/"): value for name, value in known.items()}


async def resource(client: Client, memory_id: str) -> dict[str, Any]:
    """A memory with all its fields."""
    (content,) = (await client.read_resource(f"nacre://memory/{memory_id}")).contents
    assert isinstance(content, types.TextResourceContents)
    found: dict[str, Any] = json.loads(content.text)
    return found


def listed(timeline: Mapping[str, Any]) -> list[str]:
    """The ids on a page of the timeline, in its order."""
    return [line.split()[1] for month in timeline["entries"].values() for line in month]


def problem(result: types.CallToolResult) -> str:
    assert result.is_error, said(result)
    assert result.structured_content is None
    return said(result)


# ---------------------------------------------------------------- line by line


class Line:
    """The server's two ends of a pipe, with a client at the other that may say anything."""

    def __init__(self) -> None:
        self._to_server, self._requests = anyio.create_memory_object_stream[str](100)
        self._answers, self._from_server = anyio.create_memory_object_stream[str](100)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._requests:
            yield line

    async def write(self, text: str) -> None:
        await self._answers.send(text)

    async def flush(self) -> None:
        pass

    async def send(self, *lines: bytes) -> None:
        for each in lines:
            await self._to_server.send(each.decode("utf-8", "replace"))

    async def receive(self) -> Any:
        with anyio.fail_after(ANSWER_SECONDS):
            return json.loads(await self._from_server.receive())

    async def hang_up(self) -> None:
        await self._to_server.aclose()

    def close(self) -> None:
        for each in (self._to_server, self._requests, self._answers, self._from_server):
            each.close()


@contextlib.asynccontextmanager
async def spoken_to(made: Server[Any]) -> AsyncIterator[Line]:
    line = Line()
    try:
        async with (
            stdio_server(cast("Any", line), cast("Any", line)) as (read, write),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(made.run, read, write, made.create_initialization_options())
            yield line
            await line.hang_up()
    finally:
        line.close()


# ---------------------------------------------------------------- in other processes


def message(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


def initialize(number: object = "first", version: str = VERSION, **more: object) -> bytes:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
        **more,
    }
    return message(id=number, method="initialize", params=params)


INITIALIZED = message(method="notifications/initialized")


def tool_call(number: object, name: str, **arguments: object) -> bytes:
    return message(id=number, method="tools/call", params={"name": name, "arguments": arguments})


def environment(store: Path, **more: str) -> dict[str, str]:
    """For a process: nothing of the machine's own settings or store is read or written."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NACRE_")}
    own = {"NACRE_STORE": str(store), "NACRE_CONFIG": f"{store}.toml", "NACRE_EMBEDDER": "hashing"}
    return plain | own | more


class Process:
    """A server in a process of its own, over a pipe, spoken to line by line."""

    def __init__(self, store: Path, *arguments: str, script: Path | None = None, folder: Path | None = None) -> None:
        self._errors = (store.parent / f"stderr-{time.monotonic_ns()}").open("w+b")
        self.popen = subprocess.Popen(
            [sys.executable, *(("-m", "nacre") if script is None else (str(script),)), "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(store),
            cwd=folder or store.parent,
        )
        self.lines: list[bytes] = []  # everything that came to stdout
        self._arrived: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(None)

    def send(self, *lines: bytes) -> None:
        """All of them in one write."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(b"".join(lines))
        self.popen.stdin.flush()

    def answers(self, *numbers: object) -> dict[object, Any]:
        """The answers to these requests, in whatever order they come; there must be no other line before them."""
        found: dict[object, Any] = {}
        while found.keys() != set(numbers):
            answer = json.loads(self.wait_for_line())
            assert answer["jsonrpc"] == "2.0"
            assert answer["id"] in set(numbers) - found.keys(), answer
            found[answer["id"]] = answer
        return found

    def wait_for_line(self) -> bytes:
        line = self._arrived.get(timeout=ANSWER_SECONDS)
        assert line is not None, f"{self.popen.wait(ANSWER_SECONDS)}: {self.stderr()}"
        return line

    def ask(self, line: bytes) -> Any:
        self.send(line)
        number = json.loads(line)["id"]
        return self.answers(number)[number]

    def call(self, name: str, **arguments: object) -> Any:
        return self.ask(tool_call(f"{name}-{time.monotonic_ns()}", name, **arguments))["result"]

    def resource(self, memory_id: str) -> Any:
        """A memory with all its fields."""
        params = {"uri": f"nacre://memory/{memory_id}"}
        answer = self.ask(message(id=f"read-{time.monotonic_ns()}", method="resources/read", params=params))
        return json.loads(answer["result"]["contents"][0]["text"])

    def begin(self) -> Process:
        self.send(initialize(), INITIALIZED)
        self.answers("first")
        return self

    def stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()

    def close(self) -> int:
        """Close its stdin, as a client does that is done; gives its exit code."""
        assert self.popen.stdin is not None
        self.popen.stdin.close()
        return self.end()

    def end(self) -> int:
        code = self.popen.wait(ANSWER_SECONDS)
        self._reader.join(ANSWER_SECONDS)
        for each in self.lines:
            assert json.loads(each)["jsonrpc"] == "2.0", each
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever the test has left of it."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(ANSWER_SECONDS)
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()
        self._reader.join(ANSWER_SECONDS)
        self.popen.stdout.close()
        self._errors.close()


class HttpProcess:
    """A server over HTTP in a process of its own, on a port that the system chose."""

    def __init__(self, store: Path, *arguments: str, script: Path | None = None, **variables: str) -> None:
        self._log = store.parent / f"log-{time.monotonic_ns()}"
        started = ("-m", "nacre", "mcp", "--http", "--port", "0") if script is None else (str(script),)
        with self._log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, *started, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(store, **variables),
                cwd=store.parent,
            )
        self.host = f"127.0.0.1:{self._port()}"
        self.url = f"http://{self.host}/mcp"

    def _port(self) -> str:
        for _ in range(ANSWER_SECONDS * 20):
            found = re.search(r"running on http://127\.0\.0\.1:(\d+)", self.log())
            if found is not None:
                return found[1]
            assert self.popen.poll() is None, self.log()
            time.sleep(0.05)
        raise AssertionError("the server does not start")

    def log(self) -> str:
        return self._log.read_text("utf-8")

    def __enter__(self) -> HttpProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(ANSWER_SECONDS)
