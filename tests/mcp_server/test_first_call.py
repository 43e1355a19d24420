"""What is answered before the SDK is loaded is what the SDK answers, and everything else is left to it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_clients import (
    INITIALIZED,
    Process,
    asynchronous,
    engines_on,
    initialize,
    message,
    served,
    spoken_to,
    tool_call,
)
from nacre.config import project_space
from nacre.mcp_server import first_call
from nacre.mcp_server.client_pipe import ClientPipe
from nacre.mcp_server.first_call import FirstCall, Handover
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tools import DEFAULT

KNOWN = ("Mara takes the pager while Henrik is away", "The gateway moved to port 9090 in March.")
SESSION = "this session"


@pytest.fixture
def engines(path: Path) -> Iterator[SpaceEngines]:
    made = engines_on(path)
    made.memory("default").remember_many(KNOWN)
    yield made
    made.close()


def begun(
    engines: SpaceEngines, folder: Path, *lines: bytes, capabilities: dict[str, Any] | None = None
) -> tuple[list[Any], Handover, list[bytes]]:
    """What is sent for these lines, what is handed over, and the lines that nobody has read yet."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(lines))
    os.close(writing)
    sent: list[Any] = []
    pipe = ClientPipe(reading, lambda line: sent.append(json.loads(line)))
    handed = FirstCall(pipe, engines, DEFAULT, folder, SESSION).serve(capabilities or {})
    rest = []
    while line := pipe.next()[0]:
        rest.append(line)
    os.close(reading)
    return sent, handed, rest


async def by_the_sdk(engines: SpaceEngines, folder: Path, line: bytes) -> Any:
    async with spoken_to(served(engines, DEFAULT, folder, SESSION)) as client:
        await client.send(initialize(), INITIALIZED)
        await client.receive()
        await client.send(line)
        return await client.receive()


ANSWERED = {
    "ping": message(id=1, method="ping"),
    "tools": message(id="two", method="tools/list"),
    "tools with empty parameters": message(id=3, method="tools/list", params={}),
    "search": tool_call(4, "search_memories", query="who has the pager?"),
    "search for nothing": tool_call(4, "search_memories", query="tag:nothing"),
    "context": tool_call(5, "context", query="gateway port"),
    "context of nothing": tool_call(5, "context", query="zebra crossing"),
    "timeline": tool_call(6, "timeline"),
    "get": tool_call(7, "get_memories", ids=["nothing"]),
    "a missing argument": tool_call(8, "search_memories"),
    "an unknown argument": tool_call(9, "search_memories", query="x", color="red"),
    "a wrong argument": tool_call(10, "timeline", start="the day of days"),
    "without arguments": message(id=11, method="tools/call", params={"name": "timeline"}),
    "with a mark of the client": message(
        id=12, method="tools/call", params={"name": "timeline", "arguments": {}, "_meta": {"progressToken": 3}}
    ),
}


@pytest.mark.parametrize("line", ANSWERED.values(), ids=ANSWERED)
@asynchronous
async def test_an_early_answer_is_the_sdks(path: Path, tmp_path: Path, line: bytes) -> None:
    made = engines_on(path)
    made.memory("default").remember_many(KNOWN)
    made.close()
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    early, late = engines_on(path), engines_on(copy)
    try:
        (answer,), _, rest = begun(early, tmp_path, INITIALIZED, line)
        assert rest == []
        assert without_receipt(answer) == without_receipt(await by_the_sdk(late, tmp_path, line))
    finally:
        early.close()
        late.close()


def without_receipt(answer: Any) -> Any:
    """A receipt is a new id for each search."""
    if isinstance(answer, dict):
        return {name: without_receipt(each) for name, each in answer.items() if not name.endswith("receipt")}
    return [without_receipt(each) for each in answer] if isinstance(answer, list) else answer


def test_up_to_the_first_call(engines: SpaceEngines, tmp_path: Path) -> None:
    first, second = (tool_call(number, "search_memories", query="pager") for number in (1, 2))
    sent, handed, rest = begun(engines, tmp_path, INITIALIZED, ANSWERED["ping"], ANSWERED["tools"], first, second)
    assert [each["id"] for each in sent] == [1, "two", 1]
    assert handed == Handover((INITIALIZED,), "default")
    assert rest == [second]


LEFT = {
    "another method": message(id=1, method="resources/list"),
    "another notification": message(method="notifications/cancelled", params={"requestId": 1}),
    "a page of tools": message(id=1, method="tools/list", params={"cursor": "x"}),
    "an unknown tool": tool_call(1, "forge"),
    "a tool that may ask": tool_call(1, "forget", ids=["x"]),
    "arguments that are a list": message(id=1, method="tools/call", params={"name": "timeline", "arguments": []}),
    "a name that is a list": message(id=1, method="tools/call", params={"name": []}),
    "more parameters": message(id=1, method="tools/call", params={"name": "timeline", "task": {}}),
}


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_everything_else_is_left_to_the_sdk(engines: SpaceEngines, tmp_path: Path, line: bytes) -> None:
    sent, handed, rest = begun(engines, tmp_path, INITIALIZED, line, ANSWERED["ping"])
    assert sent == []
    assert handed == Handover((INITIALIZED, line), None)
    assert rest == [ANSWERED["ping"]]


def test_what_is_no_message_is_refused_here(engines: SpaceEngines, tmp_path: Path) -> None:
    """And the next line is answered as usual."""
    sent, handed, _ = begun(engines, tmp_path, b"timeline please\n", b"\n", b"[]\n", ANSWERED["ping"], b'{"id": 1')
    assert [each.get("error", {}).get("code") for each in sent] == [-32700, -32600, None, -32700]
    assert handed == Handover((), None)


def test_a_store_that_cannot_be_opened_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    sent, _, _ = begun(engines_on(tmp_path / "folder"), tmp_path, tool_call(1, "timeline"))
    assert sent[0]["result"]["isError"] is True
    assert "is a folder" in sent[0]["result"]["content"][0]["text"]


def test_a_client_that_says_nothing(engines: SpaceEngines, tmp_path: Path) -> None:
    assert begun(engines, tmp_path) == ([], Handover((), None), [])


# ---------------------------------------------------------------- the client's project

CALL = tool_call("call", "remember", text="The shop sells tea.")
ROOTS = {"roots": {"listChanged": True}}


def test_a_client_is_asked_for_its_roots(engines: SpaceEngines, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    result = {"roots": [{"uri": "untitled:x"}, {"uri": shop.as_uri(), "name": "shop"}]}
    between = message(id="ping", method="ping")
    answer = message(id="nacre-roots", result=result)
    sent, handed, rest = begun(engines, tmp_path, INITIALIZED, CALL, between, answer, between, capabilities=ROOTS)
    assert [each["id"] for each in sent] == ["nacre-roots", "call"]
    assert sent[0] == {"jsonrpc": "2.0", "id": "nacre-roots", "method": "roots/list"}
    space = project_space.space_of(shop)
    assert handed == Handover((INITIALIZED, between), space)
    assert rest == [between]
    assert engines.memory(space).facets().total == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"roots": []}},
        {"result": {"roots": [{"name": "without an address"}, 5]}},
        {"result": {"roots": None}},
        {"result": []},
        {"error": {"code": -32601, "message": "no"}},
    ],
)
def test_roots_that_make_no_sense_are_no_roots(engines: SpaceEngines, tmp_path: Path, answer: dict[str, Any]) -> None:
    lines = (INITIALIZED, CALL, message(id="nacre-roots", **answer))
    sent, handed, _ = begun(engines, tmp_path, *lines, capabilities=ROOTS)
    assert handed.space == "default"
    assert sent[1]["result"]["isError"] is False


def test_a_client_that_lists_no_roots_is_not_waited_for(
    engines: SpaceEngines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_call, "ROOTS_WAIT_S", 0.05)
    reading, writing = os.pipe()
    os.write(writing, CALL)
    sent: list[Any] = []
    pipe = ClientPipe(reading, lambda line: sent.append(json.loads(line)))
    handed = FirstCall(pipe, engines, DEFAULT, tmp_path, SESSION).serve(ROOTS)
    os.close(writing)
    assert handed == Handover((), "default")
    assert [each["id"] for each in sent] == ["nacre-roots", "call"]


def test_a_client_that_goes_away_when_asked(engines: SpaceEngines, tmp_path: Path) -> None:
    sent, handed, rest = begun(engines, tmp_path, INITIALIZED, CALL, capabilities=ROOTS)
    assert sent[1]["result"]["isError"] is False  # it was asked to remember, and it does
    assert (handed.space, rest) == ("default", [])


HALVES = [  # what stands in JSON, and what it means
    (rb"\ud83d", "\ufffd"),
    (rb"\uDE00 and \uD83D", "\ufffd and \ufffd"),
    (rb"\ud83d\ude00", "\U0001f600"),
    (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    (rb"C:\\ud83d", "C:\\ud83d"),
    (rb"\\\ud83d", "\\\ufffd"),
    (rb"\"\ud83d\n", '"\ufffd\n'),
]


@pytest.mark.parametrize(("escaped", "text"), HALVES)
def test_half_a_character_is_read_as_an_unknown_one(escaped: bytes, text: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, message(id=1, method="ping", params={"x": "?"}).replace(b"?", escaped))
    os.close(writing)
    line, content = ClientPipe(reading, _nothing_is_wrong).next()
    assert json.loads(line) == content
    assert content["params"]["x"] == text


def _nothing_is_wrong(line: bytes) -> None:
    raise AssertionError(line)


@pytest.mark.slow
def test_half_a_character_does_not_end_the_server(path: Path) -> None:
    """Neither before the SDK is loaded nor afterwards, where its line would have no answer."""
    with Process(path) as server:
        server.begin()
        for number in ("1", "2"):
            call = tool_call(number, "context", **{"que?ry": "tea"}).replace(b"?", rb"\ud83d")
            assert server.ask(call)["result"]["content"][0]["text"].startswith("que\ufffdry: is unknown; did you mean")
        assert server.close() == 0


@pytest.mark.slow
def test_a_process_goes_on_with_the_sdk(path: Path, tmp_path: Path) -> None:
    """In the space that was found, in the same session, with what came meanwhile."""
    shop = tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    with Process(path) as process:
        process.send(initialize(capabilities=ROOTS), INITIALIZED, CALL, tool_call("next", "timeline"))
        process.answers("first")
        assert process.answers("nacre-roots")["nacre-roots"]["method"] == "roots/list"
        process.send(message(id="nacre-roots", result={"roots": [{"uri": shop.as_uri()}]}))
        answers = process.answers("call", "next")
        assert answers["call"]["result"]["isError"] is False
        assert "The shop sells tea." in json.dumps(answers["next"])
        overview = process.ask(message(id="o", method="resources/read", params={"uri": "nacre://overview"}))
        assert json.loads(overview["result"]["contents"][0]["text"])["total"] == 1
        assert process.close() == 0
