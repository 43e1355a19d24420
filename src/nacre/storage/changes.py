"""What did an update change? The same on every store."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from nacre.types.memory import Changes, Json, Memory


def replaced(old: Memory, new: Memory) -> dict[str, Json]:
    """The fields an update changed, with what they were. Compared as JSON, where true is not 1."""
    before: dict[str, Json] = {}
    for name in Changes.__annotations__:
        was, becomes = getattr(old, name), getattr(new, name)
        was, becomes = _plain(was), _plain(becomes)
        if json.dumps(was) != json.dumps(becomes):
            before[name] = was
    return before


def _plain(value: Any) -> Json:
    """A field of a memory as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
    plain: Json = value
    return plain
