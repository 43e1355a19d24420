"""Computes the sketches of many texts with numpy, with the same results as `near_duplicates.sketch`.

numpy releases Python's global lock, so other threads run meanwhile. Each text is one line of bytes and each shingle a
range of them. The checksums of all shingles are computed together, byte by byte. The longest come first, so that at
each byte the unfinished ones are at the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nacre.analysis import near_duplicates
from nacre.types.memory import Tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[Any]

MANY = 512  # texts; fewer take less time than the import of numpy
_POLYNOMIAL = 0xEDB88320  # of zlib.crc32
_NEWLINE, _SPACE = 10, 32


def sketches(several: Sequence[Tokens]) -> list[tuple[int, ...]]:
    """The sketch of each text, in order."""
    lines = (
        "\n".join([near_duplicates.content_words(tokens.words) for tokens in several]) if len(several) >= MANY else ""
    )
    if not lines or lines.isspace() or lines.count("\n") != len(several) - 1:
        return [near_duplicates.sketch(tokens) for tokens in several]
    import numpy as np

    data = np.frombuffer(lines.encode("utf-8", "surrogatepass"), np.uint8)
    text, start, end = _shingles(data)
    number = _checksums(data, start, end - start, 1)
    order = np.argsort(text << 32 | number, kind="stable")
    ordered = (text << 32 | number)[order]
    order = order[np.append(ordered[1:] != ordered[:-1], True)]  # the last of equal ones in a text
    rank = np.arange(len(order)) - np.searchsorted(text[order], text[order])
    chosen = order[rank < near_duplicates.SKETCH_HASHES]
    backwards = _checksums(data, end[chosen] - 1, (end - start)[chosen], -1)
    widened: list[int] = (number[chosen] << near_duplicates.REVERSED_BITS | backwards >> 1).tolist()
    places = np.searchsorted(text[chosen], np.arange(len(several) + 1)).tolist()
    return [tuple(widened[begin:stop]) for begin, stop in pairwise(places)]


def _shingles(data: Array) -> tuple[Array, Array, Array]:
    """For each shingle, the number of its text, and its start and end in the bytes."""
    import numpy as np

    borders = np.flatnonzero((data == _SPACE) | (data == _NEWLINE))
    starts, ends = np.append(0, borders + 1), np.append(borders, len(data))  # of words
    text = np.append(0, np.cumsum(data[borders] == _NEWLINE))
    first = np.searchsorted(text, text)
    last = np.searchsorted(text, text, side="right") - 1
    word = np.arange(len(text))
    opening = np.flatnonzero((word + near_duplicates.SHINGLE_WORDS <= last + 1) | (word == first))
    start, end = starts[opening], ends[np.minimum(opening + near_duplicates.SHINGLE_WORDS - 1, last[opening])]
    present = end > start
    return text[opening][present], start[present], end[present]


def _checksums(data: Array, place: Array, length: Array, step: int) -> Array:
    """CRC-32 of ranges of bytes, read from `place` forwards (`step` 1) or backwards (-1)."""
    import numpy as np

    table = _table()
    order = np.argsort(-length, kind="stable")
    begins, lengths = place[order], length[order]
    register = np.full(len(order), 0xFFFFFFFF, np.uint32)
    for at, unfinished in enumerate(np.searchsorted(-lengths, -np.arange(lengths[0]), side="left").tolist()):
        some = register[:unfinished]
        register[:unfinished] = table[(some ^ data[begins[:unfinished] + step * at]) & 0xFF] ^ (some >> 8)
    found = np.empty(len(order), np.int64)
    found[order] = ~register
    return found


@cache
def _table() -> npt.NDArray[np.uint32]:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table
