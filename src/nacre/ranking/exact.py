"""Memories that have exactly what the question names come before those that have something alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from nacre.query.identifiers import Identifier, fold
from nacre.ranking import scoring
from nacre.types.memory import Memory
from nacre.types.search import Ranked, Reason

SHORT_WORDS = 10  # words of a query up to which it is about what it names
LOOKED_AT = 50  # the best candidates, whose texts are read
_APART = "\n\0\n"  # between fields: an identifier does not begin in one and end in the next
_NAME_WEIGHT = 0.15  # of a full name; its owner may also be called by the first name alone
_ALONE = 1.1  # of the share of one that no channel found, which has nothing else: recency gives the best no more


def named_in(memory: Memory, identifiers: Sequence[Identifier]) -> frozenset[Identifier]:
    """Those of the identifiers that a memory has, in its text or its labels."""
    folded = fold(_APART.join(filter(None, (memory.text, memory.summary, memory.source, *memory.tags))))
    return frozenset(each for each in identifiers if each.stands_in(folded))


def emphasis(query: str) -> float:
    """How much the identifiers of a query decide: less in a long statement, which names them beside much else."""
    return min(1.0, (SHORT_WORDS / max(1, len(query.split()))) ** 2)


def first(ranked: Sequence[Ranked], named: Mapping[str, Set[Identifier]], weight: float) -> list[Ranked]:
    """Add a share to each memory that has something that the question names: as much as the best has, for each.

    Memories that are among `named` and not in the ranking come in by it.
    """
    best = max((each.score for each in ranked), default=1.0)
    shares = {each: weight * best * _counted(has) for each, has in named.items() if has}
    if not weight or not shares:
        return list(ranked)
    known = {each.id for each in ranked}
    raised = [
        scoring.with_share(each, _reason(shares[each.id], named[each.id])) if each.id in shares else each
        for each in ranked
    ]
    alone = [
        Ranked(each, _ALONE * share, (_reason(_ALONE * share, named[each]),), None, None)
        for each, share in shares.items()
        if each not in known
    ]
    return scoring.best_first(raised + alone)


def _reason(share: float, has: Set[Identifier]) -> Reason:
    return Reason("exact", "add", share, {"named": float(len(has))})


def _counted(has: Set[Identifier]) -> float:
    return sum(_NAME_WEIGHT if each.exactness == "name" else 1.0 for each in has)
