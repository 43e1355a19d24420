"""Makes what is derived from the memories anew: tokens, vocabulary, postings, sketches, counts.

The index of vectors is built anew by vector_graph.py.
"""

from __future__ import annotations

from nacre.analysis import tokenizer
from nacre.analysis.language import with_language
from nacre.analysis.near_duplicates import sketch
from nacre.analysis.word_forms import tokens_of
from nacre.storage.changes import identity
from nacre.storage.postgres import near_duplicates, rows, space_usage, vocabulary
from nacre.storage.postgres.connection import Connections, fetch, run, run_many
from nacre.storage.postgres.counters import bump_revision
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import numbers, write_tokens

_ROWS = 500


def retokenise_if_older(connections: Connections) -> None:
    """A store that another version tokenised is tokenised again, once."""
    if connections.read(rows.meta, "words_version") != str(tokenizer.VERSION):
        connections.write_alone(_retokenise_once)


def rebuild(connections: Connections) -> None:
    connections.write_alone(retokenise)


def retokenise(db: Db) -> None:
    """The caller is the only one that writes."""
    for table in ("tokens", "vocabulary", "postings", "corpus", "sketches"):
        run(db, f"DELETE FROM {table}")
    after: tuple[str, int] = ("", 0)
    sql = (
        f"SELECT m.row, {rows.READ_COLUMNS} FROM memories AS m WHERE (m.space, m.row) > (%s, %s) "
        "ORDER BY m.space, m.row LIMIT %s"
    )
    while batch := fetch(db, sql, (*after, _ROWS)):
        memories = [(row, with_language(rows.memory(columns))) for row, *columns in batch]
        docs = numbers(db, "memory_rows", len(memories))
        tokenised = [(row, doc, memory, tokens_of(memory)) for doc, (row, memory) in zip(docs, memories, strict=True)]
        write_tokens(db, ((memory.space, row, tokens) for row, _, memory, tokens in tokenised))
        run_many(
            db,
            "UPDATE memories SET doc = %s, metadata_pairs = %s, identity = %s, language = %s "
            "WHERE space = %s AND row = %s",
            (
                (
                    doc,
                    rows.pairs(memory.metadata),
                    rows.identity_hash(identity(memory)),
                    memory.language,
                    memory.space,
                    row,
                )
                for row, doc, memory, _ in tokenised
            ),
        )
        live = ((memory.space, doc, tokens) for _, doc, memory, tokens in tokenised if memory.deleted is None)
        vocabulary.add(db, live)
        near_duplicates.sketch(db, [(memory.space, row, sketch(tokens)) for row, _, memory, tokens in tokenised])
        after = memories[-1][1].space, memories[-1][0]
    space_usage.recount(db)
    rows.set_meta(db, "words_version", str(tokenizer.VERSION))
    bump_revision(db)


def _retokenise_once(db: Db) -> None:
    if rows.meta(db, "words_version") != str(tokenizer.VERSION):  # nobody else was first
        retokenise(db)
