"""The reference store: everything in dictionaries, every search a full scan.

It is meant to be obviously right, not fast. Tests compare the other stores with it.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from nacre.analysis import tokenizer
from nacre.errors import Conflict, NacreError, NotFound, StoreUnavailable
from nacre.interfaces import TimePage
from nacre.query import spelling
from nacre.query.ast import (
    Condition,
    ParsedQuery,
    Term,
    condition_matches,
    filter_matches,
    occurs,
    significant_terms,
    term_counts,
)
from nacre.ranking.bm25 import bm25, term_idf
from nacre.ranking.scoring import best_first
from nacre.runtime import forks
from nacre.storage.changes import check_unexpired, replaced, taken
from nacre.storage.claims import Claims
from nacre.storage.quotas import check_usage, fact_bytes, memory_bytes, named_quotas, replaced_bytes
from nacre.storage.reference import purging, transfer
from nacre.storage.reference.change_log import ChangeLog, LoggedEvent
from nacre.storage.reference.facts import Facts
from nacre.storage.reference.recall_log import RecallLog
from nacre.storage.reference.server_store import ServerTables
from nacre.storage.reference.space_usage import SessionWrites, usage_of
from nacre.storage.reference.stored_memory import StoredMemory, blobs_of, token_blobs_of
from nacre.storage.reference.updates import Updates
from nacre.storage.reference.vector_tables import VectorTables
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.health import Finding
from nacre.types.memory import (
    Entry,
    Event,
    Identity,
    Json,
    Memory,
    Remembered,
    Replacement,
    Tokens,
    Update,
)
from nacre.types.quotas import NO_QUOTAS, Quotas, Usage
from nacre.types.recall_log import NOTHING_UNWRITTEN, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.transfer import ExportRequest, LoadCounts, Record
from nacre.types.views import Neighbours

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector


class MemoryStore(VectorTables, ServerTables):
    """Implements `nacre.interfaces.Store`. One lock makes every call a transaction."""

    def __init__(self, quotas: Quotas = NO_QUOTAS) -> None:
        super().__init__()
        self._quotas = quotas
        self._session_writes = SessionWrites()
        self._memories: dict[str, StoredMemory] = {}
        self._store_id = os.urandom(8).hex()
        self._changes = ChangeLog()
        self._events: list[LoggedEvent] = []
        self._displaced: set[str] = set()  # forgotten only because a newer memory has the same key or text
        self._revision = 0
        self._lenses: dict[tuple[str, str], str] = {}
        self._facts = Facts(self._stored, self._changes)
        self._updates = Updates(self._stored, self._changes)
        self._recall_log = RecallLog(self._space_of)
        self._lock = threading.RLock()
        self.claimed = Claims(self.pending, self.pending_tokens).claimed
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None, token_model: str | None = None) -> list[Remembered]:
        with self._lock, self._all_or_nothing():
            now = max(entry.memory.updated for entry in entries)
            self.expire(now, len(self._memories))
            if any(entry.passages is not None for entry in entries):
                self._check_model(model)
            known = self.identified([entry.identity for entry in entries], now)
            self._check_new([entry for entry in entries if entry.identity not in known])
            if any(entry.passages is not None for entry in entries):
                self._adopt_model(model)
            keeps = self._keeps_tokens(token_model, (entry.passages for entry in entries))
            remembered, new = [], []
            for entry in entries:
                duplicate = entry.identity in known
                remembered.append(Remembered(known.setdefault(entry.identity, entry.memory.id), duplicate))
                if not duplicate:
                    self._write(entry, keeps)
                    self._facts.write_entry(entry)
                    new.append(entry)
            for entry in new:
                self._updates.link(entry.updates)
            for entry in new:  # last, as in other stores
                self._log("remembered", entry.memory.id)
            return remembered

    def replace(self, changes: Sequence[Replacement], model: str | None, token_model: str | None = None) -> None:
        with self._lock, self._all_or_nothing():
            self.expire(max(each.entry.memory.updated for each in changes), len(self._memories))
            self._check_replaceable(changes, model)
            for entry, _ in changes:
                self._replace(entry, model, token_model)

    def _check_replaceable(self, changes: Sequence[Replacement], model: str | None) -> None:
        stored = dict(self._memories)
        more: dict[str, int] = {}
        try:
            for entry, previous in changes:
                old, memory = self._found([previous.id])[0], entry.memory
                if old.memory != previous:
                    raise Conflict(f"id: memory {previous.id} was changed by someone else meanwhile; read it again")
                if entry.passages is not None:
                    self._check_model(model)
                if entry.identity != old.identity:
                    self._check_free(memory)
                self._memories[memory.id] = replace(old, memory=memory, content_hash=entry.content_hash)
                size = memory_bytes(memory) - memory_bytes(previous) + replaced_bytes(replaced(previous, memory))
                more[memory.space] = more.get(memory.space, 0) + size
        finally:
            self._memories = stored
        self._check_usage({space: Usage(0, size) for space, size in more.items()})

    def _replace(self, entry: Entry, model: str | None, token_model: str | None) -> None:
        old = self._memories[entry.memory.id]
        if entry.passages is not None:
            self._adopt_model(model)
        self._write(entry, self._keeps_tokens(token_model, [entry.passages]))
        if old.content_hash != entry.content_hash:
            self._facts.rewrite_entry(entry)
        else:
            stored = self._memories[entry.memory.id]
            stored = replace(stored, further={**old.further, **stored.further})
            if entry.passages is None:
                stored = replace(stored, spans=old.spans, blobs=old.blobs, token_blobs=old.token_blobs)
            self._memories[entry.memory.id] = stored
        self._log("updated", entry.memory.id, replaced(old.memory, entry.memory))

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            for stored in self._found(ids):
                if stored.is_live:
                    self._memories[stored.memory.id] = replace(stored, memory=replace(stored.memory, deleted=at))
                    self._log("forgotten", stored.memory.id, at=at)

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock, self._all_or_nothing():
            self.expire(at, len(self._memories))
            for stored in self._found(ids):
                if not stored.is_live:
                    check_unexpired(stored.memory, at)
                    self._check_free(stored.memory)
                    memory = replace(stored.memory, deleted=None, updated=stored.memory.changed_at(at))
                    self._memories[memory.id] = replace(stored, memory=memory)
                    self._log("restored", memory.id, at=at)

    def expire(self, now: datetime, limit: int) -> bool:
        with self._lock:
            over = [each.memory for each in self._live() if each.memory.expires and each.memory.expires <= now]
            over.sort(key=lambda each: each.expires or now)  # the order of the dictionary where they are equal
            for memory in over[:limit]:
                stored = self._memories[memory.id]
                self._memories[memory.id] = replace(stored, memory=replace(memory, deleted=memory.expires))
                self._log("expired", memory.id, at=now)
            return len(over) <= limit

    def purge(self, ids: Sequence[str], at: datetime) -> str | None:
        with self._lock:
            for stored in self._found(ids):
                purging.purge(self, stored.memory.id, at)
                self._log("purged", stored.memory.id, at=at, space=stored.memory.space)
        return None

    # ---- reading

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        with self._lock:
            return {each: self._memories[each].memory for each in ids if each in self._memories}

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        with self._lock:
            live = [memory for memory in self.get(ids).values() if memory.deleted is None]
            facts, usage, similar = self.facts_of(ids), self._recall_log.usage(ids), self.similar(ids)
        return {
            memory.id: Signals(
                memory.created,
                memory.namespace,
                memory.kind,
                memory.happened,
                facts.get(memory.id, ()),
                usage.get(memory.id),
                similar.get(memory.id, ()),
                self._updates.successors(memory.id),
                memory.importance,
            )
            for memory in live
        }

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        with self._lock:
            every = [stored.memory for stored in self._memories.values()]
        if turns:
            every = [each for each in every if each.is_turn]
        found = {}
        for memory in every:
            if memory.id not in memory_ids or memory.session is None:
                continue
            others = [each for each in every if each.deleted is None and each.id != memory.id]
            session = [each for each in others if (each.space, each.session) == (memory.space, memory.session)]
            session.sort(key=_place)
            earlier = [each.id for each in session if _place(each) < _place(memory)]
            later = [each.id for each in session if _place(each) > _place(memory)]
            found[memory.id] = Neighbours(tuple(earlier[max(0, len(earlier) - before) :]), tuple(later[:after]))
        return {memory_id: near for memory_id, near in found.items() if near.before or near.after}

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        live = [stored for stored in self._live() if stored.memory.id in ids]
        return {stored.memory.id for stored in live if self._condition_matches(stored, condition)}

    def view(self, *, latest: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def sequence(self) -> tuple[int, int, int]:
        return len(self._events), self._revision, 0

    def next_expiry(self) -> datetime | None:
        return min((each.memory.expires for each in self._live() if each.memory.expires), default=None)

    def identified(self, identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
        found: dict[Identity, str] = {}
        live = [each for each in self._live() if each.memory.seen_at(now).deleted is None]
        for stored in reversed(live):  # the oldest is the last to be entered
            found[stored.memory.space, stored.content_hash] = stored.memory.id
        found |= {stored.identity: stored.memory.id for stored in live}
        return {each: found[each] for each in identities if each in found}

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        known = [(term, n) for term in question.terms if (n := frequencies.of(term))]
        idfs = [term_idf(term, frequencies.memories, n) for term, n in known]
        enough = significant_terms(question.terms)
        matches = []
        for stored in self._live():
            if any(occurs(term, stored.tokens) for term in enough) and self._matches(stored, where, question.must):
                counts = term_counts([term for term, _ in known], stored.tokens, recipe)
                score = bm25(counts, idfs, stored.tokens.length, frequencies.mean_length, recipe)
                matches.append(Match(stored.memory.id, score))
        return best_first(matches)[:limit]

    def by_time(
        self, where: Filter, page: TimePage, *, must: Condition | None = None, forgotten: bool = False
    ) -> list[Memory]:
        with self._lock:
            every = [stored for stored in self._memories.values() if (stored.memory.deleted is not None) == forgotten]
        listed = [stored.memory for stored in every if self._matches(stored, where, must)]
        listed.sort(key=lambda each: (each.created, each.id), reverse=not page.oldest_first)
        if page.after is not None:
            compare = operator.gt if page.oldest_first else operator.lt
            listed = [each for each in listed if compare((each.created, each.id), page.after)]
        return listed[: page.limit]

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        wanted = () if question.listing else significant_terms(question.terms)
        matched = [
            stored.memory
            for stored in self._live()
            if self._matches(stored, where, question.must)
            and (not wanted or any(occurs(term, stored.tokens) for term in wanted))
        ]
        return FacetCounts(
            total=len(matched),
            kinds=Counter(memory.kind for memory in matched),
            namespaces=Counter(memory.namespace for memory in matched),
            tags=Counter(tag for memory in matched for tag in memory.tags),
            sources=Counter(memory.source for memory in matched if memory.source is not None),
            created=Counter(_quarter(memory.created) for memory in matched),
        )

    def has_language(self, spaces: Sequence[str], languages: Sequence[str]) -> bool:
        return any(each.memory.space in spaces and each.memory.language in languages for each in self._live())

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str] = ()) -> Frequencies:
        corpus = self._corpus(spaces)
        having = {token: sum(occurs(Term(token), each) for each in corpus) for token in tokens}
        words = [word for each in corpus for word in tokenizer.vocabulary(each)]
        beginning = {prefix: sum(word.startswith(prefix) for word in words) for prefix in prefixes}
        present = {token: n for token, n in having.items() if n}
        return Frequencies(len(corpus), present, sum(each.length for each in corpus), beginning)

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        known = {each for tokens in self._corpus(spaces) for each in tokens.words}
        alike = [each for each in known if spelling.edits_between(word, each) is not None]
        return list(self.frequencies(alike, spaces).having.items())

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        from nacre.storage.vectors import cosines, unpack

        if model != self._token_model:
            return {}
        found = {}
        for stored in self._live():
            if stored.memory.id in ids and stored.token_blobs is not None:
                scores = cosines(unpack(list(stored.blobs)), vector).tolist()
                places = sorted(range(len(stored.token_blobs)), key=lambda place: -scores[place])[:passages_max]
                found[stored.memory.id] = tuple((place, stored.token_blobs[place]) for place in sorted(places))
        return found

    def pending_tokens(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        return self._having(lambda stored: stored.lacks_tokens, where, limit)

    def pending_tokens_count(self, where: Filter | None) -> int:
        return len(self.pending_tokens(where, len(self._memories)))

    def _having(self, lacks: Callable[[StoredMemory], bool], where: Filter | None, limit: int) -> list[tuple[str, str]]:
        with self._lock:
            waiting = [each for each in self._memories.values() if lacks(each)]
        found = [each.memory for each in waiting if where is None or self._matches(each, where, None)]
        return [(each.id, each.text) for each in found[:limit]]

    def history(self, memory_id: str) -> list[Event]:
        with self._lock:
            return [each.event for each in self._events if each.memory_id == memory_id]

    def stats(self) -> Stats:
        with self._lock:
            every = list(self._memories.values())
        live = [stored.memory for stored in every if stored.is_live]
        held = self._usage()
        return Stats(
            memories=len(live),
            forgotten=len(every) - len(live),
            passages=sum(len(stored.blobs) for stored in every),
            pending=self.pending_count(None),
            pending_tokens=self.pending_tokens_count(None),
            token_bytes=sum(len(blob) for stored in every for blob in stored.token_blobs or ()),
            events=len(self._events),
            spaces=_tally(memory.space for memory in live),
            kinds=_tally(memory.kind for memory in live),
            namespaces=_tally(memory.namespace for memory in live),
            model=self._model,
            token_model=self._token_model,
            further_models={each: self.pending_count(None, each) for each in self._further_models},
            stored_memories={space: each.memories for space, each in held.items()},
            stored_bytes={space: each.bytes for space, each in held.items()},
            quotas=named_quotas(self._quotas),
            schema_version=1,
            size_bytes=0,
        )

    # ---- facts and entities

    def add_facts(self, facts: Sequence[Fact], at: datetime) -> None:
        with self._lock:
            more: dict[str, Usage] = {}
            for each in facts:
                more[each.space] = Usage(0, more.get(each.space, Usage()).bytes + fact_bytes(each))
            self._facts.check_live([each.memory_id for each in facts])
            self._check_usage(more)
            self._facts.add(facts)
            for memory_id in dict.fromkeys(each.memory_id for each in facts):
                self._log("facts added", memory_id, at=at)

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            for memory_id in dict.fromkeys(each.memory_id for each in self._facts.drop(ids)):
                self._log("facts dropped", memory_id, at=at)

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        with self._lock:
            self._facts.update_confidence(facts)
            self._revision += 1

    def facts(self, query: FactQuery) -> list[Fact]:
        with self._lock:
            return self._facts.listed(query)

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        with self._lock:
            return self._facts.by_ids(ids)

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        with self._lock:
            return self._facts.by_memory(memory_ids)

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        with self._lock:
            return self._facts.conflicting(spaces, at)

    def relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        with self._lock:
            return self._facts.search_relations(terms, spaces, at, limit, frequencies)

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        with self._lock:
            return self._facts.relation_frequencies(words, spaces)

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        with self._lock:
            return self._facts.relations_of(names, spaces, at, limit)

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        with self._lock:
            self._facts.put_entity(space, entity, memory_ids)
            self._revision += 1

    def drop_entity(self, space: str, name: str) -> bool:
        with self._lock:
            dropped = self._facts.drop_entity(space, name)
            self._revision += dropped
            return dropped

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        with self._lock:
            return self._facts.entities(spaces, names, limit)

    def entity_counts(self, spaces: Sequence[str]) -> dict[str, int]:
        with self._lock:
            return self._facts.entity_counts(spaces, [each.memory.id for each in self._live()])

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        with self._lock:
            return self._facts.entities_of(memory_ids)

    # ---- near-duplicates

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._lock:
            return self._facts.similar(memory_ids)

    def link_updates(self, new: Sequence[Update]) -> None:
        with self._lock:
            self._revision += 1
            self._updates.link(new, later=True)

    def unlink_updates(self, pairs: Sequence[Update]) -> int:
        with self._lock:
            self._revision += 1
            return self._updates.unlink(pairs)

    def updates(self, memory_ids: Sequence[str]) -> list[Update]:
        with self._lock:
            return self._updates.of(memory_ids)

    def separate(self, memory_id: str) -> int:
        with self._lock:
            separated = self._facts.separate(memory_id)
            self._revision += 1
            return separated

    # ---- the recall log

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        with self._lock:
            self._recall_log.record(receipts)
            self._recall_log.prune(retention, now)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        with self._lock:
            marked = self._recall_log.mark(receipt_id, memory_ids, outcome, at, session, origin)
            self._revision += bool(marked)
            return marked

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
        with self._lock:
            return self._recall_log.after(unwritten).listed(which)

    def clear_receipts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        with self._lock:
            return self._recall_log.clear(spaces, session, before)

    def last_receipt(self) -> int:
        return self._recall_log.last()

    def delivered(
        self,
        sessions: Sequence[tuple[str, str]],
        limit: int,
        unwritten: Unwritten = NOTHING_UNWRITTEN,
        *,
        after: int = 0,
    ) -> dict[tuple[str, str], list[str]]:
        with self._lock:
            log = self._recall_log.after(unwritten)
            found = {each: log.delivered(*each, after, self._unchanged_since)[:limit] for each in sessions}
        return {each: delivered for each, delivered in found.items() if delivered}

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten = NOTHING_UNWRITTEN
    ) -> dict[str, bool]:
        with self._lock:
            found = self._recall_log.after(unwritten).delivered_within(spaces, session, period, self._unchanged_since)
        return dict(list(found.items())[:limit])

    # ---- lenses

    def put_lens(self, space: str, name: str, body: str) -> None:
        with self._lock:
            self._lenses[space, name] = body
            self._changes.note("lens", space, [name])
            self._revision += 1

    def drop_lens(self, space: str, name: str) -> bool:
        with self._lock:
            self._revision += 1
            dropped = self._lenses.pop((space, name), None) is not None
            if dropped:
                self._changes.note("lens", space, [name], gone=True)
            return dropped

    def lenses(self, space: str) -> dict[str, str]:
        with self._lock:
            return {name: body for (lens_space, name), body in sorted(self._lenses.items()) if lens_space == space}

    # ---- upkeep

    def check(self, *_: object, **__: object) -> list[Finding]:
        return []  # there is no file that could be damaged

    def backup(self, *_: object, **__: object) -> NoReturn:
        raise StoreUnavailable("store: these memories are in no file, so there is none to back up")

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        with self._lock:
            return iter(list(transfer.dump(self, request)))

    def load_mark(self) -> int:
        return len(self._memories)

    def load(
        self, records: Sequence[Record], mark: int, model: str | None = None, token_model: str | None = None
    ) -> LoadCounts:
        with self._lock:
            return transfer.load(self, records, mark, model, token_model)

    def rebuild(self) -> None:
        """Nothing is derived from the memories."""
        self._revision += 1

    def close(self) -> None:
        """Nothing is open."""

    # ---- inside

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """For what checks everything else before it writes: an error leaves memories and events as they were."""
        before = dict(self._memories), list(self._events)
        try:
            yield
        except NacreError:
            self._memories, self._events = before
            raise

    def _usage(self) -> dict[str, Usage]:
        with self._lock:
            memories = [stored.memory for stored in self._memories.values()]
            return usage_of(
                memories, self._facts.by_memory(list(self._memories)), [each.event for each in self._events]
            )

    def _check_usage(self, more: Mapping[str, Usage]) -> None:
        before = self._usage()
        held = {space: before.get(space, Usage()) for space in more}
        after = {space: Usage(*map(sum, zip(held[space], more[space], strict=True))) for space in more}
        check_usage(self._quotas, held, after)

    def _check_new(self, entries: Sequence[Entry]) -> None:
        """Whether what is new of these is within the quotas. Sessions are counted only if it is."""
        new: dict[Identity, Entry] = {}
        for entry in entries:
            new.setdefault(entry.identity, entry)
        more: dict[str, Usage] = {}
        for entry in new.values():
            before = more.get(entry.memory.space, Usage())
            size = memory_bytes(entry.memory) + sum(map(fact_bytes, entry.facts))
            more[entry.memory.space] = Usage(before.memories + 1, before.bytes + size)
        self._check_usage(more)
        self._session_writes.count(self._quotas, list(new.values()))

    def _write(self, entry: Entry, keeps_tokens: bool) -> None:
        spans = None if entry.passages is None else entry.passages.spans
        blobs = () if entry.passages is None else blobs_of(entry.passages)
        token_blobs = token_blobs_of(entry.passages) if entry.passages is not None and keeps_tokens else None
        self._memories[entry.memory.id] = StoredMemory(
            entry.memory,
            entry.content_hash,
            entry.tokens,
            spans,
            blobs,
            token_blobs,
            self._known_further(entry.further),
        )

    def _live(self) -> list[StoredMemory]:
        with self._lock:
            return [stored for stored in self._memories.values() if stored.is_live]

    def _corpus(self, spaces: Sequence[str]) -> list[Tokens]:
        return [stored.tokens for stored in self._live() if stored.memory.space in spaces]

    def _matches(self, stored: StoredMemory, where: Filter, must: Condition | None) -> bool:
        matches = stored.memory.space in where.spaces and filter_matches(where, self._with_facts(stored.memory))
        return matches and (must is None or self._condition_matches(stored, must))

    def _condition_matches(self, stored: StoredMemory, condition: Condition) -> bool:
        with self._lock:
            names = self._facts.linked_names(stored.memory.id)
        return condition_matches(condition, stored.tokens, self._with_facts(stored.memory), names)

    def _with_facts(self, memory: Memory) -> Memory:
        return replace(memory, facts=self.facts_of([memory.id]).get(memory.id, ()))

    def _stored(self, memory_id: str) -> StoredMemory | None:
        return self._memories.get(memory_id)

    def _space_of(self, memory_id: str) -> str | None:
        stored = self._stored(memory_id)
        return None if stored is None else stored.memory.space

    def _unchanged_since(self, memory_id: str, at: datetime) -> bool:
        stored = self._stored(memory_id)
        return stored is not None and stored.is_live and stored.memory.updated <= at

    def _found(self, ids: Sequence[str]) -> list[StoredMemory]:
        missing = tuple(each for each in dict.fromkeys(ids) if each not in self._memories)
        if missing:
            raise NotFound(missing)
        return [self._memories[each] for each in dict.fromkeys(ids)]

    def _check_free(self, memory: Memory) -> None:
        for stored in self._live():
            same = stored.memory.space == memory.space and stored.memory.id != memory.id
            if same and stored.memory.key == memory.key and (memory.key or stored.memory.text == memory.text):
                raise taken(memory, stored.memory.id)

    def _log(
        self,
        action: str,
        memory_id: str,
        before: Mapping[str, Json] | None = None,
        at: datetime | None = None,
        space: str = "",
    ) -> None:
        space = space or self._space_of(memory_id) or ""
        now = at or datetime.now(UTC)
        self._events.append(LoggedEvent(self._changes.next(), now, action, memory_id, before or {}, space))


def _place(memory: Memory) -> tuple[bool, int, datetime, str]:
    """The order of a session."""
    return memory.position is None, memory.position or 0, memory.created, memory.id


def _quarter(moment: datetime) -> datetime:
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
