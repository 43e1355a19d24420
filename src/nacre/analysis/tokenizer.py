"""The tokeniser of documents and queries, for every store.

A text is split at white space into chunks, and each chunk is analysed by itself. Chunks repeat, so a cache of them
makes this fast in plain Python. The analysis of a chunk has

- `words`: its parts in order, NFKC normalised, case-folded, without diacritics. Phrases and prefixes match these,
  and their number is the length of the text.
- `forms`: other tokens for the same parts: stems, spellings with diacritics, whole identifiers (`snake_case`,
  `main.py:42`, `c++`), and the letters and digits of `gpt4` as separate tokens.
- `query_tokens`: the tokens that a query with this chunk looks up: stems where there are any, and whole identifiers.

Scripts written without spaces give bigrams of characters as words, and single characters as forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from sys import intern
from typing import NamedTuple, TypeAlias

import Stemmer

from nacre.analysis import stopwords
from nacre.types.memory import BREAK, Span, Tokens

VERSION = 3  # of the analysis; a store tokenised by another version is rebuilt when it is opened
TOKEN_CHARS_MAX = 64  # longer tokens are truncated: nobody types them, and they would bloat the vocabulary
_CACHED_CHUNK_CHARS_MAX = 64
_CACHED_CHUNKS_MAX = 1 << 16  # in each of the two generations of the cache
_STEMMED_CHARS = range(3, 40)

# Written without spaces: kana, Han, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and other marks are part of their word, but `\w` does not match them.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff"
    r"\u0f71-\u0f87\u135d-\u135f\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
)
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # ignored inside a word
_WITHOUT_INVISIBLE = dict.fromkeys(map(ord, _INVISIBLE))
_DIACRITICS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")

_PLAIN_LETTERS = str.maketrans(  # letters that people type without the stroke or the ligature
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "ŧ": "t", "þ": "th"}
)

_RUN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<spaced>(?:(?![{_UNSPACED}])[\w{_MARKS}{_INVISIBLE}.\-/:@#+&\\~'’])+)"
)
# The same for texts without unspaced scripts, and for ASCII: much faster.
_SPACED_RUN = re.compile(rf"[\w{_MARKS}{_INVISIBLE}.\-/:@#+&\\~'’]+")
_ASCII_RUN = re.compile(r"[\w.\-/:@#+&\\~']+", re.ASCII)
_APOSTROPHES = re.compile(r"['’]s?$|['’]")
# l'été, d'accord, qu'elle, dell'arte: the article is not part of the word. o'clock and don't are not split.
_ELIDED = re.compile(r"(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu|(?:d[ae]|ne|su|a)ll|un)['’](?=\w\w)", re.IGNORECASE)
_CORE = re.compile(rf"(?:#(?=\d)|\.(?=[^\W\d]))?[\w{_MARKS}](?:.*[\w{_MARKS}])?(?:\+\+|[+#])?")
_PART = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGIT = re.compile(r"\d")
_LETTERS_OR_DIGITS = re.compile(rf"\d+|(?:[^\W\d]|[{_MARKS}]){{2,}}")
_UNIGRAM = re.compile(rf"[{_UNSPACED}]")

_EDGES = "()[]{}<>\"',;:!?*`“”‘’«»|"
_ENDS = _EDGES + "."

# The script selects the stemmer; Latin letters are taken as English. `_cache` is the only cache of stems.
_english = Stemmer.Stemmer("english", 0)
_BY_SCRIPT = tuple(
    (range(first, last + 1), Stemmer.Stemmer(language, 0))
    for first, last, language in (
        (0x0370, 0x03FF, "greek"),
        (0x0400, 0x052F, "russian"),
        (0x0530, 0x058F, "armenian"),
        (0x0600, 0x06FF, "arabic"),
        (0x0900, 0x097F, "hindi"),
        (0x0B80, 0x0BFF, "tamil"),
    )
)
_COMMON: frozenset[str] = stopwords.WORDS | frozenset(_english.stemWords(sorted(stopwords.WORDS)))


# Plain tuples of strings: the garbage collector stops tracking them, but would visit every Chunk again and again.
_Analysis: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], int]


class _ChunkCache(dict[str, _Analysis]):
    """Chunks repeat, and a dictionary that computes what is missing is the fastest cache for them."""

    def __missing__(self, raw: str) -> _Analysis:
        return _analyse_cached(raw)


# Two generations: a full first one becomes the second, so that chunks still in use are not analysed again.
_cache, _older_cache = _ChunkCache(), _ChunkCache()


class Chunk(NamedTuple):
    """The analysis of a chunk."""

    words: tuple[str, ...]
    forms: tuple[str, ...]
    query_tokens: tuple[str, ...]
    length: int  # number of words, plus one for each that lost diacritics, so that the exact spelling ranks higher


_EMPTY = Chunk((), (), (), 0)


@lru_cache(maxsize=1)
def chunks(text: str) -> Sequence[str]:
    """The chunks of a text. The last result is cached, because fact extraction splits the same text."""
    return text.split()


def tokenise(text: str, summary: str = "", tags: Sequence[str] = (), source: str = "") -> Tokens:
    """The tokens of a text and of its labels, as they are indexed."""
    words: list[str] = []
    forms: list[str] = []
    length = 0
    for chunk_words, chunk_forms, _, chunk_length in map(_cache.__getitem__, chunks(text)):
        words += chunk_words
        if chunk_forms:
            forms += chunk_forms
        length += chunk_length
    if not (summary or tags or source):
        return Tokens(tuple(words), tuple(forms), length)
    labels = [_label(each) if any(each) else () for each in ((summary,), tags, (source,))]
    return Tokens(tuple(words), tuple(forms), length, *labels)


def _label(texts: Iterable[str]) -> tuple[str, ...]:
    """All tokens of these texts in one row: the words of each text adjacent, every form between breaks."""
    row: list[str] = []
    for text in texts:
        tokens = tokenise(text)
        row += [*tokens.words, BREAK]
        for form in tokens.forms:
            row += (form, BREAK)
    return tuple(row[:-1])


def vocabulary(tokens: Tokens) -> set[str]:
    """The distinct tokens of a memory."""
    found = {*tokens.words, *tokens.forms, *tokens.summary, *tokens.tags, *tokens.source}
    found.discard(BREAK)
    return found


def query_tokens(text: str) -> tuple[str, ...]:
    """The tokens that a query with this text looks up, each once, in order."""
    return tuple(dict.fromkeys(token for raw in text.split() for token in analyse(raw).query_tokens))


def chunks_with_spans(text: str, wanted: Set[str] | None = None) -> Iterator[tuple[Span, Chunk]]:
    """The chunks of a text with their spans, for snippets.

    Runs of unspaced scripts give one chunk per character, or only the `wanted` tokens where these are given.
    """
    for run in _RUN.finditer(text):
        start, end = run.span()
        if run.lastgroup == "spaced":
            core = _CORE.search(run.group())
            if core is not None:
                yield Span(start + core.start(), start + core.end()), analyse(run.group())
            continue
        if wanted is not None:
            for i in range(start, end):
                for token in (text[i], text[i : min(end, i + 2)]):
                    if token in wanted:
                        yield Span(i, i + len(token)), Chunk((token,), (), (), 1)
            continue
        for i in range(start, end):  # a bigram belongs to both of its characters
            around = text[max(start, i - 1) : min(end, i + 2)]
            pairs = tuple(around[j : j + 2] for j in range(len(around) - 1))
            yield Span(i, i + 1), Chunk(pairs, (text[i],), (), 1)


def analyse(raw: str) -> Chunk:
    """The tokens of one chunk without white space."""
    return Chunk(*_cache[raw])


def _analyse_cached(raw: str) -> _Analysis:
    global _cache, _older_cache
    chunk = _older_cache.get(raw)
    core = raw
    if chunk is None:
        core = raw.lstrip(_EDGES).rstrip(_ENDS)  # most chunks are in the cache once punctuation is removed
        chunk = _cache.get(core) or _older_cache.get(core) or _analyse(core)
    if len(raw) <= _CACHED_CHUNK_CHARS_MAX:
        if len(_cache) >= _CACHED_CHUNKS_MAX:
            _cache, _older_cache = _ChunkCache(), _cache
        _cache[raw] = _cache[core] = chunk
    return chunk


def _analyse(raw: str) -> _Analysis:
    plain = _analyse_plain(raw)
    if plain is not None:
        return plain
    if raw.isascii():
        parsed = [_analyse_spaced(run) for run in _ASCII_RUN.findall(raw)]
    else:
        normal = unicodedata.normalize("NFKC", raw).translate(_WITHOUT_INVISIBLE)
        if _UNIGRAM.search(normal) is None:
            parsed = [_analyse_spaced(run) for run in _SPACED_RUN.findall(normal)]
        else:
            runs = [(run.group(), run.lastgroup) for run in _RUN.finditer(normal)]
            parsed = [_bigrams(run) if kind == "unspaced" else _analyse_spaced(run) for run, kind in runs]
    return (
        tuple([intern(token) for chunk in parsed for token in chunk.words]),
        tuple([intern(token) for chunk in parsed for token in chunk.forms]),
        tuple([token for chunk in parsed for token in chunk.query_tokens]),
        sum([chunk.length for chunk in parsed]),
    )


def _analyse_plain(raw: str) -> _Analysis | None:
    """The analysis of a plain English word or number, which most chunks are; None for others."""
    if not raw.isascii():
        return None
    if raw.isalpha() and (raw[1:].islower() or raw.isupper() or len(raw) == 1):
        lower = raw.lower()
        known = _cache.get(lower) or _older_cache.get(lower)
        if known is not None:
            return known
        word = intern(lower[:TOKEN_CHARS_MAX])
        stem = intern(_english.stemWord(word)) if len(word) in _STEMMED_CHARS else word
        return (word,), () if stem == word else (stem,), (stem,), 1
    if raw.isdigit():
        number = (raw[:TOKEN_CHARS_MAX],)
        return number, (), number, 1
    return None


def _bigrams(run: str) -> Chunk:
    """Bigrams of a run of an unspaced script, and single characters, so that a query of one character matches."""
    if len(run) == 1:
        return Chunk((run,), (), (run,), 1)
    pairs = tuple(run[i : i + 2] for i in range(len(run) - 1))
    return Chunk(pairs, tuple(run), pairs, len(pairs))


def _analyse_spaced(run: str) -> Chunk:
    """Words and identifiers of a spaced script: the parts in order, the whole as a form."""
    words: list[str] = []
    forms: list[str] = []
    query: list[str] = []
    folded = 0
    core = _CORE.search(run)
    if core is None:
        return _EMPTY
    whole = core.group()
    quoted = "'" in whole or "’" in whole
    elided = _ELIDED.match(whole) if quoted else None
    bare = _APOSTROPHES.sub("", whole) if quoted else whole
    for part in _PART.findall(_APOSTROPHES.sub("", whole[elided.end() :]) if elided else bare):
        plain = _analyse_plain(part)
        if plain is not None:
            words += plain[0]
            forms += plain[1]
            query += plain[2]
            continue
        for piece in (part,) if part.islower() else _CAMEL_CASE.split(part):
            exact = piece.casefold()[:TOKEN_CHARS_MAX]
            word = without_diacritics(exact)
            stem = _stem(exact) if word.isascii() == exact.isascii() else _stem(word)
            if stem == exact:
                stem = word
            words.append(word)
            query.append(stem)
            if stem != word:
                forms.append(stem)
            if exact != word:
                forms.append(exact)
                query.append(exact)
                folded += 1
            if not word.isalpha() and not word.isdigit() and _DIGIT.search(word):
                forms += [_stem(each) for each in _LETTERS_OR_DIGITS.findall(word) if each != word]
    whole = _stem(without_diacritics(bare.casefold()))
    if words and len(whole) <= TOKEN_CHARS_MAX and (elided or len(words) > 1 or not _PART.fullmatch(whole)):
        forms.append(whole)
        query.append(whole)
    return Chunk(tuple(words), tuple(forms), tuple(query), len(words) + folded)


def written_words(raw: str) -> Iterator[str]:
    """The words of a chunk in a spaced script, case-folded, with their diacritics. What has digits is no word."""
    normal = raw if raw.isascii() else unicodedata.normalize("NFKC", raw).translate(_WITHOUT_INVISIBLE)
    for run in _RUN.finditer(normal):
        core = _CORE.search(run.group()) if run.lastgroup == "spaced" else None
        if core is None:
            continue
        whole = core.group()
        elided = _ELIDED.match(whole)
        for part in _PART.findall(_APOSTROPHES.sub("", whole[elided.end() :] if elided else whole)):
            if not _DIGIT.search(part):
                for piece in (part,) if part.islower() else _CAMEL_CASE.split(part):
                    yield piece.casefold()[:TOKEN_CHARS_MAX]


def is_common(token: str) -> bool:
    """Whether a token is an English stop word, or the stem of one."""
    return token in _COMMON


def is_unigram(token: str) -> bool:
    """Whether a token is a single character of an unspaced script. Such tokens are forms, not words."""
    return _UNIGRAM.fullmatch(token) is not None


def word_around(text: str, part: Span) -> Span:
    """The word that a part of a text belongs to. Scripts written without spaces have one word for each character."""
    start, end = part
    while start > max(0, part.start - TOKEN_CHARS_MAX) and _is_inside_word(text[start - 1]):
        start -= 1
    while end < min(len(text), part.end + TOKEN_CHARS_MAX) and _is_inside_word(text[end]):
        end += 1
    return part if any(map(is_unigram, text[part.start : part.end])) else Span(start, end)


def _is_inside_word(char: str) -> bool:
    return _PART.match(char) is not None and not is_unigram(char)


def without_diacritics(text: str) -> str:
    """The text without diacritics. Vowel signs of Indic scripts stay, because they distinguish words."""
    if text.isascii():
        return text
    text = text.translate(_PLAIN_LETTERS)
    bare = _DIACRITICS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare) or text


def _stem(word: str) -> str:
    """The stem of a word. Tokens with digits are not stemmed, so that identifiers stay whole."""
    if len(word) not in _STEMMED_CHARS or not (word.isalpha() or (_PART.fullmatch(word) and not _DIGIT.search(word))):
        return word
    if word.isascii():
        known = _cache.get(word) or _older_cache.get(word)
        stem: str = known[2][0] if known else _english.stemWord(word)
        return stem
    letter = ord(word[0])
    for letters, stemmer in _BY_SCRIPT:
        if letter in letters:
            return without_diacritics(stemmer.stemWord(word)) or word
    return word
