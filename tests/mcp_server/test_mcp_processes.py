"""Servers for agents as they run: in processes of their own, over pipes and over HTTP, on one store.

Over HTTP they listen on this machine alone, on ports that the system chooses.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import nacre
from command_line import Cli
from mcp_clients import (
    ANSWER_SECONDS,
    INITIALIZED,
    MODES,
    VERSION,
    HttpProcess,
    Process,
    asynchronous,
    environment,
    given,
    initialize,
    message,
    resource,
    tool_call,
)
from nacre.config import project_space
from nacre.mcp_server import chatgpt_tools, graph_tools, server_info
from nacre.mcp_server import http as http_module
from nacre.mcp_server.http import guarded, is_loopback
from nacre.mcp_server.tools import DEFAULT, chosen
from store_checks import check_derived_tables, check_integrity

pytestmark = pytest.mark.slow

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
TOKEN = "correct horse battery staple"


async def call(client: Client, name: str, /, **arguments: object) -> dict[str, Any]:
    return given(await client.call_tool(name, arguments))


# ---------------------------------------------------------------- over a pipe, by the SDK's client


@pytest.mark.parametrize("mode", MODES)
@asynchronous
async def test_the_sdks_client_is_served_over_a_pipe(path: Path, mode: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "nacre", "mcp", "--space", "house", "--session", "one"],
        env=environment(path),
        cwd=path.parent,
    )
    async with Client(parameters, mode=mode) as client:
        assert [each.name for each in (await client.list_tools()).tools] == [each.name for each in DEFAULT]
        written = await call(client, "remember", text="Tea is served at four ☕")
        found = await call(client, "search_memories", query="when is tea served?")
        assert [each["snippet"] for each in found["hits"]] == ["Tea is served at four ☕"]
        assert (await call(client, "context", query="when is tea served?"))["quoted"][0]["id"] == written["id"]
        assert (await resource(client, written["id"]))["space"] == "house"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})
        assert (await client.call_tool("forget", {"ids": ["nobody"]})).is_error
    with nacre.open(path, space="house", embedder="hashing") as memory:  # nothing is lost on a clean exit
        kept = memory.get(written["id"])[0]
        assert (kept.origin, kept.session) == ("one", None)  # a connection is no conversation
        assert {each.session for each in memory.receipts()} == {"one"}
        assert len(memory.receipts()) == 2


@asynchronous
async def test_a_client_over_a_pipe_names_its_project(path: Path, tmp_path: Path) -> None:
    """Its first line says that it has roots, and is answered before anybody asks for them."""
    shop = tmp_path / "my shop"
    (shop / ".git").mkdir(parents=True)

    async def roots(context: object) -> types.ListRootsResult:  # noqa: ARG001
        return types.ListRootsResult.model_validate({"roots": [{"uri": (shop / "src").as_uri()}]})

    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "nacre", "mcp"], env=environment(path), cwd=path.parent
    )
    async with Client(parameters, mode="legacy", list_roots_callback=roots) as client:
        written = await call(client, "remember", text="The till is open")
        assert (await resource(client, written["id"]))["space"] == project_space.space_of(shop)


def test_what_is_spared_while_loading_is_there_when_asked_for(tmp_path: Path) -> None:
    """The SDK is laid out hollow for a quick start; other code in the process sees no difference."""
    script = tmp_path / "load.py"
    script.write_text(LOADED, "utf-8")
    done = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")


LOADED = """
import sys
from nacre.mcp_server import sdk
sdk.require()
sdk.load()
from pydantic import BaseModel
assert "defer_build" not in BaseModel.model_config
from pathlib import Path
from nacre.mcp_server import server, tools
assert "mcp.client" not in sys.modules, "a server needs no client"
sdk.load()

import anyio, mcp, mcp.server
from mcp import Client, MCPError
from mcp.server import Server
assert mcp.server.Server is Server and mcp.Client is Client
assert Server is server.Server and MCPError is server.MCPError

class Nowhere:
    fixed = "default"

async def main():
    for mode in ("legacy", "auto"):
        made = server.build_server(server.RequestHandlers(Nowhere(), tools.chosen(""), Path("."), "one"))
        async with Client(made, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 6

anyio.run(main)
print("served")
"""


# ---------------------------------------------------------------- over a pipe, line by line

NOISY = """
import os, subprocess, sys
from nacre import cli
from nacre.engine import engine

usual = engine.Nacre.timeline
def timeline(self, *arguments, **named):
    print("printed by a library")
    sys.stdout.write('{"jsonrpc": "2.0", "id": "forged", "result": {}}\\n')
    sys.stdout.flush()
    os.write(1, b"written to the descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"])
    return usual(self, *arguments, **named)

def forget(self, ids, **named):
    raise ZeroDivisionError("the secret of " + ids[0])

def facets(self, *arguments, **named):
    raise ZeroDivisionError("the secret of facets")

engine.Nacre.timeline = timeline
engine.Nacre.forget = forget
engine.Nacre.facets = facets
cli.main()
"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server whose insides print, fail and start children that print."""
    folder = tmp_path_factory.mktemp("noisy")
    script = folder / "noisy.py"
    script.write_text(NOISY, "utf-8")
    with Process(folder / "memories.db", script=script) as process:
        yield process.begin()
        assert process.close() == 0


def test_what_prints_inside_does_not_disturb_the_protocol(noisy: Process) -> None:
    before = len(noisy.lines)
    assert noisy.call("timeline")["isError"] is False
    assert len(noisy.lines) == before + 1
    for each in ("printed by a library", "forged", "written to the descriptor", "printed by a child"):
        assert each in noisy.stderr()


def test_an_exception_inside_goes_to_stderr_and_an_error_to_the_client(noisy: Process) -> None:
    result = noisy.call("forget", ids=["hearts"])
    assert result["isError"] is True
    assert "ZeroDivisionError" in result["content"][0]["text"]
    assert "Traceback" not in result["content"][0]["text"]
    assert "the secret of hearts" not in result["content"][0]["text"]
    assert "Traceback" in noisy.stderr()
    assert "ZeroDivisionError: the secret of hearts" in noisy.stderr()


def test_an_exception_in_a_handler_is_an_internal_error(noisy: Process) -> None:
    params = {"uri": "nacre://overview"}
    error = noisy.ask(message(id="odd", method="resources/read", params=params))["error"]
    assert error["code"] == types.INTERNAL_ERROR
    assert "(ZeroDivisionError)" in error["message"]
    assert "the secret of" not in error["message"]


def test_what_the_protocol_does_not_know_is_an_error_of_the_protocol(noisy: Process) -> None:
    assert noisy.ask(message(id="odd", method="unheard/of"))["error"]["code"] == types.METHOD_NOT_FOUND
    assert noisy.ask(tool_call("odd", "nothing"))["error"]["code"] == types.INVALID_PARAMS
    assert noisy.ask(message(id="odd", method="tools/call", params={}))["error"]["code"] == types.INVALID_PARAMS
    wrong = noisy.ask(message(id="odd", method="tools/call", params={"name": "timeline", "arguments": [1]}))
    assert wrong["error"]["code"] == types.INVALID_PARAMS


def test_requests_in_one_write_are_each_answered_once(path: Path) -> None:
    """The first of them is answered before the SDK is there."""
    numbers: list[object] = ["first", 0, 1, "two", "tools", "note", *range(10, 20)]
    with Process(path) as process:
        process.send(
            initialize(),
            INITIALIZED,
            *(message(id=each, method="ping") for each in numbers[1:4]),
            message(id="tools", method="tools/list"),
            tool_call("note", "remember", text="Tea at four"),
            *(tool_call(each, "search_memories", query=f"tea {each}") for each in numbers[6:]),
        )
        answers = process.answers(*numbers)
        assert answers["first"]["result"]["protocolVersion"] == VERSION
        assert [each["name"] for each in answers["tools"]["result"]["tools"]] == [each.name for each in DEFAULT]
        assert not any(answers[each]["result"]["isError"] for each in numbers[5:])
        assert process.ask(message(id="first", method="ping"))["result"] == {}  # the number may be used again
        assert process.close() == 0
        assert len(process.lines) == len(numbers) + 1
        assert process.stderr() == ""


def test_a_server_that_nobody_spoke_to_ends_well(path: Path) -> None:
    with Process(path) as process:
        assert process.close() == 0
        assert (process.lines, process.stderr()) == ([], "")
    assert not path.exists()


def test_the_reference_servers_tools_take_the_place_of_ours(path: Path) -> None:
    with Process(path, "--compat", "knowledge-graph") as process:
        first = process.ask(initialize())["result"]
        assert first["capabilities"] == {"logging": {}, "tools": {"listChanged": False}}
        assert "knowledge graph" in first["instructions"]
        tools = process.ask(message(id="tools", method="tools/list"))["result"]["tools"]
        assert [each["name"] for each in tools] == [each.name for each in graph_tools.TOOLS]
        assert "error" in process.ask(message(id="odd", method="prompts/list"))
        made = process.call("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": []}])
        assert made["structuredContent"]["entities"][0]["name"] == "Ada"
        assert process.close() == 0


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_at_once_and_loses_nothing(path: Path, number: signal.Signals) -> None:
    with Process(path) as process:
        process.begin().call("search_memories", query="tea")
        process.popen.send_signal(number)
        assert process.end() in (0, 128 + number, -number)
        assert "Traceback" not in process.stderr()
    with nacre.open(path, embedder="hashing") as memory:
        assert [each.query for each in memory.receipts()] == ["tea"]


@POSIX
def test_a_client_that_is_gone_is_no_reason_for_a_traceback(path: Path) -> None:
    pipe, command = subprocess.PIPE, [sys.executable, "-m", "nacre", "mcp"]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(path), cwd=path.parent
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(initialize() + INITIALIZED)
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(tool_call(1, "timeline") + message(id=2, method="ping"))
        process.stdin.close()
        assert process.wait(ANSWER_SECONDS) == 0
        assert process.stderr.read() == b""


@POSIX
def test_a_folder_that_is_gone_is_no_project(path: Path) -> None:
    gone = path.parent / "gone"
    gone.mkdir()
    script = path.parent / "gone.py"
    script.write_text(f"import os\nos.rmdir({str(gone)!r})\nfrom nacre.cli import main\nmain()\n", "utf-8")
    with Process(path, script=script, folder=gone) as process:
        written = process.begin().call("remember", text="Tea at four")["structuredContent"]
        assert process.resource(written["id"])["space"] == "default"
        assert process.close() == 0


def test_the_folder_it_runs_in_is_the_project(path: Path, tmp_path: Path) -> None:
    shop = tmp_path / "my shop"
    (shop / ".git").mkdir(parents=True)
    (shop / "src").mkdir()
    with Process(path, folder=shop / "src") as process:
        written = process.begin().call("remember", text="Tea at four")["structuredContent"]
        assert process.resource(written["id"])["space"] == project_space.space_of(shop)
        assert process.close() == 0


# ---------------------------------------------------------------- several at once


def test_four_clients_on_one_store_lose_nothing_though_one_is_killed(path: Path) -> None:
    """Fifty calls at once in four processes; then one is killed in the middle of its work, and three go on."""
    with ExitStack() as stack:
        processes = [stack.enter_context(Process(path)) for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(Process.begin, processes))
            obsolete = [
                each.call("remember", text=f"obsolete note of {number}")["structuredContent"]["id"]
                for number, each in enumerate(processes)
            ]
            shares = list(threads.map(fifty_calls, processes, range(4), obsolete))
        assert sum(len(each) for each in shares) == 50
        written = {text: memory_id for each in shares for text, memory_id in each.items() if memory_id}
        assert len(set(written.values())) == len(written) == 24

        killed, *others = processes
        acknowledged = killed_amid_work(killed)
        with ThreadPoolExecutor(3) as threads:
            more = list(threads.map(fifty_calls, others, range(10, 13), [None] * 3))
        for each in others:
            assert each.close() == 0
            assert "Traceback" not in each.stderr()
    written |= {text: memory_id for each in more for text, memory_id in each.items() if memory_id} | acknowledged
    with nacre.open(path, embedder="hashing") as memory:
        kept = memory.get(list(written.values()), missing_ok=True)
        assert {each.text: each.id for each in kept} == written
        assert all(each.deleted is not None for each in memory.get(obsolete))
    check_integrity(path)
    check_derived_tables(path)


def fifty_calls(process: Process, number: int, obsolete: str | None) -> dict[str, str | None]:
    """A share of fifty calls, all asked at once. By text, the ids of what was remembered."""
    texts = [f"guest{number} ordered tea number{turn}" for turn in range(6)]
    lines = {text: tool_call(text, "remember", text=text) for text in texts}
    lines |= {
        f"search {turn}": tool_call(f"search {turn}", "search_memories", query=f"tea {turn}") for turn in range(3)
    }
    lines |= {f"context {turn}": tool_call(f"context {turn}", "context", query=f"guest{turn}") for turn in range(2)}
    if obsolete is not None:
        lines["forget"] = tool_call("forget", "forget", ids=[obsolete])
    if number < 2:
        lines["list"] = tool_call("list", "timeline", limit=5)
    process.send(*lines.values())
    answers = process.answers(*lines)
    for each in answers.values():
        assert each["result"]["isError"] is False, each
    return {
        str(name): each["result"]["structuredContent"]["id"] if name in texts else None
        for name, each in answers.items()
    }


def killed_amid_work(process: Process) -> dict[str, str]:
    """What it had said to be remembered when it was killed."""
    texts = [f"the killed one wrote number{turn}" for turn in range(200)]
    lines = b"".join(tool_call(text, "remember", text=text) for text in texts)
    before = len(process.lines)
    sending = threading.Thread(target=lambda: sent_until_killed(process, lines), daemon=True)
    sending.start()
    while len(process.lines) < before + 5:
        assert process.popen.poll() is None
    process.popen.kill()
    process.popen.wait(ANSWER_SECONDS)
    sending.join(ANSWER_SECONDS)
    said = [json.loads(each) for each in process.lines[before:] if each.endswith(b"\n")]
    assert 5 <= len(said) < len(texts)
    return {each["id"]: each["result"]["structuredContent"]["id"] for each in said}


def sent_until_killed(process: Process, lines: bytes) -> None:
    try:
        process.send(lines)
    except BrokenPipeError:
        return


# ---------------------------------------------------------------- what it is started with


@pytest.mark.parametrize("missing", ["mcp", "mcp_types"])
@pytest.mark.parametrize("transport", [(), ("--http", "--port", "0")])
def test_without_the_sdk_it_says_what_to_install(path: Path, missing: str, transport: tuple[str, ...]) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom nacre.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp", *transport],
        input=initialize(),
        capture_output=True,
        env=environment(path),
        cwd=path.parent,
        timeout=ANSWER_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"pip install 'nacre-memory[mcp]'" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.fixture
def complaint(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What `nacre mcp` says that refuses to start."""

    def started(*arguments: str, **variables: str) -> str:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return cli("mcp", *arguments).error

    return started


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_nobody_else_is_listened_to_without_a_token(complaint: Callable[..., str], host: str) -> None:
    delivered = complaint("--http", "--host", host)
    assert "host: " in delivered
    assert "give a token" in delivered


def test_tokens_that_are_easily_guessed_are_refused(complaint: Callable[..., str], path: Path) -> None:
    assert "token: is too short; give at least 16 characters" in complaint("--http", NACRE_TOKEN="x" * 15)
    file = path.with_suffix(".token")
    file.write_text(f"  {'x' * 15} \n")
    assert "token: is too short" in complaint("--http", "--token-file", str(file), NACRE_TOKEN="x" * 16)
    file.write_text("\n")
    assert "token: is too short" in complaint("--http", "--host", "0.0.0.0", "--token-file", str(file))
    file.unlink()
    assert "token-file: " in complaint("--http", "--token-file", str(file))


def test_options_that_make_no_sense_are_refused(complaint: Callable[..., str]) -> None:
    assert "tools: 'nothing' is unknown; allowed: facts, " in complaint("--tools", "facts,nothing")
    assert "compat: 'nothing' is unknown; allowed: knowledge-graph" in complaint("--compat", "nothing")
    assert "tools: cannot be combined with --compat" in complaint("--compat", "knowledge-graph", "--tools", "facts")


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("port", ("--http", "--port", "99999")),
        ("port", ("--http", "--port", "-1")),
        ("session", ("--session", " ")),
        ("space", ("--space", "x" * 300)),
        ("space", ("--http", "--port", "0", "--space", "x" * 300)),
    ],
)
def test_bad_values_are_refused_at_once(path: Path, field: str, arguments: tuple[str, ...]) -> None:
    """Not when a client calls for the first time."""
    done = subprocess.run(
        [sys.executable, "-m", "nacre", "mcp", *arguments],
        input=initialize(),
        capture_output=True,
        env=environment(path),
        cwd=path.parent,
        timeout=ANSWER_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert field.encode() in done.stderr
    assert b"Traceback" not in done.stderr


def test_what_it_is_started_with_is_what_it_serves(cli: Cli, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(http_module, "serve", lambda _, tools, **more: started.append({"tools": tools, **more}))
    monkeypatch.setenv("NACRE_TOKEN", "of the environment")
    usual = {"tools": DEFAULT, "profile": server_info.MEMORY, "host": "127.0.0.1", "port": 8642}
    usual |= {"token": "of the environment"}
    file = path.with_suffix(".token")
    file.write_text(f"{TOKEN}\n")
    assert cli("mcp", "--http").code == 0
    assert cli("mcp", "--http", "--host", "::1", "--port", "0", "--tools", "why", "--token-file", str(file)).code == 0
    assert cli("mcp", "--http", "--compat", "knowledge-graph").code == 0
    assert cli("mcp", "--http", "--tools", "chatgpt").code == 0
    assert started == [
        usual,
        {**usual, "tools": chosen("why"), "host": "::1", "port": 0, "token": TOKEN},
        {**usual, "tools": graph_tools.TOOLS, "profile": server_info.GRAPH},
        {**usual, "tools": chatgpt_tools.TOOLS, "profile": server_info.CHATGPT},
    ]


def test_only_this_machine_is_this_machine() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.9.10", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "", "192.168.0.1", "localhost.example.org", "127.0.0.1.nip.io")))


@asynchronous
async def test_every_request_needs_the_token_not_only_the_first() -> None:
    reached: list[str] = []

    async def application(scope: Any, _: object, __: object) -> None:
        reached.append(scope["type"])

    answered: list[Any] = []

    async def send(event: Any) -> None:
        answered.append(event)

    async def receive() -> None:
        raise AssertionError("nothing is read of who has no token")

    guard = guarded(application, TOKEN)
    for headers in (
        [],
        [(b"authorization", b"")],
        [(b"authorization", TOKEN.encode())],
        [(b"authorization", b"Basic " + TOKEN.encode())],
        [(b"authorization", b"Bearer " + TOKEN.encode()[:-1])],
        [(b"authorization", b"Bearer " + TOKEN.encode() + b"x")],
        [(b"authorization", b"Bearer \xff\xfe")],
    ):
        answered.clear()
        await guard({"type": "http", "headers": headers}, receive, send)
        assert answered[0]["status"] == 401
        assert reached == []
    await guard({"type": "http", "headers": [(b"authorization", b"Bearer " + TOKEN.encode())]}, receive, send)
    await guard({"type": "lifespan"}, receive, send)
    assert reached == ["http", "lifespan"]


# ---------------------------------------------------------------- over HTTP


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with HttpProcess(tmp_path_factory.mktemp("http") / "memories.db") as process:
        yield process
        assert "Traceback" not in process.log()


@pytest.mark.parametrize("mode", MODES)
@asynchronous
async def test_clients_are_served_over_http(http: HttpProcess, mode: str) -> None:
    async with Client(http.url, mode=mode) as client:
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
        assert [each.name for each in (await client.list_tools()).tools] == [each.name for each in DEFAULT]
        written = await call(client, "remember", text=f"Tea is served at four, says {mode} ☕")
        found = await call(client, "search_memories", query=f"what does {mode} say of tea?")
        assert written["id"] in [each["id"] for each in found["hits"]]
        assert (await client.call_tool("forget", {"ids": ["nobody"]})).is_error
        assert (await call(client, "forget", ids=[written["id"]]))["forgotten"] == [written["id"]]
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})


@asynchronous
async def test_each_client_over_http_has_a_session_of_its_own(http: HttpProcess) -> None:
    """Several at once: what one was given, another was not, and each is the origin of what it remembers."""
    ready = anyio.Event()
    counted: list[int] = []

    async def one(number: int) -> None:
        async with Client(http.url, mode="legacy") as client:
            mine = await call(client, "remember", text=f"visitor{number} parks in the yard")
            counted.append(number)
            if len(counted) == 4:
                ready.set()
            await ready.wait()  # until all are connected
            asked = {"query": "visitor parks in the yard", "omit_delivered": True, "session": f"visit {number}"}
            found = await call(client, "search_memories", **asked)
            assert len(found["hits"]) == 4, found
            again = await call(client, "search_memories", **asked)
            assert again["hits"] == []
            origins.append((await resource(client, mine["id"]))["origin"])

    origins: list[str] = []
    async with anyio.create_task_group() as all_of_them:
        for number in range(4):
            all_of_them.start_soon(one, number)
    assert len(set(origins)) == 4
    assert None not in origins


@asynchronous
async def test_without_sessions_in_the_protocol_nothing_is_given_before(http: HttpProcess) -> None:
    async with Client(http.url, mode="auto") as client:
        written = await call(client, "remember", text="The attic is full of moths")
        assert (await resource(client, written["id"]))["session"] is None
        for _ in range(2):
            found = await call(client, "search_memories", query="moths in the attic", omit_delivered=True)
            assert found["hits"][0]["id"] == written["id"]
        named = await call(client, "search_memories", query="moths in the attic", session="mine")
        assert "delivered" not in named["hits"][0]
        named = await call(client, "search_memories", query="moths in the attic", session="mine")
        assert named["hits"][0]["delivered"] is True
        await call(client, "forget", ids=[written["id"]])  # the server's store is shared with other tests


@asynchronous
async def test_clients_over_http_have_projects_of_their_own(http: HttpProcess, tmp_path: Path) -> None:
    shops = [tmp_path / "one shop", tmp_path / "another shop"]
    for each in shops:
        (each / ".git").mkdir(parents=True)

    asked: list[Path] = []

    def roots_of(folder: Path) -> Any:
        async def roots(context: object) -> types.ListRootsResult:  # noqa: ARG001
            asked.append(folder)
            return types.ListRootsResult.model_validate({"roots": [{"uri": folder.as_uri()}]})

        return roots

    async with (
        Client(http.url, mode="legacy", list_roots_callback=roots_of(shops[0])) as one,
        Client(http.url, mode="legacy", list_roots_callback=roots_of(shops[1])) as other,
        Client(http.url, mode="auto") as neither,
    ):
        secret = (await call(one, "remember", text="The safe opens with 1234"))["id"]
        assert (await resource(one, secret))["space"] == project_space.space_of(shops[0])
        for client in (other, neither):
            assert (await call(client, "get_memories", ids=[secret]))["missing"] == [secret]
            assert (await call(client, "search_memories", query="safe opens", mode="keyword"))["hits"] == []
            assert (await client.call_tool("forget", {"ids": [secret]})).is_error
        assert (await call(one, "search_memories", query="safe opens"))["hits"][0]["id"] == secret
    assert asked == shops  # once each


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:8642"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Origin": "https://attacker.example"},
        {"Origin": "http://localhost.attacker.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_page_in_a_browser_reaches_nothing(http: HttpProcess, headers: dict[str, str]) -> None:
    """Neither from another site, nor by a name that was pointed at this machine."""
    usual = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    assert httpx2.post(http.url, headers=usual, content=initialize()).status_code == 200
    refused = httpx2.post(http.url, headers={**usual, **headers}, content=initialize())
    assert refused.status_code in (400, 403, 421)
    assert "serverInfo" not in refused.text


def test_other_addresses_are_not_found(http: HttpProcess) -> None:
    for each in ("/", "/mcp/../docs", "/docs", "/openapi.json"):
        assert httpx2.get(f"http://{http.host}{each}").status_code == 404


@pytest.fixture(scope="module")
def guarded_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with HttpProcess(tmp_path_factory.mktemp("guarded") / "memories.db", NACRE_TOKEN=TOKEN) as process:
        yield process
        assert TOKEN not in process.log()


@pytest.mark.parametrize("mode", MODES)
@asynchronous
async def test_who_has_the_token_is_served(guarded_http: HttpProcess, mode: str) -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as sender:
        transport = streamable_http_client(guarded_http.url, http_client=sender)
        async with Client(transport, mode=mode) as client:
            written = await call(client, "remember", text="Tea is served at four")
            assert "missing" not in await call(client, "get_memories", ids=[written["id"]])


@pytest.mark.parametrize("header", [None, "Bearer wrong horse battery staple", TOKEN, f"Basic {TOKEN}", "Bearer"])
def test_who_has_no_token_is_refused(guarded_http: HttpProcess, header: str | None) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    headers |= {} if header is None else {"Authorization": header}
    for answer in (
        httpx2.post(guarded_http.url, headers=headers, content=initialize()),
        httpx2.post(
            guarded_http.url, headers={**headers, "mcp-session-id": "guessed"}, content=tool_call(1, "timeline")
        ),
        httpx2.get(guarded_http.url, headers=headers),
        httpx2.delete(guarded_http.url, headers=headers),
        httpx2.get(f"http://{guarded_http.host}/", headers=headers),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["type"] == "Unauthorized"


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order_though_a_client_stays(path: Path, number: signal.Signals) -> None:
    with HttpProcess(path) as process:

        async def stay() -> None:
            async with Client(process.url, mode="legacy") as client:
                await call(client, "remember", text="Tea is served at four")
                await call(client, "search_memories", query="tea")
                process.popen.send_signal(number)
                await anyio.to_thread.run_sync(process.popen.wait, ANSWER_SECONDS)

        anyio.run(stay)
        assert process.popen.returncode == 0
        assert "Traceback" not in process.log()
    with nacre.open(path, embedder="hashing") as memory:
        assert [each.query for each in memory.receipts()] == ["tea"]
