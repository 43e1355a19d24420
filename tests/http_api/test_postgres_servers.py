"""Several servers on one PostgreSQL store are one: each sees at once what another has written, and carries nothing out
that another has carried out."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from postgres_server import Schemas, fresh_schemas, needs_postgres, shared_server
from servers import ServeProcess, lines, wait_until

pytestmark = [
    pytest.mark.slow,
    needs_postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are other there"),
]

KEY = "Idempotency-Key"


@pytest.fixture(scope="module")
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as made:
        yield made


@pytest.fixture(scope="module")
def servers(schemas: Schemas, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServeProcess]]:
    """Two on one store, one of which has two processes."""
    settings: dict[str, Any] = {
        "NACRE_STORE": schemas.dsn,
        "NACRE_POSTGRES_SCHEMA": schemas.new(),
        "NACRE_POSTGRES_CONNECTIONS": "6",
    }
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        both = [
            stack.enter_context(ServeProcess(folder / "none.db", *arguments, **settings))
            for arguments in (("--workers", "2"), ("--defer-embeddings",))
        ]
        yield both
        for each in both:
            assert each.stop() == 0
            assert "Traceback" not in each.log()


def found(server: ServeProcess, query: str) -> set[str]:
    """By a connection of its own, so by any of its processes."""
    with server.client() as client:
        answer = client.get("/v1/search", params={"query": query, "mode": "keyword"})
    assert answer.status_code == 200, answer.text
    return {hit["id"] for hit in answer.json()["hits"]}


def test_what_one_writes_the_next_search_of_any_finds(servers: list[ServeProcess]) -> None:
    for turn in range(6):
        writer = servers[turn % 2]
        with writer.client() as client:
            said = {"text": f"The ferry number {turn} leaves at noon"}
            memory = client.post("/v1/memories", json=said).json()["id"]
            for server in servers * 2:
                assert memory in found(server, "ferry noon")
            assert client.post("/v1/memories/forget", json={"ids": [memory]}).status_code == 200
            for server in servers * 2:
                assert memory not in found(server, "ferry noon")


def test_a_request_that_is_sent_to_all_is_carried_out_once(servers: list[ServeProcess]) -> None:
    answers: list[httpx.Response] = []
    begin = threading.Barrier(12)

    def send(server: ServeProcess) -> None:
        with server.client(**{KEY: "the bridge"}) as client:
            begin.wait(30)
            while True:
                answer = client.post("/v1/memories", json={"text": "The bridge is closed"})
                if answer.status_code != 409:  # another carries it out
                    answers.append(answer)
                    return

    threads = [threading.Thread(target=send, args=(server,)) for server in servers * 6]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(answers) == 12
    assert {each.status_code for each in answers} == {200}
    assert len({each.content for each in answers}) == 1
    assert answers[0].json()["duplicate"] is False
    assert sum("idempotent-replay" not in each.headers for each in answers) == 1
    with servers[0].client() as client:
        history = client.get(f"/v1/memories/{answers[0].json()['id']}/history").json()
    assert [each["action"] for each in history] in (["remembered"], ["remembered", "embedded"])
    for server in servers:
        with server.client(**{KEY: "the bridge"}) as client:
            assert client.post("/v1/memories", json={"text": "Another request"}).status_code == 409


def test_who_listens_to_one_is_told_what_others_change(servers: list[ServeProcess]) -> None:
    told: list[Any] = []

    def listen() -> None:
        with (
            servers[0].client(Accept="text/event-stream") as client,
            client.stream("GET", "/v1/changes") as answer,
        ):
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    told.append(json.loads(line.removeprefix("data: ")))
                    if len(told) == 4:
                        return

    listener = threading.Thread(target=listen)
    listener.start()
    wait_until(lambda: told)
    ids: list[str] = []
    for server in (servers[1], servers[0], servers[1]):
        with server.client() as client:
            ids.append(client.post("/v1/memories", json={"text": f"The tide turns, {len(ids)}"}).json()["id"])
    listener.join(30)
    assert [each["name"] for each in told[1:]] == ids
    numbers = [each["seq"] for each in told]
    assert numbers == sorted(set(numbers))
    pages = []
    for server in servers:
        with server.client() as client:
            pages.append(client.get("/v1/changes", params={"since": numbers[0]}).json())
    assert pages[0] == pages[1]
    assert [each["name"] for each in pages[0]["changes"]][:3] == ids


def test_many_clients_of_all_servers_lose_nothing(servers: list[ServeProcess]) -> None:
    stored: dict[str, str] = {}
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with servers[number % 2].client() as client, servers[(number + 1) % 2].client() as other:
                for turn in range(4):
                    text = f"client {number} wrote line {turn}"
                    memory = client.post("/v1/memories", json={"text": text}).json()["id"]
                    stored[memory] = text
                    assert other.get(f"/v1/memories/{memory}").json()["text"] == text
                    assert other.patch(f"/v1/memories/{memory}", json={"tags": ["seen"]}).status_code == 200
                    assert client.get("/v1/search", params={"query": text, "limit": 3}).status_code == 200
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert failed == []
    assert len(stored) == 24 * 4
    with servers[0].client() as client:
        every = {each["id"]: each["text"] for each in lines(client.get("/v1/memories/lines"))}
    assert stored.items() <= every.items()


def test_a_restart_of_the_database_between_two_requests_is_not_noticed(servers: list[ServeProcess]) -> None:
    """Their connections were lost. Reads and writes that begin afterwards get new ones."""
    for server in servers:
        assert not found(server, "before the restart")
    shared_server().stop()
    shared_server().start()
    for number, server in enumerate(servers * 2):
        with server.client() as client:
            answer = client.post("/v1/memories", json={"text": f"After the restart, {number}"})
            assert answer.status_code == 200, answer.text
    for server in servers:
        assert len(found(server, "after the restart")) == 4


def test_what_a_server_defers_waits_for_workers(servers: list[ServeProcess]) -> None:
    with servers[1].client() as client:
        memory = client.post("/v1/memories", json={"text": "The lamp is lit at dusk"}).json()["id"]
        actions = [each["action"] for each in client.get(f"/v1/memories/{memory}/history").json()]
        assert actions == ["remembered"]
        assert client.get("/v1/stats").json()["pending"] > 0
