"""Which texts only repeat what their session or connection was given?

What each was given is kept between calls and brought up to date, because a long session was given much, and every text
that it remembers is compared with all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from nacre.engine.calendar import local_date
from nacre.engine.parts import Parts
from nacre.engine.recall_log import DELIVERED_MAX, RecallLog
from nacre.runtime.lru import LruCache
from nacre.types.memory import Memory

if TYPE_CHECKING:
    from nacre.analysis.recall_guard import DeliveredTexts

ASKERS_CACHED = 64


class Asker(NamedTuple):
    """Who remembers or searches: a session, a connection, or a session on a connection."""

    space: str
    session: str | None
    origin: str | None

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(self.space, each) for each in dict.fromkeys((self.session, self.origin)) if each is not None]


class _Given:
    """The texts that an asker was given, as of a receipt of the log."""

    def __init__(self, texts: DeliveredTexts) -> None:
        self.texts = texts
        self.changed: dict[str, datetime] = {}  # by id, when the memory had last changed
        self.up_to = 0


class RepeatFinder:
    """Safe to use from several threads. Without a recall log nothing is known to be repeated."""

    def __init__(self, parts: Parts, log: RecallLog) -> None:
        self._parts = parts
        self._store = parts.store
        self._log = log
        self._lock = threading.Lock()
        self._given: LruCache[Asker, _Given] = LruCache(ASKERS_CACHED)

    def forget(self) -> None:
        """Read the log anew: some of it was deleted."""
        with self._lock:
            self._given.clear()

    def find(self, texts: Sequence[tuple[Asker, str]]) -> dict[int, tuple[str, ...]]:
        """By place, for texts that only repeat what their own session or connection was given: those memories.

        This does not lapse, and a repeat does not end it: a text that an agent has lost from its window and finds in
        its notes is still a copy of a memory. It holds as long as the log is kept.
        """
        askers = {asker for asker, _ in texts if asker.names}
        if not askers or not self._log.enabled:
            return {}
        with self._lock:
            found = self._found(texts, self._current(askers))
            wrong = self._outdated({asker for asker, _ in texts}, found.values())
            if not wrong:
                return found
            for asker in wrong:
                self._given.pop(asker)
            return self._found(texts, self._current(askers))

    def _found(self, texts: Sequence[tuple[Asker, str]], given: Mapping[Asker, _Given]) -> dict[int, tuple[str, ...]]:
        repeated = {
            place: given[asker].texts.repeated(text) for place, (asker, text) in enumerate(texts) if asker in given
        }
        return {place: ids for place, ids in repeated.items() if ids}

    def _outdated(self, askers: Iterable[Asker], found: Collection[tuple[str, ...]]) -> list[Asker]:
        """Those of whom something was recognised that has changed since they were given it."""
        if not found:
            return []
        memories = self._store.get(list(dict.fromkeys(each for ids in found for each in ids)))
        wrong = []
        for asker in askers:
            known = self._given.get(asker)
            changed = known.changed if known is not None else {}
            if any(
                each in changed and (each not in memories or not _unchanged(memories[each], changed[each]))
                for ids in found
                for each in ids
            ):
                wrong.append(asker)
        return wrong

    def _current(self, askers: Collection[Asker]) -> dict[Asker, _Given]:
        """What each was given by now; nobody is in it to whom nothing was."""
        unwritten, last = self._log.unwritten(), self._store.last_receipt()
        known = {each: self._given.get(each) for each in askers}
        new = [each for each, given in known.items() if given is None]
        old = {each: given for each, given in known.items() if given is not None}
        delivered: dict[tuple[str, str], list[str]] = {}
        if new:
            names = list(dict.fromkeys(name for each in new for name in each.names))
            delivered |= self._store.delivered(names, DELIVERED_MAX, unwritten)
        behind = [given.up_to for given in old.values()]
        if behind and (min(behind) < last or unwritten.receipts):
            names = list(dict.fromkeys(name for each in old for name in each.names if name not in delivered))
            delivered |= self._store.delivered(names, DELIVERED_MAX, unwritten, after=min(behind))
        listed = list(dict.fromkeys(each for ids in delivered.values() for each in ids))
        memories = self._store.get(listed) if listed else {}
        current = {}
        for asker in askers:
            ids = [each for name in asker.names for each in delivered.get(name, ())]
            given = known[asker]
            if given is None and ids:
                given = _Given(_no_texts())
                self._given.put(asker, given)
            if given is not None:
                self._add(given, [memories[each] for each in reversed(ids) if each in memories], asker.space)
                given.up_to = max(last, given.up_to)
                current[asker] = given
        return current

    def _add(self, given: _Given, memories: Iterable[Memory], space: str) -> None:
        """Memories in the order in which they were given, the latest last."""
        for memory in memories:
            if memory.space == space and given.changed.get(memory.id) != memory.updated:
                date = local_date(memory.moment, self._parts.zone).isoformat()
                given.texts.add(memory.id, memory.text, date)
                given.changed[memory.id] = memory.updated
        for memory_id in given.texts.keep_latest(2 * DELIVERED_MAX):  # to a session and to a connection
            del given.changed[memory_id]


def _unchanged(memory: Memory, since: datetime) -> bool:
    return memory.deleted is None and memory.updated == since


def _no_texts() -> DeliveredTexts:
    from nacre.analysis.recall_guard import DeliveredTexts  # most writers were given nothing before

    return DeliveredTexts()
