"""The recall log of a space that is moved: its receipts, and the deliveries of its memories.

Each node numbers its receipts itself, so these are compared by their ids. The source keeps, of a receipt of the space,
a part without the query if it delivered memories of spaces that stay there; the target may have such a part already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from nacre.storage.postgres import counters
from nacre.storage.postgres.connection import run
from nacre.storage.postgres.recall_log import (
    DELIVERY_COLUMNS,
    RECEIPT_COLUMNS,
    delete_receipts,
    grow,
)
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.space_copy import Side

_BATCH = 5_000  # receipts that are copied at once
_HEAD = "ROW(r.at_us, r.session, r.query, r.mode, r.lens, r.origin, r.repeat, r.bytes)::text"
_DELIVERED = "ROW(d.memory_space, d.row, d.at_us, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us)::text"
_STATES = f"""
SELECT r.space, r.id, CASE WHEN r.space = %(space)s THEN hashtextextended({_HEAD}, 0) ELSE 0 END,
  coalesce(sum(hashtextextended({_DELIVERED}, 0)::numeric), 0)
FROM receipts AS r LEFT JOIN deliveries AS d
  ON d.space = r.space AND d.receipt = r.receipt AND d.memory_space = %(space)s
WHERE r.space = %(space)s OR d.row IS NOT NULL GROUP BY r.space, r.receipt
"""
_GIVEN = "unnest(%(spaces)s::text[], %(ids)s::text[]) AS given (space, id) JOIN receipts AS r USING (space, id)"
_HEADS = f"""
SELECT r.space, r.receipt, r.id, r.at_us, r.session, CASE WHEN r.space = %(space)s THEN r.query ELSE '' END, r.mode,
  r.lens, r.origin, r.repeat, r.bytes FROM {_GIVEN}
"""
_DELIVERIES = f"""
SELECT r.id, d.space, d.receipt, d.memory_space, d.row, d.at_us, d.rank, d.score, d.opened_us, d.used_us, d.wrong_us
FROM {_GIVEN} JOIN deliveries AS d ON d.space = r.space AND d.receipt = r.receipt AND d.memory_space = %(space)s
"""
_COMING = f"""
CREATE TEMPORARY TABLE coming_receipts AS SELECT {RECEIPT_COLUMNS} FROM receipts WITH NO DATA;
CREATE TEMPORARY TABLE coming_deliveries AS SELECT ''::text AS id, {DELIVERY_COLUMNS} FROM deliveries WITH NO DATA
"""
# A part that is here becomes the whole, and what it delivered of the space is written anew.
_COMPLETE = """
UPDATE receipts AS r SET query = c.query, bytes = c.bytes FROM coming_receipts AS c
WHERE r.space = c.space AND r.id = c.id AND r.space = %(space)s
"""
_CLEAR = """
DELETE FROM deliveries AS d USING coming_receipts AS c JOIN receipts AS r ON r.space = c.space AND r.id = c.id
WHERE d.space = r.space AND d.receipt = r.receipt AND d.memory_space = %(space)s
"""
_ADD = f"""
WITH added AS (
  INSERT INTO receipts ({RECEIPT_COLUMNS})
  SELECT c.space, %(first)s - 1 + row_number() OVER (ORDER BY c.receipt), c.id, c.at_us, c.session, c.query, c.mode,
    c.lens, c.origin, c.repeat, c.bytes
  FROM coming_receipts AS c
  WHERE NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.space = c.space AND r.id = c.id) RETURNING bytes
)
SELECT coalesce(sum(bytes), 0) FROM added
"""
_DELIVER = f"""
INSERT INTO deliveries ({DELIVERY_COLUMNS})
SELECT r.space, r.receipt, c.memory_space, c.row, c.at_us, c.rank, c.score, c.opened_us, c.used_us, c.wrong_us
FROM coming_deliveries AS c JOIN receipts AS r ON r.space = c.space AND r.id = c.id
"""


class _Name(NamedTuple):
    """A receipt, on any node."""

    space: str
    id: str


def sync(source: Db, target: Side, space: str) -> tuple[int, int]:
    """Give the target the log of a space as the source has it. Returns how many receipts it changed, and compared."""
    wanted = _states(space, source)
    found = target.carry_out(partial(_states, space))
    gone = [name for name in found if name not in wanted]
    if gone:
        target.carry_out(partial(_delete, gone, space))
    differing = iter([name for name in wanted if wanted[name] != found.get(name)])
    changed = len(gone)
    while batch := list(islice(differing, _BATCH)):
        target.carry_out(partial(_copy, batch, space, source))
        changed += len(batch)
    return changed, len(wanted)


def leave(db: Db, space: str, batch: int) -> int:
    """On the source: delete what the target has now. Returns how many rows were deleted or changed."""
    changed = run(
        db,
        "DELETE FROM deliveries WHERE (space, receipt, memory_space, row) IN (SELECT space, receipt, memory_space, row "
        "FROM deliveries WHERE memory_space = %s LIMIT %s)",
        (space, batch),
    )
    if changed:
        return changed
    counters.take(db, "receipts", 0)  # nobody writes any meanwhile
    delivering = "EXISTS (SELECT 1 FROM deliveries AS d WHERE d.space = r.space AND d.receipt = r.receipt)"
    changed += run(
        db,
        f"UPDATE receipts AS r SET query = '' WHERE r.space = %s AND r.query <> '' AND ({delivering} OR r.repeat)",
        (space,),
    )
    chosen = (
        f"(space, receipt) IN (SELECT r.space, r.receipt FROM receipts AS r WHERE NOT r.repeat AND NOT {delivering} "
        "AND (r.space = %s OR r.space IN (SELECT p.space FROM placements AS p WHERE p.state <> 'here')) LIMIT %s)"
    )
    return changed + delete_receipts(db, chosen, (space, batch))


def _states(space: str, db: Db) -> dict[_Name, tuple[int, int]]:
    """By receipt of the space, or that delivered memories of it: hashes of itself and of these deliveries."""
    return {
        _Name(own, receipt_id): (head, int(delivered))
        for own, receipt_id, head, delivered in db.execute(_STATES, {"space": space}, binary=True)
    }


def _copy(names: Sequence[_Name], space: str, source: Db, target: Db) -> None:
    """Copy receipts, and what they delivered of the space, and number those that are new."""
    given = {"spaces": [each.space for each in names], "ids": [each.id for each in names], "space": space}
    first = counters.take(target, "receipts", len(names))
    target.execute(_COMING)
    for reading, table in ((_HEADS, "coming_receipts"), (_DELIVERIES, "coming_deliveries")):
        with source.cursor() as reader, target.cursor() as writer:
            out = reader.copy(f"COPY ({reading}) TO STDOUT (FORMAT BINARY)", given)
            with out as blocks, writer.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as into:
                for block in blocks:
                    into.write(block)
    for statement in (_COMPLETE, _CLEAR):
        target.execute(statement, {"space": space})
    (added,) = target.execute(_ADD, {"first": first}).fetchall()
    grow(target, int(added[0]))
    target.execute(_DELIVER)
    target.execute("DROP TABLE coming_receipts, coming_deliveries")


def _delete(names: Sequence[_Name], space: str, db: Db) -> None:
    """Receipts that the source has not any more, or deliveries of them."""
    given = ([each.space for each in names], [each.id for each in names])
    run(
        db,
        "DELETE FROM deliveries AS d USING receipts AS r, unnest(%s::text[], %s::text[]) AS given (space, id) "
        "WHERE r.space = given.space AND r.id = given.id AND d.space = r.space AND d.receipt = r.receipt "
        "AND d.memory_space = %s",
        (*given, space),
    )
    chosen = "space = %s AND (space, id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
    delete_receipts(db, chosen, (space, *given))
