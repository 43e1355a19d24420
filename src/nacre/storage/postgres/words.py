"""The docs whose texts match conditions about words.

Postings say which docs have a token, and conditions join them as sets. That words stand side by side is then looked up
in the stored tokens, of the docs that have all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from nacre.query.ast import AllOf, AnyOf, Condition, Near, Phrase, Term, Without, condition_matches
from nacre.storage.postgres import postings, rows, vocabulary
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.postings import Array, sorted_unique
from nacre.storage.postgres.schema import Db
from nacre.types.memory import Memory, Tokens

_NONE = np.empty(0, np.int64)
_IN_ORDER = "t.words || t.summary || t.tags || t.source"  # two spaces are between them, so no phrase goes across
_OF_DOCS = (
    "FROM unnest(%s::bigint[]) AS given (doc) JOIN memories AS m ON m.space = ANY(%s) AND m.doc = given.doc "
    "JOIN tokens AS t ON t.space = m.space AND t.row = m.row"
)


class WordsOfSpaces:
    """Looks conditions up in the postings of some spaces, each once."""

    def __init__(self, db: Db, spaces: Sequence[str]) -> None:
        self._db = db
        self._spaces = list(spaces)
        self._known: dict[Condition, Array] = {}

    def docs(self, condition: Condition) -> Array:
        """Sorted. Some may be docs of memories that are forgotten or have other tokens by now."""
        if condition not in self._known:
            self._known[condition] = self._docs(condition)
        return self._known[condition]

    def _docs(self, condition: Condition) -> Array:
        match condition:
            case Term(text, prefix=True):
                return self._having(vocabulary.beginning_with(self._db, text, self._spaces), in_order=True)
            case Term(text):
                return self._having([text], in_order=False)
            case Phrase(words, prefix):
                return self._in_order(self._with_words(words, prefix), words, prefix)
            case Near(phrases):
                found = [self._with_words(each.words, each.prefix) for each in phrases]
                return self._near(condition, reduce(np.intersect1d, found))
            case AnyOf(parts):
                return sorted_unique(np.concatenate([_NONE, *map(self.docs, parts)]))
            case AllOf(parts):
                return reduce(np.intersect1d, map(self.docs, parts))
            case Without(wanted, unwanted) if wanted is not None:
                return np.setdiff1d(self.docs(wanted), self.docs(unwanted), assume_unique=True)
        raise AssertionError(condition)

    def _having(self, tokens: Sequence[str], *, in_order: bool) -> Array:
        """Docs with one of these tokens; `in_order`: other than as a form."""
        found = [_NONE]
        for entries in postings.lists(self._db, self._spaces, tokens).values():
            kept = _is_in_order(entries) if in_order else slice(None)
            found.append(entries["doc"][kept])
        return sorted_unique(np.concatenate(found))

    def _with_words(self, words: Sequence[str], prefix: bool) -> Array:
        """Docs with all of these words, the last of which may be a prefix, anywhere."""
        every = [self.docs(Term(word, prefix and at == len(words))) for at, word in enumerate(words, 1)]
        return reduce(np.intersect1d, every)

    def _in_order(self, docs: Array, words: Sequence[str], prefix: bool) -> Array:
        if not len(docs) or (len(words) == 1 and prefix):
            return docs
        phrase = f" {' '.join(words)}{'' if prefix else ' '}"
        sql = f"SELECT m.doc {_OF_DOCS} WHERE strpos({_IN_ORDER}, %s) > 0 ORDER BY m.doc"
        found = fetch(self._db, sql, (docs.tolist(), self._spaces, phrase))
        return np.array([doc for (doc,) in found], np.int64)

    def _near(self, condition: Near, docs: Array) -> Array:
        sql = f"SELECT m.doc, {rows.WORD_COLUMNS} {_OF_DOCS} ORDER BY m.doc"
        found = fetch(self._db, sql, (docs.tolist(), self._spaces)) if len(docs) else []
        return np.array([doc for doc, *columns in found if _matches(condition, rows.tokens(columns))], np.int64)


class WordsOfMemories:
    """Looks conditions up in the tokens of a few memories."""

    def __init__(self, db: Db, ids: Sequence[str]) -> None:
        sql = (
            f"SELECT m.doc, {rows.WORD_COLUMNS} FROM memories AS m JOIN tokens AS t ON t.space = m.space "
            "AND t.row = m.row WHERE m.id = ANY(%s) ORDER BY m.doc"
        )
        found = fetch(db, sql, (list(ids),)) if ids else []
        self._tokens = {doc: rows.tokens(columns) for doc, *columns in found}

    def docs(self, condition: Condition) -> Array:
        return np.array([doc for doc, tokens in self._tokens.items() if _matches(condition, tokens)], np.int64)


def _matches(condition: Condition, tokens: Tokens) -> bool:
    return condition_matches(condition, tokens, _NO_MEMORY)


def _is_in_order(entries: Array) -> Array:
    counts = entries["words"] + entries["summary"] + entries["tags"] + entries["source"]
    found: Array = counts > 0
    return found


_NO_MEMORY: Memory = None  # type: ignore[assignment]  # a condition about words does not look at it
