"""A server for the tests of a file, and a memory on it for each of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

import nacre
from nacre.client import retries
from servers import ThreadServer, serving


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once, and no variable of the machine counts."""
    for name in ("_FIRST_PAUSE_S", "_LEAST_PAUSE_S"):
        monkeypatch.setattr(retries, name, 0.001)
    for name in ("NACRE_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with serving(tmp_path_factory.mktemp("server") / "memories.db") as started:
        yield started


@pytest.fixture
def space() -> str:
    """The test's own, on the server that it shares."""
    return uuid.uuid4().hex


@pytest.fixture
def remote(server: ThreadServer, space: str) -> Iterator[nacre.RemoteNacre]:
    with nacre.connect(server.url, space=space) as opened:
        yield opened
