"""What the tests of the HTTP door share: a server in a thread of this process, and `nacre serve` in processes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import uvicorn
from anyio.from_thread import BlockingPortal

import nacre
from mcp_clients import ANSWER_SECONDS, environment
from nacre.embedders.hashing import Hashing
from nacre.http_api.application import Application
from nacre.http_api.callers import LOOPBACK_NAMES
from nacre.http_api.options import Options
from nacre.http_api.protocol import ServerProtocol
from nacre.types.access_tokens import Role
from nacre.types.location import SCHEMA

OPTIONS = Options(space="default", hosts=LOOPBACK_NAMES)
CONFIG: dict[str, Any] = {
    "http": ServerProtocol,
    "ws": "none",
    "lifespan": "on",
    "access_log": False,
    "log_level": "warning",
    "log_config": None,
    "server_header": False,
    "timeout_graceful_shutdown": 2,
}


class Served:
    """A server that listens on this machine alone, and how it is reached."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}"

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        signed = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url,
            headers={**signed, **headers},
            timeout=ANSWER_SECONDS,
            trust_env=False,
            verify=False,  # to load certificates takes longer than a test
        )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_SECONDS)


class ThreadServer(Served):
    """The application in a thread. `root` is the engine that it has opened."""

    def __init__(self, port: int, server: uvicorn.Server, application: Application) -> None:
        super().__init__(port)
        self.server = server
        self.application = application

    @property
    def root(self) -> nacre.Nacre:
        return self.application._engines.root

    def token(self, role: Role = "admin", spaces: tuple[str, ...] | None = None, **more: Any) -> str:
        """The secret of a new token."""
        return self.root.create_token(role=role, spaces=spaces, **more).secret


@contextlib.contextmanager
def serving(opened: Callable[[], nacre.Nacre] | Path, **options: Any) -> Iterator[ThreadServer]:
    """Serve what `opened` opens, or the store at a path, until the block ends. It must end in time."""
    if isinstance(opened, Path):
        path = opened
        opened = lambda: nacre.open(path, embedder=Hashing())  # noqa: E731
    application = Application(opened, replace(OPTIONS, **options))
    server = uvicorn.Server(uvicorn.Config(application, **CONFIG))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), name="served")
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started
            yield ThreadServer(listening.getsockname()[1], server, application)
        finally:
            server.should_exit = True
            thread.join(ANSWER_SECONDS)
            assert not thread.is_alive(), "the server does not end"


class ServeProcess(Served):
    """`nacre serve` in a process of its own, on a port that the system chose. Its log is what it says on stderr."""

    def __init__(self, store: Path, *arguments: str, script: Path | None = None, **variables: str) -> None:
        self._log = store.parent / f"log-{time.monotonic_ns()}"
        started = ("-m", "nacre", "serve", "--port", "0") if script is None else (str(script),)
        with self._log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, *started, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(store, **variables),
                cwd=store.parent,
            )
        try:
            wait_until(lambda: self._port() is not None or self.popen.poll() is not None)
            port = self._port()
            assert port is not None, self.log()
            super().__init__(port)
            wait_until(self._ready)
        except BaseException:
            self.popen.kill()
            self.popen.wait(ANSWER_SECONDS)
            raise

    def _port(self) -> int | None:
        found = re.search(r"at http://127\.0\.0\.1:(\d+)", self.log())
        return None if found is None else int(found[1])

    def _ready(self) -> bool:
        assert self.popen.poll() is None, self.log()
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        return self._log.read_text("utf-8")

    def stop(self) -> int:
        """End it as a service manager does; gives its exit code."""
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(ANSWER_SECONDS)

    def __enter__(self) -> ServeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever the test has left of it. Workers end with the process that started them if it is told to end."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(ANSWER_SECONDS)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        self.popen.wait(ANSWER_SECONDS)


def wait_until(true: Callable[[], object], seconds: float = ANSWER_SECONDS) -> None:
    """Wait for something that happens soon; the test fails if it does not."""
    for _ in range(int(seconds * 50)):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it does not happen")


def lines(answer: httpx.Response) -> list[Any]:
    """The items of an answer in JSON Lines."""
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.split("\n") if line]


def error_of(answer: httpx.Response, status: int) -> Mapping[str, Any]:
    """What is wrong with a request, in the only shape that errors have."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error["type"]
    assert error["message"]
    assert "Traceback" not in answer.text
    return error


Event: TypeAlias = tuple[str, int, Any]  # its name, id and data


class Listener:
    """What a client was told, until the stream ends."""

    def __init__(self, server: ThreadServer, token: str | None, path: str, headers: dict[str, str]) -> None:
        self.told: list[Event] = []
        self.ended = False
        self.failed: Exception | None = None
        self._arguments = server, token, path, headers
        self._close: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        wait_until(lambda: self.told or self.ended)

    def _listen(self) -> None:
        server, token, path, headers = self._arguments
        try:
            with (
                server.client(token, Accept="text/event-stream", **headers) as client,
                client.stream("GET", path) as answer,
            ):
                assert answer.status_code == 200
                assert answer.headers["content-type"] == "text/event-stream"
                self._close = answer.close
                event: dict[str, str] = {}
                for line in answer.iter_lines():
                    if line:
                        name, _, value = line.partition(": ")
                        event[name] = value
                    elif "event" in event:
                        self.told.append((event["event"], int(event["id"]), json.loads(event["data"])))
                        event = {}
        except Exception as error:
            self.failed = error
        self.ended = True

    @property
    def changes(self) -> list[tuple[int, str]]:
        return [(number, data["name"]) for name, number, data in self.told if name == "change"]

    def join(self) -> None:
        self._thread.join(30)
        assert self.ended


@contextlib.contextmanager
def listening(
    server: ThreadServer, token: str | None = None, path: str = "/v1/changes", **headers: str
) -> Iterator[Listener]:
    listener = Listener(server, token, path, headers)
    try:
        yield listener
    finally:
        server.server.should_exit = True  # ends the stream
        listener.join()


class SwitchedServer(Served):
    """A server that goes from one store to the next, because to start one takes longer than most tests."""

    application: Application

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.application(scope, receive, send)

    @contextlib.contextmanager
    def serving(self, name: str, schema: str = SCHEMA, **options: Any) -> Iterator[None]:
        opened = lambda: nacre.open(name, schema=schema, embedder=Hashing())  # noqa: E731
        self.application = Application(opened, replace(OPTIONS, **options))
        with self._portal.wrap_async_context_manager(_started(self.application)):
            yield


@contextlib.asynccontextmanager
async def _started(application: Application) -> AsyncIterator[None]:
    """In one task from start to stop."""
    await application.start()
    try:
        yield
    finally:
        await application.stop()


@contextlib.contextmanager
def switched(portal: BlockingPortal) -> Iterator[SwitchedServer]:
    served = SwitchedServer(portal)
    server = uvicorn.Server(uvicorn.Config(served, **{**CONFIG, "lifespan": "off"}))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Served.__init__(served, listening.getsockname()[1])
        running = portal.start_task_soon(server.serve, [listening])
        try:
            wait_until(lambda: server.started or running.done())
            yield served
        finally:
            server.should_exit = True
            running.result(ANSWER_SECONDS)
