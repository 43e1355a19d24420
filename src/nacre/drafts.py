"""How a text on its way in takes shape: checked input, memory, entry; and in what batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeAlias

from nacre.text import words
from nacre.types import Changes, Entry, Json, Memory, NewMemory, Passages, Tokens

Key: TypeAlias = tuple[str, bytes]  # space and content hash: what makes two memories the same


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked memory, not yet tokenised or embedded."""

    memory: Memory
    content_hash: bytes

    @property
    def key(self) -> Key:
        return self.memory.space, self.content_hash


def draft(checked: NewMemory, memory_id: str, updated: datetime) -> Draft:
    """A draft of what `checks.memory` has passed."""
    assert checked.space is not None
    assert checked.created is not None
    memory = Memory(
        id=memory_id,
        space=checked.space,
        kind=checked.kind,
        namespace=checked.namespace,
        text=checked.text,
        summary=checked.summary,
        tags=tuple(checked.tags),
        source=checked.source,
        session=checked.session,
        position=checked.position,
        metadata=checked.metadata,
        importance=checked.importance,
        created=checked.created,
        updated=updated,
    )
    # 128 bits: no two texts share them, and the index over them stays half the size.
    return Draft(memory, hashlib.sha256(memory.text.encode()).digest()[:16])


def as_new(memory: Memory) -> NewMemory:
    """A stored memory as input, to be changed and checked again."""
    return NewMemory(
        text=memory.text,
        space=memory.space,
        kind=memory.kind,
        namespace=memory.namespace,
        summary=memory.summary,
        tags=memory.tags,
        source=memory.source,
        session=memory.session,
        position=memory.position,
        metadata=memory.metadata,
        importance=memory.importance,
        created=memory.created,
    )


def replaced(old: Memory, new: Memory) -> dict[str, Json]:
    """The fields an update changed, with what they were. Compared as JSON, where true is not 1."""
    before: dict[str, Json] = {}
    for name in Changes.__annotations__:
        was, becomes = getattr(old, name), getattr(new, name)
        if json.dumps(was) != json.dumps(becomes):
            before[name] = list(was) if isinstance(was, tuple) else was
    return before


def entry(ready: Draft, embedded: Passages | None) -> Entry:
    return Entry(ready.memory, ready.content_hash, tokens_of(ready.memory), embedded)


def tokens_of(memory: Memory) -> Tokens:
    """Everything of a memory that words can find."""
    return words.tokenise(memory.text, memory.summary or "", memory.tags, memory.source or "")


def batches(items: Iterable[str | NewMemory], memories_max: int, chars_max: int) -> Iterator[list[str | NewMemory]]:
    """Batches bounded in number and, but for one long text, in characters."""
    iterator = iter(items)
    while batch := list(islice(iterator, 1)):
        chars = _chars(batch[0])
        while len(batch) < memories_max and chars < chars_max and (more := list(islice(iterator, 1))):
            batch += more
            chars += _chars(more[0])
        yield batch


def _chars(item: str | NewMemory) -> int:
    text = item.text if isinstance(item, NewMemory) else item
    return len(text) if isinstance(text, str) else 0
