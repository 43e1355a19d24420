"""Normalizes texts, entity names and predicates for comparison."""

from __future__ import annotations

import re
import unicodedata

from nacre.analysis import tokenizer

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PRONOUNS = frozenset(
    (
        "i", "we", "you", "he", "she", "it", "they", "me", "us", "him", "her", "them", "this", "that", "these", "those",
        "my", "our",
    )
)  # fmt: skip


def fold(text: str) -> str:
    """The text for comparison: NFKC normalized, case-folded, each run of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def predicate_words(predicate: str) -> str:
    """The words of a predicate: `worksAt`, `works_at` and `works-at` all give `works at`."""
    return fold(_CAMEL.sub(" ", predicate).replace("_", " ").replace("-", " "))


def is_pronoun(name: str) -> bool:
    """Whether a name is a pronoun, which means someone else in each text."""
    return fold(name) in _PRONOUNS


def relation_words(subject: str, predicate: str, object_: str) -> set[str]:
    """The tokens by which a search finds a relation."""
    return tokenizer.vocabulary(tokenizer.tokenise(f"{subject} {predicate_words(predicate)} {object_}"))
