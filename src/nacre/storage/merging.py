"""Which of two versions wins when stores exchange records? The same on every store, whatever comes first.

A memory is one value with a time: of two versions the later wins, as a whole. What does not depend on the order of
files depends on nothing but the values compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime

from nacre.ids import content_hash
from nacre.storage.changes import plain
from nacre.types.facts import Fact
from nacre.types.memory import Changes, Json, Memory
from nacre.types.search import Filter
from nacre.types.transfer import EntityRecord, EventRecord

DISPLACED, REINSTATED, IMPORTED, MERGED = "displaced", "reinstated", "imported", "merged"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # of what has no time of a change


# ---------------------------------------------------------------- memories


def stamp(memory: Memory) -> datetime:
    """When a memory was last changed, forgotten or restored."""
    return memory.updated if memory.deleted is None else max(memory.updated, memory.deleted)


def newer(one: Memory, other: Memory) -> bool:
    """Whether a version of a memory wins over another one. Of equal times, a forgotten one wins, then its content."""
    return _version(one) > _version(other)


def _version(memory: Memory) -> tuple[datetime, bool, str]:
    values = {each.name: plain(getattr(memory, each.name)) for each in fields(Memory) if each.compare}
    return stamp(memory), memory.deleted is not None, _canonical(values)


def same(one: Memory, other: Memory) -> bool:
    """Compared as JSON, where true is not 1."""
    return _version(one) == _version(other)


def content(memory: Memory) -> dict[str, Json]:
    """All that an update can change."""
    return {name: plain(getattr(memory, name)) for name in Changes.__annotations__}


def is_former(loser: Memory, winner: Memory, history: Sequence[EventRecord]) -> bool:
    """Whether the history of the winner, or the winner itself, has the content of the loser already."""
    wanted = _canonical(content(loser))
    version = content(winner)
    if _canonical(version) == wanted:
        return True
    for event in sorted(history, key=lambda each: each.at, reverse=True):
        version = {**version, **{name: value for name, value in event.before.items() if name in version}}
        if event.before and _canonical(version) == wanted:
            return True
    return False


def merged_event(loser: Memory) -> EventRecord:
    """What is kept of a version that lost: all of it. It is the same event wherever that version loses."""
    before = content(loser)
    digest = hashlib.sha256(f"{loser.id} {_canonical(before)}".encode()).hexdigest()[:16]
    return EventRecord(
        uid=f"{MERGED}-{digest}",
        at=stamp(loser),
        action=MERGED,
        memory_id=loser.id,
        space=loser.space,
        before=before,
    )


def displaced_event(loser: Memory, winner: Memory) -> EventRecord:
    return _local_event(DISPLACED, loser, f"{winner.id}-{winner.updated.isoformat()}", winner.updated)


def reinstated_event(memory: Memory) -> EventRecord:
    return _local_event(REINSTATED, memory, memory.updated.isoformat(), memory.updated)


def imported_event(memory: Memory) -> EventRecord:
    """For a memory that came without a history that tells of the change."""
    return _local_event(IMPORTED, memory, _canonical(_version(memory)[2]), stamp(memory))


def _local_event(action: str, memory: Memory, about: str, at: datetime) -> EventRecord:
    digest = hashlib.sha256(f"{action} {memory.id} {about}".encode()).hexdigest()[:16]
    uid = f"{action}-{digest}"
    return EventRecord(uid=uid, at=at, action=action, memory_id=memory.id, space=memory.space, before={})


def first(rivals: Iterable[Memory]) -> Memory:
    """Of memories with one identity, the one that stays: the latest."""
    return max(rivals, key=lambda each: (each.updated, each.id))


def event_uid(store_id: str, seq: int, at: datetime) -> str:
    """The identity of an event that a store wrote itself. The time tells copies of a store apart."""
    return f"{store_id}-{seq}-{(at - LONG_AGO).total_seconds():.6f}"


# ---------------------------------------------------------------- what belongs to memories


def text_hash(text: str) -> str:
    return content_hash(text).hex()


def surer(one: Fact, other: Fact) -> bool:
    """Whether the confidence of a fact is the later one."""
    return (one.touched, one.confidence, one.reinforced) > (other.touched, other.confidence, other.reinforced)


def entity_wins(one: EntityRecord, other: EntityRecord) -> bool:
    """Whether an entity gives the name and the type where two become one."""
    return _entity_version(one) > _entity_version(other)


def _entity_version(entity: EntityRecord) -> tuple[datetime, str, str]:
    return entity.changed or LONG_AGO, entity.name, entity.type or ""


def later(new: tuple[datetime | None, str], stored: tuple[datetime | None, str]) -> bool:
    """Whether what came wins over what is stored, each with the time of its change and its content."""
    return (new[0] or LONG_AGO, new[1]) > (stored[0] or LONG_AGO, stored[1])


def filter_text(where: Filter | None) -> str:
    """A filter as text: the same for filters that choose the same."""
    if where is None:
        return ""
    given = {each.name: getattr(where, each.name) for each in fields(Filter)}
    return _canonical({name: plain(value) for name, value in given.items() if value != getattr(Filter(), name)})


def _canonical(value: Json | Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
