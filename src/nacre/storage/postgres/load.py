"""Takes in the records of another store. The caller holds a write transaction.

What a batch is about is read at once, and what is new and meets no other is written together. Each memory that meets
another is merged by itself. Events are written at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from nacre.analysis import near_duplicates as similarity
from nacre.analysis.names import fold
from nacre.analysis.tokenizer import tokens_of
from nacre.ids import content_hash
from nacre.storage import changes, merging
from nacre.storage.postgres import (
    change_log,
    counters,
    entities,
    export,
    facts,
    kept_answers,
    near_duplicates,
    purging,
    rows,
    space_usage,
    token_vectors,
    vocabulary,
)
from nacre.storage.postgres.connection import copy, fetch, hold, run, value
from nacre.storage.postgres.halfvec import HalfVector, received
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import numbers, write_tokens
from nacre.types.facts import Fact
from nacre.types.memory import Entry, Memory, Tokens
from nacre.types.quotas import Quotas
from nacre.types.tokens import TOKEN_PASSAGES_MAX
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    FactRecord,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
    update_name,
)

_Place = tuple[str, bytes]  # the space and the identity of a memory, hashed

_DIGITS = 19  # of a number that the server does not take
_STORED = (
    "SELECT m.row, EXISTS (SELECT 1 FROM displaced AS d WHERE d.space = m.space AND d.row = m.row), m.embedded, "
    f"m.token_passages IS NOT NULL, {rows.READ_COLUMNS}, {rows.WORD_COLUMNS} "
    "FROM memories AS m JOIN tokens AS t ON t.space = m.space AND t.row = m.row WHERE "
)
_IDENTITIES = "(m.space, m.identity) IN (SELECT * FROM unnest(%s::text[], %s::bytea[]))"
_DISPLACED = "FROM displaced AS d JOIN memories AS m ON m.space = d.space AND m.row = d.row"
# Identities that live or displaced memories have.
_TAKEN = (
    f"SELECT m.space, m.identity FROM memories AS m WHERE m.deleted_us IS NULL AND {_IDENTITIES} "
    f"UNION SELECT m.space, m.identity {_DISPLACED} WHERE {_IDENTITIES}"
)


class _Stored(NamedTuple):
    row: int
    memory: Memory
    tokens: Tokens
    displaced: bool
    embedded: bool
    has_tokens: bool

    @property
    def key(self) -> Key:
        return self.memory.space, self.row

    @property
    def register(self) -> Memory:
        """The version that takes part in exchanges: one that was only displaced counts as live."""
        return replace(self.memory, deleted=None) if self.displaced else self.memory


class _Coming(NamedTuple):
    """A memory that is to be written, with the passages that come with it."""

    entry: Entry
    passages: StoredPassages | None


def load(
    db: Db, records: Sequence[Record], mark: int, model: str | None, token_model: str | None, quotas: Quotas
) -> LoadCounts:
    spaces = _spaces(db, records)
    hold(db, spaces)
    run(db, f"DELETE FROM displaced WHERE space = ANY(%s) AND (space, row) IN ({export.STALE})", (list(spaces),))
    for name, given in (("model", model), ("token_model", token_model)):
        if given is not None:
            run(db, "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", (name, given))
    held = space_usage.held(db, quotas, spaces)
    loading = _Loading(db, records, mark, model, token_model)
    loading.take_all()
    space_usage.check(db, quotas, held)
    return LoadCounts(**loading.counts)


class _Loading:
    def __init__(
        self, db: Db, records: Sequence[Record], mark: int, model: str | None, token_model: str | None
    ) -> None:
        self._db = db
        self._records = records
        self._mark = mark
        self._takes_vectors = model is not None and rows.meta(db, "model") == model
        self._takes_tokens = token_model is not None and rows.meta(db, "token_model") == token_model
        self._vector_bytes: int | None = None  # of a stored vector
        if self._takes_vectors:
            found = value(db, "SELECT vector FROM passages LIMIT 1")
            self._vector_bytes = None if found is None else len(received(found))
        self._store_id = rows.meta(db, "store_id") or ""
        memories = [each.memory for each in records if isinstance(each, MemoryRecord)]
        events = [event for each in records for event in _events_of(each)]
        named = {*(each.id for each in memories), *(each.memory_id for each in events)}
        sql = "SELECT id, space, row FROM memories WHERE id = ANY(%s)"
        self._keys: dict[str, Key] = {each: (space, row) for each, space, row in fetch(db, sql, (list(named),))}
        sql = "SELECT DISTINCT memory_id FROM events WHERE memory_id = ANY(%s) AND action = 'purged'"
        self._purged = {memory_id for (memory_id,) in fetch(db, sql, (list(named),))}
        self._known = self._known_uids(events)
        self._stored = {each.memory.id: each for each in self._select("m.id = ANY(%s)", ([m.id for m in memories],))}
        self._taken = self._taken_places([_place(each) for each in memories])
        self._new: dict[str, MemoryRecord] = {}  # that meet no other memory
        self._new_places: set[_Place] = set()  # of these
        self._unwritten: list[tuple[EventRecord, int]] = []  # events, with the rows of their memories
        self._any_purged = False
        self.counts: Counter[str] = Counter()

    def take_all(self) -> None:
        for _, several in groupby(self._records, type):
            for part in _distinct(several):
                self._take(part)
        self._write_events()
        if self._any_purged:
            kept_answers.purge(self._db)
        if self.counts:
            counters.bump_revision(self._db)

    def _take(self, part: list[Any]) -> None:
        """Records of one kind that are about different things."""
        match part[0]:
            case MemoryRecord():
                for each in part:
                    self._memory(each)
                self._write_new()
            case FactRecord():
                self._facts(part)
            case EntityRecord():
                self._entities(part)
            case UpdateRecord():
                self._updates(part)
            case SimilarRecord():
                self._similar(part)
            case LensRecord():
                self._lens(*part)
            case Dropped():
                self._dropped(*part)
            case EventRecord():
                self._purge(*part)
                self._log(part)

    # ---- memories

    def _memory(self, record: MemoryRecord) -> None:
        memory, place = record.memory, _place(record.memory)
        if memory.id in self._new or place in self._new_places:
            self._write_new()
        if memory.id in self._purged:
            self.counts["left_out"] += 1
            self._log(record.events)
            return
        key = self._keys.get(memory.id)
        if key is None and (memory.deleted is not None or place not in self._taken):
            self._new[memory.id] = record
            if memory.deleted is None:
                self._new_places.add(place)
        elif key is not None and key[0] != memory.space:  # it would have to leave its space, which none does
            self.counts["left_out"] += 1
        else:
            self._write_new()
            self._merge(record, None if key is None else self._find(memory.id))

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
        told_of = [*record.events, *([] if lost is None else [merging.merged_event(lost)])]
        if not takes:
            assert old is not None
            self._log(told_of)
            if record.passages is not None and memory.text == old.memory.text:
                self._add_passages(old, record.passages)
            return
        self._taken |= {_place(memory), *([] if old is None else [_place(old.memory)])}
        coming = _Coming(_entry(memory), record.passages)
        if old is None:
            self._insert([coming], displaced=True)
        else:
            self._replace(old, coming)
        if not self._log(told_of):
            self._log([merging.imported_event(memory)])
        for place in {_place(memory), *([] if old is None else [_place(old.memory)])}:
            self._settle(place, arriving=memory.id)
        facts.update_supersession(self._db, facts.groups_of_keys(self._db, [self._keys[memory.id]]))

    def _write_new(self) -> None:
        """Insert the memories that meet no other, all at once."""
        if not self._new:
            return
        records = list(self._new.values())
        self._taken |= self._new_places
        self._new, self._new_places = {}, set()
        self._insert([_Coming(_entry(each.memory), each.passages) for each in records], displaced=False)
        told = self._log([event for each in records for event in each.events])
        self._log([merging.imported_event(each.memory) for each in records if each.memory.id not in told])
        self.counts["added"] += len(records)

    def _insert(self, coming: Sequence[_Coming], *, displaced: bool) -> None:
        """Insert memories. One that is `displaced` is written as forgotten, until it is settled which one stays."""
        db = self._db
        written = []
        passages: list[tuple[Key, StoredPassages, bool]] = []  # with token vectors or without
        waiting: list[Key] = []
        for row, (entry, given) in zip(numbers(db, "memory_rows", len(coming)), coming, strict=True):
            memory = entry.memory
            key = memory.space, row
            self._keys[memory.id] = key
            embedded = given is not None and self._takes(given)
            tokens = given.tokens if embedded and given is not None and self._takes_tokens else None
            if embedded and given is not None:
                passages.append((key, given, tokens is not None))
            if displaced and memory.deleted is None:
                waiting.append(key)
                entry = replace(entry, memory=replace(memory, deleted=memory.updated))
            columns = rows.written(entry)[:-2]
            written.append((row, row, *columns, embedded, None if tokens is None else _token_passages(tokens)))
        copy(db, f"memories (row, doc, {rows.WRITTEN_COLUMNS})", ("int8", "int8", *rows.WRITTEN_TYPES), written)
        if waiting:
            copy(db, "displaced (space, row)", ("text", "int8"), waiting)
        numbered = [(*self._keys[each.entry.memory.id], each.entry) for each in coming]
        write_tokens(db, ((space, row, entry.tokens) for space, row, entry in numbered))
        if not displaced:
            vocabulary.add(
                db, ((space, row, entry.tokens) for space, row, entry in numbered if entry.memory.deleted is None)
            )
        self._write_passages(passages)
        near_duplicates.link(db, [(row, entry) for _, row, entry in numbered], below=self._mark)

    def _replace(self, old: _Stored, coming: _Coming) -> None:
        """Write a newer version over a stored one. If it is live, it waits as displaced until it is settled."""
        db, entry = self._db, coming.entry
        memory = entry.memory
        if old.memory.deleted is None:
            self._hide(old, memory.updated)
        run(db, "DELETE FROM displaced WHERE space = %s AND row = %s", old.key)
        waiting = memory.deleted is None
        written = replace(entry, memory=replace(memory, deleted=memory.updated)) if waiting else entry
        columns = rows.WRITTEN_COLUMNS.split(", ")[:-2]
        assignments = ", ".join(f"{column} = %s" for column in columns)
        parameters = (*rows.written(written)[:-2], *old.key)
        run(db, f"UPDATE memories SET {assignments} WHERE space = %s AND row = %s", parameters)
        if waiting:
            run(db, "INSERT INTO displaced VALUES (%s, %s)", old.key)
        if entry.tokens != old.tokens:
            run(db, "DELETE FROM tokens WHERE space = %s AND row = %s", old.key)
            write_tokens(db, [(*old.key, entry.tokens)])
        if memory.text != old.memory.text:
            for table in ("passages", "token_vectors"):
                run(db, f"DELETE FROM {table} WHERE space = %s AND row = %s", old.key)
            without = "UPDATE memories SET embedded = false, token_passages = NULL WHERE space = %s AND row = %s"
            run(db, without, old.key)
            old = old._replace(embedded=False, has_tokens=False)
        if coming.passages is not None:
            self._add_passages(old, coming.passages)
        self._stored.pop(memory.id, None)
        if memory.text != old.memory.text:
            facts.rewrite_entry(db, old.row, entry)
            near_duplicates.rewrite(db, old.row, entry)

    # ---- passages

    def _takes(self, given: StoredPassages) -> bool:
        """Whether vectors are of the store's model, and of the size that it has."""
        if not self._takes_vectors:
            return False
        size = self._vector_bytes or len(given.vectors[0]) if given.vectors else 0
        if any(len(each) != size for each in given.vectors):
            return False
        self._vector_bytes = size or self._vector_bytes
        return True

    def _add_passages(self, stored: _Stored, given: StoredPassages) -> None:
        """Add what is missing."""
        db = self._db
        if not self._takes_vectors or (stored.embedded and (stored.has_tokens or given.tokens is None)):
            return
        self._stored.pop(stored.memory.id, None)
        if not stored.embedded:
            if not self._takes(given):
                return
            with_tokens = self._takes_tokens and given.tokens is not None
            self._write_passages([(stored.key, given, with_tokens)])
        else:
            sql = "SELECT start_char, end_char FROM passages WHERE space = %s AND row = %s ORDER BY place"
            with_tokens = self._takes_tokens and [tuple(each) for each in given.spans] == fetch(db, sql, stored.key)
            if with_tokens and given.tokens is not None:
                token_vectors.add_packed(db, [(stored.key, given.tokens[:TOKEN_PASSAGES_MAX])])
        tokens = given.tokens if with_tokens else None
        sql = (
            "UPDATE memories SET embedded = true, token_passages = coalesce(token_passages, %s) "
            "WHERE space = %s AND row = %s"
        )
        run(db, sql, (None if tokens is None else _token_passages(tokens), *stored.key))

    def _write_passages(self, written: Sequence[tuple[Key, StoredPassages, bool]]) -> None:
        if not written:
            return
        copy(
            self._db,
            "passages (space, row, place, start_char, end_char, siblings, vector)",
            ("text", "int8", "int4", "int4", "int4", "int4", "halfvec"),
            (
                (*key, place, span.start, span.end, len(given.spans), HalfVector(vector))
                for key, given, _ in written
                for place, (span, vector) in enumerate(zip(given.spans, given.vectors, strict=True))
            ),
        )
        token_vectors.add_packed(
            self._db,
            (
                (key, given.tokens[:TOKEN_PASSAGES_MAX])
                for key, given, with_tokens in written
                if with_tokens and given.tokens is not None
            ),
        )

    # ---- of several memories with one key or text, the latest stays

    def _settle(self, place: _Place, arriving: str) -> None:
        rivals = self._rivals(place)
        if not rivals:
            return
        top_memory = merging.first(each.register for each in rivals)
        for each in rivals:
            if each.memory.id == top_memory.id:
                continue
            self._stored.pop(each.memory.id, None)
            if each.memory.deleted is None:
                self._hide(each, top_memory.updated)
                run(self._db, "INSERT INTO displaced VALUES (%s, %s)", each.key)
            else:
                sql = "UPDATE memories SET deleted_us = %s WHERE space = %s AND row = %s"
                run(self._db, sql, (rows.microseconds(top_memory.updated), *each.key))
            if each.memory.deleted is None or each.memory.id == arriving:
                self.counts["displaced"] += 1
                self._log([merging.displaced_event(each.register, top_memory)])
        (top,) = (each for each in rivals if each.memory.id == top_memory.id)
        if top.displaced:
            self._show(top)
            if top.memory.id != arriving:
                self._log([merging.reinstated_event(top.register)])

    def _hide(self, stored: _Stored, at: datetime) -> None:
        self._stored.pop(stored.memory.id, None)
        sql = "UPDATE memories SET deleted_us = %s WHERE space = %s AND row = %s"
        run(self._db, sql, (rows.microseconds(at), *stored.key))
        vocabulary.subtract(self._db, [(stored.memory.space, stored.tokens)])
        facts.hidden(self._db, [stored.key])

    def _show(self, stored: _Stored) -> None:
        self._stored.pop(stored.memory.id, None)
        (doc,) = numbers(self._db, "memory_rows", 1)
        sql = "UPDATE memories SET deleted_us = NULL, doc = %s WHERE space = %s AND row = %s"
        run(self._db, sql, (doc, *stored.key))
        run(self._db, "DELETE FROM displaced WHERE space = %s AND row = %s", stored.key)
        vocabulary.add(self._db, [(stored.memory.space, doc, stored.tokens)])
        facts.restored(self._db, [stored.key])

    # ---- reading what is stored

    def _find(self, memory_id: str) -> _Stored:
        known = self._stored.get(memory_id)
        return self._select("m.id = %s", (memory_id,))[0] if known is None else known

    def _rivals(self, place: _Place) -> list[_Stored]:
        """Live and displaced memories with this identity."""
        live = self._select("m.space = %s AND m.identity = %s AND m.deleted_us IS NULL", place)
        of_displaced = f"SELECT m.space, m.row {_DISPLACED} WHERE m.space = %s AND m.identity = %s"
        return live + self._select(f"(m.space, m.row) IN ({of_displaced})", place)

    def _select(self, condition: str, parameters: Sequence[Any]) -> list[_Stored]:
        return [
            _Stored(row, rows.memory(columns[:-6]), rows.tokens(columns[-6:]), displaced, embedded, has_tokens)
            for row, displaced, embedded, has_tokens, *columns in fetch(self._db, _STORED + condition, parameters)
        ]

    def _taken_places(self, places: Iterable[_Place]) -> set[_Place]:
        given = _columns(places, 2)
        return {(space, identity) for space, identity in fetch(self._db, _TAKEN, given * 2)}

    # ---- events

    def _history(self, memory_id: str) -> list[EventRecord]:
        sql = f"SELECT {export.EVENT_COLUMNS} FROM events WHERE memory_id = %s ORDER BY seq"
        stored = [export.event_record(row, self._store_id) for row in fetch(self._db, sql, (memory_id,))]
        return stored + [event for event, _ in self._unwritten if event.memory_id == memory_id]

    def _purge(self, event: EventRecord) -> None:
        if event.action != "purged" or event.memory_id not in self._keys:
            return
        self._write_events()  # they may quote it
        (stored,) = purging.delete(self._db, [event.memory_id], event.at)
        del self._keys[event.memory_id]
        self._stored.pop(event.memory_id, None)
        self._any_purged = True
        self.counts["purged"] += 1
        self._settle(_place(stored.memory), arriving="")

    def _log(self, events: Iterable[EventRecord]) -> set[str]:
        """Add the events that are not known yet. Returns the ids of their memories."""
        told = set()
        for each in events:
            if each.uid in self._known:
                continue
            self._known.add(each.uid)
            key = self._keys.get(each.memory_id)
            if each.action == "purged" or (key is None and each.memory_id in self._purged):
                self._purged.add(each.memory_id)
                each = replace(each, before={})
            self._unwritten.append((each, 0 if key is None else key[1]))
            self.counts["events"] += 1
            told.add(each.memory_id)
        return told

    def _write_events(self) -> None:
        """All writers wait for the numbers of events until this transaction ends, so that they are taken last."""
        if self._unwritten:
            first = counters.take(self._db, "events", len(self._unwritten))
            copy(
                self._db,
                "events (space, seq, at_us, action, row, memory_id, before, uid)",
                ("text", "int8", "int8", "text", "int8", "text", "text", "text"),
                (
                    (
                        *(each.space, seq, rows.microseconds(each.at), each.action, row, each.memory_id),
                        *(rows.to_json(dict(each.before)) if each.before else None, each.uid),
                    )
                    for seq, (each, row) in enumerate(self._unwritten, first)
                ),
            )
        self._unwritten = []

    def _known_uids(self, events: Sequence[EventRecord]) -> set[str]:
        known = (
            "SELECT e.uid FROM unnest(%s::text[], %s::text[]) AS given (space, uid) "
            "JOIN events AS e ON e.space = given.space AND e.uid = given.uid"
        )
        found = {uid for (uid,) in fetch(self._db, known, _columns(((each.space, each.uid) for each in events), 2))}
        begin = f"{self._store_id}-"
        own = [(each.space, seq) for each in events if (seq := _number_of(each.uid, begin)) is not None]
        sql = (
            "SELECT e.seq, e.at_us FROM unnest(%s::text[], %s::bigint[]) AS given (space, seq) "
            "JOIN events AS e ON e.space = given.space AND e.seq = given.seq"
        )
        return found | {
            merging.event_uid(self._store_id, seq, rows.moment(at_us))
            for seq, at_us in fetch(self._db, sql, _columns(own, 2))
        }

    # ---- what belongs to memories

    def _facts(self, records: Sequence[FactRecord]) -> None:
        db, given = self._db, [each.fact for each in records]
        sql = "SELECT id, space, row, content_hash, deleted_us IS NULL FROM memories WHERE id = ANY(%s)"
        memories = {each: rest for each, *rest in fetch(db, sql, ([each.memory_id for each in given],))}
        sql = (
            "SELECT c.space, c.name FROM unnest(%s::text[], %s::text[]) AS given (space, name) "
            "JOIN changes AS c ON c.space = given.space AND c.kind = 'fact' AND c.name = given.name AND c.gone"
        )
        gone = {(space, name) for space, name in fetch(db, sql, _columns(((f.space, f.id) for f in given), 2))}
        known = {each.id: each for each in facts.by_ids(db, [each.id for each in given])}
        new: list[tuple[int, Fact, bool]] = []
        surer: list[Fact] = []
        for fact, text in ((each.fact, each.text) for each in records):
            if fact.memory_id not in memories or (fact.space, fact.id) in gone:
                continue
            space, row, hashed, is_live = memories[fact.memory_id]
            if space != fact.space or text not in (None, hashed.hex()):
                continue
            stored = known.get(fact.id)
            if stored is None:
                new.append((row, fact, is_live))
            elif stored.memory_id == fact.memory_id and merging.surer(fact, stored):
                surer.append(fact)
        facts.take(db, new)
        facts.write_confidence(db, surer)
        if new or surer:
            self.counts["facts"] += len(new) + len(surer)

    def _entities(self, records: Sequence[EntityRecord]) -> None:
        """Entities none of whose names another one of these has."""
        db = self._db
        places = [place for each in records for place in _places_of_names(each)]
        given = _columns(places, 2)
        sql = (
            "SELECT n.space, n.key FROM unnest(%s::text[], %s::text[]) AS given (space, key) "
            "JOIN entity_names AS n ON n.space = given.space AND n.key = given.key "
            "UNION SELECT c.space, c.name FROM unnest(%s::text[], %s::text[]) AS given (space, key) "
            "JOIN changes AS c ON c.space = given.space AND c.kind = 'entity' AND c.name = given.key"
        )
        met = {(space, key) for space, key in fetch(db, sql, given * 2)}
        ids = list({memory_id for each in records for memory_id in each.memory_ids})
        sql = "SELECT id, space, row FROM memories WHERE id = ANY(%s)"
        key_of = {memory_id: (space, row) for memory_id, space, row in fetch(db, sql, (ids,))}
        new = []
        for each in records:
            linked = [key_of[one][1] for one in each.memory_ids if one in key_of and key_of[one][0] == each.space]
            if met.isdisjoint(_places_of_names(each)):
                new.append((each, linked))
            else:
                self._write_entities(new)
                new = []
                self._entity(each, linked)
        self._write_entities(new)

    def _write_entities(self, new: Sequence[tuple[EntityRecord, Sequence[int]]]) -> None:
        """Insert entities whose names nothing is known of."""
        db = self._db
        asked = [place for each, linked in new if not (each.kept or linked) for place in _places_of_names(each)]
        named = _named(db, asked)
        wanted = [
            (each, linked)
            for each, linked in new
            if each.kept or linked or not named.isdisjoint(_places_of_names(each))
        ]
        if not wanted:
            return
        numbered = list(zip(numbers(db, "entity_numbers", len(wanted)), wanted, strict=True))
        copy(
            db,
            "entities (space, entity, name, type, kept)",
            ("text", "int8", "text", "text", "bool"),
            ((each.space, number, each.name, each.type, each.kept) for number, (each, _) in numbered),
        )
        copy(
            db,
            "entity_names (space, key, name, entity)",
            ("text", "text", "text", "int8"),
            ((each.space, key, name, number) for number, (each, _) in numbered for key, name in _names(each).items()),
        )
        entities.link(db, [((each.space, number), row) for number, (each, linked) in numbered for row in linked])
        taken = [(each.space, fold(each.name), each.changed) for each, _ in wanted if each.changed is not None]
        change_log.take_all(db, "entity", taken)
        facts.update_supersession(
            db, facts.groups_of_entities(db, [(each.space, number) for number, (each, _) in numbered])
        )
        self.counts["entities"] += len(wanted)

    def _entity(self, record: EntityRecord, linked: Sequence[int]) -> None:
        """Merge an entity with those that have one of its names."""
        db, space = self._db, record.space
        names, canonical = _names(record), fold(record.name)
        dropped = change_log.of(db, "entity", space, [canonical]).get(canonical)
        if dropped is not None and dropped.gone and dropped.at >= (record.changed or merging.LONG_AGO):
            return
        if not record.kept and not linked and not entities.are_named(db, space, list(names)):
            return
        known = entities.having(db, space, list(names))
        before = list(export.entity_records(db, known))
        best = record
        for each in before:
            best = each if merging.entity_wins(each, best) else best
        number = entities.union(db, space, names, [each[0] for each in known], best, kept=record.kept)
        entities.link(db, [(number, row) for row in linked])
        (after,) = export.entity_records(db, entities.having(db, space, [canonical]))
        changed = max((each.changed for each in (record, *before) if each.changed), default=None)
        if changed is not None and after.changed != changed:
            change_log.take(db, "entity", space, fold(best.name), changed)
        if before != [replace(after, changed=before[0].changed if before else None)]:
            facts.update_supersession(db, facts.groups_of_entities(db, [number]))
            self.counts["entities"] += 1

    def _updates(self, records: Sequence[UpdateRecord]) -> None:
        db = self._db
        sql = (
            "SELECT given.place, n.space, o.row, n.row, u.cue, c.at_us "
            "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (newer, older, place) "
            "JOIN memories AS n ON n.id = given.newer "
            "JOIN memories AS o ON o.id = given.older AND o.space = n.space AND o.row <> n.row "
            "LEFT JOIN updates AS u ON u.space = n.space AND u.older = o.row AND u.newer = n.row "
            "LEFT JOIN changes AS c ON c.space = n.space AND c.kind = 'update' AND c.name = n.id || ' ' || o.id "
            "ORDER BY given.place"
        )
        given = _columns(((each.newer, each.older) for each in records), 2)
        written, taken = [], []
        for place, space, older, newer, cue, at_us in fetch(db, sql, given):
            record = records[place - 1]
            local = rows.maybe_moment(at_us), "" if cue is None else f"+{cue}"
            if merging.later((record.changed, f"+{record.cue}"), local):
                written.append((space, older, newer, record.cue))
                if record.changed is not None:
                    taken.append((space, update_name(record.newer, record.older), record.changed))
        if written:
            run(
                db,
                "INSERT INTO updates SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[]) "
                "ON CONFLICT (space, older, newer) DO UPDATE SET cue = excluded.cue",
                _columns(written, 4),
            )
            change_log.take_all(db, "update", taken)
            self.counts["updates"] += len(written)

    def _similar(self, records: Sequence[SimilarRecord]) -> None:
        db = self._db
        sql = (
            "SELECT given.place, a.space, a.row, b.row, a.content_hash, b.content_hash, coalesce(s.apart, false) "
            "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (one, other, place) "
            "JOIN memories AS a ON a.id = given.one "
            "JOIN memories AS b ON b.id = given.other AND b.space = a.space AND b.row <> a.row "
            "LEFT JOIN near_duplicates AS s ON s.space = a.space AND s.row = a.row AND s.other = b.row "
            "ORDER BY given.place"
        )
        given = _columns(((each.one, each.other) for each in records), 2)
        pairs: list[tuple[str, int, int, bool]] = []
        separated: list[tuple[str, str]] = []
        for place, space, one, other, one_hash, other_hash, apart in fetch(db, sql, given):
            record = records[place - 1]
            if (one_hash.hex(), other_hash.hex()) == record.texts:
                pairs += [(space, one, other, record.apart), (space, other, one, record.apart)]
                if record.apart and not apart:
                    separated.append((space, record.one))
        if pairs:
            run(
                db,
                "INSERT INTO near_duplicates AS n "
                "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bool[]) "
                "ON CONFLICT (space, row, other) DO UPDATE SET apart = n.apart OR excluded.apart",
                _columns(pairs, 4),
            )
        for space, several in groupby(separated, key=lambda each: each[0]):
            change_log.note(db, "apart", space, [name for _, name in several])
        if pairs:
            counters.bump_revision(db)

    def _lens(self, record: LensRecord) -> None:
        db, place = self._db, (record.space, record.name)
        body = value(db, "SELECT body FROM lenses WHERE space = %s AND name = %s", place)
        change = change_log.of(db, "lens", record.space, [record.name]).get(record.name)
        if merging.later((record.changed, record.body), (None if change is None else change.at, body or "")):
            put = "INSERT INTO lenses VALUES (%s, %s, %s) ON CONFLICT (space, name) DO UPDATE SET body = excluded.body"
            run(db, put, (*place, record.body))
            if record.changed is not None:
                change_log.take(db, "lens", *place, record.changed)
            self.counts["lenses"] += 1

    def _dropped(self, record: Dropped) -> None:
        db, space, name = self._db, record.space, record.name
        change = change_log.of(db, record.kind, space, [name]).get(name)
        if record.kind == "fact":
            if change is not None and change.gone:
                return
            if facts.by_ids(db, [name]):
                facts.remove(db, [name])
                self.counts["facts"] += 1
        elif change is not None and (change.at, not change.gone) >= (record.changed, False):
            return
        elif record.kind == "entity":
            for each in entities.having(db, space, [name]):
                (known,) = export.entity_records(db, [each])
                if known.changed is not None and known.changed > record.changed:
                    return
                facts.remove_entity(db, (space, each[0]))
                self.counts["entities"] += 1
        elif record.kind == "update":
            newer, _, older = name.partition(" ")
            self.counts["updates"] += _unlinked(db, newer, older)
        else:
            self.counts["lenses"] += run(db, "DELETE FROM lenses WHERE space = %s AND name = %s", (space, name))
        change_log.take(db, record.kind, space, name, record.changed, gone=True)


# ---------------------------------------------------------------- what records are about


def _spaces(db: Db, records: Sequence[Record]) -> set[str]:
    """The spaces that these records may change, and those where displaced memories are to be settled."""
    spaces, ids = set(), set()
    for each in records:
        match each:
            case MemoryRecord(memory):
                spaces.add(memory.space)
            case FactRecord(fact):
                spaces.add(fact.space)
                ids.add(fact.memory_id)
            case EntityRecord() | LensRecord():
                spaces.add(each.space)
            case Dropped():
                spaces.add(each.space)
                ids.update(each.name.split(" ") if each.kind == "update" else ())
            case UpdateRecord():
                ids.update((each.newer, each.older))
            case SimilarRecord():
                ids.update((each.one, each.other))
        for event in _events_of(each):
            spaces.add(event.space)
            ids.add(event.memory_id)
    sql = f"SELECT space FROM memories WHERE id = ANY(%s) UNION SELECT s.space FROM ({export.STALE}) AS s"
    return spaces | {space for (space,) in fetch(db, sql, (list(ids),))}


def _events_of(record: Record) -> Sequence[EventRecord]:
    match record:
        case MemoryRecord():
            return record.events
        case EventRecord():
            return [record]
    return ()


def _place(memory: Memory) -> _Place:
    return memory.space, rows.identity_hash(changes.identity(memory))


def _names(record: EntityRecord) -> dict[str, str]:
    """The names of an entity by folded name."""
    return {fold(name): name for name in (*record.aliases, record.name)}


def _places_of_names(record: EntityRecord) -> list[tuple[str, str]]:
    return [(record.space, key) for key in _names(record)]


def _distinct(records: Iterable[Any]) -> Iterator[list[Any]]:
    """Records of one kind in their order, in parts that can be taken together."""
    part: list[Any] = []
    seen: set[Any] = set()
    for each in records:
        keys = _keys_of(each)
        if part and not seen.isdisjoint(keys):
            yield part
            part, seen = [], set()
        part.append(each)
        seen.update(keys)
    yield part


def _keys_of(record: Record) -> Sequence[Any]:
    """What no two records have in common that are taken together."""
    match record:
        case MemoryRecord():  # memories see to it themselves
            return ()
        case FactRecord(fact):
            return (fact.id,)
        case EntityRecord():
            return _places_of_names(record)
        case UpdateRecord():
            return (update_name(record.newer, record.older),)
        case SimilarRecord():
            return (frozenset((record.one, record.other)),)
    return ("",)  # one by one


def _entry(memory: Memory) -> Entry:
    tokens = tokens_of(memory)
    return Entry(memory, content_hash(memory.text), tokens, None, sketch=similarity.sketch(tokens))


def _token_passages(tokens: Sequence[bytes]) -> int:
    return min(len(tokens), TOKEN_PASSAGES_MAX)


def _number_of(uid: str, begin: str) -> int | None:
    """The number in the uid of an event that this store wrote itself."""
    parts = uid.split("-")
    is_own = uid.startswith(begin) and len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) < _DIGITS
    return int(parts[1]) if is_own else None


def _columns(listed: Iterable[tuple[Any, ...]], count: int) -> tuple[list[Any], ...]:
    """Rows as columns, to be given to `unnest`."""
    every = list(listed)
    return tuple([each[at] for each in every] for at in range(count))


def _named(db: Db, places: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of these spaces and folded names that a fact has as its subject or, in a relation, as its object."""
    sql = (
        "SELECT given.space, given.key FROM unnest(%s::text[], %s::text[]) AS given (space, key) WHERE "
        "EXISTS (SELECT 1 FROM facts AS f WHERE f.space = given.space AND f.subject_key = given.key) OR "
        "EXISTS (SELECT 1 FROM facts AS f WHERE f.space = given.space AND f.relation AND f.object_key = given.key)"
    )
    return {(space, key) for space, key in fetch(db, sql, _columns(places, 2))}


def _unlinked(db: Db, newer: str, older: str) -> int:
    return run(
        db,
        "DELETE FROM updates AS u USING memories AS n JOIN memories AS o ON o.space = n.space "
        "WHERE n.id = %s AND o.id = %s AND u.space = n.space AND u.newer = n.row AND u.older = o.row",
        (newer, older),
    )
