"""Which condition says that a memory is about an entity: its name stands in it, or it is linked with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from nacre.analysis import tokenizer
from nacre.analysis.names import fold
from nacre.query.ast import AllOf, AnyOf, Condition, Linked, Phrase, Term, Without, either


def phrase_condition(tokens: Sequence[str]) -> Condition:
    """These words side by side. A lone character has no place in the order, so it only has to be there."""
    conditions: list[Condition] = []
    for lone, run in groupby(tokens, tokenizer.is_unigram):
        together = tuple(run)
        conditions += map(Term, together) if lone else [Phrase(together)]
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def entity_condition(name: str, aliases: Sequence[str] = ()) -> Condition:
    """A memory that has one of these names, or is linked with what is called so."""
    tokens = (tokenizer.tokenise(each).words for each in (name, *aliases))
    return either((*(phrase_condition(each) for each in dict.fromkeys(tokens) if each), Linked(fold(name))))


def entity_names(condition: Condition | None) -> Iterator[str]:
    """The entities a condition asks for, by folded name."""
    match condition:
        case Linked(name):
            yield name
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from entity_names(part)
        case Without(wanted, unwanted):
            yield from entity_names(wanted)
            yield from entity_names(unwanted)


def with_aliases(condition: Condition, aliases: Mapping[str, Sequence[str]]) -> Condition:
    """The same condition, where every entity is also known by these names."""
    match condition:
        case Linked(name) if aliases.get(name):
            return entity_condition(name, aliases[name])
        case AnyOf(parts):
            return AnyOf(tuple(with_aliases(part, aliases) for part in parts))
        case AllOf(parts):
            return AllOf(tuple(with_aliases(part, aliases) for part in parts))
        case Without(wanted, unwanted):
            return Without(None if wanted is None else with_aliases(wanted, aliases), with_aliases(unwanted, aliases))
    return condition
