"""The recall log on several nodes.

A receipt is on the node of its own space, with its query. On each other node that has memories which it delivered,
there is a part of it: without the query, with the deliveries of that node alone. So what becomes of a memory is counted
where the memory is, and nothing is written on two nodes in one transaction. Parts that a node did not take because it
was away are not written later: its memories count as not delivered then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from nacre.errors import InvalidInput, SpaceMoved, StoreUnavailable
from nacre.runtime import forks
from nacre.runtime.lru import LruCache
from nacre.storage.nodes import merging
from nacre.storage.nodes.connected import Connected
from nacre.storage.nodes.node import Node
from nacre.storage.nodes.router import Router
from nacre.types.recall_log import Mark, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten

T = TypeVar("T")

_NUMBERS_CACHED = 1_000


class NodesLog:
    def __init__(self, router: Router) -> None:
        self._router = router
        self._placement = router.placement
        self._numbers: LruCache[int, dict[str, int]] = LruCache(_NUMBERS_CACHED)  # of each node, by their sum
        self._last: dict[str, int] = {}
        self.after_fork()
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    # ---- writing

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        def write(receipts: Sequence[Receipt], parts: Set[str], node: Node) -> None:
            node.record_parts(receipts, parts, retention, now)

        def written() -> None:
            whole = set(self._placement.placing(each.space for each in receipts))
            split = self._split(receipts)
            everywhere = any(each.repeat for each in receipts)
            others = {*split.node_of.values(), *(self._placement.reachable() if everywhere else ())} - whole
            for each in (*others, *whole):  # a receipt that is whole is written: its parts are, too
                ours, parts = split.receipts(receipts, each)
                try:
                    if ours:
                        each.asked(partial(write, ours, parts))
                except SpaceMoved:
                    raise
                except StoreUnavailable:
                    if each in whole:
                        raise

        self._router.again(written)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None,
        origin: str | None,
    ) -> list[str]:
        router = self._router
        ids = list(dict.fromkeys(memory_ids))
        router.found(ids)
        if receipt_id is not None:
            knows = router.of_reachable(lambda node: node.receipt_place(receipt_id) is not None)
            if not any(knows.values()):
                raise InvalidInput("receipt", f"no receipt {receipt_id!r} is kept; see `nacre log`")
            for each, spaces in self._placement.of(router.found(ids).values()).items():
                if not knows.get(each, True):
                    first = next(one for one in ids if router.found([one])[one] in spaces)
                    raise InvalidInput("memory_id", f"receipt {receipt_id} did not deliver {first}; see `nacre log`")
        router.of_ids(ids, lambda node, own: node.check_mark(receipt_id, own, outcome, at, session, origin))
        marked = router.write_ids(ids, lambda node, own: node.mark(receipt_id, own, outcome, at, session, origin))
        new = {each for several in marked for each in several}
        return [each for each in ids if each in new]

    def clear(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        def clear(node: Node, own: list[str]) -> int:
            return node.clear_receipts(own, session, before)

        for each in self._placement.every():
            elsewhere = [space for space in spaces if space not in self._placement.of(spaces).get(each, ())]
            if elsewhere:
                each.asked(lambda node, elsewhere=elsewhere: node.clear_parts(elsewhere, session, before))  # type: ignore[misc]
        return sum(self._router.write(spaces, clear))

    # ---- reading

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten) -> list[Receipt]:
        place = self._place_before(which, unwritten)
        page = replace(which, before=None)

        told = self._unwritten(unwritten)
        found = self._of_owners(which.spaces, lambda node: node.receipts_before(place, page, told(node)))
        if which.memory_id is not None and found:
            ids = list(found)
            every = replace(page, memory_id=None, limit=len(ids))
            found = self._of_owners(which.spaces, lambda node: node.receipts_named(ids, every, told(node)))
        newest = sorted(found.values(), key=lambda each: (each.at, each.id), reverse=True)
        return newest[: which.limit]

    def last(self) -> int:
        """A number that grows with each receipt, of any node."""
        answered = self._router.of_reachable(lambda node: node.last_receipt())
        with self._lock:
            for each, number in answered.items():
                self._last[each.store_id] = max(number, self._last.get(each.store_id, 0))
            total = sum(self._last.values())
            known = self._numbers.get(total) or self._last
            self._numbers.put(total, {each: min(number, known.get(each, 0)) for each, number in self._last.items()})
        return total

    def delivered(
        self, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
    ) -> dict[tuple[str, str], list[str]]:
        numbers = self._numbers.get(after) or {}
        self._placement.of(space for space, _ in sessions)

        told = self._unwritten(unwritten)

        def read(node: Node) -> Mapping[tuple[str, str], Sequence[tuple[str, datetime]]]:
            return node.delivered_at(sessions, limit, told(node), numbers.get(node.store_id(), 0))

        found = merging.latest(self._router.of_reachable(read).values(), limit)
        return {each: found[each] for each in dict.fromkeys(sessions) if each in found}

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
    ) -> dict[str, bool]:
        self._placement.of(spaces)
        told = self._unwritten(unwritten)

        def read(node: Node) -> Mapping[str, tuple[bool, datetime]]:
            return node.delivered_within_at(spaces, session, period, limit, told(node))

        found = merging.joined(self._router.of_reachable(read).values())
        newest = sorted(sorted(found), key=lambda each: found[each][1], reverse=True)
        return {each: found[each][0] for each in newest[:limit]}

    # ---- inside

    def _split(self, receipts: Iterable[Receipt], marks: Iterable[Mark] = ()) -> _Split:
        listed = list(receipts)
        ids = [each.memory_id for one in listed for each in one.deliveries]
        ids += [each for mark in marks for each in mark.memory_ids]
        space_of = self._router.spaces_of(ids)
        spaces = {each.space for each in listed} | set(space_of.values())
        return _Split(
            space_of, {space: node for node, several in self._placement.of(spaces).items() for space in several}
        )

    def _unwritten(self, unwritten: Unwritten) -> Callable[[Node], Unwritten]:
        """What each node is told of what is unwritten."""
        if not unwritten.receipts and not unwritten.marks:
            return lambda _: unwritten
        split = self._split(unwritten.receipts, unwritten.marks)

        def of(node: Node) -> Unwritten:
            connected = self._placement.connected(node.store_id())
            return Unwritten(
                tuple(split.receipts(unwritten.receipts, connected)[0]), split.marks(unwritten.marks, connected)
            )

        return of

    def _of_owners(self, spaces: Iterable[str], read: Callable[[Node], list[Receipt]]) -> dict[str, Receipt]:
        """Receipts by id, of the nodes that have these spaces."""
        named = list(spaces)
        answers: list[tuple[set[str], list[Receipt]]] = self._router.of_spaces(
            named, lambda node, own: (set(own), read(node))
        )
        return merging.receipts(
            (answer for _, answer in answers), lambda receipt, place: receipt.space in answers[place][0]
        )

    def _place_before(self, which: ReceiptFilter, unwritten: Unwritten) -> tuple[datetime, str] | None:
        """The time and id of the receipt before which a page begins. Raises InvalidInput if there is no such."""
        before = which.before
        if before is None:
            return None
        for each in unwritten.receipts:
            if each.id == before and each.space in which.spaces:
                return each.at, each.id
        for place in self._router.of_spaces(which.spaces, lambda node, _: node.receipt_place(before)):
            if place is not None and place[0] in which.spaces:
                return place[1], before
        raise InvalidInput("before", f"no receipt {before!r} is kept; begin with the first page again")


class _Split(NamedTuple):
    """Where memories and spaces are, so that a receipt can be told to each node as far as it is about that node."""

    space_of: Mapping[str, str]  # of memories
    node_of: Mapping[str, Connected]  # of spaces

    def receipts(self, receipts: Sequence[Receipt], connected: Connected) -> tuple[list[Receipt], set[str]]:
        """What a node is given of receipts, and the ids of those that are only parts."""
        ours: list[Receipt] = []
        parts: set[str] = set()
        for receipt in receipts:
            is_whole = self.node_of.get(receipt.space) is connected
            # A memory that no node has was purged meanwhile: the log must not keep the query.
            deliveries = tuple(
                each
                for each in receipt.deliveries
                if (self._has(connected, each.memory_id) if each.memory_id in self.space_of else is_whole)
            )
            if is_whole:
                ours.append(replace(receipt, deliveries=deliveries))
            elif deliveries or receipt.repeat:
                ours.append(replace(receipt, deliveries=deliveries, query=""))
                parts.add(receipt.id)
        return ours, parts

    def marks(self, marks: Sequence[Mark], connected: Connected) -> tuple[Mark, ...]:
        given = [
            replace(mark, memory_ids=tuple(each for each in mark.memory_ids if self._has(connected, each)))
            for mark in marks
        ]
        return tuple(each for each in given if each.memory_ids)

    def _has(self, connected: Connected, memory_id: str) -> bool:
        return self.node_of.get(self.space_of.get(memory_id, "")) is connected


def purge(router: Router, ids: Sequence[str], at: datetime) -> str | None:
    """Purge memories on their nodes, after every node has forgotten what quotes them."""
    router.found(ids)
    known = forget_quoting(router, ids, at)
    said = router.write_ids(ids, lambda node, own: node.purge_knowing(own, at, known))
    router.placement.forget_memories(ids)
    return next((each for each in said if each is not None), None)


def forget_quoting(router: Router, ids: Sequence[str], at: datetime) -> set[str]:
    """Let every node forget what quotes memories that are about to be purged. Needs all nodes.

    Returns the words of these memories that others have.
    """
    every = router.placement.every()
    quoted = router.of_ids(ids, lambda node, own: node.quoted(own))
    texts = [text for each in quoted for text in each.texts]
    receipts = [receipt for each in quoted for receipt in each.receipts]
    words = {word for each in quoted for word in each.words}
    doubtful = {word for each in quoted for word in each.doubtful}
    known: set[str] = set()
    for each in every:
        known |= each.asked(lambda node: node.words_of_others(words, doubtful, ids))
    gone = words - known
    for each in every:
        answers = each is router.placement.home
        each.asked(lambda node, answers=answers: node.purge_elsewhere(receipts, texts, gone, at, answers=answers))  # type: ignore[misc]
    return known
