"""What else a word is looked up by, in the language of its text: its stem, and what is left without written prefixes.

The tokenizer stems every text in Latin letters as English. A memory in another language has the stems of that language
as further forms, and a query in it looks them up beside the words as they are: what is spelled the same ranks first,
and where a language was taken for another one, no exact match is lost. Both together weigh as much as one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

import Stemmer

from nacre.analysis import tokenizer
from nacre.analysis.languages import known
from nacre.types.memory import Memory, Tokens

STEM_SHARE = 0.7  # of the weight of a word: that of its stem; the word itself has the rest
PART_SHARE = 0.3  # of each part of a compound, which only adds to the word
_PART_CHARS_MIN = 4
_CACHED_CHUNKS_MAX = 1 << 14
_STEMMED_CHARS = range(3, 40)
_WITHOUT_PREFIX_MIN = 3  # letters that a word must have without its prefixes
_HEBREW_ARTICLE = "ה"
_PREFIXES_MAX = 2
_TURKISH_CAPITALS = str.maketrans({"I": "ı", "İ": "i"})
_ROMANIAN_CEDILLAS = str.maketrans("şţŞŢ", "șțȘȚ")


NO_COMPOUNDS: Mapping[str, Sequence[str]] = MappingProxyType({})


class Sought(NamedTuple):
    """A token that a query looks up, its share of the weight of its word, and whether any text may have the word."""

    token: str
    share: float = 1.0
    common: bool = False


class Words(NamedTuple):
    """How the words of a query are read: its language, whether their forms in it are looked up, and parts of some."""

    language: str | None
    inflected: bool = True
    compounds: Mapping[str, Sequence[str]] = NO_COMPOUNDS


class Word(NamedTuple):
    """A word of a chunk, without diacritics, as it is written, and its forms in a language."""

    plain: str
    exact: str
    forms: tuple[str, ...]


def marker(language: str) -> str:
    """The token that every memory in this language has, if its words have forms. No word of a text is one."""
    return f"~{language}"


@cache
def inflects(language: str | None) -> bool:
    """Whether words of a language have forms here."""
    about = known(language)
    return about is not None and bool(about.stemmer or about.prefixes)


def tokens_of(memory: Memory) -> Tokens:
    """The tokens of a memory's text, summary, tags and source."""
    tokens = tokenizer.tokenise(memory.text, memory.summary or "", memory.tags, memory.source or "")
    return with_forms(tokens, memory.text, memory.language)


def with_forms(tokens: Tokens, text: str, language: str | None) -> Tokens:
    """The tokens of a text with the forms that its words have in its language."""
    if language is None or not inflects(language):
        return tokens
    more = [form for raw in text.split() for form in forms_in(language, raw)]
    return tokens._replace(forms=(*tokens.forms, *more, marker(language)))


@lru_cache(maxsize=_CACHED_CHUNKS_MAX)
def forms_in(language: str, raw: str) -> tuple[str, ...]:
    """The forms of a chunk in a language that the tokenizer does not give."""
    chunk = tokenizer.analyse(raw)
    there = {*chunk.words, *chunk.forms}
    return tuple(dict.fromkeys(form for word in words_in(language, raw) for form in word.forms if form not in there))


def words_in(language: str, raw: str) -> Iterator[Word]:
    """The words of a chunk with their forms. Parts of identifiers with digits are no words."""
    forms = _forms(language)
    if language == "tr":
        raw = raw.partition("'")[0].partition("’")[0].translate(_TURKISH_CAPITALS)
    elif language == "ro":
        raw = raw.translate(_ROMANIAN_CEDILLAS)
    for exact in tokenizer.written_words(raw):
        plain = tokenizer.without_diacritics(exact)
        yield Word(plain, exact, forms(exact) if len(exact) in _STEMMED_CHARS else (plain,))


@cache
def _forms(language: str) -> Callable[[str], tuple[str, ...]]:
    """What gives the forms of a word: its stem, or the word with fewer and fewer of its prefixes."""
    about = known(language)
    assert about is not None
    if about.prefixes:
        prefixes = about.prefixes

        def bare(word: str) -> tuple[str, ...]:
            plain = tokenizer.without_diacritics(word)
            found = [plain]
            least = _WITHOUT_PREFIX_MIN - (plain[0] == _HEBREW_ARTICLE)
            while plain[0] in prefixes and len(plain) > least and len(found) <= _PREFIXES_MAX:
                plain = plain[1:]
                found.append(plain)
            return tuple(found)

        return bare
    assert about.stemmer is not None
    stem, articles, endings = Stemmer.Stemmer(about.stemmer, 0).stemWord, about.articles, about.endings

    def stemmed(word: str) -> tuple[str, ...]:
        article = next((each for each in articles if word.startswith(each) and len(word) > len(each) + 1), "")
        several = (word, word[len(article) :]) if articles else (word,)
        return tuple(dict.fromkeys(tokenizer.without_diacritics(stem(regular(each))) or each for each in several))

    def regular(word: str) -> str:
        for ending, instead in endings:
            if word.endswith(ending) and len(word) > len(ending) + 1:
                return word[: -len(ending)] + instead
        return word

    return stemmed


def inflected(words: Words) -> str | None:
    """The language in which forms of words are looked up, if there is one."""
    return words.language if words.inflected and inflects(words.language) else None


def splits(language: str, text: str) -> dict[str, list[tuple[str, str]]]:
    """By word of a text, the stems of two words that it may be a compound of; those of most even length first."""
    about = known(language)
    if about is None or not about.linking:
        return {}
    words = {word.exact: word.plain for raw in dict.fromkeys(text.split()) for word in words_in(language, raw)}
    found = {plain: list(_splits(language, exact)) for exact, plain in words.items()}
    return {plain: pairs for plain, pairs in found.items() if pairs}


@lru_cache(maxsize=_CACHED_CHUNKS_MAX)
def _splits(language: str, word: str) -> Sequence[tuple[str, str]]:
    about, forms = known(language), _forms(language)
    assert about is not None
    listed: dict[tuple[str, str], int] = {}
    for at in range(_PART_CHARS_MIN, len(word) - _PART_CHARS_MIN + 1):
        first, second = word[:at], word[at:]
        for link in about.linking:
            head = first.removesuffix(link) if first.endswith(link) else ""
            if len(head) >= _PART_CHARS_MIN:
                listed.setdefault((forms(head)[0], forms(second)[0]), min(len(head), len(second)))
    return sorted(listed, key=lambda pair: -listed[pair])


def sought(text: str, words: Words) -> tuple[Sought, ...]:
    """What a query with this text looks up, each token once, in order."""
    language = inflected(words)
    if language is None:
        return tuple(_as_it_is(token, words.language) for token in tokenizer.query_tokens(text))
    compounds = words.compounds
    found: dict[str, Sought] = {}
    for raw in text.split():
        for each in _sought_in(language, raw):
            other = found.get(each.token)
            found[each.token] = each if other is None or each.share > other.share else other
        for word in words_in(language, raw) if compounds else ():
            for part in compounds.get(word.plain, ()):
                found.setdefault(part, Sought(part, PART_SHARE))
    return tuple(found.values())


def _as_it_is(token: str, language: str | None) -> Sought:
    return Sought(token, common=tokenizer.is_common(token) or token in stop_words(language))


@lru_cache(maxsize=_CACHED_CHUNKS_MAX)
def _sought_in(language: str, raw: str) -> Sequence[Sought]:
    words = list(words_in(language, raw))
    usual = tokenizer.analyse(raw)
    if [word.plain for word in words] != list(usual.words) and language != "tr":  # numbers, identifiers, other scripts
        return tuple(_as_it_is(token, language) for token in usual.query_tokens)
    found: list[Sought] = []
    for word in words:
        plain, exact = word.plain, word.exact
        if exact in stop_words(language) or tokenizer.is_common(plain):
            found.append(Sought(plain, common=True))
            continue
        forms = [each for each in word.forms if each != plain] or [plain]
        spellings = [each for each in dict.fromkeys((plain, exact)) if each not in forms]
        found += (Sought(each, (STEM_SHARE if spellings else 1.0) / len(forms)) for each in forms)
        found += (Sought(each, (1 - STEM_SHARE) / len(spellings)) for each in spellings)
    if len(words) > 1:  # what is written together ranks first
        found += (Sought(token) for token in usual.query_tokens if not token.isalpha())
    return found


@cache
def stop_words(language: str | None) -> frozenset[str]:
    """The words that any text in a language may have: as they are written, and as the tokenizer gives them."""
    about = known(language)
    listed = about.stop_words.split() if about else []
    tokens = (token for word in listed for token in (*tokenizer.analyse(word).words, *tokenizer.query_tokens(word)))
    return frozenset((*listed, *tokens))
