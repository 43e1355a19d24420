"""What a store must be able to do so that it can be one of several nodes.

A node answers for some spaces. It refuses to read or write another one (SpaceMoved), so that a process that remembers
an old place asks again. What it says of all its memories leaves out those that are on their way to it or from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from nacre.interfaces import Store
from nacre.types.nodes import Member, Placed
from nacre.types.recall_log import Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten


class Quoted(Protocol):
    """What a purge of memories has to forget on every node."""

    @property
    def texts(self) -> list[str]: ...

    @property
    def words(self) -> set[str]: ...

    @property
    def doubtful(self) -> set[str]: ...

    @property
    def receipts(self) -> list[str]: ...


class Node(Store, Protocol):
    @property
    def location(self) -> str: ...

    @property
    def read_only(self) -> bool: ...

    def store_id(self) -> str: ...

    def answers(self) -> None:
        """Raise StoreUnavailable if it is away."""

    # ---- the nodes, and what they keep together

    def members(self) -> tuple[Member, ...]:
        """All nodes that this one knows of, itself among them; none if it is alone."""

    def is_empty(self) -> bool:
        """Whether it has no space at all."""

    def join(self, every: Sequence[Member], above: int) -> None:
        """Be one of these nodes, and number what is written beyond `above`, as no other node does.

        Raises InvalidInput if it has memories, unless it is node 0.
        """

    def last_number(self) -> int: ...

    def adopt_models(self, model: str | None, token_model: str | None) -> tuple[str | None, str | None]:
        """Set the models of the store where it has none yet, and that of tokens only if the other is this one.

        Returns those that it has.
        """

    def follow_model(self, model: str) -> None:
        """`switch_model`, which another node has logged."""

    def last_change(self) -> int: ...

    def advance_changes(self, to: int) -> None:
        """Give every change that is not committed yet a number beyond this one."""

    def advance_rows(self, to: int) -> None:
        """Give every memory that is not written yet a row beyond this one."""

    # ---- which spaces are here

    def placements(self, spaces: Sequence[str]) -> dict[str, Placed]: ...

    def in_state(self, state: str) -> tuple[str, ...]: ...

    def check_here(self, spaces: Sequence[str]) -> None:
        """Raise SpaceMoved unless it answers for all of these spaces, as of the snapshot of the thread."""

    def settle(self, spaces: Sequence[str]) -> None:
        """Answer for new spaces, unless they were here before."""

    def promote(self, space: str, source: str) -> None:
        """Answer for a space that has arrived, which its source has given away."""

    def directory(self, spaces: Sequence[str]) -> dict[str, str]:
        """Of node 0: the stores that these spaces are on, as far as they were placed."""

    def assign(self, chosen: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Of node 0: place new spaces on these stores, unless they are placed already. Returns where they are."""

    def reassign(self, space: str, store_id: str) -> None: ...

    def spaces_of(self, ids: Sequence[str]) -> dict[str, str]:
        """By id, the spaces of memories that it has, also where it does not answer for them."""

    def spaces_of_facts(self, ids: Sequence[str]) -> dict[str, str]: ...

    # ---- snapshots that several threads take turns with

    def snapshot(self) -> AbstractContextManager[object]: ...

    def within(self, snapshot: object) -> AbstractContextManager[None]:
        """Let the calling thread read in a snapshot. Only one thread at a time may."""

    def holding(self, spaces: Sequence[str]) -> AbstractContextManager[None]:
        """Writes of the calling thread raise SpaceMoved unless the node answers for all of these spaces."""

    def confirming(self, confirm: Callable[[], None]) -> AbstractContextManager[None]:
        """Writes of the calling thread call this last. If it raises, they store nothing."""

    # ---- the recall log, and purges

    def record_parts(
        self, receipts: Sequence[Receipt], parts: Collection[str], retention: Retention, now: datetime
    ) -> None:
        """`record`; `parts` are the ids of receipts that belong to other nodes and delivered memories of this one."""

    def check_mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None,
        origin: str | None,
    ) -> None:
        """Raise what `mark` would raise."""

    def receipts_named(self, ids: Sequence[str], which: ReceiptFilter, unwritten: Unwritten) -> list[Receipt]: ...

    def receipts_before(
        self, place: tuple[datetime, str] | None, which: ReceiptFilter, unwritten: Unwritten
    ) -> list[Receipt]:
        """`receipts`, those before a time and an id."""

    def receipt_place(self, receipt_id: str) -> tuple[str, datetime] | None:
        """The space and the time of a receipt."""

    def delivered_at(
        self, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
    ) -> Mapping[tuple[str, str], Sequence[tuple[str, datetime]]]:
        """`delivered`, with the time of the latest delivery of each."""

    def delivered_within_at(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
    ) -> Mapping[str, tuple[bool, datetime]]:
        """`delivered_within`, with the same."""

    def clear_parts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> None:
        """`clear_receipts` of spaces of other nodes."""

    def quoted(self, ids: Sequence[str]) -> Quoted: ...

    def words_of_others(self, words: Set[str], doubtful: Set[str], ids: Sequence[str]) -> set[str]:
        """Those of these words that live memories here have, besides these ones, or that something says of others."""

    def purge_knowing(self, ids: Sequence[str], at: datetime, known: Set[str]) -> str | None:
        """`purge`, where other nodes have memories with these words."""

    def purge_elsewhere(
        self, receipts: Sequence[str], texts: Sequence[str], gone: Set[str], at: datetime, *, answers: bool
    ) -> None:
        """Forget what quotes memories of another node, which these receipts delivered. `answers`: also kept answers."""
