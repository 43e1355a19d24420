"""The recall log: what searches delivered to whom, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import get_args

from nacre import validation
from nacre.engine.facts import FactService
from nacre.engine.log_writer import LogWriter
from nacre.engine.parts import Parts
from nacre.errors import InvalidInput, NotFound
from nacre.types.recall_log import (
    NOTHING_UNWRITTEN,
    Delivery,
    Mark,
    Outcome,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
)
from nacre.types.search import SearchRequest, SearchResult

LOG_DAYS = 90
LOG_MEGABYTES = 100
DELIVERED_MINUTES = 60  # that a delivery counts: an agent compacts or clears its window and does not say so
DELIVERED_MAX = 1_000  # memories of a session that are looked back at, the latest first
OPENED_MAX = 100  # memories in one call: a caller that fetches more has not looked at each
WRONG_LEAVES = 0.5  # of the confidence in the facts of a memory that was wrong


class RecallLog:
    """Writes receipts beside the searches, and learns from what became of them. Without a writer nothing is logged."""

    def __init__(
        self, parts: Parts, facts: FactService, *, enabled: bool, retention: Retention, delivered_minutes: int
    ) -> None:
        self._parts = parts
        self._store = parts.store
        self._facts = facts
        self._retention = retention
        self._counts_for = timedelta(minutes=delivered_minutes)
        self._writer: LogWriter[Receipt | Mark] | None = LogWriter(self._write) if enabled else None

    @property
    def enabled(self) -> bool:
        return self._writer is not None

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    # ---- the verbs

    def receipts(
        self, spaces: Sequence[str], session: str | None, memory_id: str | None, limit: int, before: str | None
    ) -> list[Receipt]:
        within = validation.spaces(spaces, self._parts.access, self._parts.limits)
        asked = ReceiptFilter(spaces=within, session=session, memory_id=memory_id, limit=limit, before=before)
        checked = validation.receipts(asked, self._parts.limits)
        unwritten = self.unwritten()
        return self._store.receipts(checked, unwritten)

    def clear(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        before = validation.clear_log(before, session, self._parts.limits)
        self.flush()
        return self._store.clear_receipts(
            validation.spaces(spaces, self._parts.access, self._parts.limits), session, before
        )

    def mark(self, ids: str | Sequence[str], outcome: Outcome, receipt: str | None) -> list[str]:
        validation.choice("outcome", outcome, get_args(Outcome))
        named = self._parts.ids(ids)
        receipt = None if receipt is None else validation.looked_up("receipt", receipt)
        self.flush()
        spaces = self._parts.access.spaces
        if receipt is not None and spaces is not None and named:
            try:
                self._store.receipts(ReceiptFilter(spaces=spaces, before=receipt, limit=1))
            except InvalidInput:  # a receipt of another space, or none
                raise InvalidInput("receipt", f"no receipt {receipt!r} is kept; see `nacre log`") from None
        marked = self._store.mark(receipt, named, outcome, self._parts.clock())
        self._learn(marked, outcome)
        return marked

    # ---- writing

    def log_search(self, request: SearchRequest, result: SearchResult) -> SearchResult:
        """The result with the id of its receipt."""
        deliveries = [Delivery(hit.id, rank, hit.score) for rank, hit in enumerate(result.hits, 1)]
        return replace(result, receipt=self.log(request, result.lens, deliveries))

    def log(
        self, request: SearchRequest, lens: str | None, deliveries: Sequence[Delivery], *, repeat: bool = False
    ) -> str | None:
        """Queue a receipt and give its id; None where nothing is logged."""
        if self._writer is None:
            return None
        now = self._parts.clock()
        receipt = Receipt(
            id=self._parts.make_ids(now, 1)[0],
            at=now,
            space=request.where.spaces[0] if request.where.spaces else self._parts.access.space,
            session=request.session or request.origin,
            query=self._parts.screening.query(request.query),
            mode=request.mode,
            lens=lens,
            deliveries=tuple(deliveries),
            origin=request.origin,
            repeat=repeat,
        )
        self._note(receipt)
        return receipt.id

    def log_opened(self, memory_ids: tuple[str, ...], session: str | None) -> None:
        if len(memory_ids) <= OPENED_MAX:
            self._note(Mark(memory_ids, "opened", self._parts.clock(), session))

    def log_used(self, memory_ids: tuple[str, ...], session: str | None, origin: str | None) -> None:
        self._note(Mark(memory_ids, "used", self._parts.clock(), session, origin))

    def _note(self, note: Receipt | Mark) -> None:
        if self._writer is not None:
            self._writer.note(note)

    def unwritten(self) -> Unwritten:
        """What the log writer has still to write. A read asks for it first and for the log afterwards, and so misses
        nothing without waiting for anything."""
        notes = self._writer.unwritten() if self._writer is not None else ()
        if not notes:
            return NOTHING_UNWRITTEN
        return Unwritten(
            tuple(each for each in notes if isinstance(each, Receipt)),
            tuple(each for each in notes if isinstance(each, Mark)),
        )

    def _write(self, notes: Sequence[Receipt | Mark]) -> None:
        """Called by the log writer's thread, with notes in their order."""
        receipts = [each for each in notes if isinstance(each, Receipt)]
        if receipts:
            self._store.record(receipts, self._retention, self._parts.clock())
        for each in notes:
            if isinstance(each, Mark):
                for memory_id in each.memory_ids:
                    self._mark_delivered(memory_id, each)

    def _mark_delivered(self, memory_id: str, mark: Mark) -> None:
        """Mark a memory if a search delivered it, to this session or connection if named; otherwise do nothing."""
        try:
            marked = self._store.mark(None, [memory_id], mark.outcome, mark.at, mark.session, mark.origin)
        except (InvalidInput, NotFound):
            return
        self._learn(marked, mark.outcome)

    def _learn(self, marked: Sequence[str], outcome: Outcome) -> None:
        """Reinforce the facts of what was opened or used; halve the confidence in those of what was wrong."""
        facts = [each for several in self._store.facts_of(marked).values() for each in several] if marked else []
        if outcome != "wrong":
            self._facts.reinforce_all(facts, "recall")
        elif facts:
            self._store.update_confidence([replace(each, confidence=each.confidence * WRONG_LEAVES) for each in facts])

    # ---- what a session was given

    def delivered(self, request: SearchRequest) -> dict[str, bool] | None:
        """What the named session was given a short time ago, and whether it was opened; None where that is unknown.

        Only a session that the caller names counts. Agents that share a connection have windows of their own, and
        what one of them was given must not be hidden from another. The request is validated, so it names the spaces
        that it searches.
        """
        if request.session is None or self._writer is None:
            return None
        unwritten = self.unwritten()
        until = self._parts.clock()
        period = until - self._counts_for, until
        return self._store.delivered_within(request.where.spaces, request.session, period, DELIVERED_MAX, unwritten)
