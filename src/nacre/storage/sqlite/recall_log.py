"""The recall log in SQLite. Every function runs inside a transaction that its caller holds.

Deliveries and usage refer to memories by row and are deleted with them, so a purged memory leaves the log, too.
`usage` is a running sum: it outlives the receipts that it was computed from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from nacre.analysis.quotations import Quotations
from nacre.errors import InvalidInput, NotFound
from nacre.ranking.usage import add, earns
from nacre.storage.sqlite import rows
from nacre.types.copying import UsageRecord
from nacre.types.recall_log import (
    CONFIRMING_DAYS,
    DELIVERY_BYTES,
    MARK_WITHIN,
    NOTHING_UNWRITTEN,
    PRUNED_SHARE,
    RECEIPT_BYTES,
    Delivery,
    Mark,
    Outcome,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
    Usage,
    logged_query,
)

TABLES = """
CREATE TABLE receipts (
  receipt INTEGER PRIMARY KEY AUTOINCREMENT,
  id      TEXT NOT NULL UNIQUE,
  at_us   INTEGER NOT NULL,
  space   TEXT NOT NULL,
  session TEXT,
  query   TEXT NOT NULL,
  mode    TEXT NOT NULL,
  lens    TEXT
) STRICT;
CREATE INDEX receipts_by_time ON receipts (at_us, id);
CREATE INDEX receipts_by_space ON receipts (space, at_us, id);
CREATE INDEX receipts_by_session ON receipts (space, session, at_us, id) WHERE session IS NOT NULL;

CREATE TABLE deliveries (
  receipt   INTEGER NOT NULL REFERENCES receipts (receipt) ON DELETE CASCADE,
  row       INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  at_us     INTEGER NOT NULL,             -- the receipt's: a memory's latest delivery is found at once
  rank      INTEGER NOT NULL,
  score     REAL NOT NULL,
  opened_us INTEGER,                      -- NULL: not marked so
  used_us   INTEGER,
  wrong_us  INTEGER,
  PRIMARY KEY (receipt, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_row ON deliveries (row, at_us);

CREATE TABLE usage (
  row       INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  good      REAL NOT NULL,
  bad       REAL NOT NULL,
  seen      REAL NOT NULL,
  at_us     INTEGER NOT NULL,
  opened_us INTEGER,                      -- when the outcome last earned its credit
  used_us   INTEGER,
  wrong_us  INTEGER
) STRICT;
"""

# Which connection asked, and from where on deliveries to a session count. Few receipts have `repeat` set.
MORE_COLUMNS = """
ALTER TABLE receipts ADD COLUMN origin TEXT;
ALTER TABLE receipts ADD COLUMN repeat INTEGER NOT NULL DEFAULT 0;
CREATE INDEX receipts_by_origin ON receipts (space, origin) WHERE origin IS NOT NULL;
CREATE INDEX receipts_repeated ON receipts (space, session, at_us) WHERE repeat = 1;
"""

# What each receipt takes, and in `meta` what all of them take, so that nothing has to be counted.
SIZES = f"""
ALTER TABLE receipts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE receipts SET bytes = {RECEIPT_BYTES} + length(CAST(query AS BLOB))
  + {DELIVERY_BYTES} * (SELECT count(*) FROM deliveries AS d WHERE d.receipt = receipts.receipt);
INSERT INTO meta SELECT 'log_bytes', CAST(ifnull(sum(bytes), 0) AS TEXT) FROM receipts;
"""

_DAY_US = 86_400_000_000
_AFTER_ALL = 1 << 62  # numbers of receipts that are still to be written
_LISTED = "(SELECT value FROM json_each(?))"
_PURGED = "purged_us"  # in `meta`: when memories were last purged
_MARKS: dict[Outcome, str] = {"opened": "opened_us", "used": "used_us", "wrong": "wrong_us"}


def record(db: apsw.Connection, receipts: Sequence[Receipt]) -> None:
    """Write receipts. A receipt that is stored already is skipped, so a write can be retried.

    One that is written only after a purge, as by another process, may quote what was purged: it loses its query.
    """
    known = _standings(db, {delivery.memory_id for each in receipts for delivery in each.deliveries})
    kept = _storable(db, receipts, known)
    values = [
        (
            *(each.id, rows.microseconds(each.at), each.space, each.session, each.query, each.mode),
            *(each.lens, each.origin, int(each.repeat), each.size_bytes),
        )
        for each in kept
    ]
    sql = (
        "INSERT INTO receipts (id, at_us, space, session, query, mode, lens, origin, repeat, bytes) "
        f"SELECT {rows.json_columns(10)} FROM json_each(?) WHERE true ON CONFLICT (id) DO NOTHING "
        "RETURNING id, receipt, bytes"
    )
    inserted = rows.fetch(db, sql, (rows.to_json(values),))
    number_of = {receipt_id: number for receipt_id, number, _ in inserted}
    _grow(db, sum(size for *_, size in inserted))
    written = []
    standing_of: dict[int, Usage] = {}
    for receipt in kept:
        number = number_of.pop(receipt.id, None)
        if number is None:
            continue
        at_us = rows.microseconds(receipt.at)
        for delivery in receipt.deliveries:
            row, standing, *_ = known[delivery.memory_id]
            standing_of[row] = add(standing_of.get(row, standing), "delivered", receipt.at)
            marks = (
                rows.maybe_microseconds(delivery.opened),
                rows.maybe_microseconds(delivery.used),
                rows.maybe_microseconds(delivery.wrong),
            )
            written.append((number, row, at_us, delivery.rank, delivery.score, *marks))
    db.execute(f"INSERT INTO deliveries SELECT {rows.json_columns(8)} FROM json_each(?)", (rows.to_json(written),))
    _write_usage(db, standing_of)


def restore(db: apsw.Connection, receipts: Sequence[Receipt], usages: Sequence[UsageRecord]) -> None:
    """Write receipts and usage as another store had them. What is about memories that are not here is left out."""
    values = [
        (
            *(each.id, rows.microseconds(each.at), each.space, each.session, each.query, each.mode),
            *(each.lens, each.origin, int(each.repeat), each.size_bytes),
        )
        for each in receipts
    ]
    sql = (
        "INSERT INTO receipts (id, at_us, space, session, query, mode, lens, origin, repeat, bytes) "
        f"SELECT {rows.json_columns(10)} FROM json_each(?) RETURNING id, receipt"
    )
    number_of = dict(rows.fetch(db, sql, (rows.to_json(values),)))
    delivered = [
        (
            *(number_of[receipt.id], each.memory_id, rows.microseconds(receipt.at), each.rank, each.score),
            *map(rows.maybe_microseconds, (each.opened, each.used, each.wrong)),
        )
        for receipt in receipts
        for each in receipt.deliveries
    ]
    of_memory = "SELECT {} FROM json_each(?) JOIN memories AS m ON m.id = value ->> {}"
    columns = "value ->> 0, m.row, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7"
    db.execute(f"INSERT INTO deliveries {of_memory.format(columns, 1)}", (rows.to_json(delivered),))
    used = [
        (
            *(each.memory_id, each.usage.good, each.usage.bad, each.usage.seen, rows.microseconds(each.usage.at)),
            *map(rows.maybe_microseconds, (each.opened, each.used, each.wrong)),
        )
        for each in usages
    ]
    columns = "m.row, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7"
    db.execute(f"INSERT INTO usage {of_memory.format(columns, 0)}", (rows.to_json(used),))
    _grow(db, sum(each.size_bytes for each in receipts))


def clear_all(db: apsw.Connection) -> None:
    """Delete all receipts and usage."""
    for table in ("deliveries", "receipts", "usage"):
        db.execute(f"DELETE FROM {table}")
    db.execute("UPDATE meta SET value = '0' WHERE key = 'log_bytes'")


def mark(
    db: apsw.Connection,
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
    deliver it.
    """
    ids = list(dict.fromkeys(memory_ids))
    known = _standings(db, ids)
    missing = tuple(each for each in ids if each not in known)
    if missing:
        raise NotFound(missing)
    row_of = {each: known[each].row for each in ids}
    delivered = (
        _latest(db, row_of, at, session, origin) if receipt_id is None else _delivered_by(db, receipt_id, row_of)
    )
    column = _MARKS[outcome]
    sql = (
        f"UPDATE deliveries SET {column} = ? WHERE {column} IS NULL "
        "AND (receipt, row) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) RETURNING row, rank"
    )
    at_us = rows.microseconds(at)
    pairs = [(delivered[each], row_of[each]) for each in ids]
    rank_of = dict(rows.fetch(db, sql, (at_us, rows.to_json(pairs))))
    new = [each for each in ids if row_of[each] in rank_of]
    earning = [known[each] for each in new if earns(known[each].earned(outcome), at)]
    _write_usage(db, {each.row: add(each.usage, outcome, at, rank_of[each.row]) for each in earning})
    db.execute(
        f"UPDATE usage SET {column} = ? WHERE row IN {_LISTED}", (at_us, rows.to_json([each.row for each in earning]))
    )
    return new


def listed(db: apsw.Connection, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
    """Receipts ordered by (time, id), the newest first, with those that are still to be written."""
    new = _numbered(db, unwritten)
    spaces = rows.to_json(list(which.spaces))
    conditions = [f"r.space IN {_LISTED}"]
    parameters: list[Any] = [spaces]
    if which.session is not None:
        conditions.append("r.session = ?")
        parameters.append(which.session)
    if which.memory_id is not None:
        conditions.append(
            "r.receipt IN (SELECT d.receipt FROM memories AS m JOIN deliveries AS d ON d.row = m.row "
            f"WHERE m.id = ? AND m.space IN {_LISTED})"
        )
        parameters += [which.memory_id, spaces]
    place = None if which.before is None else _place(db, which.before, which.spaces, new)
    if place is not None:
        conditions.append("(r.at_us, r.id) < (?, ?)")
        parameters += place
    sql = (
        "SELECT r.receipt, r.id, r.at_us, r.space, r.session, r.query, r.mode, r.lens, r.origin, r.repeat "
        f"FROM receipts AS r WHERE {' AND '.join(conditions)} ORDER BY r.at_us DESC, r.id DESC LIMIT ?"
    )
    found = rows.fetch(db, sql, (*parameters, which.limit))
    deliveries = _deliveries(db, [number for number, *_ in found], spaces)
    stored = {
        number: Receipt(
            *(receipt_id, rows.moment(at_us), space, session, query, mode, lens),
            deliveries=tuple(deliveries[number]),
            origin=origin,
            repeat=bool(repeat),
        )
        for number, receipt_id, at_us, space, session, query, mode, lens, origin, repeat in found
    }
    if unwritten == NOTHING_UNWRITTEN:
        return list(stored.values())
    every = _with_marks(stored | _matching(db, new, which, place), _marks(db, new, unwritten.marks))
    return sorted(every, key=lambda each: (each.at, each.id), reverse=True)[: which.limit]


def delivered(
    db: apsw.Connection,
    sessions: Sequence[tuple[str, str]],
    limit: int,
    unwritten: Unwritten = NOTHING_UNWRITTEN,
    after: int = 0,
) -> dict[tuple[str, str], list[str]]:
    """By session or connection, the live memories delivered to it since they last changed, the latest first.

    Only receipts that were written `after` the one of this number count.
    """
    of_session = (
        "SELECT receipt FROM receipts WHERE space = ?1 AND session = ?2 "
        "UNION SELECT receipt FROM receipts WHERE space = ?1 AND origin = ?2"
    )
    # The plus keeps SQLite from reading all receipts of a session for the few that are new.
    new = f"SELECT receipt FROM receipts WHERE receipt > {after:d} AND +space = ?1 AND (+session = ?2 OR +origin = ?2)"
    sql = (
        f"SELECT m.id FROM (SELECT row, at_us FROM deliveries WHERE receipt IN ({new if after else of_session}) "
        "UNION ALL SELECT n.row, value ->> 1 FROM json_each(?4) JOIN memories AS n ON n.id = value ->> 0"
        ") AS d JOIN memories AS m ON m.row = d.row "
        "WHERE m.deleted_us IS NULL AND d.at_us >= m.updated_us GROUP BY m.id ORDER BY max(d.at_us) DESC, m.id LIMIT ?3"
    )
    pending = [receipt for _, receipt in _numbered(db, unwritten)]
    found = {}
    for space, name in dict.fromkeys(sessions):
        given = [
            (delivery.memory_id, rows.microseconds(receipt.at))
            for receipt in pending
            if receipt.space == space and name in (receipt.session, receipt.origin)
            for delivery in receipt.deliveries
        ]
        found[space, name] = [each for (each,) in rows.fetch(db, sql, (space, name, limit, rows.to_json(given)))]
    return {each: ids for each, ids in found.items() if ids}


def delivered_within(
    db: apsw.Connection,
    spaces: Sequence[str],
    session: str,
    period: tuple[datetime, datetime],
    limit: int,
    unwritten: Unwritten = NOTHING_UNWRITTEN,
) -> dict[str, bool]:
    """The live memories delivered to a session in a period and since they last changed, and if each was opened.

    Receipts before the last repeat do not count. A process may write a receipt late, so their times are compared, and
    of equal ones the order of writing. The beginning of the period is not part of it, the end is.
    """
    sql = (
        "WITH asked (number, at_us, repeat) AS ("
        "SELECT receipt, at_us, repeat FROM receipts WHERE space IN (SELECT value FROM json_each(?1)) "
        "AND session = ?2 AND at_us > ?3 AND at_us <= ?4 "
        "UNION ALL SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?6)), "
        "last_repeat (at_us, number) AS ("
        "SELECT at_us, number FROM asked WHERE repeat ORDER BY at_us DESC, number DESC LIMIT 1), "
        "given (number, at_us, row, opened) AS ("
        "SELECT a.number, a.at_us, d.row, d.opened_us IS NOT NULL FROM asked AS a JOIN deliveries AS d "
        "ON d.receipt = a.number "
        "UNION ALL SELECT value ->> 0, value ->> 1, n.row, value ->> 3 FROM json_each(?7) "
        "JOIN memories AS n ON n.id = value ->> 2) "
        "SELECT m.id, max(g.opened OR (g.number, m.id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?8))) "
        "FROM given AS g JOIN memories AS m ON m.row = g.row "
        "WHERE NOT EXISTS (SELECT 1 FROM last_repeat AS l WHERE (l.at_us, l.number) > (g.at_us, g.number)) "
        "AND m.deleted_us IS NULL AND g.at_us >= m.updated_us GROUP BY m.id ORDER BY max(g.at_us) DESC, m.id LIMIT ?5"
    )
    since, until = map(rows.microseconds, period)
    every = _numbered(db, unwritten)
    marks = _marks(db, every, unwritten.marks)
    opened = [(number, memory_id) for number, memory_id, outcome in marks if outcome == "opened"]
    new = [
        (number, rows.microseconds(each.at), each)
        for number, each in every
        if each.space in spaces and each.session == session and period[0] < each.at <= period[1]
    ]
    asked = [(number, at_us, int(each.repeat)) for number, at_us, each in new]
    given = [
        (number, at_us, delivery.memory_id, int(delivery.opened is not None))
        for number, at_us, each in new
        for delivery in each.deliveries
    ]
    named = rows.to_json(list(spaces)), session, since, until, limit
    found = rows.fetch(db, sql, (*named, rows.to_json(asked), rows.to_json(given), rows.to_json(opened)))
    return {memory_id: bool(was_opened) for memory_id, was_opened in found}


def usage(db: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, Usage]:
    """Usage as of the last credit. Memories without usage are missing from the result."""
    known = _standings(db, memory_ids)
    return {memory_id: each.usage for memory_id, each in known.items() if each.usage is not None}


def prune(db: apsw.Connection, retention: Retention, now: datetime) -> int:
    """Delete receipts that are too old, and the first written of too many. Returns how many were deleted."""
    gone = _delete(db, "at_us < ?", (_keep_from(db, retention.days, now),))
    excess = int(rows.meta(db, "log_bytes") or 0) - retention.bytes_max
    if excess <= 0:
        return gone
    excess += round(retention.bytes_max * PRUNED_SHARE)  # or every write would have to delete
    first: list[int] = []
    for number, size in db.execute("SELECT receipt, bytes FROM receipts ORDER BY receipt"):  # not by time: clocks jump
        if excess <= 0:
            break
        first.append(number)
        excess -= size
    return gone + _delete(db, "receipt <= ?", (first[-1],))


def _keep_from(db: apsw.Connection, days: int, now: datetime) -> int:
    """From when on receipts are kept. A clock that is wrong for a day or two has no say in it.

    The days are counted from the last receipt of the third day before now on which there are any.
    """
    latest: int | None = None
    before = rows.microseconds(now) + 1  # later ones are of a clock that was wrong
    for _ in range(CONFIRMING_DAYS):
        latest = db.execute("SELECT max(at_us) FROM receipts WHERE at_us < ?", (before,)).get
        if latest is None:  # there were searches on fewer days
            return -_AFTER_ALL
        before = latest - latest % _DAY_US
    return -_AFTER_ALL if latest is None else latest - days * _DAY_US


def clear(db: apsw.Connection, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
    """Delete receipts of these spaces, of one session or from before a time where given. Returns how many."""
    return _delete(
        db,
        f"space IN {_LISTED} AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR at_us < ?3)",
        (rows.to_json(list(spaces)), session, rows.maybe_microseconds(before)),
    )


def _delete(db: apsw.Connection, condition: str, parameters: tuple[Any, ...]) -> int:
    """Delete the receipts that match a condition. Returns how many."""
    sizes = [size for (size,) in rows.fetch(db, f"DELETE FROM receipts WHERE {condition} RETURNING bytes", parameters)]
    _grow(db, -sum(sizes))
    return len(sizes)


def _grow(db: apsw.Connection, size: int) -> None:
    if size:
        db.execute("UPDATE meta SET value = CAST(value + ? AS TEXT) WHERE key = 'log_bytes'", (size,))


def purge(db: apsw.Connection, purged: Sequence[int], quotations: Quotations, at: datetime) -> None:
    """Delete the receipts that delivered these rows, and clear the queries that quote them.

    A receipt with `repeat` stays without its query, so that what its session was given before still does not count.
    """
    listed = (rows.to_json(list(purged)),)
    delivering = f"receipt IN (SELECT receipt FROM deliveries WHERE row IN {_LISTED})"
    db.execute(f"UPDATE receipts SET query = '' WHERE repeat = 1 AND {delivering}", listed)
    _delete(db, f"repeat = 0 AND {delivering}", listed)
    queries = (query for (query,) in db.execute("SELECT DISTINCT query FROM receipts"))
    quoting = [query for query in queries if quotations.quoted_in(query)]
    db.execute(f"UPDATE receipts SET query = '' WHERE query IN {_LISTED}", (rows.to_json(quoting),))
    rows.set_meta(db, _PURGED, str(max(rows.microseconds(at), int(rows.meta(db, _PURGED) or 0))))


def last(db: apsw.Connection) -> int:
    """The number of the receipt that was written last, or 0."""
    return int(db.execute("SELECT max(receipt) FROM receipts").get or 0)


def count(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM receipts").get)


# ---------------------------------------------------------------- inside


def _kept_query(receipt: Receipt, known: Container[str], purged_us: int) -> str:
    """The query as it is logged: empty if what it quotes may have been purged since it was asked."""
    late = rows.microseconds(receipt.at) < purged_us
    return (
        "" if late or any(each.memory_id not in known for each in receipt.deliveries) else logged_query(receipt.query)
    )


class _Standing(NamedTuple):
    """The row and usage of a memory, and when each outcome last earned a credit."""

    row: int
    usage: Usage | None
    opened_us: int | None
    used_us: int | None
    wrong_us: int | None

    def earned(self, outcome: Outcome) -> datetime | None:
        us: int | None = getattr(self, _MARKS[outcome])
        return rows.maybe_moment(us)


def _storable(db: apsw.Connection, receipts: Sequence[Receipt], known: Container[str]) -> list[Receipt]:
    """Receipts as they are kept: with each memory that is known once, and with a query that can be stored."""
    purged_us = int(rows.meta(db, _PURGED) or 0)
    kept = []
    for receipt in receipts:
        once = {each.memory_id: each for each in reversed(receipt.deliveries) if each.memory_id in known}
        deliveries = tuple(sorted(once.values(), key=lambda each: (each.rank, each.memory_id)))
        kept.append(replace(receipt, query=_kept_query(receipt, known, purged_us), deliveries=deliveries))
    return kept


def _standings(db: apsw.Connection, memory_ids: Sequence[str] | set[str]) -> dict[str, _Standing]:
    """By id, of each memory that exists."""
    sql = (
        "SELECT m.id, m.row, u.good, u.bad, u.seen, u.at_us, u.opened_us, u.used_us, u.wrong_us "
        f"FROM memories AS m LEFT JOIN usage AS u ON u.row = m.row WHERE m.id IN {_LISTED}"
    )
    found: dict[str, _Standing] = {}
    for memory_id, row, good, bad, seen, at_us, *earned in rows.fetch(db, sql, (rows.to_json(list(memory_ids)),)):
        found[memory_id] = _Standing(
            row, None if at_us is None else Usage(good, bad, seen, rows.moment(at_us)), *earned
        )
    return found


def _write_usage(db: apsw.Connection, standing_of: dict[int, Usage]) -> None:
    values = [(row, each.good, each.bad, each.seen, rows.microseconds(each.at)) for row, each in standing_of.items()]
    db.execute(
        f"INSERT INTO usage (row, good, bad, seen, at_us) SELECT {rows.json_columns(5)} FROM json_each(?) WHERE true "
        "ON CONFLICT (row) DO UPDATE SET good = excluded.good, bad = excluded.bad, seen = excluded.seen, "
        "at_us = excluded.at_us",
        (rows.to_json(values),),
    )


def _delivered_by(db: apsw.Connection, receipt_id: str, row_of: dict[str, int]) -> dict[str, int]:
    """By memory, the number of the receipt. Raises InvalidInput unless it delivered all of them."""
    number = db.execute("SELECT receipt FROM receipts WHERE id = ?", (receipt_id,)).get
    if number is None:
        raise InvalidInput("receipt", f"no receipt {receipt_id!r} is kept; see `nacre log`")
    sql = f"SELECT row FROM deliveries WHERE receipt = ? AND row IN {_LISTED}"
    delivered = {row for (row,) in rows.fetch(db, sql, (number, rows.to_json(list(row_of.values()))))}
    for memory_id, row in row_of.items():
        if row not in delivered:
            raise InvalidInput("memory_id", f"receipt {receipt_id} did not deliver {memory_id}; see `nacre log`")
    return dict.fromkeys(row_of, number)


def _latest(
    db: apsw.Connection, row_of: dict[str, int], at: datetime, session: str | None, origin: str | None
) -> dict[str, int]:
    """By memory, the number of the latest receipt that delivered it. Raises InvalidInput where there is none."""
    numbers = {}
    for memory_id, row in row_of.items():
        found = _latest_of(db, row, Mark((memory_id,), "opened", at, session, origin))
        if found is None:
            raise InvalidInput(
                "receipt", f"no search delivered {memory_id} in the last 24 hours; name one, see `nacre log`"
            )
        numbers[memory_id] = found[0]
    return numbers


def _latest_of(db: apsw.Connection, row: int, mark: Mark) -> tuple[int, int, str] | None:
    """Number, time and id of the latest receipt that a mark of this row means."""
    sql = (
        "SELECT d.receipt, d.at_us, r.id FROM deliveries AS d JOIN receipts AS r ON r.receipt = d.receipt "
        "WHERE d.row = ?1 AND d.at_us BETWEEN ?2 AND ?3 "
        "AND (coalesce(?4, ?5) IS NULL OR r.session IN (?4, ?5) OR r.origin = ?5) "
        "ORDER BY d.at_us DESC, r.id DESC LIMIT 1"
    )
    span = rows.microseconds(mark.at - MARK_WITHIN), rows.microseconds(mark.at)
    found = rows.fetch(db, sql, (row, *span, mark.session, mark.origin))
    return found[0] if found else None


def _deliveries(db: apsw.Connection, numbers: Sequence[int], spaces: str) -> dict[int, list[Delivery]]:
    sql = (
        "SELECT d.receipt, m.id, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us FROM deliveries AS d "
        f"JOIN memories AS m ON m.row = d.row WHERE d.receipt IN {_LISTED} AND m.space IN {_LISTED} "
        "ORDER BY d.receipt, d.rank, m.id"
    )
    found = defaultdict(list)
    for number, memory_id, rank, score, *marks in rows.fetch(db, sql, (rows.to_json(list(numbers)), spaces)):
        found[number].append(Delivery(memory_id, rank, score, *map(rows.maybe_moment, marks)))
    return found


# ---------------------------------------------------------------- what is still to be written


def _numbered(db: apsw.Connection, unwritten: Unwritten) -> list[tuple[int, Receipt]]:
    """The receipts that are not written, with numbers after those of all that are, in the order of writing.

    Each is as it would be written.
    """
    if not unwritten.receipts:
        return []
    given = {each.id: each for each in reversed(unwritten.receipts)}
    sql = f"SELECT id FROM receipts WHERE id IN {_LISTED}"
    written = {receipt_id for (receipt_id,) in rows.fetch(db, sql, (rows.to_json(list(given)),))}
    new = [each for receipt_id, each in reversed(given.items()) if receipt_id not in written]
    known = _standings(db, {delivery.memory_id for each in new for delivery in each.deliveries})
    return list(enumerate(_storable(db, new, known), _AFTER_ALL))


def _place(
    db: apsw.Connection, receipt_id: str, spaces: Sequence[str], new: Sequence[tuple[int, Receipt]]
) -> tuple[int, str]:
    """The time and id of a receipt, after which a page begins. Raises InvalidInput if these spaces have no such."""
    sql = f"SELECT at_us, id FROM receipts WHERE id = ? AND space IN {_LISTED}"
    places = [
        (rows.microseconds(each.at), each.id) for _, each in new if each.id == receipt_id and each.space in spaces
    ]
    places += rows.fetch(db, sql, (receipt_id, rows.to_json(list(spaces))))
    if not places:
        raise InvalidInput("before", f"no receipt {receipt_id!r} is kept; begin with the first page again")
    return places[0]


def _matching(
    db: apsw.Connection, new: Sequence[tuple[int, Receipt]], which: ReceiptFilter, place: tuple[int, str] | None
) -> dict[int, Receipt]:
    """Those of these receipts that a filter selects, with the deliveries that its spaces may see."""
    named = [each.memory_id for _, receipt in new for each in receipt.deliveries]
    sql = f"SELECT id FROM memories WHERE id IN {_LISTED} AND space IN {_LISTED}"
    visible = {each for (each,) in rows.fetch(db, sql, (rows.to_json(named), rows.to_json(list(which.spaces))))}
    found = {}
    for number, receipt in new:
        shown = tuple(each for each in receipt.deliveries if each.memory_id in visible)
        if (
            receipt.space in which.spaces
            and which.session in (None, receipt.session)
            and (which.memory_id is None or any(each.memory_id == which.memory_id for each in shown))
            and (place is None or (rows.microseconds(receipt.at), receipt.id) < place)
        ):
            found[number] = replace(receipt, deliveries=shown)
    return found


def _marks(
    db: apsw.Connection, new: Sequence[tuple[int, Receipt]], marks: Sequence[Mark]
) -> dict[tuple[int, str, Outcome], datetime]:
    """By number of a receipt, memory and outcome, when the delivery is first marked so."""
    found: dict[tuple[int, str, Outcome], datetime] = {}
    known = _standings(db, {each for mark in marks for each in mark.memory_ids}) if marks else {}
    for mark in marks:
        names = {mark.session, mark.origin} - {None}
        meant = [
            (rows.microseconds(each.at), each.id, number, {delivery.memory_id for delivery in each.deliveries})
            for number, each in new
            if (not names or each.session in names or (mark.origin is not None and each.origin == mark.origin))
            and mark.at - MARK_WITHIN <= each.at <= mark.at
        ]
        for memory_id in mark.memory_ids:
            stored = _latest_of(db, known[memory_id].row, mark) if memory_id in known else None
            latest = [(at_us, receipt_id, number) for at_us, receipt_id, number, ids in meant if memory_id in ids]
            latest += [(stored[1], stored[2], stored[0])] if stored is not None else []
            if latest:
                found.setdefault((max(latest)[2], memory_id, mark.outcome), mark.at)
    return found


def _with_marks(receipts: dict[int, Receipt], marks: dict[tuple[int, str, Outcome], datetime]) -> list[Receipt]:
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
