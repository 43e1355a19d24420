"""What becomes of a stored memory: it is replaced, forgotten, restored or purged, or it expires.

The caller holds a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import apsw

from nacre.analysis.quotations import Quotations, found_in, significant_tokens
from nacre.errors import Conflict
from nacre.storage.changes import check_unexpired, identity, labels_ever, replaced, stated, taken, texts_ever
from nacre.storage.sqlite import (
    entities,
    facts,
    further_vectors,
    kept_answers,
    near_duplicates,
    recall_log,
    rows,
    token_vectors,
)
from nacre.storage.sqlite.facts import rewrite_entry
from nacre.storage.sqlite.vocabulary import absent_terms, update_counts
from nacre.storage.sqlite.writes import (
    adopt_model,
    former_values,
    log_events,
    rekey_passages,
    with_tokens,
    write_passages,
    write_tokens,
)
from nacre.types.memory import Memory, Replacement, Tokens

# When the next live memory expires, which may be over.
NEXT_EXPIRY = "SELECT min(expires_us) FROM memories WHERE deleted_us IS NULL AND expires_us IS NOT NULL"


def replace(db: apsw.Connection, change: Replacement, model: str | None, token_model: str | None, path: Path) -> None:
    entry, previous = change
    memory = entry.memory
    ((row, stored, tokens),) = with_tokens(db, [memory.id])
    if stored != previous:
        raise Conflict(f"id: memory {memory.id} was changed by someone else meanwhile; read it again")
    if entry.passages is not None:
        adopt_model(db, model, path)
    if entry.identity != identity(stored):
        _check_free(db, memory)
    assignments = ", ".join(f"{column[2:]} = ?" for column in rows.COLUMNS.split(", "))
    db.execute(
        f"UPDATE memories SET {assignments}, content_hash = ? WHERE row = ?",
        (*(column[0] for column in rows.memory_columns([entry])[:-3]), entry.content_hash, row),
    )
    if entry.tokens != tokens:
        update_counts(db, [(row, stored.space, tokens)], -1)
        write_tokens(db, [(row, memory.space, entry.tokens)])
        update_counts(db, [(row, memory.space, entry.tokens)], 1)
    if memory.text != stored.text or entry.passages is not None:
        db.execute("DELETE FROM passages WHERE row = ?", (row,))
        write_passages(db, [(row, entry.passages)])
        db.execute("UPDATE memories SET embedded = ? WHERE row = ?", (int(entry.passages is not None), row))
        if not token_vectors.adopt_model(db, token_model, [entry.passages]):
            (entry,) = token_vectors.left_out([entry])
        token_vectors.rewrite(db, row, entry.passages)
    further_vectors.write(db, [(row, entry.further)])
    if memory.text != stored.text:
        rewrite_entry(db, row, entry, tokens)
    before = replaced(stored, memory)
    log_events(db, "updated", [(row, memory.space, memory.id, rows.to_json(before) if before else None)])


def forget(db: apsw.Connection, ids: Sequence[str], at: datetime) -> None:
    live = [found for found in with_tokens(db, ids) if found[1].deleted is None]
    _hide(db, live, [at] * len(live))
    log_events(db, "forgotten", ((row, memory.space, memory.id, None) for row, memory, _ in live), at)


def restore(db: apsw.Connection, ids: Sequence[str], at: datetime) -> None:
    expire(db, at)
    forgotten = [found for found in with_tokens(db, ids) if found[1].deleted is not None]
    for row, memory, _ in forgotten:
        check_unexpired(memory, at)
        _check_free(db, memory)
        db.execute(
            "UPDATE memories SET deleted_us = NULL, updated_us = ? WHERE row = ?",
            (rows.microseconds(memory.changed_at(at)), row),
        )
    restored = [row for row, _, _ in forgotten]
    rekey_passages(db, restored)
    further_vectors.rekey(db, restored)
    facts.index_relations(db, restored)
    facts.update_supersession(db, facts.groups_of_rows(db, restored))
    update_counts(db, ((row, memory.space, tokens) for row, memory, tokens in forgotten), 1)
    log_events(db, "restored", ((row, memory.space, memory.id, None) for row, memory, _ in forgotten), at)


def purge(db: apsw.Connection, ids: Sequence[str], at: datetime) -> list[tuple[int, Memory]]:
    """Delete memories with all that quotes them. The caller asks for a scrub and logs the events."""
    found = with_tokens(db, ids)
    live = ((row, memory.space, tokens) for row, memory, tokens in found if memory.deleted is None)
    update_counts(db, live, -1)
    purged = [row for row, _, _ in found]
    groups = facts.groups_of_rows(db, purged)
    linked = entities.of_rows(db, purged)
    recall_log.purge(db, purged, _quotations(db, {row: memory for row, memory, _ in found}), at)
    kept_answers.purge(db)
    near_duplicates.unsketch(db, ((row, memory.space, tokens) for row, memory, tokens in found))
    for row, memory, _ in found:
        db.execute("DELETE FROM tokens WHERE row = ?", (row,))
        db.execute("DELETE FROM memories WHERE row = ?", (row,))
        db.execute("UPDATE events SET before = NULL WHERE memory_id = ? AND before IS NOT NULL", (memory.id,))
    entities.drop_unlinked(db, linked)
    facts.update_supersession(db, groups)
    db.execute("INSERT INTO fts (fts) VALUES ('optimize')")  # removes the deleted tokens from the file
    return [(row, memory) for row, memory, _ in found]


def _quotations(db: apsw.Connection, purged: Mapping[int, Memory]) -> Quotations:
    """What quotes these memories, given by row. Their words are subtracted from the counts already."""
    former = {row: former_values(db, memory) for row, memory in purged.items()}
    texts = [text for row, memory in purged.items() for text in texts_ever(memory, former[row])]
    labels = [label for row, memory in purged.items() for label in labels_ever(memory, former[row])]
    labels += [stated(fact) for several in facts.by_rows(db, list(purged)).values() for fact in several]
    of_texts = significant_tokens(texts)
    gone = absent_terms(db, of_texts | significant_tokens(labels))
    doubtful = gone - of_texts
    return Quotations(texts, gone - found_in(doubtful, facts.labels_of_others(db, list(purged))))


def expire(db: apsw.Connection, now: datetime, limit: int = -1) -> None:
    """Forget live memories that have expired; a negative limit is none."""
    sql = (
        "SELECT id FROM memories WHERE deleted_us IS NULL AND expires_us IS NOT NULL AND expires_us <= ? "
        "ORDER BY expires_us, row LIMIT ?"
    )
    over = [memory_id for (memory_id,) in rows.fetch(db, sql, (rows.microseconds(now), limit))]
    if over:
        found = with_tokens(db, over)
        _hide(db, found, [memory.expires or now for _, memory, _ in found])
        log_events(db, "expired", ((row, memory.space, memory.id, None) for row, memory, _ in found), now)


def _hide(db: apsw.Connection, live: Sequence[tuple[int, Memory, Tokens]], since: Sequence[datetime]) -> None:
    db.executemany(
        "UPDATE memories SET deleted_us = ? WHERE row = ?",
        ((rows.microseconds(at), row) for (row, _, _), at in zip(live, since, strict=True)),
    )
    facts.update_supersession(db, facts.groups_of_rows(db, [row for row, _, _ in live]))
    update_counts(db, ((row, memory.space, tokens) for row, memory, tokens in live), -1)


def _check_free(db: apsw.Connection, memory: Memory) -> None:
    """Raise Conflict if another live memory has the identity of this one."""
    sql = "SELECT id FROM memories WHERE space = ? AND ifnull(key, content_hash) = ? AND deleted_us IS NULL AND id <> ?"
    for (other,) in rows.fetch(db, sql, (*identity(memory), memory.id)):
        raise taken(memory, other)
