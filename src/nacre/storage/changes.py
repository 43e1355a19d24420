"""What did an update change, and what was there before? The same on every store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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


def texts_ever(memory: Memory, replaced_before: Iterable[Mapping[str, Json]]) -> list[str]:
    """The texts and summaries that a memory has and had, by what each of its updates replaced."""
    versions: list[Mapping[str, Json]] = [{"text": memory.text, "summary": memory.summary}, *replaced_before]
    said = (version.get(name) for version in versions for name in ("text", "summary"))
    return [each for each in said if isinstance(each, str)]


def _plain(value: Any) -> Json:
    """A field of a memory as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
    plain: Json = value
    return plain
