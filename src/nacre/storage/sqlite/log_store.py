"""The methods of the store for the recall log and the lenses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nacre.storage.sqlite import recall_log, rows
from nacre.storage.sqlite.connection import Connections
from nacre.storage.sqlite.writes import bump
from nacre.types.recall_log import Outcome, Receipt, ReceiptFilter

RECEIPTS_MAX = 1_000_000  # however young they are


class LogTables:
    """Implements `nacre.interfaces.LogStore`."""

    _connections: Connections

    def record(self, new: Sequence[Receipt], keep_from: datetime) -> None:
        with self._connections.writing(durable=False) as db:
            recall_log.record(db, new)
            recall_log.prune(db, keep_from, RECEIPTS_MAX)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
    ) -> list[str]:
        with self._connections.writing() as db:
            marked = recall_log.mark(db, receipt_id, memory_ids, outcome, at, session)
            if marked:
                bump(db)
            return marked

    def receipts(self, which: ReceiptFilter) -> list[Receipt]:
        with self._connections.reading() as db:
            return recall_log.listed(db, which)

    def delivered(self, sessions: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], dict[str, bool]]:
        with self._connections.reading() as db:
            return recall_log.delivered(db, sessions, limit)

    def put_lens(self, space: str, name: str, body: str) -> None:
        with self._connections.writing() as db:
            db.execute("INSERT OR REPLACE INTO lenses VALUES (?, ?, ?)", (space, name, body))
            bump(db)

    def drop_lens(self, space: str, name: str) -> bool:
        with self._connections.writing() as db:
            db.execute("DELETE FROM lenses WHERE space = ? AND name = ?", (space, name))
            gone = db.changes() > 0
            bump(db)
            return gone

    def lenses(self, space: str) -> dict[str, str]:
        with self._connections.reading() as db:
            return dict(rows.fetch(db, "SELECT name, body FROM lenses WHERE space = ? ORDER BY name", (space,)))
