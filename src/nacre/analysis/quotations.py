"""Whether a query quotes a text: then it must not outlive the text in the recall log.

A query quotes a purged memory if it has a word of it that no memory has any more, such as a name or a secret, or a run
of four words of its texts (or all of a shorter text) that is not made of function words alone. A memory's words are
those of its texts, tags, source, metadata and facts. The rule errs on the side of clearing: a log that lacks the words
of a query does less harm than one that has the words of a purged memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

from nacre.analysis import tokenizer

RUN_WORDS = 4
_WORD = re.compile(r"\w+")


def significant_tokens(texts: Iterable[str]) -> set[str]:
    """The tokens of texts, as queries look them up, without function words."""
    return {token for text in texts for token in tokenizer.query_tokens(text) if not tokenizer.is_common(token)}


def found_in(words: Set[str], texts: Iterable[str]) -> set[str]:
    """Those of these words that stand in a text, in upper or lower case, also as parts of other words."""
    missing = set(words)
    for text in texts:
        if not missing:
            break
        folded = text.casefold()
        missing = {word for word in missing if word not in folded}
    return set(words) - missing


class Quotations:
    """Recognises queries that quote a memory with these texts. `gone` are those of its words that no memory has."""

    def __init__(self, texts: Iterable[str], gone: Set[str] = frozenset()) -> None:
        self._gone = gone
        self._runs: dict[int, set[tuple[str, ...]]] = {}  # by length
        for text in texts:
            words = _words(text)
            length = min(RUN_WORDS, len(words))
            if length:
                self._runs.setdefault(length, set()).update(_runs(words, length))

    def quoted_in(self, query: str) -> bool:
        if not self._gone.isdisjoint(tokenizer.query_tokens(query)):
            return True
        words = _words(query)
        return any(not runs.isdisjoint(_runs(words, length)) for length, runs in self._runs.items())


def _words(text: str) -> list[str]:
    """The words in lower case. Each character of a script without spaces is a word."""
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not any(map(tokenizer.is_unigram, word)):
            words.append(word)
        else:
            words += word
    return words


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    """All runs of so many words that say something."""
    significant = [not tokenizer.is_common(word) for word in words]
    for at in range(len(words) - length + 1):
        if any(significant[at : at + length]):
            yield tuple(words[at : at + length])
