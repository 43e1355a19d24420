"""Near-duplicate detection in two steps, tuned for precision rather than recall.

`sketch` gives MinHash values by which candidates are looked up. `are_near_duplicates` decides for a pair. Vectors
alone cannot decide, because they hardly react to a digit, a name or a "not"; nor can the share of common words,
because in a long text one different word hardly changes it. So both texts must have the same words in the same
order, except for

- `_LIGHT` words, which are ignored,
- `_MILD` words, of which one text may have more than the other, and
- one clause, which may be at the beginning of one text and at the end of the other.

Jaccard similarity of shingles and cosine similarity limit how much of the last two a pair may have. Numbers, names,
identifiers, negations and antonyms are ordinary words: one that only one text has makes the texts different.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import chain, filterfalse

from nacre.types.memory import Tokens

SKETCH_HASHES = 4
SHARED_MIN = 2  # hashes that two sketches must share for the texts to be compared, or all where there are fewer
SHINGLE_WORDS = 3
REVERSED_BITS = 31
_CLAUSE_WORDS_MIN = 2
_MOVED_WORDS_MAX = 64  # in longer texts the order of sentences matters

# Chosen with benchmarks/near_duplicates.py. The rules above reject harmful pairs; these reject texts of mostly mild
# words.
COSINE_MIN = 0.9
JACCARD_MIN = 0.1  # of shingles, where the cosine is known
JACCARD_ALONE_MIN = 0.4


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LIGHT = _set(
    """a an the just really actually basically simply very quite please also hey hi hello hmm oh ok okay um uh wow
    thanks btw fyi"""
)
# No words of tense, modality or direction: "have" is missing because of "should have run", "to" because of "have to".
_MILD = _set("am is are has do does of it then and but so i we my our that this these those")
_NOT_CONTENT = _LIGHT | _MILD
_PREAMBLES = _set("well, so, anyway, note: remember: reminder:")
_QUANTITIES = _set("few little")  # "a few" is more than "few"
_CLAUSE_OPENERS = _set(
    """after although as at because before by during for from if in on once over since though to under unless until
    when whenever while with"""
)
_ACRONYMS = _set("it us who")  # other words when written in capitals
_QUESTION_MARKS = frozenset("?？؟")
_CONTRACTED = {"s": (), "m": ("am",), "re": ("are",), "ve": ("have",), "ll": ("will",)}
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall"}  # what is left of can't, won't, shan't

_SPACED = str.maketrans(
    {
        **dict.fromkeys("—，。、；：！（）「」『』《》〈〉【】।،؛؟？·•“”„«»", " "),
        **dict.fromkeys("‘’ʼ", "'"),
        **dict.fromkeys("–‑", "-"),
    }
)
_OPENING = "\"'`([{*"
_CLOSING = "\"'`)]}*.,;:!?…|"
_PAUSES = "-.,;:!?…*|'\"`"  # a chunk of only these is no word


def sketch(tokens: Tokens) -> tuple[int, ...]:
    """The smallest hashes of the text's shingles, ascending: at most SKETCH_HASHES, each below 2 ** 63.

    Near-duplicates almost always have at least one in common.
    """
    shingles = _shingles(tokens.words, _NOT_CONTENT)
    hashed = dict(zip(map(zlib.crc32, shingles), shingles, strict=True))
    return tuple([_extended_hash(number, hashed[number]) for number in sorted(hashed)[:SKETCH_HASHES]])


def are_near_duplicates(a: str, b: str, tokens_a: Tokens, tokens_b: Tokens, cosine: float | None) -> bool:
    """Whether two texts state the same. `cosine` is the similarity of their vectors, None without vectors."""
    verdict = compare_words(a, b)
    return similar_enough(tokens_a, tokens_b, cosine) if verdict is None else verdict


def compare_words(a: str, b: str) -> bool | None:
    """Whether two texts state the same by their words; None if `similar_enough` has to decide."""
    if a == b:
        return True
    one, other = _normalised_words(a), _normalised_words(b)
    if one == other:
        return bool(one) and _is_question(a) == _is_question(b)
    if _is_question(a) != _is_question(b):
        return False
    alike = _adds_only_mild_words(one, other) or _adds_only_mild_words(other, one) or _clause_moved(one, other)
    return None if alike else False


def similar_enough(tokens_a: Tokens, tokens_b: Tokens, cosine: float | None) -> bool:
    """Whether two texts that `compare_words` leaves open are near-duplicates."""
    if cosine is None:
        return jaccard(tokens_a, tokens_b) >= JACCARD_ALONE_MIN
    return cosine >= COSINE_MIN and jaccard(tokens_a, tokens_b) >= JACCARD_MIN


def content_words(words: Sequence[str], ignored: frozenset[str] = _NOT_CONTENT) -> str:
    """The words that are not ignored, or all if every word is, joined by spaces."""
    return " ".join(list(filterfalse(ignored.__contains__, words)) or words)


def _shingles(words: Sequence[str], ignored: frozenset[str]) -> list[bytes]:
    plain = content_words(words, ignored).encode("utf-8", "surrogatepass")
    parts = plain.split(b" ")
    if len(parts) <= SHINGLE_WORDS:
        return [plain] if plain else []
    return list(map(b" ".join, zip(parts, parts[1:], parts[2:], strict=False)))


def _extended_hash(number: int, shingle: bytes) -> int:
    """A hash extended to 63 bits, in the same order, so that shingles in a large store do not collide."""
    return number << REVERSED_BITS | zlib.crc32(shingle[::-1]) >> 1


def jaccard(tokens_a: Tokens, tokens_b: Tokens) -> float:
    one, other = set(_shingles(tokens_a.words, _LIGHT)), set(_shingles(tokens_b.words, _LIGHT))
    return len(one & other) / (len(one | other) or 1)


def _normalised_words(text: str) -> list[str]:
    """The words without case and surrounding punctuation, and without light words unless there are no others."""
    if not text.isascii():
        text = text.translate(_SPACED)
    all_capitals = text.isupper()
    words: list[str] = []
    light: list[str] = []
    chunks = text.split()
    if chunks and chunks[0].lower() in _PREAMBLES:
        del chunks[0]
    for word in chain.from_iterable(map(_split_chunk, chunks)):
        folded = word.casefold()
        if folded in _LIGHT:
            light.append(folded)
            continue
        if folded in _QUANTITIES and light[-1:] == ["a"]:
            words.append("a")
        light.append(folded)
        exact = word[0] == "-" or (folded in _ACRONYMS and word.isupper() and not all_capitals)
        words.append(word if exact else folded)
    return words or light


def _split_chunk(raw: str) -> Sequence[str]:
    """The words of a chunk: usually one, two of a contraction, none of a dash."""
    word = raw.lstrip(_OPENING).rstrip(_CLOSING)
    if word.isalpha():
        return (word,) if word.lower() != "cannot" else ("can", "not")
    if not word:
        rest = raw.strip(_PAUSES)
        return (rest,) if rest else ()
    if not word.strip("-"):
        return ()
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or not stem:
        return (word,)
    ending = ending.lower()
    if ending == "t" and stem[-1] in "nN":
        base = stem[:-1]
        return _NEGATED.get(base.lower(), base) or "n", "not"
    if ending in _CONTRACTED:
        return (stem, *_CONTRACTED[ending])
    return (word,)


def _is_question(text: str) -> bool:
    """Whether a text has a question mark. A question states nothing, even with the words of a statement."""
    return not _QUESTION_MARKS.isdisjoint(text)


def _adds_only_mild_words(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Whether the longer text is the shorter one with additional mild words."""
    rest = iter(shorter)
    wanted = next(rest, None)
    for word in longer:
        if word == wanted:
            wanted = next(rest, None)
        elif word not in _MILD:
            return False
    return wanted is None


def _clause_moved(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a clause at the end of one text begins the other: "we met on Monday", "on Monday we met"."""
    words = len(one)
    if words != len(other) or words > _MOVED_WORDS_MAX:
        return False
    for first, second in ((one, other), (other, one)):
        opener = second[0]
        if opener in _CLAUSE_OPENERS:
            for at in range(1, words - _CLAUSE_WORDS_MIN + 1):
                if first[at] == opener and [*first[at:], *first[:at]] == second:
                    return True
    return False
