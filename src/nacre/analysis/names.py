"""When are two names the same, and which words does a predicate have?"""

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


def fold(name: str) -> str:
    """Without regard to case, width and white space."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def predicate_words(predicate: str) -> str:
    """`worksAt`, `works_at` and `works-at` as `works at`."""
    return fold(_CAMEL.sub(" ", predicate).replace("_", " ").replace("-", " "))


def is_pronoun(name: str) -> bool:
    """Whether a name says who only where it is said."""
    return fold(name) in _PRONOUNS


def relation_words(subject: str, predicate: str, object_: str) -> set[str]:
    """What a relation is found by."""
    return tokenizer.vocabulary(tokenizer.tokenise(f"{subject} {predicate_words(predicate)} {object_}"))
