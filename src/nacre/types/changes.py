"""What changed in a store, in the order of the changes: for those who keep a view of it up to date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

ChangeKind: TypeAlias = Literal["memory", "fact", "entity", "update", "lens"]


@dataclass(frozen=True, slots=True)
class Change:
    """An event of a memory, or the latest change of what belongs to memories. `seq` grows with each change of a store.

    `name` is the id of a memory or fact, the name of a lens, a name of an entity as names are compared, or the ids of
    the newer and the older memory of an update, with a space between. Of a memory, `action` is that of its event, or
    "separated"; of all else it is "changed" or "dropped". What is remembered or purged with a memory has no change of
    its own.
    """

    seq: int
    at: datetime
    kind: ChangeKind
    action: str
    name: str
    space: str


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes after a number, the oldest first. `seq` is the number to go on from; `more`: others follow already."""

    changes: tuple[Change, ...]
    seq: int
    more: bool = False
