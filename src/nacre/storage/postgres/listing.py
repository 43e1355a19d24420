"""Memories by id, by time, and by what they lack."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.interfaces import TimePage
from nacre.query.ast import Condition, has_words
from nacre.storage.postgres import further_vectors, rows
from nacre.storage.postgres.connection import fetch, value
from nacre.storage.postgres.filters import (
    FORGOTTEN,
    LIVE,
    Clause,
    condition_clause,
    filter_clause,
    search_clause,
)
from nacre.storage.postgres.halfvec import all_received
from nacre.storage.postgres.placements import HIDDEN
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.words import WordsOfMemories, WordsOfSpaces
from nacre.storage.vectors import unpack
from nacre.types.memory import Event, Memory
from nacre.types.search import Filter

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

PENDING = "NOT m.embedded AND m.deleted_us IS NULL"
_HERE = Clause(f"NOT {HIDDEN.format('m')}", ())
PENDING_TOKENS = "m.token_passages IS NULL AND m.embedded AND m.deleted_us IS NULL"


def get(db: Db, ids: Sequence[str]) -> dict[str, Memory]:
    sql = f"SELECT {rows.READ_COLUMNS} FROM memories AS m WHERE m.id = ANY(%s)"
    return {memory.id: memory for memory in map(rows.memory, fetch(db, sql, (list(ids),)))}


def matching(db: Db, ids: Sequence[str], condition: Condition) -> set[str]:
    """Those of these memories that are live and match a condition."""
    words = WordsOfMemories(db, ids if has_words(condition) else ())
    clause = Clause("m.id = ANY(%s)", (list(ids),)) & LIVE & condition_clause(condition, words.docs)
    sql = f"SELECT m.id FROM memories AS m WHERE {clause.sql}"
    return {memory_id for (memory_id,) in fetch(db, sql, clause.parameters)}


def by_time(db: Db, where: Filter, page: TimePage, must: Condition | None, forgotten: bool) -> list[Memory]:
    clause = search_clause(where, must, WordsOfSpaces(db, where.spaces).docs) & (FORGOTTEN if forgotten else LIVE)
    if len(where.spaces) == 1:  # as a single value, it lets the server read the latest by the index and stop
        clause &= Clause("m.space = %s", (where.spaces[0],))
    direction, beyond = ("ASC", ">") if page.oldest_first else ("DESC", "<")
    if page.after is not None:
        created, memory_id = page.after
        clause &= Clause(f"(m.created_us, m.id) {beyond} (%s, %s)", (rows.microseconds(created), memory_id))
    sql = (
        f"SELECT {rows.READ_COLUMNS} FROM memories AS m WHERE {clause.sql} "
        f"ORDER BY m.created_us {direction}, m.id {direction} LIMIT %s"
    )
    return [rows.memory(row) for row in fetch(db, sql, (*clause.parameters, page.limit))]


def vectors(db: Db, memory_id: str, model: str | None) -> FloatMatrix | None:
    given: tuple[str | int, ...] = (memory_id,)
    table, also = "passages", "m.embedded"
    if model is not None and further_vectors.is_known(db, model):
        table, also, given = "further_passages", "p.model = %s", (memory_id, further_vectors.number_of(model))
    sql = (
        f"SELECT p.vector FROM memories AS m JOIN {table} AS p ON p.space = m.space AND p.row = m.row "
        f"WHERE m.id = %s AND {also} ORDER BY p.place"
    )
    sent = (db.seen or {}).get(vectors_of(memory_id)) if model is None else None
    if sent is None:
        sent = [each for (each,) in fetch(db, sql, given)]
    return unpack(all_received(sent)) if sent else None


def vectors_of(memory_id: str | None) -> tuple[str, str | None]:
    """Where a transaction that only reads has the vectors of a memory that it has read."""
    return "vectors", memory_id


def without_vectors(db: Db, ids: Sequence[str], model: str | None) -> set[str]:
    clause = Clause("m.id = ANY(%s)", (list(ids),)) & pending_clause(db, model)
    return {
        memory_id for (memory_id,) in fetch(db, f"SELECT m.id FROM memories AS m WHERE {clause.sql}", clause.parameters)
    }


def pending_clause(db: Db, model: str | None) -> Clause:
    return Clause(PENDING, ()) if model is None else further_vectors.pending_clause(db, model)


def pending(db: Db, where: Filter | None, limit: int, model: str | None) -> list[tuple[str, str]]:
    return having(db, pending_clause(db, model), where, limit)


def pending_count(db: Db, where: Filter | None, model: str | None) -> int:
    return count_having(db, pending_clause(db, model), where)


def having(db: Db, condition: Clause, where: Filter | None, limit: int) -> list[tuple[str, str]]:
    """(id, text) of the first memories that match a condition and the filter."""
    clause = condition & (_HERE if where is None else filter_clause(where))
    sql = f"SELECT m.id, m.text FROM memories AS m WHERE {clause.sql} ORDER BY m.row LIMIT %s"
    return [(memory_id, text) for memory_id, text in fetch(db, sql, (*clause.parameters, limit))]


def count_having(db: Db, condition: Clause, where: Filter | None) -> int:
    clause = condition & (_HERE if where is None else filter_clause(where))
    sql = f"SELECT count(*) FROM memories AS m WHERE {clause.sql}"
    return int(value(db, sql, clause.parameters))


def history(db: Db, memory_id: str) -> list[Event]:
    sql = "SELECT seq, at_us, action, memory_id, before FROM events WHERE memory_id = %s ORDER BY seq"
    return [
        Event(seq, rows.moment(at_us), action, named, json.loads(before) if before else {})
        for seq, at_us, action, named, before in fetch(db, sql, (memory_id,))
    ]


def last_row(db: Db) -> int:
    return int(value(db, "SELECT coalesce(max(row), 0) FROM memories"))
