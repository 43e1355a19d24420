"""What must be true of the file of any SQLite store, whatever was done to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from nacre.analysis import near_duplicates, tokenizer
from nacre.analysis.word_forms import tokens_of
from nacre.storage.sqlite import near_duplicates as sqlite_similar
from nacre.storage.sqlite import rows
from nacre.storage.sqlite import space_usage as sqlite_usage


def commits(path: Path) -> bytes:
    """Another after every commit of any connection: the header of the index of the log. Empty if no store is open."""
    index = Path(f"{path}-shm")
    return index.read_bytes()[:48] if index.exists() else b""


def check_derived_tables(path: Path) -> None:
    """FTS, tags, sketches, vocabulary and corpus are what a recount of the rows gives: nothing missing, no ghosts."""
    check_token_vectors(path)
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        listed = f"SELECT m.row, {rows.READ_COLUMNS} FROM memories AS m"
        memories = [(row, rows.memory(columns)) for row, *columns in db.execute(listed).fetchall()]
        every = [(row, memory, tokens_of(memory)) for row, memory in memories]
        live = [(row, memory.space, tokens) for row, memory, tokens in every if memory.deleted is None]
        db.execute("CREATE VIRTUAL TABLE temp.postings USING fts5vocab (main, fts, instance)")
        postings = Counter(db.execute("SELECT doc, term, col FROM temp.postings").fetchall())
        expected = Counter[Any]()
        for row, space, tokens in live:
            expected.update([(row, "|" + space.encode().hex(), "space")])
            for column in ("words", "forms", "summary", "tags", "source"):
                expected.update((row, token, column) for token in getattr(tokens, column))
        assert postings == expected
        assert sorted(db.execute("SELECT rowid FROM fts").fetchall()) == sorted((row,) for row, _, _ in live)

        frequencies = Counter((space, term) for _, space, tokens in live for term in tokenizer.vocabulary(tokens))
        stored: list[tuple[Any, ...]] = db.execute("SELECT space, term, memories FROM vocabulary").fetchall()
        assert {(space, term): memories for space, term, memories in stored} == frequencies
        counted = Counter(space for _, space, _ in live)
        lengths = Counter[str]()
        for _, space, tokens in live:
            lengths[space] += tokens.length
        assert sorted(db.execute("SELECT space, memories, length FROM corpus").fetchall()) == sorted(
            (space, memories, lengths[space]) for space, memories in counted.items()
        )
        hashes = {
            (key ^ sqlite_similar._salt(memory.space), row)
            for row, memory in memories
            for key in near_duplicates.sketch(tokens_of(memory))
        }
        assert set(db.execute("SELECT hash, row FROM sketches").fetchall()) == hashes
        space_usage = "SELECT space, memories, bytes FROM space_usage WHERE memories <> 0 OR bytes <> 0 ORDER BY space"
        counted_before = db.execute(space_usage).fetchall()
        with db:
            sqlite_usage.recount(db)
            assert db.execute(space_usage).fetchall() == counted_before
        tagged = {(tag, row) for row, memory in memories for tag in memory.tags}
        assert set(db.execute("SELECT tag, row FROM tags").fetchall()) == tagged
    finally:
        db.close()


def check_token_vectors(path: Path) -> None:
    """Each memory has as many token vectors as its row says, and only if it has vectors."""
    db = apsw.Connection(str(path))
    try:
        counted = "SELECT key / 64, count(*), max(key % 64) + 1 FROM token_vectors GROUP BY 1"
        expected = (
            "SELECT row, token_passages, token_passages FROM memories WHERE token_passages IS NOT NULL ORDER BY row"
        )
        assert db.execute(counted).fetchall() == db.execute(expected).fetchall()
        assert not db.execute("SELECT 1 FROM memories WHERE token_passages IS NOT NULL AND embedded = 0").get
    finally:
        db.close()


def check_words_of_relations(path: Path) -> None:
    """Live relations are found by their words, and nothing else is."""
    db = apsw.Connection(str(path))
    try:
        live = (
            "SELECT f.fact FROM facts AS f JOIN memories AS m USING (row) WHERE m.deleted_us IS NULL AND f.relation = 1"
        )
        assert set(db.execute("SELECT DISTINCT fact FROM relation_words").fetchall()) == set(
            db.execute(live).fetchall()
        )
    finally:
        db.close()


def check_integrity(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").get == "ok"
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")
    finally:
        db.close()
