"""Connections: how many there are, when they are closed, who shares them, and what keeps them from being made."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import nacre
from faulty_servers import answered, faulty, passed_on, refused
from mcp_clients import environment
from nacre import InvalidInput, NewMemory, ServerMismatch, ServerUnavailable, Unauthorized
from nacre.errors import ServerError
from servers import ThreadServer, serving, wait_until

pytest_plugins = "client_fixtures"
pytestmark = pytest.mark.usefixtures("hurried")

MISSING = "nowhere.invalid"  # no name that anybody has


class Connections:
    """How many connections a server has accepted."""

    def __init__(self) -> None:
        self.made = 0
        self.open = 0


@contextmanager
def counted(server: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    protocol = server.server.config.http_protocol_class
    made, lost = protocol.connection_made, protocol.connection_lost
    seen = Connections()

    def connection_made(self: asyncio.Protocol, transport: asyncio.Transport) -> None:
        seen.made += 1
        seen.open += 1
        made(self, transport)

    def connection_lost(self: asyncio.Protocol, error: Exception | None) -> None:
        seen.open -= 1
        lost(self, error)

    with monkeypatch.context() as patch:
        patch.setattr(protocol, "connection_made", connection_made)
        patch.setattr(protocol, "connection_lost", connection_lost)
        yield seen


def test_calls_share_one_connection_and_streams_give_it_back(
    server: ThreadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(server, monkeypatch) as connections:
        with nacre.connect(server.url, space="shared") as memory:
            memory.remember_many([f"text {number}" for number in range(50)])
            for _ in range(5):
                memory.search("text")
                memory.within("elsewhere").timeline()
                with pytest.raises(nacre.NotFound):
                    memory.get("missing")
                assert len(list(memory.every())) == 50
            assert connections.made == 1
        wait_until(lambda: connections.open == 0)


def test_a_stream_that_is_left_early_frees_its_connection(
    server: ThreadServer, remote: nacre.RemoteNacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.remember_many(NewMemory(text=f"{number}", metadata={"long": "x" * 50_000}) for number in range(60))
    with counted(server, monkeypatch) as connections, nacre.connect(server.url) as memory:
        for _ in range(10):  # more than a server streams at once
            records = memory.export()
            assert next(records)
            assert connections.open == 1
            records.close()  # type: ignore[attr-defined]
            wait_until(lambda: connections.open == 0)
        assert len(list(memory.export())) > 60


def test_nothing_is_sent_before_the_first_call() -> None:
    with faulty(refused) as between:
        with nacre.connect(between.url) as memory:
            memory.within("home")
            memory.every()
        assert between.connections == 0


def test_threads_share_a_client(remote: nacre.RemoteNacre) -> None:
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda number: remote.remember(f"number {number}"), range(40)))
        found = list(threads.map(lambda each: remote.get(each.id).memories[0].text, done))
    assert found == [f"number {number}" for number in range(40)]


def test_closing_one_for_another_space_leaves_the_connections(remote: nacre.RemoteNacre) -> None:
    with remote.within("home") as home:
        home.remember("the bins are emptied on Tuesdays")
    assert remote.search("bins").hits == ()
    assert home.search("bins").hits


def test_after_closing_every_call_says_so(server: ThreadServer) -> None:
    memory = nacre.connect(server.url, space="closing")
    memory.remember_many(["word " * 30_000 for _ in range(9)])
    home, begun = memory.within("closing"), memory.export()
    next(begun)
    memory.close()
    memory.close()
    for call in (
        lambda: memory.search("x"),
        lambda: list(memory.every()),
        lambda: home.search("x"),
        lambda: list(begun),
    ):
        with pytest.raises(
            ServerUnavailable, match=r"the connection to http://127\.0\.0\.1:\d+ is closed; connect again"
        ):
            call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_connections_of_its_own(path: Path) -> None:
    """In a process of its own: the tests' one has threads, which a fork does not copy."""
    program = """
import os, sys, nacre
with nacre.connect(sys.argv[1]) as memory:
    memory.remember("made before")
    child = os.fork()
    for number in range(20):
        assert not memory.remember(f"{'child' if child == 0 else 'parent'} {number}").duplicate
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert memory.stats().memories == 41, memory.stats().memories
"""
    with serving(path) as server:
        run = [sys.executable, "-c", program, server.url]
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment(path), timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------- what is there instead of a server


HTML = "Content-Type: text/html\r\n"
OTHERS = {
    "a page": (answered(200, "<html>Welcome</html>", HTML), ServerMismatch,
               "is no server of Nacre .*text/html.*check the URL"),
    "another API": (answered(404, '{"detail": "Not Found"}', "Content-Type: application/json\r\n"), ServerMismatch,
                    "is no server of Nacre .*status 404"),
    "another sign-in": (answered(401, "", HTML), ServerMismatch, "is no server of Nacre .*status 401"),
    "a redirect": (answered(301, "", "Location: https://memory.example.org/\r\n"), ServerMismatch,
                   r"sends to https://memory.example.org/\); connect to that URL"),
    "a proxy without a server": (answered(502, "<html>Bad gateway</html>", HTML), ServerUnavailable,
                                 "cannot be reached .*a proxy before it says 502"),
    "no HTTP": (lambda _: b"CLOSE220 mail.example.org ESMTP\r\n", ServerUnavailable, "broke off its answer"),
    "another version": (answered(200, '{"hits": []}', "Nacre-Version: 99.1.0\r\n"), ServerMismatch,
                        r"has version 99\.1\.0 of Nacre, .*install the same version on both sides"),
    "an error of another version": (answered(400, '{"error": {"type": "InvalidInput", "message": "x"}}',
                                             "Nacre-Version: 99.1.0\r\n"), ServerMismatch, "install the same version"),
    "an answer of another shape": (answered(200, '{"found": []}'), ServerMismatch, "cannot be read by version"),
    "no JSON": (answered(200, "hits"), ServerMismatch, "cannot be read by version"),
    "an error without a body": (answered(500, "oops"), ServerError, "answered with status 500"),
    "an unknown error": (answered(418, '{"error": {"type": "Teapot", "message": "pot: is short"}}'), ServerError,
                         "^pot: is short$"),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_server_of_this_version_is_told(what: str) -> None:
    answer, kind, said = OTHERS[what]
    with faulty(answer) as between, nacre.connect(between.url, token="nacre_secret_x") as memory:
        for call in (lambda: memory.search("x"), lambda: list(memory.every())):
            if what in ("an answer of another shape", "no JSON") and between.requests:
                continue
            with pytest.raises(kind, match=said) as raised:
                call()
            assert type(raised.value) is kind
            assert "nacre_secret" not in repr(raised.value)


def test_a_path_where_no_server_is(server: ThreadServer, remote: nacre.RemoteNacre, space: str) -> None:
    """NotFound would mean that there is no such memory."""
    remote.remember("tea")
    with nacre.connect(f"{server.url}/prefix/") as memory, pytest.raises(ServerMismatch, match="check the URL"):
        memory.forget("x")

    def below(request: bytes) -> bytes | None:
        assert b" /prefix/v1/" in request
        return passed_on(server.port)(request.replace(b" /prefix", b" ", 1))

    with faulty(below) as between:
        for url in (f"{between.url}/prefix", f"{between.url}/prefix/"):
            with nacre.connect(url, space=space) as memory:
                assert memory.search("tea").hits


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    server: ThreadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty(answered(502, "", HTML)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for host in ("127.0.0.1", "localhost", "LOCALHOST"):
            with nacre.connect(f"http://{host}:{server.port}/") as memory:
                assert memory.count_tokens("tea") > 0
        assert proxy.requests == []
        with nacre.connect(f"http://{MISSING}", retries=0) as memory, pytest.raises(ServerUnavailable):
            memory.search("x")
        assert proxy.requests[0].startswith(b"POST http://nowhere.invalid/v1/search")
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:70")
    nacre.connect(server.url).close()
    with pytest.raises(InvalidInput, match="proxy: that of the environment cannot be used"):
        nacre.connect(f"http://{MISSING}")


# ---------------------------------------------------------------- tokens


def test_a_token_that_is_wrong_expired_or_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "memories.db", token_needed=True) as server:
        good = server.token("write", ("team",), name="laptop")
        with nacre.connect(server.url, token=good) as memory:
            memory.remember("tea")
            assert [each.space for each in memory.every()] == ["team"]
            assert good not in repr(memory) + repr(vars(memory)) + repr(vars(memory._connection))
            with pytest.raises(nacre.AccessDenied) as raised:
                memory.within("home").search("tea")
            assert raised.value.field == "space" or "Nacre-Space" in raised.value.field
            with pytest.raises(ServerError, match="needs a token of the role 'admin'"):
                memory.purge("x")
            (token,) = [each for each in server.root.tokens() if each.name == "laptop"]
            server.root.revoke_token(token.id)
            with pytest.raises(Unauthorized, match="unknown, expired or revoked"):
                memory.search("tea")
            with pytest.raises(Unauthorized, match="unknown, expired or revoked"):
                list(memory.export())
        for wrong in (good[:-1], "nacre_x", "x"):
            with nacre.connect(server.url, token=wrong) as memory, pytest.raises(Unauthorized) as raised_again:
                memory.search("tea")
            assert wrong not in str(raised_again.value).replace("expired", "").split()
        with nacre.connect(server.url) as memory, pytest.raises(Unauthorized, match="nacre token create"):
            memory.search("tea")
        monkeypatch.setenv("NACRE_TOKEN", server.token("read", ("team",)))
        with nacre.connect(server.url) as memory:
            assert memory.search("tea").hits
        with nacre.connect(server.url, token="") as memory, pytest.raises(Unauthorized, match="nacre token create"):
            memory.search("tea")


# ---------------------------------------------------------------- certificates


@pytest.mark.slow
def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl cannot make a certificate")
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with (
        serving(tmp_path / "memories.db") as plain,
        pytest.raises(ServerUnavailable, match=r"speaks no TLS .*connect with http://"),
    ):
        nacre.connect(f"https://127.0.0.1:{plain.port}").search("x")
    with faulty(answered(200, '{"hits": [], "notes": [], "total": 0}'), context=context) as server:
        url = f"https://localhost:{server.port}"
        with (
            nacre.connect(url) as memory,
            pytest.raises(ServerUnavailable, match=r"not trusted .self-signed.*SSL_CERT_FILE"),
        ):
            memory.search("x")
        assert server.connections == 1
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with nacre.connect(url) as memory:
            assert memory.search("x").hits == ()
        with (
            nacre.connect(f"https://127.0.0.1:{server.port}") as memory,
            pytest.raises(ServerUnavailable, match="IP address mismatch"),
        ):
            memory.search("x")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))
        with pytest.raises(InvalidInput, match="SSL_CERT_FILE: "):
            nacre.connect(url)


# ---------------------------------------------------------------- what is needed


PROGRAMS = {
    "an engine needs no client": (
        "memory = nacre.open(sys.argv[1], embedder='none'); memory.remember('x'); memory.close()"
    ),
    "an async engine needs no client": (
        "import asyncio\nasync def run():\n async with nacre.AsyncNacre(nacre.open(sys.argv[1], embedder='none')) as m:"
        "\n  await m.remember('x')\nasyncio.run(run())"
    ),
    "the types need no client": "nacre.RemoteNacre, nacre.AsyncNacre, nacre.connect, nacre.connect_async",
}


def test_only_a_client_needs_httpx(path: Path) -> None:
    told = "\n".join(f"exec({each!r})\nassert 'httpx' not in sys.modules" for each in PROGRAMS.values())
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, nacre\n{told}", path],
        env=environment(path),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_httpx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for connect in (nacre.connect, nacre.connect_async):
        with pytest.raises(InvalidInput, match=r"pip install 'nacre-memory\[client\]'"):
            connect("http://127.0.0.1:8642")
