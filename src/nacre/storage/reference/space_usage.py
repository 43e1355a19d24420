"""What does each space hold, and what has each session written? Counted anew each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from nacre.storage.quotas import WINDOW, check_rate, fact_bytes, memory_bytes, replaced_bytes, writes_by_session
from nacre.types.facts import Fact
from nacre.types.memory import Entry, Event, Memory
from nacre.types.quotas import Quotas, Usage


def usage_of(
    memories: Sequence[Memory], facts: Mapping[str, Sequence[Fact]], events: Sequence[Event]
) -> dict[str, Usage]:
    """By space; `facts` are those of each memory."""
    space_of = {memory.id: memory.space for memory in memories}
    counted = Counter(space_of.values())
    size: Counter[str] = Counter()
    for memory in memories:
        size[memory.space] += memory_bytes(memory)
    for memory_id, several in facts.items():
        size[space_of[memory_id]] += sum(map(fact_bytes, several))
    for event in events:  # those of purged memories have nothing
        if event.before:
            size[space_of[event.memory_id]] += replaced_bytes(event.before)
    return {space: Usage(counted[space], size[space]) for space in sorted(counted)}


class SessionWrites:
    """How many memories each session has written within a minute."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[datetime, int]] = {}  # since when, and how many

    def count(self, quotas: Quotas, new: Sequence[Entry]) -> None:
        """Raises QuotaExceeded, and counts nothing, if these are too many."""
        if not (quotas.session_writes_max and new):
            return
        now = max(entry.memory.updated for entry in new)
        known = {key: each for key, each in self._known.items() if now - WINDOW < each[0] <= now}
        for asker, count in writes_by_session(new).items():
            since, written = known.get(asker, (now, 0))
            check_rate(quotas, asker[1], written, count, since, now)
            known[asker] = since, written + count
        self._known = known
