"""Takes in the records of another store. The caller holds a write transaction.

What a batch is about is read at once, and what is new and meets no other is written together. Each memory that meets
another is merged by itself. Events are written at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from nacre.analysis import near_duplicates as similarity
from nacre.analysis.word_forms import tokens_of
from nacre.ids import content_hash
from nacre.storage import changes, merging
from nacre.storage.postgres import (
    counters,
    export,
    facts,
    further_vectors,
    kept_answers,
    near_duplicates,
    placements,
    purging,
    rows,
    space_usage,
    token_vectors,
    vector_graph,
    vocabulary,
)
from nacre.storage.postgres.connection import copy, fetch, hold, run, value
from nacre.storage.postgres.halfvec import HalfVector, received
from nacre.storage.postgres.load_related import Related, places_of_names, transposed
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import PASSAGE_COLUMNS, PASSAGE_TYPES, numbers, write_tokens
from nacre.storage.vectors import STORED
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
    further: Mapping[str, StoredPassages]


def load(
    db: Db, records: Sequence[Record], mark: int | None, model: str | None, token_model: str | None, quotas: Quotas
) -> LoadCounts:
    """`mark=None`: no near-duplicates are looked for, those of the records are all."""
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
        self, db: Db, records: Sequence[Record], mark: int | None, model: str | None, token_model: str | None
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
        self._looked_up: set[str] = set()  # uids of events
        self._known: set[str] = set()  # those of these that are stored, or are to be
        self._look_up(events)
        self._stored = {each.memory.id: each for each in self._select("m.id = ANY(%s)", ([m.id for m in memories],))}
        self._taken = self._taken_places([_place(each) for each in memories])
        self._new: dict[str, MemoryRecord] = {}  # that meet no other memory
        self._new_places: set[_Place] = set()  # of these
        self._unwritten: list[tuple[EventRecord, int]] = []  # events, with the rows of their memories
        self._any_purged = False
        self.counts: Counter[str] = Counter()
        self._related = Related(db, self.counts)

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
                self._related.take_facts(part)
            case EntityRecord():
                self._related.take_entities(part)
            case UpdateRecord():
                self._related.take_updates(part)
            case SimilarRecord():
                self._related.take_similar(part)
            case LensRecord():
                self._related.take_lens(*part)
            case Dropped():
                self._related.take_dropped(*part)
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
            if memory.text == old.memory.text:
                if record.passages is not None:
                    self._add_passages(old, record.passages)
                self._add_further([(old.key, record.further)])
            return
        self._taken |= {_place(memory), *([] if old is None else [_place(old.memory)])}
        coming = _Coming(_entry(memory), record.passages, record.further)
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
        self._insert([_Coming(_entry(each.memory), each.passages, each.further) for each in records], displaced=False)
        told = self._log([event for each in records for event in each.events])
        self._log([merging.imported_event(each.memory) for each in records if each.memory.id not in told])
        self.counts["added"] += len(records)

    def _insert(self, coming: Sequence[_Coming], *, displaced: bool) -> None:
        """Insert memories. One that is `displaced` is written as forgotten, until it is settled which one stays."""
        db = self._db
        written = []
        passages: list[tuple[Key, StoredPassages, bool]] = []  # with token vectors or without
        waiting: list[Key] = []
        for row, (entry, given, _) in zip(numbers(db, "memory_rows", len(coming)), coming, strict=True):
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
        self._add_further([(self._keys[each.entry.memory.id], each.further) for each in coming])
        near_duplicates.link(db, [(row, entry) for _, row, entry in numbered], below=self._mark or 0)

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
        self._add_further([(old.key, coming.further)])
        self._stored.pop(memory.id, None)
        if memory.text != old.memory.text:
            facts.rewrite_entry(db, old.row, entry)
            near_duplicates.rewrite(db, old.row, entry, below=0 if self._mark is None else None)

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

    def _add_further(self, given: Sequence[tuple[Key, Mapping[str, StoredPassages]]]) -> None:
        further_vectors.add_packed(self._db, given)

    def _write_passages(self, written: Sequence[tuple[Key, StoredPassages, bool]]) -> None:
        if not written:
            return
        beside = vector_graph.is_there(self._db, (self._vector_bytes or 0) // STORED.itemsize)
        copy(
            self._db,
            PASSAGE_COLUMNS,
            PASSAGE_TYPES,
            (
                (*key, place, span.start, span.end, len(given.spans), HalfVector(vector), beside)
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
        given = transposed(places, 2)
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
        listed = list(events)
        self._look_up(listed)  # what this store makes of a record, it may have made before
        for each in listed:
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

    def _look_up(self, events: Iterable[EventRecord]) -> None:
        new = [each for each in events if each.uid not in self._looked_up]
        if new:
            self._looked_up.update(each.uid for each in new)
            self._known |= self._known_uids(new)

    def _known_uids(self, events: Sequence[EventRecord]) -> set[str]:
        known = (
            "SELECT e.uid FROM unnest(%s::text[], %s::text[]) AS given (space, uid) "
            "JOIN events AS e ON e.space = given.space AND e.uid = given.uid"
        )
        found = {uid for (uid,) in fetch(self._db, known, transposed(((each.space, each.uid) for each in events), 2))}
        begin = f"{self._store_id}-"
        own = [(each.space, seq) for each in events if (seq := _number_of(each.uid, begin)) is not None]
        sql = (
            "SELECT e.seq, e.at_us FROM unnest(%s::text[], %s::bigint[]) AS given (space, seq) "
            "JOIN events AS e ON e.space = given.space AND e.seq = given.seq"
        )
        return found | {
            merging.event_uid(self._store_id, seq, rows.moment(at_us))
            for seq, at_us in fetch(self._db, sql, transposed(own, 2))
        }


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
    sql = f"SELECT space FROM memories WHERE id = ANY(%s) UNION SELECT s.space FROM ({export.STALE}) AS s "
    sql += f"WHERE NOT {placements.HIDDEN.format('s')}"
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
            return places_of_names(record)
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
