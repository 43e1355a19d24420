"""Entities: who and what memories are about, and how they are related."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nacre import validation
from nacre.analysis.names import fold
from nacre.engine.parts import Parts
from nacre.errors import NotFound
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity, RelatedEntity

_NEIGHBOURS_MAX = 10_000  # relations that are followed from one distance to the next


class EntityService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    def add(
        self, name: str, kind: str | None, aliases: Sequence[str], memory_ids: Sequence[str], space: str | None
    ) -> Entity:
        kind = None if kind is None else validation.kind_name(kind, self._parts.limits)
        new = validation.entity(NewEntity(name=name, type=kind, aliases=aliases), self._parts.limits, within="")
        for each in (new.name, *new.aliases):
            self._parts.screening.label("name", each)
        within = validation.space(space, self._parts.access, self._parts.limits)
        self._store.put_entity(
            within, new, self._parts.ids(validation.ids(memory_ids, self._parts.limits, "memory_ids"))
        )
        return self._store.entities([within], [new.name], 1)[0]

    def drop(self, name: str, space: str | None) -> None:
        within = validation.space(space, self._parts.access, self._parts.limits)
        if not self._store.drop_entity(within, validation.looked_up("name", name)):
            raise NotFound((name,), "see `nacre entity list`", what="entity")

    def find(self, names: Sequence[str] | None, spaces: Sequence[str], limit: int) -> list[Entity]:
        asked = validation.entity_names(names, limit, self._parts.limits)
        return self._store.entities(validation.spaces(spaces, self._parts.access, self._parts.limits), asked, limit)

    def counts(self, spaces: Sequence[str]) -> dict[str, int]:
        return self._store.entity_counts(validation.spaces(spaces, self._parts.access, self._parts.limits))

    def related(self, name: str, depth: int, spaces: Sequence[str], as_of: datetime | None) -> list[RelatedEntity]:
        name = validation.looked_up("name", name)
        validation.depth(depth, self._parts.limits)
        asked = validation.fact_query(
            FactQuery(spaces=spaces, as_of=as_of), self._parts.access, self._parts.clock(), self._parts.limits
        )
        assert asked.as_of is not None
        names = self._names_of(name, asked.spaces)
        if not names:
            raise NotFound((name,), "see `nacre entity list`", what="entity")
        seen = set(names)
        paths: dict[str, tuple[Fact, ...]] = dict.fromkeys(names, ())
        found: list[RelatedEntity] = []
        for distance in range(1, depth + 1):
            further: dict[str, tuple[Fact, ...]] = {}
            for fact in self._store.relations_of(list(paths), asked.spaces, asked.as_of, _NEIGHBOURS_MAX):
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
        found = self._store.entities(spaces, [name], self._parts.limits.entities_max)
        return [fold(each) for entity in found for each in (entity.name, *entity.aliases)]

    def _canonical(self, name: str, spaces: Sequence[str]) -> str:
        found = self._store.entities(spaces, [name], 1)
        return found[0].name if found else name
