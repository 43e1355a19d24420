"""Receipts on several nodes: one is whole on the node of its own space, and others have a part of it.

A part has the deliveries of memories of its node, and no query. Every function runs inside a transaction that its
caller holds.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime

from nacre.analysis.quotations import Quotations
from nacre.ranking.usage import add
from nacre.storage.postgres import recall_log
from nacre.storage.postgres.connection import copy, fetch, run
from nacre.storage.postgres.recall_log import (
    DELIVERY_COLUMNS,
    DELIVERY_TYPES,
    delete_receipts,
    forget_quoting,
    lock,
    marked_now,
    standings,
    storable,
    write_usage,
)
from nacre.storage.postgres.rows import Key, columns_of, maybe_microseconds, microseconds, moment
from nacre.storage.postgres.schema import Db
from nacre.types.recall_log import Mark, Receipt, Retention, Usage


def record(db: Db, receipts: Sequence[Receipt], retention: Retention, now: datetime, parts: Container[str]) -> None:
    """Write receipts, of which some are parts, and complete those that are written."""
    known = recall_log.record(db, receipts, retention, now, parts)
    if known:
        complete(db, known)


def complete(db: Db, known: Sequence[Receipt]) -> None:
    """Add to receipts that are written what they delivered of spaces that they have nothing of.

    A space may have come from another node, with parts of receipts, before these are written here as a whole.
    """
    of_ids = "SELECT id, space, receipt, query FROM receipts WHERE id = ANY(%s)"
    stored = {each[0]: each[1:] for each in fetch(db, of_ids, ([each.id for each in known],))}
    known_of = standings(db, {delivery.memory_id for each in known for delivery in each.deliveries})
    there = (
        "SELECT d.space, d.receipt, d.memory_space, d.row "
        "FROM unnest(%s::text[], %s::bigint[]) AS given (space, receipt) "
        "JOIN deliveries AS d ON d.space = given.space AND d.receipt = given.receipt"
    )
    there_already = {
        each[:3] for each in fetch(db, there, columns_of((space, number) for space, number, _ in stored.values()))
    }
    usage_of: dict[Key, Usage] = {}
    new = []
    for receipt in storable(db, known, known_of):
        space, number, query = stored[receipt.id]
        if receipt.query and not query:
            run(
                db,
                "UPDATE receipts SET query = %s WHERE space = %s AND receipt = %s",
                (receipt.query, space, number),
            )
        for delivery in receipt.deliveries:
            standing = known_of[delivery.memory_id]
            key = standing.key
            if (space, number, key[0]) not in there_already:
                usage_of[key] = add(usage_of.get(key, standing.usage), "delivered", receipt.at)
                marks = map(maybe_microseconds, (delivery.opened, delivery.used, delivery.wrong))
                at_us = microseconds(receipt.at)
                new.append((space, number, *key, at_us, delivery.rank, float(delivery.score), *marks))
    if new:
        copy(db, f"deliveries ({DELIVERY_COLUMNS})", DELIVERY_TYPES, new)
        write_usage(db, usage_of)


def check_mark(db: Db, receipt_id: str | None, mark: Mark) -> None:
    """Raise what `mark` would raise."""
    marked_now(db, receipt_id, mark)


def purge_elsewhere(db: Db, receipt_ids: Sequence[str], quotations: Quotations, at: datetime) -> None:
    """The same where the memories are on another node, whose receipts these are."""
    lock(db, "receipts")
    lock(db, "log_bytes")
    run(db, "UPDATE receipts SET query = '' WHERE repeat AND query <> '' AND id = ANY(%s)", (list(receipt_ids),))
    delete_receipts(db, "NOT repeat AND id = ANY(%s)", (list(receipt_ids),))
    forget_quoting(db, quotations, at)


def delivering(db: Db, keys: Sequence[Key]) -> list[str]:
    """The ids of the receipts that delivered these memories."""
    sql = (
        "SELECT DISTINCT r.id FROM unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "JOIN deliveries AS d ON d.memory_space = given.space AND d.row = given.row "
        "JOIN receipts AS r ON r.space = d.space AND r.receipt = d.receipt"
    )
    return [receipt_id for (receipt_id,) in fetch(db, sql, columns_of(keys))]


def place_of(db: Db, receipt_id: str) -> tuple[str, datetime] | None:
    """The space and the time of a receipt."""
    found = fetch(db, "SELECT space, at_us FROM receipts WHERE id = %s", (receipt_id,))
    return (found[0][0], moment(found[0][1])) if found else None
