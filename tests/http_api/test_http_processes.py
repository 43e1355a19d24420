"""`nacre serve` as processes: they end without losing what they have begun, and several of them are one server."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import nacre
from nacre.embedders.hashing import Hashing
from servers import ServeProcess, lines, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are other there"),
]

SLOW = """
import pathlib, sys, time
sys.argv[1:1] = ["serve", "--port", "0"]
from nacre.engine.writer import Writer
folder, real = pathlib.Path({folder!r}), Writer.remember
def remember(*given, **named):
    (folder / "begun").touch()
    while not (folder / "go on").exists():
        time.sleep(0.01)
    return real(*given, **named)
Writer.remember = remember
from nacre.cli import main
main()
"""


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionError:
        return True
    return False


def test_a_request_in_work_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW.format(folder=str(tmp_path)), "utf-8")
    answers: list[httpx.Response] = []
    with ServeProcess(tmp_path / "memories.db", script=script) as server:

        def remember() -> None:
            with server.client() as client:
                answers.append(client.post("/v1/memories", json={"text": "in work"}))

        thread = threading.Thread(target=remember)
        thread.start()
        wait_until((tmp_path / "begun").exists)
        server.popen.send_signal(signal.SIGTERM)
        wait_until(lambda: refused(server.port))
        assert server.popen.poll() is None
        (tmp_path / "go on").touch()
        thread.join(30)
        assert server.popen.wait(30) == 0
        assert "Traceback" not in server.log()
        assert "ERROR" not in server.log()
    assert answers[0].status_code == 200
    with nacre.open(tmp_path / "memories.db", embedder=Hashing()) as memory:
        assert [each.id for each in memory.every()] == [answers[0].json()["id"]]


def workers(server: ServeProcess) -> set[int]:
    """The processes that answer: those that the first one has spawned."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = re.search(r"^PPid:\t(\d+)$", (each / "status").read_text(), re.MULTILINE)
            spawned = "spawn_main" in (each / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        if parent is not None and int(parent[1]) == server.popen.pid and spawned:
            found.add(int(each.name))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path_factory.mktemp("workers") / "memories.db", "--workers", "2") as process:
        yield process
        running = workers(process)
        assert len(running) == 2
        assert process.stop() == 0
        assert not [each for each in running if Path(f"/proc/{each}").exists()]
        assert refused(process.port)
        assert "Traceback" not in process.log()


def counted(server: ServeProcess, path: str) -> float:
    with server.client() as client:
        families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [each for family in families for each in family.samples if each.name == "nacre_http_requests_total"]
    return sum(each.value for each in samples if each.labels["path"] == path)


CLIENTS = 32
ROUNDS = 12


def test_many_clients_lose_nothing(server: ServeProcess) -> None:
    """Mixed reads and writes by processes that share the file: no error, and every memory exactly once."""
    statuses: Counter[int] = Counter()
    stored: dict[str, str] = {}
    failed: list[BaseException] = []

    def work(client_number: int) -> None:
        try:
            with server.client() as client:
                for turn in range(ROUNDS):
                    text = f"client {client_number} wrote line {turn}"
                    headers = {"Idempotency-Key": text}
                    answers = [client.post("/v1/memories", json={"text": text}, headers=headers)]
                    memory = answers[0].json()["id"]
                    stored[memory] = text
                    answers.append(client.get("/v1/search", params={"query": text, "limit": 3}))
                    answers.append(client.get(f"/v1/memories/{memory}"))
                    assert answers[2].json()["text"] == text  # also where another process wrote it
                    if turn % 4 == 0:
                        answers.append(client.patch(f"/v1/memories/{memory}", json={"tags": ["touched"]}))
                        answers.append(client.post("/v1/memories", json={"text": text}, headers=headers))
                        assert answers[-1].json()["id"] == memory
                    statuses.update(each.status_code for each in answers)
        except BaseException as error:
            failed.append(error)

    before = counted(server, "/v1/search")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert failed == []
    assert statuses.keys() == {200}
    assert len(stored) == CLIENTS * ROUNDS
    with server.client() as client:
        every = [(each["id"], each["text"]) for each in lines(client.get("/v1/memories/lines"))]
    assert sorted(every) == sorted(stored.items())
    assert counted(server, "/v1/search") - before == CLIENTS * ROUNDS  # the numbers of both processes together


def test_a_worker_that_dies_is_started_again(server: ServeProcess) -> None:
    before = workers(server)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in workers(server) and len(workers(server)) == 2)
    new = workers(server) - before
    assert len(new) == 1
    for number in range(20):
        with server.client() as client:  # a connection each, by whichever process
            assert client.post("/v1/memories", json={"text": f"after {number}"}).status_code == 200
    with server.client() as client:
        assert client.get("/v1/search?query=after").json()["hits"]
