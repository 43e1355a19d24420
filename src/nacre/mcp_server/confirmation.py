"""Which calls ask a person first, and what they ask. No protocol here."""

from __future__ import annotations

from nacre.analysis import highlight
from nacre.errors import NacreError
from nacre.mcp_server.tool import Call
from nacre.serialization import decode

FORGOTTEN_UNASKED = 5  # memories that one call may forget without a question
_SHOWN = 5


def question(tool: str, call: Call) -> str | None:
    """The question that a call needs a person's consent to; None if it needs none."""
    if tool != "forget":
        return None
    try:
        ids = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))["ids"]
        if len(set(ids)) <= FORGOTTEN_UNASKED:
            return None
        found = [each for each in call.memory.get(ids, missing_ok=True) if each.deleted is None]
    except NacreError:
        return None  # the tool says what is wrong with its arguments
    if len(found) <= FORGOTTEN_UNASKED:
        return None
    lines = [f"- {each.summary or highlight.summary(each.text)}" for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"- and {len(found) - _SHOWN} more")
    return "\n".join([f"Forget {len(found)} memories?", *lines])
