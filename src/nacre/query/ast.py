"""A parsed question: terms that score, and conditions that memories must match.

`condition_matches` and `filter_matches` define what matches. Stores execute conditions and filters in their own way,
for instance as SQL, and are compared with these definitions in tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from nacre.types.memory import Json, JsonScalar, Memory, Span, Tokens
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Part, Period
from nacre.types.times import TimeQuestion


@dataclass(frozen=True, slots=True)
class Term:
    """Matches tokens equal to `text`, or words (and tokens of labels) beginning with it."""

    text: str
    prefix: bool = False
    # A word that any text may have, like "where". It weighs little even if it is rare.
    common: bool = field(default=False, compare=False)
    # Of the weight of a word that is looked up in several forms.
    share: float = field(default=1.0, compare=False)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Matches texts that have these words next to each other, in this order. `prefix`: the last word is a prefix."""

    words: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """Matches texts with all phrases where at most `distance` words separate each of them from the last one."""

    phrases: tuple[Phrase, ...]
    distance: int


@dataclass(frozen=True, slots=True)
class Only:
    """Matches the memories that match a filter. A filter without spaces matches in every space."""

    where: Filter


@dataclass(frozen=True, slots=True)
class Linked:
    """Matches memories that are linked with the entity of this name. The name is folded."""

    name: str


@dataclass(frozen=True, slots=True)
class During:
    """Matches memories that happened or were written in a period."""

    period: Period


@dataclass(frozen=True, slots=True)
class Pinned:
    """Matches pinned memories."""


@dataclass(frozen=True, slots=True)
class Unexpired:
    """Matches memories that have not expired by then. Only used where the store could not forget them yet."""

    now: datetime


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Matches where `wanted` does and `unwanted` does not. `wanted=None` matches everything."""

    wanted: Condition | None
    unwanted: Condition


Condition: TypeAlias = Term | Phrase | Near | Only | Linked | During | Pinned | Unexpired | AnyOf | AllOf | Without


def either(conditions: tuple[Condition, ...]) -> Condition:
    """Any of the conditions. A single one is returned as it is."""
    return conditions[0] if len(conditions) == 1 else AnyOf(conditions)


def both(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else AllOf((one, other))


def wanted_phrases(condition: Condition | None) -> Iterator[Phrase]:
    """The phrases that a condition asks for, without those that it excludes."""
    match condition:
        case Phrase():
            yield condition
        case Near(phrases):
            yield from phrases
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from wanted_phrases(part)
        case Without(wanted):
            yield from wanted_phrases(wanted)


def has_words(condition: Condition) -> bool:
    """Whether a condition is about the words of a memory."""
    match condition:
        case Term() | Phrase() | Near():
            return True
        case AnyOf(parts) | AllOf(parts):
            return any(map(has_words, parts))
        case Without(wanted, unwanted):
            return has_words(unwanted) or (wanted is not None and has_words(wanted))
    return False


def matches_everything(where: Filter, must: Condition | None) -> bool:
    """Whether every live memory of the filter's spaces matches."""
    return must is None and where == Filter(spaces=where.spaces)


def scope_condition(where: Filter, must: Condition | None) -> Condition:
    """The filter of a search and the conditions of its question, as one condition."""
    return Only(where) if must is None else AllOf((Only(where), must))


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query.

    `terms` score by BM25; a memory needs only one of them. `must` restricts every channel; it is None for plain words.
    `meaning` is the text to embed: the query without operators, filters and exclusions. `text` is the query without
    invisible characters, `spelled` the words in it that may be misspelled, with their places. `spaces` are the spaces
    that the query names, `time` is what a natural question says about time. The words of its periods are neither among
    the terms nor in `meaning`.
    """

    terms: tuple[Term, ...]
    must: Condition | None
    meaning: str
    notes: tuple[str, ...] = ()
    text: str = ""
    spelled: tuple[tuple[str, tuple[Span, ...]], ...] = ()
    spaces: tuple[str, ...] = ()
    time: TimeQuestion | None = None
    language: str | None = None  # that it was read in; None: English, or it is not known
    quoted: bool = False  # a phrase is among the conditions
    # Words that are among the conditions because all were asked for, with their terms.
    every: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)
    listing: bool = False  # conditions alone are enough: no word has to be found

    @property
    def periods(self) -> tuple[Period, ...]:
        """The times that it names."""
        return tuple(each.period for each in self.time.mentions) if self.time else ()


# ---------------------------------------------------------------- words


def term_counts(terms: Sequence[Term], tokens: Tokens, recipe: Recipe) -> list[float]:
    """How often each term occurs in a memory with these tokens. Occurrences in labels are weighted."""
    wanted = {term.text for term in terms}
    # One pass in C, however many terms there are: bigrams make many.
    tally = Counter(filter(wanted.__contains__, chain(tokens.words, tokens.forms)))
    counts: list[float] = [
        sum(_with_prefix(term, tokens.words)) if term.prefix else tally.get(term.text, 0) for term in terms
    ]
    for label, weight in (
        (tokens.summary, recipe.tuning.summary_weight),
        (tokens.tags, recipe.tuning.tags_weight),
        (tokens.source, recipe.tuning.source_weight),
    ):
        if label and weight:
            tally = Counter(label)
            for at, term in enumerate(terms):
                counts[at] += weight * (sum(_with_prefix(term, label)) if term.prefix else tally.get(term.text, 0))
    return counts


def _with_prefix(term: Term, tokens: Sequence[str]) -> Iterator[bool]:
    return (token.startswith(term.text) for token in tokens)


def significant_terms(terms: Sequence[Term]) -> list[Term]:
    """The terms of which a memory must have one to match: those that are not common, if there are any."""
    return [term for term in terms if not term.common] or list(terms)


def occurs(term: Term, tokens: Tokens) -> bool:
    """Whether a memory with these tokens has a term."""
    labels = (tokens.summary, tokens.tags, tokens.source)
    if term.prefix:
        return any(any(_with_prefix(term, each)) for each in (tokens.words, *labels))
    return any(term.text in each for each in (tokens.words, tokens.forms, *labels))


def condition_matches(condition: Condition, tokens: Tokens, memory: Memory, linked: Set[str] = frozenset()) -> bool:
    """Whether a memory with these tokens, linked with entities of these names, matches a condition."""
    match condition:
        case Term():
            return occurs(condition, tokens)
        case Phrase():
            return any(next(_starts(condition, words), None) is not None for words in _fields(tokens))
        case Near(phrases, distance):
            return any(_close(phrases, distance, words) for words in _fields(tokens))
        case Only(where):
            return filter_matches(where, memory)
        case AnyOf(parts):
            return any(condition_matches(part, tokens, memory, linked) for part in parts)
        case AllOf(parts):
            return all(condition_matches(part, tokens, memory, linked) for part in parts)
        case Linked(name):
            return name in linked
        case Pinned():
            return memory.pinned
        case Unexpired(now):
            return memory.expires is None or memory.expires > now
        case During(period):
            return is_during(memory.created, period) or (
                memory.happened is not None and is_during(memory.happened, period)
            )
        case Without(wanted, unwanted):
            matches = wanted is None or condition_matches(wanted, tokens, memory, linked)
            return matches and not condition_matches(unwanted, tokens, memory, linked)


def is_during(moment: datetime, period: Period) -> bool:
    return (period.start is None or moment >= period.start) and (period.end is None or moment < period.end)


def _fields(tokens: Tokens) -> tuple[tuple[str, ...], ...]:
    """The fields in which words have an order."""
    return tokens.words, tokens.summary, tokens.tags, tokens.source


def _starts(phrase: Phrase, words: Sequence[str]) -> Iterator[int]:
    """The places where a phrase begins."""
    *first, last = phrase.words
    for at in range(len(words) - len(first)):
        end = words[at + len(first)]
        if list(words[at : at + len(first)]) == first and (end.startswith(last) if phrase.prefix else end == last):
            yield at


def _close(phrases: Sequence[Phrase], distance: int, words: Sequence[str]) -> bool:
    starts = [list(_starts(phrase, words)) for phrase in phrases]
    return any(
        all(
            any(last - len(phrase.words) - distance <= at <= last for at in places)
            for phrase, places in zip(phrases, starts, strict=True)
        )
        for last in sorted({at for places in starts for at in places})
    )


# ---------------------------------------------------------------- filters


def filter_matches(where: Filter, memory: Memory) -> bool:
    """Whether a memory matches a filter: all of its fields that are not empty."""
    tags = set(memory.tags)
    return (
        (not where.spaces or memory.space in where.spaces)
        and (not where.kinds or memory.kind in where.kinds)
        and (not where.namespaces or memory.namespace in where.namespaces)
        and (not where.sources or any(_source_matches(each, memory.source) for each in where.sources))
        and (not where.sessions or memory.session in where.sessions)
        and (not where.languages or memory.language in where.languages)
        and (not where.key_prefixes or (memory.key or "").startswith(tuple(where.key_prefixes)))
        and (not where.tags_any or bool(tags.intersection(where.tags_any)))
        and tags.issuperset(where.tags_all)
        and tags.isdisjoint(where.tags_none)
        and (where.created_from is None or memory.created >= where.created_from)
        and (where.created_until is None or memory.created < where.created_until)
        and (where.importance_min is None or memory.importance >= where.importance_min)
        and (where.importance_max is None or memory.importance <= where.importance_max)
        and all(_metadata_equals(memory.metadata, key, value) for key, value in where.metadata.items())
        and all(_has(part, memory) for part in where.has)
        and (not where.fact_types or any(fact.type in where.fact_types for fact in memory.facts))
    )


def has_wildcards(source: str) -> bool:
    return "*" in source or "?" in source


def _source_matches(pattern: str, source: str | None) -> bool:
    """`*` matches any characters, `?` any single one. No other character is special."""
    if source is None or not has_wildcards(pattern):
        return source == pattern
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, source, re.DOTALL) is not None


def _metadata_equals(metadata: Mapping[str, Json], key: str, value: JsonScalar) -> bool:
    """JSON equality: true does not equal 1, and null is not a missing key."""
    if key not in metadata:
        return False
    stored = metadata[key]
    if isinstance(stored, bool) or isinstance(value, bool):
        return stored is value
    return stored == value


def _has(part: Part, memory: Memory) -> bool:
    match part:
        case "facts":
            return memory.kind == "fact" or bool(memory.facts)
        case "tags":
            return bool(memory.tags)
        case "metadata":
            return bool(memory.metadata)
        case "source" | "session" | "summary":
            return getattr(memory, part) is not None
