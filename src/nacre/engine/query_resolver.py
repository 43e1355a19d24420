"""What a query means in this store: names of entities, document frequencies, and words that may be misspelled."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import lru_cache

from nacre import validation
from nacre.analysis import tokenizer
from nacre.analysis.language import CLEAR_CHARS, language_of, likely_language
from nacre.analysis.languages import CODES
from nacre.analysis.word_forms import Words, marker, sought, splits
from nacre.interfaces import Store
from nacre.query import entities, ordinary_words, spelling
from nacre.query.ast import AllOf, Condition, ParsedQuery, Term, matches_everything
from nacre.query.lexer import preview
from nacre.query.parser import parse
from nacre.types.memory import Memory
from nacre.types.search import DidYouMean, Filter
from nacre.types.stats import Frequencies
from nacre.validation import Limits

_CORRECTED_WORDS_MAX = 5  # unknown words of one query that get a suggestion
_PARTS_MAX = 2_000  # of compounds that are looked up; a longer text is no question
_RELATED_TERMS_MAX = 24  # rarest words of a memory that `related` searches with


class QueryResolver:
    """Parses queries and completes them with what the store knows."""

    def __init__(self, store: Store, limits: Limits, zone: tzinfo | None) -> None:
        self._store = store
        self._limits = limits
        self._zone = zone

    def parse(
        self,
        text: str,
        now: datetime,
        spaces: Sequence[str],
        *,
        split_phrases: bool = False,
        timeless: bool = False,
        every: bool = False,
    ) -> ParsedQuery:
        """Parse a query. Times such as "yesterday" are relative to `now`."""
        text = validation.findable(text)
        most = self._limits.query_chars_max
        # NFKC can expand one character into eighteen: the limit counts expanded characters.
        most = min(most, most * most // max(1, len(unicodedata.normalize("NFKC", text[:most]))))
        text_read = text[:most]
        language = self._language(text_read, spaces)
        query = parse(
            text_read,
            now,
            self._zone,
            relaxed=split_phrases,
            timeless=timeless,
            every=every,
            language=language,
            compounds=self._compounds(text_read, language, spaces),
        )
        notes = []
        if len(text) > most:
            notes.append(f"the query has {len(text):,} characters; the first {most:,} were used")
        if not query.terms and not query.meaning.strip() and not query.listing:
            notes.append("the query asks for nothing: give some words")
        return replace(query, notes=(*query.notes, *notes)) if notes else query

    def _language(self, text: str, spaces: Sequence[str]) -> str | None:
        """The language whose forms of words are looked up: one that memories are in, if it is likely."""
        found = language_of(text)
        if found == "en":
            return None
        markers = {marker(code): code for code in CODES}
        known = self._store.frequencies(list(markers), spaces)
        having = {markers[token]: number for token, number in known.having.items()}
        clear = found in having and len(text) >= CLEAR_CHARS
        return found if clear else likely_language(text, having, known.memories)

    def _compounds(self, text: str, language: str | None, spaces: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The words of a text that are made of two words which memories have."""
        pairs = splits(language, text) if language else {}
        parts = list(dict.fromkeys(part for several in pairs.values() for pair in several for part in pair))
        if not parts or len(parts) > _PARTS_MAX:
            return {}
        having = self._store.frequencies(parts, spaces).having.keys()
        known = {word: next((pair for pair in several if having >= set(pair)), None) for word, several in pairs.items()}
        return {word: pair for word, pair in known.items() if pair}

    def resolve(self, query: ParsedQuery, spaces: Sequence[str], also: Condition | None) -> ParsedQuery:
        """Add the aliases of the entities that a query names, and the condition `also`."""
        must = query.must
        asked = list(dict.fromkeys(entities.entity_names(must)))
        if must is not None and asked:
            aliases = {name: self.names_of(name, spaces) for name in asked}
            must = entities.with_aliases(must, aliases)
        if also is not None:
            must = also if must is None else AllOf((must, also))
        return query if must is query.must else replace(query, must=must)

    def names_of(self, name: str, spaces: Sequence[str]) -> list[str]:
        """All names of the entities that have this name or alias; empty where there is none."""
        found = self._store.entities(spaces, [name], self._limits.entities_max)
        return list(dict.fromkeys(each for entity in found for each in (entity.name, *entity.aliases)))

    def frequencies(self, query: ParsedQuery, spaces: Sequence[str]) -> Frequencies:
        """Document frequencies of the query's terms, and of words that may be misspelled."""
        spelled = (token for word, _ in query.spelled for token in _tokens_of(word, query.language))
        tokens = list(dict.fromkeys([*(term.text for term in query.terms), *spelled]))
        return self._store.frequencies(tokens, spaces, [term.text for term in query.terms if term.prefix])

    def did_you_mean(self, query: ParsedQuery, spaces: Sequence[str], known: Frequencies) -> DidYouMean | None:
        """The query with each word that no memory has and that is not ordinary replaced by the likeliest known one."""
        if not known.memories:
            return None
        unknown = [
            each
            for each in query.spelled
            if known.having.keys().isdisjoint(_tokens_of(each[0], query.language))
            and not ordinary_words.is_listed(each[0])
        ]
        suggestions = {
            word: best
            for word, places in unknown[:_CORRECTED_WORDS_MAX]
            if (best := spelling.suggestions(word, self._store.spellings(word, spaces)))
            and (
                not ordinary_words.is_ordinary(word)
                or any(spelling.is_written_as_name(query.text, place) for place in places)
            )
        }
        if not suggestions:
            return None
        text = query.text
        places = [
            (place, suggestions[word][0]) for word, several in unknown if word in suggestions for place in several
        ]
        for place, suggestion in sorted(places, reverse=True):  # from the end, so that earlier places stay valid
            text = text[: place.start] + suggestion + text[place.end :]
        return DidYouMean(text, suggestions)

    def lacking(self, query: ParsedQuery, loose: ParsedQuery, where: Filter) -> str:
        """Says that no memory has all words, and how many have some. `loose` is the query that asks for any of them."""
        words = preview(", ".join(query.every))
        none = "no memory" if matches_everything(where, loose.must) else "no memory that meets the other conditions"
        if len(query.every) == 1:
            return f"{none} has the word {words}"
        # The words of a phrase are terms too, but not among those that are asked for here.
        terms = tuple(term for several in query.every.values() for term in several)
        some = self._store.facet_counts(replace(loose, terms=terms), where).total
        if not some:
            return f"{none} has any of: {words}"
        return f"{none} has all of: {words}; {some:,} {'has' if some == 1 else 'have'} one of them or more"

    def like(self, memory: Memory, spaces: Sequence[str]) -> ParsedQuery:
        """A query made of a memory's rarest words."""
        tokens = [token for token in tokenizer.query_tokens(memory.text) if not tokenizer.is_common(token)]
        having = self._store.frequencies(tokens, spaces).having
        rare = sorted(tokens, key=lambda token: (having.get(token, 0), token))
        return ParsedQuery(tuple(Term(token) for token in rare[:_RELATED_TERMS_MAX]), None, "")


@lru_cache(maxsize=1 << 12)  # words repeat
def _tokens_of(word: str, language: str | None) -> tuple[str, ...]:
    """The tokens any of which shows that a word is known."""
    return word, *(each.token for each in sought(word, Words(language)))
