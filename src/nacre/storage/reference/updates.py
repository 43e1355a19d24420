"""Which memory updates which, in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nacre.storage.reference.change_log import ChangeLog
from nacre.storage.reference.stored_memory import StoredMemory
from nacre.types.memory import Update
from nacre.types.search import Successor
from nacre.types.transfer import update_name


class Updates:
    """Links between memories. Its owner holds a lock around every call."""

    def __init__(self, stored: Callable[[str], StoredMemory | None], changes: ChangeLog) -> None:
        self._stored = stored
        self._changes = changes
        self.links: dict[tuple[str, str], Update] = {}  # by newer and older

    def link(self, new: Iterable[Update], *, later: bool = False) -> None:
        """Add links. `later`: the memories were written before."""
        for each in new:
            newer, older = self._stored(each.newer), self._stored(each.older)
            pair = each.newer, each.older
            if newer and older and newer is not older and newer.memory.space == older.memory.space:
                if later and pair not in self.links:
                    self._changes.note("update", newer.memory.space, [update_name(*pair)])
                self.links.setdefault(pair, each)

    def unlink(self, pairs: Iterable[Update]) -> int:
        unlinked = 0
        for each in pairs:
            newer = self._stored(each.newer)
            if self.links.pop((each.newer, each.older), None) is not None and newer is not None:
                name = update_name(each.newer, each.older)
                self._changes.note("update", newer.memory.space, [name], gone=True)
                unlinked += 1
        return unlinked

    def of(self, memory_ids: Sequence[str]) -> list[Update]:
        found = [each for pair, each in self.links.items() if all(map(self._is_live, pair))]
        return sorted(each for each in found if each.newer in memory_ids or each.older in memory_ids)

    def successors(self, memory_id: str) -> tuple[Successor, ...]:
        newer = [self._stored(each.newer) for each in self.links.values() if each.older == memory_id]
        found = [Successor(each.memory.id, each.memory.moment) for each in newer if each is not None and each.is_live]
        return tuple(sorted(sorted(found), key=lambda each: each.since, reverse=True))

    def purge(self, memory_id: str) -> None:
        self.links = {pair: each for pair, each in self.links.items() if memory_id not in pair}

    def _is_live(self, memory_id: str) -> bool:
        stored = self._stored(memory_id)
        return stored is not None and stored.is_live
