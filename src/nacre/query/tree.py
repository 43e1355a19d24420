"""What a question means: terms that score, and conditions that must hold.

A store compiles these values; `holds` below is their plain meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nacre.types import Tokens


@dataclass(frozen=True, slots=True)
class Term:
    """Matches tokens equal to `text`, or words beginning with it."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Phrase:
    """Holds where these words stand side by side, in this order."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Holds where `wanted` does and `unwanted` does not. `wanted=None` is anything."""

    wanted: Condition | None
    unwanted: Condition


Condition: TypeAlias = Term | Phrase | AnyOf | AllOf | Without


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed query.

    `terms` score by BM25, any of them is enough. `must` restricts every channel; it is None for
    plain words. `meaning` is the text to embed: the query without operators and exclusions.
    """

    terms: tuple[Term, ...]
    must: Condition | None
    meaning: str
    notes: tuple[str, ...] = ()


def term_counts(terms: Sequence[Term], words: Sequence[str], forms: Sequence[str]) -> list[int]:
    """How often each term occurs in a text with these tokens."""
    tally = Counter([*words, *forms])  # one pass, however many terms: bigrams make many
    return [
        sum(word.startswith(term.text) for word in words) if term.prefix else tally.get(term.text, 0) for term in terms
    ]


def term_count(term: Term, tokens: Tokens) -> int:
    return term_counts((term,), tokens.words, tokens.forms)[0]


def holds(condition: Condition, tokens: Tokens) -> bool:
    """Whether a text with these tokens meets the condition."""
    match condition:
        case Term():
            return term_count(condition, tokens) > 0
        case Phrase(words):
            return _contains(tokens.words, words)
        case AnyOf(parts):
            return any(holds(part, tokens) for part in parts)
        case AllOf(parts):
            return all(holds(part, tokens) for part in parts)
        case Without(wanted, unwanted):
            return (wanted is None or holds(wanted, tokens)) and not holds(unwanted, tokens)


def _contains(words: Sequence[str], run: Sequence[str]) -> bool:
    width = len(run)
    return any(tuple(words[i : i + width]) == tuple(run) for i in range(len(words) - width + 1))
