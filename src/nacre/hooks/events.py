"""What a client's event asks, and what was said in it. Pure functions over the JSON that clients hand to hooks.

Claude Code, Codex and Cursor name the same things differently. Their own documents define the fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nacre.analysis import turns
from nacre.types.memory import NewMemory

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
    turn: str  # what its client calls the exchange
    turns: Iterable[tuple[str, str | None]]
    position: int


def question(event: Mapping[str, Any], environment: Mapping[str, str], working: str) -> Question:
    """`working` is the folder that the hook runs in."""
    return Question(
        query=(event.get("prompt") or OPENING)[:QUERY_CHARS_MAX],
        folder=folder_of(event, environment, working),
        session=event.get("session_id") or event.get("conversation_id"),
        repeat=event.get("source") in ("compact", "clear"),
        in_json=event.get("hook_event_name") == "sessionStart",
    )


def said(event: Mapping[str, Any], now_ms: int) -> Said:
    """What an event says itself, if there is no transcript.

    `now_ms` places turns whose client does not count them: they follow those of earlier events.
    """
    if event.get("type") == "agent-turn-complete":
        asked = event.get("input-messages") or ()
        turns = [("user", each) for each in ([asked] if isinstance(asked, str) else asked)]
        turns.append(("assistant", event.get("last-assistant-message")))
        return Said("codex", event["thread-id"], str(event.get("turn-id")), turns, now_ms)
    turns = [("user", event.get("prompt")), ("assistant", event.get("text"))]
    return Said("cursor", event["conversation_id"], str(event.get("generation_id")), turns, now_ms)


def memories(what: Said) -> Iterator[NewMemory]:
    """The turns as memories, in order. Blank and private ones and those that a client inserted are left out."""
    position = what.position
    for who, turn in what.turns:
        text = turns.said_to_agent(turn or "")
        if text:
            yield NewMemory(
                text=text,
                kind="episode",
                session=what.session,
                position=position,
                source=what.client,
                metadata={"role": who},
                key=f"{what.client}-turn:{what.session}:{what.turn}:{hashlib.sha256(text.encode()).hexdigest()[:16]}",
                extract=False,
            )
            position += 1


def folder_of(event: Mapping[str, Any], environment: Mapping[str, str], working: str) -> str:
    """The folder of the project that the client works in."""
    roots = event.get("workspace_roots") or [event.get("cwd") or working]
    return str(Path(working, environment.get("CLAUDE_PROJECT_DIR") or str(roots[0])))
