"""The recall log in PostgreSQL. Every function runs inside a transaction that its caller holds.

`usage` is a running sum: it outlives the receipts that it was computed from. Receipts are deleted without their spaces
being held, since those of all spaces share one size; who deletes any holds the counter of that size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from nacre.analysis.quotations import Quotations
from nacre.errors import InvalidInput, NotFound
from nacre.ranking.usage import add, earns
from nacre.storage.postgres import counters
from nacre.storage.postgres.connection import copy, fetch, hold, hold_unchecked, run, value
from nacre.storage.postgres.rows import Key, columns_of, maybe_microseconds, maybe_moment, meta, microseconds, moment
from nacre.storage.postgres.schema import Db
from nacre.types.copying import UsageRecord
from nacre.types.recall_log import (
    CONFIRMING_DAYS,
    MARK_WITHIN,
    NOTHING_UNWRITTEN,
    PRUNED_SHARE,
    RECEIPT_BYTES,
    Delivery,
    Mark,
    Outcome,
    Period,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
    Usage,
    logged_query,
)

_DAY_US = 86_400_000_000
_AFTER_ALL = 1 << 62  # numbers of receipts that are still to be written
_PURGED = "purged_us"  # in `meta`: when memories were last purged
_MARKS: dict[Outcome, str] = {"opened": "opened_us", "used": "used_us", "wrong": "wrong_us"}
_STREAMED_ROWS = 1_000

RECEIPT_COLUMNS = "space, receipt, id, at_us, session, query, mode, lens, origin, repeat, bytes"
RECEIPT_TYPES = ("text", "int8", "text", "int8", "text", "text", "text", "text", "text", "bool", "int4")
DELIVERY_COLUMNS = "space, receipt, memory_space, row, at_us, rank, score, opened_us, used_us, wrong_us"
DELIVERY_TYPES = ("text", "int8", "text", "int8", "int8", "int4", "float8", "int8", "int8", "int8")

_STANDINGS = """
SELECT m.id, m.space, m.row, u.good, u.bad, u.seen, u.at_us, u.opened_us, u.used_us, u.wrong_us
FROM memories AS m LEFT JOIN usage AS u ON u.space = m.space AND u.row = m.row WHERE m.id = ANY(%s)
"""
_WRITE_USAGE = """
INSERT INTO usage (space, row, good, bad, seen, at_us)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::float8[], %s::float8[], %s::float8[], %s::bigint[])
ON CONFLICT (space, row) DO UPDATE SET good = excluded.good, bad = excluded.bad, seen = excluded.seen,
  at_us = excluded.at_us
"""
# By number of a mark, the latest receipt that it means: one that delivered the memory in the day before.
_LATEST = """
SELECT given.place, r.space, r.receipt, r.at_us, r.id
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY
  AS given (space, row, since_us, until_us, session, origin, place)
CROSS JOIN LATERAL (
  SELECT r.space, r.receipt, r.at_us, r.id FROM deliveries AS d
  JOIN receipts AS r ON r.space = d.space AND r.receipt = d.receipt
  WHERE d.memory_space = given.space AND d.row = given.row AND d.at_us BETWEEN given.since_us AND given.until_us
  AND (coalesce(given.session, given.origin) IS NULL OR r.session IN (given.session, given.origin)
    OR r.origin = given.origin)
  ORDER BY d.at_us DESC, r.id DESC LIMIT 1
) AS r
"""
# The days before `now` on which there are receipts, the latest first: of each, when the last one was written.
_LATEST_OF_DAYS = f"""
WITH RECURSIVE days (latest, place) AS (
  SELECT (SELECT max(at_us) FROM receipts WHERE at_us <= %(now)s), 1
  UNION ALL SELECT (
    SELECT max(at_us) FROM receipts
    WHERE at_us < latest - ((latest %% {_DAY_US}) + {_DAY_US}) %% {_DAY_US}
  ), place + 1 FROM days WHERE place < {CONFIRMING_DAYS} AND latest IS NOT NULL
)
SELECT latest FROM days WHERE place = {CONFIRMING_DAYS}
"""
_FIRST_WRITTEN = """
SELECT max(receipt) FROM (
  SELECT receipt, sum(bytes) OVER (ORDER BY receipt) - bytes AS before
  FROM (SELECT receipt, bytes FROM receipts ORDER BY receipt LIMIT %s) AS first
) AS summed WHERE before < %s
"""
_DELIVERED = """
SELECT asked.place, latest.id, latest.at_us FROM unnest(%(spaces)s::text[], %(names)s::text[]) WITH ORDINALITY
  AS asked (space, name, place)
CROSS JOIN LATERAL (
  SELECT m.id, max(d.at_us) AS at_us FROM (
    SELECT d.memory_space, d.row, d.at_us FROM receipts AS r
    JOIN deliveries AS d ON d.space = r.space AND d.receipt = r.receipt
    WHERE r.space = asked.space AND r.session = asked.name AND r.receipt > %(after)s
    UNION ALL SELECT d.memory_space, d.row, d.at_us FROM receipts AS r
    JOIN deliveries AS d ON d.space = r.space AND d.receipt = r.receipt
    WHERE r.space = asked.space AND r.origin = asked.name AND r.receipt > %(after)s
    UNION ALL SELECT n.space, n.row, given.at_us
    FROM unnest(%(places)s::bigint[], %(ids)s::text[], %(times)s::bigint[]) AS given (place, id, at_us)
    JOIN memories AS n ON n.id = given.id WHERE given.place = asked.place
  ) AS d JOIN memories AS m ON m.space = d.memory_space AND m.row = d.row
  WHERE m.deleted_us IS NULL AND d.at_us >= m.updated_us
  GROUP BY m.id ORDER BY max(d.at_us) DESC, m.id LIMIT %(limit)s
) AS latest ORDER BY asked.place, latest.at_us DESC, latest.id
"""
_DELIVERED_WITHIN = """
WITH written AS (
  SELECT space, receipt, at_us, repeat FROM receipts
  WHERE space = ANY(%(spaces)s) AND session = %(session)s AND at_us > %(since)s AND at_us <= %(until)s
), unwritten AS (
  SELECT * FROM unnest(%(numbers)s::bigint[], %(times)s::bigint[], %(repeats)s::boolean[])
    AS given (number, at_us, repeat)
), repeated AS (
  SELECT at_us, number FROM (
    SELECT at_us, receipt AS number FROM written WHERE repeat
    UNION ALL SELECT at_us, number FROM unwritten WHERE repeat
  ) AS every ORDER BY at_us DESC, number DESC LIMIT 1
), delivered AS (
  SELECT w.receipt AS number, w.at_us, d.memory_space AS space, d.row, d.opened_us IS NOT NULL AS opened
  FROM written AS w JOIN deliveries AS d ON d.space = w.space AND d.receipt = w.receipt
  UNION ALL SELECT u.number, u.at_us, n.space, n.row, given.opened
  FROM unnest(%(of)s::bigint[], %(ids)s::text[], %(opened)s::boolean[]) AS given (number, id, opened)
  JOIN unwritten AS u ON u.number = given.number JOIN memories AS n ON n.id = given.id
), marked AS (SELECT * FROM unnest(%(marked)s::bigint[], %(marked_ids)s::text[]) AS given (number, id))
SELECT m.id, bool_or(d.opened OR EXISTS (SELECT 1 FROM marked AS k WHERE k.number = d.number AND k.id = m.id)),
  max(d.at_us)
FROM delivered AS d JOIN memories AS m ON m.space = d.space AND m.row = d.row
WHERE NOT EXISTS (SELECT 1 FROM repeated AS l WHERE (l.at_us, l.number) > (d.at_us, d.number))
AND m.deleted_us IS NULL AND d.at_us >= m.updated_us
GROUP BY m.id ORDER BY max(d.at_us) DESC, m.id LIMIT %(limit)s
"""


# ---------------------------------------------------------------- verbs: they hold the spaces that they write to


def record(
    db: Db, receipts: Sequence[Receipt], retention: Retention, now: datetime, parts: Container[str] | None = None
) -> list[Receipt]:
    """Write receipts, and delete those that are not to be kept any more.

    A receipt that is stored already is skipped, so a write can be retried. One that is written only after a purge, as
    by another process, may quote what was purged: it loses its query. `parts` are the ids of those whose space is on
    another node: they are here because memories of this node were delivered. Returns those that were stored already.
    """
    named = list(dict.fromkeys(each.memory_id for receipt in receipts for each in receipt.deliveries))
    own = {each.space for each in receipts if parts is None or each.id not in parts}
    if parts is not None:
        hold_unchecked(db, {each.space for each in receipts} | _spaces_of(db, named))
    _hold(db, named, own)
    if parts is not None:
        lock(db, "receipts")
    new = _unknown(db, receipts)
    _write(db, new, named)
    _prune(db, retention, now)
    return [each for each in receipts if each not in new]


def restore(db: Db, receipts: Sequence[Receipt], usages: Sequence[UsageRecord]) -> None:
    """Write receipts and usage as another store had them, while nobody else writes.

    What is about memories that are not here is left out.
    """
    named = {each.memory_id for receipt in receipts for each in receipt.deliveries} | {
        each.memory_id for each in usages
    }
    sql = "SELECT id, space, row FROM memories WHERE id = ANY(%s)"
    key_of = {memory_id: (space, row) for memory_id, space, row in fetch(db, sql, (list(named),))}
    first = counters.take(db, "receipts", len(receipts))
    copy(
        db,
        f"receipts ({RECEIPT_COLUMNS})",
        RECEIPT_TYPES,
        (
            (
                *(each.space, number, each.id, microseconds(each.at), each.session, each.query, each.mode, each.lens),
                *(each.origin, each.repeat, each.size_bytes),
            )
            for number, each in enumerate(receipts, first)
        ),
    )
    copy(
        db,
        f"deliveries ({DELIVERY_COLUMNS})",
        DELIVERY_TYPES,
        (
            (
                *(receipt.space, number, *key_of[each.memory_id], microseconds(receipt.at), each.rank),
                *(float(each.score), *map(maybe_microseconds, (each.opened, each.used, each.wrong))),
            )
            for number, receipt in enumerate(receipts, first)
            for each in receipt.deliveries
            if each.memory_id in key_of
        ),
    )
    copy(
        db,
        "usage (space, row, good, bad, seen, at_us, opened_us, used_us, wrong_us)",
        ("text", "int8", "float8", "float8", "float8", "int8", "int8", "int8", "int8"),
        (
            (
                *(*key_of[each.memory_id], *map(float, each.usage[:3]), microseconds(each.usage.at)),
                *map(maybe_microseconds, (each.opened, each.used, each.wrong)),
            )
            for each in usages
            if each.memory_id in key_of
        ),
    )
    grow(db, sum(each.size_bytes for each in receipts))
    counters.bump_revision(db)


def clear_all(db: Db) -> int:
    """Delete all receipts and usage, while nobody else writes. Returns how many receipts there were."""
    run(db, "DELETE FROM usage")
    return delete_receipts(db, "true", ())


def mark(
    db: Db,
    receipt_id: str | None,
    memory_ids: Sequence[str],
    outcome: Outcome,
    at: datetime,
    session: str | None = None,
    origin: str | None = None,
) -> list[str]:
    """Mark delivered memories with an outcome. Returns those that did not have this mark before.

    Without `receipt_id`, the latest delivery of each memory (to `session` or `origin`, if given) in the 24 hours before
    `at` is marked. Raises NotFound for an unknown memory, InvalidInput for an unknown receipt or one that did not
    deliver it. Bumps the revision if any mark is new.
    """
    ids = list(dict.fromkeys(memory_ids))
    _hold(db, ids, ())
    known, delivered_by = marked_now(db, receipt_id, Mark(tuple(ids), outcome, at, session, origin))
    key_of = {each: known[each].key for each in ids}
    column, at_us = _MARKS[outcome], microseconds(at)
    sql = (
        f"UPDATE deliveries AS d SET {column} = %s "
        "FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[]) AS given (space, receipt, memory_space, row) "
        "WHERE d.space = given.space AND d.receipt = given.receipt AND d.memory_space = given.memory_space "
        f"AND d.row = given.row AND d.{column} IS NULL RETURNING d.memory_space, d.row, d.rank"
    )
    marked = (*columns_of(delivered_by[each] for each in ids), *columns_of(key_of[each] for each in ids))
    rank_of = {(space, row): rank for space, row, rank in fetch(db, sql, (at_us, *marked))}
    new = [each for each in ids if key_of[each] in rank_of]
    earning = [known[each] for each in new if earns(known[each].earned(outcome), at)]
    if earning:
        write_usage(db, {each.key: add(each.usage, outcome, at, rank_of[each.key]) for each in earning})
        run(
            db,
            f"UPDATE usage AS u SET {column} = %s FROM unnest(%s::text[], %s::bigint[]) AS given (space, row) "
            "WHERE u.space = given.space AND u.row = given.row",
            (at_us, *columns_of(each.key for each in earning)),
        )
    if new:
        counters.bump_revision(db)
    return new


def clear(db: Db, spaces: Sequence[str], session: str | None, before: datetime | None, *, parts: bool = False) -> int:
    """Delete receipts of these spaces, of one session or from before a time where given. Returns how many.

    With `parts`, the spaces are on another node.
    """
    (hold_unchecked if parts else hold)(db, spaces)
    conditions: list[str] = ["space = ANY(%s)"]
    parameters: list[Any] = [list(spaces)]
    for condition, given in (("session = %s", session), ("at_us < %s", maybe_microseconds(before))):
        if given is not None:
            conditions.append(condition)
            parameters.append(given)
    return delete_receipts(db, " AND ".join(conditions), parameters)


# ---------------------------------------------------------------- a part of a purge


def purge(db: Db, keys: Sequence[Key], quotations: Quotations, at: datetime) -> None:
    """Delete the receipts that delivered these memories, and clear the queries that quote them.

    A receipt with `repeat` stays without its query, so that what its session was given before still does not count.
    Nobody writes a receipt meanwhile: who does later finds the time of the purge.
    """
    lock(db, "receipts")
    lock(db, "log_bytes")
    given = columns_of(keys)
    delivering = (
        "(space, receipt) IN (SELECT d.space, d.receipt FROM unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "JOIN deliveries AS d ON d.memory_space = given.space AND d.row = given.row)"
    )
    run(db, f"UPDATE receipts SET query = '' WHERE repeat AND query <> '' AND {delivering}", given)
    delete_receipts(db, f"NOT repeat AND {delivering}", given)
    run(
        db,
        "DELETE FROM deliveries AS d USING unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "WHERE d.memory_space = given.space AND d.row = given.row",
        given,
    )
    forget_quoting(db, quotations, at)


def forget_quoting(db: Db, quotations: Quotations, at: datetime) -> None:
    with db.cursor(name="nacre_queries") as cursor:
        cursor.itersize = _STREAMED_ROWS
        cursor.execute("SELECT DISTINCT query FROM receipts WHERE query <> ''", binary=True)
        quoting = [query for (query,) in cursor if quotations.quoted_in(query)]
    if quoting:
        run(db, "UPDATE receipts SET query = '' WHERE query = ANY(%s)", (quoting,))
    run(
        db,
        "INSERT INTO meta AS m VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = "
        "greatest(m.value::bigint, excluded.value::bigint)::text",
        (_PURGED, str(microseconds(at))),
    )


# ---------------------------------------------------------------- reading


def listed(
    db: Db,
    which: ReceiptFilter,
    unwritten: Unwritten = NOTHING_UNWRITTEN,
    ids: Sequence[str] | None = None,
    before: tuple[datetime, str] | None = None,
) -> list[Receipt]:
    """Receipts ordered by (time, id), the newest first, with those that are still to be written.

    `ids`: only these. `before`: only those before this time and id.
    """
    new = [each for each in _numbered(db, unwritten) if ids is None or each[1].id in ids]
    spaces = list(which.spaces)
    conditions: list[str] = ["r.space = ANY(%s)"]
    parameters: list[Any] = [spaces]
    if which.session is not None:
        conditions.append("r.session = %s")
        parameters.append(which.session)
    if which.memory_id is not None:
        conditions.append(
            "(r.space, r.receipt) IN (SELECT d.space, d.receipt FROM memories AS m JOIN deliveries AS d "
            "ON d.memory_space = m.space AND d.row = m.row WHERE m.id = %s AND m.space = ANY(%s))"
        )
        parameters += [which.memory_id, spaces]
    if ids is not None:
        conditions.append("r.id = ANY(%s)")
        parameters.append(list(ids))
    place = None if before is None else (microseconds(before[0]), before[1])
    if which.before is not None:
        place = _place(db, which.before, which.spaces, new)
    if place is not None:
        conditions.append("(r.at_us, r.id) < (%s, %s)")
        parameters += place
    sql = (
        "SELECT r.space, r.receipt, r.id, r.at_us, r.session, r.query, r.mode, r.lens, r.origin, r.repeat "
        f"FROM receipts AS r WHERE {' AND '.join(conditions)} ORDER BY r.at_us DESC, r.id DESC LIMIT %s"
    )
    found = fetch(db, sql, (*parameters, which.limit))
    deliveries = _deliveries(db, [(space, number) for space, number, *_ in found], spaces)
    stored = {
        number: Receipt(
            *(receipt_id, moment(at_us), space, session, query, mode, lens),
            deliveries=tuple(deliveries.get((space, number), ())),
            origin=origin,
            repeat=repeat,
        )
        for space, number, receipt_id, at_us, session, query, mode, lens, origin, repeat in found
    }
    if unwritten == NOTHING_UNWRITTEN:
        return list(stored.values())
    every = _with_marks(stored | _matching(db, new, which, place), _marks(db, new, unwritten.marks))
    return sorted(every, key=lambda each: (each.at, each.id), reverse=True)[: which.limit]


def last(db: Db) -> int:
    """The number of the receipt that was written last, or 0."""
    return int(value(db, "SELECT max(receipt) FROM receipts") or 0)


def delivered(
    db: Db, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
) -> dict[tuple[str, str], list[str]]:
    """By session or connection, the live memories delivered to it since they last changed, the latest first."""
    found = delivered_at(db, sessions, limit, unwritten, after)
    return {name: [memory_id for memory_id, _ in several] for name, several in found.items()}


def delivered_at(
    db: Db, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
) -> dict[tuple[str, str], list[tuple[str, datetime]]]:
    """The same, each with the time of its latest delivery.

    Only receipts that were written `after` the one of this number count.
    """
    asked = list(dict.fromkeys(sessions))
    given = [
        (place, delivery.memory_id, microseconds(receipt.at))
        for _, receipt in _numbered(db, unwritten)
        for place, (space, name) in enumerate(asked, 1)
        if receipt.space == space and name in (receipt.session, receipt.origin)
        for delivery in receipt.deliveries
    ]
    parameters = {
        "spaces": [space for space, _ in asked],
        "names": [name for _, name in asked],
        "after": after,
        "places": [place for place, _, _ in given],
        "ids": [memory_id for _, memory_id, _ in given],
        "times": [at_us for _, _, at_us in given],
        "limit": limit,
    }
    found: dict[tuple[str, str], list[tuple[str, datetime]]] = {}
    for place, memory_id, at_us in db.execute(_DELIVERED, parameters, binary=True):
        found.setdefault(asked[place - 1], []).append((memory_id, moment(at_us)))
    return found


def delivered_within(
    db: Db, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
) -> dict[str, bool]:
    """The live memories delivered to a session in a period and since they last changed, and if each was opened."""
    found = delivered_within_at(db, spaces, session, period, limit, unwritten)
    return {memory_id: opened for memory_id, (opened, _) in found.items()}


def delivered_within_at(
    db: Db, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
) -> dict[str, tuple[bool, datetime]]:
    """The same, each with the time of its latest delivery.

    Receipts before the last repeat do not count. A process may write a receipt late, so their times are compared, and
    of equal ones the order of writing. The beginning of the period is not part of it, the end is.
    """
    every = _numbered(db, unwritten)
    opened = [
        (number, memory_id) for number, memory_id, outcome in _marks(db, every, unwritten.marks) if outcome == "opened"
    ]
    since, until = period
    new = [
        (number, each)
        for number, each in every
        if each.space in spaces and each.session == session and since < each.at <= until
    ]
    given = [(number, each) for number, receipt in new for each in receipt.deliveries]
    parameters = {
        "spaces": list(spaces),
        "session": session,
        "since": microseconds(since),
        "until": microseconds(until),
        "limit": limit,
        "numbers": [number for number, _ in new],
        "times": [microseconds(each.at) for _, each in new],
        "repeats": [each.repeat for _, each in new],
        "of": [number for number, _ in given],
        "ids": [each.memory_id for _, each in given],
        "opened": [each.opened is not None for _, each in given],
        "marked": [number for number, _ in opened],
        "marked_ids": [memory_id for _, memory_id in opened],
    }
    found = db.execute(_DELIVERED_WITHIN, parameters, binary=True).fetchall()
    return {memory_id: (opened, moment(at_us)) for memory_id, opened, at_us in found}


# ---------------------------------------------------------------- inside: writing


def _hold(db: Db, memory_ids: Sequence[str], spaces: Iterable[str]) -> None:
    """Hold spaces, and those of memories."""
    hold(db, [*spaces, *_spaces_of(db, memory_ids)])


def _spaces_of(db: Db, memory_ids: Sequence[str]) -> set[str]:
    found = fetch(db, "SELECT DISTINCT space FROM memories WHERE id = ANY(%s)", (list(memory_ids),))
    return {space for (space,) in found}


def _unknown(db: Db, receipts: Sequence[Receipt]) -> list[Receipt]:
    """Receipts that are not written, each once, in the given order."""
    given: dict[str, Receipt] = {}
    for each in receipts:
        given.setdefault(each.id, each)
    written = {each for (each,) in fetch(db, "SELECT id FROM receipts WHERE id = ANY(%s)", (list(given),))}
    return [each for receipt_id, each in given.items() if receipt_id not in written]


def _write(db: Db, new: Sequence[Receipt], named: Sequence[str]) -> None:
    """Write receipts that deliver the memories of these ids."""
    if not new:
        return
    first = counters.take(db, "receipts", len(new))  # a purge that runs ends before this, and its time is read after
    known = standings(db, named)
    kept = list(enumerate(storable(db, new, known), first))
    sizes = [each.size_bytes for _, each in kept]
    copy(
        db,
        f"receipts ({RECEIPT_COLUMNS})",
        RECEIPT_TYPES,
        (
            (
                *(each.space, number, each.id, microseconds(each.at), each.session, each.query, each.mode, each.lens),
                *(each.origin, each.repeat, size),
            )
            for (number, each), size in zip(kept, sizes, strict=True)
        ),
    )
    written = []
    usage_of: dict[Key, Usage] = {}
    for number, receipt in kept:
        at_us = microseconds(receipt.at)
        for delivery in receipt.deliveries:
            standing = known[delivery.memory_id]
            key = standing.key
            usage_of[key] = add(usage_of.get(key, standing.usage), "delivered", receipt.at)
            marks = map(maybe_microseconds, (delivery.opened, delivery.used, delivery.wrong))
            written.append((receipt.space, number, *key, at_us, delivery.rank, float(delivery.score), *marks))
    if written:
        copy(db, f"deliveries ({DELIVERY_COLUMNS})", DELIVERY_TYPES, written)
    write_usage(db, usage_of)
    grow(db, sum(sizes))


def write_usage(db: Db, usage_of: Mapping[Key, Usage]) -> None:
    if usage_of:
        several = usage_of.values()
        numbers = [[each[at] for each in several] for at in range(3)]
        run(db, _WRITE_USAGE, (*columns_of(usage_of), *numbers, [microseconds(each.at) for each in several]))


def _prune(db: Db, retention: Retention, now: datetime) -> None:
    """Delete receipts that are too old, and the first written of too many.

    The days are counted from the last receipt of the third day before now on which there are any, so that a clock that
    is wrong for a day or two has no say in it.
    """
    found = db.execute(_LATEST_OF_DAYS, {"now": microseconds(now)}, binary=True).fetchone()
    if found is not None and found[0] is not None:
        keep_from = found[0] - retention.days * _DAY_US
        if value(db, "SELECT EXISTS (SELECT 1 FROM receipts WHERE at_us < %s)", (keep_from,)):
            delete_receipts(db, "at_us < %s", (keep_from,))
    if counters.last(db, "log_bytes") <= retention.bytes_max:
        return
    excess = lock(db, "log_bytes") - retention.bytes_max
    if excess > 0:  # nobody else has deleted any meanwhile
        excess += round(retention.bytes_max * PRUNED_SHARE)  # or every write would have to delete
        last_gone = value(db, _FIRST_WRITTEN, (excess // RECEIPT_BYTES + 1, excess))
        delete_receipts(db, "receipt <= %s", (last_gone,))


def delete_receipts(db: Db, condition: str, parameters: Sequence[Any]) -> int:
    """Delete the receipts that match a condition. Returns how many."""
    lock(db, "log_bytes")
    sql = (
        f"WITH gone AS (DELETE FROM receipts WHERE {condition} RETURNING bytes) "
        "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone"
    )
    ((count, size),) = fetch(db, sql, parameters)
    grow(db, -size)
    return int(count)


def grow(db: Db, size: int) -> None:
    if size:
        counters.take(db, "log_bytes", size)


def lock(db: Db, name: str) -> int:
    """Hold a counter until the transaction ends. Returns its value."""
    return int(value(db, "SELECT value FROM counters WHERE name = %s FOR UPDATE", (name,)))


# ---------------------------------------------------------------- inside: what receipts and marks mean


class _Standing(NamedTuple):
    """The place and usage of a memory, and when each outcome last earned a credit."""

    key: Key
    usage: Usage | None
    opened_us: int | None
    used_us: int | None
    wrong_us: int | None

    def earned(self, outcome: Outcome) -> datetime | None:
        us: int | None = getattr(self, _MARKS[outcome])
        return maybe_moment(us)


def standings(db: Db, memory_ids: Iterable[str]) -> dict[str, _Standing]:
    """By id, of each memory that exists."""
    return {
        memory_id: _Standing((space, row), None if at_us is None else Usage(good, bad, seen, moment(at_us)), *earned)
        for memory_id, space, row, good, bad, seen, at_us, *earned in fetch(db, _STANDINGS, (list(memory_ids),))
    }


def storable(db: Db, receipts: Sequence[Receipt], known: Container[str]) -> list[Receipt]:
    """Receipts as they are kept: with each memory that is known once, and with a query that can be stored.

    The query is empty if what it quotes may have been purged since it was asked.
    """
    purged_us = int(meta(db, _PURGED) or 0)
    kept = []
    for receipt in receipts:
        once = {each.memory_id: each for each in reversed(receipt.deliveries) if each.memory_id in known}
        deliveries = tuple(sorted(once.values(), key=lambda each: (each.rank, each.memory_id)))
        late = microseconds(receipt.at) < purged_us or any(each.memory_id not in known for each in receipt.deliveries)
        query = "" if late else logged_query(receipt.query)
        kept.append(replace(receipt, query=query, deliveries=deliveries))
    return kept


def marked_now(db: Db, receipt_id: str | None, mark: Mark) -> tuple[dict[str, _Standing], dict[str, Key]]:
    """By marked memory, its standing, and the receipt that is meant. Raises NotFound, InvalidInput."""
    known = standings(db, mark.memory_ids)
    missing = tuple(each for each in mark.memory_ids if each not in known)
    if missing:
        raise NotFound(missing)
    key_of = {each: known[each].key for each in mark.memory_ids}
    return known, _latest(db, key_of, mark) if receipt_id is None else _that_delivered(db, receipt_id, key_of)


def _that_delivered(db: Db, receipt_id: str, key_of: Mapping[str, Key]) -> dict[str, Key]:
    """By memory, space and number of the receipt. Raises InvalidInput unless it delivered all of them."""
    found = fetch(db, "SELECT space, receipt FROM receipts WHERE id = %s", (receipt_id,))
    if not found:
        raise InvalidInput("receipt", f"no receipt {receipt_id!r} is kept; see `nacre log`")
    ((space, number),) = found
    sql = "SELECT memory_space, row FROM deliveries WHERE space = %s AND receipt = %s"
    delivered = set(fetch(db, sql, (space, number)))
    for memory_id, key in key_of.items():
        if key not in delivered:
            raise InvalidInput("memory_id", f"receipt {receipt_id} did not deliver {memory_id}; see `nacre log`")
    return dict.fromkeys(key_of, (space, number))


def _latest(db: Db, key_of: Mapping[str, Key], mark: Mark) -> dict[str, Key]:
    """By memory, space and number of the latest receipt that delivered it. Raises InvalidInput where there is none."""
    found = _latest_of(db, [(key, mark) for key in key_of.values()])
    for memory_id, each in zip(key_of, found, strict=True):
        if each is None:
            raise InvalidInput(
                "receipt", f"no search delivered {memory_id} in the last 24 hours; name one, see `nacre log`"
            )
    return {memory_id: each.key for memory_id, each in zip(key_of, found, strict=True) if each is not None}


class _Latest(NamedTuple):
    at_us: int
    receipt_id: str
    key: Key  # the space and the number of the receipt


def _latest_of(db: Db, marked: Sequence[tuple[Key, Mark]]) -> list[_Latest | None]:
    """The latest written receipt that each of these marks of a memory means."""
    columns = (
        *columns_of(key for key, _ in marked),
        [microseconds(mark.at - MARK_WITHIN) for _, mark in marked],
        [microseconds(mark.at) for _, mark in marked],
        [mark.session for _, mark in marked],
        [mark.origin for _, mark in marked],
    )
    found: list[_Latest | None] = [None] * len(marked)
    for place, space, number, at_us, receipt_id in fetch(db, _LATEST, columns) if marked else ():
        found[place - 1] = _Latest(at_us, receipt_id, (space, number))
    return found


def _deliveries(db: Db, receipts: Sequence[Key], spaces: Sequence[str]) -> dict[Key, list[Delivery]]:
    """By space and number of a receipt, what it delivered of these spaces, best first."""
    sql = (
        "SELECT d.space, d.receipt, m.id, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us "
        "FROM unnest(%s::text[], %s::bigint[]) AS given (space, receipt) "
        "JOIN deliveries AS d ON d.space = given.space AND d.receipt = given.receipt "
        "JOIN memories AS m ON m.space = d.memory_space AND m.row = d.row WHERE m.space = ANY(%s) "
        "ORDER BY d.rank, m.id"
    )
    found: defaultdict[Key, list[Delivery]] = defaultdict(list)
    for space, number, memory_id, rank, score, *marks in fetch(db, sql, (*columns_of(receipts), list(spaces))):
        found[space, number].append(Delivery(memory_id, rank, score, *map(maybe_moment, marks)))
    return found


# ---------------------------------------------------------------- what is still to be written


def _numbered(db: Db, unwritten: Unwritten) -> list[tuple[int, Receipt]]:
    """The receipts that are not written, with numbers after those of all that are, in the order of writing.

    Each is as it would be written.
    """
    if not unwritten.receipts:
        return []
    new = _unknown(db, unwritten.receipts)
    known = standings(db, {delivery.memory_id for each in new for delivery in each.deliveries})
    return list(enumerate(storable(db, new, known), _AFTER_ALL))


def _place(db: Db, receipt_id: str, spaces: Sequence[str], new: Sequence[tuple[int, Receipt]]) -> tuple[int, str]:
    """The time and id of a receipt, after which a page begins. Raises InvalidInput if these spaces have no such."""
    sql = "SELECT at_us, id FROM receipts WHERE id = %s AND space = ANY(%s)"
    places = [(microseconds(each.at), each.id) for _, each in new if each.id == receipt_id and each.space in spaces]
    places += [(at_us, found) for at_us, found in fetch(db, sql, (receipt_id, list(spaces)))]
    if not places:
        raise InvalidInput("before", f"no receipt {receipt_id!r} is kept; begin with the first page again")
    return places[0]


def _matching(
    db: Db, new: Sequence[tuple[int, Receipt]], which: ReceiptFilter, place: tuple[int, str] | None
) -> dict[int, Receipt]:
    """Those of these receipts that a filter selects, with the deliveries that its spaces may see."""
    named = [each.memory_id for _, receipt in new for each in receipt.deliveries]
    sql = "SELECT id FROM memories WHERE id = ANY(%s) AND space = ANY(%s)"
    visible = {each for (each,) in fetch(db, sql, (named, list(which.spaces)))}
    found = {}
    for number, receipt in new:
        shown = tuple(each for each in receipt.deliveries if each.memory_id in visible)
        if (
            receipt.space in which.spaces
            and which.session in (None, receipt.session)
            and (which.memory_id is None or any(each.memory_id == which.memory_id for each in shown))
            and (place is None or (microseconds(receipt.at), receipt.id) < place)
        ):
            found[number] = replace(receipt, deliveries=shown)
    return found


def _marks(
    db: Db, new: Sequence[tuple[int, Receipt]], marks: Sequence[Mark]
) -> dict[tuple[int, str, Outcome], datetime]:
    """By number of a receipt, memory and outcome, when the delivery is first marked so."""
    known = standings(db, {each for mark in marks for each in mark.memory_ids}) if marks else {}
    marked = [(each, mark) for mark in marks for each in mark.memory_ids if each in known]
    written = _latest_of(db, [(known[memory_id].key, mark) for memory_id, mark in marked])
    found: dict[tuple[int, str, Outcome], datetime] = {}
    for (memory_id, mark), stored in zip(marked, written, strict=True):
        names = {mark.session, mark.origin} - {None}
        latest = [
            (microseconds(each.at), each.id, number)
            for number, each in new
            if (not names or each.session in names or (mark.origin is not None and each.origin == mark.origin))
            and mark.at - MARK_WITHIN <= each.at <= mark.at
            and any(delivery.memory_id == memory_id for delivery in each.deliveries)
        ]
        latest += [] if stored is None else [(stored.at_us, stored.receipt_id, stored.key[1])]
        if latest:
            found.setdefault((max(latest)[2], memory_id, mark.outcome), mark.at)
    return found


def _with_marks(receipts: Mapping[int, Receipt], marks: Mapping[tuple[int, str, Outcome], datetime]) -> list[Receipt]:
    def marked(number: int, delivery: Delivery) -> Delivery:
        times = {each: marks.get((number, delivery.memory_id, each)) for each in _MARKS}
        return replace(
            delivery,
            opened=delivery.opened or times["opened"],
            used=delivery.used or times["used"],
            wrong=delivery.wrong or times["wrong"],
        )

    return [
        replace(receipt, deliveries=tuple(marked(number, each) for each in receipt.deliveries))
        for number, receipt in receipts.items()
    ]
