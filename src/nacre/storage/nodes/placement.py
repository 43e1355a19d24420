"""Which node has a space, and which space has a memory?

A process remembers where spaces are. It need not be right: the node itself refuses a space that has moved away, names
the node that has it now, and the process asks again. A memory never leaves its space, so that is remembered for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from nacre.errors import InvalidInput, StoreBusy, StoreUnavailable
from nacre.runtime.lru import LruCache
from nacre.storage.nodes.connected import Connected
from nacre.storage.nodes.node import Node
from nacre.types.nodes import Member

_IDS_CACHED = 100_000
_HOPS_MAX = 100  # from a node that a space has left to the one that has it


def ranked(space: str, members: Sequence[Member]) -> list[Member]:
    """The nodes in the order in which they would take a new space. A further node changes this for its share alone.

    It depends on the name and the numbers of the nodes alone, so it is the same for every store.
    """

    def weight(member: Member) -> bytes:
        return hashlib.sha256(f"{member.number}\x1f{space}".encode()).digest()

    return sorted(members, key=weight, reverse=True)


class Placement:
    """Safe to use from several threads."""

    def __init__(self, nodes: Sequence[Connected], members: Sequence[Member]) -> None:
        self._nodes = tuple(nodes)
        self._members = {each.store_id: each for each in members}
        self.home_id = min(members).store_id
        self._space_of: LruCache[str, str] = LruCache(_IDS_CACHED)
        self._known: dict[str, str] = {}  # by space, the id of a store

    # ---- nodes

    @property
    def members(self) -> list[Member]:
        return sorted(self._members.values())

    @property
    def home(self) -> Connected:
        """The node that has the directory, and what belongs to no space."""
        return self.connected(self.home_id)

    def connected(self, store_id: str) -> Connected:
        """Raises StoreUnavailable if it is away or is not among the nodes that were named."""
        for each in self._nodes:
            if each.store_id == store_id:
                return each
        if store_id not in self._members:
            raise InvalidInput(
                "store", f"a space is on a node that was added meanwhile ({store_id}); open the store with all nodes"
            )
        away: StoreUnavailable | None = None
        for each in self._nodes:
            if not each.store_id:
                try:
                    each.node()
                except StoreUnavailable as error:
                    away = error
                if each.store_id == store_id:
                    return each
        member = self._members[store_id]
        raise StoreUnavailable(f"store: node {member.number} ({member.address}) is away: {away}")

    # ---- spaces

    def of(self, spaces: Iterable[str]) -> dict[Connected, list[str]]:
        """By node, which of these spaces it has. Spaces that were never placed are missing."""
        named = list(dict.fromkeys(spaces))
        unknown = [each for each in named if each not in self._known]
        if unknown:
            self._look_up(unknown)
        found: dict[Connected, list[str]] = {}
        for each in named:
            store_id = self._known.get(each)
            if store_id is not None:
                found.setdefault(self.connected(store_id), []).append(each)
        return found

    def placing(self, spaces: Iterable[str]) -> dict[Connected, list[str]]:
        """The same; new spaces are placed."""
        named = list(dict.fromkeys(spaces))
        self.of(named)
        new = [each for each in named if each not in self._known]
        if new:
            self._place(new)
        return self.of(named)

    def forget(self, spaces: Iterable[str]) -> None:
        """Where these spaces are is not what was known. Ask the nodes."""
        for each in spaces:
            store_id = self._known.pop(each, None)
            if store_id is not None:
                self._known[each] = self._followed(each, store_id)

    def _look_up(self, spaces: Sequence[str]) -> None:
        try:
            found = self.home.asked(lambda node: node.directory(spaces))
        except StoreUnavailable as away:
            found = self._asked_of_all(spaces)
            if len(found) < len(spaces):
                missing = next(each for each in spaces if each not in found)
                raise StoreUnavailable(
                    f"{away}; without this node it is not known where space {missing!r} is"
                ) from away
        self._known.update(found)

    def _asked_of_all(self, spaces: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self.reachable():
            for space, placed in each.asked(lambda node: node.placements(spaces)).items():
                if placed.state == "here":
                    found[space] = each.store_id
        return found

    def _place(self, spaces: Sequence[str]) -> None:
        """On the first node that would take it and answers."""
        reachable = {each.store_id: each for each in self.reachable()}
        chosen = []
        for space in spaces:
            first = next((each for each in ranked(space, self.members) if each.store_id in reachable), None)
            chosen.append((space, self.home_id if first is None else first.store_id))
        given = self.home.asked(lambda node: node.assign(chosen))
        # Who follows the changes has seen all up to some number: those of a new space must come after it.
        last = max(each.asked(lambda node: node.last_change()) for each in reachable.values())
        for store_id in set(given.values()):
            ours = [space for space, other in given.items() if other == store_id]
            self.connected(store_id).asked(lambda node, ours=ours: _settle(node, ours, last))  # type: ignore[misc]
        self._known.update(given)

    def _followed(self, space: str, store_id: str) -> str:
        """The node that answers for a space, by what the nodes say themselves."""
        came_from = ""
        for _ in range(_HOPS_MAX):
            placed = self.connected(store_id).asked(lambda node: node.placements([space])).get(space)
            if placed is None:  # the process that placed it was killed before it was settled
                self.connected(store_id).asked(lambda node: node.settle([space]))
                return store_id
            if placed.state == "here":
                return store_id
            if placed.state == "arriving" and placed.other == came_from:  # which has given it away
                self.connected(store_id).asked(lambda node, source=placed.other: node.promote(space, source))  # type: ignore[misc]
                return store_id
            came_from, store_id = (store_id, placed.other) if placed.state == "gone" else ("", placed.other)
        raise StoreBusy(f"store: space {space!r} is being moved between nodes; try again")

    # ---- ids

    def remembered(self, ids: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """The spaces of memories that are known, and the other ids."""
        found = {each: space for each in ids if (space := self._space_of.get(each)) is not None}
        return found, [each for each in dict.fromkeys(ids) if each not in found]

    def remember(self, space_of: Mapping[str, str]) -> None:
        for memory_id, space in space_of.items():
            self._space_of.put(memory_id, space)

    def forget_memories(self, ids: Iterable[str]) -> None:
        for each in ids:
            self._space_of.pop(each)

    # ---- all nodes

    def reachable(self) -> list[Connected]:
        """The nodes that answer, as far as is known, in the order of their numbers."""
        found = []
        for each in self.members:
            try:
                connected = self.connected(each.store_id)
                connected.node()
            except StoreUnavailable:
                continue
            found.append(connected)
        return found

    def every(self) -> list[Connected]:
        """All nodes. Raises StoreUnavailable if one is away."""
        every = [self.connected(each.store_id) for each in self.members]
        for each in every:
            each.node()
        return every


def _settle(node: Node, spaces: Sequence[str], last_change: int) -> None:
    node.advance_changes(last_change)
    node.settle(spaces)
