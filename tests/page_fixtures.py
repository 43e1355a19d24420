"""Fixtures of the tests of the page: a browser, stores with samples, and servers that end after their pages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import nacre
from browser import MISSING, Serve, Visits, browsing, executable
from nacre.cli import demo
from nacre.embedders.hashing import Hashing
from servers import ThreadServer, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """It lives no longer than the tests of a file: where it is open, no other test can run coroutines."""
    if executable() is None:
        pytest.skip(MISSING)
    with browsing() as opened:
        yield opened


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    opened = Visits(browser)
    yield opened
    opened.close()


@pytest.fixture
def serve(visits: Visits) -> Iterator[Serve]:
    """Servers of stores, which end after the pages that show them."""
    with contextlib.ExitStack() as stack:

        def start(path: Path, **options: Any) -> ThreadServer:
            return stack.enter_context(serving(path, **options))

        yield start
        visits.close()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memories of `nacre demo`, and what two searches of an agent were given. Tests copy it."""
    path = tmp_path_factory.mktemp("samples") / "demo.db"
    with nacre.open(path, embedder=Hashing()) as memory:
        demo._remember(memory, *(each.read_text("utf-8").splitlines() for each in (demo.SAMPLES, demo.FACTS)))
        memory.search("Why did we lower BOOKING_TIMEOUT_MS?", session="agent-1")
        memory.search("How long is a bench held for a payment?", session="agent-2")
    return path


@pytest.fixture(scope="module", name="demo")
def demo_server(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    """A server of the samples for tests that only look."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    shutil.copy(samples, path)
    with serving(path) as server:
        yield server


@pytest.fixture
def own_demo(samples: Path, path: Path, serve: Serve) -> ThreadServer:
    """A server of the samples for one test alone."""
    shutil.copy(samples, path)
    return serve(path)
