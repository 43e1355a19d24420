"""The items of an agent's session: in order, each exactly as it was given, and what was said as turns.

Every item is a memory under a key that sorts as the items follow each other: by the start of its batch, then the batch,
then the place in it. So several processes add to one session without a lock, and no batch is torn apart.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple
from uuid import uuid4

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.integrations import exact
from nacre.integrations.parts import joined
from nacre.types.memory import Memory, NewMemory
from nacre.types.search import Filter
from nacre.validation import storable

ITEM = "item"  # the field of metadata that has the item itself
NO_TURN = "item"  # the kind of what nobody said: calls of tools, their results, reasoning
TEXT_CHARS_MAX = 100_000  # of an item, that searches see

_NEWEST = 4  # items after which a batch comes; several, because others may have added at the same moment
_PLACE = re.compile(r"(?P<start>\d+)-[0-9a-f]{32}-(?P<at>\d+)-\d+")  # the end of a key
_CLAIMED = timedelta(minutes=1)
_FORGOTTEN_AT_ONCE = 10_000


class Item(NamedTuple):
    """`text` is what was said, and `role` by whom. Without a text it is no turn, and `label` says what it is.

    A value of None is not kept: then the turn is all there is.
    """

    value: object
    role: str | None = None
    text: str = ""
    label: str = ""


class Conversation:
    """The items of one session of a framework, in the space of the engine. Safe in several threads and processes."""

    def __init__(self, memory: Nacre, framework: str, session: str) -> None:
        if not isinstance(session, str) or not session.strip() or not storable(session):
            raise InvalidInput("session_id", "must be a text that is not blank")
        self._memory = memory
        self._session = session
        self._prefix = joined(framework, session, "")
        self._where = Filter(key_prefixes=(self._prefix,))

    def add(self, items: Sequence[Item]) -> None:
        """Append items, which stay together, whatever others append meanwhile."""
        start = self._start()
        batch = f"{self._prefix}{start:017}-{uuid4().hex}"
        new = [each for at, item in enumerate(items) for each in self._memories(item, f"{batch}-{at:06}", start + at)]
        self._memory.remember_many(new)

    def items(self) -> list[Any]:
        return [value for _, value in self._read()]

    def pop(self) -> Any:
        """Take the last item away, and return it; None if there is none. No item is given to two callers."""
        for memories, value in reversed(list(self._read())):
            key = _stem(memories[0])
            # The first to remember the claim has the item; others see a duplicate. It lapses if its process dies.
            claim = NewMemory(
                text=f"claim of {key}", key=f"claims/{key}", expires=_CLAIMED, kind=NO_TURN, extract=False
            )
            if self._memory.remember(claim).duplicate:
                continue
            still = self._memory.get(keys=[str(each.key) for each in memories], missing_ok=True)
            if len(still) == len(memories):
                self._memory.forget([each.id for each in memories], missing_ok=True)
                return value
        return None

    def clear(self) -> None:
        """Forget all items. They can be restored until they are purged."""
        ids = [each.id for each in self._memory.every(self._where)]
        for at in range(0, len(ids), _FORGOTTEN_AT_ONCE):
            self._memory.forget(ids[at : at + _FORGOTTEN_AT_ONCE], missing_ok=True)

    def _start(self) -> int:
        """Where the next batch begins: the time in microseconds, but after the newest items if a clock went back."""
        newest = self._memory.timeline(where=self._where, limit=_NEWEST).entries
        keys = [str(each.key) for each in self._memory.get([each.id for each in newest], missing_ok=True)]
        places = [found for each in keys if (found := _PLACE.fullmatch(each[len(self._prefix) :]))]
        return max([time.time_ns() // 1_000, *(int(each["start"]) + int(each["at"]) + 1 for each in places)])

    def _memories(self, item: Item, key: str, position: int) -> Iterator[NewMemory]:
        """The memory of an item, and more for the pieces of one that is too large for one."""
        said, label = self._open(item.text[:TEXT_CHARS_MAX]), self._open(item.label)
        kept = [{}] if item.value is None else exact.in_pieces(self._memory, ITEM, item.value)
        for at, metadata in enumerate(kept):
            if at == 0 and said:
                yield NewMemory(
                    text=said,
                    key=f"{key}-{at:04}",
                    session=self._session,
                    position=position,
                    metadata={"role": item.role, **metadata},
                )
            else:
                text = label if at == 0 and label else "…"
                yield NewMemory(text=text, key=f"{key}-{at:04}", kind=NO_TURN, metadata=metadata, extract=False)

    def _open(self, text: str) -> str:
        """What a memory may have of a text; "" if that is nothing."""
        left = self._memory.screen(text.replace("\x00", "").encode("utf-8", "replace").decode()).text
        return left if left.strip() else ""

    def _read(self) -> Iterator[tuple[list[Memory], Any]]:
        """Items in order with their memories. One of which a piece was forgotten is left out."""
        found = sorted(self._memory.every(self._where), key=lambda each: str(each.key))
        for _, group in groupby(found, _stem):
            memories = list(group)
            try:
                yield memories, exact.joined(ITEM, [each.metadata for each in memories])
            except KeyError:
                continue


def _stem(memory: Memory) -> str:
    """The key without the number of the piece."""
    return str(memory.key).rpartition("-")[0]
