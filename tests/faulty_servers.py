"""Servers that answer as a test says: not at all, in part, as something else, or as a real server but too late."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

from mcp_clients import ANSWER_SECONDS
from nacre import __version__

Answer: TypeAlias = Callable[[bytes], bytes | None]  # to a whole request; None: the connection is closed

GOOD = f"Nacre-Version: {__version__}\r\nContent-Type: application/json\r\n"


def answered(status: int, body: str = "", headers: str = GOOD) -> Answer:
    """An answer that is the same for every request."""
    sent = body.encode()
    head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(sent)}\r\n{headers}\r\n"
    return lambda _: head.encode() + sent


def refused(_: bytes) -> None:
    """No answer."""


def passed_on(port: int) -> Answer:
    """The answer of the server at this port."""

    def answer(request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as server:
            server.sendall(request.replace(b"Connection: keep-alive", b"Connection: close", 1))
            return b"".join(iter(lambda: server.recv(65_536), b""))

    return answer


def lost(port: int) -> Answer:
    """The server at this port carries the request out, and its answer is lost."""
    passed = passed_on(port)

    def answer(request: bytes) -> None:
        assert (passed(request) or b"").startswith(b"HTTP/1.1 2")

    return answer


def cut(answer: Answer, left_out: int) -> Answer:
    """An answer that ends too early."""

    def shorter(request: bytes) -> bytes | None:
        whole = answer(request)
        return None if whole is None else b"CLOSE" + whole[:-left_out]

    return shorter


class FaultyServer:
    """Answers one request after the other with the answers of a list, and all further ones with the last of them."""

    def __init__(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        self.port: int = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.answers: list[Answer] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self._listening = listening
        self._context = context
        self._open: list[socket.socket] = []

    def serve(self) -> None:
        """Connections are answered in threads, which end with them."""
        threads: list[threading.Thread] = []
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.connections += 1
                self._open.append(connection)
                threads.append(threading.Thread(target=self._answer, args=(connection,)))
                threads[-1].start()
        for each in threads:
            each.join(ANSWER_SECONDS)

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            if self._context is not None:
                connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
            while request := _request(connection):
                self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                said = answer(request)
                if said is None:
                    return
                connection.sendall(said.removeprefix(b"CLOSE"))
                if said.startswith(b"CLOSE") or b"connection: close" in said.lower():
                    return


@contextlib.contextmanager
def faulty(*answers: Answer, context: ssl.SSLContext | None = None) -> Iterator[FaultyServer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = FaultyServer(listening, context)
        server.answers = list(answers)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join(ANSWER_SECONDS)
            assert not thread.is_alive()


def _request(connection: socket.socket) -> bytes:
    """A whole request, by its length or its last chunk; nothing at the end."""
    got = b""
    while not _complete(got):
        part = connection.recv(65_536)
        if not part:
            return b""
        got += part
    return got


def _complete(got: bytes) -> bool:
    head, end, body = got.partition(b"\r\n\r\n")
    if not end:
        return False
    lines = [each.lower() for each in head.split(b"\r\n")]
    if b"transfer-encoding: chunked" in lines:
        return body.endswith(b"0\r\n\r\n")
    length = next((int(each.split(b":")[1]) for each in lines if each.startswith(b"content-length:")), 0)
    return len(body) >= length
