"""Memories that have exactly what the question names come before those that have something alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.query.identifiers import Identifier, fold
from nacre.ranking import scoring
from nacre.types.memory import Memory
from nacre.types.search import Ranked, Reason

LOOKED_AT = 50  # the best candidates, whose texts are read
_NAME_WEIGHT = 0.5  # of a full name; its owner may also be called by the first name alone


def named_in(memory: Memory, identifiers: Sequence[Identifier]) -> frozenset[Identifier]:
    """Those of the identifiers that a memory has, in its text or its labels."""
    folded = fold(" \n".join(filter(None, (memory.text, memory.summary, memory.source, *memory.tags))))
    return frozenset(each for each in identifiers if each.stands_in(folded))


def first(ranked: Sequence[Ranked], named: Mapping[str, frozenset[Identifier]], weight: float) -> list[Ranked]:
    """Add a share to each memory that has something that the question names: as much as the best has, for each.

    Memories that are among `named` and not in the ranking come in by it.
    """
    best = max((each.score for each in ranked), default=1.0)
    most = max((_counted(each) for each in named.values()), default=0.0)
    reasons = {
        each: Reason("exact", "add", weight * best * _counted(has), {"named": float(len(has))})
        for each, has in named.items()
        if has
    }
    if not weight or not most:
        return list(ranked)
    known = {each.id for each in ranked}
    raised = [scoring.with_reason(each, reasons[each.id]) if each.id in reasons else each for each in ranked]
    alone = [Ranked(each, reason.value, (reason,), None, None) for each, reason in reasons.items() if each not in known]
    return scoring.best_first(raised + alone)


def _counted(has: frozenset[Identifier]) -> float:
    return sum(_NAME_WEIGHT if each.exactness == "name" else 1.0 for each in has)
