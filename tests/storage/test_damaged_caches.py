"""Damaged cache files: every answer stays right, nothing crashes, and one log line says what happened."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import damaged_caches
from index_files import cache_files, cache_folder, flower_texts, reopened, settled
from nacre.storage.sqlite import SqliteStore, vector_search
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite.index import space_index

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncached")]
CASES = 100


@pytest.fixture(autouse=True)
def small_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (space_index, "SAVED_MEMORIES_MIN"),
        (space_index, "GRAPH_PASSAGES_MIN"),
        (sqlite_store, "INDEXED_MEMORIES_MIN"),
        (vector_search, "SCANNED_MAX"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back after the test
    damaged_caches.small_thresholds()


@pytest.fixture
def cached(path: Path) -> Path:
    """A store with two segments and a graph, and next to it the right answers, which no cache had a part in."""
    with reopened(path) as engine:
        engine.remember_many(flower_texts(damaged_caches.MEMORIES))
        engine.rebuild()
        engine.remember_many(flower_texts(12, first=damaged_caches.MEMORIES))
        damaged_caches.answers(engine)
        settled(engine)
    bare = path.with_name("bare.db")
    shutil.copyfile(path, bare)
    with pytest.MonkeyPatch.context() as patch, reopened(bare) as engine:
        patch.setattr(space_index, "SAVED_MEMORIES_MIN", 1_000_000)
        patch.setattr(space_index, "GRAPH_PASSAGES_MIN", 1_000_000)
        patch.setattr(SqliteStore, "_indexed", lambda *_: None)
        right = damaged_caches.answers(engine)
    assert not cache_folder(bare).exists()
    path.with_name("right.json").write_text(json.dumps(right))
    assert len(cache_files(path, ".segment")) == 2
    assert len(cache_files(path, ".hnsw")) == 1
    return path


def test_a_hundred_damaged_files_give_a_hundred_right_answers(cached: Path) -> None:
    script = Path(damaged_caches.__file__)
    run = subprocess.run(
        [sys.executable, str(script), str(cached), str(CASES)], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    cases = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(cases) == CASES
    assert [case for case in cases if not case["right"]] == []


@pytest.mark.parametrize("suffix", [".segment", ".hnsw"])
def test_damage_is_logged_once_and_the_file_is_made_anew(
    cached: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = cache_files(cached, suffix)[0]
    sound = file.read_bytes()
    file.write_bytes(sound[:5_000] + bytes(1_000) + sound[6_000:])
    with caplog.at_level(logging.WARNING, "nacre"), reopened(cached) as engine:
        damaged_caches.answers(engine)
        settled(engine)
        damaged_caches.answers(engine)
        settled(engine)
    assert len(caplog.messages) == 1
    assert file.name in caplog.messages[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "nacre"), reopened(cached) as engine:
        damaged_caches.answers(engine)
    assert caplog.messages == []


def broken(*_: object, **__: object) -> None:
    raise IndexError("index 7 is out of bounds")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("nacre.storage.sqlite.index.postings", "best_of_spaces"),
        ("nacre.storage.sqlite.vector_search", "_nearest"),
        ("nacre.storage.sqlite.index.space_index", "of_rows"),
    ],
)
def test_any_error_inside_the_index_is_answered_from_the_rows(
    cached: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    right = json.loads(cached.with_name("right.json").read_text())
    for file in cache_files(cached):
        file.unlink()
    monkeypatch.setattr(f"{module}.{name}", broken)
    with caplog.at_level(logging.WARNING, "nacre"), reopened(cached) as engine:
        assert json.loads(json.dumps(damaged_caches.answers(engine))) == right
    assert "the index failed (IndexError: index 7 is out of bounds)" in caplog.text


def test_a_purge_of_a_store_with_damaged_caches(cached: Path) -> None:
    for file in cache_files(cached, ".segment"):
        written = file.read_bytes()
        file.write_bytes(written[:4096] + bytes(len(written) - 4096))
    with reopened(cached) as engine:
        found = engine.search("rose", mode="keyword", limit=1).hits[0]
        engine.purge(found.id)
        assert found.id not in {hit.id for hit in engine.search("rose", mode="keyword", limit=50).hits}


def test_damage_in_the_background_drops_the_file(cached: Path) -> None:
    """Segments that are merged are read as a whole."""
    for file in cache_files(cached, ".segment"):
        written = file.read_bytes()
        file.write_bytes(written[:-64] + bytes(64))
    with reopened(cached) as engine:
        engine.remember_many(flower_texts(200, first=1_000))
        for _ in range(3):
            damaged_caches.answers(engine)
            settled(engine)
        by_index = [hit.id for hit in engine.search("rose lily", mode="keyword", limit=50).hits]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqliteStore, "_indexed", lambda *_: None)
            assert by_index == [hit.id for hit in engine.search("rose lily", mode="keyword", limit=50).hits]
