"""Makes what is derived from the memories anew: tokens, FTS, tags, counts and sketches."""

from __future__ import annotations

import apsw

from nacre.analysis import tokenizer
from nacre.analysis.language import with_language
from nacre.analysis.near_duplicates import sketch
from nacre.analysis.word_forms import tokens_of
from nacre.storage.sqlite import near_duplicates, rows
from nacre.storage.sqlite.vocabulary import update_counts
from nacre.storage.sqlite.writes import bump_revision, write_tokens

_ROWS = 500


def retokenise(db: apsw.Connection) -> None:
    """The caller holds a write transaction."""
    db.execute("INSERT INTO fts (fts) VALUES ('delete-all')")
    db.execute("DELETE FROM tokens WHERE row NOT IN (SELECT row FROM memories)")
    for table in ("tags", "vocabulary", "corpus", "sketches"):
        db.execute(f"DELETE FROM {table}")
    db.execute("INSERT INTO tags SELECT value, row FROM memories, json_each(tags)")
    after = 0
    sql = f"SELECT m.row, {rows.READ_COLUMNS} FROM memories AS m WHERE m.row > ? ORDER BY m.row LIMIT ?"
    while batch := rows.fetch(db, sql, (after, _ROWS)):
        memories = [(row, with_language(rows.memory(columns))) for row, *columns in batch]
        found = [(memory.language, row) for row, memory in memories if memory.language]
        db.executemany("UPDATE memories SET language = ? WHERE row = ? AND language IS NULL", found)
        tokenised = [(row, memory, tokens_of(memory)) for row, memory in memories]
        write_tokens(db, [(row, memory.space, tokens) for row, memory, tokens in tokenised])
        live = ((row, memory.space, tokens) for row, memory, tokens in tokenised if memory.deleted is None)
        update_counts(db, live, 1)
        near_duplicates.sketch(db, [(row, memory.space, sketch(tokens)) for row, memory, tokens in tokenised])
        after = batch[-1][0]
    rows.set_meta(db, "words_version", str(tokenizer.VERSION))
    bump_revision(db)
