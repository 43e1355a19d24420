"""What memories say: the verbs for facts, entities and relations, and for memories that say nearly the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Unpack, get_args

from nacre import validation
from nacre.analysis.names import fold
from nacre.errors import InvalidInput, NotFound
from nacre.facts import statements
from nacre.facts.confidence import SHARES, effective, is_stale, reinforced, stale_since
from nacre.interfaces import Store
from nacre.types.facts import (
    Belief,
    Disagreement,
    Entity,
    Fact,
    FactOptions,
    FactQuery,
    FactType,
    NewEntity,
    NewFact,
    Origin,
    Reinforcement,
    RelatedEntity,
)
from nacre.types.memory import Memory
from nacre.validation import Limits

DEPTH_MAX = 3  # relations between an entity and one it is related to
_EVERY = 1_000_000_000
_NEIGHBOURS_MAX = 10_000  # relations that are followed from one distance to the next


class Knowing:
    """The verbs for what is known. `Nacre` sets what they are made of."""

    _store: Store
    _clock: Callable[[], datetime]
    _make_ids: Callable[[datetime, int], list[str]]
    _limits: Limits
    _space: str
    _decay_rates: Mapping[FactType, float]

    # ---- facts

    def add_facts(self, memory_id: str, facts: Sequence[NewFact]) -> list[Fact]:
        """Keep facts with a live memory, as they are once settled."""
        new = validation.facts(facts, self._limits)
        self._ids(memory_id)
        found = self._store.get([memory_id]).get(memory_id)
        if found is None or found.deleted is not None:
            raise NotFound((memory_id,))
        stated = self._stated(found, new, "given")
        self._store.add_facts(stated, self._clock())
        by_id = {each.id: each for each in self._store.facts_by_id([each.id for each in stated])}
        return [by_id[each.id] for each in stated]

    def drop_facts(self, ids: str | Sequence[str]) -> None:
        """Delete facts; what they had superseded holds again. The memories stay."""
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._limits)
        seen = {each.id for each in self._store.facts_by_id(named) if self._may_see(each)}
        missing = tuple(each for each in named if each not in seen)
        if missing:
            raise NotFound(missing, "see `nacre fact list`", what="fact")
        self._store.drop_facts(named, self._clock())

    def facts(self, query: FactQuery | None = None, **options: Unpack[FactOptions]) -> list[Belief]:
        """Facts that hold, now or as of another time, the newest first, with how far each is believed then."""
        asked = validation.fact_query(
            replace(query or FactQuery(), **options), self._space, self._clock(), self._limits
        )
        assert asked.as_of is not None
        return _believed(self._store.facts(asked), asked.as_of)

    def reinforce(self, ids: str | Sequence[str], how: Reinforcement = "explicit") -> int:
        """Take back a share of the fading of facts, given by their ids or those of their memories; gives how many."""
        if how not in get_args(Reinforcement):
            raise InvalidInput("how", f"{how!r} is unknown; allowed: {', '.join(get_args(Reinforcement))}")
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._limits)
        facts = {each.id: each for each in self._store.facts_by_id(named) if self._may_see(each)}
        memories = self._seen([each for each in named if each not in facts])
        missing = tuple(each for each in named if each not in facts and each not in memories)
        if missing:
            raise NotFound(missing, "check it with `nacre timeline` or `nacre fact list`", what="memory or fact")
        facts |= {each.id: each for each in _flat(self._store.facts_of(list(memories)))}
        return self._reinforced(list(facts.values()), how)

    def stale(self, spaces: Sequence[str] = ()) -> list[Belief]:
        """Facts that hold but are believed less than a half for thirty days, the longest first."""
        now = self._clock()
        asked = FactQuery(spaces=validation.spaces(spaces, self._space, self._limits), as_of=now, limit=_EVERY)
        faded = [each for each in self._store.facts(asked) if is_stale(each, now)]
        return _believed(sorted(faded, key=lambda each: (stale_since(each) or now, each.id)), now)

    def conflicts(self, spaces: Sequence[str] = ()) -> list[Disagreement]:
        """Facts that hold at once though only one of them can be true."""
        now = self._clock()
        groups = self._store.rivals(validation.spaces(spaces, self._space, self._limits), now)
        return [Disagreement(facts[-1].subject, facts[-1].predicate, tuple(_believed(facts, now))) for facts in groups]

    # ---- entities

    def add_entity(
        self,
        name: str,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        space: str | None = None,
    ) -> Entity:
        """Make an entity known, or more of its names, and link memories. Entities that share a name become one."""
        new = validation.entity(NewEntity(name=name, type=kind, aliases=aliases), self._limits)
        within = self._space if space is None else validation.space_name(space, self._limits)
        self._store.put_entity(within, new, self._ids(memory_ids))
        return self._store.entities([within], [new.name], 1)[0]

    def drop_entity(self, name: str, space: str | None = None) -> None:
        """Forget an entity with its names and links. Memories and facts stay."""
        if not self._store.drop_entity(
            self._space if space is None else validation.space_name(space, self._limits), name
        ):
            raise NotFound((name,), "see `nacre entity list`", what="entity")

    def entities(
        self, names: Sequence[str] | None = None, *, spaces: Sequence[str] = (), limit: int = 1_000
    ) -> list[Entity]:
        """All entities by name, or those that have one of these names or aliases."""
        asked = validation.entity_names(names, limit, self._limits)
        return self._store.entities(validation.spaces(spaces, self._space, self._limits), asked, limit)

    def related_entities(
        self, name: str, depth: int = 1, *, spaces: Sequence[str] = (), as_of: datetime | None = None
    ) -> list[RelatedEntity]:
        """The entities that relations lead to from one, the nearest first, each with the way to it."""
        if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEPTH_MAX:
            raise InvalidInput("depth", f"is {depth!r}; a whole number from 1 to {DEPTH_MAX} is allowed")
        asked = validation.fact_query(FactQuery(spaces=spaces, as_of=as_of), self._space, self._clock(), self._limits)
        assert asked.as_of is not None
        names = self._names_of(name, asked.spaces)
        if not names:
            raise NotFound((name,), "see `nacre entity list`", what="entity")
        seen = set(names)
        paths: dict[str, tuple[Fact, ...]] = dict.fromkeys(names, ())
        found: list[RelatedEntity] = []
        for distance in range(1, depth + 1):
            further: dict[str, tuple[Fact, ...]] = {}
            for fact in self._store.touching(list(paths), asked.spaces, asked.as_of, _NEIGHBOURS_MAX):
                for here, there in ((fact.subject, fact.object), (fact.object, fact.subject)):
                    if fold(here) not in paths or fold(there) in seen:
                        continue
                    way = (*paths[fold(here)], fact)
                    others = self._names_of(there, asked.spaces) or [fold(there)]
                    seen.update(others)
                    further |= dict.fromkeys(others, way)
                    found.append(RelatedEntity(self._canonical(there, asked.spaces), distance, way))
            paths = further
        return sorted(found, key=lambda each: (each.distance, fold(each.name)))

    def _names_of(self, name: str, spaces: Sequence[str]) -> list[str]:
        found = self._store.entities(spaces, [name], self._limits.entities_max)
        return [fold(each) for entity in found for each in (entity.name, *entity.aliases)]

    def _canonical(self, name: str, spaces: Sequence[str]) -> str:
        found = self._store.entities(spaces, [name], 1)
        return found[0].name if found else name

    # ---- near-duplicates

    def similar(self, memory_id: str) -> list[Memory]:
        """The memories that were linked as saying nearly the same."""
        if memory_id not in self._store.get(self._ids(memory_id)):
            raise NotFound((memory_id,))
        ids = self._store.similar([memory_id]).get(memory_id, ())
        found = self._store.get(ids)
        return [found[each] for each in ids]

    def separate(self, memory_id: str) -> int:
        """Show a memory on its own from now on; gives from how many it was separated."""
        return self._store.separate(*self._ids(memory_id))

    # ---- inside

    def _ids(self, ids: str | Sequence[str]) -> tuple[str, ...]:
        """Ids of memories as a caller gave them. Who is confined gets NotFound for those of other spaces."""
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._limits)
        if self._limits.confined_to is not None:
            seen = self._seen(named)
            missing = tuple(each for each in named if each not in seen)
            if missing:
                raise NotFound(missing)
        return named

    def _seen(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Those that are there. Of spaces that must not be seen, none is."""
        return {each: memory for each, memory in self._store.get(ids).items() if self._may_see(memory)}

    def _may_see(self, found: Memory | Fact) -> bool:
        return self._limits.confined_to in (None, found.space)

    def _stated(self, memory: Memory, facts: Sequence[NewFact], origin: Origin) -> list[Fact]:
        ids = self._make_ids(self._clock(), len(facts)) if facts else []
        return [
            statements.fact(new, memory, fact_id, self._decay_rates, origin)
            for new, fact_id in zip(facts, ids, strict=True)
        ]

    def _reinforced(self, facts: Sequence[Fact], how: Reinforcement) -> int:
        now = self._clock()
        changed = [after for each in facts if (after := reinforced(each, SHARES[how], now)) != each]
        if changed:
            self._store.believe(changed)
        return len(changed)


def _believed(facts: Sequence[Fact], at: datetime) -> list[Belief]:
    return [Belief(each, effective(each, at)) for each in facts]


def _flat(facts: Mapping[str, Sequence[Fact]]) -> list[Fact]:
    return [each for several in facts.values() for each in several]
