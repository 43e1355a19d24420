"""Tools and their answers as the protocol's JSON, for the SDK and for what is answered before it is loaded."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from typing import cast

from nacre.errors import NacreError
from nacre.mcp_server import wording
from nacre.mcp_server.tool import Answer, Call, Tool
from nacre.serialization import encode
from nacre.types.memory import Json

_log = logging.getLogger("nacre")


def listed(tool: Tool) -> dict[str, Json]:
    """An entry of the list of tools."""
    annotations: dict[str, Json] = {
        "readOnlyHint": tool.effect == "reads",
        "destructiveHint": tool.effect == "changes",
        "idempotentHint": tool.repeatable,
        "openWorldHint": False,
    }
    entry: dict[str, Json] = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input,
        "outputSchema": tool.output,
        "annotations": annotations,
    }
    return {name: value for name, value in entry.items() if value is not None}


def answered(tool: Tool, call: Call, offered: Container[str]) -> dict[str, Json]:
    """Call a tool. Whatever fails is an answer, too, that the model can read. `offered` are the names of all tools."""
    try:
        return _result(tool, tool.answer(call), call.notes, offered)
    except NacreError as error:
        return failed(str(error), offered)
    except Exception as error:  # a bug in Nacre: the agent must not take it for a mistake of its own
        _log.exception("the tool %s failed", tool.name)
        return failed(f"{tool.name} failed inside the server ({type(error).__name__}); its log on stderr says why", ())


def failed(message: str, offered: Container[str]) -> dict[str, Json]:
    return {"content": [{"type": "text", "text": wording.for_agents(message, offered)}], "isError": True}


def _result(tool: Tool, answer: Answer, notes: Sequence[str], offered: Container[str]) -> dict[str, Json]:
    content = answer.content if tool.strict else _noted(answer.content, notes, offered)
    text = encode.dumps(encode.without_empty(content), indent=None) if answer.text is None else answer.text
    result: dict[str, Json] = {"content": [{"type": "text", "text": text}], "isError": False}
    if not tool.text_only:
        result["structuredContent"] = content
    if answer.meta:
        result["_meta"] = {f"nacre/{name}": value for name, value in _noted(answer.meta, (), offered).items()}
    return result


def _noted(content: Mapping[str, Json], more: Sequence[str], offered: Container[str]) -> dict[str, Json]:
    """The content with its notes and more of them, and with what was refused, in words for agents."""
    said = {**content}
    for name, added in (("refused", ()), ("notes", more)):
        given = [*cast("list[Json]", content.get(name, [])), *added]
        if given:
            said[name] = [wording.for_agents(str(each), offered) for each in given]
    return said
