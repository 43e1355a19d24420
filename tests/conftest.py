"""Fixtures shared by all tests: a store in a temporary file, with a tiny deterministic embedder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import nacre
from nacre import searching
from nacre.embedders.hashing import Hashing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def memory(path: Path) -> Iterator[nacre.Nacre]:
    """An open store that understands words and, by hashing, a little of meaning."""
    with nacre.open(path, embedder=Hashing()) as opened:
        yield opened


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search is carried out, also one that was asked a moment ago."""
    monkeypatch.setattr(searching, "_FRESH", timedelta(0))


@pytest.fixture
def unlogged(path: Path, uncached: None) -> Iterator[nacre.Nacre]:
    """An open store in which nothing is written but what a test writes."""
    assert uncached is None
    with nacre.open(path, embedder=Hashing(), log=False) as opened:
        yield opened
