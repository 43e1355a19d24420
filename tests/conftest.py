"""Fixtures shared by all tests: a store in a temporary file, with a tiny deterministic embedder."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings

import nacre
from command_line import Answer, Cli, clear_settings
from index_files import cache_files, check, counted_loads, flower_texts, low_thresholds, reopened, settled
from nacre.cli import run
from nacre.embedders.hashing import Hashing
from nacre.engine import searcher
from nacre.interfaces import Store
from postgres_server import end_shared_server
from stores import ALL_STORES, REAL_STORES, Opening, Stores

settings.register_profile("any machine", deadline=None)  # no test fails because others keep the processor busy
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """The suites of LangChain and Haystack use markers of plugins that this test run does not load."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # tests use no network
    config.addinivalue_line("markers", "asyncio: a coroutine, which anyio runs")
    config.addinivalue_line("markers", "benchmark: a test that a plugin measures")
    config.addinivalue_line("markers", "vcr: a test that a plugin gives recorded answers")


def pytest_collection() -> None:
    """Thousands of tests are made, and none of them is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """No later search for garbage looks through all of them again, which takes half a second each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    end_shared_server()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def unhurried() -> Iterator[None]:
    """No time passes while texts are reranked: what a search finds does not depend on the machine."""
    defaults = nacre.Nacre.__init__.__kwdefaults__
    assert defaults is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(defaults, "timer", lambda: 0.0)
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def memory(path: Path) -> Iterator[nacre.Nacre]:
    """An open store that understands words and, by hashing, a little of meaning."""
    with nacre.open(path, embedder=Hashing()) as opened:
        yield opened


@pytest.fixture(params=ALL_STORES)
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind."""
    with Stores(request.param, tmp_path) as stores:
        yield stores.open()


@pytest.fixture(params=REAL_STORES)
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """`nacre.open` of one and the same new store, of each kind that others can open, too."""
    with Stores(request.param, tmp_path) as stores:
        yield stores.opener()


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search is carried out, also one that was asked a moment ago."""
    monkeypatch.setattr(searcher, "RESULT_LIFETIME", timedelta(0))


@pytest.fixture
def unlogged(path: Path, uncached: None) -> Iterator[nacre.Nacre]:
    """An open store in which nothing is written but what a test writes."""
    assert uncached is None
    with nacre.open(path, embedder=Hashing(), log=False) as opened:
        yield opened


@pytest.fixture
def own_settings(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Commands use the test's own store, and nothing of the machine's settings."""
    clear_settings(monkeypatch, path.with_name("config.toml"))
    monkeypatch.setenv("NACRE_STORE", str(path))
    monkeypatch.setenv("NACRE_EMBEDDER", "hashing")


@pytest.fixture
def cli(own_settings: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process, on the test's own store."""
    assert own_settings is None

    def call(*arguments: str, stdin: str = "") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Caches of a few memories are kept in files."""
    low_thresholds(monkeypatch)
    return monkeypatch


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are read for each new segment."""
    return counted_loads(monkeypatch)


@pytest.fixture
def filled(path: Path, low: pytest.MonkeyPatch) -> Iterator[nacre.Nacre]:
    """Fifty memories, and a file of them."""
    assert low is not None
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        settled(engine)
        assert len(cache_files(path, ".segment")) == 1
        yield engine
