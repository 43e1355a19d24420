"""Requests with an Idempotency-Key: carried out once, and answered as before when they are sent again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import nacre
from http_calls import Called, send
from http_verbs import call, made
from nacre.embedders.hashing import Hashing
from nacre.engine.writer import Writer
from nacre.serialization.routes import ROUTES
from nacre.storage.sqlite import SqliteStore
from servers import ThreadServer, error_of, serving, wait_until

KEY = "Idempotency-Key"
KEYED = [name for name, each in ROUTES.items() if not each.safe and not each.lines_out]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    folder = tmp_path_factory.mktemp("repeated")
    with serving(folder / "memories.db", backups=folder / "backups") as served:
        yield served


def remember(client: httpx.Client, key: str, text: str, **fields: Any) -> httpx.Response:
    return client.post("/v1/memories", json={"text": text, **fields}, headers={KEY: key})


@pytest.mark.parametrize("verb", KEYED)
def test_a_write_that_is_sent_again_is_made_once(server: ThreadServer, verb: str) -> None:
    called = call(verb, made(server.root, "default", f"again{verb}"))
    with server.client(**{KEY: f"again {verb}"}) as client:
        first = send(client, called)
        assert first.status_code in (200, 204), first.text
        assert "idempotent-replay" not in first.headers
        before = server.root.changes().seq
        again = send(client, called)
        assert server.root.changes().seq == before
    if verb == "create_token":  # a secret is kept nowhere
        assert first.json()["secret"] not in error_of(again, 409)["message"]
        assert "AnswerDeleted" in again.text
    elif verb == "purge":  # it deletes what is kept; of itself there are only ids
        assert again.json() == first.json()
    else:
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["idempotent-replay"] == "true"
        assert again.headers.get("etag") == first.headers.get("etag")


def test_another_request_with_the_same_key_is_refused(server: ThreadServer) -> None:
    with server.client() as client:
        assert remember(client, "same", "one").status_code == 200
        others = [
            remember(client, "same", "two"),
            remember(client, "same", "one", tags=["x"]),
            client.post("/v1/memories/forget", json={"text": "one"}, headers={KEY: "same"}),
            client.post("/v1/memories", json={"text": "one"}, headers={KEY: "same", "Nacre-Space": "other"}),
            client.post("/v1/memories", json={"text": "one"}, headers={KEY: "same", "Nacre-Spaces": '["default"]'}),
        ]
        for each in others:
            assert error_of(each, 409)["type"] == "Conflict"
        assert remember(client, "same", "one").headers["idempotent-replay"] == "true"


def test_the_version_belongs_to_the_request(server: ThreadServer) -> None:
    with server.client() as client:
        memory = remember(client, "v", "of two versions").json()["id"]
        etag = client.get(f"/v1/memories/{memory}").headers["etag"]

        def change(**headers: str) -> httpx.Response:
            return client.patch(f"/v1/memories/{memory}", json={"summary": "changed"}, headers={KEY: "c", **headers})

        first = change(**{"If-Match": etag})
        assert first.status_code == 200
        again = change(**{"If-Match": etag})  # 412 if it were carried out
        assert (again.status_code, again.json()) == (200, first.json())
        error_of(change(), 409)


def test_a_request_that_failed_is_carried_out_again(server: ThreadServer) -> None:
    with server.client() as client:
        memory = remember(client, "failed 1", "the lost one").json()["id"]
        headers = {KEY: "failed 2"}
        error_of(client.post("/v1/memories/restore", json={"ids": ["unknown"]}, headers=headers), 404)
        assert client.post("/v1/memories/forget", json={"ids": [memory]}, headers=headers).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_has_a_limit(server: ThreadServer, key: str) -> None:
    with server.client() as client:
        before = server.root.changes().seq
        assert error_of(remember(client, key, f"a key of {len(key)}"), 400)["field"] == KEY
        assert server.root.changes().seq == before


@pytest.mark.parametrize("verb", ["remember_batches", "load", "reembed"])
def test_a_stream_has_no_key(server: ThreadServer, verb: str) -> None:
    """It is said: a key that is ignored would be a promise that is not kept."""
    called = call(verb, made(server.root, "default", f"stream{verb}"))
    with server.client(**{KEY: "stream"}) as client:
        before = server.root.changes().seq
        assert error_of(send(client, called), 400)["field"] == KEY
        assert server.root.changes().seq == before


def test_reading_needs_no_key(server: ThreadServer) -> None:
    with server.client(**{KEY: "read"}) as client:
        for query in ("one", "two"):
            assert send(client, Called("search", {"query": query})).status_code == 200


def test_the_key_of_one_token_is_not_that_of_another(path: Path) -> None:
    with serving(path) as server:
        answers = []
        for secret in (server.token("write"), server.token("write"), None):
            with server.client(secret) as client:
                answers.append(remember(client, "k", f"by {secret}"))
        assert [each.status_code for each in answers] == [200] * 3
        assert len({each.json()["id"] for each in answers}) == 3
        assert not any("idempotent-replay" in each.headers for each in answers)


def test_an_answer_is_kept_for_other_processes_and_after_a_restart(path: Path) -> None:
    with serving(path) as one, one.client() as client:
        first = remember(client, "k", "kept")
        with serving(path) as other, other.client() as second:
            assert remember(second, "k", "kept").json() == first.json()
            error_of(remember(second, "k", "other"), 409)
    with serving(path) as later, later.client() as client:
        again = remember(client, "k", "kept")
        assert (again.json(), again.headers["idempotent-replay"]) == (first.json(), "true")
        assert client.get("/v1/facets").json()["total"] == 1


def test_a_purged_text_is_in_no_kept_answer(path: Path) -> None:
    with serving(path) as server, server.client() as client:
        memory = remember(client, "k", "the unmentionable").json()["id"]
        url, changed = f"/v1/memories/{memory}", {"json": {"summary": "x"}, "headers": {KEY: "k2"}}
        assert "unmentionable" in client.patch(url, **changed).text  # type: ignore[arg-type]
        client.post("/v1/memories/purge", json={"ids": [memory]})
        again = client.patch(url, **changed)  # type: ignore[arg-type]
        assert error_of(again, 409)["type"] == "AnswerDeleted"
        assert "unmentionable" not in again.text


def test_of_two_at_the_same_time_one_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    real = Writer.remember

    def waiting(*arguments: Any, **named: Any) -> Any:
        entered.set()
        assert go_on.wait(30)
        return real(*arguments, **named)

    monkeypatch.setattr(Writer, "remember", waiting)
    answers: list[httpx.Response] = []
    with serving(path) as server, serving(path) as other:

        def first() -> None:
            with server.client() as client:
                answers.append(remember(client, "k", "twice"))

        thread = threading.Thread(target=first)
        thread.start()
        try:
            assert entered.wait(30)
            for each in (server, other):
                with each.client() as client:
                    told = remember(client, "k", "twice")
                    assert "being carried out" in error_of(told, 409)["message"]
                    assert told.headers["retry-after"] == "1"
                    error_of(remember(client, "k", "another"), 409)
        finally:
            go_on.set()
            thread.join(30)
        with other.client() as client:
            assert remember(client, "k", "twice").json() == answers[0].json()
            assert client.get("/v1/facets").json()["total"] == 1


def test_what_may_be_stored_is_not_written_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that was lost while a write was ended leaves open whether it is stored."""
    real = SqliteStore.add_token

    def lost(store: SqliteStore, *given: Any) -> None:
        real(store, *given)
        raise nacre.MaybeStored("store: the connection was lost; it may not be stored")

    monkeypatch.setattr(SqliteStore, "add_token", lost)
    asked = {"json": {"role": "read", "spaces": ["default"]}, "headers": {KEY: "k"}}
    with serving(path) as server, server.client() as client:
        for _ in range(2):
            told = client.post("/v1/tokens", **asked)  # type: ignore[arg-type]
            assert error_of(told, 503)["type"] == "MaybeStored"
        assert told.headers["idempotent-replay"] == "true"
        assert len(server.root.tokens()) == 1


def test_a_client_that_has_gone_finds_its_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was begun goes on, and is not carried out a second time."""
    entered, go_on = threading.Event(), threading.Event()
    real = Writer.remember

    def waiting(*arguments: Any, **named: Any) -> Any:
        entered.set()
        assert go_on.wait(30)
        return real(*arguments, **named)

    monkeypatch.setattr(Writer, "remember", waiting)
    with serving(path) as server:
        body = b'{"text":"from one that left"}'
        head = f"POST /v1/memories HTTP/1.1\r\nHost: {server.host}\r\n{KEY}: k\r\nContent-Length: {len(body)}\r\n\r\n"
        with server.connect() as connection:
            connection.sendall(head.encode() + body)
            assert entered.wait(30)
        go_on.set()
        with server.client() as client:
            answers = []

            def answered() -> bool:
                answers.append(client.post("/v1/memories", content=body, headers={KEY: "k"}))
                return answers[-1].status_code == 200

            wait_until(answered)
            assert answers[-1].headers["idempotent-replay"] == "true"
    with nacre.open(path, embedder=Hashing()) as memory:
        assert len(memory.timeline().entries) == 1
