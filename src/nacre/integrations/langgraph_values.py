"""How the values of LangGraph's items are kept in memories: exactly, whatever their depth, numbers and size.

A value is the metadata of its memory where these can hold it. Otherwise its JSON is a text in them. What is too large
for that is cut into pieces, each in a memory of its own, which no query finds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.integrations import exact
from nacre.integrations.parts import joined
from nacre.types.memory import Json, Memory, NewMemory
from nacre.validation import LIMITS

UNINDEXED = "unindexed"  # the tag of what no query finds
OWN = "langgraph"  # the name in the metadata under which the store keeps what is not part of the value
PIECES = "langgraph-pieces"  # the first part of the keys of pieces
_PIECE_CHARS = 30_000  # quoted in metadata they are twice as many at most


def as_json(value: Mapping[str, Any]) -> dict[str, Json]:
    """A copy of a value as it will be read again: with lists for tuples, and with texts for keys."""
    try:
        copy = json.loads(json.dumps(dict(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("value", f"is not JSON ({error}); give texts, numbers, lists and mappings") from None
    return cast("dict[str, Json]", copy)


def own(memory: Memory) -> Mapping[str, Json]:
    """What the store keeps in the metadata of an item besides its value."""
    kept = memory.metadata.get(OWN)
    return kept if isinstance(kept, dict) else {}


def piece_keys(memory: Memory) -> list[str]:
    """The keys of the pieces that an item's value is kept in; none if it is kept with the item."""
    assert memory.key is not None
    kept = own(memory)
    count, checksum = kept.get("pieces"), kept.get("checksum")
    return [_piece_key(memory.key, str(checksum), number) for number in range(count if isinstance(count, int) else 0)]


class Values:
    """Keeps values in the metadata of memories, and reads them again."""

    def __init__(self, memory: Nacre) -> None:
        self._memory = memory

    def kept(
        self, key: str, value: dict[str, Json], own: Mapping[str, Json], expires: datetime | None
    ) -> tuple[dict[str, Json], list[NewMemory]]:
        """The metadata of an item's memory, and the pieces that must be remembered before it."""
        if OWN not in value and exact.fits(value):
            metadata: dict[str, Json] = {**value, OWN: dict(own)} if own else value
            if _small(metadata):
                return metadata, []
        text = exact.screened_text(self._memory, value, json.dumps(value))
        if _small(metadata := {OWN: {**own, "json": text}}):
            return metadata, []
        checksum = hashlib.sha256(text.encode()).hexdigest()[:32]
        pieces = exact.cut(self._memory, text, _PIECE_CHARS)
        memories = [
            NewMemory(
                text=f"Piece {number + 1} of {len(pieces)} of {key}",
                key=_piece_key(key, checksum, number),
                metadata={"json": piece},
                tags=(UNINDEXED,),
                expires=expires,
                extract=False,
            )
            for number, piece in enumerate(pieces)
        ]
        return {OWN: {**own, "pieces": len(pieces), "checksum": checksum}}, memories

    def of(self, memory: Memory) -> dict[str, Any] | None:
        """The value of an item. None: it was replaced while it was read."""
        if keys := piece_keys(memory):
            found = self._memory.get(keys=keys, missing_ok=True)
            if len(found) < len(keys):
                return None
            return cast("dict[str, Any]", exact.read("".join(str(piece.metadata["json"]) for piece in found)))
        text = own(memory).get("json")
        if isinstance(text, str) or text is True:  # True: an imported item, whose text is its value
            return cast("dict[str, Any]", exact.read(memory.text if text is True else text))
        return {name: each for name, each in memory.metadata.items() if name != OWN}


def _piece_key(key: str, checksum: str, number: int) -> str:
    return joined(PIECES, hashlib.sha256(key.encode()).hexdigest(), checksum, str(number))


def _small(metadata: Mapping[str, Json]) -> bool:
    return len(json.dumps(metadata, ensure_ascii=False).encode()) <= LIMITS.metadata_bytes_max
