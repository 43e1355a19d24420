"""What a request over HTTP may say: its path, its arguments and its versions, and what is said of wrong ones."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import pytest

import nacre
from nacre.cli.group import nacre as commands
from nacre.embedders.hashing import Hashing
from nacre.serialization.routes import PREFIX, ROUTES
from servers import ThreadServer, error_of, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with serving(tmp_path_factory.mktemp("requests") / "memories.db") as served:
        yield served


@pytest.fixture(scope="module")
def client(server: ThreadServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


def remembered(client: httpx.Client, text: str, **fields: Any) -> str:
    answer = client.post("/v1/memories", json={"text": text, **fields})
    assert answer.status_code == 200, answer.text
    identifier: str = answer.json()["id"]
    return identifier


# ---------------------------------------------------------------- no verb is left out

# The command for each verb. Routes and methods of the clients are compared in tests/client/test_signatures.py.
COMMANDS = {
    "remember": "remember", "remember_batches": "import", "get": "get", "every": "export", "forget": "forget",
    "restore": "restore", "purge": "purge", "update": "update", "history": "history", "similar": "similar",
    "separate": "unlink", "related": "related", "search": "search", "why": "why", "why_not": "why-not",
    "facets": "facets", "context": "context", "timeline": "timeline", "audit": "audit", "facts": "fact list",
    "state_fact": "fact add", "drop_facts": "fact drop", "reinforce": "reinforce", "stale": "stale",
    "conflicts": "conflicts", "unlink": "unlink", "entities": "entity list", "add_entity": "entity add",
    "drop_entity": "entity drop", "related_entities": "entity related", "receipts": "log", "clear_log": "log clear",
    "mark": "mark", "lenses": "lens list", "save_lens": "lens save", "lens": "lens show", "drop_lens": "lens delete",
    "changes": "changes", "export": "export", "load": "import", "stats": "stats", "check": "doctor",
    "rebuild": "rebuild", "reembed": "reembed", "backup": "backup", "tokens": "token list",
    "create_token": "token create", "revoke_token": "token revoke",
}  # fmt: skip
NO_COMMAND = {
    "remember_many": "`remember` and `import` take many",
    "add_facts": "`remember` takes facts, and `fact add` adds one to a memory",
    "count_tokens": "for programs that fill a context",
    "screen": "for programs that ask before they remember",
    "entity_counts": "completes what a person types",
}


def test_every_verb_has_a_command() -> None:
    assert COMMANDS.keys() | NO_COMMAND.keys() == ROUTES.keys()
    group = commands.loaded()
    for name in COMMANDS.values():
        command: click.Command | None = group
        for word in name.split():
            assert isinstance(command, click.Group), name
            command = command.commands.get(word)
        assert command is not None, name


# ---------------------------------------------------------------- errors

NESTED = b"[" * 200_000
WRONG_BODIES = {
    "no JSON": (b"{", "body"),
    "not UTF-8": (b'{"query": "\xff"}', "body"),
    "nested deeply": (b'{"query":' + NESTED + b"}", "body"),
    "nested as deep as can be read": (b'{"where":' + b"[" * 900 + b"]" * 900 + b"}", "query"),
    "no object": (b"[1]", "body"),
    "a huge number": (b'{"query":"x","limit":1' + b"0" * 5_000 + b"}", "body"),
    "an endless number": (b'{"query":"x","limit":1e999}', "limit"),
    "no number": (b'{"query":"x","limit":NaN}', "limit"),
    "a number too large": (b'{"query":"x","limit":9223372036854775808}', "limit"),
    "a wrong type": (b'{"query":5}', "query"),
    "an unknown name": (b'{"query":"x","q":"x"}', "q"),
    "a missing one": (b'{"limit":5}', "query"),
    "half a character": (b'{"query":"x","lens":"\\ud800"}', "lens"),
}


@pytest.mark.parametrize(("body", "field"), WRONG_BODIES.values(), ids=WRONG_BODIES)
def test_a_wrong_body_is_an_error_that_names_the_field(client: httpx.Client, body: bytes, field: str) -> None:
    error = error_of(client.post("/v1/search", content=body), 400)
    assert (error["type"], error["field"]) == ("InvalidInput", field)
    assert error["problem"]
    assert error.keys() == {"type", "message", "field", "problem", "remedy"}
    assert len(error["message"]) < 1_000


WRONG_QUERIES = {
    "query=x&query=y": "query",
    "query=x&q=y": "q",
    "limit=5": "query",
    "query=x&limit=": "limit",
    "query=x&limit=many": "limit",
    "query=x&limit=true": "limit",
    f"query=x&limit={'1' * 5_000}": "limit",
    "query=x&limit=1e400": "limit",
    "query=x&collapse=perhaps": "collapse",
    "query=x&where={": "where",
    f"query=x&where={'[' * 30_000}": "where",
    "query=x&where=%7B%22tag%22%3A%22x%22%7D": "where.tag",
    "query=x&texts=perhaps": "texts",
    "query=x&texts=true&texts=true": "texts",
    "query=x&keep_going=true": "keep_going",
    "query=%ff": "query",
    "query=%zz": "query",
    "query=%": "query",
    "query=%ed%a0%80": "query",
}


@pytest.mark.parametrize(("query", "field"), WRONG_QUERIES.items())
def test_a_wrong_url_is_an_error_that_names_the_field(client: httpx.Client, query: str, field: str) -> None:
    assert error_of(client.get(f"/v1/search?{query}"), 400)["field"] == field


def test_arguments_stand_in_one_place(client: httpx.Client) -> None:
    memory = remembered(client, "where it stands")
    for answer in (
        client.post("/v1/search?query=x", json={"limit": 5}),
        client.request("GET", "/v1/search?query=x", content=b'{"limit": 5}'),
        client.request("DELETE", "/v1/lens?name=x", content=b"{}"),
        client.patch(f"/v1/memories/{memory}", json={"memory_id": "other"}),
        client.get(f"/v1/memories/{memory}/history?memory_id=other"),
        client.get("/v1/session?query=x"),
    ):
        assert error_of(answer, 400)["field"] in ("query", "body", "memory_id")
    assert client.get(f"/v1/memories/{memory}").json()["text"] == "where it stands"


def test_nul_and_other_odd_texts_are_stored_as_they_are_or_refused(client: httpx.Client) -> None:
    for text in ("a\0b", "\u202eright to left", "<script>alert(1)</script>", "é" * 10_000):
        answer = client.post("/v1/memories", json={"text": text})
        if answer.status_code == 200:
            assert client.get(f"/v1/memories/{answer.json()['id']}").json()["text"] == text
        else:
            assert error_of(answer, 400)["field"] == "text"
    assert error_of(client.post("/v1/memories", content=b'{"text": "\\ud800"}'), 400)["field"] == "text"


def test_what_is_not_there_is_not_found(client: httpx.Client) -> None:
    for path in ("/v1", "/v1/", "/v1/nothing", "/v1/memories/", "/v1/memories//history", "/nothing", "/v1/search/x"):
        assert error_of(client.get(path), 404)["type"] == "NotFound"
    for each in ("unknown", "a%2Fb", "%00", "x" * 5_000, "%20", "%F0%9F%90%9A"):
        assert error_of(client.get(f"/v1/memories/{each}"), 404)["type"] == "NotFound"
        assert error_of(client.get(f"/v1/memories/{each}/history"), 404)["type"] == "NotFound"
    for each in ("%ff", "%", "%zz"):
        assert error_of(client.get(f"/v1/memories/{each}"), 400)["field"] == "path"
    assert error_of(client.request("DELETE", "/v1/tokens/unknown"), 404)["type"] == "NotFound"


@pytest.mark.parametrize("path", sorted({each.path for each in ROUTES.values()}))
def test_a_wrong_method_is_told_the_right_ones(client: httpx.Client, path: str) -> None:
    known = {each.method for each in ROUTES.values() if each.path == path}
    known |= {"POST" for each in ROUTES.values() if each.path == path and each.posts}
    known |= {"GET"} if path == "/memories/{memory_id}" else set()
    filled = PREFIX + re.sub(r"{\w+}", "unknown", path)
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "ODD"} - known:
        answer = client.request(method, filled)
        assert answer.status_code == 405, (method, answer.text)
        assert sorted(answer.headers["allow"].split(", ")) == sorted(known)
        if method != "HEAD":
            error_of(answer, 405)


def test_errors_of_the_engine_have_their_status(client: httpx.Client) -> None:
    memory = remembered(client, "the twin")
    client.post("/v1/memories/forget", json={"ids": [memory]})
    remembered(client, "the twin")
    assert error_of(client.post("/v1/memories/restore", json={"ids": [memory]}), 409)["type"] == "Conflict"
    assert error_of(client.post("/v1/backup", json={"to": "x"}), 403)["type"] == "AccessDenied"


def test_backups_go_into_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "backups"
    with serving(tmp_path / "memories.db", backups=folder) as server, server.client() as client:
        remembered(client, "saved")
        for outside in ("../x", "/etc/x", "a/../../x", str(tmp_path / "x")):
            assert error_of(client.post("/v1/backup", json={"to": outside}), 403)["type"] == "AccessDenied"
        wrong: Any
        for wrong in ("\0", "\ud800", 5, ["a"], {}, None):
            answer = client.post("/v1/backup", content=json.dumps({"to": wrong}))
            assert error_of(answer, 400)["field"] == "to"
        assert not folder.exists()
        for name in (".", "named.db"):
            assert client.post("/v1/backup", json={"to": name}).status_code == 200
        assert error_of(client.post("/v1/backup", json={"to": "named.db"}), 400)["field"] == "to"
        assert len(list(folder.glob("*.db"))) == 2
    assert all(each.name == "made" or each.name.startswith("memories.db") for each in tmp_path.iterdir())


def test_a_quota_is_told_with_its_numbers(path: Path) -> None:
    def opened() -> nacre.Nacre:
        return nacre.open(path, embedder=Hashing(), quotas=nacre.Quotas(memories_max=1))

    with serving(opened) as server, server.client() as client:
        remembered(client, "the only one")
        error = error_of(client.post("/v1/memories", json={"text": "one more"}), 507)
        assert (error["type"], error["limit"], error["used"]) == ("QuotaExceeded", 1, 1)
        streamed = error_of(client.post("/v1/memories/lines", content=b'"one more"'), 507)
        assert streamed["quota"] == error["quota"]
        assert client.get("/v1/facets").json()["total"] == 1


def test_a_bug_is_told_by_its_type_alone(
    client: httpx.Client, server: ThreadServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its message may quote a memory."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a text of a memory")

    monkeypatch.setattr(type(server.root._reader), "get", broken)
    error = error_of(client.get("/v1/memories?ids=x"), 500)
    assert error["type"] == "InternalError"
    assert "RuntimeError" in error["message"]
    assert "a text of a memory" not in repr(error)
    assert "a request failed" in caplog.text


# ---------------------------------------------------------------- cursors


def test_a_cursor_goes_on_and_a_broken_one_is_told(client: httpx.Client) -> None:
    for number in range(7):
        remembered(client, f"page {number}", tags=["paged"])
    where = json.dumps({"tags_all": ["paged"]})
    pages, cursor = [], None
    while True:
        more: dict[str, str] = {} if cursor is None else {"cursor": cursor}
        page = client.get("/v1/timeline", params={"where": where, "limit": 3, **more}).json()
        pages += [each["id"] for each in page["entries"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert len(pages) == len(set(pages)) == 7
    cursor = client.get("/v1/timeline", params={"where": where, "limit": 3}).json()["next"]
    for wrong in ("", "abc", cursor[::-1], cursor[10:], "\0", "é", "x" * 5_000):
        answer = client.get("/v1/timeline", params={"where": where, "limit": 3, "cursor": wrong})
        assert error_of(answer, 400)["field"] == "cursor", wrong


# ---------------------------------------------------------------- versions


def test_a_memory_that_is_known_is_not_sent_again(client: httpx.Client) -> None:
    memory = remembered(client, "known already")
    first = client.get(f"/v1/memories/{memory}")
    etag = first.headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = client.get(f"/v1/memories/{memory}", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert "content-length" not in again.headers
    assert client.get(f"/v1/memories/{memory}", headers={"If-None-Match": '"other"'}).json() == first.json()
    assert error_of(client.get("/v1/memories/unknown", headers={"If-None-Match": "*"}), 404)


def test_what_belongs_to_a_memory_is_part_of_its_version(client: httpx.Client) -> None:
    """Another memory that updates it changes what is told of it, and not the memory."""
    memory = remembered(client, "the door is red")
    before = client.get(f"/v1/memories/{memory}")
    newer = remembered(client, "the door is green", supersedes=[memory])
    after = client.get(f"/v1/memories/{memory}", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["updated_by"] == [newer]
    assert after.json()["updated"] == before.json()["updated"]
    beside = client.get(f"/v1/memories/{memory}?entities=true", headers={"If-None-Match": after.headers["etag"]})
    assert beside.status_code == 200


def test_a_change_of_an_old_version_writes_nothing(client: httpx.Client) -> None:
    memory = remembered(client, "first")
    old = client.get(f"/v1/memories/{memory}").headers["etag"]
    changed = client.patch(f"/v1/memories/{memory}", json={"text": "second"}, headers={"If-Match": old})
    assert changed.status_code == 200
    before = client.get(f"/v1/memories/{memory}/history").json()
    for stale in (old, f"W/{old}"):
        answer = client.patch(f"/v1/memories/{memory}", json={"text": "third"}, headers={"If-Match": stale})
        assert error_of(answer, 412)["type"] == "Outdated"
    assert client.get(f"/v1/memories/{memory}").json()["text"] == "second"
    assert client.get(f"/v1/memories/{memory}/history").json() == before
    for fresh in (changed.headers["etag"], "*"):
        assert client.patch(f"/v1/memories/{memory}", json={"summary": fresh}, headers={"If-Match": fresh}).is_success


@pytest.mark.parametrize("wrong", ["", "x", '"x"', '"2026-01-01"', '"2026-01-01T00:00:00"', '"a", "b"', "**"])
def test_what_is_no_version_is_told(client: httpx.Client, wrong: str) -> None:
    memory = remembered(client, "of one version")
    answer = client.patch(f"/v1/memories/{memory}", json={"text": "other"}, headers={"If-Match": wrong})
    assert error_of(answer, 400)["field"] == "If-Match"
    assert client.get(f"/v1/memories/{memory}").json()["text"] == "of one version"


def test_of_changes_to_one_version_exactly_one_is_made(server: ThreadServer) -> None:
    with server.client() as client:
        for turn in range(5):
            memory = remembered(client, f"fought for {turn}")
            etag = client.get(f"/v1/memories/{memory}").headers["etag"]
            ready = threading.Barrier(4)
            answers: list[tuple[str, httpx.Response]] = []

            def change(
                name: str, memory: str = memory, etag: str = etag, ready: Any = ready, to: Any = answers
            ) -> None:
                with server.client() as own:
                    own.get("/healthz")  # connected
                    ready.wait()
                    body = {"summary": name}
                    to.append((name, own.patch(f"/v1/memories/{memory}", json=body, headers={"If-Match": etag})))

            threads = [threading.Thread(target=change, args=(f"by {number}",)) for number in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert sorted(answer.status_code for _, answer in answers) == [200, 412, 412, 412]
            (winner,) = [name for name, answer in answers if answer.status_code == 200]
            assert client.get(f"/v1/memories/{memory}").json()["summary"] == winner
            assert len(client.get(f"/v1/memories/{memory}/history").json()) == 2
