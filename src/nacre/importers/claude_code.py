"""Transcripts of Claude Code: one JSON Lines file a session, in a folder for each project.

The format is not documented. It is known from files and from public programs that read them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from nacre.analysis.turns import said_to_agent
from nacre.importers.conversations import Title, Turn, first_objects, heads, mapping, memories, moment, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_records import json_lines
from nacre.types.memory import NewMemory

_TITLES = {"custom-title": ("customTitle", 2), "ai-title": ("aiTitle", 1)}
_BOOKKEEPING = frozenset(("file-history-snapshot", "queue-operation", "system", "progress", "attachment", *_TITLES))
_LONG = re.compile(
    rb'\{(?=[^\n]*"sessionId" ?:)(?=[^\n]*"(?:parentUuid|uuid)" ?:)'
)  # a line that is longer than the head
_LEAVES_MAX = 200  # turns that a summary may name, before or after it


def recognises(path: Path, head: bytes) -> bool:
    if path.is_dir():
        return any(map(_is_transcript, heads(chain(path.glob("*.jsonl"), path.glob("*/*.jsonl")))))
    return _is_transcript(head)


def _is_transcript(head: bytes) -> bool:
    if b"\n" not in head and _LONG.match(head):
        return True
    return any(map(_is_entry, first_objects(head)))


def _is_entry(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("type")
    if kind in ("user", "assistant"):
        return "sessionId" in entry and isinstance(entry.get("message"), dict)
    if kind == "summary":
        return "leafUuid" in entry
    return isinstance(kind, str) and kind in _BOOKKEEPING and ("sessionId" in entry or "messageId" in entry)


def read(source: Source) -> Iterator[NewMemory | Refused]:
    if not source.is_folder:
        yield from memories("claude-code", parts(source, source.path), said_to_agent)
        return
    for found in source.files({".jsonl"}):
        if isinstance(found, Refused):
            yield found
        else:
            name, path = found
            yield from memories("claude-code", parts(source, path, f"{name} "), said_to_agent)


def parts(source: Source, path: Path, within: str = "") -> Iterator[Turn | Title | Refused]:
    """What user and assistant said, in order: no thoughts, no tools and their results, no other agents."""
    titles = _Summaries()
    for number, record in enumerate(json_lines(source, path, within), 1):
        if isinstance(record, Refused):
            yield record
            continue
        entry = record.value
        if not isinstance(entry, dict):
            yield Refused(record.where, "is not an object; a transcript has one a line")
            continue
        title = titles.of(entry)
        if title is not None:
            yield title
        role, content = _said(entry)
        if not role or _is_of_others(entry):
            continue
        texts = _texts(content)
        if texts is None:
            yield Refused(record.where, f"is a turn of the {role} without a text or a list as its content")
            continue
        folder = word(entry.get("cwd"))
        yield Turn(
            session=word(entry.get("sessionId")) or path.stem,
            number=word(entry.get("uuid")) or str(number),
            role=role,
            text="\n".join(texts),
            created=moment(entry.get("timestamp")),
            more={"folder": folder} if folder else {},
        )


def _said(entry: Mapping[str, Any]) -> tuple[str, object]:
    """Who says something in an entry, and what. "": nobody."""
    kind = entry.get("type")
    if kind in ("user", "assistant"):
        return kind, mapping(entry.get("message")).get("content")
    typed = mapping(entry.get("attachment"))  # while the assistant worked
    if kind == "attachment" and typed.get("type") == "queued_command" and typed.get("commandMode") == "prompt":
        by_user = mapping(typed.get("origin")).get("kind", "human") == "human" and not typed.get("isMeta")
        return ("user", typed.get("prompt")) if by_user else ("", None)
    return "", None


def _is_of_others(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary"))


def _texts(content: object) -> list[str] | None:
    """The texts of a message: it is one, or a list of blocks. None: it is neither."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return None
    blocks = (each.get("text") if mapping(each).get("type") == "text" else each for each in content)
    return [each for each in blocks if isinstance(each, str)]


class _Summaries:
    """Finds titles. A file may have summaries of other sessions, which name no turn that is in it."""

    def __init__(self) -> None:
        self._turns: deque[str] = deque(maxlen=_LEAVES_MAX)
        self._waiting: dict[str, str] = {}

    def of(self, entry: Mapping[str, Any]) -> Title | None:
        kind, turn = entry.get("type"), word(entry.get("uuid"))
        if isinstance(kind, str) and kind in _TITLES:
            name, rank = _TITLES[kind]
            return Title(word(entry.get(name)), rank)
        if kind == "summary":
            leaf, text = word(entry.get("leafUuid")), word(entry.get("summary"))
            if leaf in self._turns:
                return Title(text)
            if len(self._waiting) < _LEAVES_MAX:
                self._waiting[leaf] = text
            return None
        if not turn:
            return None
        self._turns.append(turn)
        found = self._waiting.pop(turn, None)
        return None if found is None else Title(found)


def where(home: Path, environment: Mapping[str, str]) -> Path:
    own = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(own) if own else home / ".claude") / "projects"


CLAUDE_CODE = Importer(
    "claude-code",
    "transcripts of Claude Code: what you and it said, turn by turn",
    recognises,
    read,
    where,
)
