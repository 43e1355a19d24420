"""What became of what was found: the recall log, the marks on it, and what they teach; and the verbs for lenses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import get_args

from nacre import validation
from nacre.engine.facts import Knowing
from nacre.engine.log_writer import LogWriter
from nacre.errors import InvalidInput, NotFound
from nacre.query import lenses
from nacre.query.lenses import Lens
from nacre.types.recall_log import Delivery, Outcome, Receipt, ReceiptFilter
from nacre.types.search import SearchRequest, SearchResult

LOG_DAYS = 90
DELIVERED_MAX = 1_000  # memories of a session that are looked back at, the latest first
OPENED_MAX = 100  # memories in one call: who fetches more has not looked at each
WRONG_LEAVES = 0.5  # of the confidence in the facts of a memory that was wrong


@dataclass(frozen=True, slots=True)
class Opened:
    """Memories that were fetched in full."""

    memory_ids: tuple[str, ...]
    at: datetime
    session: str | None


class Learning(Knowing):
    """The verbs for the recall log and for lenses. What the log teaches is about facts, too."""

    _journal: LogWriter[Receipt | Opened] | None  # None: nothing is logged
    _log_days: int

    # ---- the log

    def receipts(
        self,
        *,
        spaces: Sequence[str] = (),
        session: str | None = None,
        memory_id: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Receipt]:
        """What searches delivered, the newest first. `before` is the id of the last receipt of the page before."""
        validation.receipts(limit, session, self._limits)
        self._flush()
        return self._store.receipts(
            ReceiptFilter(
                spaces=validation.spaces(spaces, self._space, self._limits),
                session=session,
                memory_id=memory_id,
                limit=limit,
                before=before,
            )
        )

    def mark(self, ids: str | Sequence[str], outcome: Outcome, receipt: str | None = None) -> list[str]:
        """Say that delivered memories were opened, used or wrong; gives those that were not marked so before.

        Without a receipt's id, the latest search that delivered each within a day is meant.
        """
        if outcome not in get_args(Outcome):
            raise InvalidInput("outcome", f"{outcome!r} is unknown; allowed: {', '.join(get_args(Outcome))}")
        named = self._ids(ids)
        self._flush()
        confined_to = self._limits.confined_to
        if receipt is not None and confined_to is not None and named:
            try:
                self._store.receipts(ReceiptFilter(spaces=(confined_to,), before=receipt, limit=1))
            except InvalidInput:  # of another space, or of none
                raise InvalidInput("receipt", f"no receipt {receipt!r} is kept; see `nacre log`") from None
        marked = self._store.mark(receipt, named, outcome, self._clock())
        self._learn(marked, outcome)
        return marked

    def _learn(self, marked: Sequence[str], outcome: Outcome) -> None:
        """Facts of what was opened or used fade a little less; those of what was wrong are believed less."""
        facts = [each for several in self._store.facts_of(marked).values() for each in several] if marked else []
        if outcome != "wrong":
            self._reinforced(facts, "recall")
        elif facts:
            self._store.believe([replace(each, confidence=each.confidence * WRONG_LEAVES) for each in facts])

    def _logged(self, request: SearchRequest, result: SearchResult) -> SearchResult:
        """The result with the id of its receipt."""
        deliveries = [Delivery(hit.id, rank, hit.score) for rank, hit in enumerate(result.hits, 1)]
        return replace(result, receipt=self._delivered(request, result.lens, deliveries))

    def _delivered(self, request: SearchRequest, lens: str | None, deliveries: Sequence[Delivery]) -> str | None:
        """The id of a receipt, which is written meanwhile; None where no log is kept."""
        if self._journal is None:
            return None
        now = self._clock()
        receipt = Receipt(
            id=self._make_ids(now, 1)[0],
            at=now,
            space=request.where.spaces[0] if request.where.spaces else self._space,
            session=request.session,
            query=request.query,
            mode=request.mode,
            lens=lens,
            deliveries=tuple(deliveries),
        )
        self._journal.note(receipt)
        return receipt.id

    def _opened(self, memory_ids: tuple[str, ...], session: str | None) -> None:
        if self._journal is not None and len(memory_ids) <= OPENED_MAX:
            self._journal.note(Opened(memory_ids, self._clock(), session))

    def _write_notes(self, notes: Sequence[Receipt | Opened]) -> None:
        """Called beside the callers of verbs, in the order of the notes."""
        receipts = [each for each in notes if isinstance(each, Receipt)]
        if receipts:
            self._store.record(receipts, self._clock() - timedelta(days=self._log_days))
        for each in notes:
            if isinstance(each, Opened):
                for memory_id in each.memory_ids:
                    self._became(memory_id, "opened", each.at, each.session)

    def _became(self, memory_id: str, outcome: Outcome, at: datetime, session: str | None) -> None:
        """Note what became of a memory, if a search delivered it, to this session where one is named."""
        try:
            self._learn(self._store.mark(None, [memory_id], outcome, at, session), outcome)
        except (InvalidInput, NotFound):
            return

    # ---- what a session was told

    def _delivered_before(self, asked: SearchRequest) -> dict[str, bool] | None:
        """What searches of the session that asks gave already, and whether it was opened. None: nobody knows."""
        if asked.session is None or self._journal is None:
            return None
        spaces = validation.search(asked, self._space, self._limits).where.spaces
        self._flush()
        found = self._store.delivered([(space, asked.session) for space in spaces], DELIVERED_MAX)
        delivered: dict[str, bool] = {}
        for each in found.values():
            delivered |= {memory_id: opened or delivered.get(memory_id, False) for memory_id, opened in each.items()}
        return delivered

    def _texts_delivered(self, sessions: Sequence[tuple[str, str | None]]) -> dict[tuple[str, str], dict[str, str]]:
        """By space and session, the texts that its searches gave, by id."""
        named = list(dict.fromkeys((space, session) for space, session in sessions if session is not None))
        if not named or self._journal is None:
            return {}
        self._flush()
        delivered = self._store.delivered(named, DELIVERED_MAX)
        memories = self._store.get([each for ids in delivered.values() for each in ids])
        return {
            (space, session): {
                each: memories[each].text for each in ids if each in memories and memories[each].space == space
            }
            for (space, session), ids in delivered.items()
        }

    def _flush(self) -> None:
        if self._journal is not None:
            self._journal.flush()

    # ---- lenses

    def save_lens(self, lens: Lens) -> Lens:
        """Keep a lens in the store's space, in place of one that has its name."""
        checked = lenses.checked(lens, self._limits)
        self._store.put_lens(self._space, checked.name, json.dumps(lenses.to_json(checked), ensure_ascii=False))
        return checked

    def drop_lens(self, name: str) -> None:
        if name in lenses.BUILT_IN:
            raise InvalidInput("name", f"{name} is built in and stays")
        if not self._store.drop_lens(self._space, name):
            raise NotFound((name,), "see `nacre lens list`", what="lens")

    def lens(self, name: str) -> Lens:
        found = {each.name: each for each in self.lenses()}.get(name)
        if found is None:
            raise NotFound((name,), "see `nacre lens list`", what="lens")
        return found

    def lenses(self) -> list[Lens]:
        """The built-in lenses, then those of the space, by name."""
        own = [lenses.from_json(json.loads(body)) for body in self._store.lenses(self._space).values()]
        return [*lenses.BUILT_IN.values(), *sorted(own, key=lambda each: each.name)]
