"""Reads and writes of single tables: memories, tokens, passages, events, settings. The caller holds a transaction."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import apsw

from nacre.errors import EmbedderMismatch, NotFound
from nacre.storage.sqlite import rows
from nacre.types.memory import Entry, Identity, Json, Memory, Passages, Span, Tokens

# ---------------------------------------------------------------- writing rows


def insert(db: apsw.Connection, entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """Insert the memories whose key or text is new in their space. Returns these with their rows.

    One statement inserts the whole batch in C, so that Python can prepare the next batch meanwhile.
    """
    last = db.execute("SELECT max(row) FROM memories").get or 0
    known = _keyed_texts(db, (entry.identity for entry in entries))
    entries = [entry for entry in entries if entry.identity not in known] if known else entries
    if not entries:
        return []
    selected, parameters = rows.json_source(rows.memory_columns(entries))
    *columns, content_hash, embedded, token_passages = selected
    db.execute(
        f"INSERT INTO memories ({rows.COLUMNS.replace('m.', '')}, content_hash, embedded, token_passages) "
        f"SELECT {', '.join(columns)}, unhex({content_hash}), {embedded}, {token_passages} "
        "FROM json_each(?) WHERE true "
        "ON CONFLICT (space, ifnull(key, content_hash)) WHERE deleted_us IS NULL DO NOTHING",
        parameters,
    )
    if db.changes() == len(entries):  # then the rows are consecutive
        newest = db.last_insert_rowid()
        return list(zip(range(newest - len(entries) + 1, newest + 1), entries, strict=True))
    row_of = dict(rows.fetch(db, "SELECT id, row FROM memories WHERE row > ?", (last,)))
    return [(row_of[entry.memory.id], entry) for entry in entries if entry.memory.id in row_of]


def write_tokens(db: apsw.Connection, written: Iterable[tuple[int, str, Tokens]]) -> None:
    """One statement for all rows: FTS5 has a high cost per statement, however small."""
    listed = list(written)
    if not listed:
        return
    selected, parameters = rows.json_source(rows.token_columns(listed))
    db.execute(
        f"INSERT INTO tokens SELECT {', '.join(selected)} FROM json_each(?) WHERE true "
        "ON CONFLICT DO UPDATE SET words = excluded.words, forms = excluded.forms, length = excluded.length, "
        "summary = excluded.summary, tags = excluded.tags, source = excluded.source",
        parameters,
    )


def write_passages(db: apsw.Connection, written: Iterable[tuple[int, Passages | None]]) -> None:
    embedded = [(row, passages) for row, passages in written if passages is not None]
    if not embedded:
        return
    from nacre.storage.vectors import pack

    db.executemany(
        "INSERT INTO passages (row, start_char, end_char, vector) VALUES (?, ?, ?, ?)",
        (
            (row, span.start, span.end, pack(vector))
            for row, passages in embedded
            for span, vector in zip(passages.spans, passages.vectors, strict=True)
        ),
    )


def rekey_passages(db: apsw.Connection, listed: Sequence[int]) -> None:
    """Give the passages of restored memories new keys: the vector index relies on keys that are never used again."""
    newest = db.execute("SELECT coalesce(max(passage), 0) FROM passages").get
    selected = "FROM passages WHERE row IN (SELECT value FROM json_each(?))"
    rows_json = rows.to_json(list(listed))
    db.execute(
        f"INSERT INTO passages (row, start_char, end_char, vector) SELECT row, start_char, end_char, vector {selected} "
        "ORDER BY passage",
        (rows_json,),
    )
    db.execute(f"DELETE {selected} AND passage <= ?", (rows_json, newest))


def log_events(
    db: apsw.Connection,
    action: str,
    touched: Iterable[tuple[int, str, str, str | None]],
    at: datetime | None = None,
) -> None:
    listed = list(touched)
    if not listed:
        return
    at_us = time.time_ns() // 1000 if at is None else rows.microseconds(at)
    selected, parameters = rows.json_source(list(zip(*listed, strict=True)))
    db.execute(
        "INSERT INTO events (at_us, action, row, space, memory_id, before) "
        f"SELECT ?, ?, {', '.join(selected)} FROM json_each(?)",
        (at_us, action, *parameters),
    )


def adopt_model(db: apsw.Connection, model: str | None, path: Path) -> None:
    """Set the model of the store if it has none yet. Raises EmbedderMismatch if it has another one."""
    current = rows.meta(db, "model")
    if current is None and model is not None:
        rows.set_meta(db, "model", model)
    elif current != model:
        raise model_mismatch(current, model, path)


def model_mismatch(stored: str | None, given: str | None, path: Path) -> EmbedderMismatch:
    return EmbedderMismatch(
        f"embedder: the vectors of {path} come from {stored}, not from {given}; run `nacre reembed`"
    )


# ---------------------------------------------------------------- reading rows

_ANY_KEYED = (
    "SELECT 1 FROM memories INDEXED BY memories_keyed_texts WHERE deleted_us IS NULL AND key IS NOT NULL LIMIT 1"
)
_UNEXPIRED = "(m.expires_us IS NULL OR m.expires_us > ?)"
_BEFORE_ALL = -(2**63)  # a time at which nothing has expired


def identified(db: apsw.Connection, identities: Iterable[Identity], now: datetime) -> dict[Identity, str]:
    """The ids of the memories that these identities name and that are live at that time.

    A text without a key names the memory that has it and no key, or else the oldest one that has it under a key.
    """
    listed = list(identities)
    found = _keyed_texts(db, listed, now)
    keys, hashes = _by_space(listed)
    sql = (
        "SELECT ifnull(m.key, m.content_hash), m.id FROM json_each(?) AS given CROSS JOIN memories AS m "
        "ON m.space = ? AND ifnull(m.key, m.content_hash) = {} AND m.deleted_us IS NULL "
        f"WHERE {_UNEXPIRED}"
    )
    for given, named in ((keys, "given.value"), (hashes, "unhex(given.value)")):
        for space, several in given.items():
            parameters = (rows.to_json(several), space, rows.microseconds(now))
            found.update(
                ((space, each), memory_id) for each, memory_id in rows.fetch(db, sql.format(named), parameters)
            )
    return found


def _by_space(identities: Iterable[Identity]) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    """Keys, and hashes in hex."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    hashes: defaultdict[str, list[str]] = defaultdict(list)
    for space, each in identities:
        if isinstance(each, bytes):
            hashes[space].append(each.hex())
        else:
            keys[space].append(each)
    return keys, hashes


def _keyed_texts(
    db: apsw.Connection, identities: Iterable[Identity], now: datetime | None = None
) -> dict[Identity, str]:
    """By identity that is a text alone: the oldest live memory that has it under a key."""
    if not db.execute(_ANY_KEYED).get:
        return {}
    _, hashes = _by_space(identities)
    sql = (
        "SELECT m.content_hash, m.id FROM json_each(?) AS given "
        "CROSS JOIN memories AS m INDEXED BY memories_keyed_texts ON m.space = ? "
        "AND m.content_hash = unhex(given.value) AND m.deleted_us IS NULL AND m.key IS NOT NULL "
        f"WHERE {_UNEXPIRED} ORDER BY m.row DESC"
    )
    at_us = _BEFORE_ALL if now is None else rows.microseconds(now)
    return {
        (space, content_hash): memory_id
        for space, several in hashes.items()
        for content_hash, memory_id in rows.fetch(db, sql, (rows.to_json(several), space, at_us))
    }


def live_rows(db: apsw.Connection, memory_ids: Sequence[str], space: str | None = None) -> dict[str, int]:
    """Rows of live memories by id. Raises NotFound for an id that no live memory (of this space) has."""
    sql = "SELECT id, row, space FROM memories WHERE deleted_us IS NULL AND id IN (SELECT value FROM json_each(?))"
    found = {
        memory_id: row
        for memory_id, row, stored_space in rows.fetch(db, sql, (rows.to_json(list(memory_ids)),))
        if space in (None, stored_space)
    }
    missing = tuple(dict.fromkeys(each for each in memory_ids if each not in found))
    if missing:
        raise NotFound(missing)
    return found


def missing_vectors(
    db: apsw.Connection, texts: Mapping[str, str]
) -> dict[str, tuple[int, str, tuple[Span, ...] | None]]:
    """Those live memories that still have these texts and lack vectors or token vectors, in the given order.

    By id: row, space, and the spans of the passages; None: it has no vectors.
    """
    sql = (
        "SELECT row, space, embedded FROM memories WHERE id = ? AND text = ? AND deleted_us IS NULL "
        "AND (embedded = 0 OR token_passages IS NULL)"
    )
    passages = "SELECT start_char, end_char FROM passages WHERE row = ? ORDER BY passage"
    found: dict[str, tuple[int, str, tuple[Span, ...] | None]] = {}
    for memory_id, text in texts.items():
        for row, space, embedded in rows.fetch(db, sql, (memory_id, text)):
            spans = tuple(Span(*each) for each in rows.fetch(db, passages, (row,))) if embedded else None
            found[memory_id] = row, space, spans
    return found


def with_tokens(db: apsw.Connection, ids: Sequence[str]) -> list[tuple[int, Memory, Tokens]]:
    """Rows, memories and tokens of these ids, each once, in the given order. Raises NotFound."""
    sql = (
        f"SELECT m.row, {rows.READ_COLUMNS}, {rows.WORD_COLUMNS} FROM memories AS m "
        "JOIN tokens AS t ON t.row = m.row WHERE m.id = ?"
    )
    found = []
    missing = []
    for memory_id in dict.fromkeys(ids):
        each = rows.fetch(db, sql, (memory_id,))
        if each:
            row, *columns = each[0]
            found.append((row, rows.memory(columns[:-6]), rows.tokens(columns[-6:])))
        else:
            missing.append(memory_id)
    if missing:
        raise NotFound(tuple(missing))
    return found


def former_values(db: apsw.Connection, memory: Memory) -> list[dict[str, Json]]:
    """What the updates of a memory replaced."""
    sql = "SELECT before FROM events WHERE memory_id = ? AND before IS NOT NULL"
    return [json.loads(before) for (before,) in rows.fetch(db, sql, (memory.id,))]


def bump_revision(db: apsw.Connection) -> None:
    """Count a change that may change search results but is not an event of a memory."""
    db.execute(
        "INSERT INTO meta VALUES ('revision', '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value + 1 AS TEXT)"
    )
