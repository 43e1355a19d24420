"""A store in PostgreSQL as the source or the target of a copy of all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from nacre.errors import StoreUnavailable
from nacre.storage import checksums, copying
from nacre.storage.postgres import access_tokens, change_log, export, load, purging, recall_log, rows
from nacre.storage.postgres.connection import Connections, fetch, run, value
from nacre.storage.postgres.schema import Db
from nacre.types.copying import Checksums, CopyMark, CopyRecord, LogBegins, ReceiptRecord, TokenRecord, UsageRecord
from nacre.types.quotas import NO_QUOTAS
from nacre.types.recall_log import Delivery, Receipt, Usage
from nacre.types.transfer import ExportRequest, LoadCounts, Record

_CHUNK = 500  # receipts whose deliveries are read at once
_ROWS = 2_000  # that are fetched at once of a cursor


class PostgresCopying:
    """Implements `nacre.interfaces.StoreCopying`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def records(self, request: ExportRequest) -> Iterator[CopyRecord]:
        with export.snapshot(self._connections) as db:
            if db.checks_rows and value(db, "SELECT own_spaces()") is not None:
                raise StoreUnavailable(
                    f"store: the user of {self._connections.location} is bound to spaces, and a copy is about all of "
                    "them; name the owner, or a user who sees all"
                )
            yield from copying.sent(request, lambda asked: _all_of(db, asked))

    def take(
        self, records: Sequence[CopyRecord], mark: CopyMark, model: str | None, token_model: str | None
    ) -> LoadCounts:
        exported, log = copying.parted(records)
        if log is None:
            return self._connections.write(_take, exported, mark, model, token_model)
        if self._connections.write_alone(_take_log, log, mark):
            purging.vacuum(self._connections)
        return LoadCounts()

    def checksums(self) -> Checksums:
        with export.snapshot(self._connections) as db:
            return checksums.of(_all_of(db, ExportRequest(datetime.now(UTC), vectors=True)))

    def mark(self, source: str) -> CopyMark | None:
        return copying.mark_of(source, self._connections.read(rows.meta, copying.mark_name(source)))

    def changed_since(self, number: int) -> bool:
        sql = (
            "SELECT EXISTS (SELECT 1 FROM changes WHERE seq > %s) OR EXISTS "
            "(SELECT 1 FROM events WHERE seq > %s AND memory_id <> '' AND action <> 'expired')"
        )
        return bool(self._connections.read(value, sql, (number, number)))


def _take(db: Db, records: Sequence[Record], mark: CopyMark, model: str | None, token_model: str | None) -> LoadCounts:
    counts = load.load(db, records, None, model, token_model, NO_QUOTAS)
    _set_mark(db, mark)
    return counts


def _take_log(db: Db, log: copying.Log, mark: CopyMark) -> bool:
    """Returns whether queries were deleted."""
    gone = 0
    if log.begins:
        gone = recall_log.clear_all(db)
        run(db, "DELETE FROM access_tokens")
    recall_log.restore(db, log.receipts, log.usage)
    for each in log.tokens:
        access_tokens.add(db, each.token, each.secret_hash)
    _set_mark(db, mark)
    return gone > 0


def _set_mark(db: Db, mark: CopyMark) -> None:
    rows.set_meta(db, copying.mark_name(mark.source), copying.mark_text(mark, change_log.last(db)))


def _all_of(db: Db, request: ExportRequest) -> Iterator[CopyRecord]:
    yield from export.records(db, request)
    yield LogBegins()
    yield from _receipts(db)
    yield from _usage(db)
    for token in access_tokens.listed(db):
        found = access_tokens.with_hash(db, token.id)
        assert found is not None
        yield TokenRecord(*found)


def _receipts(db: Db) -> Iterator[ReceiptRecord]:
    sql = (
        "SELECT receipt, id, at_us, space, session, query, mode, lens, origin, repeat FROM receipts WHERE receipt > %s "
        "ORDER BY receipt LIMIT %s"
    )
    of_receipts = (
        "SELECT d.receipt, m.id, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us "
        "FROM unnest(%s::text[], %s::bigint[]) AS given (space, receipt) "
        "JOIN deliveries AS d ON d.space = given.space AND d.receipt = given.receipt "
        "JOIN memories AS m ON m.space = d.memory_space AND m.row = d.row ORDER BY d.receipt, d.rank, m.id"
    )
    last = 0
    while found := fetch(db, sql, (last, _CHUNK)):
        last = found[-1][0]
        deliveries: defaultdict[int, list[Delivery]] = defaultdict(list)
        keys = rows.columns_of((space, number) for number, _, _, space, *_ in found)
        for number, memory_id, rank, score, *marks in fetch(db, of_receipts, keys):
            deliveries[number].append(Delivery(memory_id, rank, score, *map(rows.maybe_moment, marks)))
        for number, receipt_id, at_us, space, session, query, mode, lens, origin, repeat in found:
            said = (receipt_id, rows.moment(at_us), space, session, query, mode, lens)
            yield ReceiptRecord(Receipt(*said, deliveries=tuple(deliveries[number]), origin=origin, repeat=repeat))


def _usage(db: Db) -> Iterator[UsageRecord]:
    sql = (
        "SELECT m.id, u.good, u.bad, u.seen, u.at_us, u.opened_us, u.used_us, u.wrong_us FROM usage AS u "
        "JOIN memories AS m ON m.space = u.space AND m.row = u.row"
    )
    with db.cursor(name="nacre_usage") as cursor:
        cursor.itersize = _ROWS
        cursor.execute(sql, binary=True)
        for memory_id, good, bad, seen, at_us, *earned in cursor:
            yield UsageRecord(memory_id, Usage(good, bad, seen, rows.moment(at_us)), *map(rows.maybe_moment, earned))
