"""The files of the page: only they are given, with versions, compressed, and with rules for the browser."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from nacre.http_api import page
from servers import ThreadServer, error_of, serving

FOLDER = Path(str(files("nacre.http_api") / "ui"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with serving(tmp_path_factory.mktemp("page") / "memories.db", token_needed=True) as served:
        yield served


@pytest.fixture(scope="module")
def client(server: ThreadServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


def test_every_file_is_given_as_it_is(client: httpx.Client) -> None:
    names = sorted(page._files())
    assert {"index.html", "app.js"} <= set(names)
    for name in names:
        for encoding, compressed in (("gzip, br", True), ("identity", False), ("gzip;q=0", False), ("br", False)):
            answer = client.get(f"/ui/{name}", headers={"Accept-Encoding": encoding})
            assert answer.status_code == 200
            assert answer.content == (FOLDER / name).read_bytes()
            assert (answer.headers.get("content-encoding") == "gzip") is compressed
            assert answer.headers["vary"] == "accept-encoding"
        kind = answer.headers["content-type"]
        assert kind == page._KINDS[name.rpartition(".")[2]]


def test_a_file_that_is_known_is_not_sent_again(client: httpx.Client) -> None:
    for name in ("", "ui/app.js"):
        etag = client.get(f"/{name}").headers["etag"]
        for known in (etag, f"W/{etag}", f'"x", {etag}'):
            again = client.get(f"/{name}", headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
            assert "script-src 'self'" in again.headers["content-security-policy"]
        assert client.get(f"/{name}", headers={"If-None-Match": '"x"'}).status_code == 200


def test_the_rules_of_the_page_are_strict(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = dict(each.strip().split(" ", 1) for each in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-cache"


def test_the_page_keeps_its_own_rules(client: httpx.Client) -> None:
    """Nothing inline, and nothing from elsewhere: the browser would refuse it."""
    html = client.get("/").text
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)
    assert not re.search(r"\son\w+=|\sstyle=|<style", html)
    for found in re.findall(r'(?:src|href)="([^"]+)"', html):
        assert found.startswith(("/", "./", "#", "data:")), found
        if found.startswith("/"):
            assert client.get(found).status_code == 200, found


TRAVERSALS = (
    "/ui/../page.py", "/ui/../../../pyproject.toml", "/ui/%2e%2e/page.py", "/ui/..%2fpage.py", "/ui/%2e%2e%2fpage.py",
    "/ui/..\\page.py", "/ui/%5c..%5cpage.py", "/ui//etc/passwd", "/ui/%2fetc%2fpasswd", "/ui/app.js/", "/ui/./app.js",
    "/ui/app.js%00", "/ui/APP.JS", "/ui/", "/ui", "/ui/vendor", "/ui/../ui/app.js", "//", "/index.html", "/app.js",
    "/ui/file:///etc/passwd", "/../ui/app.js", "/ui/%252e%252e/page.py",
)  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_other_file_is_given(server: ThreadServer, path: str) -> None:
    """As raw bytes: clients would make the path shorter before they send it."""
    with server.connect() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert said.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), said[:100]
    for secret in (b"root:", b"import ", b"[project]"):
        assert secret not in said


def test_it_can_only_be_read(client: httpx.Client) -> None:
    for path in ("/", "/ui/app.js", "/healthz", "/openapi.json"):
        get, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        named = {name: value for name, value in head.headers.items() if name != "date"}
        assert named == {name: value for name, value in get.headers.items() if name != "date"}
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = client.request(method, path)
            error_of(answer, 405)
            assert answer.headers["allow"] == "GET, HEAD"


def test_compressed_files_are_those_files() -> None:
    for each in page._files().values():
        assert gzip.decompress(each.compressed) == each.body
