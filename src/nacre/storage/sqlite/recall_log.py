"""The recall log in SQLite. Every function runs inside a transaction that its caller holds.

Deliveries and usage refer to memories by row and are deleted with them, so a purged memory leaves the log, too.
`usage` is a running sum: it outlives the receipts that it was computed from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from nacre.analysis.quotations import Quotations
from nacre.errors import InvalidInput, NotFound
from nacre.ranking.usage import add, earns
from nacre.storage.sqlite import rows
from nacre.types.recall_log import MARK_WITHIN, Delivery, Outcome, Receipt, ReceiptFilter, Usage, logged_query

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

RECEIPTS_MAX = 1_000_000  # the oldest beyond this number are dropped, whatever their age

_LISTED = "(SELECT value FROM json_each(?))"
_MARKS: dict[Outcome, str] = {"opened": "opened_us", "used": "used_us", "wrong": "wrong_us"}


def record(db: apsw.Connection, receipts: Sequence[Receipt]) -> None:
    """Write receipts. A receipt that is stored already is skipped, so a write can be retried."""
    values = [
        (
            *(each.id, rows.microseconds(each.at), each.space, each.session, logged_query(each.query), each.mode),
            *(each.lens, each.origin, int(each.repeat)),
        )
        for each in receipts
    ]
    sql = (
        "INSERT INTO receipts (id, at_us, space, session, query, mode, lens, origin, repeat) "
        f"SELECT {rows.json_columns(9)} FROM json_each(?) WHERE true ON CONFLICT (id) DO NOTHING RETURNING id, receipt"
    )
    number_of = dict(rows.fetch(db, sql, (rows.to_json(values),)))
    known = _standings(db, {delivery.memory_id for each in receipts for delivery in each.deliveries})
    written = []
    standing_of: dict[int, Usage] = {}
    for receipt in receipts:
        number = number_of.pop(receipt.id, None)
        if number is None:
            continue
        at_us = rows.microseconds(receipt.at)
        for memory_id, delivery in {each.memory_id: each for each in reversed(receipt.deliveries)}.items():
            if memory_id in known:
                row, standing, *_ = known[memory_id]
                standing_of[row] = add(standing_of.get(row, standing), "delivered", receipt.at)
                marks = (
                    rows.maybe_microseconds(delivery.opened),
                    rows.maybe_microseconds(delivery.used),
                    rows.maybe_microseconds(delivery.wrong),
                )
                written.append((number, row, at_us, delivery.rank, delivery.score, *marks))
    db.execute(f"INSERT INTO deliveries SELECT {rows.json_columns(8)} FROM json_each(?)", (rows.to_json(written),))
    _write_usage(db, standing_of)


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


def listed(db: apsw.Connection, which: ReceiptFilter) -> list[Receipt]:
    """Receipts ordered by (time, id), the newest first."""
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
    if which.before is not None:
        place = rows.fetch(
            db, f"SELECT at_us, id FROM receipts WHERE id = ? AND space IN {_LISTED}", (which.before, spaces)
        )
        if not place:
            raise InvalidInput("before", f"no receipt {which.before!r} is kept; begin with the first page again")
        conditions.append("(r.at_us, r.id) < (?, ?)")
        parameters += place[0]
    sql = (
        "SELECT r.receipt, r.id, r.at_us, r.space, r.session, r.query, r.mode, r.lens, r.origin, r.repeat "
        f"FROM receipts AS r WHERE {' AND '.join(conditions)} ORDER BY r.at_us DESC, r.id DESC LIMIT ?"
    )
    found = rows.fetch(db, sql, (*parameters, which.limit))
    deliveries = _deliveries(db, [number for number, *_ in found], spaces)
    return [
        Receipt(
            *(receipt_id, rows.moment(at_us), space, session, query, mode, lens),
            deliveries=tuple(deliveries[number]),
            origin=origin,
            repeat=bool(repeat),
        )
        for number, receipt_id, at_us, space, session, query, mode, lens, origin, repeat in found
    ]


def delivered(db: apsw.Connection, sessions: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], list[str]]:
    """By session or connection, the live memories delivered to it since they last changed, the latest first."""
    sql = (
        "SELECT m.id FROM deliveries AS d JOIN memories AS m ON m.row = d.row WHERE d.receipt IN ("
        "SELECT receipt FROM receipts WHERE space = ?1 AND session = ?2 "
        "UNION SELECT receipt FROM receipts WHERE space = ?1 AND origin = ?2) "
        "AND m.deleted_us IS NULL AND d.at_us >= m.updated_us GROUP BY m.id ORDER BY max(d.at_us) DESC, m.id LIMIT ?3"
    )
    asked = dict.fromkeys(sessions)
    found = {each: [memory_id for (memory_id,) in rows.fetch(db, sql, (*each, limit))] for each in asked}
    return {each: ids for each, ids in found.items() if ids}


def delivered_since(
    db: apsw.Connection, spaces: Sequence[str], session: str, since: datetime, limit: int
) -> dict[str, bool]:
    """The live memories delivered to a session after a time and since they last changed, and if each was opened.

    Receipts before the last repeat do not count. A process may write a receipt late, so their times are compared, and
    of equal ones the order of writing.
    """
    sql = (
        "SELECT m.id, max(d.opened_us IS NOT NULL) FROM receipts AS r JOIN deliveries AS d ON d.receipt = r.receipt "
        "JOIN memories AS m ON m.row = d.row "
        "WHERE r.space IN (SELECT value FROM json_each(?1)) AND r.session = ?2 AND r.at_us > ?3 "
        "AND NOT EXISTS (SELECT 1 FROM receipts AS later WHERE later.space IN (SELECT value FROM json_each(?1)) "
        "AND later.session = ?2 AND later.repeat = 1 AND (later.at_us, later.receipt) > (r.at_us, r.receipt)) "
        "AND m.deleted_us IS NULL AND d.at_us >= m.updated_us GROUP BY m.id ORDER BY max(d.at_us) DESC, m.id LIMIT ?4"
    )
    found = rows.fetch(db, sql, (rows.to_json(list(spaces)), session, rows.microseconds(since), limit))
    return {memory_id: bool(opened) for memory_id, opened in found}


def usage(db: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, Usage]:
    """Usage as of the last credit. Memories without usage are missing from the result."""
    known = _standings(db, memory_ids)
    return {memory_id: each.usage for memory_id, each in known.items() if each.usage is not None}


def prune(db: apsw.Connection, before: datetime, receipts_max: int) -> int:
    """Delete receipts from before that time, and the oldest beyond that number. Returns how many were deleted."""
    db.execute("DELETE FROM receipts WHERE at_us < ?", (rows.microseconds(before),))
    gone = db.changes()
    # Receipts are numbered in order, so the span of their numbers bounds their count, without counting them.
    span = db.execute("SELECT (SELECT max(receipt) FROM receipts) - (SELECT min(receipt) FROM receipts)").get
    if span is None or span < receipts_max:
        return gone
    db.execute(
        "DELETE FROM receipts WHERE receipt IN "
        "(SELECT receipt FROM receipts ORDER BY at_us DESC, id DESC LIMIT -1 OFFSET ?)",
        (receipts_max,),
    )
    return gone + db.changes()


def clear(db: apsw.Connection, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
    """Delete receipts of these spaces, of one session or from before a time where given. Returns how many."""
    db.execute(
        f"DELETE FROM receipts WHERE space IN {_LISTED} AND (?2 IS NULL OR session = ?2) "
        "AND (?3 IS NULL OR at_us < ?3)",
        (rows.to_json(list(spaces)), session, rows.maybe_microseconds(before)),
    )
    return db.changes()


def purge(db: apsw.Connection, purged: Sequence[int], quotations: Quotations) -> None:
    """Delete the receipts that delivered these rows, and clear the queries that quote them.

    A receipt with `repeat` stays without its query, so that what its session was given before still does not count.
    """
    listed = (rows.to_json(list(purged)),)
    delivering = f"receipt IN (SELECT receipt FROM deliveries WHERE row IN {_LISTED})"
    db.execute(f"UPDATE receipts SET query = '' WHERE repeat = 1 AND {delivering}", listed)
    db.execute(f"DELETE FROM receipts WHERE repeat = 0 AND {delivering}", listed)
    queries = (query for (query,) in db.execute("SELECT DISTINCT query FROM receipts"))
    quoting = [query for query in queries if quotations.quoted_in(query)]
    db.execute(f"UPDATE receipts SET query = '' WHERE query IN {_LISTED}", (rows.to_json(quoting),))


def count(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM receipts").get)


# ---------------------------------------------------------------- inside


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
    sql = (
        "SELECT d.receipt FROM deliveries AS d JOIN receipts AS r ON r.receipt = d.receipt "
        "WHERE d.row = ?1 AND d.at_us BETWEEN ?2 AND ?3 "
        "AND (coalesce(?4, ?5) IS NULL OR r.session IN (?4, ?5) OR r.origin = ?5) "
        "ORDER BY d.at_us DESC, r.id DESC LIMIT 1"
    )
    span = rows.microseconds(at - MARK_WITHIN), rows.microseconds(at), session, origin
    numbers = {}
    for memory_id, row in row_of.items():
        number = db.execute(sql, (row, *span)).get
        if number is None:
            raise InvalidInput(
                "receipt", f"no search delivered {memory_id} in the last 24 hours; name one, see `nacre log`"
            )
        numbers[memory_id] = number
    return numbers


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
