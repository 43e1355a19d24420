"""The timeline: summaries of memories by time, around one of them, or counted by day, week or month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from nacre import validation
from nacre.analysis import highlight
from nacre.engine.calendar import histogram
from nacre.engine.parts import Parts
from nacre.errors import InvalidInput, NotFound
from nacre.interfaces import TimePage
from nacre.query.ast import Condition, ParsedQuery
from nacre.types.memory import Memory
from nacre.types.views import Timeline, TimelineEntry, TimelineRequest

_EVERYTHING = ParsedQuery((), None, "", listing=True)


class TimelineService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    def timeline(self, asked: TimelineRequest) -> Timeline:
        request = validation.timeline(asked, self._parts.access, self._parts.limits)
        must = None if request.forgotten else self._parts.unexpired()
        following = None
        if request.around is None:
            entries, following = self._page(request, must)
        else:
            anchor = self._anchor(request.around, asked.where.spaces, request.forgotten)
            spaces = request.where.spaces if asked.where.spaces else (anchor.space,)
            request = replace(request, where=replace(request.where, spaces=spaces))
            entries = self._around(request, anchor, must)
        counted: dict[str, int] = {}
        if request.histogram is not None:
            created = self._store.facet_counts(replace(_EVERYTHING, must=must), request.where).created
            counted = histogram(created, self._parts.zone, request.histogram)
        return Timeline(entries, following, counted)

    def _page(self, request: TimelineRequest, must: Condition | None) -> tuple[tuple[TimelineEntry, ...], str | None]:
        after = None if request.cursor is None else _place(request.cursor)
        one_more = TimePage(request.limit + 1, request.oldest_first, after)  # shows whether another page follows
        found = self._store.by_time(request.where, one_more, must=must, forgotten=request.forgotten)
        page = found[: request.limit]
        return tuple(map(timeline_entry, page)), _cursor(page[-1]) if len(found) > len(page) else None

    def _anchor(self, memory_id: str, spaces: Sequence[str], forgotten: bool) -> Memory:
        anchor = self._parts.visible([memory_id]).get(memory_id)
        if anchor is None or (spaces and anchor.space not in spaces):
            raise NotFound((memory_id,))
        if anchor.deleted is not None and not forgotten:
            raise NotFound((memory_id,), "it is forgotten: restore it, or ask for forgotten ones")
        return anchor

    def _around(self, request: TimelineRequest, anchor: Memory, must: Condition | None) -> tuple[TimelineEntry, ...]:
        """The matching entries before and after the anchor, and the anchor itself even if the filter excludes it."""
        later, earlier = (
            self._store.by_time(
                request.where,
                TimePage(request.span, oldest_first, (anchor.created, anchor.id)),
                must=must,
                forgotten=request.forgotten,
            )
            for oldest_first in (True, False)
        )
        entries = (
            *map(timeline_entry, reversed(earlier)),
            replace(timeline_entry(anchor), anchor=True),
            *map(timeline_entry, later),
        )
        return entries if request.oldest_first else entries[::-1]


def _cursor(memory: Memory) -> str:
    """A place in time that stays good when the memory there is purged."""
    return f"{memory.created.isoformat()}/{memory.id}"


def _place(cursor: str) -> tuple[datetime, str]:
    moment, _, memory_id = cursor.partition("/")
    try:
        return datetime.fromisoformat(moment).astimezone(UTC), memory_id
    except (ValueError, OverflowError):
        raise InvalidInput("cursor", f"{cursor!r} is not one; give the `next` of the page before") from None


def timeline_entry(memory: Memory) -> TimelineEntry:
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
        pinned=memory.pinned,
    )
