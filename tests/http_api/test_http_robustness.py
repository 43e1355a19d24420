"""Clients that are slow, large, many or gone, and requests that take too long: others are answered meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_clients import initialize
from nacre.engine.writer import Writer
from nacre.http_api import application, requests
from nacre.mcp_server import http_limits
from servers import ThreadServer, error_of, serving, wait_until


@pytest.fixture
def server(path: Path) -> Iterator[ThreadServer]:
    with serving(path) as served:
        yield served


@pytest.fixture
def client(server: ThreadServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


def head(server: ThreadServer, method: str = "POST", *headers: str) -> bytes:
    return "\r\n".join((f"{method} /v1/memories HTTP/1.1", f"Host: {server.host}", *headers, "")).encode()


class Held:
    """Makes `remember` wait until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting = 0
        self._go_on = threading.Event()
        real = Writer.remember

        def remember(*arguments: Any, **named: Any) -> Any:
            self.waiting += 1
            assert self._go_on.wait(30)
            return real(*arguments, **named)

        monkeypatch.setattr(Writer, "remember", remember)

    def go_on(self) -> None:
        self._go_on.set()


def test_slow_and_half_open_clients_hold_up_nobody(server: ThreadServer, client: httpx.Client) -> None:
    """Many more than there are threads, each in another state, all open at the end."""
    begun = (b"", b"POST /v1/mem", head(server), head(server, "POST", "Content-Length: 100", "") + b'{"text":')
    waiting = [server.connect() for _ in range(160)]
    with contextlib.ExitStack() as stack:
        for number, each in enumerate(waiting):
            stack.enter_context(each)
            each.sendall(begun[number % len(begun)])
        for number in range(10):
            assert client.post("/v1/memories", json={"text": f"meanwhile {number}"}).status_code == 200
            assert client.get("/v1/search?query=meanwhile").json()["hits"]
        for each in waiting:
            each.setblocking(False)
            with pytest.raises(BlockingIOError):  # still open, and nothing was said
                each.recv(1)


def test_a_body_that_does_not_come_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "BODY_S", 0.2)
    with serving(path) as server, server.connect() as connection:
        connection.sendall(head(server, "POST", "Content-Length: 100", "") + b'{"text": "half a')
        said = b"".join(iter(lambda: connection.recv(1_000), b""))
        assert said.startswith(b"HTTP/1.1 408 ")
        assert server.root.changes().seq == 0
        wait_until(lambda: not server.server.server_state.tasks)


def test_a_stream_may_come_slowly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its body has no time limit as long as it goes on."""
    monkeypatch.setattr(http_limits, "BODY_S", 0.1)
    with serving(path) as server, server.connect() as connection:
        connection.sendall(
            head(server, "POST", "Transfer-Encoding: chunked", "").replace(b"/memories", b"/memories/lines")
        )
        ticks = threading.Event()
        for number in range(6):
            connection.sendall(b'9\r\n"line %03d\r\n' % number + b'2\r\n"\n\r\n')
            ticks.wait(0.05)  # longer than a body may take, all together
        connection.sendall(b"0\r\n\r\n")
        said = b""
        while not said.endswith(b"\r\n0\r\n\r\n"):
            said += connection.recv(10_000)
        assert said.startswith(b"HTTP/1.1 200 ")
        assert said.count(b'"id"') == 6


def test_a_body_has_a_limit(server: ThreadServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_BYTES_MAX", 100_000)
    large = b'{"text": "' + b"x" * 300_000 + b'"}'
    for content in (large, iter([large[:150_000], large[150_000:]])):
        for path in ("/v1/memories", "/v1/search", "/v1/memories/forget"):
            with server.client() as own:  # the connection is closed
                assert error_of(own.post(path, content=content), 413)["type"] == "TooLarge"
                if not isinstance(content, bytes):
                    break
    assert server.root.changes().seq == 0
    assert client.post("/v1/memories", json={"text": "x" * 90_000}).status_code == 200


def test_a_large_body_that_was_refused_before_it_came_is_told_why(server: ThreadServer) -> None:
    """Also to a client that sends all of it before it reads."""
    large = b"x" * (17 * 2**20)
    with server.client("nacre_0_wrong") as client:
        error_of(client.post("/v1/memories", content=large), 401)
    with server.client() as client:
        error_of(client.post("/v1/memories", content=large), 413)
        error_of(client.post("/v1/nothing", content=large), 404)
        assert client.get("/healthz").status_code == 200


def test_a_request_that_takes_too_long_is_told_and_goes_on(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(application, "REQUEST_S", 0.1)
            answer = client.post("/v1/memories", json={"text": "it goes on"})
        assert "goes on" in error_of(answer, 503)["message"]
        assert held.waiting == 1
    finally:
        held.go_on()
    wait_until(lambda: client.get("/v1/facets").json()["total"] == 1)


def test_too_many_requests_at_once_are_refused(
    server: ThreadServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were taken are carried out; health is told without a thread."""
    held, answers = Held(monkeypatch), []
    monkeypatch.setattr(server.application._calls, "_most", 20)

    def remember(number: int) -> None:
        with server.client() as own:
            answers.append(own.post("/v1/memories", json={"text": f"at once {number}"}).status_code)

    threads = [threading.Thread(target=remember, args=(number,)) for number in range(20)]
    try:
        for each in threads:
            each.start()
        wait_until(lambda: server.application._calls._now == 20)
        assert held.waiting == 16
        answer = client.get("/v1/facets")
        assert error_of(answer, 503)["type"] == "Busy"
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
    finally:
        held.go_on()
        for each in threads:
            each.join(30)
    assert answers == [200] * 20
    assert client.get("/v1/facets").json()["total"] == 20


def test_bytes_that_are_no_request_end_their_connection_alone(server: ThreadServer, client: httpx.Client) -> None:
    odd = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100 + b"\r\n\r\n",  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
        head(server, "POST", "Content-Length: 5", "Content-Length: 6", "") + b"{}",
        head(server, "POST", "Content-Length: -5", "") + b"{}",
        head(server, "POST", "Content-Length: 5", "Transfer-Encoding: chunked", "") + b"0\r\n\r\n",
        head(server, "POST", "Transfer-Encoding: chunked", "") + b"zz\r\n{}\r\n",
        head(server, "POST", "Transfer-Encoding: gzip", "") + b"{}",
        head(server, "GET", "X: a\0b", "") + b"\r\n",
    )
    for each in odd:
        with server.connect() as connection:
            connection.sendall(each)
            said = b""
            with contextlib.suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_WR)
                said = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert not said or said.split(b" ", 2)[1][:1] in (b"4", b"5"), each[:80]
        assert client.get("/healthz").status_code == 200
    assert server.root.changes().seq == 0


def test_requests_on_one_connection_are_answered_in_their_order(server: ThreadServer) -> None:
    with server.connect() as connection:
        asked = "".join(
            f"GET /v1/search?query={each} HTTP/1.1\r\nHost: {server.host}\r\n\r\n" for each in ("x", "y", "z")
        )
        connection.sendall((asked + f"GET /healthz HTTP/1.1\r\nHost: {server.host}\r\n\r\n").encode())
        said = b""
        while b'"status":"ok"' not in said:
            said += connection.recv(65_536)
        assert said.count(b"HTTP/1.1 200 ") == 4
        assert said.rindex(b"receipt") < said.index(b'"status":"ok"')


def test_a_server_ends_though_clients_are_in_the_middle(path: Path) -> None:
    """Those who listen are let go at once; a body that never comes is cut off; nothing is left in the log."""
    with serving(path) as server, contextlib.ExitStack() as stack:
        begun = (
            b"",
            b"GET /hea",
            head(server, "GET", "Accept: text/event-stream", "").replace(b"/memories", b"/changes") + b"\r\n",
            head(server, "POST", "Transfer-Encoding: chunked", "").replace(b"/memories", b"/memories/lines"),
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(initialize()), initialize()),
        )
        for each in begun:
            connection = stack.enter_context(server.connect())
            connection.sendall(each)
        wait_until(lambda: server.application._watch._listeners == 1 and server.application._streams._now == 1)
