"""Fixtures shared by all tests: a store in a temporary file, with a tiny deterministic embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import nacre
from nacre.embedders.hashing import Hashing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def memory(path: Path) -> Iterator[nacre.Nacre]:
    """An open store that understands words and, by hashing, a little of meaning."""
    with nacre.open(path, embedder=Hashing()) as opened:
        yield opened
