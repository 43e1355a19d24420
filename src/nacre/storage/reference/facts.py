"""What memories say, in the reference store: lists that are gone through, groups that are settled at each look."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from nacre.analysis import near_duplicates
from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.errors import NotFound
from nacre.facts import supersession
from nacre.facts.confidence import is_current
from nacre.facts.statements import entities_named
from nacre.query.ast import Term, significant_terms
from nacre.ranking.bm25 import idf
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.memory import Entry, Json, Memory, Tokens


class _Entity:
    def __init__(self, number: int, space: str, name: str) -> None:
        self.number = number
        self.space = space
        self.name = name
        self.type: str | None = None
        self.kept = False  # made known for itself; others go with the last memory that is about them
        self.names: dict[str, str] = {}  # as written, by folded name
        self.memories: set[str] = set()  # that were given; those whose facts name it are looked up


class MemoryKnowledge(ABC):
    """Implements `nacre.interfaces.FactStore`."""

    _lock: threading.RLock

    def __init__(self) -> None:
        self._revision = 0
        self._facts: dict[str, Fact] = {}
        self._entities: list[_Entity] = []
        self._entities_ever = 0
        self._sketches: dict[str, frozenset[int]] = {}
        self._similar: set[frozenset[str]] = set()
        self._apart: set[frozenset[str]] = set()

    @abstractmethod
    def _memory(self, memory_id: str) -> Memory | None: ...

    @abstractmethod
    def _tokens(self, memory_id: str) -> Tokens: ...

    @abstractmethod
    def _blobs(self, memory_id: str) -> tuple[bytes, ...]: ...

    @abstractmethod
    def _log(
        self, action: str, memory_id: str, before: Mapping[str, Json] | None = None, at: datetime | None = None
    ) -> None: ...

    # ---- facts

    def add_facts(self, facts: Sequence[Fact], at: datetime) -> None:
        with self._lock:
            self._live([each.memory_id for each in facts])
            self._state(facts)
            for memory_id in dict.fromkeys(each.memory_id for each in facts):
                self._log("facts added", memory_id, at=at)

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        with self._lock:
            missing = tuple(each for each in ids if each not in self._facts)
            if missing:
                raise NotFound(missing, "see `nacre fact list`", what="fact")
            gone = [self._facts.pop(each) for each in dict.fromkeys(ids)]
            self._drop_unlinked()
            for memory_id in dict.fromkeys(each.memory_id for each in gone):
                self._log("facts dropped", memory_id, at=at)

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        with self._lock:
            for each in facts:
                if each.id in self._facts:
                    self._facts[each.id] = replace(
                        self._facts[each.id],
                        confidence=each.confidence,
                        reinforced=each.reinforced,
                        touched=each.touched,
                    )
            self._revision += 1

    def facts(self, query: FactQuery) -> list[Fact]:
        with self._lock:
            found = [fact for fact in self._settled() if self._asked(fact, query)]
        return sorted(found, key=lambda each: (each.valid_from, each.id), reverse=True)[: query.limit]

    def _asked(self, fact: Fact, query: FactQuery) -> bool:
        return (
            self._is_live(fact.memory_id)
            and fact.space in query.spaces
            and (query.history or query.as_of is None or is_current(fact, query.as_of))
            and (query.subject is None or fold(fact.subject) in self._names(fact.space, query.subject))
            and (query.object is None or fold(fact.object) in self._names(fact.space, query.object))
            and (query.predicate is None or predicate_words(fact.predicate) == predicate_words(query.predicate))
            and query.type in (None, fact.type)
            and query.memory_id in (None, fact.memory_id)
            and (fact.relation or not query.relations)
        )

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        with self._lock:
            return [fact for fact in self._settled() if fact.id in ids]

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        found: defaultdict[str, list[Fact]] = defaultdict(list)
        with self._lock:
            for fact in self._settled():
                if fact.memory_id in memory_ids:
                    found[fact.memory_id].append(fact)
        return {memory_id: tuple(facts) for memory_id, facts in found.items()}

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        with self._lock:
            groups = [each for each in self._groups() if each[0].space in spaces]
        ordered = [sorted(each, key=lambda fact: (fact.valid_from, fact.id)) for each in groups]
        return [found for facts in ordered if (found := supersession.disagreeing(facts, at))]

    def _settled(self) -> list[Fact]:
        """All facts in the order they were written; those of forgotten memories as they were last."""
        for fact in chain.from_iterable(self._groups()):
            self._facts[fact.id] = fact
        return list(self._facts.values())

    def _groups(self) -> list[list[Fact]]:
        """The live facts of each subject and predicate, settled."""
        groups: defaultdict[tuple[str, frozenset[str], str], list[Fact]] = defaultdict(list)
        for fact in self._facts.values():
            if self._is_live(fact.memory_id):
                names = frozenset(self._names(fact.space, fact.subject))
                groups[fact.space, names, predicate_words(fact.predicate)].append(fact)
        return [supersession.settled(facts) for facts in groups.values()]

    def _state(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._facts[fact.id] = fact
            for name in entities_named(fact):
                self._put(fact.space, NewEntity(name=name))

    # ---- relations

    def relations(
        self, terms: Sequence[Term], spaces: Sequence[str], at: datetime, limit: int
    ) -> list[tuple[Fact, float]]:
        with self._lock:
            every = [each for each in self._settled() if each.relation and each.space in spaces]
            live = [each for each in every if self._is_live(each.memory_id)]
        known = {each.id: relation_words(each.subject, each.predicate, each.object) for each in live}
        having = Counter(word for each in known.values() for word in each)
        wanted = {term.text: term for term in significant_terms(terms) if not term.prefix and term.text in having}
        weights = {word: idf(len(every), having[word], common=term.common) for word, term in wanted.items()}
        rarest = sorted(weights, key=lambda word: (having[word], word))
        found = [
            (each, sum(weights[word] for word in rarest if word in known[each.id]))
            for each in reversed(live)
            if is_current(each, at) and not known[each.id].isdisjoint(weights)
        ]
        return sorted(found, key=lambda each: -each[1])[:limit]

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        keys = {fold(name) for name in names}
        with self._lock:
            live = [each for each in self._settled() if each.relation and self._is_live(each.memory_id)]
        found = [
            each
            for each in live
            if each.space in spaces
            and is_current(each, at)
            and not keys.isdisjoint((fold(each.subject), fold(each.object)))
        ]
        return sorted(found, key=lambda each: (each.valid_from, each.id), reverse=True)[:limit]

    # ---- entities

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        with self._lock:
            for memory in self._live(memory_ids):
                if memory.space != space:
                    raise NotFound((memory.id,))
            known = self._put(space, entity)
            known.memories.update(memory_ids)
            known.kept = True
            self._revision += 1

    def drop_entity(self, space: str, name: str) -> bool:
        with self._lock:
            kept = [each for each in self._entities if each.space != space or fold(name) not in each.names]
            gone = len(kept) < len(self._entities)
            self._entities = kept
            self._revision += gone
            return gone

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        with self._lock:
            found = [
                each
                for each in self._entities
                if each.space in spaces and (names is None or any(fold(name) in each.names for name in names))
            ]
        found.sort(key=lambda each: (each.space, each.name, each.number))
        return [_shown(each) for each in found[:limit]]

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        with self._lock:
            about = {each: sorted(self._about(each), key=lambda one: (one.name, one.number)) for each in memory_ids}
        return {memory_id: tuple(map(_shown, entities)) for memory_id, entities in about.items() if entities}

    def _put(self, space: str, new: NewEntity) -> _Entity:
        keys = [fold(name) for name in (new.name, *new.aliases)]
        found = [each for each in self._entities if each.space == space and not each.names.keys().isdisjoint(keys)]
        named = [each for each in found if keys[0] in each.names]
        if found:
            entity = (named or sorted(found, key=lambda each: each.number))[0]
            if not named:
                entity.name = new.name
        else:
            self._entities_ever += 1
            entity = _Entity(self._entities_ever, space, new.name)
            self._entities.append(entity)
        if new.type is not None:
            entity.type = new.type
        for other in found:
            if other is not entity:
                entity.names |= other.names
                entity.memories |= other.memories
                entity.kept |= other.kept
                self._entities.remove(other)
        for name in (new.name, *new.aliases):
            entity.names.setdefault(fold(name), name)
        return entity

    def _names(self, space: str, name: str) -> set[str]:
        key = fold(name)
        known = [each.names for each in self._entities if each.space == space and key in each.names]
        return {key}.union(*known)

    def _linked_names(self, memory_id: str) -> set[str]:
        return {key for each in self._about(memory_id) for key in each.names}

    def _about(self, memory_id: str) -> list[_Entity]:
        """The entities that a memory is about, by a link or by a fact."""
        named = {place for fact in self._facts.values() if fact.memory_id == memory_id for place in _places(fact)}
        return [each for each in self._entities if memory_id in each.memories or self._is_named(each, named)]

    @staticmethod
    def _is_named(entity: _Entity, named: set[tuple[str, str]]) -> bool:
        return any((entity.space, key) in named for key in entity.names)

    # ---- near-duplicates

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._lock:
            pairs = self._similar - self._apart
            found = {
                each: tuple(
                    sorted(other for pair in pairs if each in pair for other in pair - {each} if self._is_live(other))
                )
                for each in memory_ids
            }
        return {memory_id: others for memory_id, others in found.items() if others}

    def separate(self, memory_id: str) -> int:
        with self._lock:
            self._live([memory_id])
            new = {pair for pair in self._similar if memory_id in pair} - self._apart
            self._apart |= new
            self._revision += 1
            return len(new)

    def _compare(self, entry: Entry) -> None:
        memory, sketch = entry.memory, frozenset(entry.sketch)
        for other_id, other_sketch in self._sketches.items():
            other = self._memory(other_id)
            if other is None or other.deleted is not None or other.space != memory.space or other_id == memory.id:
                continue
            enough = min(near_duplicates.SHARED_MIN, len(sketch)) or 1
            if len(sketch & other_sketch) >= enough and near_duplicates.same(
                memory.text, other.text, entry.tokens, self._tokens(other_id), self._cosine(memory.id, other_id)
            ):
                self._similar.add(frozenset((memory.id, other_id)))
        self._sketches[memory.id] = sketch

    def _cosine(self, one: str, other: str) -> float | None:
        blobs = self._blobs(one), self._blobs(other)
        if any(len(each) != 1 for each in blobs):
            return None
        from nacre.storage.vectors import cosines, unpack

        return float(cosines(unpack(list(blobs[0])), unpack(list(blobs[1]))[0])[0])

    # ---- with memories

    def _learn(self, entry: Entry) -> None:
        self._state(entry.facts)
        for each in entry.entities:
            self._put(entry.memory.space, each).memories.add(entry.memory.id)
        self._compare(entry)

    def _relearn(self, entry: Entry) -> None:
        changed = entry.memory.id
        self._facts = {
            each: fact for each, fact in self._facts.items() if fact.memory_id != changed or fact.origin != "extracted"
        }
        self._similar = {pair for pair in self._similar if changed not in pair}
        self._apart = {pair for pair in self._apart if changed not in pair}
        self._learn(entry)
        self._drop_unlinked()

    def _unlearn(self, memory_id: str) -> None:
        self._facts = {each: fact for each, fact in self._facts.items() if fact.memory_id != memory_id}
        for entity in self._entities:
            entity.memories.discard(memory_id)
        self._sketches.pop(memory_id, None)
        self._similar = {pair for pair in self._similar if memory_id not in pair}
        self._apart = {pair for pair in self._apart if memory_id not in pair}
        self._drop_unlinked()

    def _drop_unlinked(self) -> None:
        named = {place for fact in self._facts.values() for place in _places(fact)}
        self._entities = [each for each in self._entities if each.kept or each.memories or self._is_named(each, named)]

    def _is_live(self, memory_id: str) -> bool:
        memory = self._memory(memory_id)
        return memory is not None and memory.deleted is None

    def _live(self, memory_ids: Sequence[str]) -> list[Memory]:
        missing = tuple(dict.fromkeys(each for each in memory_ids if not self._is_live(each)))
        if missing:
            raise NotFound(missing)
        return [memory for each in memory_ids if (memory := self._memory(each)) is not None]


def _shown(entity: _Entity) -> Entity:
    return Entity(
        name=entity.name,
        space=entity.space,
        type=entity.type,
        aliases=tuple(name for key, name in sorted(entity.names.items()) if key != fold(entity.name)),
    )


def _places(fact: Fact) -> list[tuple[str, str]]:
    """The names by which a fact is about entities: its subject, and the object of a relation."""
    return [(fact.space, fold(name)) for name in (fact.subject, *([fact.object] if fact.relation else []))]
