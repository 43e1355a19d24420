"""A store in SQLite as the source or the target of a copy of all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import apsw

from nacre.storage import checksums, copying
from nacre.storage.sqlite import access_tokens, change_log, export, load, recall_log, rows, scrub
from nacre.storage.sqlite.connection import Connections
from nacre.types.copying import Checksums, CopyMark, CopyRecord, LogBegins, ReceiptRecord, TokenRecord, UsageRecord
from nacre.types.recall_log import Delivery, Receipt, Usage
from nacre.types.transfer import ExportRequest, LoadCounts

_CHUNK = 200  # receipts whose deliveries are read at once


class SqliteCopying:
    """Implements `nacre.interfaces.StoreCopying`."""

    def __init__(
        self, connections: Connections, writing: Callable[[], AbstractContextManager[apsw.Connection]]
    ) -> None:
        self._connections = connections
        self._writing = writing

    def records(self, request: ExportRequest) -> Iterator[CopyRecord]:
        with self._connections.reading(latest=True) as db:
            yield from copying.sent(request, lambda asked: _all_of(db, asked))

    def take(
        self, records: Sequence[CopyRecord], mark: CopyMark, model: str | None, token_model: str | None
    ) -> LoadCounts:
        exported, log = copying.parted(records)
        with self._writing() as db:
            counts = load.load(db, exported, None, model, token_model) if exported else LoadCounts()
            if log is not None:
                _write_log(db, log)
            rows.set_meta(db, copying.mark_name(mark.source), copying.mark_text(mark, change_log.last(db)))
        return counts

    def checksums(self) -> Checksums:
        with self._connections.reading(latest=True) as db:
            return checksums.of(_all_of(db, ExportRequest(datetime.now(UTC), vectors=True)))

    def mark(self, source: str) -> CopyMark | None:
        with self._connections.reading(latest=True) as db:
            return copying.mark_of(source, rows.meta(db, copying.mark_name(source)))

    def changed_since(self, number: int) -> bool:
        sql = (
            "SELECT EXISTS (SELECT 1 FROM changes WHERE seq > ?1) OR EXISTS "
            "(SELECT 1 FROM events WHERE seq > ?1 AND memory_id <> '' AND action <> 'expired')"
        )
        with self._connections.reading(latest=True) as db:
            return bool(db.execute(sql, (number,)).get)


def _all_of(db: apsw.Connection, request: ExportRequest) -> Iterator[CopyRecord]:
    yield from export.records(db, request)
    yield LogBegins()
    yield from _receipts(db)
    yield from _usage(db)
    for token in access_tokens.listed(db):
        found = access_tokens.with_hash(db, token.id)
        assert found is not None
        yield TokenRecord(*found)


def _receipts(db: apsw.Connection) -> Iterator[ReceiptRecord]:
    sql = (
        "SELECT receipt, id, at_us, space, session, query, mode, lens, origin, repeat FROM receipts WHERE receipt > ? "
        "ORDER BY receipt LIMIT ?"
    )
    of_receipts = (
        "SELECT d.receipt, m.id, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us FROM deliveries AS d "
        "JOIN memories AS m ON m.row = d.row WHERE d.receipt BETWEEN ? AND ? ORDER BY d.receipt, d.rank, m.id"
    )
    last = 0
    while found := rows.fetch(db, sql, (last, _CHUNK)):
        deliveries: dict[int, list[Delivery]] = {number: [] for number, *_ in found}
        first, last = found[0][0], found[-1][0]
        for number, memory_id, rank, score, *marks in rows.fetch(db, of_receipts, (first, last)):
            deliveries[number].append(Delivery(memory_id, rank, score, *map(rows.maybe_moment, marks)))
        for number, receipt_id, at_us, space, session, query, mode, lens, origin, repeat in found:
            said = (receipt_id, rows.moment(at_us), space, session, query, mode, lens)
            yield ReceiptRecord(
                Receipt(*said, deliveries=tuple(deliveries[number]), origin=origin, repeat=bool(repeat))
            )


def _usage(db: apsw.Connection) -> Iterator[UsageRecord]:
    sql = (
        "SELECT m.id, u.good, u.bad, u.seen, u.at_us, u.opened_us, u.used_us, u.wrong_us FROM usage AS u "
        "JOIN memories AS m ON m.row = u.row ORDER BY u.row"
    )
    for memory_id, good, bad, seen, at_us, *earned in db.execute(sql):
        yield UsageRecord(memory_id, Usage(good, bad, seen, rows.moment(at_us)), *map(rows.maybe_moment, earned))


def _write_log(db: apsw.Connection, log: copying.Log) -> None:
    if log.begins:
        if recall_log.count(db):
            scrub.request(db)  # queries leave the file, too
        recall_log.clear_all(db)
        db.execute("DELETE FROM access_tokens")
    recall_log.restore(db, log.receipts, log.usage)
    for each in log.tokens:
        access_tokens.add(db, each.token, each.secret_hash)
