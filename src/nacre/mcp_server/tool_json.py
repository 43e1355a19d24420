"""Tools and their answers as the protocol's JSON, for the SDK and for what is answered before it is loaded."""

from __future__ import annotations

import logging

from nacre.errors import NacreError
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


def answered(tool: Tool, call: Call) -> dict[str, Json]:
    """Call a tool. Whatever fails is an answer, too, that the model can read."""
    try:
        return _result(tool.answer(call))
    except NacreError as error:
        return failed(str(error))
    except Exception as error:  # a bug in Nacre: the agent must not take it for a mistake of its own
        _log.exception("the tool %s failed", tool.name)
        return failed(f"{tool.name} failed inside the server ({type(error).__name__}); its log on stderr says why")


def failed(message: str) -> dict[str, Json]:
    return {"content": [{"type": "text", "text": message}], "isError": True}


def _result(answer: Answer) -> dict[str, Json]:
    text = encode.dumps(encode.without_empty(answer.content), indent=None) if answer.text is None else answer.text
    return {"content": [{"type": "text", "text": text}], "structuredContent": answer.content, "isError": False}
