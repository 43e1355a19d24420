"""What changes is told while a client listens: in order, without gaps, and only of the spaces that it may see."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.http_api import events
from servers import ThreadServer, error_of, listening, serving, wait_until


@pytest.fixture
def server(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadServer]:
    monkeypatch.setattr(events, "POLL_S", 0.01)
    with serving(path) as served:
        yield served


def test_changes_come_in_order_with_their_numbers(server: ThreadServer) -> None:
    old = server.root.remember("before anybody listens")
    with listening(server) as listener:
        assert listener.told[0] == ("ready", 1, {"seq": 1})
        ids = [server.root.remember(f"change {number}").id for number in range(20)]
        server.root.forget(old.id)
        wait_until(lambda: len(listener.changes) == 21)
        assert [name for _, name in listener.changes] == [*ids, old.id]
        numbers = [number for number, _ in listener.changes]
        assert numbers == sorted(set(numbers))
        assert listener.told[-1][2]["action"] == "forgotten"
        with server.client() as client:  # the same as by asking
            asked = client.get("/v1/changes?since=1").json()["changes"]
        assert [data for name, _, data in listener.told if name == "change"] == asked
    assert listener.failed is None  # the server ended the stream as it should


def test_who_comes_back_misses_nothing(server: ThreadServer) -> None:
    ids = [server.root.remember(f"one {number}").id for number in range(5)]
    with listening(server, **{"Last-Event-ID": "2"}) as listener:
        assert listener.told[0] == ("ready", 2, {"seq": 2})
        ids.append(server.root.remember("now").id)
        wait_until(lambda: len(listener.changes) == 4)
        assert [name for _, name in listener.changes] == ids[2:]


def test_many_changes_are_told_by_the_page(server: ThreadServer) -> None:
    server.root.remember_many(f"one {number}" for number in range(25))
    with listening(server, path="/v1/changes?since=0&limit=10") as listener:
        wait_until(lambda: len(listener.changes) == 25)
        assert [number for number, _ in listener.changes] == list(range(1, 26))


def test_the_header_counts_more_than_the_address(server: ThreadServer) -> None:
    """A browser connects again to the same address, and sends the last event that it had."""
    server.root.remember_many(f"one {number}" for number in range(5))
    with listening(server, path="/v1/changes?since=0", **{"Last-Event-ID": "4"}) as listener:
        wait_until(lambda: listener.changes)
        assert [number for number, _ in listener.changes] == [5]


def test_wrong_numbers_are_told(server: ThreadServer) -> None:
    headers = {"Accept": "text/event-stream"}
    with server.client() as client:
        for path, more, field in (
            ("/v1/changes?since=5", {}, "since"),
            ("/v1/changes?since=-1", {}, "since"),
            ("/v1/changes?since=x", {}, "since"),
            ("/v1/changes", {"Last-Event-ID": "9" * 19}, "since"),
            ("/v1/changes", {"Last-Event-ID": "x"}, "Last-Event-ID"),
            ("/v1/changes", {"Last-Event-ID": "1" * 20}, "Last-Event-ID"),
            ("/v1/changes?limit=0", {}, "limit"),
            ("/v1/changes?query=x", {}, "query"),
        ):
            assert error_of(client.get(path, headers={**headers, **more}), 400)["field"] == field


def test_a_token_sees_the_changes_of_its_spaces_alone(server: ThreadServer) -> None:
    own, both = server.token("read", ("own",)), server.token("read", ("own", "other"))
    with (
        listening(server, own) as listener,
        listening(server, both, "/v1/changes?spaces=own&spaces=other") as wide,
    ):
        hidden = server.root.remember("hidden", space="other").id
        seen = server.root.remember("seen", space="own").id
        wait_until(lambda: listener.changes and len(wide.changes) == 2)
        assert [name for _, name in listener.changes] == [seen]
        assert [name for _, name in wide.changes] == [hidden, seen]
        with server.client(own, Accept="text/event-stream") as client:
            error_of(client.get("/v1/changes?spaces=other"), 403)


def test_the_stream_of_a_revoked_token_ends_and_no_other(server: ThreadServer) -> None:
    """However many there are: the end of a stream is no failed sign-in."""
    revoked, valid = server.root.create_token(), server.token("read")
    with listening(server, valid) as other, contextlib.ExitStack() as stack:
        several = [stack.enter_context(listening(server, revoked.secret)) for _ in range(25)]
        server.root.revoke_token(revoked.token.id)
        first = server.root.remember("after it was revoked").id
        wait_until(lambda: all(each.ended for each in several))
        assert [each.changes for each in several] == [[]] * 25
        assert [each.failed for each in several] == [None] * 25
        second = server.root.remember("and after the streams have ended").id
        wait_until(lambda: len(other.changes) == 2)
        assert [name for _, name in other.changes] == [first, second]
        with server.client(valid) as client:
            assert client.get("/v1/session").status_code == 200


def test_writes_of_other_processes_are_seen(server: ThreadServer, path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as other, listening(server) as listener:
        written = other.remember("by a program on the same file").id
        wait_until(lambda: listener.changes)
        assert [name for _, name in listener.changes] == [written]


def test_listeners_are_limited(server: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LISTENERS_MAX", 2)
    with listening(server), listening(server), server.client(Accept="text/event-stream") as client:
        answer = client.get("/v1/changes")
        assert error_of(answer, 503)["type"] == "Busy"
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/v1/changes", headers={"Accept": "application/json"}).status_code == 200


def test_who_goes_away_is_no_listener_any_more(server: ThreadServer) -> None:
    """Also without a change."""
    for _ in range(3):
        with server.connect() as connection:
            head = f"GET /v1/changes HTTP/1.1\r\nHost: {server.host}\r\nAccept: text/event-stream\r\n\r\n"
            connection.sendall(head.encode())
            wait_until(lambda: server.application._watch._listeners == 1)
        wait_until(lambda: server.application._watch._listeners == 0)
    assert server.application._watch._task is None


def test_signs_of_life_are_sent(server: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    with server.connect() as connection:
        head = f"GET /v1/changes HTTP/1.1\r\nHost: {server.host}\r\nAccept: text/event-stream\r\n\r\n"
        connection.sendall(head.encode())
        said = b""
        while said.count(b": still here\n\n") < 4:
            said += connection.recv(1_000)
        assert said.count(b"event: ready") == 1


def test_a_store_that_is_away_for_a_moment_ends_no_stream(
    server: ThreadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(server) as listener:
        asked = []

        def failing(*_: object, **__: object) -> None:
            asked.append(1)
            raise nacre.StoreBusy("another process writes")

        with monkeypatch.context() as patch:
            patch.setattr(type(server.root), "changes", failing)
            wait_until(lambda: len(asked) > 2)
        written = server.root.remember("later").id
        wait_until(lambda: listener.changes)
        assert [name for _, name in listener.changes] == [written]
