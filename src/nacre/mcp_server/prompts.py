"""Prompts that a person picks in a client: begin with what is known, or keep what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.types.search import Filter

LISTED: list[dict[str, Any]] = [
    {
        "name": "recall",
        "description": "Begin with what is known about a topic.",
        "arguments": [
            {"name": "topic", "description": "A question, a task or a name.", "required": True},
            {"name": "namespace", "description": "Only memories of this namespace.", "required": False},
            {"name": "tag", "description": "Only memories with this tag.", "required": False},
        ],
    },
    {
        "name": "keep",
        "description": "Remember what this conversation decided and learned.",
        "arguments": [],
    },
]

_KEEP = (
    "Look back over this conversation and store what will matter in later ones with the `remember` tool: decisions "
    "with their reasons, facts, preferences, what was tried and with what result, what is still open. One "
    "self-contained text each, with names and dates spelled out, no secrets, nothing that was recalled from memory. "
    "`search_memories` shows what is known already; `forget` what turned out to be wrong. Then list what you kept, one "
    "line each."
)


def render(memory: Nacre, name: str, arguments: Mapping[str, str], origin: str | None) -> str:
    """The prompt's text. `origin` is the connection, under which a search is logged."""
    if name == "keep":
        return _KEEP
    if name != "recall":
        known = " and ".join(each["name"] for each in LISTED)
        raise NotFound((name,), f"allowed: {known}", what="prompt")
    topic = arguments.get("topic", "")
    if not topic.strip():
        raise InvalidInput("topic", "is missing; give a question or a task")
    namespace, tag = arguments.get("namespace", ""), arguments.get("tag", "")
    where = Filter(namespaces=[namespace] if namespace else (), tags_all=[tag] if tag else ())
    known = memory.context(topic, where=where, origin=origin).text
    return f"{known}\n\nWith this in mind: {topic}"
