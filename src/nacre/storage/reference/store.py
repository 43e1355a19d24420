"""The plain reference store: everything in dictionaries, every search a full scan.

It is meant to be obviously right, not fast; the real stores are compared with it in tests.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nacre.analysis import tokenizer
from nacre.errors import Conflict, EmbedderMismatch, NotFound
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
from nacre.ranking.bm25 import bm25, idf
from nacre.ranking.scoring import best_first
from nacre.storage.changes import replaced
from nacre.storage.reference.facts import MemoryKnowledge
from nacre.storage.reference.log_store import MemoryLog
from nacre.types.memory import Entry, Event, Json, Memory, Passages, Remembered, Span, Tokens
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.views import Neighbours

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


@dataclass(frozen=True, slots=True)
class _Kept:
    memory: Memory
    content_hash: bytes
    tokens: Tokens
    spans: tuple[Span, ...] | None
    blobs: tuple[bytes, ...]


class MemoryStore(MemoryKnowledge, MemoryLog):
    """Implements `nacre.interfaces.Store`. One lock makes every call a transaction."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._events: list[Event] = []
        self._model: str | None = None
        self._lock = threading.RLock()
        MemoryKnowledge.__init__(self)
        MemoryLog.__init__(self)

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None) -> list[Remembered]:
        with self._lock:
            if any(entry.passages is not None for entry in entries):
                self._adopt(model)
            remembered = []
            for entry in entries:
                twin = self._twin(entry.memory.space, entry.content_hash)
                if twin is None:
                    self._keep(entry)
                    self._learn(entry)
                    self._log("remembered", entry.memory.id)
                    remembered.append(Remembered(entry.memory.id, duplicate=False))
                else:
                    remembered.append(Remembered(twin, duplicate=True))
            return remembered

    def replace(self, entry: Entry, previous: Memory, model: str | None) -> None:
        with self._lock:
            old = self._found([entry.memory.id])[0]
            if old.memory != previous:
                raise Conflict(f"id: memory {previous.id} was changed by someone else meanwhile; read it again")
            if entry.passages is not None:
                self._adopt(model)
            same_text = old.memory.text == entry.memory.text
            if not same_text:
                twin = self._twin(entry.memory.space, entry.content_hash)
                if twin is not None:
                    raise Conflict(f"text: memory {twin} has this text already; forget one of them")
            self._keep(entry)
            if same_text and entry.passages is None:
                kept = self._kept[previous.id]
                self._kept[previous.id] = replace(kept, spans=old.spans, blobs=old.blobs)
            if not same_text:
                self._relearn(entry)
            self._log("updated", previous.id, replaced(old.memory, entry.memory))

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            for kept in self._found(ids):
                if kept.memory.deleted is None:
                    self._kept[kept.memory.id] = replace(kept, memory=replace(kept.memory, deleted=at))
                    self._log("forgotten", kept.memory.id, at=at)

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            before = dict(self._kept)
            events = len(self._events)
            for kept in self._found(ids):
                if kept.memory.deleted is None:
                    continue
                twin = self._twin(kept.memory.space, kept.content_hash)
                if twin is not None:
                    self._kept = before
                    del self._events[events:]
                    raise Conflict(f"id: memory {twin} has the same text as {kept.memory.id}; forget it first")
                memory = replace(kept.memory, deleted=None, updated=at)
                self._kept[memory.id] = replace(kept, memory=memory)
                self._log("restored", memory.id, at=at)

    def purge(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            for kept in self._found(ids):
                purged = kept.memory.id
                del self._kept[purged]
                self._unlearn(purged)
                self._receipts.purge([purged])
                self._events = [
                    replace(event, before={}) if event.memory_id == purged else event for event in self._events
                ]
                self._log("purged", purged, at=at)

    def embed(self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str) -> int:
        with self._lock:
            self._adopt(model)
            done = 0
            for memory_id, each in passages.items():
                kept = self._kept.get(memory_id)
                if kept is not None and _pending(kept) and kept.memory.text == texts[memory_id]:
                    self._kept[memory_id] = replace(kept, spans=each.spans, blobs=_blobs(each))
                    self._log("embedded", memory_id)
                    done += 1
            return done

    def switch_model(self, model: str) -> None:
        with self._lock:
            if model != self._model:
                self._model = model
                self._kept = {each: replace(kept, spans=None, blobs=()) for each, kept in self._kept.items()}
                self._log("model switched", "")

    # ---- reading

    def model(self) -> str | None:
        return self._model

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        with self._lock:
            return {each: self._kept[each].memory for each in ids if each in self._kept}

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        with self._lock:
            live = [memory for memory in self.get(ids).values() if memory.deleted is None]
            facts, used, alike = self.facts_of(ids), self._receipts.usage(ids), self.similar(ids)
        return {
            memory.id: Signals(
                memory.happened or memory.created,
                memory.namespace,
                facts.get(memory.id, ()),
                used.get(memory.id),
                alike.get(memory.id, ()),
            )
            for memory in live
        }

    def neighbours(self, memory_ids: Sequence[str], before: int, after: int) -> dict[str, Neighbours]:
        with self._lock:
            every = [kept.memory for kept in self._kept.values()]
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
        with self._lock:
            live = [self._kept[each] for each in ids if each in self._kept and self._kept[each].memory.deleted is None]
            return {kept.memory.id for kept in live if self._meets(kept, condition)}

    def view(self) -> AbstractContextManager[None]:
        return nullcontext()

    def sequence(self) -> tuple[int, int]:
        return len(self._events), self._revision

    def duplicates(self, keys: Sequence[tuple[str, bytes]]) -> dict[tuple[str, bytes], str]:
        with self._lock:
            found = {key: self._twin(*key) for key in keys}
        return {key: memory_id for key, memory_id in found.items() if memory_id is not None}

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        corpus = self._corpus(where.spaces)
        if not corpus:
            return []
        with self._lock:
            live = [kept for kept in self._kept.values() if kept.memory.deleted is None]
        having = frequencies.having
        counted = (
            (term, _beginning_so(term, corpus) if term.prefix else having.get(term.text, 0)) for term in question.terms
        )
        known = [(term, min(n, len(corpus))) for term, n in counted if n]
        idfs = [idf(len(corpus), n, common=term.common) for term, n in known]
        enough = significant_terms(question.terms)
        mean_length = sum(tokens.length for tokens in corpus) / len(corpus)
        matches = []
        for kept in live:
            if any(occurs(term, kept.tokens) for term in enough) and self._passes(kept, question.must, where):
                counts = term_counts([term for term, _ in known], kept.tokens, recipe)
                score = bm25(counts, idfs, kept.tokens.length, mean_length, recipe)
                matches.append(Match(kept.memory.id, score))
        return best_first(matches)[:limit]

    def semantic(
        self, vector: FloatVector, model: str, question: ParsedQuery, where: Filter, limit: int
    ) -> list[Match]:
        from nacre.storage.vectors import cosines, unpack

        if self._model not in (None, model):
            raise _mismatch(self._model, model)

        matches = []
        with self._lock:
            live = [kept for kept in self._kept.values() if kept.memory.deleted is None and kept.spans]
        for kept in live:
            if kept.spans and self._passes(kept, question.must, where):
                scores = cosines(unpack(list(kept.blobs)), vector)
                best = int(scores.argmax())
                matches.append(Match(kept.memory.id, float(scores[best]), kept.spans[best]))
        return best_first(matches)[:limit]

    def by_time(
        self,
        where: Filter,
        limit: int,
        *,
        must: Condition | None = None,
        oldest_first: bool = False,
        forgotten: bool = False,
        after: tuple[datetime, str] | None = None,
    ) -> list[Memory]:
        with self._lock:
            every = [kept for kept in self._kept.values() if (kept.memory.deleted is not None) == forgotten]
        listed = [kept.memory for kept in every if self._passes(kept, must, where)]
        listed.sort(key=lambda each: (each.created, each.id), reverse=not oldest_first)
        if after is not None:
            listed = [
                each
                for each in listed
                if ((each.created, each.id) > after if oldest_first else (each.created, each.id) < after)
            ]
        return listed[:limit]

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        with self._lock:
            live = [kept for kept in self._kept.values() if kept.memory.deleted is None]
        wanted = () if question.listing else significant_terms(question.terms)
        matched = [
            kept.memory
            for kept in live
            if self._passes(kept, question.must, where)
            and (not wanted or any(occurs(term, kept.tokens) for term in wanted))
        ]
        return FacetCounts(
            total=len(matched),
            kinds=Counter(memory.kind for memory in matched),
            namespaces=Counter(memory.namespace for memory in matched),
            tags=Counter(tag for memory in matched for tag in memory.tags),
            sources=Counter(memory.source for memory in matched if memory.source is not None),
            created=Counter(_quarter(memory.created) for memory in matched),
        )

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        corpus = self._corpus(spaces)
        having = {token: sum(occurs(Term(token), each) for each in corpus) for token in tokens}
        return Frequencies(len(corpus), {token: memories for token, memories in having.items() if memories})

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        known = {each for tokens in self._corpus(spaces) for each in tokens.words}
        alike = [each for each in known if spelling.alike(word, each) is not None]
        return list(self.frequencies(alike, spaces).having.items())

    def vectors(self, memory_id: str) -> FloatMatrix | None:
        from nacre.storage.vectors import unpack

        kept = self._kept.get(memory_id)
        return unpack(list(kept.blobs)) if kept is not None and kept.blobs else None

    def pending(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        with self._lock:
            waiting = [kept for kept in self._kept.values() if _pending(kept)]
        passing = [kept.memory for kept in waiting if where is None or self._passes(kept, None, where)]
        return [(each.id, each.text) for each in passing[:limit]]

    def pending_count(self, where: Filter | None) -> int:
        return len(self.pending(where, len(self._kept)))

    def history(self, memory_id: str) -> list[Event]:
        with self._lock:
            return [event for event in self._events if event.memory_id == memory_id]

    def stats(self) -> Stats:
        with self._lock:
            every = list(self._kept.values())
        live = [kept.memory for kept in every if kept.memory.deleted is None]
        return Stats(
            memories=len(live),
            forgotten=len(every) - len(live),
            passages=sum(len(kept.blobs) for kept in every),
            pending=self.pending_count(None),
            events=len(self._events),
            spaces=_tally(memory.space for memory in live),
            kinds=_tally(memory.kind for memory in live),
            namespaces=_tally(memory.namespace for memory in live),
            model=self._model,
            schema_version=1,
            size_bytes=0,
        )

    # ---- upkeep

    def rebuild(self) -> None:
        """There is nothing but the rows."""
        self._revision += 1

    def close(self) -> None:
        """Nothing is open."""

    # ---- inside

    def _keep(self, entry: Entry) -> None:
        spans = None if entry.passages is None else entry.passages.spans
        blobs = () if entry.passages is None else _blobs(entry.passages)
        self._kept[entry.memory.id] = _Kept(entry.memory, entry.content_hash, entry.tokens, spans, blobs)

    def _corpus(self, spaces: Sequence[str]) -> list[Tokens]:
        with self._lock:
            every = list(self._kept.values())
        return [kept.tokens for kept in every if kept.memory.deleted is None and kept.memory.space in spaces]

    def _passes(self, kept: _Kept, must: Condition | None, where: Filter) -> bool:
        allowed = kept.memory.space in where.spaces and filter_matches(where, self._with_facts(kept.memory))
        return allowed and (must is None or self._meets(kept, must))

    def _meets(self, kept: _Kept, condition: Condition) -> bool:
        return condition_matches(
            condition, kept.tokens, self._with_facts(kept.memory), self._linked_names(kept.memory.id)
        )

    def _with_facts(self, memory: Memory) -> Memory:
        return replace(memory, facts=self.facts_of([memory.id]).get(memory.id, ()))

    def _memory(self, memory_id: str) -> Memory | None:
        kept = self._kept.get(memory_id)
        return None if kept is None else kept.memory

    def _tokens(self, memory_id: str) -> Tokens:
        return self._kept[memory_id].tokens

    def _blobs(self, memory_id: str) -> tuple[bytes, ...]:
        return self._kept[memory_id].blobs

    def _adopt(self, model: str | None) -> None:
        if self._model is None:
            self._model = model
        elif self._model != model:
            raise _mismatch(self._model, model)

    def _found(self, ids: Sequence[str]) -> list[_Kept]:
        missing = tuple(each for each in dict.fromkeys(ids) if each not in self._kept)
        if missing:
            raise NotFound(missing)
        return [self._kept[each] for each in dict.fromkeys(ids)]

    def _twin(self, space: str, content_hash: bytes) -> str | None:
        for kept in self._kept.values():
            if kept.memory.deleted is None and (kept.memory.space, kept.content_hash) == (space, content_hash):
                return kept.memory.id
        return None

    def _log(
        self, action: str, memory_id: str, before: Mapping[str, Json] | None = None, at: datetime | None = None
    ) -> None:
        self._events.append(Event(len(self._events) + 1, at or datetime.now(UTC), action, memory_id, before or {}))


def _mismatch(stored: str | None, given: str | None) -> EmbedderMismatch:
    return EmbedderMismatch(f"embedder: the vectors come from {stored}, not from {given}; run `nacre reembed`")


def _beginning_so(prefix: Term, corpus: Sequence[Tokens]) -> int:
    """In how many texts the words occur that begin so: each counts its own texts."""
    return sum(token.startswith(prefix.text) for tokens in corpus for token in tokenizer.vocabulary(tokens))


def _place(memory: Memory) -> tuple[bool, int, datetime, str]:
    """By which a session is ordered."""
    return memory.position is None, memory.position or 0, memory.created, memory.id


def _quarter(moment: datetime) -> datetime:
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def _pending(kept: _Kept) -> bool:
    return kept.memory.deleted is None and kept.spans is None


def _blobs(passages: Passages) -> tuple[bytes, ...]:
    from nacre.storage.vectors import pack

    return tuple(pack(vector) for vector in passages.vectors)


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
