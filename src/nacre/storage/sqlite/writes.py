"""What the writing methods of the store are made of: rows, tokens, passages, events and settings of one transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import apsw

from nacre.errors import EmbedderMismatch, NotFound
from nacre.storage.sqlite import rows
from nacre.types.memory import Entry, Memory, Passages, Tokens

# ---------------------------------------------------------------- writing rows


def insert(db: apsw.Connection, entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """Write the memories whose text is not there yet; gives these with their rows.

    One statement a batch: it runs in C from beginning to end while Python prepares the next batch.
    """
    last = db.execute("SELECT max(row) FROM memories").get or 0
    selected, parameters = rows.given(rows.memory_columns(entries))
    *columns, content_hash, embedded = selected
    db.execute(
        f"INSERT INTO memories ({rows.COLUMNS.replace('m.', '')}, content_hash, embedded) "
        f"SELECT {', '.join(columns)}, unhex({content_hash}), {embedded} FROM json_each(?) WHERE true "
        "ON CONFLICT (space, content_hash) WHERE deleted_us IS NULL DO NOTHING",
        parameters,
    )
    if db.changes() == len(entries):  # then rows were counted up without a gap
        newest = db.last_insert_rowid()
        return list(zip(range(newest - len(entries) + 1, newest + 1), entries, strict=True))
    row_of = dict(rows.fetch(db, "SELECT id, row FROM memories WHERE row > ?", (last,)))
    return [(row_of[entry.memory.id], entry) for entry in entries if entry.memory.id in row_of]


def write_tokens(db: apsw.Connection, written: Iterable[tuple[int, str, Tokens]]) -> None:
    """One statement for all: FTS5 does much work for each statement that touches it, however small."""
    listed = list(written)
    if not listed:
        return
    selected, parameters = rows.given(rows.token_columns(listed))
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
    """Give passages that come back new keys: what the vector index has seen go never comes back under its old one."""
    newest = db.execute("SELECT coalesce(max(passage), 0) FROM passages").get
    among = "FROM passages WHERE row IN (SELECT value FROM json_each(?))"
    rows_json = rows.to_json(list(listed))
    db.execute(
        f"INSERT INTO passages (row, start_char, end_char, vector) SELECT row, start_char, end_char, vector {among} "
        "ORDER BY passage",
        (rows_json,),
    )
    db.execute(f"DELETE {among} AND passage <= ?", (rows_json, newest))


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
    selected, parameters = rows.given(list(zip(*listed, strict=True)))
    db.execute(
        "INSERT INTO events (at_us, action, row, space, memory_id, before) "
        f"SELECT ?, ?, {', '.join(selected)} FROM json_each(?)",
        (at_us, action, *parameters),
    )


def adopt(db: apsw.Connection, model: str | None, path: Path) -> None:
    """Make the store's vectors this model's, unless they are another's."""
    current = meta(db, "model")
    if current is None and model is not None:
        set_meta(db, "model", model)
    elif current != model:
        raise mismatch(current, model, path)


def mismatch(stored: str | None, given: str | None, path: Path) -> EmbedderMismatch:
    return EmbedderMismatch(
        f"embedder: the vectors of {path} come from {stored}, not from {given}; run `nacre reembed`"
    )


# ---------------------------------------------------------------- reading rows


def meta(db: apsw.Connection, key: str) -> str | None:
    value: str | None = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def set_meta(db: apsw.Connection, key: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def twin_of(db: apsw.Connection, space: str, content_hash: bytes) -> str | None:
    """The live memory with this text."""
    twin: str | None = db.execute(
        "SELECT id FROM memories WHERE space = ? AND content_hash = ? AND deleted_us IS NULL", (space, content_hash)
    ).get
    return twin


def twins_of(db: apsw.Connection, keys: Iterable[tuple[str, bytes]]) -> dict[tuple[str, bytes], str]:
    """The live memories with these texts, by space and content hash: one statement for each space."""
    hashes: defaultdict[str, list[str]] = defaultdict(list)
    for space, content_hash in keys:
        hashes[space].append(content_hash.hex())
    sql = (
        "SELECT m.content_hash, m.id FROM json_each(?) AS given CROSS JOIN memories AS m "
        "ON m.space = ? AND m.content_hash = unhex(given.value) AND m.deleted_us IS NULL"
    )
    return {
        (space, content_hash): memory_id
        for space, several in hashes.items()
        for content_hash, memory_id in rows.fetch(db, sql, (rows.to_json(several), space))
    }


def live_twin(db: apsw.Connection, entry: Entry) -> str:
    twin = twin_of(db, entry.memory.space, entry.content_hash)
    assert twin is not None, "the unique index refused a row that has no twin"
    return twin


def several(db: apsw.Connection, ids: Sequence[str]) -> list[tuple[int, Memory, Tokens]]:
    """Rows, memories and tokens by id, each once, in order. Raises NotFound."""
    sql = (
        f"SELECT m.row, {rows.COLUMNS}, {rows.WORD_COLUMNS} FROM memories AS m "
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


def one(db: apsw.Connection, memory_id: str) -> tuple[int, Memory, Tokens]:
    return several(db, [memory_id])[0]


def bump(db: apsw.Connection) -> None:
    """Count a change that may change answers but is no event of a memory."""
    db.execute(
        "INSERT INTO meta VALUES ('revision', '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value + 1 AS TEXT)"
    )
