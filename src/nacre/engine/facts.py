"""Facts: what memories state, how far each is believed, which are current and which disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import get_args

from nacre import validation
from nacre.engine.parts import Parts
from nacre.errors import NotFound
from nacre.facts import statements
from nacre.facts.confidence import SHARES, effective_confidence, is_stale, reinforce, stale_since
from nacre.types.facts import (
    Belief,
    Disagreement,
    Fact,
    FactQuery,
    FactType,
    NewFact,
    Origin,
    Reinforcement,
    Statement,
)
from nacre.types.memory import Memory

_EVERY = 1_000_000_000


class FactService:
    def __init__(self, parts: Parts, decay_rates: Mapping[FactType, float]) -> None:
        self._parts = parts
        self._store = parts.store
        self._decay_rates = decay_rates

    def add(self, memory_id: str, facts: Sequence[NewFact]) -> list[Fact]:
        new = validation.facts(facts, self._parts.limits)
        checked = self._parts.id(memory_id)
        found = self._store.get([checked]).get(checked)
        if found is None or found.deleted is not None:
            raise NotFound((checked,))
        screened, notes = self._parts.screening.facts(new)
        stated = self.stated(found, validation.facts(screened, self._parts.limits), "given")
        self._store.add_facts(stated, self._parts.clock())
        by_id = {each.id: each for each in self._store.facts_by_id([each.id for each in stated])}
        return [replace(by_id[each.id], notes=notes) for each in stated]

    def drop(self, ids: str | Sequence[str]) -> None:
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._parts.limits)
        visible = {each.id for each in self._store.facts_by_id(named) if self._parts.access.sees(each)}
        missing = tuple(each for each in named if each not in visible)
        if missing:
            raise NotFound(missing, "see `nacre fact list`", what="fact")
        self._store.drop_facts(named, self._parts.clock())

    def find(self, query: FactQuery) -> list[Belief]:
        asked = validation.fact_query(query, self._parts.access, self._parts.clock(), self._parts.limits)
        assert asked.as_of is not None
        return _believed(self._store.facts(asked), asked.as_of)

    def reinforce(self, ids: str | Sequence[str], how: Reinforcement) -> int:
        validation.choice("how", how, get_args(Reinforcement))
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._parts.limits)
        facts = {each.id: each for each in self._store.facts_by_id(named) if self._parts.access.sees(each)}
        memories = self._parts.visible([each for each in named if each not in facts])
        missing = tuple(each for each in named if each not in facts and each not in memories)
        if missing:
            raise NotFound(missing, "check it with `nacre timeline` or `nacre fact list`", what="memory or fact")
        for several in self._store.facts_of(list(memories)).values():
            facts |= {each.id: each for each in several}
        return self.reinforce_all(list(facts.values()), how)

    def reinforce_all(self, facts: Sequence[Fact], how: Reinforcement) -> int:
        """Gives how many facts changed."""
        now = self._parts.clock()
        changed = [after for each in facts if (after := reinforce(each, SHARES[how], now)) != each]
        if changed:
            self._store.update_confidence(changed)
        return len(changed)

    def stale(self, spaces: Sequence[str]) -> list[Belief]:
        now = self._parts.clock()
        within = validation.spaces(spaces, self._parts.access, self._parts.limits)
        current = self._store.facts(FactQuery(spaces=within, as_of=now, limit=_EVERY))
        faded = [each for each in current if is_stale(each, now)]
        return _believed(sorted(faded, key=lambda each: (stale_since(each) or now, each.id)), now)

    def conflicts(self, spaces: Sequence[str]) -> list[Disagreement]:
        now = self._parts.clock()
        groups = self._store.conflicting_facts(validation.spaces(spaces, self._parts.access, self._parts.limits), now)
        known = self._store.get(list(dict.fromkeys(fact.memory_id for facts in groups for fact in facts)))
        return [
            Disagreement(
                facts[-1].subject,
                facts[-1].predicate,
                tuple(_believed(facts, now)),
                _statements([known[each] for each in dict.fromkeys(fact.memory_id for fact in facts)]),
            )
            for facts in groups
        ]

    def stated(self, memory: Memory, facts: Sequence[NewFact], origin: Origin) -> list[Fact]:
        """Facts of a memory, each with an id of its own."""
        ids = self._parts.make_ids(self._parts.clock(), len(facts)) if facts else []
        return [
            statements.make_fact(new, memory, fact_id, self._decay_rates, origin)
            for new, fact_id in zip(facts, ids, strict=True)
        ]


def _statements(memories: Sequence[Memory]) -> tuple[Statement, ...]:
    found = [Statement(each.id, each.text, each.moment) for each in memories]
    return tuple(sorted(found, key=lambda each: (each.since, each.memory_id)))


def _believed(facts: Sequence[Fact], at: datetime) -> list[Belief]:
    return [Belief(each, effective_confidence(each, at)) for each in facts]
