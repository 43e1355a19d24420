"""The recall log: what searches delivered to whom, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import get_args

from nacre import validation
from nacre.engine.facts import FactService
from nacre.engine.log_writer import LogWriter
from nacre.engine.parts import Parts
from nacre.errors import InvalidInput, NotFound
from nacre.types.memory import Memory
from nacre.types.recall_log import Delivery, Outcome, Receipt, ReceiptFilter
from nacre.types.search import SearchRequest, SearchResult

LOG_DAYS = 90
DELIVERED_MINUTES = 60  # that a delivery counts: an agent compacts or clears its window and does not say so
DELIVERED_MAX = 1_000  # memories of a session that are looked back at, the latest first
OPENED_MAX = 100  # memories in one call: a caller that fetches more has not looked at each
WRONG_LEAVES = 0.5  # of the confidence in the facts of a memory that was wrong


@dataclass(frozen=True, slots=True)
class Opened:
    """Memories that were fetched in full."""

    memory_ids: tuple[str, ...]
    at: datetime
    session: str | None


class RecallLog:
    """Writes receipts beside the searches, and learns from what became of them. Without a writer nothing is logged."""

    def __init__(self, parts: Parts, facts: FactService, *, enabled: bool, days: int, delivered_minutes: int) -> None:
        self._parts = parts
        self._store = parts.store
        self._facts = facts
        self._days = days
        self._counts_for = timedelta(minutes=delivered_minutes)
        self._writer: LogWriter[Receipt | Opened] | None = LogWriter(self._write) if enabled else None

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
        validation.receipts(limit, session, self._parts.limits)
        self.flush()
        return self._store.receipts(
            ReceiptFilter(
                spaces=validation.spaces(spaces, self._parts.access, self._parts.limits),
                session=session,
                memory_id=memory_id,
                limit=limit,
                before=before,
            )
        )

    def clear(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        before = validation.clear_log(before, session, self._parts.limits)
        self.flush()
        return self._store.clear_receipts(
            validation.spaces(spaces, self._parts.access, self._parts.limits), session, before
        )

    def mark(self, ids: str | Sequence[str], outcome: Outcome, receipt: str | None) -> list[str]:
        if outcome not in get_args(Outcome):
            raise InvalidInput("outcome", f"{outcome!r} is unknown; allowed: {', '.join(get_args(Outcome))}")
        named = self._parts.ids(ids)
        self.flush()
        access = self._parts.access
        if receipt is not None and access.confined and named:
            try:
                self._store.receipts(ReceiptFilter(spaces=(access.space,), before=receipt, limit=1))
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
            query=request.query,
            mode=request.mode,
            lens=lens,
            deliveries=tuple(deliveries),
            origin=request.origin,
            repeat=repeat,
        )
        self._writer.note(receipt)
        return receipt.id

    def log_opened(self, memory_ids: tuple[str, ...], session: str | None) -> None:
        if self._writer is not None and len(memory_ids) <= OPENED_MAX:
            self._writer.note(Opened(memory_ids, self._parts.clock(), session))

    def mark_delivered(
        self, memory_id: str, outcome: Outcome, at: datetime, session: str | None, origin: str | None = None
    ) -> None:
        """Mark a memory if a search delivered it, to this session or connection if named; otherwise do nothing."""
        try:
            self._learn(self._store.mark(None, [memory_id], outcome, at, session, origin), outcome)
        except (InvalidInput, NotFound):
            return

    def _write(self, notes: Sequence[Receipt | Opened]) -> None:
        """Called by the log writer's thread, with notes in their order."""
        receipts = [each for each in notes if isinstance(each, Receipt)]
        if receipts:
            self._store.record(receipts, self._parts.clock() - timedelta(days=self._days))
        for each in notes:
            if isinstance(each, Opened):
                for memory_id in each.memory_ids:
                    self.mark_delivered(memory_id, "opened", each.at, each.session)

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
        self.flush()
        since = self._parts.clock() - self._counts_for
        return self._store.delivered_since(request.where.spaces, request.session, since, DELIVERED_MAX)

    def memories_delivered(self, sessions: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Memory]]:
        """By space and session or connection, the memories of that space that its searches gave, by id.

        These do not lapse, and a repeat does not end them: a text that an agent has lost from its window and finds in
        its notes is still a copy of a memory. They are kept as long as the log.
        """
        named = list(dict.fromkeys(sessions))
        if not named or self._writer is None:
            return {}
        self.flush()
        delivered = self._store.delivered(named, DELIVERED_MAX)
        memories = self._store.get([each for ids in delivered.values() for each in ids])
        return {
            (space, session): {
                each: memories[each] for each in ids if each in memories and memories[each].space == space
            }
            for (space, session), ids in delivered.items()
        }
