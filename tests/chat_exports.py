"""Account exports of chats, as tests write them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any


def chatgpt_conversation(session: str, title: str, talk: list[tuple[str, str]], start: datetime) -> dict[str, Any]:
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["0"]}}
    for number, (who, text) in enumerate(talk):
        nodes[str(number)] = {
            "id": str(number),
            "parent": str(number - 1) if number else "root",
            "children": [str(number + 1)] if number + 1 < len(talk) else [],
            "message": {
                "id": f"{session}-{number}",
                "author": {"role": who},
                "create_time": (start + timedelta(minutes=number)).timestamp(),
                "content": {"content_type": "text", "parts": [text]},
                "recipient": "all",
                "metadata": {},
            },
        }
    return {
        "title": title,
        "create_time": start.timestamp(),
        "conversation_id": session,
        "current_node": str(len(talk) - 1),
        "mapping": nodes,
    }
