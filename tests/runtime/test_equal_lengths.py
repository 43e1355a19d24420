from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest

from nacre.runtime import equal_lengths


def test_batches_hold_equal_lengths_and_few_pieces() -> None:
    encoded = [[0] * length for length in (3, 256, 3, 40, 40, 40, 40, 2, 130)]
    batches = list(equal_lengths.equal_lengths(encoded, 128))
    assert sorted(row for batch in batches for row in batch) == list(range(9))
    for batch in batches:
        assert len({len(encoded[row]) for row in batch}) == 1
        assert len(batch) == 1 or len(batch) * len(encoded[batch[0]]) <= 128


@pytest.mark.parametrize("window", [1, 7, 1024])
def test_each_text_is_run_once_with_its_pieces(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_lengths, "WINDOW_TEXTS", window)
    texts = ["x" * (1 + number % 5) + str(number) for number in range(40)]

    def run(rows: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(map(chr, row)) for row in rows]

    found = list(equal_lengths.runs(texts, lambda text: [*map(ord, text)], run, threads=2, batch_pieces=12))
    assert sorted(chain.from_iterable(rows for rows, _, _ in found)) == list(range(40))
    for rows, pieces, said in found:
        assert said == [texts[row] for row in rows] == ["".join(map(chr, each)) for each in pieces]
