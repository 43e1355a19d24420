"""The account export of ChatGPT: conversations.json, or conversations-000.json and on, in a zip archive.

Its format is not documented. It is known from public documents and programs about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.analysis.turns import said
from nacre.importers import archives
from nacre.importers.conversations import Title, Turn, beginning, items, mapping, memories, moment, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_values import json_values
from nacre.types.memory import Json, NewMemory

_START = re.compile(r'"mapping"\s*:\s*\{')
_NAME_CHARS_MAX = 100
_SHOWN = frozenset(("text", "multimodal_text"))  # of the types of content
_CITED = re.compile("\ue200[^\ue200-\ue202]{0,100}(?:\ue202[^\ue200-\ue202]{0,200}){0,50}\ue201")  # marks of sources


def recognises(path: Path, head: bytes) -> bool:
    return any(_START.search(beginning(each)) for each in archives.heads(path, head))


def read(source: Source) -> Iterator[NewMemory | Refused]:
    return archives.each(source, _conversations)


def _conversations(source: Source, path: Path | None, within: str) -> Iterator[NewMemory | Refused]:
    for record in json_values(source, "conversations", path=path, within=within):
        if isinstance(record, Refused):
            yield record
        elif isinstance(mapping(record.value).get("mapping"), dict):
            yield from memories("chatgpt", _parts(record.value, record.where), titled_late=False)
        else:
            yield Refused(record.where, "is not a conversation: it has no object `mapping` of its messages")


def _parts(conversation: Mapping[str, Any], where: str) -> Iterator[Turn | Title | Refused]:
    """What was said on the branch that was shown last."""
    branch = _branch(conversation)
    for name, node in conversation["mapping"].items():
        if not isinstance(node, dict):
            yield Refused(f"{where}, message {said(name)[:_NAME_CHARS_MAX]}", "is not an object")
    session = word(conversation.get("conversation_id")) or word(conversation.get("id"))
    yield Title(word(conversation.get("title")))
    when: datetime | None = moment(conversation.get("create_time"))
    for node, message in branch:
        when = moment(message.get("create_time") or None) or when  # some have no time, or 0
        role = mapping(message.get("author")).get("role")
        if role in ("user", "assistant") and _is_shown(message):
            more: dict[str, Json] = {}
            model = word(mapping(message.get("metadata")).get("model_slug"))
            if model and role == "assistant":
                more["model"] = model
            yield Turn(session or branch[0][0], word(message.get("id")) or node, role, _text(message), when, more)


def _branch(conversation: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The messages from the first one to the current one, with the names of their nodes."""
    nodes = conversation["mapping"]
    at = conversation.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        at = _latest(nodes)
    found: dict[str, Mapping[str, Any]] = {}
    while isinstance(at, str) and at in nodes and at not in found:  # parents may form a ring
        node = mapping(nodes[at])
        found[at] = mapping(node.get("message"))
        at = node.get("parent")
    return list(found.items())[::-1]


def _latest(nodes: Mapping[str, Any]) -> str | None:
    """The newest message that has no answer."""
    leaves = [name for name, node in nodes.items() if not items(mapping(node).get("children"))]

    def when(name: str) -> float:
        found = moment(mapping(mapping(nodes[name]).get("message")).get("create_time"))
        return found.timestamp() if found else 0.0

    return max(leaves or nodes, key=when, default=None)


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Whether a person saw the message: it is neither hidden, nor a thought, nor a call of a tool."""
    about = mapping(message.get("metadata"))
    kind = mapping(message.get("content")).get("content_type")
    return (
        not about.get("is_visually_hidden_from_conversation")
        and not about.get("is_user_system_message")
        and message.get("recipient") in (None, "all")
        and message.get("channel") != "analysis"
        and isinstance(kind, str)
        and kind in _SHOWN
    )


def _text(message: Mapping[str, Any]) -> str:
    """The texts of a message, what was said aloud included, without its pictures."""
    parts = items(mapping(message.get("content")).get("parts"))
    texts = (part if isinstance(part, str) else word(mapping(part).get("text")) for part in parts)
    return _CITED.sub("", "\n".join(each for each in texts if each))


CHATGPT = Importer("chatgpt", "the account export of ChatGPT: your conversations, turn by turn", recognises, read)
