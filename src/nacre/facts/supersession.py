"""Which of several facts holds: a newer one takes the place of an older one, and both are kept.

What holds is computed from the live facts of one subject and predicate alone, so it is the same in whatever
order they were written, and what a forgotten memory had superseded holds again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nacre.analysis.names import fold, predicate_words
from nacre.facts.confidence import effective_confidence, is_current
from nacre.types.facts import Fact, FactType

# A newer fact that is believed less than this share of the older one does not replace it: that is a conflict.
REPLACES_FROM = 0.5

_SINGLE_VALUED = frozenset(
    (
        "lives in", "is located in", "is based in", "works at", "works for", "is married to", "was born on",
        "was born in", "name", "is named", "email", "phone", "address", "birthday", "age", "status", "version",
        "port", "host", "url", "deadline", "due", "is due on", "is on", "time zone", "title", "role", "owner", "price",
    )
)  # fmt: skip
_MULTI_VALUED = frozenset(
    (
        "is", "uses", "prefers", "likes", "loves", "hates", "dislikes", "enjoys", "works on", "works with", "knows",
        "has", "owns", "speaks", "depends on", "decided", "is member of", "belongs to", "supports", "tag", "tags",
        "alias", "contains", "mentions", "child", "friend", "see also",
    )
)  # fmt: skip
_SINGLE_VALUED_TYPES: frozenset[FactType] = frozenset({"kv", "config", "location", "state"})


def is_single_valued(predicate: str, type_: FactType) -> bool:
    """Whether a subject has one value of a predicate at a time."""
    words = predicate_words(predicate)
    if words in _SINGLE_VALUED:
        return True
    if words in _MULTI_VALUED and type_ != "state":
        return False
    return type_ in _SINGLE_VALUED_TYPES


def apply_supersession(facts: Sequence[Fact]) -> list[Fact]:
    """All live facts of one subject and predicate in a space, with the end and the successor of each."""
    chain = sorted((fact for fact in facts if fact.single), key=lambda fact: (fact.valid_from, fact.id))
    others = [replace(fact, valid_to=fact.ends, superseded_by=None) for fact in facts if not fact.single]
    return others + [_superseded(fact, chain[at + 1 :]) for at, fact in enumerate(chain)]


def _superseded(fact: Fact, later: Sequence[Fact]) -> Fact:
    still = replace(fact, valid_to=fact.ends, superseded_by=None)
    for successor in later:
        if successor.valid_from > fact.valid_from and _replaces(successor, still):
            if fact.ends is not None and fact.ends <= successor.valid_from:
                return still  # it had ended before
            return replace(still, valid_to=successor.valid_from, superseded_by=successor.id)
    return still


def _replaces(newer: Fact, older: Fact) -> bool:
    different = fold(newer.object) != fold(older.object)
    return different and newer.confidence >= REPLACES_FROM * effective_confidence(older, newer.valid_from)


def conflicting(facts: Sequence[Fact], now: datetime) -> list[Fact]:
    """Of the facts of one subject and predicate, those that hold now though only one can."""
    holding = [fact for fact in facts if fact.single and is_current(fact, now)]
    return holding if len({fold(fact.object) for fact in holding}) > 1 else []
