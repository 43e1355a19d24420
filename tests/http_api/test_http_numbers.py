"""What who runs a server sees of it: health, numbers for Prometheus, and the log, in which no text and no token is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from http_calls import Called, send
from http_verbs import call, made, methods
from mcp_clients import initialize
from nacre.http_api.verbs import verbs
from nacre.serialization.routes import PREFIX, ROUTES
from servers import ThreadServer, error_of, serving

CANARY = "xyzzycanary"
LOGGED = re.compile(r"(local|-|[0-9a-z]{16}) ([A-Z]+|other) (-|/[\w/{}.-]*) (\d+) \d+\.\d ms")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    folder = tmp_path_factory.mktemp("numbers")
    with serving(folder / "memories.db", backups=folder / "backups") as served:
        yield served


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("nacre.access"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "nacre.access")
    return caplog


def numbers(server: ThreadServer) -> dict[str, list[Any]]:
    with server.client() as client:
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = {each.name: each.samples for each in text_string_to_metric_families(answer.text)}
    assert len(families) == answer.text.count("# TYPE ")
    return families


def total(samples: list[Any], **labels: str) -> float:
    return float(sum(each.value for each in samples if labels.items() <= each.labels.items()))


def test_health_and_readiness(path: Path) -> None:
    with serving(path, token_needed=True) as server, server.client() as client:
        for place in ("/healthz", "/readyz"):
            assert client.get(place).json().keys() == {"status", "version"}
            assert error_of(client.post(place), 405)
        server.application._ready = False  # as it is while the server stops
        answer = client.get("/readyz")
        assert error_of(answer, 503)["type"] == "NotReady"
        assert client.get("/healthz").status_code == 200


def test_every_request_and_verb_is_counted(server: ThreadServer) -> None:
    before = numbers(server)
    with server.client() as client:
        memory = client.post("/v1/memories", json={"text": "counted"}).json()["id"]
        client.get(f"/v1/memories/{memory}")
        client.get("/v1/search?query=counted&mode=hybrid")
        client.get("/v1/search?limit=0")
        client.request("ODD", "/v1/search")
        client.get("/nothing")
        client.get("/v1/memories/lines")
    after = numbers(server)

    def more(name: str, sample: str, **labels: str) -> float:
        return sum(
            sign * total([each for each in family.get(name, []) if each.name == sample], **labels)
            for sign, family in ((1, after), (-1, before))
        )

    requests = "nacre_http_requests", "nacre_http_requests_total"
    assert more(*requests, path="/v1/memories", method="POST", status="200") == 1
    assert more(*requests, path="/v1/memories/{memory_id}", status="200") == 1
    assert more(*requests, path="/v1/search", status="200") == 1
    assert more(*requests, path="/v1/search", status="400") == 1
    assert more(*requests, method="other", status="405") == 1
    assert more(*requests, path="-", status="404") == 1
    assert more("nacre_http_request_seconds", "nacre_http_request_seconds_count", path="/v1/search") >= 2
    assert more("nacre_verb_seconds", "nacre_verb_seconds_count", verb="remember") == 1
    assert more("nacre_verb_seconds", "nacre_verb_seconds_count", verb="search") == 1
    assert more("nacre_search_stage_seconds", "nacre_search_stage_seconds_count") > 2
    assert more("nacre_memories", "nacre_memories", space="default") == 1
    assert total(after["nacre_store_bytes"]) > 0
    assert total(after["nacre_pending_embeddings"]) == 0


def test_no_label_has_an_id_and_no_series_grows_without_end(server: ThreadServer) -> None:
    world = made(server.root, "default", CANARY)
    with server.client() as client:
        for verb in ("get", "history", "update", "search", "revoke_token"):
            send(client, call(verb, world))
        for number in range(30):
            client.get(f"/v1/memories/{CANARY}{number}")
            client.get(f"/{CANARY}{number}")
            client.request(f"{CANARY.upper()}{number}", f"/v1/{CANARY}{number}")
            client.get(f"/v1/memories/{CANARY}/{number}")
            client.get(f"/ui/{CANARY}{number}")
    allowed = {PREFIX + each.path for each in ROUTES.values()} | {
        "-", "/ui", "/metrics", "/mcp", "/healthz", "/readyz", "/openapi.json", "/v1/session", "/v1/evaluation",
    }  # fmt: skip
    for samples in numbers(server).values():
        for each in samples:
            assert CANARY not in repr(each.labels).lower()
            assert each.labels.get("path", "-") in allowed
            assert each.labels.get("verb", "get") in ROUTES
            assert each.labels.keys() <= {"method", "path", "status", "verb", "stage", "space", "le", "kind", "version"}


def test_the_log_has_a_line_for_each_request_and_no_text_or_token(
    server: ThreadServer, log: pytest.LogCaptureFixture
) -> None:
    """A text in every argument of every verb: in the path, in the query, in the body, in headers, and in errors."""
    world = made(server.root, "default", CANARY)
    made_token = server.root.create_token(f"{CANARY} token", role="admin")
    secret, wrong = made_token.secret.split("_")[2], f"nacre_{CANARY}_{CANARY}"
    asked = 0
    log.clear()
    with server.client(made_token.secret, **{"Idempotency-Key": CANARY}) as client:
        for name, route in ROUTES.items():
            for method in methods(route):
                send(client, call(name, world), method)
                asked += 1
            text = dict.fromkeys(route.in_path, CANARY)
            known = dict.fromkeys(verbs()[name].known, CANARY)
            if route.lines_in is None:
                send(client, Called(name, {**known, **text}))
            else:
                client.post(PREFIX + route.path, content=f'"{CANARY}\n{{"{CANARY}": "{CANARY}"}}')
            asked += 1
        for path in (f"/{CANARY}", f"/v1/{CANARY}", f"/v1/memories/{CANARY}", f"/ui/{CANARY}", f"/?{CANARY}={CANARY}"):
            for method in ("GET", CANARY.upper()):
                client.request(method, path)
                asked += 1
        for header in ("Nacre-Space", "If-None-Match", "Last-Event-ID", "Nacre-Spaces", "Origin", "Host", "User-Agent"):
            client.get(f"/v1/memories/{world.memory}", headers={header: CANARY})
            asked += 1
        client.post("/mcp", content=initialize().replace(b"test", CANARY.encode()))
        client.get("/v1/session", headers={"Authorization": f"Bearer {wrong}"})
        asked += 2
        with server.connect() as connection:
            connection.sendall(f"GET /{CANARY} {CANARY}\r\n{CANARY}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    told = [each for each in log.records if each.name == "nacre.access"]
    assert len(told) == asked
    for each in told:
        assert LOGGED.fullmatch(each.getMessage()), each.getMessage()
    assert sum(each.getMessage().startswith(f"{made_token.token.id} ") for each in told) > len(ROUTES)
    own = [each for each in log.records if not each.name.startswith("http")]  # the others are of the client
    everything = "\n".join(f"{each.name} {each.getMessage()} {each.exc_text}" for each in own)
    assert CANARY not in everything.lower()
    assert secret not in everything
    assert "ERROR" not in {each.levelname for each in own}
