"""The recall log of the reference store, in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from nacre.analysis.quotations import Quotations
from nacre.errors import InvalidInput, NotFound
from nacre.ranking.usage import add, earns
from nacre.types.copying import ReceiptRecord, UsageRecord
from nacre.types.recall_log import (
    CONFIRMING_DAYS,
    MARK_WITHIN,
    PRUNED_SHARE,
    Delivery,
    Outcome,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
    Usage,
    logged_query,
)


class RecallLog:
    """The same functions as in `nacre.storage.sqlite.recall_log`. Its owner holds a lock around every call.

    `space_of` returns the space of a memory, or None if there is no memory of that id.
    """

    def __init__(self, space_of: Callable[[str], str | None]) -> None:
        self._space_of = space_of
        self._receipts: dict[str, Receipt] = {}
        self._number_of: dict[str, int] = {}  # in the order in which they were written
        self._size_of: dict[str, int] = {}  # when it was written
        self._usage: dict[str, Usage] = {}
        self._earned: dict[tuple[str, Outcome], datetime] = {}
        self._purged: datetime | None = None  # when memories were last purged

    def after(self, unwritten: Unwritten) -> RecallLog:
        """The log as it will be once this is written."""
        log = copy(self)
        log._receipts, log._number_of = dict(self._receipts), dict(self._number_of)
        log._size_of = dict(self._size_of)
        log._usage, log._earned = dict(self._usage), dict(self._earned)
        log.record(unwritten.receipts)
        for mark in unwritten.marks:
            for memory_id in mark.memory_ids:
                with suppress(NotFound, InvalidInput):  # nobody was given it
                    log.mark(None, [memory_id], mark.outcome, mark.at, mark.session, mark.origin)
        return log

    def record(self, receipts: Sequence[Receipt]) -> None:
        for receipt in receipts:
            if receipt.id in self._receipts:
                continue
            kept: dict[str, Delivery] = {}
            for delivery in receipt.deliveries:
                if self._space_of(delivery.memory_id) is not None:
                    kept.setdefault(delivery.memory_id, delivery)
            deliveries = tuple(sorted(kept.values(), key=lambda each: (each.rank, each.memory_id)))
            missing = any(self._space_of(each.memory_id) is None for each in receipt.deliveries)
            late = self._purged is not None and receipt.at < self._purged
            query = "" if missing or late else logged_query(receipt.query)
            self._receipts[receipt.id] = replace(receipt, query=query, deliveries=deliveries)
            self._size_of[receipt.id] = self._receipts[receipt.id].size_bytes
            self._number_of[receipt.id] = max(self._number_of.values(), default=0) + 1
            for memory_id in kept:
                self._usage[memory_id] = add(self._usage.get(memory_id), "delivered", receipt.at)

    def records(self) -> Iterator[ReceiptRecord | UsageRecord]:
        for receipt_id in sorted(self._receipts, key=self._number_of.__getitem__):
            yield ReceiptRecord(self._receipts[receipt_id])
        for memory_id, usage in self._usage.items():
            if self._space_of(memory_id) is not None:
                outcomes: tuple[Outcome, ...] = ("opened", "used", "wrong")
                yield UsageRecord(memory_id, usage, *(self._earned.get((memory_id, each)) for each in outcomes))

    def restore(self, receipt: Receipt) -> None:
        """Write a receipt as another store had it."""
        deliveries = tuple(each for each in receipt.deliveries if self._space_of(each.memory_id) is not None)
        self._receipts[receipt.id] = replace(receipt, deliveries=deliveries)
        self._size_of[receipt.id] = receipt.size_bytes
        self._number_of[receipt.id] = max(self._number_of.values(), default=0) + 1

    def restore_usage(self, record: UsageRecord) -> None:
        if self._space_of(record.memory_id) is None:
            return
        self._usage[record.memory_id] = record.usage
        earned: dict[Outcome, datetime | None] = {"opened": record.opened, "used": record.used, "wrong": record.wrong}
        self._earned |= {(record.memory_id, outcome): at for outcome, at in earned.items() if at is not None}

    def clear_all(self) -> None:
        for each in (self._receipts, self._number_of, self._size_of, self._usage, self._earned):
            each.clear()

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        ids = list(dict.fromkeys(memory_ids))
        missing = tuple(each for each in ids if self._space_of(each) is None)
        if missing:
            raise NotFound(missing)
        if receipt_id is not None and receipt_id not in self._receipts:
            raise InvalidInput("receipt", f"no receipt {receipt_id!r} is kept; see `nacre log`")
        delivered_by = {
            each: self._that_delivered(receipt_id, each) if receipt_id else self._latest(each, at, session, origin)
            for each in ids
        }
        new = []
        for memory_id in ids:
            receipt = self._receipts[delivered_by[memory_id]]
            (delivery,) = [each for each in receipt.deliveries if each.memory_id == memory_id]
            if _marked(delivery, outcome) is not None:
                continue
            new.append(memory_id)
            self._receipts[receipt.id] = _with_mark(receipt, memory_id, outcome, at)
            if earns(self._earned.get((memory_id, outcome)), at):
                self._earned[memory_id, outcome] = at
                self._usage[memory_id] = add(self._usage.get(memory_id), outcome, at, delivery.rank)
        return new

    def listed(self, which: ReceiptFilter) -> list[Receipt]:
        visible = [
            replace(receipt, deliveries=tuple(self._in_spaces(receipt.deliveries, which.spaces)))
            for receipt in self._newest_first()
            if receipt.space in which.spaces
        ]
        if which.before is not None:
            places = [place for place, receipt in enumerate(visible) if receipt.id == which.before]
            if not places:
                raise InvalidInput("before", f"no receipt {which.before!r} is kept; begin with the first page again")
            visible = visible[places[0] + 1 :]
        return [
            receipt
            for receipt in visible
            if which.session in (None, receipt.session)
            and (which.memory_id is None or any(each.memory_id == which.memory_id for each in receipt.deliveries))
        ][: which.limit]

    def last(self) -> int:
        return max((self._number_of[each] for each in self._receipts), default=0)

    def delivered(
        self, space: str, name: str, after: int, unchanged_since: Callable[[str, datetime], bool]
    ) -> list[str]:
        """The memories delivered to a session or a connection and unchanged since, the latest first."""
        asked = [
            each
            for each in self._newest_first()
            if each.space == space and name in (each.session, each.origin) and self._number_of[each.id] > after
        ]
        return list(_latest_first(asked, unchanged_since))

    def delivered_within(
        self,
        spaces: Sequence[str],
        session: str,
        period: tuple[datetime, datetime],
        unchanged_since: Callable[[str, datetime], bool],
    ) -> dict[str, bool]:
        """What a session was given in a period and since its last repeat, the latest first, and if it was opened."""
        since, until = period
        asked = [
            each
            for each in self._newest_first()
            if each.space in spaces and each.session == session and since < each.at <= until
        ]
        written = {each.id: (each.at, self._number_of[each.id]) for each in asked}
        begins = max((written[each.id] for each in asked if each.repeat), default=(since, 0))
        counting = [each for each in asked if written[each.id] >= begins]
        return _latest_first(counting, unchanged_since)

    def usage(self, memory_ids: Sequence[str]) -> dict[str, Usage]:
        return {each: self._usage[each] for each in memory_ids if each in self._usage}

    def prune(self, retention: Retention, now: datetime) -> int:
        before = len(self._receipts)
        latest_of = {
            each.at.astimezone(UTC).date(): each.at for each in reversed(self._newest_first()) if each.at <= now
        }
        latest = sorted(latest_of.values(), reverse=True)
        if len(latest) >= CONFIRMING_DAYS:
            keep_from = latest[CONFIRMING_DAYS - 1] - timedelta(days=retention.days)
            self._receipts = {each.id: each for each in self._receipts.values() if each.at >= keep_from}
        if self._size() > retention.bytes_max:
            least = retention.bytes_max - round(retention.bytes_max * PRUNED_SHARE)
            for receipt_id in sorted(self._receipts, key=self._number_of.__getitem__):
                if self._size() > least:
                    del self._receipts[receipt_id]
        return before - len(self._receipts)

    def _size(self) -> int:
        return sum(self._size_of[each] for each in self._receipts)

    def clear(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        kept = {
            receipt.id: receipt
            for receipt in self._receipts.values()
            if receipt.space not in spaces
            or session not in (None, receipt.session)
            or (before is not None and receipt.at >= before)
        }
        gone = len(self._receipts) - len(kept)
        self._receipts = kept
        return gone

    def count(self) -> int:
        return len(self._receipts)

    def purge(self, memory_ids: Sequence[str], quotations: Quotations, at: datetime) -> None:
        """Delete the receipts that delivered these memories, and clear the queries that quote them.

        A receipt with `repeat` stays without its query, so that what its session was given before still does not count.
        """
        self._purged = at if self._purged is None else max(at, self._purged)
        gone = set(memory_ids)
        for receipt in list(self._receipts.values()):
            kept = tuple(each for each in receipt.deliveries if each.memory_id not in gone)
            if len(kept) < len(receipt.deliveries):
                del self._receipts[receipt.id]
                if receipt.repeat:
                    self._receipts[receipt.id] = replace(receipt, query="", deliveries=kept)
        self._receipts = {
            each.id: replace(each, query="") if quotations.quoted_in(each.query) else each
            for each in self._receipts.values()
        }
        self._usage = {each: usage for each, usage in self._usage.items() if each not in gone}
        self._earned = {key: at for key, at in self._earned.items() if key[0] not in gone}

    # ---- inside

    def _newest_first(self) -> list[Receipt]:
        return sorted(self._receipts.values(), key=lambda each: (each.at, each.id), reverse=True)

    def _in_spaces(self, deliveries: Iterable[Delivery], spaces: Sequence[str]) -> list[Delivery]:
        return [each for each in deliveries if self._space_of(each.memory_id) in spaces]

    def _that_delivered(self, receipt_id: str, memory_id: str) -> str:
        if not _delivers(self._receipts[receipt_id], memory_id):
            raise InvalidInput("memory_id", f"receipt {receipt_id} did not deliver {memory_id}; see `nacre log`")
        return receipt_id

    def _latest(self, memory_id: str, at: datetime, session: str | None, origin: str | None) -> str:
        names = {session, origin} - {None}
        for receipt in self._newest_first():
            of_connection = origin is not None and receipt.origin == origin
            meant = not names or receipt.session in names or of_connection
            if meant and at - MARK_WITHIN <= receipt.at <= at and _delivers(receipt, memory_id):
                return receipt.id
        raise InvalidInput(
            "receipt", f"no search delivered {memory_id} in the last 24 hours; name one, see `nacre log`"
        )


def _latest_first(newest_first: Sequence[Receipt], unchanged_since: Callable[[str, datetime], bool]) -> dict[str, bool]:
    """What these receipts delivered and has not changed since, and whether one of them was opened."""
    latest: dict[str, datetime] = {}
    opened: dict[str, bool] = {}
    for receipt in newest_first:
        for each in receipt.deliveries:
            if unchanged_since(each.memory_id, receipt.at):
                latest.setdefault(each.memory_id, receipt.at)
                opened[each.memory_id] = opened.get(each.memory_id, False) or each.opened is not None
    return {each: opened[each] for each in sorted(latest, key=lambda each: (-latest[each].timestamp(), each))}


def _delivers(receipt: Receipt, memory_id: str) -> bool:
    return any(each.memory_id == memory_id for each in receipt.deliveries)


def _marked(delivery: Delivery, outcome: Outcome) -> datetime | None:
    return {"opened": delivery.opened, "used": delivery.used, "wrong": delivery.wrong}[outcome]


def _with_mark(receipt: Receipt, memory_id: str, outcome: Outcome, at: datetime) -> Receipt:
    def marked(delivery: Delivery) -> Delivery:
        match outcome:
            case "opened":
                return replace(delivery, opened=at)
            case "used":
                return replace(delivery, used=at)
            case "wrong":
                return replace(delivery, wrong=at)

    deliveries = [marked(each) if each.memory_id == memory_id else each for each in receipt.deliveries]
    return replace(receipt, deliveries=tuple(deliveries))
