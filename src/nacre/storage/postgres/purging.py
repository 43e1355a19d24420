"""Deletes memories for good, with all that quotes them.

PostgreSQL keeps the bytes of deleted rows for a while: in their pages until VACUUM frees these and other rows take
their place, as keys of the indexes of tags and metadata and as bounds between pages of an index, which are never
removed, in its write-ahead log until that is recycled or its archive is deleted, and in replicas, backups and snapshots
as long as those are kept. A purge runs VACUUM, and says what only the operator can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from typing import NamedTuple

from psycopg import sql as quoting

from nacre.analysis.quotations import Quotations, found_in, significant_tokens
from nacre.analysis.tokenizer import vocabulary as terms_of
from nacre.errors import NacreError
from nacre.storage.changes import labels_ever, stated, texts_ever
from nacre.storage.postgres import (
    facts,
    kept_answers,
    placements,
    postings,
    recall_log,
    receipt_parts,
    rows,
    vocabulary,
)
from nacre.storage.postgres.connection import Connections, fetch, hold_memories, run
from nacre.storage.postgres.schema import OF_MEMORIES, Db
from nacre.storage.postgres.writes import Stored, Touched, former_values, log_events, with_tokens

LEFT = (
    "PostgreSQL keeps bytes of deleted rows in free space of its files until other rows overwrite them, some words, "
    "tags and metadata as keys of indexes, and all of it in its write-ahead log until that is recycled, and in "
    "archives, replicas and backups; `VACUUM FULL` writes tables and indexes anew"
)
_NOT_FREED = "PostgreSQL has not freed the deleted rows yet ({}); autovacuum does, unless a transaction stays open"
_VACUUM_MS = 60_000
# Where rows of memories, or what quotes them, were deleted or changed.
_VACUUMED = (
    *("memories", *OF_MEMORIES, "events", "facts", "relation_words", "entities", "entity_names", "near_duplicates"),
    *("updates", "vocabulary", "postings", "receipts", "deliveries", "kept_answers"),
)
_BATCH_ROWS = 1_000
_OWN = (*OF_MEMORIES, "near_duplicates", "memories")
_GIVEN = "USING unnest(%s::text[], %s::bigint[]) AS given (space, row)"
_UNLINK = (
    f"DELETE FROM near_duplicates AS t {_GIVEN} "
    "JOIN near_duplicates AS n ON n.space = given.space AND n.row = given.row "
    "WHERE t.space = n.space AND t.row = n.other AND t.other = n.row"
)


def purge(db: Db, ids: Sequence[str], at: datetime, known: Set[str] = frozenset()) -> None:
    """Delete memories from every table, and log it. Raises NotFound. `known` are words that other nodes have."""
    hold_memories(db, ids)
    found = delete(db, ids, at, known)
    log_events(db, "purged", (Touched(*each.key, each.memory.id) for each in found), at)
    kept_answers.purge(db)


class Quoted(NamedTuple):
    """What a purge of memories has to forget: what quotes them is on every node."""

    texts: list[str]
    words: set[str]  # of their texts, and of all that says something of them
    doubtful: set[str]  # of these, those that are not in a text
    receipts: list[str]  # the ids of those that delivered them


def quoted(db: Db, ids: Sequence[str]) -> Quoted:
    """Before memories are purged. Raises NotFound."""
    found = with_tokens(db, ids)
    texts, of_texts, of_labels = _words_of(db, found)
    receipts = receipt_parts.delivering(db, [each.key for each in found])
    return Quoted(texts, of_texts | of_labels, of_labels - of_texts, receipts)


def words_of_others(db: Db, words: Set[str], doubtful: Set[str], ids: Sequence[str]) -> set[str]:
    """Those of these words that live memories here have, besides these ones, or that something says of any of them."""
    here = f"SELECT m.id FROM memories AS m WHERE m.id = ANY(%s) AND NOT {placements.HIDDEN.format('m')}"
    purged = with_tokens(db, [memory_id for (memory_id,) in fetch(db, here, (list(ids),))])
    counted = Counter(
        term for each in purged if each.memory.deleted is None for term in set(terms_of(each.tokens)) & words
    )
    sql = (
        "SELECT term, sum(v.memories)::bigint FROM corpus AS c JOIN vocabulary AS v USING (space) "
        f"WHERE v.term = ANY(%s) AND NOT {placements.HIDDEN.format('c')} GROUP BY term"
    )
    had = {term for term, memories in fetch(db, sql, (list(words),)) if memories > counted[term]}
    return had | found_in(doubtful - had, _labels_of_others(db, purged))


def purge_elsewhere(
    db: Db, receipts: Sequence[str], texts: Sequence[str], gone: Set[str], at: datetime, *, answers: bool
) -> None:
    """Forget what quotes memories of another node. `answers`: also kept answers."""
    receipt_parts.purge_elsewhere(db, receipts, Quotations(texts, gone), at)
    if answers:
        kept_answers.purge(db)


def delete(db: Db, ids: Sequence[str], at: datetime, known: Set[str] = frozenset()) -> list[Stored]:
    """Delete memories, whose spaces are held, with all that quotes them but kept answers. The caller logs it."""
    found = with_tokens(db, ids)
    live = [each for each in found if each.memory.deleted is None]
    vocabulary.subtract(db, ((each.memory.space, each.tokens) for each in live))
    keys = [each.key for each in found]
    recall_log.purge(db, keys, _quotations(db, found, known), at)
    facts.purged(db, keys)
    _unindex(db, found)
    given = rows.columns_of(keys)
    run(db, _UNLINK, given)
    for table, column in (("updates", "older"), ("updates", "newer"), *((each, "row") for each in _OWN)):
        run(db, f"DELETE FROM {table} AS t {_GIVEN} WHERE t.space = given.space AND t.{column} = given.row", given)
    ids_of = [each.memory.id for each in found]
    run(db, "UPDATE events SET before = NULL WHERE memory_id = ANY(%s) AND before IS NOT NULL", (ids_of,))
    return found


def vacuum(connections: Connections) -> str | None:
    """Free what was deleted. Returns why bytes of it may still be in the files of the server; None: none are.

    It raises nothing: the deletion is committed.
    """
    try:
        with connections.outside(_VACUUM_MS) as db:
            tables = quoting.SQL(", ").join(quoting.Identifier(connections.schema, each) for each in _VACUUMED)
            db.execute(quoting.SQL("VACUUM (SKIP_LOCKED, TRUNCATE FALSE, INDEX_CLEANUP ON) {}").format(tables))
    except NacreError as error:
        return _NOT_FREED.format(error)
    return LEFT


def _unindex(db: Db, found: Sequence[Stored]) -> None:
    """Take the postings of memories out of the lists of their terms."""
    for space in {each.memory.space for each in found}:
        inside = [each for each in found if each.memory.space == space]
        terms = {term for each in inside for term in terms_of(each.tokens)}
        postings.drop_docs(db, space, list(terms), [each.doc for each in inside])


def _quotations(db: Db, purged: Sequence[Stored], known: Set[str]) -> Quotations:
    """What quotes these memories. Their words are subtracted from the counts already."""
    texts, of_texts, of_labels = _words_of(db, purged)
    gone = vocabulary.absent_terms(db, of_texts | of_labels) - known
    doubtful = gone - of_texts
    return Quotations(texts, gone - found_in(doubtful, _labels_of_others(db, purged)))


def _words_of(db: Db, purged: Sequence[Stored]) -> tuple[list[str], set[str], set[str]]:
    """The texts that memories ever had, and the significant words of these and of what was said of the memories."""
    former = {each.key: former_values(db, each.memory) for each in purged}
    texts = [text for each in purged for text in texts_ever(each.memory, former[each.key])]
    labels = [label for each in purged for label in labels_ever(each.memory, former[each.key])]
    labels += [stated(fact) for several in facts.by_keys(db, list(former)).values() for fact in several]
    return texts, significant_tokens(texts), significant_tokens(labels)


def _labels_of_others(db: Db, purged: Sequence[Stored]) -> Iterator[str]:
    """The metadata of all memories but these, as JSON, and the words of their facts."""
    others = "(t.space, t.row) NOT IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
    sql = (
        f"SELECT metadata FROM memories AS t WHERE metadata <> '{{}}' AND {others} UNION ALL "
        "SELECT subject || ' ' || predicate || ' ' || object || ' ' || coalesce(quote, '') FROM facts AS t "
        f"WHERE {others}"
    )
    with db.cursor(name="nacre_labels") as cursor:
        cursor.itersize = _BATCH_ROWS
        cursor.execute(sql, rows.columns_of(each.key for each in purged) * 2, binary=True)
        for (text,) in cursor:
            yield text
