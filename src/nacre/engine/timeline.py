"""How much of memories is shown: a line each by time, or all of them with what is around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Unpack

from nacre import validation
from nacre.analysis import highlight
from nacre.engine.recall_log import Learning
from nacre.errors import InvalidInput, NotFound
from nacre.query.ast import ParsedQuery
from nacre.types.facts import Entity
from nacre.types.memory import Memory
from nacre.types.search import Filter
from nacre.types.views import Bucket, Fetched, Timeline, TimelineEntry, TimelineOptions, TimelineRequest

_PAGE = 1_000
_ALL = ParsedQuery((), None, "", listing=True)


class Layers(Learning):
    """The verbs that show memories layer by layer."""

    _zone: tzinfo | None  # None: that of the machine

    # ---- in time

    def timeline(
        self,
        start: TimelineRequest | datetime | None = None,
        end: datetime | None = None,
        **options: Unpack[TimelineOptions],
    ) -> Timeline:
        """A page of summaries by creation time, newest first unless asked otherwise, or those around a memory."""
        asked = start if isinstance(start, TimelineRequest) else TimelineRequest(start=start)
        asked = replace(asked, end=asked.end if end is None else end, **options)
        request = validation.timeline(asked, self._space, self._limits)
        following = None
        if request.around is None:
            entries, following = self._page(request)
        else:
            anchor = self._anchor(request.around, asked.where.spaces, request.forgotten)
            spaces = request.where.spaces if asked.where.spaces else (anchor.space,)
            request = replace(request, where=replace(request.where, spaces=spaces))
            entries = self._around(request, anchor)
        counted = {} if request.histogram is None else self._histogram(request.where, request.histogram)
        return Timeline(entries, following, counted)

    def _page(self, request: TimelineRequest) -> tuple[tuple[TimelineEntry, ...], str | None]:
        found = self._store.by_time(
            request.where,
            request.limit + 1,
            oldest_first=request.oldest_first,
            forgotten=request.forgotten,
            after=None if request.cursor is None else _place(request.cursor),
        )
        page = found[: request.limit]
        return tuple(map(_entry, page)), _cursor(page[-1]) if len(found) > len(page) else None

    def _anchor(self, memory_id: str, spaces: Sequence[str], forgotten: bool) -> Memory:
        anchor = self._seen([memory_id]).get(memory_id)
        if anchor is None or (spaces and anchor.space not in spaces):
            raise NotFound((memory_id,))
        if anchor.deleted is not None and not forgotten:
            raise NotFound((memory_id,), "it is forgotten: restore it, or ask for forgotten ones")
        return anchor

    def _around(self, request: TimelineRequest, anchor: Memory) -> tuple[TimelineEntry, ...]:
        """In time, an anchor that the filter would leave out among those that it lets through."""
        later, earlier = (
            self._store.by_time(
                request.where,
                request.span,
                oldest_first=oldest_first,
                forgotten=request.forgotten,
                after=(anchor.created, anchor.id),
            )
            for oldest_first in (True, False)
        )
        entries = (
            *map(_entry, reversed(earlier)),
            replace(_entry(anchor), anchor=True),
            *map(_entry, later),
        )
        return entries if request.oldest_first else entries[::-1]

    def _histogram(self, where: Filter, bucket: Bucket) -> dict[str, int]:
        counted = Counter[str]()
        for moment, memories in self._store.facet_counts(_ALL, where).created.items():
            counted[_bucket(moment, self._zone, bucket)] += memories
        return dict(sorted(counted.items()))

    # ---- in full

    def get(
        self,
        ids: str | Sequence[str],
        *,
        entities: bool = False,
        neighbours: int = 0,
        missing_ok: bool = False,
        session: str | None = None,
    ) -> Fetched:
        """Memories in full, in the order asked for, forgotten ones too; if asked for, with the entities they are
        about and so many memories before and after each in its session. Raises NotFound unless missing ones are fine.
        `session` is that of who asks, for the recall log.
        """
        validation.get(entities, neighbours, missing_ok, session, self._limits)
        wanted = validation.ids([ids] if isinstance(ids, str) else ids, self._limits)
        found = self._seen(wanted)
        missing = tuple(each for each in wanted if each not in found)
        if missing and not missing_ok:
            raise NotFound(missing)
        there = tuple(each for each in wanted if each in found)
        self._opened(there, session)
        facts = self._store.facts_of(there)
        return Fetched(
            tuple(replace(found[each], facts=facts.get(each, ())) for each in there),
            missing,
            self._entities_of(there) if entities else {},
            self._neighbours(there, neighbours) if neighbours else {},
        )

    def every(self, where: Filter | None = None) -> Iterator[Memory]:
        """All live memories that a filter lets through, in full, the oldest first, in constant memory."""
        allowed = validation.where(where or Filter(), self._space, self._limits)
        after = None
        while page := self._store.by_time(allowed, _PAGE, oldest_first=True, after=after):
            yield from page
            after = page[-1].created, page[-1].id

    def _entities_of(self, ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        known = self._store.entities_of(ids)
        return {each: known.get(each, ()) for each in ids}

    def _neighbours(self, ids: Sequence[str], many: int) -> dict[str, tuple[TimelineEntry, ...]]:
        beside = {each: (*near.before, *near.after) for each, near in self._store.neighbours(ids, many, many).items()}
        known = self._store.get(list(dict.fromkeys(other for near in beside.values() for other in near)))
        return {each: tuple(_entry(known[other]) for other in beside.get(each, ()) if other in known) for each in ids}


def _cursor(memory: Memory) -> str:
    """A place in time that stays good when the memory there is purged."""
    return f"{memory.created.isoformat()}/{memory.id}"


def _place(cursor: str) -> tuple[datetime, str]:
    moment, _, memory_id = cursor.partition("/")
    try:
        return datetime.fromisoformat(moment).astimezone(UTC), memory_id
    except (ValueError, OverflowError):
        raise InvalidInput("cursor", f"{cursor!r} is not one; give the `next` of the page before") from None


def _bucket(moment: datetime, zone: tzinfo | None, bucket: Bucket) -> str:
    """The day, week or month of the user in which a moment falls, so named that names sort by time."""
    try:
        day = moment.astimezone(zone).date()
    except OverflowError:  # the first and the last day there are
        day = moment.date()
    match bucket:
        case "day":
            return day.isoformat()
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return day.isoformat()[:7]


def _entry(memory: Memory) -> TimelineEntry:
    return TimelineEntry(
        id=memory.id,
        created=memory.created,
        happened=memory.happened,
        space=memory.space,
        kind=memory.kind,
        namespace=memory.namespace,
        tags=memory.tags,
        session=memory.session,
        position=memory.position,
        summary=memory.summary or highlight.summary(memory.text),
    )
