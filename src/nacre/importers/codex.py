"""Transcripts of Codex: one JSON Lines file a session, which Codex calls a rollout, in folders by day.

The format is known from Codex's public code. Until September 2025 its lines had no envelope and no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from nacre.analysis.turns import said_to_agent
from nacre.importers.conversations import Title, Turn, first_objects, heads, items, mapping, memories, moment, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_records import json_lines
from nacre.types.memory import NewMemory

_ENVELOPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context"))
_SPOKEN = frozenset(("input_text", "output_text", "text"))
_COMPRESSED = ".zst"  # sessions of long ago
_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)")
_INSERTED = re.compile(  # what Codex writes in the name of the user
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|turn_aborted|skills?|skills_instructions"
    r"|user_shell_command|subagent_notification|collaboration_mode|model_switch|apps_instructions|plugins_instructions"
    r"|recommended_plugins|hook_prompt|codex_internal_context|INSTRUCTIONS|image|/image)\b"
    r"|# AGENTS\.md instructions|Another language model started to solve this problem)"
)
_REQUEST = re.compile(r"\A\s*# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)


def recognises(path: Path, head: bytes) -> bool:
    if path.is_dir():
        files = chain.from_iterable(path.glob(f"{'*/' * depth}rollout-*.jsonl") for depth in range(4))
        return any(map(_is_rollout, heads(files)))
    return _is_rollout(head)


def _is_rollout(head: bytes) -> bool:
    return b'"type":"session_meta"' in head[:1_000] or any(map(_is_line, first_objects(head)))


def _is_line(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("type")
    if isinstance(kind, str):
        return kind in _ENVELOPES and isinstance(entry.get("payload"), dict)
    return {"id", "timestamp", "instructions"} <= entry.keys() or entry == {"record_type": "state"}


def read(source: Source) -> Iterator[NewMemory | Refused]:
    if not source.is_folder:
        yield from memories("codex", parts(source, source.path), said_to_agent)
        return
    for found in source.files({".jsonl", _COMPRESSED}):
        if isinstance(found, Refused):
            yield found
            continue
        name, path = found
        if not path.name.startswith("rollout-"):
            continue
        if path.suffix != _COMPRESSED:
            yield from memories("codex", parts(source, path, f"{name} "), said_to_agent)
        elif not path.with_suffix("").exists():
            yield Refused(name, "is compressed; unpack it, for example with `zstd -d`")


def parts(source: Source, path: Path, within: str = "") -> Iterator[Turn | Title | Refused]:
    """What user and assistant said, in order. The sessions of other agents, which it started, are left out."""
    started: Mapping[str, Any] | None = None
    for number, record in enumerate(json_lines(source, path, within), 1):
        if isinstance(record, Refused):
            yield record
            continue
        entry = record.value
        if not isinstance(entry, dict):
            yield Refused(record.where, "is not an object; a transcript has one a line")
            continue
        kind = entry.get("type")
        in_envelope = isinstance(kind, str) and "payload" in entry
        what = mapping(entry.get("payload")) if in_envelope else entry
        if kind == "session_meta" or (kind is None and "id" in entry):
            if started is None:  # a session that goes on from another one has the start of that one, too
                started = what
                if "subagent" in mapping(what.get("source")) or what.get("thread_source") == "subagent":
                    return
        elif kind == "event_msg":
            if what.get("type") == "thread_name_updated":
                yield Title(word(what.get("thread_name")))
        elif kind == "response_item" or not in_envelope:
            if what.get("type") != "message" or what.get("role") not in ("user", "assistant"):
                continue
            if not isinstance(what.get("content"), list):
                yield Refused(record.where, f"is a turn of the {what['role']} without a list as its content")
                continue
            begun = started or {}
            folder = word(begun.get("cwd"))
            yield Turn(
                session=word(begun.get("id")) or _session(path),
                number=str(number),
                role=what["role"],
                text=_text(what),
                created=moment(entry.get("timestamp")) or moment(begun.get("timestamp")),
                more={"folder": folder} if folder else {},
            )


def _text(message: Mapping[str, Any]) -> str:
    blocks = (mapping(each) for each in items(message["content"]))
    texts = [word(each.get("text")) for each in blocks if each.get("type") in _SPOKEN]
    if message["role"] == "user":
        texts = [_REQUEST.sub("", each, count=1) for each in texts if not _INSERTED.match(each)]
    return "\n".join(each for each in texts if each)


def _session(path: Path) -> str:
    found = _NAME.fullmatch(path.stem)
    return found[1] if found else path.stem


def where(home: Path, environment: Mapping[str, str]) -> Path:
    own = environment.get("CODEX_HOME")
    return (Path(own) if own else home / ".codex") / "sessions"


CODEX = Importer("codex", "transcripts of Codex: what you and it said, turn by turn", recognises, read, where)
