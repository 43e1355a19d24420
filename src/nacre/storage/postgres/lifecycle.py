"""What becomes of memories: they are added, replaced, forgotten, restored, purged and embedded, or they expire.

Each verb holds the spaces that it writes to, before it does anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from nacre.errors import Conflict
from nacre.storage.changes import check_unexpired, identity, replaced, taken
from nacre.storage.postgres import (
    facts,
    further_vectors,
    near_duplicates,
    placements,
    rows,
    space_usage,
    token_vectors,
    updates,
    vocabulary,
)
from nacre.storage.postgres.connection import fetch, hold, hold_memories, run, run_many, try_hold, value
from nacre.storage.postgres.counters import bump_revision
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import (
    Stored,
    Touched,
    adopt_model,
    identified,
    insert,
    log_events,
    missing_vectors,
    numbers,
    rewrite_passages,
    with_tokens,
    write_passages,
    write_tokens,
)
from nacre.types.memory import Entry, Identity, Memory, Passages, Remembered, Replacement
from nacre.types.quotas import Quotas

MODEL_SWITCHED = "model switched"
_EXPIRED = "FROM memories WHERE deleted_us IS NULL AND expires_us IS NOT NULL AND expires_us <= %s"


def add(
    db: Db, entries: Sequence[Entry], model: str | None, token_model: str | None, quotas: Quotas, location: str
) -> list[Remembered]:
    spaces = {entry.memory.space for entry in entries}
    now = max(entry.memory.updated for entry in entries)
    hold(db, spaces)
    forget_expired(db, now, spaces)
    if any(entry.passages is not None for entry in entries):
        adopt_model(db, model, location)
    if not token_vectors.adopt_model(db, token_model, (entry.passages for entry in entries)):
        entries = token_vectors.left_out(entries)
    held = space_usage.held(db, quotas, spaces)
    written = insert(db, entries)
    keyed = [((entry.memory.space, row), entry) for row, entry in written]
    write_tokens(db, ((*key, entry.tokens) for key, entry in keyed))
    write_passages(db, ((key, entry.passages) for key, entry in keyed))
    token_vectors.write(db, ((key, entry.passages) for key, entry in keyed))
    further_vectors.write(db, ((key, entry.further) for key, entry in keyed))
    vocabulary.add(db, ((*key, entry.tokens) for key, entry in keyed))
    facts.write_entries(db, written)
    near_duplicates.link(db, written)
    updates.link(db, [update for _, entry in written for update in entry.updates])
    space_usage.check(db, quotas, held)
    if quotas.session_writes_max:
        space_usage.count_writes(db, quotas, (entry for _, entry in written))
    existing: Mapping[Identity, str] = {}
    if len(written) < len(entries):
        existing = identified(db, (entry.identity for entry in entries), now)
    log_events(db, "remembered", (Touched(*key, entry.memory.id) for key, entry in keyed))
    added = {entry.memory.id for _, entry in written}
    return [
        Remembered(entry.memory.id, duplicate=False)
        if entry.memory.id in added
        else Remembered(existing[entry.identity], duplicate=True)
        for entry in entries
    ]


def replace(
    db: Db, changes: Sequence[Replacement], model: str | None, token_model: str | None, quotas: Quotas, location: str
) -> None:
    spaces = {each.entry.memory.space for each in changes}
    hold(db, spaces)
    forget_expired(db, max(each.entry.memory.updated for each in changes), spaces)
    held = space_usage.held(db, quotas, spaces)
    touched = [_replace(db, each, model, token_model, location) for each in changes]
    log_events(db, "updated", touched)
    space_usage.check(db, quotas, held)  # with what was replaced, which events keep


def _replace(db: Db, change: Replacement, model: str | None, token_model: str | None, location: str) -> Touched:
    entry, previous = change
    memory = entry.memory
    (stored,) = with_tokens(db, [memory.id])
    if stored.memory != previous:
        raise Conflict(f"id: memory {memory.id} was changed by someone else meanwhile; read it again")
    if entry.passages is not None:
        adopt_model(db, model, location)
    if entry.identity != identity(stored.memory):
        _check_free(db, memory)
    columns = rows.WRITTEN_COLUMNS.split(", ")[:-2]  # without those of passages
    assignments = ", ".join(f"{column} = %s" for column in columns)
    run(
        db,
        f"UPDATE memories SET {assignments} WHERE space = %s AND row = %s",
        (*rows.written(entry)[:-2], *stored.key),
    )
    if entry.tokens != stored.tokens:
        vocabulary.subtract(db, [(memory.space, stored.tokens)])
        run(db, "DELETE FROM tokens WHERE space = %s AND row = %s", stored.key)
        write_tokens(db, [(*stored.key, entry.tokens)])
        _index(db, [stored._replace(tokens=entry.tokens)])
    if memory.text != stored.memory.text or entry.passages is not None:
        rewrite_passages(db, [(stored.key, entry.passages)])
        if not token_vectors.adopt_model(db, token_model, [entry.passages]):
            (entry,) = token_vectors.left_out([entry])
        token_vectors.rewrite(db, [(stored.key, entry.passages)])
    further_vectors.write(db, [(stored.key, entry.further)])
    if memory.text != stored.memory.text:
        facts.rewrite_entry(db, stored.row, entry)
        near_duplicates.rewrite(db, stored.row, entry)
    before = replaced(stored.memory, memory)
    return Touched(*stored.key, memory.id, rows.to_json(before) if before else None)


def forget(db: Db, ids: Sequence[str], at: datetime) -> None:
    hold_memories(db, ids)
    live = [found for found in with_tokens(db, ids) if found.memory.deleted is None]
    _hide(db, live, [at] * len(live))
    log_events(db, "forgotten", _touched(live), at)


def restore(db: Db, ids: Sequence[str], at: datetime) -> None:
    hold_memories(db, ids)
    forget_expired(
        db, at, {space for (space,) in fetch(db, "SELECT space FROM memories WHERE id = ANY(%s)", (list(ids),))}
    )
    forgotten = [found for found in with_tokens(db, ids) if found.memory.deleted is not None]
    for each in forgotten:
        check_unexpired(each.memory, at)
        _check_free(db, each.memory)
        run(
            db,
            "UPDATE memories SET deleted_us = NULL, updated_us = %s WHERE space = %s AND row = %s",
            (rows.microseconds(each.memory.changed_at(at)), *each.key),
        )
    run_many(db, "DELETE FROM displaced WHERE space = %s AND row = %s", (each.key for each in forgotten))
    _index(db, forgotten)
    facts.restored(db, [each.key for each in forgotten])
    log_events(db, "restored", _touched(forgotten), at)


def expire(db: Db, now: datetime, limit: int) -> bool:
    """Forget what has expired, in spaces that nobody else writes to. Returns whether none is left."""
    forget_expired(db, now, (), limit)
    expires = next_expiry(db)
    return expires is None or expires > now


def next_expiry(db: Db) -> datetime | None:
    """When the next live memory expires, which may be over."""
    sql = (
        "SELECT min(expires_us) FROM memories AS m WHERE deleted_us IS NULL AND expires_us IS NOT NULL "
        f"AND NOT {placements.HIDDEN.format('m')}"
    )
    return rows.maybe_moment(value(db, sql))


def embed(
    db: Db,
    passages: Mapping[str, Passages],
    texts: Mapping[str, str],
    model: str,
    token_model: str | None,
    location: str,
) -> int:
    hold_memories(db, texts)
    if further_vectors.is_known(db, model):
        return _embed_further(db, passages, texts, model)
    adopt_model(db, model, location)
    keeps = token_vectors.adopt_model(db, token_model, passages.values())
    written: list[tuple[Key, Passages]] = []
    with_token_vectors: list[tuple[Key, Passages]] = []
    embedded: list[Touched] = []
    added = 0
    for memory_id, (key, spans) in missing_vectors(db, texts).items():
        each = passages[memory_id]
        has_tokens = keeps and each.tokens is not None
        if spans is None or (has_tokens and spans != each.spans):  # texts were cut in another way before
            written.append((key, each))
            embedded.append(Touched(*key, memory_id))
        elif has_tokens:
            added += 1
        if has_tokens:
            with_token_vectors.append((key, each))
    rewrite_passages(db, written)
    token_vectors.rewrite(db, with_token_vectors)
    log_events(db, "embedded", embedded)
    if added:  # after the events, as everywhere: counters are taken in one order
        bump_revision(db)
    return len(embedded) + added


def _embed_further(db: Db, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str) -> int:
    found = further_vectors.pending_texts(db, model, texts)
    further_vectors.write(db, ((key, {model: passages[memory_id]}) for memory_id, key in found.items()))
    log_events(
        db,
        "embedded",
        (Touched(*key, memory_id) for memory_id, key in found.items() if passages[memory_id].spans),
    )
    if any(not passages[each].spans for each in found):
        bump_revision(db)
    return len(found)


def switch_model(db: Db, model: str, *, logged: bool = True) -> None:
    """The caller is the only one that writes. Of several nodes, one logs it for all."""
    if rows.meta(db, "model") != model:
        run(db, "DELETE FROM passages")
        run(db, "UPDATE memories SET embedded = false WHERE embedded")
        rows.set_meta(db, "model", model)
        token_vectors.drop_all(db, None)
        if logged:
            log_events(db, MODEL_SWITCHED, [Touched("", 0, "")])
        else:
            bump_revision(db)


def switch_token_model(db: Db, model: str) -> None:
    """The caller is the only one that writes."""
    if rows.meta(db, "token_model") != model:
        token_vectors.drop_all(db, model)
        bump_revision(db)


def forget_expired(db: Db, now: datetime, held: Iterable[str], limit: int | None = None) -> None:
    """Forget live memories that have expired: of the spaces that are held, and of others that no other writer holds."""
    at_us = rows.microseconds(now)
    spaces = {space for (space,) in fetch(db, f"SELECT DISTINCT space {_EXPIRED}", (at_us,))}
    ours = [*spaces.intersection(held), *try_hold(db, spaces.difference(held))] if spaces else []
    if not ours:
        return
    sql = f"SELECT id {_EXPIRED} AND space = ANY(%s) ORDER BY expires_us, row LIMIT %s"
    over = with_tokens(db, [memory_id for (memory_id,) in fetch(db, sql, (at_us, ours, limit))])
    _hide(db, over, [each.memory.expires or now for each in over])
    log_events(db, "expired", _touched(over), now)


def _hide(db: Db, live: Sequence[Stored], since: Sequence[datetime]) -> None:
    run_many(
        db,
        "UPDATE memories SET deleted_us = %s WHERE space = %s AND row = %s",
        ((rows.microseconds(at), *each.key) for each, at in zip(live, since, strict=True)),
    )
    facts.hidden(db, [each.key for each in live])
    vocabulary.subtract(db, ((each.memory.space, each.tokens) for each in live))


def _index(db: Db, live: Sequence[Stored]) -> None:
    """Give memories new docs, under which they are found by their tokens."""
    docs = numbers(db, "memory_rows", len(live))
    run_many(
        db,
        "UPDATE memories SET doc = %s WHERE space = %s AND row = %s",
        ((doc, *each.key) for doc, each in zip(docs, live, strict=True)),
    )
    vocabulary.add(db, ((each.memory.space, doc, each.tokens) for doc, each in zip(docs, live, strict=True)))


def _touched(several: Sequence[Stored]) -> list[Touched]:
    return [Touched(*each.key, each.memory.id) for each in several]


def _check_free(db: Db, memory: Memory) -> None:
    """Raise Conflict if another live memory has the identity of this one."""
    sql = "SELECT id FROM memories WHERE space = %s AND identity = %s AND deleted_us IS NULL AND id <> %s"
    for (other,) in fetch(db, sql, (memory.space, rows.identity_hash(identity(memory)), memory.id)):
        raise taken(memory, other)
