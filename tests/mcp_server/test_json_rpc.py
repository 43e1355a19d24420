"""Every request over a pipe is answered: what is no message of JSON-RPC gets the error that it has for that.

Each line is sent to a server in a process of its own, before the SDK is loaded and afterwards, and the next request is
answered as if nothing had been.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_clients import INITIALIZED, Process, initialize, message, tool_call
from nacre.mcp_server import json_rpc

NO_JSON, NO_REQUEST, NO_METHOD, NO_PARAMS = -32700, -32600, -32601, -32602
PING = message(id=1, method="ping").strip()
NESTED = b"[" * 150 + b"]" * 150

REFUSED: dict[str, tuple[bytes, int, list[object]]] = {  # the line, the code, and the ids of the errors
    "no JSON": (b"no JSON", NO_JSON, [None]),
    "half a message": (b'{"jsonrpc": "2.0", "id": ', NO_JSON, [None]),
    "two messages": (PING + PING, NO_JSON, [None]),
    "bytes": (b"\x00\x01\xff\xfe", NO_JSON, [None]),
    "not UTF-8": (PING.replace(b'"ping"', b'"ping", "params": {"x": "tea \xff"}'), NO_JSON, [1]),
    "surrogates in UTF-8": (PING.replace(b'"ping"', b'"ping", "params": {"x": "\xed\xa0\x80"}'), NO_JSON, [1]),
    "UTF-16": (PING.decode().encode("utf-16-le"), NO_JSON, [None]),
    "NaN": (PING.replace(b'"ping"', b'"ping", "params": {"x": NaN}'), NO_JSON, [None]),
    "a number of many digits": (PING.replace(b'"id": 1', b'"id": 1' + b"1" * 9_999), NO_JSON, [None]),
    "nested without end": (b"[" * 100_000, NO_JSON, [None]),
    "objects without end": (b'{"a":' * 100_000, NO_JSON, [None]),
    "nested": (PING.replace(b'"ping"', b'"ping", "params": {"x": ' + NESTED + b"}"), NO_REQUEST, [1]),
    "a batch": (b"[" + PING + b", " + PING.replace(b"1", b'"two"') + b"]", NO_REQUEST, [1, "two"]),
    "a batch of notifications": (b"[" + INITIALIZED.strip() + b"]", NO_REQUEST, [None]),
    "an empty batch": (b"[]", NO_REQUEST, [None]),
    "a text": (b'"ping"', NO_REQUEST, [None]),
    "null": (b"null", NO_REQUEST, [None]),
    "an empty object": (b"{}", NO_REQUEST, [None]),
    "another protocol": (PING.replace(b"2.0", b"1.0"), NO_REQUEST, [1]),
    "no protocol": (b'{"id": 1, "method": "ping"}', NO_REQUEST, [1]),
    "no method": (b'{"jsonrpc": "2.0", "id": 1}', NO_REQUEST, [1]),
    "a method that is no text": (message(id="x", method=5), NO_REQUEST, ["x"]),
    "an id that is null": (message(id=None, method="ping"), NO_REQUEST, [None]),
    "an id that is true": (message(id=True, method="ping"), NO_REQUEST, [None]),
    "an id that is a fraction": (message(id=1.5, method="ping"), NO_REQUEST, [None]),
    "an id that is a list": (message(id=[1], method="ping"), NO_REQUEST, [None]),
    "parameters that are a list": (message(id=1, method="ping", params=[5]), NO_PARAMS, [1]),
    "parameters that are a text": (message(id=1, method="tools/call", params="timeline"), NO_PARAMS, [1]),
    "no such method": (message(id=1, method="unheard/of"), NO_METHOD, [1]),
    "no tool": (message(id=1, method="tools/call", params={}), NO_PARAMS, [1]),
    "an unknown tool": (tool_call(1, "nothing"), NO_PARAMS, [1]),
    "arguments that are a list": (
        message(id=1, method="tools/call", params={"name": "timeline", "arguments": [1]}),
        NO_PARAMS,
        [1],
    ),
    "metadata that is a number": (message(id=1, method="ping", params={"_meta": 5}), NO_PARAMS, [1]),
    "initialize without parameters": (message(id=1, method="initialize", params={}), NO_PARAMS, [1]),
}
UNANSWERED = (
    b"\n",
    b"  \r\n",
    message(method="notifications/unheard-of"),
    message(method="notifications/unheard-of", params=[5]),
    message(id="unasked", result={}),
    message(id="unasked", result=5),
    message(id="unasked", error=None),
)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that has loaded the SDK."""
    with Process(tmp_path_factory.mktemp("late") / "memories.db") as process:
        process.begin().ask(message(id="prompts", method="prompts/list"))
        yield process
        assert process.close() == 0
        assert "Traceback" not in process.stderr()


def errors(process: Process, line: bytes, count: int) -> list[Any]:
    """What a server answers to a line, which must be so many messages, and to the request after it."""
    process.send(line.rstrip(b"\n") + b"\n", message(id="after", method="ping"))
    said = [json.loads(process.wait_for_line()) for _ in range(count + 1)]
    assert [each["result"] for each in said if each["id"] == "after"] == [{}]
    return [each for each in said if each["id"] != "after"]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_has_its_error(late: Process, name: str) -> None:
    line, code, ids = REFUSED[name]
    said = errors(late, line, len(ids))
    assert [each["id"] for each in said] == ids
    for each in said:
        assert each["error"]["code"] == code
        assert each["error"]["message"]


@pytest.mark.slow
def test_before_the_sdk_is_loaded_too(path: Path) -> None:
    """Also before `initialize`. None of these lines lets it load the SDK."""
    plain = [each for each in REFUSED.values() if each[1] != NO_METHOD and b"tools/call" not in each[0]]
    plain = [each for each in plain if b"_meta" not in each[0] and b"initialize" not in each[0]]
    with Process(path) as process:
        process.send(b"\xef\xbb\xbf", initialize())  # a BOM
        process.answers("first")
        for line, code, ids in plain:
            assert [(each["id"], each["error"]["code"]) for each in errors(process, line, len(ids))] == [
                (one, code) for one in ids
            ]
        assert process.call("timeline")["isError"] is False
        assert process.close() == 0
        assert process.stderr() == ""
    with Process(path) as process:
        for line, code, ids in plain[:3]:
            process.send(line + b"\n")
            assert process.answers(*ids)[ids[0]]["error"]["code"] == code
        process.begin()
        assert process.close() == 0


@pytest.mark.slow
def test_what_needs_no_answer_gets_none(late: Process) -> None:
    for each in UNANSWERED:
        assert errors(late, each, 0) == []


@pytest.mark.slow
def test_a_line_without_end_takes_no_memory(late: Process) -> None:
    size = json_rpc.LINE_BYTES_MAX + 2**20
    (said,) = errors(late, b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * size + b'"}', 1)
    assert said["error"] == {"code": NO_REQUEST, "message": "a message has at most 67,108,864 bytes"}


@pytest.mark.slow
def test_what_is_in_work_when_the_client_hangs_up_is_answered(path: Path) -> None:
    numbers = [f"call {each}" for each in range(20)]
    with Process(path) as process:
        process.send(initialize(), INITIALIZED, *(tool_call(each, "remember", text=each) for each in numbers))
        assert process.close() == 0
        answers = {each["id"]: each for each in map(json.loads, process.lines)}
        assert answers.keys() == {"first", *numbers}
        assert all(answers[each]["result"]["isError"] is False for each in numbers)


def test_a_message_is_as_deep_as_metadata_may_be() -> None:
    """What a tool can say itself is left to it."""
    metadata: dict[str, Any] = {}
    for _ in range(60):
        metadata = {"x": metadata}
    line = tool_call(1, "remember_many", memories=[{"text": "x", "metadata": metadata}])
    assert json_rpc.parsed(line) == (json.loads(line), [])
