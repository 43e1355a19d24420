"""Takes in the records of another store. The caller holds a write transaction.

Memories that are new and meet no other are written together; each of the others is merged by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import apsw

from nacre.analysis import near_duplicates as similarity
from nacre.analysis.names import fold
from nacre.analysis.word_forms import tokens_of
from nacre.ids import content_hash
from nacre.storage import changes, merging
from nacre.storage.sqlite import (
    change_log,
    entities,
    export,
    facts,
    further_vectors,
    lifecycle,
    near_duplicates,
    rows,
    scrub,
    token_vectors,
)
from nacre.storage.sqlite.vocabulary import update_counts
from nacre.storage.sqlite.writes import bump_revision, rekey_passages, write_tokens
from nacre.types.memory import Entry, Identity, Memory, Tokens
from nacre.types.tokens import TOKEN_PASSAGES_MAX
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    FactRecord,
    Header,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
)


class _Stored(NamedTuple):
    row: int
    memory: Memory
    tokens: Tokens
    displaced: bool

    @property
    def register(self) -> Memory:
        """The version that takes part in exchanges: one that was only displaced counts as live."""
        return replace(self.memory, deleted=None) if self.displaced else self.memory


def load(
    db: apsw.Connection, records: Sequence[Record], mark: int | None, model: str | None, token_model: str | None
) -> LoadCounts:
    """`mark=None`: no near-duplicates are looked for, those of the records are all."""
    db.execute(f"DELETE FROM displaced WHERE row IN ({export.STALE})")
    for name, given in (("model", model), ("token_model", token_model)):
        if given is not None and rows.meta(db, name) is None:
            rows.set_meta(db, name, given)
    loading = _Loading(db, mark, model, token_model)
    for record in records:
        loading.take(record)
    loading.finish()
    return LoadCounts(**loading.counts)


class _Loading:
    def __init__(self, db: apsw.Connection, mark: int | None, model: str | None, token_model: str | None) -> None:
        self._db = db
        self._mark = mark
        self._model = model
        self._token_model = token_model
        self._store_id = rows.meta(db, "store_id") or ""
        self._new: dict[str, MemoryRecord] = {}  # that meet no other memory
        self._identities: set[Identity] = set()  # of these
        self.counts: Counter[str] = Counter()

    def take(self, record: Record) -> None:
        if not isinstance(record, MemoryRecord):
            self._write_new()
        match record:
            case MemoryRecord():
                self._memory(record)
            case FactRecord():
                self._fact(record)
            case EntityRecord():
                self._entity(record)
            case UpdateRecord():
                self._update(record)
            case SimilarRecord():
                self._similar(record)
            case LensRecord():
                self._lens(record)
            case Dropped():
                self._dropped(record)
            case EventRecord():
                self._purge(record)
                self._log([record])
            case Header():
                pass

    def finish(self) -> None:
        self._write_new()
        if self.counts:
            bump_revision(self._db)

    # ---- memories

    def _memory(self, record: MemoryRecord) -> None:
        memory = record.memory
        identity = changes.identity(memory)
        if memory.id in self._new or identity in self._identities:
            self._write_new()
        if self._is_purged(memory.id):
            self.counts["left_out"] += 1
            self._log(record.events)
            return
        old = self._stored(memory.id)
        if old is None and (memory.deleted is not None or not self._rivals(identity)):
            self._new[memory.id] = record
            if memory.deleted is None:
                self._identities.add(identity)
            return
        self._write_new()
        self._merge(record, old)

    def _merge(self, record: MemoryRecord, old: _Stored | None) -> None:
        memory = record.memory
        lost: Memory | None = None
        takes = True
        if old is None:
            self.counts["added"] += 1
        elif merging.newer(memory, old.register):
            self.counts["updated"] += 1
            lost = None if merging.is_former(old.register, memory, record.events) else old.register
        else:
            takes = False
            if merging.same(memory, old.register):
                self.counts["unchanged"] += 1
            else:
                self.counts["kept"] += 1
                lost = None if merging.is_former(memory, old.register, self._history(memory.id)) else memory
        if not takes:
            assert old is not None
            self._log([*record.events, *([] if lost is None else [merging.merged_event(lost)])])
            if memory.text == old.memory.text:
                self._add_vectors(old.row, record)
            return
        row = self._insert([_entry(memory)], displaced=True)[0] if old is None else self._replace(old, memory)
        told = self._log([*record.events, *([] if lost is None else [merging.merged_event(lost)])])
        if not told:
            self._log([merging.imported_event(memory)], always=True)
        self._add_vectors(row, record)
        for identity in {changes.identity(memory), *([] if old is None else [changes.identity(old.memory)])}:
            self._settle(identity, arriving=memory.id)
        facts.update_supersession(self._db, facts.groups_of_rows(self._db, [row]))

    def _write_new(self) -> None:
        """Insert the memories that meet no other, all at once."""
        if not self._new:
            return
        records = list(self._new.values())
        self._new, self._identities = {}, set()
        self._insert([_entry(each.memory) for each in records], displaced=False)
        row_of = self._rows([each.memory.id for each in records])
        told = self._log([event for each in records for event in each.events])
        untold = [each.memory for each in records if each.memory.id not in told]
        self._log([merging.imported_event(memory) for memory in untold], always=True)
        for each in records:
            self._add_vectors(row_of[each.memory.id], each)
        self.counts["added"] += len(records)

    def _insert(self, entries: Sequence[Entry], *, displaced: bool) -> list[int]:
        """Insert memories. One that is `displaced` is written as forgotten, until it is settled which one stays."""
        db = self._db
        last = db.execute("SELECT coalesce(max(row), 0) FROM memories").get
        written = [
            replace(each, memory=replace(each.memory, deleted=each.memory.updated))
            if displaced and each.memory.deleted is None
            else each
            for each in entries
        ]
        selected, parameters = rows.json_source(rows.memory_columns(written))
        *columns, hashed, embedded, token_passages = selected
        db.execute(
            f"INSERT INTO memories ({rows.COLUMNS.replace('m.', '')}, content_hash, embedded, token_passages) "
            f"SELECT {', '.join(columns)}, unhex({hashed}), {embedded}, {token_passages} FROM json_each(?)",
            parameters,
        )
        row_of = dict(rows.fetch(db, "SELECT id, row FROM memories WHERE row > ?", (last,)))
        numbered = [(row_of[each.memory.id], each) for each in entries]
        if displaced:
            db.executemany(
                "INSERT INTO displaced VALUES (?)",
                ((row,) for row, each in numbered if each.memory.deleted is None),
            )
        tokenised = [(row, each.memory.space, each.tokens) for row, each in numbered]
        write_tokens(db, tokenised)
        if not displaced:
            live = [(row, each.memory.space, each.tokens) for row, each in numbered if each.memory.deleted is None]
            update_counts(db, live, 1)
        near_duplicates.link(db, numbered, below=self._mark or 0)
        return [row for row, _ in numbered]

    def _replace(self, old: _Stored, memory: Memory) -> int:
        """Write a newer version over a stored one. If it is live, it waits as displaced until it is settled."""
        db = self._db
        entry = _entry(memory)
        if old.memory.deleted is None:
            self._hide(old, memory.updated)
        db.execute("DELETE FROM displaced WHERE row = ?", (old.row,))
        waiting = memory.deleted is None
        written = replace(entry, memory=replace(memory, deleted=memory.updated)) if waiting else entry
        assignments = ", ".join(f"{column[2:]} = ?" for column in rows.COLUMNS.split(", "))
        db.execute(
            f"UPDATE memories SET {assignments}, content_hash = ? WHERE row = ?",
            (*(column[0] for column in rows.memory_columns([written])[:-3]), entry.content_hash, old.row),
        )
        if waiting:
            db.execute("INSERT INTO displaced VALUES (?)", (old.row,))
        if entry.tokens != old.tokens:
            write_tokens(db, [(old.row, memory.space, entry.tokens)])
        if memory.text != old.memory.text:
            db.execute("DELETE FROM passages WHERE row = ?", (old.row,))
            db.execute("UPDATE memories SET embedded = 0 WHERE row = ?", (old.row,))
            token_vectors.rewrite(db, old.row, None)
            facts.rewrite_entry(db, old.row, entry, old.tokens, below=0 if self._mark is None else None)
        return old.row

    def _add_vectors(self, row: int, record: MemoryRecord) -> None:
        """Add what is missing, of the store's model and of further ones."""
        if record.passages is not None:
            self._add_passages(row, record.memory, record.passages)
        for model, given in record.further.items():
            if further_vectors.add_packed(self._db, row, model, given) and given.spans:
                self._touch(row, record.memory)

    def _add_passages(self, row: int, memory: Memory, given: StoredPassages) -> None:
        """Add what is missing, if it is of the store's model."""
        db = self._db
        if self._model is None or rows.meta(db, "model") != self._model:
            return
        sql = "SELECT embedded, token_passages IS NOT NULL FROM memories WHERE row = ?"
        ((embedded, has_tokens),) = rows.fetch(db, sql, (row,))
        size = db.execute("SELECT octet_length(vector) FROM passages LIMIT 1").get
        if not embedded and all(len(each) == (size or len(given.vectors[0])) for each in given.vectors):
            db.executemany(
                "INSERT INTO passages (row, start_char, end_char, vector) VALUES (?, ?, ?, ?)",
                ((row, *span, vector) for span, vector in zip(given.spans, given.vectors, strict=True)),
            )
            db.execute("UPDATE memories SET embedded = 1 WHERE row = ?", (row,))
            self._touch(row, memory)
            embedded = 1
        if not embedded or has_tokens or given.tokens is None or self._token_model is None:
            return
        stored = rows.fetch(db, "SELECT start_char, end_char FROM passages WHERE row = ? ORDER BY passage", (row,))
        if [tuple(span) for span in given.spans] != stored:
            return
        if rows.meta(db, "token_model") == self._token_model:
            token_vectors.add_packed(db, row, given.tokens[:TOKEN_PASSAGES_MAX])
            bump_revision(db)

    # ---- of several memories with one key or text, the latest stays

    def _settle(self, identity: Identity, arriving: str) -> None:
        rivals = self._rivals(identity)
        if not rivals:
            return
        top_memory = merging.first(each.register for each in rivals)
        for each in rivals:
            if each.memory.id == top_memory.id:
                continue
            if each.memory.deleted is None:
                self._hide(each, top_memory.updated)
                self._db.execute("INSERT INTO displaced VALUES (?)", (each.row,))
            else:
                self._db.execute(
                    "UPDATE memories SET deleted_us = ? WHERE row = ?",
                    (rows.microseconds(top_memory.updated), each.row),
                )
            if each.memory.deleted is None or each.memory.id == arriving:
                self.counts["displaced"] += 1
                self._log([merging.displaced_event(each.register, top_memory)], always=True)
        (top,) = (each for each in rivals if each.memory.id == top_memory.id)
        if top.displaced:
            self._show(top)
            if top.memory.id != arriving:
                self._log([merging.reinstated_event(top.register)], always=True)

    def _hide(self, stored: _Stored, at: datetime) -> None:
        db = self._db
        db.execute("UPDATE memories SET deleted_us = ? WHERE row = ?", (rows.microseconds(at), stored.row))
        update_counts(db, [(stored.row, stored.memory.space, stored.tokens)], -1)
        facts.update_supersession(db, facts.groups_of_rows(db, [stored.row]))

    def _show(self, stored: _Stored) -> None:
        db = self._db
        db.execute("UPDATE memories SET deleted_us = NULL WHERE row = ?", (stored.row,))
        rekey_passages(db, [stored.row])
        further_vectors.rekey(db, [stored.row])
        facts.index_relations(db, [stored.row])
        update_counts(db, [(stored.row, stored.memory.space, stored.tokens)], 1)
        facts.update_supersession(db, facts.groups_of_rows(db, [stored.row]))

    # ---- reading what is stored

    def _stored(self, memory_id: str) -> _Stored | None:
        return next(iter(self._select("m.id = ?", (memory_id,))), None)

    def _rivals(self, identity: Identity) -> list[_Stored]:
        """Live and displaced memories with this identity."""
        same = "m.space = ? AND ifnull(m.key, m.content_hash) = ?"
        live = self._select(f"{same} AND m.deleted_us IS NULL", identity)
        if not self._db.execute("SELECT EXISTS (SELECT 1 FROM displaced)").get:
            return live
        return live + self._select(f"m.row IN (SELECT row FROM displaced) AND {same}", identity)

    def _select(self, condition: str, parameters: tuple[str | bytes, ...]) -> list[_Stored]:
        sql = (
            f"SELECT m.row, EXISTS (SELECT 1 FROM displaced AS d WHERE d.row = m.row), {rows.READ_COLUMNS}, "
            f"{rows.WORD_COLUMNS} FROM memories AS m JOIN tokens AS t ON t.row = m.row WHERE {condition}"
        )
        return [
            _Stored(row, rows.memory(columns[:-6]), rows.tokens(columns[-6:]), bool(displaced))
            for row, displaced, *columns in rows.fetch(self._db, sql, parameters)
        ]

    def _rows(self, ids: Sequence[str]) -> dict[str, int]:
        sql = "SELECT id, row FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        return dict(rows.fetch(self._db, sql, (rows.to_json(list(ids)),)))

    # ---- events

    def _history(self, memory_id: str) -> list[EventRecord]:
        sql = f"SELECT {export.EVENT_COLUMNS} FROM events WHERE memory_id = ? ORDER BY seq"
        return [export.event_record(row, self._store_id) for row in rows.fetch(self._db, sql, (memory_id,))]

    def _is_purged(self, memory_id: str) -> bool:
        sql = "SELECT EXISTS (SELECT 1 FROM events WHERE memory_id = ? AND action = 'purged')"
        return bool(self._db.execute(sql, (memory_id,)).get)

    def _purge(self, event: EventRecord) -> None:
        stored = self._stored(event.memory_id) if event.action == "purged" else None
        if stored is None:
            return
        scrub.request(self._db)
        lifecycle.purge(self._db, [event.memory_id], event.at)
        self.counts["purged"] += 1
        self._touch(stored.row, stored.memory, "purged")
        self._settle(changes.identity(stored.memory), arriving="")

    def _log(self, events: Sequence[EventRecord], *, always: bool = False) -> set[str]:
        """Add the events that are not known yet. Returns the ids of their memories.

        `always`: the index is told of their memories in any case.
        """
        known = self._known(events)
        new = {each.uid: each for each in events if each.uid not in known}
        row_of = self._rows(list({each.memory_id for each in events}))
        gone = {each.memory_id for each in new.values() if each.memory_id not in row_of}
        gone = {each for each in gone if self._is_purged(each)}
        self._db.executemany(
            "INSERT INTO events (at_us, action, space, row, memory_id, before, uid) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    rows.microseconds(each.at),
                    each.action,
                    each.space,
                    row_of.get(each.memory_id, 0),
                    each.memory_id,
                    rows.to_json(dict(each.before)) if each.before and each.memory_id not in gone else None,
                    each.uid,
                )
                for each in new.values()
            ),
        )
        self.counts["events"] += len(new)
        if always:
            for each in events:
                if each.uid in known and each.memory_id in row_of:
                    self._tell_index(row_of[each.memory_id], each.space, each.action)
        return {each.memory_id for each in new.values()}

    def _known(self, events: Iterable[EventRecord]) -> set[str]:
        uids = [each.uid for each in events]
        known = "SELECT uid FROM events WHERE uid IN (SELECT value FROM json_each(?))"
        found = {uid for (uid,) in rows.fetch(self._db, known, (rows.to_json(uids),))}
        own = [uid.split("-")[1] for uid in uids if uid.startswith(f"{self._store_id}-") and uid.count("-") == 2]
        sql = "SELECT seq, at_us FROM events WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each(?))"
        return found | {
            merging.event_uid(self._store_id, seq, rows.moment(at_us))
            for seq, at_us in rows.fetch(self._db, sql, (rows.to_json(own),))
        }

    def _touch(self, row: int, memory: Memory, action: str = "embedded") -> None:
        self._tell_index(row, memory.space, action)

    def _tell_index(self, row: int, space: str, action: str) -> None:
        """An event of no memory, so that a memory that changed without one of its own is indexed anew."""
        self._db.execute(
            "INSERT INTO events (at_us, action, space, row, memory_id) "
            "VALUES (CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?, ?, ?, '')",
            (action, space, row),
        )

    # ---- what belongs to memories

    def _fact(self, record: FactRecord) -> None:
        db, fact = self._db, record.fact
        sql = "SELECT row, space, content_hash, deleted_us IS NULL FROM memories WHERE id = ?"
        found = rows.fetch(db, sql, (fact.memory_id,))
        if not found:
            return
        ((row, space, hashed, is_live),) = found
        gone = change_log.of(db, "fact", fact.space, [fact.id])
        if space != fact.space or (gone and gone[fact.id].gone) or record.text not in (None, hashed.hex()):
            return
        known = next(iter(facts.by_ids(db, [fact.id])), None)
        if known is None:
            facts.take(db, row, fact, is_live=bool(is_live))
        elif known.memory_id == fact.memory_id and merging.surer(fact, known):
            facts.update_confidence(db, [fact])
        else:
            return
        self.counts["facts"] += 1

    def _entity(self, record: EntityRecord) -> None:
        db, space = self._db, record.space
        names = {fold(name): name for name in (*record.aliases, record.name)}
        canonical = fold(record.name)
        dropped = change_log.of(db, "entity", space, [canonical]).get(canonical)
        if dropped is not None and dropped.gone and dropped.at >= (record.changed or merging.LONG_AGO):
            return
        sql = "SELECT row FROM memories WHERE space = ? AND id IN (SELECT value FROM json_each(?))"
        linked = [row for (row,) in rows.fetch(db, sql, (space, rows.to_json(list(record.memory_ids))))]
        if not record.kept and not linked and not entities.are_named(db, space, list(names)):
            return
        known = entities.having(db, space, list(names))
        before = list(export.entity_records(db, known))
        best = record
        for each in before:
            best = each if merging.entity_wins(each, best) else best
        number = entities.union(db, space, names, [each[0] for each in known], best, kept=record.kept)
        entities.link(db, number, linked)
        (after,) = export.entity_records(db, entities.having(db, space, [canonical]))
        changed = max((each.changed for each in (record, *before) if each.changed), default=None)
        if changed is not None and after.changed != changed:
            change_log.take(db, "entity", space, fold(best.name), changed)
        if before != [replace(after, changed=before[0].changed if before else None)]:
            facts.update_supersession(db, facts.groups_of_entity(db, number))
            self.counts["entities"] += 1

    def _update(self, record: UpdateRecord) -> None:
        db = self._db
        sql = (
            "SELECT n.row, o.row, n.space FROM memories AS n JOIN memories AS o ON o.id = ? "
            "WHERE n.id = ? AND n.row <> o.row AND n.space = o.space"
        )
        found = rows.fetch(db, sql, (record.older, record.newer))
        if not found:
            return
        ((newer, older, space),) = found
        name = f"{record.newer} {record.older}"
        cue = db.execute("SELECT cue FROM updates WHERE older = ? AND newer = ?", (older, newer)).get
        change = change_log.of(db, "update", space, [name]).get(name)
        local = None if change is None else change.at, "" if cue is None else f"+{cue}"
        if merging.later((record.changed, f"+{record.cue}"), local):
            db.execute(
                "INSERT OR REPLACE INTO updates (older, newer, cue) VALUES (?, ?, ?)", (older, newer, record.cue)
            )
            if record.changed is not None:
                change_log.take(db, "update", space, name, record.changed)
            self.counts["updates"] += 1

    def _similar(self, record: SimilarRecord) -> None:
        db = self._db
        sql = (
            "SELECT a.row, b.row, a.space, a.content_hash, b.content_hash FROM memories AS a JOIN memories AS b "
            "ON b.id = ? WHERE a.id = ? AND a.row <> b.row"
        )
        for one, other, space, one_hash, other_hash in rows.fetch(db, sql, (record.other, record.one)):
            if (one_hash.hex(), other_hash.hex()) == record.texts:
                known = db.execute("SELECT apart FROM similar WHERE row = ? AND other = ?", (one, other)).get
                db.execute(
                    "INSERT INTO similar VALUES (?1, ?2, ?3), (?2, ?1, ?3) "
                    "ON CONFLICT DO UPDATE SET apart = max(apart, excluded.apart)",
                    (one, other, int(record.apart)),
                )
                if record.apart and not known:
                    change_log.note(db, "apart", space, [record.one])
                    bump_revision(db)

    def _lens(self, record: LensRecord) -> None:
        db = self._db
        place = record.space, record.name
        body = db.execute("SELECT body FROM lenses WHERE space = ? AND name = ?", place).get
        change = change_log.of(db, "lens", record.space, [record.name]).get(record.name)
        if merging.later((record.changed, record.body), (None if change is None else change.at, body or "")):
            db.execute("INSERT OR REPLACE INTO lenses VALUES (?, ?, ?)", (*place, record.body))
            if record.changed is not None:
                change_log.take(db, "lens", *place, record.changed)
            self.counts["lenses"] += 1

    def _dropped(self, record: Dropped) -> None:
        db, name = self._db, record.name
        change = change_log.of(db, record.kind, record.space, [name]).get(name)
        if record.kind == "fact":
            if change is not None and change.gone:
                return
            if facts.by_ids(db, [name]):
                facts.remove(db, [name])
                self.counts["facts"] += 1
        elif change is not None and (change.at, not change.gone) >= (record.changed, False):
            return
        elif record.kind == "entity":
            for each in entities.having(db, record.space, [name]):
                (known,) = export.entity_records(db, [each])
                if known.changed is not None and known.changed > record.changed:
                    return
                facts.remove_entity(db, each[0])
                self.counts["entities"] += 1
        elif record.kind == "update":
            newer, _, older = name.partition(" ")
            self.counts["updates"] += _unlinked(db, newer, older)
        else:
            db.execute("DELETE FROM lenses WHERE space = ? AND name = ?", (record.space, name))
            self.counts["lenses"] += db.changes()
        change_log.take(db, record.kind, record.space, name, record.changed, gone=True)


def _entry(memory: Memory) -> Entry:
    tokens = tokens_of(memory)
    return Entry(memory, content_hash(memory.text), tokens, None, sketch=similarity.sketch(tokens))


def _unlinked(db: apsw.Connection, newer: str, older: str) -> int:
    db.execute(
        "DELETE FROM updates WHERE newer = (SELECT row FROM memories WHERE id = ?) "
        "AND older = (SELECT row FROM memories WHERE id = ?)",
        (newer, older),
    )
    return db.changes()
