"""What a client's event asks, and what was said in it. Pure functions over the JSON that clients hand to hooks.

Claude Code, Codex and Cursor name the same things differently. Their own documents define the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nacre.analysis import turns

OPENING = "since:30d -kind:episode"  # what a session begins with: what is new, except for conversations
QUERY_CHARS_MAX = 2_000


class Question(NamedTuple):
    """What to look up for a prompt, or for the beginning of a session."""

    query: str
    folder: str
    session: str | None
    repeat: bool  # what the session was given before is gone from its window
    in_json: bool  # the client reads the answer as JSON, not as plain text


class Said(NamedTuple):
    """Turns of a conversation: who said what, and the position of the first one in its session."""

    client: str
    session: str
    folder: str
    turns: Iterable[tuple[str, str | None]]
    position: int


def question(event: Mapping[str, Any], environment: Mapping[str, str], working: str) -> Question:
    """`working` is the folder that the hook runs in."""
    return Question(
        query=(event.get("prompt") or OPENING)[:QUERY_CHARS_MAX],
        folder=_folder(event, environment, working),
        session=event.get("session_id") or event.get("conversation_id"),
        repeat=event.get("source") in ("compact", "clear"),
        in_json=event.get("hook_event_name") == "sessionStart",
    )


def said(event: Mapping[str, Any], environment: Mapping[str, str], working: str, now_ms: int) -> Said:
    """`now_ms` places turns whose client does not count them: they follow those of earlier events."""
    folder = _folder(event, environment, working)
    if event.get("type") == "agent-turn-complete":
        asked = event.get("input-messages") or ()
        turns = [("user", each) for each in ([asked] if isinstance(asked, str) else asked)]
        turns.append(("assistant", event.get("last-assistant-message")))
        return Said("codex", event["thread-id"], folder, turns, now_ms)
    if "conversation_id" in event:
        turns = [("user", event.get("prompt")), ("assistant", event.get("text"))]
        return Said("cursor", event["conversation_id"], folder, turns, now_ms)
    return Said("claude-code", event["session_id"], folder, _transcript(event["transcript_path"]), 0)


def memories(what: Said) -> Iterator[dict[str, Any]]:
    """The turns as memories in JSON, in order. Blank and private ones and those that a client inserted are left out."""
    position = what.position
    for who, turn in what.turns:
        text = turns.said_to_agent(turn or "")
        if text:
            yield {
                "text": text,
                "kind": "episode",
                "session": what.session,
                "position": position,
                "source": what.client,
                "metadata": {"role": who},
                "extract": False,
            }
            position += 1


def _folder(event: Mapping[str, Any], environment: Mapping[str, str], working: str) -> str:
    roots = event.get("workspace_roots") or [event.get("cwd") or working]
    return str(Path(working, environment.get("CLAUDE_PROJECT_DIR") or str(roots[0])))


def _transcript(path: str) -> Iterator[tuple[str, str | None]]:
    """What user and assistant said, in order: no thoughts, no tools and their results, no other agents.

    A line of an unknown shape loses no other.
    """
    with Path(path).open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
                who, content = entry["type"], entry["message"]["content"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # something else, or a line that is not complete yet
            if who not in ("user", "assistant"):
                continue
            if entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary"):
                continue
            yield who, "\n".join(_texts(content))


def _texts(content: object) -> Iterator[str]:
    """The texts of a message: it is one, or a list of blocks."""
    for each in content if isinstance(content, list) else [content]:
        text = each.get("text") if isinstance(each, dict) and each.get("type") == "text" else each
        if isinstance(text, str):
            yield text
