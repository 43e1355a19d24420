"""Several nodes that are one store: which ones there are, and which of them has a space."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

PlacementState: TypeAlias = Literal["here", "arriving", "gone"]


class Member(NamedTuple):
    """A node of a store. Node 0 has the directory of spaces, and what belongs to no space."""

    number: int
    store_id: str
    address: str  # without its password


class Placed(NamedTuple):
    """What a node knows of a space.

    here: it answers for it; arriving: it is being copied from `other`, which answers for it; gone: `other` does.
    """

    state: PlacementState
    other: str = ""  # the id of another node's store


class NodeStatus(NamedTuple):
    """A node, what it answers for, and what is on its way to it. `problem`: why it does not answer."""

    number: int
    address: str
    spaces: int = 0
    memories: int = 0
    arriving: tuple[str, ...] = ()
    problem: str = ""


class Moved(NamedTuple):
    """A space that was moved, with the numbers of rows that were copied and were compared at the end."""

    space: str
    source: str
    target: str
    copied: int
    compared: int
