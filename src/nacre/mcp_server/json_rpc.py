"""Which lines are messages of JSON-RPC, and which error answers one that is none?

The SDK drops a line that it cannot read, and its client would wait for an answer for ever. So each line is checked
before the SDK gets it. An error has the id of the request wherever one can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nacre.types.memory import Json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
LINE_BYTES_MAX = 64 * 2**20
DEPTH_MAX = 100  # pydantic reads about 200 levels

Message = dict[str, Any]


def parsed(line: bytes) -> tuple[Message, list[Message]]:
    """The message, or the errors to answer instead, usually one."""
    if len(line) > LINE_BYTES_MAX:
        return {}, [error(None, INVALID_REQUEST, f"a message has at most {LINE_BYTES_MAX:,} bytes")]
    try:
        message = json.loads(line.decode("utf-8", "replace").strip(), parse_constant=_refuse_constant)
    except RecursionError:
        return {}, [error(None, PARSE_ERROR, f"nested too deep; at most {DEPTH_MAX} levels are read")]
    except ValueError as wrong:  # a number of thousands of digits, too
        return {}, [error(None, PARSE_ERROR, f"no JSON: {wrong}")]
    if isinstance(message, list):
        advice = "batches are not supported; send each message in a line of its own"
        return {}, [error(each, INVALID_REQUEST, advice) for each in _ids(message)]
    if not isinstance(message, dict):
        return {}, [error(None, INVALID_REQUEST, "a message is a JSON object")]
    problem = _problem(message, line)
    return (message, []) if problem is None else ({}, [error(_id(message), *problem)])


def error(number: Json, code: int, problem: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": problem}}


def _problem(message: Message, line: bytes) -> tuple[int, str] | None:
    """The code and the words for what is wrong with a message."""
    if not _is_utf8(line):
        return PARSE_ERROR, "the line is not valid UTF-8"
    if "method" not in message and ("result" in message or "error" in message):
        return None  # an answer, which gets none
    if message.get("jsonrpc") != "2.0":
        return INVALID_REQUEST, 'jsonrpc: must be "2.0"'
    if not isinstance(message.get("method"), str):
        return INVALID_REQUEST, "method: must be the name of a method"
    if "id" not in message:
        return None  # a notification gets no answer, not even an error
    if _id(message) is None:
        return INVALID_REQUEST, "id: must be a text or a whole number"
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        return INVALID_PARAMS, "params: must be an object"
    if _is_deep(message, line):
        return INVALID_REQUEST, f"nested too deep; at most {DEPTH_MAX} levels are allowed"
    return None


def _id(message: object) -> str | int | None:
    """The id of a request, as far as it is one."""
    number = message.get("id") if isinstance(message, dict) else None
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None


def _ids(batch: list[Any]) -> list[str | int | None]:
    """Of the requests in a batch; None for a batch that has none."""
    return [number for each in batch if (number := _id(each)) is not None] or [None]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_deep(message: Message, line: bytes) -> bool:
    if line.count(b"{") + line.count(b"[") <= DEPTH_MAX:  # nearly always
        return False
    level: list[Any] = [message]
    for _ in range(DEPTH_MAX):
        level = [inner for each in level for inner in _inside(each)]
    return bool(level)


def _inside(value: Any) -> Iterator[Any]:
    """The lists and objects directly inside of one."""
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield each


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
