"""Runs a model over many texts, in batches of texts of equal length and in several threads.

Without padding, what a model says of a text depends on the text alone, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

WINDOW_TEXTS = 1024  # texts that are encoded at once and sorted by length

Encoded = TypeVar("Encoded")


def runs(
    texts: Sequence[str],
    encode: Callable[[str], Encoded],
    run: Callable[[list[Encoded]], Any],
    *,
    threads: int,
    batch_pieces: int,
    length: Callable[[Encoded], int] = len,  # type: ignore[assignment]  # of what has no other
) -> Iterator[tuple[list[int], list[Encoded], Any]]:
    """Numbers of texts that have the same number of pieces, their pieces, and what the model says of them."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as workers:
        for start in range(0, len(texts), WINDOW_TEXTS):
            encoded = [encode(text) for text in texts[start : start + WINDOW_TEXTS]]
            batches = list(equal_lengths(encoded, batch_pieces, length))
            rows = [[encoded[row] for row in batch] for batch in batches]
            for batch, of_batch, found in zip(batches, rows, workers.map(run, rows), strict=True):
                yield [start + row for row in batch], of_batch, found


def equal_lengths(
    encoded: Sequence[Encoded],
    batch_pieces: int,
    length: Callable[[Encoded], int] = len,  # type: ignore[assignment]
) -> Iterator[list[int]]:
    """Batches of row numbers of texts of equal length. The longest come first, so that the last to finish are short."""
    lengths = list(map(length, encoded))
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    for pieces, rows in groupby(by_length, key=lengths.__getitem__):
        same = list(rows)
        size = max(batch_pieces // max(pieces, 1), 1)
        for start in range(0, len(same), size):
            yield same[start : start + size]
