"""Reads and writes of single tables: memories, tokens, passages, events. The caller holds the spaces that it writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from nacre.errors import EmbedderMismatch, NotFound
from nacre.storage.postgres import counters, rows, vector_graph
from nacre.storage.postgres.connection import copy, fetch, run
from nacre.storage.postgres.halfvec import HalfVector
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.vectors import pack
from nacre.types.memory import Entry, Identity, Json, Memory, Passages, Span, Tokens

_LOG = (
    f"WITH taken AS ({counters.TAKE}) INSERT INTO events (seq, at_us, action, space, row, memory_id, before) "
    "SELECT taken.value - %s + given.place, %s, %s, given.space, given.row, given.id, given.before "
    "FROM taken, unnest(%s::text[], %s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY "
    "AS given (space, row, id, before, place)"
)
PASSAGE_COLUMNS = "passages (space, row, place, start_char, end_char, siblings, vector, beside_graph)"
PASSAGE_TYPES = ("text", "int8", "int4", "int4", "int4", "int4", "halfvec", "bool")


class Stored(NamedTuple):
    """A memory with its place in the store."""

    row: int
    doc: int
    memory: Memory
    tokens: Tokens

    @property
    def key(self) -> Key:
        return self.memory.space, self.row


class Touched(NamedTuple):
    """What an event is about."""

    space: str
    row: int
    memory_id: str
    before: str | None = None  # JSON object: what an update replaced


# ---------------------------------------------------------------- writing


def insert(db: Db, entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """Insert the memories whose key or text is new in their space. Returns these with their rows.

    Nobody else writes to their spaces, so what is new is known before.
    """
    known = set(identified(db, (entry.identity for entry in entries), None))
    new: dict[Identity, Entry] = {}
    for entry in entries:
        if entry.identity not in known:
            new.setdefault(entry.identity, entry)
    written = list(zip(numbers(db, "memory_rows", len(new)), new.values(), strict=True))
    copy(
        db,
        f"memories (row, doc, {rows.WRITTEN_COLUMNS})",
        ("int8", "int8", *rows.WRITTEN_TYPES),
        ((row, row, *rows.written(entry)) for row, entry in written),
    )
    return written


def numbers(db: Db, sequence: str, count: int) -> list[int]:
    """New numbers in ascending order."""
    sql = "SELECT nextval(%s::regclass) FROM generate_series(1, %s) ORDER BY 1"
    return [number for (number,) in fetch(db, sql, (sequence, count))] if count else []


def write_tokens(db: Db, written: Iterable[tuple[str, int, Tokens]]) -> None:
    """Insert the tokens of memories, given as (space, row, tokens)."""
    copy(
        db,
        "tokens (space, row, words, forms, summary, tags, source, length)",
        ("text", "int8", "text", "text", "text", "text", "text", "int4"),
        ((space, row, *rows.token_columns(tokens)) for space, row, tokens in written),
    )


def write_passages(db: Db, written: Iterable[tuple[Key, Passages | None]]) -> None:
    """Insert the passages of memories that have none."""
    listed = [(key, passages) for key, passages in written if passages is not None]
    if listed:
        beside = vector_graph.is_there(db, listed[0][1].vectors.shape[1])
        copy(
            db,
            PASSAGE_COLUMNS,
            PASSAGE_TYPES,
            (
                (*key, place, span.start, span.end, len(passages.spans), HalfVector(pack(vector)), beside)
                for key, passages in listed
                for place, (span, vector) in enumerate(zip(passages.spans, passages.vectors, strict=True))
            ),
        )


def rewrite_passages(db: Db, written: Sequence[tuple[Key, Passages | None]]) -> None:
    """Replace the passages of memories."""
    if not written:
        return
    keys = rows.columns_of(key for key, _ in written)
    run(
        db,
        "DELETE FROM passages AS p USING unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "WHERE p.space = given.space AND p.row = given.row",
        keys,
    )
    write_passages(db, written)
    run(
        db,
        "UPDATE memories AS m SET embedded = given.embedded "
        "FROM unnest(%s::text[], %s::bigint[], %s::boolean[]) AS given (space, row, embedded) "
        "WHERE m.space = given.space AND m.row = given.row",
        (*keys, [passages is not None for _, passages in written]),
    )


def log_events(db: Db, action: str, touched: Iterable[Touched], at: datetime | None = None) -> None:
    """Write an event about each memory. Others that write to the store wait from here on, so this comes last."""
    listed = list(touched)
    if not listed:
        return
    at_us = time.time_ns() // 1000 if at is None else rows.microseconds(at)
    spaces, memory_rows, ids, before = map(list, zip(*listed, strict=True))
    run(db, _LOG, (len(listed), "events", len(listed), at_us, action, spaces, memory_rows, ids, before))


def adopt_model(db: Db, model: str | None, location: str) -> None:
    """Set the model of the store if it has none yet. Raises EmbedderMismatch if it has another one."""
    current = rows.meta(db, "model")
    if current is None and model is not None:  # two writers may be first
        run(db, "INSERT INTO meta VALUES ('model', %s) ON CONFLICT (key) DO NOTHING", (model,))
        current = rows.meta(db, "model")
    if current != model:
        raise model_mismatch(current, model, location)


def model_mismatch(stored: str | None, given: str | None, location: str) -> EmbedderMismatch:
    return EmbedderMismatch(
        f"embedder: the vectors of {location} come from {stored}, not from {given}; run `nacre reembed`"
    )


# ---------------------------------------------------------------- reading

_BEFORE_ALL = -(2**63)  # a time at which nothing has expired
# The last of several that an identity names counts.
_IDENTIFIED = """
WITH given AS (SELECT * FROM unnest(%s::text[], %s::bytea[]) AS given (space, hash)), found AS (
  SELECT g.space, g.hash, m.id, m.expires_us, -m.row AS place
  FROM given AS g JOIN memories AS m ON m.space = g.space
    AND m.content_hash = g.hash AND m.deleted_us IS NULL AND m.key IS NOT NULL
  UNION ALL
  SELECT g.space, g.hash, m.id, m.expires_us, 1 AS place
  FROM given AS g JOIN memories AS m ON m.space = g.space AND m.identity = g.hash AND m.deleted_us IS NULL
)
SELECT space, hash, id FROM found WHERE expires_us IS NULL OR expires_us > %s ORDER BY place
"""


def identified(db: Db, identities: Iterable[Identity], now: datetime | None) -> dict[Identity, str]:
    """The ids of the memories that these identities name and that are live at that time; None: whenever.

    A text without a key names the memory that has it and no key, or else the oldest one that has it under a key.
    """
    asked = {(each[0], rows.identity_hash(each)): each for each in identities}
    if not asked:
        return {}
    given = [list(column) for column in zip(*asked, strict=True)]
    at_us = _BEFORE_ALL if now is None else rows.microseconds(now)
    return {asked[space, each]: memory_id for space, each, memory_id in fetch(db, _IDENTIFIED, (*given, at_us))}


def live_keys(db: Db, memory_ids: Sequence[str], space: str | None = None) -> dict[str, Key]:
    """Spaces and rows of live memories by id. Raises NotFound for an id that no live memory (of this space) has."""
    sql = "SELECT id, space, row FROM memories WHERE deleted_us IS NULL AND id = ANY(%s)"
    found = {
        memory_id: (stored_space, row)
        for memory_id, stored_space, row in fetch(db, sql, (list(memory_ids),))
        if space in (None, stored_space)
    }
    missing = tuple(dict.fromkeys(each for each in memory_ids if each not in found))
    if missing:
        raise NotFound(missing)
    return found


def missing_vectors(db: Db, texts: Mapping[str, str]) -> dict[str, tuple[Key, tuple[Span, ...] | None]]:
    """Those live memories that still have these texts and lack vectors or token vectors, in the given order.

    By id: space and row, and the spans of the passages; None: it has no vectors.
    """
    sql = (
        "SELECT m.id, m.space, m.row, m.embedded, p.start_char, p.end_char "
        "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (id, text, place) "
        "JOIN memories AS m ON m.id = given.id AND m.text = given.text "
        "LEFT JOIN passages AS p ON m.embedded AND p.space = m.space AND p.row = m.row "
        "WHERE m.deleted_us IS NULL AND (NOT m.embedded OR m.token_passages IS NULL) ORDER BY given.place, p.place"
    )
    found: dict[str, tuple[Key, tuple[Span, ...] | None]] = {}
    for memory_id, space, row, embedded, start, end in fetch(db, sql, (list(texts), list(texts.values()))):
        _, spans = found.get(memory_id, (None, ()))
        found[memory_id] = (space, row), (*(spans or ()), Span(start, end)) if embedded else None
    return found


def with_tokens(db: Db, ids: Sequence[str]) -> list[Stored]:
    """Memories with their tokens, each once, in the given order. Raises NotFound."""
    sql = (
        f"SELECT m.row, m.doc, {rows.READ_COLUMNS}, {rows.WORD_COLUMNS} FROM memories AS m "
        "JOIN tokens AS t ON t.space = m.space AND t.row = m.row WHERE m.id = ANY(%s)"
    )
    found = {}
    for row, doc, *columns in fetch(db, sql, (list(ids),)):
        stored = Stored(row, doc, rows.memory(columns[:-6]), rows.tokens(columns[-6:]))
        found[stored.memory.id] = stored
    missing = tuple(each for each in dict.fromkeys(ids) if each not in found)
    if missing:
        raise NotFound(missing)
    return [found[each] for each in dict.fromkeys(ids)]


def former_values(db: Db, memory: Memory) -> list[dict[str, Json]]:
    """What the updates of a memory replaced."""
    sql = "SELECT before FROM events WHERE memory_id = %s AND before IS NOT NULL ORDER BY seq"
    return [json.loads(before) for (before,) in fetch(db, sql, (memory.id,))]
