"""What was said in a turn of a conversation, without what programs insert in the name of a speaker."""

from __future__ import annotations

from nacre.analysis.private import without_private
from nacre.analysis.quoting import HEADER, parse_fences

AGENT_TURN_CHARS_MAX = 20_000  # of one turn with an agent: what follows is pasted or printed
_INSERTED = (  # what Claude Code writes in the name of the user
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder",
    "<task-notification",
    "Caveat: The messages below",
    "This session is being continued",
    "[Request interrupted",
)


def said(text: str) -> str:
    """The text as it can be stored, without private parts and memories that were recalled; "" if nothing is left."""
    whole = text.encode("utf-8", "replace").decode().replace("\0", "")
    public = without_private(whole).strip()
    if "<memory " in public or HEADER in public:
        public = "\n".join(part for memory_id, part in parse_fences(public) if memory_id is None)
    return public


def said_to_agent(text: str) -> str:
    """The same of a turn with an agent that writes code, "" also for what its client inserted."""
    spoken = said(text)[:AGENT_TURN_CHARS_MAX]
    return "" if spoken.startswith(_INSERTED) else spoken
