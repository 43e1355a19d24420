"""What does a question mean in this store: which spaces, which entities, which words that may be misspelled?"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import lru_cache

from nacre.analysis import tokenizer
from nacre.interfaces import Store
from nacre.query import entities, spelling
from nacre.query.ast import AllOf, Condition, ParsedQuery, Term
from nacre.query.lexer import shown
from nacre.query.parser import parse
from nacre.types.memory import Memory
from nacre.types.search import DidYouMean, Filter
from nacre.types.stats import Frequencies
from nacre.validation import Limits

_CORRECTED_WORDS_MAX = 5  # unknown words of one query that suggestions are looked for
_RELATED_TERMS_MAX = 24  # most telling words of a memory that its relatives are looked for with


class QueryResolver:
    """Reads questions with what a store knows."""

    def __init__(self, store: Store, limits: Limits, zone: tzinfo | None) -> None:
        self._store = store
        self._limits = limits
        self._zone = zone

    def understand(self, query: str, now: datetime, *, relaxed: bool = False) -> ParsedQuery:
        """What is asked, with times such as "yesterday" seen from `now`."""
        text = query.encode("utf-8", "replace").decode()  # lone surrogates cannot be stored, so never match
        most = self._limits.query_chars_max
        # A single character may stand for eighteen when it is normalised: those count.
        most = min(most, most * most // max(1, len(unicodedata.normalize("NFKC", text[:most]))))
        question = parse(text[:most], now, self._zone, relaxed=relaxed)
        notes = []
        if len(text) > most:
            notes.append(f"the query has {len(text):,} characters; the first {most:,} were used")
        if not question.terms and not question.meaning.strip() and not question.listing:
            notes.append("the query asks for nothing: give some words")
        return replace(question, notes=(*question.notes, *notes)) if notes else question

    def in_store(self, question: ParsedQuery, where: Filter, also: Condition | None) -> ParsedQuery:
        """The question with the aliases of the entities it asks for, and with what must hold besides."""
        must = question.must
        asked = list(dict.fromkeys(entities.names(must)))
        if must is not None and asked:
            aliases = {name: self.other_names(name, where.spaces) for name in asked}
            must = entities.with_aliases(must, aliases)
        if also is not None:
            must = also if must is None else AllOf((must, also))
        return question if must is question.must else replace(question, must=must)

    def other_names(self, name: str, spaces: Sequence[str]) -> list[str]:
        """All names of the entities that are called so; none where there is no such entity."""
        found = self._store.entities(spaces, [name], self._limits.entities_max)
        return list(dict.fromkeys(each for entity in found for each in (entity.name, *entity.aliases)))

    def frequencies(self, question: ParsedQuery, where: Filter) -> Frequencies:
        """Of all words that are asked for, and of those that may be misspelled."""
        spelled = (token for word, _ in question.spelled for token in _known_as(word))
        return self._store.frequencies(
            list(dict.fromkeys([*(term.text for term in question.terms), *spelled])), where.spaces
        )

    def did_you_mean(self, question: ParsedQuery, where: Filter, known: Frequencies) -> DidYouMean | None:
        """Known words in place of those that no memory has."""
        if not known.memories:
            return None
        unknown = [each for each in question.spelled if known.having.keys().isdisjoint(_known_as(each[0]))]
        meant = {
            word: best
            for word, _ in unknown[:_CORRECTED_WORDS_MAX]
            if (best := spelling.best(word, self._store.spellings(word, where.spaces)))
        }
        if not meant:
            return None
        text = question.text
        places = [(place, meant[word][0]) for word, several in unknown if word in meant for place in several]
        for place, instead in sorted(places, reverse=True):  # from the end, so that the other places stay
            text = text[: place.start] + instead + text[place.end :]
        return DidYouMean(text, meant)

    def telling(self, known: Memory, where: Filter) -> ParsedQuery:
        """A question made of the words that tell a memory from others."""
        tokens = [token for token in tokenizer.asked(known.text) if not tokenizer.is_common(token)]
        having = self._store.frequencies(tokens, where.spaces).having
        rare = sorted(tokens, key=lambda token: (having.get(token, 0), token))
        return ParsedQuery(tuple(Term(token) for token in rare[:_RELATED_TERMS_MAX]), None, "")


def aimed(question: ParsedQuery, named: Sequence[str], where: Filter) -> Filter:
    """The filter with the spaces the query names, but none beyond those the caller named."""
    if not question.spaces:
        return where
    return replace(where, spaces=tuple(space for space in question.spaces if not named or space in named))


def not_allowed(question: ParsedQuery) -> str:
    return f"space:{shown(','.join(question.spaces))} is not among the spaces this search may see"


@lru_cache(maxsize=1 << 12)  # words repeat
def _known_as(word: str) -> tuple[str, ...]:
    """The tokens any of which shows that a word is known."""
    return word, *tokenizer.asked(word)
