"""Exports the records of the reference store, and takes in those of another store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from nacre.analysis import near_duplicates
from nacre.analysis.names import fold
from nacre.analysis.word_forms import tokens_of
from nacre.errors import QuotaExceeded
from nacre.ids import content_hash
from nacre.storage import changes, merging
from nacre.storage.quotas import check_usage
from nacre.storage.reference import purging
from nacre.storage.reference.change_log import LoggedEvent
from nacre.storage.reference.stored_memory import FurtherPassages, StoredMemory
from nacre.types.memory import Entry, Identity, Json, Memory, Update
from nacre.types.quotas import Usage
from nacre.types.search import Filter
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    ExportRequest,
    FactRecord,
    Header,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
    update_name,
)

if TYPE_CHECKING:
    from nacre.storage.reference.facts import _Entity
    from nacre.storage.reference.store import MemoryStore


# ---------------------------------------------------------------- export


def dump(store: MemoryStore, request: ExportRequest) -> Iterator[Record]:
    since = _number(store, request.since) if isinstance(request.since, datetime) else request.since
    where = request.where
    partial = where is not None and replace(where, spaces=()) != Filter()
    changed = {
        each.memory_id for each in store._events if each.seq > since and (request.vectors or each.action != "embedded")
    }
    stale = set(_stale(store))
    chosen = [
        stored
        for stored in store._memories.values()
        if (where is None or store._matches(stored, where, None))
        and (not since or stored.memory.id in changed or stored.memory.id in stale)
    ]
    exported = {stored.memory.id for stored in chosen}
    yield Header(
        store=store._store_id,
        at=request.at,
        seq=store._changes.last,
        since=since,
        where=merging.filter_text(where),
        vectors=request.vectors,
        model=store._model,
        token_model=store._token_model,
        further_models=store._further_models if request.vectors else (),
        memories=len(chosen),
    )
    for stored in chosen:
        memory = stored.memory if stored.memory.id in stale else _register(store, stored)
        events = tuple(
            _event_record(store, each) for each in store._events if each.memory_id == memory.id and each.seq > since
        )
        if request.vectors:
            yield MemoryRecord(memory, events, _passages(stored), _further(stored))
        else:
            yield MemoryRecord(memory, events)
    seen = {each for each in store._memories if where is None or store._matches(store._memories[each], where, None)}
    touched = exported if since else seen  # memories whose facts and links follow
    yield from _fact_records(store, since, seen, touched)
    yield from _entity_records(store, since, where, partial, seen, touched)
    yield from _link_records(store, since, seen, touched)
    if not partial:
        yield from _other_records(store, since, where)


def _fact_records(store: MemoryStore, since: int, seen: set[str], touched: set[str]) -> Iterator[Record]:
    noted = {name for _, name in store._changes.since("fact", since)}
    for fact in store._facts._superseded():
        if fact.memory_id in touched or (fact.id in noted and fact.memory_id in seen):
            text = store._memories[fact.memory_id].memory.text
            yield FactRecord(fact, merging.text_hash(text) if fact.origin == "extracted" else None)


def _entity_records(
    store: MemoryStore, since: int, where: Filter | None, partial: bool, seen: set[str], touched: set[str]
) -> Iterator[Record]:
    noted = store._changes.since("entity", since)
    for entity in store._facts._entities:
        about = {each for each in seen if entity in store._facts._about(each)}
        if where is not None and entity.space not in where.spaces:
            continue
        is_noted = any((entity.space, key) in noted for key in entity.names)
        if not about.isdisjoint(touched) or (not partial and (is_noted or not since)) or (is_noted and about):
            yield _entity_record(store, entity, seen)


def _entity_record(store: MemoryStore, entity: _Entity, seen: set[str]) -> EntityRecord:
    times = [
        at
        for key in entity.names
        if not store._changes.is_gone("entity", entity.space, key)
        and (at := store._changes.at("entity", entity.space, key))
    ]
    canonical = fold(entity.name)
    return EntityRecord(
        space=entity.space,
        name=entity.name,
        type=entity.type,
        kept=entity.kept,
        aliases=tuple(name for key, name in sorted(entity.names.items()) if key != canonical),
        memory_ids=tuple(sorted(entity.memories & seen)),
        changed=max(times, default=None),
    )


def _link_records(store: MemoryStore, since: int, seen: set[str], touched: set[str]) -> Iterator[Record]:
    noted = {name for _, name in store._changes.since("update", since)}
    for pair, update in sorted(store._updates.links.items()):
        name = update_name(*pair)
        if seen.issuperset(pair) and (not touched.isdisjoint(pair) or name in noted):
            space = store._memories[update.newer].memory.space
            yield UpdateRecord(*update, store._changes.at("update", space, name))
    apart = {name for _, name in store._changes.since("apart", since)}
    for similar in sorted(map(sorted, store._facts._similar)):
        one, other = similar
        if seen.issuperset(similar) and not (touched | apart).isdisjoint(similar):
            one_hash, other_hash = (merging.text_hash(store._memories[each].memory.text) for each in similar)
            yield SimilarRecord(one, other, (one_hash, other_hash), frozenset(similar) in store._facts._apart)


def _other_records(store: MemoryStore, since: int, where: Filter | None) -> Iterator[Record]:
    noted = store._changes.since("lens", since)
    for (space, name), body in sorted(store._lenses.items()):
        if (where is None or space in where.spaces) and (not since or (space, name) in noted):
            yield LensRecord(space, name, body, store._changes.at("lens", space, name))
    for (kind, space, name), change in sorted(store._changes.changes.items(), key=lambda each: each[1].seq):
        if change.gone and change.seq > since and (where is None or space in where.spaces):
            yield Dropped(kind, space, name, change.at)  # type: ignore[arg-type]
    for event in store._events:
        gone = event.memory_id and event.memory_id not in store._memories and event.seq > since
        if gone and (where is None or event.space in where.spaces):
            yield _event_record(store, event)


def _number(store: MemoryStore, since: datetime) -> int:
    """The number after which all changes since a time are."""
    numbers = [each.seq for each in store._events if each.at >= since]
    numbers += [each.seq for each in store._changes.changes.values() if each.at >= since]
    return min(numbers, default=store._changes.last + 1) - 1


def _event_record(store: MemoryStore, event: LoggedEvent) -> EventRecord:
    return EventRecord(
        uid=event.uid or merging.event_uid(store._store_id, event.seq, event.at),
        at=event.at,
        action=event.action,
        memory_id=event.memory_id,
        space=event.space,
        before=event.before,
    )


def _further(stored: StoredMemory) -> dict[str, StoredPassages]:
    return {model: StoredPassages(*each) for model, each in sorted(stored.further.items())}


def _passages(stored: StoredMemory) -> StoredPassages | None:
    return None if stored.spans is None else StoredPassages(stored.spans, stored.blobs, stored.token_blobs)


# ---------------------------------------------------------------- displaced memories


def _register(store: MemoryStore, stored: StoredMemory) -> Memory:
    """The version that takes part in exchanges: one that was only displaced counts as live."""
    return replace(stored.memory, deleted=None) if stored.memory.id in store._displaced else stored.memory


def _stale(store: MemoryStore) -> list[str]:
    """Displaced memories that nothing displaces any more, because of a change made here: they stay forgotten."""
    live = {changes.identity(each.memory): each.memory for each in store._live()}
    found = []
    for memory_id in store._displaced:
        memory = _register(store, store._memories[memory_id])
        rival = live.get(changes.identity(memory))
        if rival is None or merging.first([memory, rival]) is memory:
            found.append(memory_id)
    return found


# ---------------------------------------------------------------- import


def load(
    store: MemoryStore, records: Sequence[Record], mark: int | None, model: str | None, token_model: str | None
) -> LoadCounts:
    """`mark=None`: no near-duplicates are looked for, those of the records are all."""
    held, undo = store._usage(), _Undo(store)
    store._model, store._token_model = store._model or model, store._token_model or token_model
    loading = _Loading(store, mark, model, token_model)
    for record in records:
        loading.take(record)
    loading.finish()
    try:
        after = store._usage()
        check_usage(store._quotas, {space: held.get(space, Usage()) for space in after}, after)
    except QuotaExceeded:
        undo.do()
        raise
    return LoadCounts(**loading.counts)


class _Undo:
    """What a store was before an import that is not allowed."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._own = {
            name: copy(getattr(store, name))
            for name in (
                "_memories",
                "_events",
                "_displaced",
                "_model",
                "_token_model",
                "_further_models",
                "_lenses",
                "_requests",
            )
        }
        names = ("_facts", "_entities", "_sketches", "_similar", "_apart")
        self._facts = deepcopy({name: getattr(store._facts, name) for name in names})
        self._links, self._changes = dict(store._updates.links), dict(store._changes.changes)

    def do(self) -> None:
        for name, value in self._own.items():
            setattr(self._store, name, value)
        for name, value in self._facts.items():
            setattr(self._store._facts, name, value)
        self._store._updates.links, self._store._changes.changes = self._links, self._changes


class _Loading:
    def __init__(self, store: MemoryStore, mark: int | None, model: str | None, token_model: str | None) -> None:
        self._store = store
        self._known = set(list(store._memories)[: mark or 0])
        self._of_changed = set[str]() if mark is None else None  # None: all are compared with a text that changed
        self._model = model
        self._token_model = token_model
        self._events = {
            each.uid or merging.event_uid(store._store_id, each.seq, each.at): each for each in store._events
        }
        self.counts: Counter[str] = Counter()
        store._displaced -= set(_stale(store))

    def take(self, record: Record) -> None:
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
                self._log(record)
            case Header():
                pass

    def finish(self) -> None:
        if self.counts:
            self._store._revision += 1

    # ---- memories

    def _memory(self, record: MemoryRecord) -> None:
        store, memory = self._store, record.memory
        if self._is_purged(memory.id):
            self.counts["left_out"] += 1
            for event in record.events:
                self._log(event)
            return
        old = store._memories.get(memory.id)
        lost: Memory | None = None
        if old is None:
            self.counts["added"] += 1
            takes = True
        else:
            local = _register(store, old)
            takes = merging.newer(memory, local)
            if takes:
                self.counts["updated"] += 1
                lost = None if merging.is_former(local, memory, record.events) else local
            elif merging.same(memory, local):
                self.counts["unchanged"] += 1
            else:
                self.counts["kept"] += 1
                history = [_event_record(store, each) for each in store._events if each.memory_id == memory.id]
                lost = None if merging.is_former(memory, local, history) else memory
        told = [self._log(event) for event in record.events]
        if lost is not None:
            told.append(self._log(merging.merged_event(lost)))
        if takes:
            if not any(told):
                self._log(merging.imported_event(memory), always=True)
            self._write(memory, old, record)
            for identity in {changes.identity(memory), *([changes.identity(old.memory)] if old is not None else [])}:
                self._settle(identity)
        else:
            self._add_passages(memory, record)

    def _write(self, memory: Memory, old: StoredMemory | None, given: MemoryRecord) -> None:
        store = self._store
        store._displaced.discard(memory.id)
        tokens = tokens_of(memory)
        written = StoredMemory(memory, content_hash(memory.text), tokens, None, ())
        same_text = old is not None and old.content_hash == written.content_hash
        if old is not None and same_text:
            written = replace(
                written, spans=old.spans, blobs=old.blobs, token_blobs=old.token_blobs, further=old.further
            )
        store._memories[memory.id] = written
        self._add_passages(memory, given)
        if same_text:
            return
        if old is not None:
            store._facts.forget_text(memory.id)
            store._facts._drop_unlinked()
        entry = Entry(memory, written.content_hash, tokens, None, sketch=near_duplicates.sketch(tokens))
        store._facts.link_similar(entry, self._known if old is None else self._of_changed)

    def _add_passages(self, memory: Memory, record: MemoryRecord) -> None:
        """Add what is missing, if it is of this text and of the store's model or a further one."""
        store, given = self._store, record.passages
        stored = store._memories[memory.id]
        if stored.memory.text != memory.text:
            return
        further = {
            model: FurtherPassages(each.spans, each.vectors)
            for model, each in record.further.items()
            if model in store._further_models
        }
        if not further.keys() <= stored.further.keys():
            stored = replace(stored, further={**further, **stored.further})
        if given is not None and self._model is not None and store._model == self._model:
            if stored.spans is None:
                stored = replace(stored, spans=given.spans, blobs=given.vectors)
            fits = self._token_model is not None and store._token_model == self._token_model
            if fits and stored.token_blobs is None and given.tokens is not None and stored.spans == given.spans:
                stored = replace(stored, token_blobs=given.tokens)
        if stored is not store._memories[memory.id]:
            store._memories[memory.id] = stored
            store._revision += 1

    def _settle(self, identity: Identity) -> None:
        """Of several memories with one key or text, the latest stays; it comes back when it is alone again."""
        store = self._store
        rivals = [
            register
            for stored in store._memories.values()
            if (register := _register(store, stored)).deleted is None and changes.identity(register) == identity
        ]
        if not rivals:
            return
        top = merging.first(rivals)
        for each in rivals:
            stored = store._memories[each.id]
            if each is top and each.id in store._displaced:
                store._displaced.discard(each.id)
                store._memories[each.id] = replace(stored, memory=each)
                self._log(merging.reinstated_event(each), always=True)
            elif each is not top:
                if each.id not in store._displaced:
                    self.counts["displaced"] += 1
                    self._log(merging.displaced_event(each, top), always=True)
                store._displaced.add(each.id)
                store._memories[each.id] = replace(stored, memory=replace(each, deleted=top.updated))

    # ---- events

    def _is_purged(self, memory_id: str) -> bool:
        return any(each.memory_id == memory_id and each.action == "purged" for each in self._store._events)

    def _purge(self, event: EventRecord) -> None:
        if event.action == "purged" and event.memory_id in self._store._memories:
            identity = changes.identity(self._store._memories[event.memory_id].memory)
            purging.purge(self._store, event.memory_id, event.at)
            self.counts["purged"] += 1
            self._settle(identity)

    def _log(self, event: EventRecord, *, always: bool = False) -> bool:
        """Add an event that is not known yet. Returns whether it was; `always` tells of it in any case."""
        if event.uid in self._events:
            self._store._revision += always
            return False
        purged = event.memory_id not in self._store._memories and self._is_purged(event.memory_id)
        before = {} if purged or event.action == "purged" else event.before
        self._events[event.uid] = self._append(event, before)
        self.counts["events"] += 1
        return True

    def _append(self, event: EventRecord, before: Mapping[str, Json]) -> LoggedEvent:
        seq = self._store._changes.next()
        logged = LoggedEvent(seq, event.at, event.action, event.memory_id, before, event.space, event.uid)
        self._store._events.append(logged)
        return logged

    # ---- what belongs to memories

    def _fact(self, record: FactRecord) -> None:
        store, fact = self._store, record.fact
        stored = store._memories.get(fact.memory_id)
        if stored is None or stored.memory.space != fact.space or store._changes.is_gone("fact", fact.space, fact.id):
            return
        if record.text is not None and record.text != merging.text_hash(stored.memory.text):
            return
        known = store._facts._facts.get(fact.id)
        if known is None:
            store._facts._facts[fact.id] = fact
        elif known.memory_id == fact.memory_id and merging.surer(fact, known):
            store._facts.update_confidence([fact])
        else:
            return
        self.counts["facts"] += 1

    def _entity(self, record: EntityRecord) -> None:
        store, facts = self._store, self._store._facts
        keys = [fold(name) for name in (record.name, *record.aliases)]
        dropped = store._changes.changes.get(("entity", record.space, keys[0]))
        if dropped is not None and dropped.gone and dropped.at >= (record.changed or merging.LONG_AGO):
            return
        linked = {
            each
            for each in record.memory_ids
            if each in store._memories and store._memories[each].memory.space == record.space
        }
        if not record.kept and not linked and not facts.is_named(keys, record.space):
            return
        before = [_entity_record(store, each, set(store._memories)) for each in facts.having(record.space, keys)]
        best = record
        for each in before:
            best = each if merging.entity_wins(each, best) else best
        entity = facts.union(record.space, (record.name, *record.aliases))
        entity.name, entity.type = best.name, best.type
        entity.kept = entity.kept or record.kept
        entity.memories |= linked
        after = _entity_record(store, entity, set(store._memories))
        changed = max((each.changed for each in (record, *before) if each.changed), default=None)
        if changed is not None and after.changed != changed:
            store._changes.take("entity", record.space, fold(best.name), changed)
        if before != [replace(after, changed=before[0].changed if before else None)]:
            self.counts["entities"] += 1

    def _update(self, record: UpdateRecord) -> None:
        store = self._store
        newer, older = store._memories.get(record.newer), store._memories.get(record.older)
        if newer is None or older is None or newer is older or newer.memory.space != older.memory.space:
            return
        pair, space = (record.newer, record.older), newer.memory.space
        name = update_name(*pair)
        stored = store._updates.links.get(pair)
        local = store._changes.at("update", space, name), "" if stored is None else f"+{stored.cue}"
        if merging.later((record.changed, f"+{record.cue}"), local):
            store._updates.links[pair] = Update(record.newer, record.older, record.cue)
            if record.changed is not None:
                store._changes.take("update", space, name, record.changed)
            self.counts["updates"] += 1

    def _similar(self, record: SimilarRecord) -> None:
        one, other = self._store._memories.get(record.one), self._store._memories.get(record.other)
        if one is None or other is None or one is other:
            return
        if (merging.text_hash(one.memory.text), merging.text_hash(other.memory.text)) == record.texts:
            pair = frozenset((record.one, record.other))
            self._store._facts._similar.add(pair)
            if record.apart and pair not in self._store._facts._apart:
                self._store._facts._apart.add(pair)
                self._store._changes.note("apart", one.memory.space, [record.one])

    def _lens(self, record: LensRecord) -> None:
        store = self._store
        stored = store._lenses.get((record.space, record.name))
        local = store._changes.at("lens", record.space, record.name), stored or ""
        if merging.later((record.changed, record.body), local):
            store._lenses[record.space, record.name] = record.body
            if record.changed is not None:
                store._changes.take("lens", record.space, record.name, record.changed)
            self.counts["lenses"] += 1

    def _dropped(self, record: Dropped) -> None:
        store = self._store
        at = store._changes.at(record.kind, record.space, record.name)
        gone = store._changes.is_gone(record.kind, record.space, record.name)
        if record.kind == "fact":
            if gone:
                return
            if record.name in store._facts._facts:
                store._facts.drop([record.name])
                self.counts["facts"] += 1
        elif at is not None and (at, not gone) >= (record.changed, False):
            return
        elif record.kind == "entity":
            for entity in store._facts.having(record.space, [record.name]):
                known = _entity_record(store, entity, set()).changed
                if known is not None and known > record.changed:
                    return
                store._facts._entities.remove(entity)
                self.counts["entities"] += 1
        elif record.kind == "update":
            newer, _, older = record.name.partition(" ")
            self.counts["updates"] += store._updates.links.pop((newer, older), None) is not None
        else:
            self.counts["lenses"] += store._lenses.pop((record.space, record.name), None) is not None
        store._changes.take(record.kind, record.space, record.name, record.changed, gone=True)
