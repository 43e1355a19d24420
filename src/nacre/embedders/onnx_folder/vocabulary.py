"""A tokenizer of any kind: pieces of texts, how many a word has, and which scripts it has learned words of."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from nacre.analysis.wordpiece import NAME
from nacre.types.memory import Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNIT_CHARS_MAX: Final = 32
_UNIT: Final = re.compile(rf"\S{{1,{_UNIT_CHARS_MAX}}}")
_RUN: Final = re.compile(r"\S+")
# A script is known if the vocabulary has so many words or parts of words of it: letters by themselves are in every
# vocabulary. Those of Chinese are words.
_PIECES_MIN: Final = 100
_IDEOGRAPHS_MIN: Final = 2_000
_IDEOGRAPHS: Final = "CJK"
_LATIN: Final = "LATIN"


class Encoded(NamedTuple):
    ids: list[int]
    types: list[int]  # of BERT's two segments
    prompt: int  # how many of the first pieces are the prompt's


class Vocabulary:
    """What a model knows of texts. Safe to share between threads."""

    def __init__(self, file: Path, *, lower_case: bool, pieces_max: int) -> None:
        """Raises what `tokenizers` raises, and ImportError without it."""
        from tokenizers import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(pieces_max)
        self._lower_case = lower_case

    def encode(self, text: str, prompt: str, *, skips_prompt: bool) -> Encoded:
        found = self._tokenizer.encode(self._cased(prompt + text))
        return Encoded(found.ids, found.type_ids, self._pieces_of_prompt(prompt) if skips_prompt and prompt else 0)

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        counts: dict[str, int] = {}
        units = []
        for found in _UNIT.finditer(text):
            unit = found.group()
            if unit not in counts:
                counts[unit] = max(1, self._count(unit))
            units.append((Span(*found.span()), counts[unit]))
        return units

    def coverage(self, text: str) -> float:
        """The share of a text's characters in words of scripts that the vocabulary has words of.

        Identifiers such as ERR_2270 do not count: their parts may be known, but have no meaning.
        """
        known = total = 0
        for found in _RUN.finditer(text):
            run = found.group()
            total += len(run)
            if not NAME.search(run):
                known += sum(map(self._knows, run))
        return known / total if total else 0.0

    def _pieces_of_prompt(self, prompt: str) -> int:
        """Its pieces with those that begin a text, and without the one that ends it."""
        encoding = self._tokenizer.encode(self._cased(prompt))
        ends = bool(encoding.special_tokens_mask) and encoding.special_tokens_mask[-1] == 1
        return len(encoding.ids) - ends

    def _count(self, unit: str) -> int:
        """A piece may contain the space before a word, so a word is counted with one and without."""
        cased = self._cased(unit)
        return max(len(self._tokenizer.encode(each, add_special_tokens=False).ids) for each in (cased, f" {cased}"))

    def _cased(self, text: str) -> str:
        return (text.lower() if self._lower_case else text).encode("utf-8", "replace").decode()

    def _knows(self, character: str) -> bool:
        return character.isascii() or not character.isalpha() or _script(character) in self._scripts

    @cached_property
    def _scripts(self) -> frozenset[str]:
        """The scripts that the vocabulary has words of."""
        pieces = self._tokenizer.get_vocab()
        bytes_of = _bytes_of_characters() if _is_byte_level(pieces) else None
        words: Counter[str] = Counter()
        single: Counter[str] = Counter()
        for piece in pieces:
            letters = _letters(piece, bytes_of)
            scripts = set(map(_script, letters))
            if len(scripts) == 1:
                (words if len(letters) > 1 else single)[scripts.pop()] += 1
        known = {script for script, count in words.items() if count >= _PIECES_MIN}
        if single[_IDEOGRAPHS] >= _IDEOGRAPHS_MIN:
            known.add(_IDEOGRAPHS)
        return frozenset({*known, _LATIN})


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0]


def _letters(piece: str, bytes_of: Mapping[str, int] | None) -> str:
    """The letters of a piece, which may be written byte by byte."""
    if bytes_of is not None and all(each in bytes_of for each in piece):
        piece = bytes(bytes_of[each] for each in piece).decode("utf-8", "ignore")
    return "".join(filter(str.isalpha, piece))


def _is_byte_level(pieces: Mapping[str, int]) -> bool:
    """Whether pieces write the bytes of UTF-8 as characters, a space as Ġ."""
    return sum(piece.startswith("Ġ") for piece in pieces) > _PIECES_MIN


def _bytes_of_characters() -> dict[str, int]:
    """The bytes that characters stand for: printable ones for themselves, others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [each for each in range(256) if each not in plain]
    return {chr(each): each for each in plain} | {chr(256 + number): each for number, each in enumerate(others)}
