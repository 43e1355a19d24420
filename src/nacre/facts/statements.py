"""Facts as statements: made from what was given or extracted, and compared by what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.analysis.names import fold, is_pronoun, predicate_words
from nacre.errors import InvalidInput
from nacre.facts.supersession import is_single_valued
from nacre.types.facts import Fact, FactType, NewFact, Origin
from nacre.types.memory import Memory


def make_fact(new: NewFact, memory: Memory, fact_id: str, rates: Mapping[FactType, float], origin: Origin) -> Fact:
    """A fact of a memory. It holds, and fades, from when the memory happened, unless it says otherwise."""
    moment = memory.happened or memory.created
    if new.valid_to is not None and new.valid_to <= (new.valid_from or moment):
        raise InvalidInput("facts.valid_to", "is before the memory's time; give valid_from, too")
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


def without_given(read: Sequence[Fact], given: Sequence[Fact]) -> list[Fact]:
    """The facts read from a text without those that its giver states, too."""
    if not read or not given:
        return list(read)
    stated = {statement_key(each) for each in given}
    return [each for each in read if statement_key(each) not in stated]


def statement_key(stated: Fact) -> tuple[str, str, str]:
    """What a fact says, as it is compared: subject, predicate and object."""
    return fold(stated.subject), predicate_words(stated.predicate), fold(stated.object)


def named_entities(stated: Fact) -> list[str]:
    """The entities that a fact makes known. A key of a list that was read from a text is none."""
    named = [stated.object] if stated.relation else []
    if stated.origin == "given" or stated.relation or stated.type not in ("kv", "config", "temporal", "state"):
        named.insert(0, stated.subject)
    return [name for name in named if not is_pronoun(name)]
