"""Resources that a client reads by URI: one memory, and an overview of all."""

from __future__ import annotations

from typing import Any

from nacre.engine.engine import Nacre
from nacre.errors import NotFound
from nacre.serialization import encode
from nacre.types.memory import Json

JSON = "application/json"
OVERVIEW = "nacre://overview"
MEMORY = "nacre://memory/"
_RECENT = 10

LISTED: list[dict[str, Any]] = [
    {
        "uri": OVERVIEW,
        "name": "overview",
        "description": "Counts of memories by kind, namespace, tag and month, and the newest ones.",
        "mime_type": JSON,
    }
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "uri_template": MEMORY + "{id}",
        "name": "memory",
        "description": "One memory in full.",
        "mime_type": JSON,
    }
]


def read(memory: Nacre, uri: str) -> Json:
    if uri == OVERVIEW:
        return encode.facets(memory.facets()) | {"newest": encode.timeline(memory.timeline(limit=_RECENT))["entries"]}
    if uri.startswith(MEMORY):
        (found,) = memory.get(uri.removeprefix(MEMORY))
        return encode.memory(found)
    raise NotFound((uri,), f"allowed: {OVERVIEW} and {MEMORY}ID", what="resource")
