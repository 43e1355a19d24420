"""The recall log and the lenses of the reference store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from nacre.storage.reference.recall_log import MemoryReceipts
from nacre.types.memory import Memory
from nacre.types.recall_log import Outcome, Receipt, ReceiptFilter


class MemoryLog(ABC):
    """Implements `nacre.interfaces.LogStore`."""

    _lock: threading.RLock
    _revision: int

    def __init__(self) -> None:
        self._receipts = MemoryReceipts(self._space_of)
        self._lenses: dict[tuple[str, str], str] = {}

    @abstractmethod
    def _memory(self, memory_id: str) -> Memory | None: ...

    def _space_of(self, memory_id: str) -> str | None:
        memory = self._memory(memory_id)
        return None if memory is None else memory.space

    def record(self, receipts: Sequence[Receipt], keep_from: datetime) -> None:
        with self._lock:
            self._receipts.record(receipts)
            self._receipts.prune(keep_from, 1_000_000)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
    ) -> list[str]:
        with self._lock:
            marked = self._receipts.mark(receipt_id, memory_ids, outcome, at, session)
            self._revision += bool(marked)
            return marked

    def receipts(self, which: ReceiptFilter) -> list[Receipt]:
        with self._lock:
            return self._receipts.listed(which)

    def delivered(self, sessions: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], dict[str, bool]]:
        with self._lock:
            found = {each: list(self._receipts.delivered(*each, self._as_now).items()) for each in sessions}
            return {each: dict(delivered[:limit]) for each, delivered in found.items() if delivered}

    def _as_now(self, memory_id: str, at: datetime) -> bool:
        """Whether a memory is live, and then was what it is now."""
        memory = self._memory(memory_id)
        return memory is not None and memory.deleted is None and memory.updated <= at

    def put_lens(self, space: str, name: str, body: str) -> None:
        with self._lock:
            self._lenses[space, name] = body
            self._revision += 1

    def drop_lens(self, space: str, name: str) -> bool:
        with self._lock:
            self._revision += 1
            return self._lenses.pop((space, name), None) is not None

    def lenses(self, space: str) -> dict[str, str]:
        with self._lock:
            return {name: body for (held, name), body in sorted(self._lenses.items()) if held == space}
