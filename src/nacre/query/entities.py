"""Conditions for memories about an entity: the memory has its name, or is linked to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from nacre.analysis import tokenizer
from nacre.analysis.names import fold
from nacre.query.ast import AllOf, AnyOf, Condition, Linked, Phrase, Term, Without, either


def phrase_condition(tokens: Sequence[str]) -> Condition:
    """Matches these words as a phrase. Unigrams have no positions, so they only have to occur."""
    conditions: list[Condition] = []
    for unigrams, run in groupby(tokens, tokenizer.is_unigram):
        words = tuple(run)
        conditions += map(Term, words) if unigrams else [Phrase(words)]
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def entity_condition(name: str, aliases: Sequence[str] = ()) -> Condition:
    """Matches memories that have one of these names or are linked to the entity."""
    tokens = (tokenizer.tokenise(each).words for each in (name, *aliases))
    return either((*(phrase_condition(each) for each in dict.fromkeys(tokens) if each), Linked(fold(name))))


def entity_names(condition: Condition | None) -> Iterator[str]:
    """The folded names of the entities in a condition."""
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
    """The condition, with the aliases of every entity added."""
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
