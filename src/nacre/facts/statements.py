"""Builds facts from given or extracted statements, and compares them by subject, predicate and object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.analysis.names import fold, is_pronoun, predicate_words
from nacre.errors import InvalidInput
from nacre.facts.supersession import is_single_valued
from nacre.types.facts import Fact, FactType, NewFact, Origin
from nacre.types.memory import Memory


def check_fact(new: NewFact, memory: Memory) -> None:
    """Raise InvalidInput for a fact that would end before it begins."""
    if new.valid_to is not None and new.valid_to <= (new.valid_from or memory.moment):
        raise InvalidInput("facts.valid_to", "is before the memory's time; also give valid_from")


def make_fact(new: NewFact, memory: Memory, fact_id: str, rates: Mapping[FactType, float], origin: Origin) -> Fact:
    """A fact of a memory. By default it is valid, and decays, from the time when the memory happened."""
    check_fact(new, memory)
    moment = memory.moment
    return Fact(
        id=fact_id,
        memory_id=memory.id,
        space=memory.space,
        subject=new.subject,
        predicate=new.predicate,
        object=new.object,
        type=new.type,
        confidence=new.confidence,
        decay_rate=rates[new.type] if new.decay_rate is None else new.decay_rate,
        reinforced=moment,
        touched=moment,
        valid_from=new.valid_from or moment,
        valid_to=new.valid_to,
        superseded_by=None,
        quote=new.quote,
        relation=new.relation,
        single=is_single_valued(new.predicate, new.type) if new.single is None else new.single,
        origin=origin,
        ends=new.valid_to,
    )


def without_given(extracted: Sequence[Fact], given: Sequence[Fact]) -> list[Fact]:
    """The extracted facts without those that the caller gave as well."""
    if not extracted or not given:
        return list(extracted)
    keys = {statement_key(each) for each in given}
    return [each for each in extracted if statement_key(each) not in keys]


def statement_key(fact: Fact) -> tuple[str, str, str]:
    """Subject, predicate and object, folded: equal for facts that state the same."""
    return fold(fact.subject), predicate_words(fact.predicate), fold(fact.object)


def named_entities(fact: Fact) -> list[str]:
    """The entities that a fact names. The subject of an extracted `key: value` pair is no entity."""
    named = [fact.object] if fact.relation else []
    if fact.origin == "given" or fact.relation or fact.type not in ("kv", "config", "temporal", "state"):
        named.insert(0, fact.subject)
    return [name for name in named if not is_pronoun(name)]
