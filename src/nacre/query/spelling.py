"""Suggests known words for a misspelled one.

Words at edit distance 1 count, and long words with the same prefix at distance 2. Short words have many neighbours, so
they must begin with the same letter, and in very short ones a replaced letter does not count (`went` and `sent` are
both words). An edit adds, removes or replaces a letter, or swaps two adjacent ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache

from nacre.types.memory import Span

_SENTENCE_ENDS = '.!?:"¿¡'
_WORD_CHARS = range(4, 31)  # shorter words are too ambiguous, longer ones are no words
_SCRIPTS_MAX = 2  # Unicode blocks of letters in one word
_REPLACED_CHARS_MIN = 5
_ANY_FIRST_CHARS_MIN = 6
_TWO_EDITS_CHARS_MIN = 8
_LETTERS_CHANGED_MAX = 4  # by two edits: each may remove one letter and add another
PREFIX_CHARS = 3  # that words two edits apart share, and by which known words are looked up
SUGGESTIONS_MAX = 3


def is_correctable(word: str) -> bool:
    """Whether a word may be a misspelling: letters only, of moderate length, in few scripts."""
    return len(word) in _WORD_CHARS and word.isalpha() and len({ord(each) >> 7 for each in word}) <= _SCRIPTS_MAX


def edits_between(word: str, known: str) -> int | None:
    """The edit distance of a known word that `word` may be a misspelling of, or None."""
    if abs(len(word) - len(known)) > 2 or known == word:
        return None
    if len(_letters(word).symmetric_difference(known)) > _LETTERS_CHANGED_MAX:  # cheap, and rejects most words
        return None
    if len(word) < _ANY_FIRST_CHARS_MIN and word[0] != known[0]:
        return None
    if len(word) < _REPLACED_CHARS_MIN and len(word) == len(known) and sorted(word) != sorted(known):
        return None
    if not _alphabet(word).issuperset(known):
        return None
    most = 1 + (allows_two_edits(word) and known[:PREFIX_CHARS] == word[:PREFIX_CHARS])
    edits = edit_distance(word, known, most)
    return edits if edits <= most else None


def suggestions(word: str, known: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The best of some known words with their document frequencies: the nearest, then the most frequent."""
    near = [(edits, -memories, each) for each, memories in known if (edits := edits_between(word, each)) is not None]
    return tuple(each for _, _, each in sorted(near)[:SUGGESTIONS_MAX])


def single_edits(word: str, until: int) -> Iterator[str]:
    """Every spelling at distance 1 in the word's own script, with the edit among the first `until` letters."""
    letters = _alphabet(word)
    for at in range(min(until, len(word) + 1)):
        before, after = word[:at], word[at:]
        if after:
            yield before + after[1:]
            yield from [before + letter + after[1:] for letter in letters]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        yield from [before + letter + after for letter in letters]


def is_written_as_name(text: str, place: Span) -> bool:
    """Whether the word at a place of a query begins with a capital that no sentence has put there."""
    word, before = text[place.start : place.end], text[: place.start].rstrip()
    return word[0].isupper() and not word.isupper() and before != "" and before[-1] not in _SENTENCE_ENDS


def allows_two_edits(word: str) -> bool:
    """Whether a word is long enough for suggestions at distance 2."""
    return len(word) >= _TWO_EDITS_CHARS_MIN


def edit_distance(one: str, other: str, most: int = sys.maxsize) -> int:
    """The edit distance of two words (optimal string alignment), or a number above `most` if it is greater."""
    while one and other and one[0] == other[0]:  # common ends need no edits
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            edits = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        if min(row) > most and min(last) > most:  # the minimum of a row is at least that of the two rows before it
            return most + 1
        before, last = last, row
    return last[-1]


@lru_cache(maxsize=16)  # one word is compared with many
def _letters(word: str) -> frozenset[str]:
    return frozenset(word)


@lru_cache(maxsize=16)
def _alphabet(word: str) -> frozenset[str]:
    """The lower-case letters in the Unicode blocks of a word: approximately those of its script."""
    return frozenset(word).union(*(_block_letters(block) for block in {ord(each) >> 7 for each in word}))


@lru_cache(maxsize=64)
def _block_letters(block: int) -> frozenset[str]:
    chars = map(chr, range(block << 7, (block + 1) << 7))
    return frozenset(each for each in chars if each.isalpha() and each == each.casefold())
