"""When did what leaves no event change last? Numbers of changes and events are of one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nacre.types.changes import Change as SeenChange
from nacre.types.memory import Event, Json


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as the reference store keeps it. `uid` is that of another store."""

    seq: int
    at: datetime
    action: str
    memory_id: str
    before: Mapping[str, Json]
    space: str
    uid: str = ""

    @property
    def event(self) -> Event:
        return Event(self.seq, self.at, self.action, self.memory_id, self.before)


@dataclass(frozen=True, slots=True)
class Change:
    seq: int
    at: datetime
    gone: bool


class ChangeLog:
    """By (kind, space, name), the last change. `last` is the number of the last change or event."""

    def __init__(self) -> None:
        self.last = 0
        self.changes: dict[tuple[str, str, str], Change] = {}

    def next(self) -> int:
        self.last += 1
        return self.last

    def note(self, kind: str, space: str, names: Iterable[str], *, gone: bool = False) -> None:
        """A change of this moment. It is later than the change before, whatever the clock says."""
        for name in names:
            before = self.changes.get((kind, space, name))
            now = datetime.now(UTC)
            at = now if before is None else max(now, before.at + timedelta(microseconds=1))
            self.changes[kind, space, name] = Change(self.next(), at, gone)

    def take(self, kind: str, space: str, name: str, at: datetime, *, gone: bool = False) -> None:
        """A change that was made elsewhere."""
        self.changes[kind, space, name] = Change(self.next(), at, gone)

    def revive(self, kind: str, space: str, names: Iterable[str]) -> None:
        """Note that what was dropped is there again."""
        self.note(kind, space, [each for each in names if self.is_gone(kind, space, each)])

    def at(self, kind: str, space: str, name: str) -> datetime | None:
        found = self.changes.get((kind, space, name))
        return None if found is None else found.at

    def is_gone(self, kind: str, space: str, name: str) -> bool:
        found = self.changes.get((kind, space, name))
        return found is not None and found.gone

    def listed(self) -> list[SeenChange]:
        """All last changes, as those who follow them see them."""
        return [
            SeenChange(change.seq, change.at, "memory", "separated", name, space)
            if kind == "apart"
            else SeenChange(change.seq, change.at, kind, "dropped" if change.gone else "changed", name, space)  # type: ignore[arg-type]
            for (kind, space, name), change in self.changes.items()
        ]

    def since(self, kind: str, seq: int) -> set[tuple[str, str]]:
        """(space, name) of what changed after a number."""
        return {key[1:] for key, change in self.changes.items() if key[0] == kind and change.seq > seq}
