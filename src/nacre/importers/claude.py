"""The account export of Claude: conversations.json and memories.json in a zip archive.

Its format is not documented. It is known from public documents and programs about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nacre.analysis.turns import said
from nacre.importers import archives
from nacre.importers.conversations import Title, Turn, beginning, items, key, mapping, memories, moment, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_values import json_values
from nacre.types.memory import NewMemory

_START = re.compile(r'"chat_messages"\s*:\s*\[')
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_FILES = re.compile(rf"{archives.CONVERSATIONS.pattern}|memories\.json", re.IGNORECASE)
_NAMES_MAX = 20  # of attached files
_NAME_CHARS_MAX = 200


def recognises(path: Path, head: bytes) -> bool:
    return any(_START.search(beginning(each)) for each in archives.heads(path, head))


def read(source: Source) -> Iterator[NewMemory | Refused]:
    return archives.each(source, _values, _FILES)


def _values(source: Source, path: Path | None, within: str) -> Iterator[NewMemory | Refused]:
    for record in json_values(source, "conversations", path=path, within=within):
        if isinstance(record, Refused):
            yield record
        elif isinstance(mapping(record.value).get("chat_messages"), list):
            yield from memories("claude", _parts(record.value, record.where), titled_late=False)
        elif "conversations_memory" in mapping(record.value):
            yield from _remembered(record.value)
        else:
            yield Refused(record.where, "is not a conversation: it has no list `chat_messages`")


def _remembered(account: Mapping[str, Any]) -> Iterator[NewMemory]:
    """What Claude remembers of the account, and of each project."""
    owner = word(account.get("account_uuid")) or "account"
    texts = {"": account["conversations_memory"], **mapping(account.get("project_memories"))}
    for project, text in texts.items():
        kept = said(word(text))
        if kept:
            yield NewMemory(
                text=kept,
                source="claude",
                metadata={"project": said(project)} if project else {},
                key=key("claude", "memory", owner, *([project] if project else [])),
            )


def _parts(conversation: Mapping[str, Any], where: str) -> Iterator[Turn | Title | Refused]:
    messages: list[Mapping[str, Any]] = []
    for number, each in enumerate(conversation["chat_messages"], 1):
        if isinstance(each, dict):
            messages.append(each)
        else:
            yield Refused(f"{where}, message {number}", "is not an object")
    branch = _branch(messages, conversation.get("current_leaf_message_uuid"))
    session = word(conversation.get("uuid"))
    when = moment(conversation.get("created_at"))
    yield Title(word(conversation.get("name")))
    for number, message in enumerate(branch, 1):
        role = _ROLES.get(word(message.get("sender")))
        if role is None:
            continue
        names = [word(mapping(each).get("file_name")) for each in _attached(message)]
        files = [said(name)[:_NAME_CHARS_MAX] for name in names if name][:_NAMES_MAX]
        when = moment(message.get("created_at")) or when
        yield Turn(
            session=session or word(branch[0].get("uuid")) or "unnamed",
            number=word(message.get("uuid")) or str(number),
            role=role,
            text=_text(message),
            created=when,
            more={"files": list(files)} if files else {},
        )


def _branch(messages: list[Mapping[str, Any]], leaf: object) -> list[Mapping[str, Any]]:
    """The messages in order. Of branches, which edits and new answers leave behind, the one with the last message."""
    by_name = {name: each for each in messages if (name := word(each.get("uuid")))}
    parents = [word(each.get("parent_message_uuid")) for each in messages]
    if not any(parent in by_name for parent in parents):
        return messages
    at = leaf if isinstance(leaf, str) and leaf in by_name else word(messages[-1].get("uuid"))
    found: dict[str, Mapping[str, Any]] = {}
    while at in by_name and at not in found:  # parents may form a ring
        found[at] = by_name[at]
        at = word(by_name[at].get("parent_message_uuid"))
    return list(found.values())[::-1]


def _text(message: Mapping[str, Any]) -> str:
    """The text blocks. The field `text` also has a placeholder for each block of another type."""
    blocks = [mapping(each) for each in items(message.get("content"))]
    texts = [word(each.get("text")) for each in blocks if each.get("type") == "text"]
    return "\n".join(each for each in texts if each) or (word(message.get("text")) if not blocks else "")


def _attached(message: Mapping[str, Any]) -> list[Any]:
    return [*items(message.get("attachments")), *items(message.get("files"))]


CLAUDE = Importer("claude", "the account export of Claude: your conversations, turn by turn", recognises, read)
