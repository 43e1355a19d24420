"""Memories in full: by id, all that match a filter, their history and their near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from nacre import validation
from nacre.engine.parts import Parts
from nacre.engine.recall_log import RecallLog
from nacre.engine.screening import secrets_of
from nacre.engine.searcher import Searcher
from nacre.engine.timeline import timeline_entry
from nacre.errors import NotFound
from nacre.interfaces import TimePage
from nacre.query.ast import Condition, both
from nacre.types.facts import Entity
from nacre.types.memory import Event, Memory
from nacre.types.search import Filter
from nacre.types.secrets import MemoryWithSecrets
from nacre.types.stats import Stats
from nacre.types.views import Fetched, TimelineEntry

_PAGE = 1_000


class Reader:
    def __init__(self, parts: Parts, log: RecallLog, searcher: Searcher) -> None:
        self._parts = parts
        self._searcher = searcher
        self._store = parts.store
        self._log = log

    def get(
        self,
        ids: str | Sequence[str],
        keys: str | Sequence[str],
        space: str | None,
        entities: bool,
        neighbours: int,
        missing_ok: bool,
        session: str | None,
    ) -> Fetched:
        validation.get(entities, neighbours, missing_ok, session, self._parts.limits)
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._parts.limits)
        keyed = self._parts.by_key(keys, space, missing_ok=missing_ok)
        wanted = tuple(dict.fromkeys((*named, *keyed.ids)))
        found = self._parts.visible(wanted)
        missing = tuple(each for each in wanted if each not in found)
        if missing and not missing_ok:
            raise NotFound(missing)
        missing += keyed.missing
        there = tuple(each for each in wanted if each in found)
        self._log.log_opened(there, session)
        facts = self._store.facts_of(there)
        return Fetched(
            tuple(replace(found[each], facts=facts.get(each, ())) for each in there),
            missing,
            self._entities_of(there) if entities else {},
            self._neighbours(there, neighbours) if neighbours else {},
            tuple(self._store.updates(there)),
        )

    def every(self, where: Filter | str, forgotten: bool) -> Iterator[Memory]:
        validation.yes_or_no("forgotten", forgotten)
        unexpired = self._parts.unexpired()
        if isinstance(where, str):
            within, must = self._searcher.demanded(where, forgotten)
        else:
            within, must = validation.where(where, self._parts.access, self._parts.limits), None
        if unexpired is not None and not forgotten:
            must = both(must, unexpired)
        return chain.from_iterable(self._pages(within, must, forgotten))

    def _pages(self, within: Filter, must: Condition | None, forgotten: bool) -> Iterator[list[Memory]]:
        """All matching memories, the oldest first, in pages, so that memory stays constant."""
        after = None
        while page := self._store.by_time(
            within, TimePage(_PAGE, oldest_first=True, after=after), must=must, forgotten=forgotten
        ):
            yield page
            after = page[-1].created, page[-1].id

    def audit(self, where: Filter) -> Iterator[MemoryWithSecrets]:
        within = validation.where(where, self._parts.access, self._parts.limits)
        for forgotten in (False, True):
            for page in self._pages(within, None, forgotten):
                facts = self._store.facts_of([each.id for each in page])
                for memory in page:
                    replaced = {each.seq: each.before for each in self._store.history(memory.id) if each.before}
                    if places := secrets_of(memory, facts.get(memory.id, ()), replaced):
                        yield MemoryWithSecrets(memory.id, memory.space, memory.created, forgotten, tuple(places))

    def history(self, memory_id: str) -> list[Event]:
        checked = self._parts.id(memory_id)
        events = self._store.history(checked)
        if not events:
            raise NotFound((checked,))
        return events

    def similar(self, memory_id: str) -> list[Memory]:
        checked = self._parts.id(memory_id)
        if checked not in self._store.get([checked]):
            raise NotFound((checked,))
        ids = self._store.similar([checked]).get(checked, ())
        found = self._store.get(ids)
        return [found[each] for each in ids if self._parts.access.sees(found[each])]

    def separate(self, memory_id: str) -> int:
        return self._store.separate(self._parts.id(memory_id))

    def stats(self) -> Stats:
        self._parts.access.check_unconfined("stats", "count", "use `facets` instead")
        return self._store.stats()

    def _entities_of(self, ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        known = self._store.entities_of(ids)
        return {each: known.get(each, ()) for each in ids}

    def _neighbours(self, ids: Sequence[str], many: int) -> dict[str, tuple[TimelineEntry, ...]]:
        near = {each: (*near.before, *near.after) for each, near in self._store.neighbours(ids, many, many).items()}
        known = self._store.get(list(dict.fromkeys(other for others in near.values() for other in others)))
        return {
            each: tuple(timeline_entry(known[other]) for other in near.get(each, ()) if other in known) for each in ids
        }
