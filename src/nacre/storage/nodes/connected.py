"""The nodes of a store as one process reaches them. One that is away is asked again after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from nacre.errors import InvalidInput, SpaceMoved, StoreUnavailable
from nacre.runtime import forks
from nacre.storage.nodes.node import Node
from nacre.types.nodes import Member

T = TypeVar("T")

RETRY_S = 2.0  # after which a node that was away is asked again


class Connected:
    """One node. It is opened when it is first needed, and may be away then."""

    def __init__(self, address: str, opened: Callable[[], Node]) -> None:
        self.address = address
        self._opened = opened
        self._node: Node | None = None
        self._store_id = ""
        self._away_until = 0.0
        self._why = ""
        self.after_fork()
        forks.renew_in_child(self)

    def __repr__(self) -> str:
        return f"Connected({self.address!r})"

    def node(self) -> Node:
        """Raises StoreUnavailable, which names it, if it is away."""
        if time.monotonic() < self._away_until:
            raise StoreUnavailable(self._why)
        if self._node is None:
            with self._lock:
                if self._node is None:
                    try:
                        node = self._opened()
                    except StoreUnavailable as error:
                        self._away(error)
                        raise
                    self._store_id = node.store_id()
                    self._node = node
        return self._node

    @property
    def store_id(self) -> str:
        """Empty as long as the node has never answered."""
        return self._store_id

    @property
    def is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def asked(self, work: Callable[[Node], T]) -> T:
        """What a node answers. If it turns out to be away, it is not asked again for a while."""
        node = self.node()
        try:
            return work(node)
        except SpaceMoved:
            raise
        except StoreUnavailable as error:
            try:
                node.answers()
            except StoreUnavailable:
                self._away(error)
            raise

    def close(self) -> None:
        if self._node is not None:
            self._node.close()

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def _away(self, error: StoreUnavailable) -> None:
        self._why = str(error)
        self._away_until = time.monotonic() + RETRY_S


class View:
    """Snapshots of the nodes that a thread has read from inside a `view`, each opened when it is first needed."""

    def __init__(self) -> None:
        self._stacks: dict[Connected, ExitStack] = {}
        self._snapshots: dict[Connected, object] = {}
        self._checked: dict[Connected, set[str]] = {}

    @contextmanager
    def reading(self, of: Connected, spaces: Sequence[str]) -> Iterator[Node]:
        """The node, in its snapshot. Raises SpaceMoved if these spaces are not on it then."""
        node = of.node()
        if of not in self._snapshots:
            stack = ExitStack()
            self._snapshots[of] = stack.enter_context(node.snapshot())
            self._stacks[of], self._checked[of] = stack, set()
        try:
            with node.within(self._snapshots[of]):
                unchecked = set(spaces) - self._checked[of]
                if unchecked:
                    node.check_here(sorted(unchecked))
                    self._checked[of] |= unchecked
                yield node
        except (SpaceMoved, StoreUnavailable):  # the next reads need a later snapshot
            self._end(of)
            raise

    def close(self) -> None:
        with ExitStack() as every:
            for stack in self._stacks.values():
                every.push(stack)
        self._stacks.clear()

    def _end(self, of: Connected) -> None:
        del self._snapshots[of], self._checked[of]
        self._stacks.pop(of).close()


# ---------------------------------------------------------------- which nodes there are


def agreed_members(nodes: Sequence[Connected], *, create: bool) -> tuple[Member, ...]:
    """The nodes that the store has. New ones become one store. Raises InvalidInput unless these are all of them."""
    away: StoreUnavailable | None = None
    reached: dict[str, Connected] = {}
    for each in nodes:
        try:
            store_id = each.node().store_id()
        except StoreUnavailable as error:
            away = error
            continue
        if store_id in reached:
            raise InvalidInput(
                "store", f"{each.address} and {reached[store_id].address} are one node; name each node once"
            )
        reached[store_id] = each
    known = {store_id: each.node().members() for store_id, each in reached.items()}
    members = max(known.values(), key=len, default=())
    if away is not None and not members:
        raise away
    if not members:
        if not create:
            raise InvalidInput("store", "names nodes that are not one store yet; open them to write, first")
        members = _first_members(reached)
    _check_complete(members, reached, nodes)
    above = max(each.node().last_number() for each in reached.values())
    for store_id, each in reached.items():  # a process that added a node was killed before it had told this one
        if len(known[store_id]) < len(members) and not each.node().read_only:
            each.node().join(members, above)
    return members


def _first_members(reached: dict[str, Connected]) -> tuple[Member, ...]:
    """New stores, in the order of their ids, so that all processes agree whatever order they are named in."""
    filled = [each.address for each in reached.values() if not each.node().is_empty()]
    if filled:
        raise InvalidInput(
            "store",
            f"{filled[0]} is a store of its own and has memories; "
            "open it alone and add the others with `nacre nodes add`",
        )
    return tuple(Member(place, store_id, reached[store_id].address) for place, store_id in enumerate(sorted(reached)))


def _check_complete(members: Sequence[Member], reached: dict[str, Connected], nodes: Sequence[Connected]) -> None:
    ids = {each.store_id for each in members}
    for store_id, each in reached.items():
        if store_id not in ids:
            raise InvalidInput(
                "store", f"{each.address} is no node of this store; add it with `nacre nodes add`, or do not name it"
            )
    missing = [each.address for each in members if each.store_id not in reached]
    unknown = len(nodes) - len(reached)
    if len(missing) > unknown:
        raise InvalidInput(
            "store",
            f"names {len(nodes)} of {len(members)} nodes; name all of them, also {' and '.join(missing)}",
        )
    if len(missing) < unknown:
        raise InvalidInput("store", f"names {len(nodes)} nodes, and the store has {len(members)}; name these alone")
