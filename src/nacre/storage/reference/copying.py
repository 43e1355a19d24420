"""A reference store as the source or the target of a copy of all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nacre.storage import checksums
from nacre.storage.reference import transfer
from nacre.types.copying import (
    LOG_RECORDS,
    Checksums,
    CopyMark,
    CopyRecord,
    LogBegins,
    LogRecord,
    ReceiptRecord,
    TokenRecord,
    UsageRecord,
)
from nacre.types.transfer import ExportRequest, LoadCounts

if TYPE_CHECKING:
    from nacre.storage.reference.store import MemoryStore


class ReferenceCopying:
    """Implements `nacre.interfaces.StoreCopying`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def records(self, request: ExportRequest) -> Iterator[CopyRecord]:
        with self._store._lock:
            whole = checksums.of(_all_of(self._store, replace(request, since=0)))
            return iter([*_all_of(self._store, request), whole])

    def take(
        self, records: Sequence[CopyRecord], mark: CopyMark, model: str | None, token_model: str | None
    ) -> LoadCounts:
        store = self._store
        exported = [each for each in records if not isinstance(each, (*LOG_RECORDS, Checksums))]
        with store._lock:
            counts = transfer.load(store, exported, None, model, token_model) if exported else LoadCounts()
            for each in records:
                if isinstance(each, LOG_RECORDS):
                    self._take(each)
            store._copied[mark.source] = replace(mark, own=store._changes.last)
        return counts

    def _take(self, record: LogRecord) -> None:
        match record:
            case LogBegins():
                self._store._recall_log.clear_all()
                self._store._access_tokens.clear()
            case ReceiptRecord(receipt):
                self._store._recall_log.restore(receipt)
            case UsageRecord():
                self._store._recall_log.restore_usage(record)
            case TokenRecord(token, secret_hash):
                self._store._access_tokens[token.id] = token, secret_hash

    def checksums(self) -> Checksums:
        with self._store._lock:
            return checksums.of(_all_of(self._store, ExportRequest(datetime.now(UTC), vectors=True)))

    def mark(self, source: str) -> CopyMark | None:
        return self._store._copied.get(source)

    def changed_since(self, number: int) -> bool:
        store = self._store
        return any(each.seq > number for each in store._changes.changes.values()) or any(
            each.seq > number and each.memory_id and each.action != "expired" for each in store._events
        )


def _all_of(store: MemoryStore, request: ExportRequest) -> Iterator[CopyRecord]:
    yield from transfer.dump(store, request)
    yield LogBegins()
    yield from store._recall_log.records()
    for token in store.tokens():
        yield TokenRecord(*store._access_tokens[token.id])
