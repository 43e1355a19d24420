"""SentencePiece's unigram tokenizer in plain Python, with the same results as Google's library.

A text is normalised (Unicode NFKC, as the library's table has it) and split at white space. Each word is then cut into
the pieces whose scores have the largest sum. Where sums differ by no more than rounding, the library may cut otherwise.

Pieces are found in a double-array trie, which `tools/build_use_multilingual.py` wrote, so nothing is parsed when the
file is read. Repeated words come from a cache.
"""

from __future__ import annotations

import re
import struct
import sys
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nacre.types.memory import Span

MAGIC = b"nacre-sp1\0\0\0"
HEADER = struct.Struct(
    "<12s5I"
)  # magic; bytes of the alphabet, slots of the trie, pieces; units and bytes of the table
UNKNOWN, FIRST, LAST = 0, 1, 2  # the ids of what no piece covers, of the beginning and of the end
WORD_START = "▁"
UNKNOWN_PENALTY = 10.0  # an unknown character scores so much below the rarest piece
CACHED_CHARS_MAX = 64
CACHED_RUNS_MAX = 50_000
UNIT_PIECES_MAX = 8  # a longer run, such as a sentence without spaces, is weighed piece by piece
SLICE_CHARS = 8  # of a longer run whose normal form is another

RUN = re.compile(r"[^ \t\n\f\r]+")  # the table has no key with one of these inside
# What the table changes, and NFKC does not, and lone surrogates.
CHANGED = re.compile("[\ud800-\udfff\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd]")
WHOLE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")  # Japanese, Chinese and Korean
SURROGATE = re.compile("[\ud800-\udfff]")  # lone ones, which a Python string may have


class Piece(NamedTuple):
    number: int
    chars: int  # that it covers of a word, of which the first is WORD_START


class SentencePiece:
    """A unigram tokenizer with the pieces of a file. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        if len(content) < HEADER.size:
            raise ValueError("it is cut short")
        magic, alphabet, slots, pieces, units, replacements = HEADER.unpack_from(content)
        sizes = (HEADER.size, alphabet, 4 * slots, 4 * slots, 4 * slots, 4 * pieces, 4 * units, replacements)
        if magic != MAGIC or len(content) != sum(sizes):
            raise ValueError("it is no tokenizer of this version, or it is cut short")
        parts, start = [], 0
        for size in sizes:
            parts.append(content[start : start + size])
            start += size
        # Each character of the pieces has a code from 1; 0 stands for all others.
        self._codes = {char: code for code, char in enumerate(parts[1].decode("utf-8"), start=1)}
        # A slot's child by a code is at its base + code, if that slot names it as its parent. No slot is out of range.
        self._base, self._parent, self._piece = (_numbers("i", part) for part in parts[2:5])
        self._scores = _numbers("f", parts[5])
        self._unknown_score = min(self._scores) - UNKNOWN_PENALTY
        self._table = _CharacterTable(_numbers("I", parts[6]), parts[7])
        self._cache: dict[str, tuple[Piece, ...]] = {}

    def encode(self, text: str, pieces_max: int) -> list[int]:
        """The ids of the text's first pieces, between those of the beginning and the end."""
        ids = [FIRST]
        for run in RUN.finditer(text):
            ids += [piece.number for piece in self._pieces(run.group())]
            if len(ids) > pieces_max:
                del ids[pieces_max + 1 :]
                break
        ids.append(LAST)
        return ids

    def vocabulary_coverage(self, text: str) -> float:
        """The share of a text's letters that are in pieces of several characters; 0 for a text without letters.

        Of languages that the model never learned, the vocabulary has little more than single letters. Ideographs and
        syllables are words or parts of words by themselves, and so is a letter that stands alone.
        """
        known = total = 0
        for run in RUN.finditer(text):
            for word in self._words(run.group()):
                pieces, start = self._cut(word), 0
                for piece in pieces:
                    part = word[start : start + piece.chars]
                    start += piece.chars
                    letters = sum(map(str.isalpha, part))
                    total += letters
                    if piece.number != UNKNOWN and (letters > 1 or len(word) == 2 or WHOLE.search(part)):
                        known += letters
        return known / total if total else 0.0

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        """The units that no passage may split, with their piece counts: words, or pieces where words are long."""
        units: list[tuple[Span, int]] = []
        for found in RUN.finditer(text):
            run, start = found.group(), found.start()
            pieces = self._pieces(run)
            if len(pieces) <= UNIT_PIECES_MAX:
                units.append((Span(start, found.end()), max(len(pieces), 1)))
            elif self._table.normalised(run) == run:
                units += _one_by_one(pieces, start)
            else:
                for offset in range(0, len(run), SLICE_CHARS):
                    part = run[offset : offset + SLICE_CHARS]
                    units.append((Span(start + offset, start + offset + len(part)), max(len(self._pieces(part)), 1)))
        return units

    def _pieces(self, run: str) -> tuple[Piece, ...]:
        pieces = self._cache.get(run)
        if pieces is None:
            pieces = tuple(piece for word in self._words(run) for piece in self._cut(word))
            if len(run) <= CACHED_CHARS_MAX:
                if len(self._cache) >= CACHED_RUNS_MAX:
                    self._cache.clear()
                self._cache[run] = pieces
        return pieces

    def _words(self, run: str) -> Iterator[str]:
        return (WORD_START + word for word in self._table.normalised(run).split(" ") if word)

    def _cut(self, word: str) -> list[Piece]:
        """The pieces with the largest sum of scores: for each end of a prefix the best last piece, then backwards."""
        base, parent, piece_at, scores = self._base, self._parent, self._piece, self._scores
        codes = [self._codes.get(char, 0) for char in word]
        length = len(codes)
        best = [0.0] + [-1e30] * length
        last = [UNKNOWN] * (length + 1)
        start_of = [0] * (length + 1)
        for start in range(length):
            so_far = best[start]
            slot = 0
            alone = False  # whether a piece is the one character here
            for end in range(start, length):
                child = base[slot] + codes[end]
                if parent[child] != slot:
                    break
                slot = child
                piece = piece_at[slot]
                if piece:
                    score = so_far + scores[piece]
                    if score > best[end + 1]:
                        best[end + 1], last[end + 1], start_of[end + 1] = score, piece, start
                    alone = alone or end == start
            if not alone and so_far + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1], start_of[start + 1] = so_far + self._unknown_score, UNKNOWN, start
        found: list[Piece] = []
        end = length
        while end:
            start = start_of[end]
            if last[end] == UNKNOWN and found and found[-1].number == UNKNOWN:  # unknown neighbours are one piece
                found[-1] = Piece(UNKNOWN, found[-1].chars + end - start)
            else:
                found.append(Piece(last[end], end - start))
            end = start
        found.reverse()
        return found


def _one_by_one(pieces: Sequence[Piece], start: int) -> Iterator[tuple[Span, int]]:
    """The pieces of a run, placed in its text, which has no WORD_START."""
    end, empty = start - 1, 0
    for piece in pieces:
        end += piece.chars
        if end == start:
            empty = 1  # WORD_START alone counts with what follows
        else:
            yield Span(start, end), 1 + empty
            start, empty = end, 0


class _CharacterTable:
    """SentencePiece's table of normal forms, a double-array trie as darts-clone writes it, over UTF-8.

    The longest key at each place is replaced. What is no key stays as it is.
    """

    def __init__(self, units: array[int], replacements: bytes) -> None:
        self._units = units
        self._replacements = replacements

    def normalised(self, run: str) -> str:
        if run.isascii():
            return run
        if unicodedata.is_normalized("NFKC", run) and not CHANGED.search(run):
            return run  # every other key has its NFKC form, and a part of a text in normal form is in normal form
        content = SURROGATE.sub("\ufffd", run).encode("utf-8")
        units = self._units
        normal = bytearray()
        at = 0
        while at < len(content):
            slot = _children(units[0])
            after, value = 0, 0
            for end in range(at, len(content)):
                slot ^= content[end]
                unit = units[slot]
                if unit & 0x800000FF != content[end]:
                    break
                slot ^= _children(unit)
                if unit & 0x100:  # a key ends here
                    after, value = end + 1, units[slot] & 0x7FFFFFFF
            if after:
                normal += self._replacements[value : self._replacements.index(b"\0", value)]
                at = after
            else:
                start, at = at, at + 1
                while at < len(content) and content[at] & 0xC0 == 0x80:
                    at += 1
                normal += content[start:at]
        return normal.decode("utf-8")


def _children(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _numbers(kind: str, content: bytes) -> array[Any]:
    numbers = array(kind)
    numbers.frombytes(content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
