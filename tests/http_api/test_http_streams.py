"""JSON Lines in and out over HTTP: in order, in bounded memory, and with clients that stop, fail or go away."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from http_verbs import made
from nacre import NewMemory
from nacre.engine.writer import BATCH_EMBEDDED
from nacre.http_api import streams
from nacre.serialization import transfer
from servers import ThreadServer, error_of, lines, serving, wait_until


@pytest.fixture
def server(path: Path) -> Iterator[ThreadServer]:
    with serving(path) as served:
        yield served


@pytest.fixture
def client(server: ThreadServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


def texts(server: ThreadServer) -> list[str]:
    """What is stored, in the order in which it was remembered."""
    return [each.text for each in sorted(server.root.every(), key=lambda each: each.id)]


def numbered(many: int) -> Iterator[bytes]:
    return (f'{{"text": "line {number}"}}\n'.encode() for number in range(many))


class Upload:
    """A request whose body is sent bit by bit, and whose answer is read meanwhile."""

    def __init__(self, server: ThreadServer, path: str, *headers: str) -> None:
        self._socket = server.connect()
        head = f"POST {path} HTTP/1.1", f"Host: {server.host}", "Transfer-Encoding: chunked", *headers
        self._socket.sendall("\r\n".join((*head, "", "")).encode())
        self.said = b""

    def send(self, parts: Iterable[bytes]) -> None:
        body = b"".join(parts)
        self._socket.sendall(b"%x\r\n%s\r\n" % (len(body), body))

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def read_until(self, told: Callable[[bytes], object]) -> None:
        while not told(self.said):
            part = self._socket.recv(65_536)
            assert part, self.said
            self.said += part

    def close(self, *, at_once: bool = False) -> None:
        if at_once:  # by a reset, as of a machine that is switched off
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()


# ---------------------------------------------------------------- in


def test_many_lines_are_stored_in_their_order_and_answered_by_the_batch(
    server: ThreadServer, client: httpx.Client
) -> None:
    many = 2 * BATCH_EMBEDDED + 10
    answer = client.post("/v1/memories/lines", content=numbered(many))
    batches = lines(answer)
    assert [len(each) for each in batches] == [BATCH_EMBEDDED, BATCH_EMBEDDED, 10]
    ids = [each["id"] for batch in batches for each in batch]
    assert [each.text for each in server.root.get(ids)] == [f"line {number}" for number in range(many)]


def test_what_is_answered_is_stored_while_more_is_to_come(server: ThreadServer) -> None:
    upload = Upload(server, "/v1/memories/lines")
    upload.send(numbered(2 * BATCH_EMBEDDED + 1))  # one batch is answered when the next has been read
    upload.read_until(lambda said: said.count(b'"id"') >= BATCH_EMBEDDED)
    assert len(texts(server)) >= BATCH_EMBEDDED
    upload.send([b'"the last', b' one"'])  # without a line break
    upload.end()
    upload.read_until(lambda said: said.endswith(b"\r\n0\r\n\r\n"))
    assert len(texts(server)) == 2 * BATCH_EMBEDDED + 2
    assert "the last one" in texts(server)
    upload.close()


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("where", ["/v1/memories/lines", "/v1/load"])
def test_a_client_that_goes_away_frees_its_thread_and_leaves_what_was_answered(
    server: ThreadServer, where: str, at_once: bool
) -> None:
    upload = Upload(server, where)
    if where == "/v1/load":
        server.root.remember_many(f"line {number}" for number in range(1_200))
        upload.send(f"{line.rstrip()}\n".encode() for line in transfer.lines(server.root.export()))
    else:
        upload.send(numbered(2 * BATCH_EMBEDDED + 5))
    upload.read_until(lambda said: b"\n" in said.partition(b"\r\n\r\n")[2].partition(b"\r\n")[2])
    assert server.application._streams._now == 1
    upload.close(at_once=at_once)
    wait_until(lambda: server.application._streams._now == 0)
    if where == "/v1/memories/lines":
        assert len(texts(server)) == 2 * BATCH_EMBEDDED
    with server.client() as client:  # all threads are free
        for _ in range(20):
            assert client.post("/v1/memories/lines", content=b'"again"').status_code == 200


def test_a_bad_line_ends_the_request_unless_it_shall_go_on(server: ThreadServer, client: httpx.Client) -> None:
    body = b'"one"\n\n{"txt": "?"}\nnonsense\n{"text": ""}\n\xff\n"half \\ud800"\n"two"\n'
    error = error_of(client.post("/v1/memories/lines", content=body), 400)
    assert error["field"] == "line 3: txt"
    assert texts(server) == []
    answers = lines(client.post("/v1/memories/lines?keep_going=true", content=body))
    assert [each["refused"] for each in answers if "refused" in each] == [3, 4, 6, 5, 7]
    assert {each["error"]["type"] for each in answers if "refused" in each} == {"InvalidInput"}
    assert texts(server) == ["one", "two"]


def test_after_the_first_answer_an_error_is_the_last_line(server: ThreadServer, client: httpx.Client) -> None:
    body = [*numbered(BATCH_EMBEDDED), b"nonsense\n", b'"never read"']
    answers = lines(client.post("/v1/memories/lines", content=iter(body)))
    assert len(answers[0]) == BATCH_EMBEDDED
    assert answers[1]["error"]["field"].startswith(f"line {BATCH_EMBEDDED + 1}")
    assert len(answers) == 2
    assert len(texts(server)) == BATCH_EMBEDDED


def test_reports_of_bad_lines_are_sent_before_all_are_read(server: ThreadServer) -> None:
    """Else a body of bad lines would fill the memory."""
    upload = Upload(server, "/v1/memories/lines?keep_going=true")
    upload.send([b"nonsense\n"] * 2_000)
    upload.read_until(lambda said: b'{"refused":300,' in said)
    upload.send([b'"good"\n'])
    upload.end()
    upload.read_until(lambda said: said.endswith(b"\r\n0\r\n\r\n"))
    assert b'{"refused":2000,' in upload.said
    assert b'"id"' in upload.said
    assert texts(server) == ["good"]
    upload.close()


def test_a_line_has_a_limit_and_a_body_has_none(
    server: ThreadServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LINE_BYTES_MAX", 100_000)
    error = error_of(client.post("/v1/memories/lines", content=b'"' + b"x" * 300_000), 400)
    assert "100,000 bytes" in error["problem"]
    many = (json.dumps(f"{number} {'long ' * 1_000}").encode() + b"\n" for number in range(60))
    assert len(lines(client.post("/v1/memories/lines", content=many))[0]) == 60
    assert len(texts(server)) == 60


def test_a_client_that_sends_nothing_more_is_told(server: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STALLED_S", 0.2)
    upload = Upload(server, "/v1/memories/lines")
    upload.send([b'"begun"\n'])
    upload.read_until(lambda said: b"\r\n\r\n" in said and b"}" in said)
    assert upload.said.startswith(b"HTTP/1.1 408 ")
    wait_until(lambda: server.application._streams._now == 0)
    upload.close()


# ---------------------------------------------------------------- out


def test_an_export_that_is_loaded_is_an_equal_store(server: ThreadServer, client: httpx.Client, tmp_path: Path) -> None:
    made(server.root, "default", "one")
    made(server.root, "other", "two")
    with serving(tmp_path / "copy.db") as copy, copy.client() as second:
        answer = second.post("/v1/load", content=client.get("/v1/export?vectors=true").content)
        assert lines(answer)[-1]["added"] == 6
        one, other = ([*each.root.export(vectors=True)][1:] for each in (server, copy))
        assert one == other
        again = lines(second.post("/v1/load", content=client.get("/v1/export?vectors=true").content))
        assert again[-1]["added"] == 0
        assert [*copy.root.export(vectors=True)][1:] == other


def test_lines_can_be_filtered_and_come_in_order(client: httpx.Client) -> None:
    client.post("/v1/memories/lines", content=b"".join(numbered(30)))
    client.post("/v1/memories", json={"text": "another", "tags": ["x"]})
    every = lines(client.get("/v1/memories/lines"))
    assert [each["text"] for each in every] == [*(f"line {number}" for number in range(30)), "another"]
    found = lines(client.get("/v1/memories/lines", params={"where": json.dumps({"tags_all": ["x"]})}))
    assert [each["text"] for each in found] == ["another"]
    assert lines(client.get("/v1/memories/lines?forgotten=true")) == []
    assert error_of(client.get("/v1/memories/lines?tags=x"), 400)["field"] == "tags"


def fill(server: ThreadServer) -> None:
    """With more than what sockets keep for a client that does not read."""
    with server.root.within("default", confined=False) as memory:
        memory.remember_many(NewMemory(text=f"long {at}", metadata={"long": "x" * 60_000}) for at in range(120))


def test_a_stream_that_nobody_reads_holds_up_nobody(server: ThreadServer) -> None:
    """It stands until its client reads on, or goes."""
    fill(server)
    with server.client() as client, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        lazy.connect(("127.0.0.1", server.port))
        lazy.sendall(f"GET /v1/export HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        wait_until(lambda: server.application._streams._now == 1)
        assert client.post("/v1/memories", json={"text": "meanwhile"}).status_code == 200
        assert lines(client.get("/v1/memories/lines?where=%7B%22kinds%22%3A%5B%22fact%22%5D%7D")) == []
        wait_until(lambda: server.application._streams._now == 1)
        lazy.close()
        wait_until(lambda: server.application._streams._now == 0)


def test_a_client_that_takes_nothing_is_left(server: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STALLED_S", 0.2)
    fill(server)
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        lazy.connect(("127.0.0.1", server.port))
        lazy.sendall(f"GET /v1/export HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        wait_until(lambda: server.application._streams._now == 1)
        wait_until(lambda: server.application._streams._now == 0)
        wait_until(lambda: not server.server.server_state.connections)


def test_streams_are_limited(server: ThreadServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.application._streams, "_most", 3)
    waiting: list[Any] = [Upload(server, "/v1/memories/lines") for _ in range(3)]
    wait_until(lambda: server.application._streams._now == 3)
    answer = client.get("/v1/export")
    assert error_of(answer, 503)["type"] == "Busy"
    assert answer.headers["retry-after"] == "1"
    assert client.get("/v1/facets").status_code == 200
    for each in waiting:
        each.end()
        each.read_until(lambda said: b"\r\n0\r\n\r\n" in said or b"content-length: 0" in said)
        each.close()
    wait_until(lambda: server.application._streams._now == 0)
    assert client.get("/v1/export").status_code == 200
