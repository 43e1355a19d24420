"""A server over HTTP in a process of its own, and clients on raw sockets that are slow, many, large or gone.

Its limits are made small by the script that starts it; the tests wait for what happens and measure no time.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_clients import ANSWER_SECONDS, HttpProcess, initialize, message, tool_call

pytestmark = pytest.mark.slow

LIMITED = """
import sys
sys.argv[1:1] = ["mcp", "--http", "--port", "0"]
from nacre.mcp_server import sdk
sdk.load()
from nacre.mcp_server import http_limits
http_limits.HEAD_S = http_limits.BODY_S = 0.5
http_limits.SHUTDOWN_S = 1
http_limits.SESSIONS_MAX = 3
http_limits.SESSION_IDLE_S = {idle}
http_limits.REQUEST_BYTES_MAX = 100_000
from nacre.cli import main
main()
"""
USUAL = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def limited(folder: Path, idle: float) -> HttpProcess:
    script = folder / "limited.py"
    script.write_text(LIMITED.format(idle=idle), "utf-8")
    return HttpProcess(folder / "memories.db", script=script)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with limited(tmp_path_factory.mktemp("limited"), 600) as process:
        yield process
        assert "Traceback" not in process.log()


def post(server: HttpProcess, body: bytes, session: str | None = None) -> tuple[int, str | None, str]:
    """The status, the session that was opened, and the answer."""
    connection = http.client.HTTPConnection(server.host, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", "/mcp", body, USUAL | ({} if session is None else {"mcp-session-id": session}))
        answer = connection.getresponse()
        return answer.status, answer.headers["mcp-session-id"], answer.read().decode()
    finally:
        connection.close()


def opened(server: HttpProcess) -> str:
    status, session, _ = post(server, initialize())
    assert status == 200
    assert session is not None
    return session


def raw(server: HttpProcess) -> socket.socket:
    host, port = server.host.split(":")
    return socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)


def said_until_closed(connection: socket.socket) -> bytes:
    """All that the server says before it closes; the test fails if it does not."""
    said = b""
    while data := connection.recv(65_536):
        said += data
    return said


HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)
SLOW = {
    "nothing": b"",
    "half a line": b"POST /mcp HT",
    "half a head": HEAD,
    "no body": HEAD + b"Content-Length: 1000\r\n\r\n",
    "half a body": HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 500,
    "half a body in chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n    \r\n",
    "half a second request": b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + HEAD,
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_who_does_not_finish_a_request_is_not_waited_for(server: HttpProcess, sent: bytes) -> None:
    with raw(server) as connection:
        connection.sendall(sent)
        assert b"HTTP/1.1 408 " in said_until_closed(connection)
    opened(server)


def test_a_byte_now_and_then_does_not_count_as_progress(server: HttpProcess) -> None:
    with raw(server) as connection:
        connection.sendall(HEAD)
        connection.settimeout(0.1)
        for _ in range(ANSWER_SECONDS * 10):
            try:
                connection.sendall(b"X-More: slow\r\n")
                said = connection.recv(100)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            assert not said or b" 408 " in said
            break
        else:
            raise AssertionError("the server still waits")


def test_many_slow_clients_do_not_keep_others_out(server: HttpProcess) -> None:
    slow = [raw(server) for _ in range(50)]
    try:
        for each in slow:
            each.sendall(HEAD)
        assert post(server, initialize())[0] == 200
    finally:
        for each in slow:
            each.close()


def test_a_body_has_a_limit(server: HttpProcess) -> None:
    session = opened(server)
    for body in (tool_call(1, "remember", text="x" * 100_000), b"[" * 200_000):
        assert post(server, body, session)[0] == 413
    with raw(server) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n" + b"10000\r\n" + b" " * 65_536 + b"\r\n")
        assert b" 413 " in connection.recv(100)
    assert post(server, message(id=1, method="ping"), session)[0] == 200


def test_a_head_has_a_limit(server: HttpProcess) -> None:
    with raw(server) as connection:
        connection.sendall(HEAD + b"X-More: " + b"x" * 200_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_the_session_that_was_idle_longest_ends(server: HttpProcess) -> None:
    first, second, third = (opened(server) for _ in range(3))
    assert post(server, message(id=1, method="ping"), first)[0] == 200  # now the second one is idle longest
    fourth = opened(server)
    for each in (first, third, fourth):
        assert post(server, message(id=1, method="ping"), each)[0] == 200
    status, _, answer = post(server, message(id=1, method="ping"), second)
    assert status == 404
    assert "Send initialize again" in json.loads(answer)["error"]["message"]


def test_a_session_that_a_client_listens_to_is_not_idle(server: HttpProcess) -> None:
    listening = opened(server)
    connection = http.client.HTTPConnection(server.host, timeout=ANSWER_SECONDS)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream", "mcp-session-id": listening})
    assert connection.getresponse().status == 200
    for _ in range(5):
        opened(server)
    assert post(server, message(id=1, method="ping"), listening)[0] == 200
    connection.close()


def test_a_session_that_never_was_is_not_found(server: HttpProcess) -> None:
    status, _, answer = post(server, message(id=1, method="ping"), "guessed")
    assert (status, json.loads(answer)["error"]["code"]) == (404, -32600)


def test_an_idle_session_ends(tmp_path: Path) -> None:
    with limited(tmp_path, 0.3) as server:
        session = opened(server)
        for _ in range(ANSWER_SECONDS):
            time.sleep(1)  # longer than it may be idle
            if post(server, message(id=1, method="ping"), session)[0] == 404:
                break
        else:
            raise AssertionError("it never ends")
        assert post(server, message(id=1, method="ping"), opened(server))[0] == 200
        assert "Traceback" not in server.log()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other there")
def test_it_ends_though_clients_are_in_the_middle_of_a_request(tmp_path: Path) -> None:
    with limited(tmp_path, 600) as server:
        slow = [raw(server) for _ in range(4)]
        listening = http.client.HTTPConnection(server.host, timeout=ANSWER_SECONDS)
        listening.request("GET", "/mcp", headers={"Accept": "text/event-stream", "mcp-session-id": opened(server)})
        assert listening.getresponse().status == 200
        for number, each in enumerate(slow):
            each.sendall(list(SLOW.values())[number])
        server.popen.send_signal(signal.SIGTERM)
        assert server.popen.wait(ANSWER_SECONDS) == 0
        assert "Traceback" not in server.log()
        for each in slow:
            each.close()
        listening.close()
