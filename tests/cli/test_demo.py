"""The sample memories, and the ranks that their README promises, with the real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import nacre
from nacre.cli.demo import CORRECTED, QUESTION, SAMPLES, UNKNOWN
from nacre.serialization import decode
from nacre.types.search import Mode
from sample_ranks import PROMISED

pytestmark = pytest.mark.slow

UNHURRIED = nacre.Recipe(rerank_ms=0)  # the same on a busy machine


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    with nacre.open(tmp_path_factory.mktemp("demo") / "demo.db") as memory:
        lines = SAMPLES.read_text("utf-8").splitlines()
        receipts = memory.remember_many(decode.new_memory_line(line, at) for at, line in enumerate(lines, 1))
        assert len(receipts) >= 190
        assert not any(receipt.duplicate for receipt in receipts)
        yield memory


def test_the_readme_lists_the_question_of_the_demo() -> None:
    assert len(PROMISED) == 15
    assert QUESTION in [query for query, _, _ in PROMISED]


@pytest.mark.parametrize(("query", "expected", "ranks"), PROMISED)
def test_the_readme_tells_the_ranks(demo: nacre.Nacre, query: str, expected: str, ranks: list[int | None]) -> None:
    """A dash and late ranks mean: not on the first page."""
    for mode, promised in zip(get_args(Mode), ranks, strict=True):
        texts = [hit.text for hit in demo.search(query, mode=mode, recipe=UNHURRIED).hits]
        found = next((rank for rank, text in enumerate(texts, 1) if text.startswith(expected)), None)
        assert found == (promised if promised is not None and promised <= 20 else None), mode


def test_a_sample_was_corrected_and_one_question_is_not_answered(demo: nacre.Nacre) -> None:
    newer, older = demo.search(CORRECTED, limit=2).hits
    assert older.superseded_by is not None
    assert (older.superseded_by.id, newer.superseded_by) == (newer.id, None)
    packed = demo.context(UNKNOWN)
    assert (packed.outcome, packed.quoted) == ("nothing", ())


def test_samples_are_shipped_with_the_package() -> None:
    assert Path(nacre.__file__).parent in SAMPLES.parents
