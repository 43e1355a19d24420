"""Supersession: a newer fact ends an older one of the same subject and predicate. Both are kept.

The result depends only on the live facts of one subject and predicate. So it does not depend on the order of writing,
and facts become current again when the memory that superseded them is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nacre.analysis.names import fold, predicate_words
from nacre.facts.confidence import effective_confidence, is_current
from nacre.types.facts import Fact, FactType

# A newer fact with less than this share of the older one's confidence does not supersede it: both stay, in conflict.
REPLACES_FROM = 0.5

_SINGLE_VALUED = frozenset(
    (
        "lives in", "is located in", "is based in", "works at", "works for", "is married to", "was born on",
        "was born in", "name", "is named", "email", "phone", "address", "birthday", "age", "status", "version",
        "port", "host", "url", "deadline", "due", "is due on", "is on", "time zone", "title", "role", "owner", "price",
        "cost", "lead", "leader", "manager", "head", "chair", "password", "code",
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
    """Whether a subject has only one value of a predicate at a time."""
    words = predicate_words(predicate)
    if words in _SINGLE_VALUED:
        return True
    if words in _MULTI_VALUED and type_ != "state":
        return False
    return type_ in _SINGLE_VALUED_TYPES


def apply_supersession(facts: Sequence[Fact]) -> list[Fact]:
    """All live facts of one subject and predicate in a space, with `valid_to` and `superseded_by` set."""
    chain = sorted((fact for fact in facts if fact.single), key=lambda fact: (fact.valid_from, fact.id))
    others = [_current(fact) for fact in facts if not fact.single]
    return others + [_superseded(fact, chain[at + 1 :]) for at, fact in enumerate(chain)]


def _superseded(fact: Fact, later: Sequence[Fact]) -> Fact:
    unended = _current(fact)
    for successor in later:
        if successor.valid_from > fact.valid_from and _supersedes(successor, unended):
            if fact.ends is not None and fact.ends <= successor.valid_from:
                return unended  # it ended earlier
            return replace(unended, valid_to=successor.valid_from, superseded_by=successor.id)
    return unended


def _current(fact: Fact) -> Fact:
    """The fact as it is where nothing supersedes it."""
    if fact.superseded_by is None and fact.valid_to == fact.ends:
        return fact
    return replace(fact, valid_to=fact.ends, superseded_by=None)


def _supersedes(newer: Fact, older: Fact) -> bool:
    different = fold(newer.object) != fold(older.object)
    return different and newer.confidence >= REPLACES_FROM * effective_confidence(older, newer.valid_from)


def conflicting(facts: Sequence[Fact], now: datetime) -> list[Fact]:
    """The current facts of one subject and predicate, if they are single-valued and have different objects."""
    current = [fact for fact in facts if fact.single and is_current(fact, now)]
    return current if len({fold(fact.object) for fact in current}) > 1 else []
