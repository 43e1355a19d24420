"""Which language is a text in? The ISO 639-1 code, or None: unknown is better than wrong.

The script decides where only one language has it. Where several share it, each word adds to the score of each language
by the n-grams of bytes that it has (see ngrams/README.md). All scores of a word are one large integer with sixteen bits
for each language, so the words of a text are summed up by one addition each, and words repeat: a note takes a few
microseconds. Code, names and very short texts are unknown. A text that does not clearly belong to one language has that
of most of its sentences.
"""

from __future__ import annotations

import re
import struct
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from math import log
from pathlib import Path
from typing import NamedTuple

from nacre.analysis.languages import known
from nacre.types.memory import Memory

_FOLDER = Path(__file__).parent / "ngrams"
_READ_CHARS = 400
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|[\n。！？]+")
_MOST = 0.6  # of a text: the share of the sentences of its language

# What the best language must be ahead by, in eighths of a natural logarithm, in a text of so many characters or more.
CLEAR_CHARS = 40
_AHEAD = {
    "latin": ((CLEAR_CHARS, 10), (15, 16), (0, 24)),
    "cyrillic": ((25, 10), (0, 16)),  # with letters of their own
    "arabic": ((15, 8), (0, 16)),
}
_AHEAD_OF_ITS_LIKE = 5  # of languages that are nearly the same, the better one is better than none
_ALIKE_CHARS_MIN = 25
_ALIKE = {"cs": "sk", "sk": "cs", "da": "no", "no": "da"}
_WORDS_MIN = 2
_FEW_WORDS = 4
_TELLING = 40  # a best score from which on others have to come near it
_PLAUSIBLE_SHARE = 0.6  # of the best score: that of a language that a short question may be in
_LIKELY = {"latin": "en", "cyrillic": "ru"}  # what most texts in a script are in, and by how much it is ahead
_LIKELY_SCORE = 5
_AHEAD_SHARE = 0.06  # of the best score: below, the sentences are read one by one
_PLAIN_SHARE = 0.6  # of the chunks of a text that are words, not names in code

_LANE = 16
_SCALE = 8  # of the scores: eighths of a natural logarithm
_WORD_BYTES_MAX = 70
_CACHED_CHARS_MAX = 40
_CACHED_CHUNKS_MAX = 1 << 15
_EDGES = "()[]{}<>\"',;:!?*`“”‘’«»„|.…–—-"
_PARTS = re.compile(r"['’\-–—]")
_WORD = re.compile(r"[^\W\d_]+")
_NO_LETTER = re.compile(r"[\d_!-/:-@\[-`{-~]")

# The first and last letters of each script, and what a letter counts: one of a script without spaces is half a word.
_SCRIPTS = (
    (0x0041, 0x024F, "latin", 1),
    (0x0370, 0x03FF, "el", 1),
    (0x0400, 0x052F, "cyrillic", 1),
    (0x0530, 0x058F, "hy", 1),
    (0x0590, 0x05FF, "he", 1),
    (0x0600, 0x077F, "arabic", 1),
    (0x0900, 0x097F, "devanagari", 1),
    (0x0980, 0x09FF, "bn", 1),
    (0x0A00, 0x0A7F, "pa", 1),
    (0x0A80, 0x0AFF, "gu", 1),
    (0x0B80, 0x0BFF, "ta", 1),
    (0x0C00, 0x0C7F, "te", 1),
    (0x0C80, 0x0CFF, "kn", 1),
    (0x0D00, 0x0D7F, "ml", 1),
    (0x0D80, 0x0DFF, "si", 1),
    (0x0E00, 0x0E7F, "th", 1),
    (0x0E80, 0x0EFF, "lo", 1),
    (0x1000, 0x109F, "my", 1),
    (0x10A0, 0x10FF, "ka", 1),
    (0x1200, 0x139F, "am", 1),
    (0x1780, 0x17FF, "km", 1),
    (0x1E00, 0x1EFF, "latin", 1),
    (0x3040, 0x30FF, "kana", 2),
    (0x3400, 0x4DBF, "han", 3),
    (0x4E00, 0x9FFF, "han", 3),
    (0xAC00, 0xD7AF, "ko", 3),
    (0xF900, 0xFAFF, "han", 3),
)
_FOREIGN_SHARE = 0.3  # names and code in Latin letters are in texts of any language
_KANA_SHARE = 0.1
_HAN_MIN = 5  # characters: fewer without kana may be Chinese or Japanese
_LETTERS_MIN = 3
# By n-grams of bytes, letters of three bytes each are hard to tell apart.
_HINDI = re.compile(
    r"(?:^|\s)(?:है|हैं|था|थी|थे|का|की|के|को|में|से|ने|और|यह|वह|कि|क्या|पर|लिए|मैं|मेरा|मेरी|मेरे|नहीं|कौन|कब|कहाँ|तो|फिर|भी|जो|इस|उस|एक|गया|गई|गए|हुआ|हुई|हुए|रहा|रही|रहे|कर|लेकिन|मुझे|हम)(?=\s|[?!।,]|$)"
)
_MARATHI = re.compile(
    r"(?:^|\s)(?:आहे|आहेत|आहेस|होता|होती|होते|आणि|मध्ये|नाही|हा|ही|हे|मी|माझा|माझी|माझे|ती|ते|काय|कोण|कधी|कुठे|साठी|या|आणि|असे|केले|केली|झाला|झाली|झाले)(?=\s|[?!।.,]|$)"
    r"|च्या|ांनी|ांना|ण्या|ळ"
)
# Letters that only one language of a script has, of those that are told apart by n-grams.
_LETTERS = {
    "cyrillic": (("ru", "ыэё"), ("uk", "їєґ"), ("be", "ў"), ("sr", "јљњћђџ"), ("bg", "ъ")),
    "arabic": (("ur", "ٹڈڑںےہ"),),
    "latin": (
        ("vi", "ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"),
        ("tr", "ğ"),
        ("ro", "țș"),
        ("es", "¿¡"),
        ("pl", "ł"),
        ("hu", "őű"),
        ("cs", "řě"),
        ("de", "ß"),
    ),
}
_LETTER_SCORE = 12


class _CharScripts(dict[str, tuple[str, int]]):
    """The script of each character and what it counts."""

    def __missing__(self, char: str) -> tuple[str, int]:
        number = ord(char)
        found = ("", 0)
        if char.isalpha() or not char.isascii():
            found = next(((name, each) for first, last, name, each in _SCRIPTS if first <= number <= last), ("", 0))
        self[char] = found
        return found


_char_scripts = _CharScripts()


class _Table(NamedTuple):
    """The n-grams of a script, and pairs of language and score for each."""

    languages: tuple[str, ...]
    grams: list[bytes]  # sorted
    starts: list[int]  # of the pairs of each
    pairs: bytes


class _Grams(dict[bytes, int]):
    """What each n-gram adds: a score for each language, in lanes of one int."""

    def __init__(self, table: _Table) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, gram: bytes) -> int:
        _, grams, starts, pairs = self._table
        place = bisect_left(grams, gram)  # a dictionary takes several times as long to load
        if place == len(grams) or grams[place] != gram:
            return 0
        found = pairs[2 * starts[place] : 2 * starts[place + 1]]
        score = sum(each << (_LANE * language) for language, each in zip(found[::2], found[1::2], strict=True))
        self[gram] = score
        return score


class _Scores(dict[str, int]):
    """What each chunk adds: a score for each language, then the numbers of words and of chunks, in lanes of one int."""

    def __init__(self, script: str) -> None:
        super().__init__()
        table = _load(script)
        self.languages = table.languages
        self._grams = _Grams(table)
        self._word = 1 << (_LANE * len(self.languages))
        self._chunk = self._word << _LANE

    def __missing__(self, chunk: str) -> int:
        core = chunk.strip(_EDGES)
        score = self._chunk if core else 0
        if core and (core[1:] == core[1:].lower() or core.isupper()):
            parts = [part.lower().encode(errors="replace")[:_WORD_BYTES_MAX] for part in _PARTS.split(core)]
            if _NO_LETTER.search(_PARTS.sub("", core)) is None:
                score = (score + self._word if len(core) > 1 else 0) + sum(map(self._of_word, parts))
        if len(chunk) <= _CACHED_CHARS_MAX:
            if len(self) >= _CACHED_CHUNKS_MAX:
                self.clear()
            self[chunk] = score
        return score

    def _of_word(self, word: bytes) -> int:
        grams = self._grams
        if len(word) <= 4:
            return grams[b" " + word + b" "]
        score = grams[b" " + word[:4]] + grams[word[-4:] + b" "]
        for start in range(3, len(word) - 4, 3):
            score += grams[word[start : start + 4]]
        return score


def _load(script: str) -> _Table:
    data = zlib.decompress((_FOLDER / f"{script}.z").read_bytes())
    lengths = struct.unpack_from("<4I", data)
    ends = list(accumulate(lengths, initial=struct.calcsize("<4I")))
    names, grams, sizes, pairs = (data[start:end] for start, end in pairwise(ends))
    return _Table(tuple(names.decode().split()), grams.split(b"\n"), list(accumulate(sizes, initial=0)), pairs)


_scores = cache(_Scores)


def language_of(text: str) -> str | None:
    """The language that a text is in, or None if it is not clear."""
    text = text[:_READ_CHARS]
    script = "latin" if text.isascii() else _script_of(text)
    if not script or len(script) == 2:
        return script or None
    if script == "devanagari":
        hindi, marathi = len(_HINDI.findall(text)), len(_MARATHI.findall(text))
        return None if hindi == marathi else "hi" if hindi > marathi else "mr"
    found, clear = _best(script, text)
    if clear:
        return found
    sentences = [each for each in _SENTENCE_END.split(text) if each.strip()]
    if len(sentences) < 2:
        return found
    votes: Counter[str | None] = Counter()
    for sentence in sentences:
        votes[_best(script, sentence)[0]] += len(sentence)
    most, letters = votes.most_common(1)[0]
    return most if letters >= _MOST * votes.total() else None


def likely_language(text: str, having: Mapping[str, int], memories: int) -> str | None:
    """The likeliest language of a question that is too short to be clear, by how many memories are in each.

    Memories in no language of `having` are taken as English. None: it is English, or there is nothing to go by.
    """
    script = _script_of(text[:_READ_CHARS])
    if script not in _LETTERS or not having:
        return None
    languages, found, words, chunks = _sums(script, text[:_READ_CHARS])
    if not words or words < _PLAIN_SHARE * chunks:
        return None
    most = max(found)
    least = _PLAUSIBLE_SHARE * most if most >= _TELLING else 0.0
    counts = {"en": memories - sum(having.values()), **having}
    scores = {
        language: score + _SCALE * log(counts[language] / memories)
        for language, score in zip(languages, found, strict=True)
        if counts.get(language, 0) > 0 and score >= least
    }
    best = max(scores, key=lambda language: scores[language], default="en")
    return None if best == "en" else best


def _sums(script: str, text: str) -> tuple[tuple[str, ...], list[int], int, int]:
    """The languages of a script with the scores of a text, and how many of its chunks are words."""
    scores = _scores(script)
    total = sum(map(scores.__getitem__, set(text.split())))  # a word that is repeated tells nothing new
    lanes = len(scores.languages) + 2
    *found, words, chunks = memoryview(total.to_bytes(2 * lanes, "little")).cast("H").tolist()
    return scores.languages, found, words, chunks


def _best(script: str, text: str) -> tuple[str | None, bool]:
    """The language of a text in one script, and whether it is clear or there is no more to find out."""
    languages, found, words, chunks = _sums(script, text)
    if words < _WORDS_MIN or words < _PLAIN_SHARE * chunks:
        return None, True
    if likely := _LIKELY.get(script):
        found[languages.index(likely)] += _LIKELY_SCORE
    own = set(text.lower())
    for language, letters in _LETTERS[script] if not text.isascii() else ():
        if not own.isdisjoint(letters):
            found[languages.index(language)] += _LETTER_SCORE
    best = max(found)
    place = found.index(best)
    found[place] = 0
    second = max(found)
    ahead = best - second
    wanted = next(wanted for least, wanted in _AHEAD[script] if len(text) >= least)
    if languages[found.index(second)] == _ALIKE.get(languages[place]) and len(text) >= _ALIKE_CHARS_MIN:
        wanted = _AHEAD_OF_ITS_LIKE
    if ahead < wanted:
        return None, False
    return languages[place], ahead >= _AHEAD_SHARE * best


def _script_of(text: str) -> str:
    """The language whose script the text is in, the script if several languages have it, or "" if it is not clear."""
    letters: Counter[str] = Counter()
    for (script, counts), number in Counter(map(_char_scripts.__getitem__, text)).items():
        letters[script] += counts * number
    del letters[""]
    if not letters:
        return ""
    eastern = letters["han"] + letters["kana"]
    if eastern and eastern >= _FOREIGN_SHARE * letters.total():
        if letters["kana"] >= max(2, _KANA_SHARE * eastern):
            return "ja"
        return "zh" if letters["han"] >= 3 * _HAN_MIN else ""
    latin = letters.pop("latin", 0)
    script, number = letters.most_common(1)[0] if letters else ("", 0)
    if number >= _FOREIGN_SHARE * (latin + letters.total()):
        return script if number >= _LETTERS_MIN else ""
    return "latin" if latin else ""


def with_language(memory: Memory) -> Memory:
    """The memory with its language recognised, if it has none."""
    found = None if memory.language else language_of(memory.text)
    return memory if found is None else replace(memory, language=found)


def language_of_question(text: str) -> str | None:
    """The language that a question is in. In plain letters it takes a function word to be in another than English.

    "Ada Acme" and "door codes" look like other languages, and are names and keywords: of so few words without a
    question mark, two must be function words.
    """
    found = language_of(text)
    if found is None or found == "en" or not text.isascii():
        return found
    words = _WORD.findall(text[:_READ_CHARS].lower())
    listed = sum(map(_function_words(found).__contains__, words))
    unheard = known(found) is None and len(words) >= _FEW_WORDS
    names_or_keywords = len(words) < _FEW_WORDS and not text.rstrip().endswith("?")
    return found if unheard or listed >= (2 if names_or_keywords else 1) else None


@cache
def _function_words(language: str) -> frozenset[str]:
    """None of a language without a file of its own."""
    about = known(language)
    return frozenset(about.stop_words.split() if about else ())


def is_english(text: str) -> bool:
    """Whether a text may be English. The models were trained on English, and what they say of others means little.

    A text whose language is unknown is taken as English if its letters are.
    """
    found = language_of_question(text)
    if found:
        return found == "en"
    words = _WORD.findall(text[:_READ_CHARS])
    return 2 * sum(not each.isascii() for each in words) <= len(words)
