"""Facts, entities and near-duplicates of the reference store, in lists and dictionaries.

Every read goes through all facts, and computes again which of them are superseded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from itertools import chain

from nacre.analysis import near_duplicates
from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.errors import NotFound
from nacre.facts import supersession
from nacre.facts.confidence import effective_confidence, is_current
from nacre.facts.statements import named_entities
from nacre.query.ast import Term, significant_terms
from nacre.ranking.bm25 import idf
from nacre.storage.reference.change_log import ChangeLog
from nacre.storage.reference.stored_memory import StoredMemory
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.memory import Entry, Memory
from nacre.types.stats import Frequencies


class _Entity:
    def __init__(self, number: int, space: str, name: str) -> None:
        self.number = number
        self.space = space
        self.name = name
        self.type: str | None = None
        self.kept = False  # added by itself; others are dropped with the last memory that is about them
        self.names: dict[str, str] = {}  # as written, by folded name
        self.memories: set[str] = set()  # linked by callers; memories whose facts name it are looked up


class Facts:
    """The facts, entities and near-duplicates of memories. Its owner holds a lock around every call.

    `stored` returns the memory of an id, live or forgotten.
    """

    def __init__(self, stored: Callable[[str], StoredMemory | None], changes: ChangeLog) -> None:
        self._stored = stored
        self._changes = changes
        self._facts: dict[str, Fact] = {}
        self._entities: list[_Entity] = []
        self._entities_ever = 0
        self._sketches: dict[str, frozenset[int]] = {}
        self._similar: set[frozenset[str]] = set()
        self._apart: set[frozenset[str]] = set()

    # ---- facts

    def add(self, facts: Sequence[Fact]) -> None:
        self.check_live([each.memory_id for each in facts])
        self._insert(facts)

    def drop(self, ids: Sequence[str]) -> list[Fact]:
        """Returns the dropped facts."""
        missing = tuple(each for each in ids if each not in self._facts)
        if missing:
            raise NotFound(missing, "see `nacre fact list`", what="fact")
        dropped = [self._facts.pop(each) for each in dict.fromkeys(ids)]
        for each in dropped:
            self._changes.note("fact", each.space, [each.id], gone=True)
        self._drop_unlinked()
        return dropped

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        for each in facts:
            if each.id in self._facts:
                self._facts[each.id] = replace(
                    self._facts[each.id],
                    confidence=each.confidence,
                    reinforced=each.reinforced,
                    touched=each.touched,
                )
                self._changes.note("fact", each.space, [each.id])

    def listed(self, query: FactQuery) -> list[Fact]:
        found = [fact for fact in self._superseded() if self._matches(fact, query)]
        return sorted(found, key=lambda each: (each.valid_from, each.id), reverse=True)[: query.limit]

    def _matches(self, fact: Fact, query: FactQuery) -> bool:
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
            and (query.as_of is None or effective_confidence(fact, query.as_of) >= query.min_confidence)
        )

    def by_ids(self, ids: Sequence[str]) -> list[Fact]:
        return [fact for fact in self._superseded() if fact.id in ids]

    def by_memory(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        if not any(fact.memory_id in memory_ids for fact in self._facts.values()):
            return {}  # as for most memories
        found: defaultdict[str, list[Fact]] = defaultdict(list)
        for fact in self._superseded():
            if fact.memory_id in memory_ids:
                found[fact.memory_id].append(fact)
        return {memory_id: tuple(facts) for memory_id, facts in found.items()}

    def conflicting(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        groups = [each for each in self._groups() if each[0].space in spaces]
        ordered = [sorted(each, key=lambda fact: (fact.valid_from, fact.id)) for each in groups]
        return [found for facts in ordered if (found := supersession.conflicting(facts, at))]

    def _superseded(self) -> list[Fact]:
        """All facts in the order they were written, with their ends and successors computed again.

        Facts of forgotten memories stay as they were when the memory was forgotten.
        """
        for fact in chain.from_iterable(self._groups()):
            self._facts[fact.id] = fact
        return list(self._facts.values())

    def _groups(self) -> list[list[Fact]]:
        """The facts of live memories by subject and predicate, with their ends and successors."""
        groups: defaultdict[tuple[str, frozenset[str], str], list[Fact]] = defaultdict(list)
        for fact in self._facts.values():
            if self._is_live(fact.memory_id):
                names = frozenset(self._names(fact.space, fact.subject))
                groups[fact.space, names, predicate_words(fact.predicate)].append(fact)
        return [supersession.apply_supersession(facts) for facts in groups.values()]

    def _insert(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._facts[fact.id] = fact
            for name in named_entities(fact):
                self._put(fact.space, NewEntity(name=name))

    # ---- relations

    def search_relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        live = self._live_relations(spaces)
        known = {each.id: relation_words(each.subject, each.predicate, each.object) for each in live}
        wanted = {term.text: term for term in significant_terms(terms) if not term.prefix}
        relations, having, *_ = frequencies or self.relation_frequencies(list(wanted), spaces)
        weights = {
            word: idf(relations, having[word], common=term.common) for word, term in wanted.items() if word in having
        }
        rarest = sorted(weights, key=lambda word: (having[word], word))
        found = [
            (each, sum(weights[word] for word in rarest if word in known[each.id]))
            for each in reversed(live)
            if is_current(each, at) and not known[each.id].isdisjoint(weights)
        ]
        return sorted(found, key=lambda each: -each[1])[:limit]

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        every = [each for each in self._facts.values() if each.relation and each.space in spaces]
        live = [relation_words(each.subject, each.predicate, each.object) for each in self._live_relations(spaces)]
        having = {word: sum(word in each for each in live) for word in words}
        return Frequencies(len(every), {word: n for word, n in having.items() if n})

    def _live_relations(self, spaces: Sequence[str]) -> list[Fact]:
        every = [each for each in self._superseded() if each.relation and each.space in spaces]
        return [each for each in every if self._is_live(each.memory_id)]

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        keys = {fold(name) for name in names}
        live = [each for each in self._superseded() if each.relation and self._is_live(each.memory_id)]
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
        for memory in self.check_live(memory_ids):
            if memory.space != space:
                raise NotFound((memory.id,))
        stored = self._put(space, entity)
        stored.memories.update(memory_ids)
        stored.kept = True
        self._changes.note("entity", space, [fold(entity.name)])

    def drop_entity(self, space: str, name: str) -> bool:
        dropped = self.having(space, [fold(name)])
        for each in dropped:
            self._changes.note("entity", space, sorted(each.names), gone=True)
            self._entities.remove(each)
        return bool(dropped)

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        found = [
            each
            for each in self._entities
            if each.space in spaces and (names is None or any(fold(name) in each.names for name in names))
        ]
        found.sort(key=lambda each: (each.space, each.name, each.number))
        return [_entity(each) for each in found[:limit]]

    def entity_counts(self, spaces: Sequence[str], live: Iterable[str]) -> dict[str, int]:
        found = [each for each in self._entities if each.space in spaces]
        counts = Counter({each.name: 0 for each in found})
        for memory_id in live:
            counts.update(each.name for each in self._about(memory_id) if each in found)
        return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        about = {each: sorted(self._about(each), key=lambda one: (one.name, one.number)) for each in memory_ids}
        return {memory_id: tuple(map(_entity, entities)) for memory_id, entities in about.items() if entities}

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
        self._changes.revive("entity", space, [fold(name) for name in (new.name, *new.aliases)])
        return entity

    def having(self, space: str, keys: Iterable[str]) -> list[_Entity]:
        """Entities that have one of these folded names, the oldest first."""
        wanted = set(keys)
        return [each for each in self._entities if each.space == space and not wanted.isdisjoint(each.names)]

    def union(self, space: str, names: Sequence[str]) -> _Entity:
        """One entity that has these names, the first of which is its name, made of all that have one of them."""
        found = self.having(space, map(fold, names))
        if not found:
            self._entities_ever += 1
            found = [_Entity(self._entities_ever, space, names[0])]
            self._entities += found
        entity, *others = found
        for other in others:
            entity.names |= other.names
            entity.memories |= other.memories
            entity.kept |= other.kept
            self._entities.remove(other)
        for name in names:
            entity.names[fold(name)] = max(name, entity.names.get(fold(name), name))
        return entity

    def is_named(self, entity_keys: Iterable[str], space: str) -> bool:
        """Whether a fact has one of these folded names as its subject or, in a relation, as its object."""
        places = {place for fact in self._facts.values() for place in _places(fact)}
        return any((space, key) in places for key in entity_keys)

    def _names(self, space: str, name: str) -> set[str]:
        """All folded names of the entity that has this name."""
        key = fold(name)
        names = [each.names for each in self._entities if each.space == space and key in each.names]
        return {key}.union(*names)

    def linked_names(self, memory_id: str) -> set[str]:
        """The folded names of all entities that a memory is about."""
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
        pairs = self._similar - self._apart
        found = {
            each: tuple(
                sorted(other for pair in pairs if each in pair for other in pair - {each} if self._is_live(other))
            )
            for each in memory_ids
        }
        return {memory_id: others for memory_id, others in found.items() if others}

    def separate(self, memory_id: str) -> int:
        (memory,) = self.check_live([memory_id])
        new = {pair for pair in self._similar if memory_id in pair} - self._apart
        if new:
            self._changes.note("apart", memory.space, [memory_id])
        self._apart |= new
        return len(new)

    def link_similar(self, entry: Entry, among: Set[str] | None = None) -> None:
        """Compare a text with all others, or with those of `among`."""
        memory, sketch = entry.memory, frozenset(entry.sketch)
        stored = self._stored(memory.id)
        assert stored is not None
        for other_id, other_sketch in self._sketches.items():
            other = self._stored(other_id)
            if other is None or not other.is_live or other.memory.space != memory.space or other_id == memory.id:
                continue
            if among is not None and other_id not in among:
                continue
            enough = min(near_duplicates.SHARED_MIN, len(sketch)) or 1
            if len(sketch & other_sketch) >= enough and near_duplicates.are_near_duplicates(
                memory.text, other.memory.text, entry.tokens, other.tokens, _cosine(stored, other)
            ):
                self._similar.add(frozenset((memory.id, other_id)))
        self._sketches[memory.id] = sketch

    # ---- together with memories

    def write_entry(self, entry: Entry) -> None:
        """Write the facts, entities and near-duplicates of a stored memory."""
        self._insert(entry.facts)
        for each in entry.entities:
            self._put(entry.memory.space, each).memories.add(entry.memory.id)
        self.link_similar(entry)

    def rewrite_entry(self, entry: Entry) -> None:
        """Replace what was extracted from the old text of a memory."""
        self.forget_text(entry.memory.id)
        self.write_entry(entry)
        self._drop_unlinked()

    def forget_text(self, changed: str) -> None:
        """Delete what was extracted from the text of a memory."""
        self._facts = {
            each: fact for each, fact in self._facts.items() if fact.memory_id != changed or fact.origin != "extracted"
        }
        self._similar = {pair for pair in self._similar if changed not in pair}
        self._apart = {pair for pair in self._apart if changed not in pair}

    def purge(self, memory_id: str) -> None:
        """Delete everything about a memory."""
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
        stored = self._stored(memory_id)
        return stored is not None and stored.is_live

    def check_live(self, memory_ids: Sequence[str]) -> list[Memory]:
        """These memories. Raises NotFound unless all are live."""
        missing = tuple(dict.fromkeys(each for each in memory_ids if not self._is_live(each)))
        if missing:
            raise NotFound(missing)
        return [stored.memory for each in memory_ids if (stored := self._stored(each)) is not None]


def _cosine(one: StoredMemory, other: StoredMemory) -> float | None:
    """The cosine of two texts of one passage each; None if either has another number of passages."""
    if len(one.blobs) != 1 or len(other.blobs) != 1:
        return None
    from nacre.storage.vectors import cosines, unpack

    return float(cosines(unpack(list(one.blobs)), unpack(list(other.blobs))[0])[0])


def _entity(entity: _Entity) -> Entity:
    return Entity(
        name=entity.name,
        space=entity.space,
        type=entity.type,
        aliases=tuple(name for key, name in sorted(entity.names.items()) if key != fold(entity.name)),
    )


def _places(fact: Fact) -> list[tuple[str, str]]:
    """The names by which a fact is about entities: its subject, and the object of a relation."""
    return [(fact.space, fold(name)) for name in (fact.subject, *([fact.object] if fact.relation else []))]
