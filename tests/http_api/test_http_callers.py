"""Who may use the server: hosts, pages of other sites, tokens and their limits; and what browsers are told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import nacre
from command_line import Cli
from mcp_clients import initialize
from nacre.embedders.hashing import Hashing
from nacre.errors import InvalidInput
from nacre.http_api import callers, serving
from nacre.http_api.answers import Refusal
from nacre.http_api.callers import LOOPBACK_NAMES, Allowance, Callers, is_loopback
from nacre.http_api.options import Options
from nacre.http_api.serving import Listening
from servers import ThreadServer, error_of
from servers import serving as served

WAYS_IN = ("/", "/ui/app.js", "/healthz", "/openapi.json", "/v1/session", "/v1/search?query=x", "/mcp", "/metrics")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with served(tmp_path_factory.mktemp("callers") / "memories.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(server: ThreadServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


# ---------------------------------------------------------------- other sites

OURS = ("localhost", "LocalHost:8642", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8642")
FOREIGN = (
    "example.org", "example.org:8642", "127.0.0.1.example.org", "localhost.example.org", "localhost.", "0x7f.1",
    "2130706433", "[::2]:8642", "127.0.0.2", "[::ffff:7f00:1]", "0.0.0.0", "",
)  # fmt: skip


@pytest.mark.parametrize("host", OURS)
def test_the_names_of_this_machine_are_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/v1/session", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_another_host_name_is_refused_everywhere(client: httpx.Client, host: str) -> None:
    """A name that an attacker's name server points to this machine lets a page read answers."""
    for path in WAYS_IN:
        assert "--allowed-host" in error_of(client.get(path, headers={"Host": host}), 403)["message"]
    error_of(client.post("/mcp", content=initialize(), headers={"Host": host}), 403)


def test_pages_of_other_sites_are_refused_everywhere(server: ThreadServer, client: httpx.Client) -> None:
    foreign = ("null", "http://example.org", f"http://localhost:{server.port}", "http://127.0.0.1", "file://", "")
    for origin in (*foreign, f"{server.url}.example.org", f"http://x@{server.host}", f"{server.url}/"):
        for path in WAYS_IN:
            error_of(client.get(path, headers={"Origin": origin}), 403)
        for answer in (
            client.post("/mcp", content=initialize(), headers={"Origin": origin}),
            client.post("/v1/memories", json={"text": "foreign"}, headers={"Origin": origin}),
            client.options("/v1/memories", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}),
        ):
            error_of(answer, 403)
    assert server.root.changes().seq == 0
    for origin in (server.url, server.url.replace("http:", "https:")):  # a proxy may speak HTTPS
        assert client.get("/v1/session", headers={"Origin": origin}).status_code == 200


def test_what_a_page_of_another_site_loads_without_an_origin_is_refused(client: httpx.Client) -> None:
    """A picture from /v1/search would be written to the recall log. A link to the page may be followed."""
    for site in ("cross-site", "same-site", "odd"):
        for path in ("/v1/search?query=x", "/v1/session", "/v1/export", "/mcp", "/metrics"):
            error_of(client.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}), 403)
        assert client.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status_code == 200
    for site in ("same-origin", "none"):
        assert client.get("/v1/session", headers={"Sec-Fetch-Site": site}).status_code == 200
    assert client.get("/v1/receipts").json() == []


def test_no_answer_lets_other_sites_read_it(server: ThreadServer, client: httpx.Client) -> None:
    answers = [client.get(path, headers={"Origin": server.url}) for path in (*WAYS_IN, "/nothing", "/v1/nothing")]
    answers += [client.options(path, headers={"Access-Control-Request-Method": "POST"}) for path in WAYS_IN]
    answers += [
        client.post("/mcp", content=initialize(), headers={"Accept": "application/json, text/event-stream"}),
        client.get("/v1/export"),
        client.post("/v1/search", content=b"{"),
        client.head("/"),
    ]
    for answer in answers:
        where = (answer.request.method, answer.request.url.path)
        assert not [each for each in answer.headers if each.startswith("access-control-")], where
        assert answer.headers["x-content-type-options"] == "nosniff", where
        assert answer.headers["referrer-policy"] == "no-referrer", where
        assert answer.headers["cross-origin-resource-policy"] == "same-origin", where
        assert "default-src 'none'" in answer.headers["content-security-policy"], where
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], where
        assert answer.headers["nacre-version"], where
        assert "server" not in answer.headers, where
        assert answer.headers["cache-control"].startswith(("no-store", "no-cache")), where


def test_a_site_that_is_allowed_is_answered(path: Path) -> None:
    names = serving.usual_hosts(Listening(), ("Memory.example.org",))
    with served(path, hosts=names) as server, server.client(Host="memory.example.org") as client:
        assert client.get("/v1/session", headers={"Origin": "https://memory.example.org"}).status_code == 200
        error_of(client.get("/v1/session", headers={"Origin": "https://example.org"}), 403)
        error_of(client.get("/v1/session", headers={"Host": "other.example.org"}), 403)


# ---------------------------------------------------------------- where it listens


def test_it_is_known_by_the_address_it_listens_on() -> None:
    assert serving.usual_hosts(Listening(), ()) == LOOPBACK_NAMES
    assert serving.usual_hosts(Listening(host="127.0.0.2"), ("A.example",)) == LOOPBACK_NAMES | {
        "127.0.0.2",
        "a.example",
    }
    assert serving.usual_hosts(Listening(host="0.0.0.0"), ()) == frozenset()  # any: a token is needed
    assert serving.usual_hosts(Listening(host="0.0.0.0"), ("A.example",)) == {"a.example"}


def test_only_this_machine_is_answered_without_tokens() -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        assert is_loopback(host)
        serving.check(Listening(host=host), Options(space="x"))
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", ""):
        assert not is_loopback(host)
        with pytest.raises(InvalidInput, match="need tokens"):
            serving.check(Listening(host=host), Options(space="x"))
        serving.check(Listening(host=host), Options(space="x", token_needed=True))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    certificate = tmp_path / "cert.pem"
    with pytest.raises(InvalidInput, match="belong together"):
        serving.check(Listening(certificate=certificate), Options(space="x"))
    both = Listening(certificate=certificate, certificate_key=certificate)
    with pytest.raises(InvalidInput, match="is not a file"):
        serving.check(both, Options(space="x"))
    certificate.write_text("no certificate", "utf-8")
    with pytest.raises(InvalidInput, match="no certificate in PEM"):
        serving.check(both, Options(space="x"))


def test_the_command_says_what_is_wrong(cli: Cli, tmp_path: Path) -> None:
    for given, said in (
        (("--tls-cert", str(tmp_path / "x")), "belong together"),
        (("--port", "70000"), "70000"),
        (("--workers", "0"), "0"),
    ):
        answer = cli("serve", *given)
        assert answer.code != 0
        assert said in answer.err


# ---------------------------------------------------------------- tokens


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with served(tmp_path_factory.mktemp("guarded") / "memories.db", token_needed=True) as opened:
        yield opened


@pytest.fixture
def unguessed(guarded: ThreadServer, monkeypatch: pytest.MonkeyPatch) -> ThreadServer:
    """No wrong token was given yet."""
    monkeypatch.setattr(guarded.application._callers, "_failed", Allowance(20, lambda: 0.0))
    return guarded


def test_without_a_token_only_what_says_nothing_of_the_store_is_answered(unguessed: ThreadServer) -> None:
    with unguessed.client() as client:
        for path in ("/", "/ui/app.js", "/healthz", "/readyz", "/openapi.json"):
            assert client.get(path).status_code == 200
        for path in ("/v1/session", "/v1/search?query=x", "/v1/nothing", "/mcp", "/metrics"):
            answer = client.get(path)
            assert error_of(answer, 401)["type"] == "Unauthorized"
            assert answer.headers["www-authenticate"] == 'Bearer realm="nacre"'
        for _ in range(50):  # no guess, so it does not count
            error_of(client.get("/v1/session"), 401)
        assert client.get("/v1/session", headers=bearer(unguessed.token())).status_code == 200


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_what_is_no_valid_token_is_refused(unguessed: ThreadServer) -> None:
    root = unguessed.root
    valid, revoked = root.create_token(), root.create_token()
    root.revoke_token(revoked.token.id)
    secret = valid.secret
    for wrong in (
        f"Basic {secret}", secret, "Bearer", "Bearer ", f"Bearer {secret}x", f"Bearer {secret[:-1]}",
        f"Bearer {revoked.secret}", f"Bearer nacre_{valid.token.id}_", f"Bearer {secret} {secret}", "Bearer x" * 1_000,
        f"Bearer {secret.upper()}",
    ):  # fmt: skip
        with unguessed.client(Authorization=wrong.strip()) as client:
            answer = client.get("/v1/session")
        error = error_of(answer, 401)
        assert answer.headers["www-authenticate"] == 'Bearer realm="nacre", error="invalid_token"'
        assert secret not in repr(error)
    for right in (f"Bearer {secret}", f"bearer {secret}", f"BEARER   {secret}"):
        with unguessed.client(Authorization=right) as client:
            assert client.get("/v1/session").json()["token"] == valid.token.id


def test_an_expired_token_is_refused(path: Path) -> None:
    now = [datetime(2026, 7, 1, tzinfo=UTC)]
    with served(lambda: nacre.open(path, embedder=Hashing(), clock=lambda: now[0])) as server:
        secret = server.token(expires=timedelta(hours=1))
        with server.client(secret) as client:
            assert client.get("/v1/session").status_code == 200
            now[0] += timedelta(hours=1)
            assert "expired" in error_of(client.get("/v1/session"), 401)["message"]


def test_a_revoked_token_is_refused_on_an_open_connection(unguessed: ThreadServer) -> None:
    made = unguessed.root.create_token()
    with unguessed.client(made.secret) as client:
        assert client.get("/v1/session").status_code == 200
        unguessed.root.revoke_token(made.token.id)
        error_of(client.get("/v1/session"), 401)


def test_who_guesses_has_to_wait(unguessed: ThreadServer) -> None:
    valid = unguessed.token()
    with unguessed.client("nacre_0_wrong") as client:
        for _ in range(20):
            error_of(client.get("/v1/session"), 401)
        answer = client.get("/v1/session")
        assert error_of(answer, 429)["type"] == "TooManyRequests"
        assert answer.headers["retry-after"] == "3"
        assert client.get("/v1/session", headers=bearer(valid)).status_code == 429  # it cannot be found by guessing
        assert client.get("/healthz").status_code == 200


def test_a_token_is_known_where_none_is_needed(server: ThreadServer) -> None:
    with server.client(server.token("read", ("own",))) as client:
        assert client.get("/v1/session").json()["role"] == "read"
        error_of(client.post("/v1/memories", json={"text": "x"}), 403)
    with server.client("nacre_0_wrong") as client:
        error_of(client.get("/v1/session"), 401)


def test_requests_are_limited_for_each_token(path: Path) -> None:
    with served(path, token_needed=True, requests_per_minute=5) as server:
        server.application._callers._requests = Allowance(5, lambda: 0.0)
        one, other = server.token(), server.token()
        with server.client(one) as client:
            assert [client.get("/v1/session").status_code for _ in range(7)] == [200] * 5 + [429] * 2
            answer = client.get("/v1/session")
            assert answer.headers["retry-after"] == "12"
            assert client.get("/healthz").status_code == 200
        with server.client(other) as client:
            assert client.get("/v1/session").status_code == 200


def test_an_allowance_fills_again_evenly() -> None:
    now = [100.0]
    allowance = Allowance(6, lambda: now[0])
    assert [allowance.spend("a") for _ in range(7)] == [0.0] * 6 + [10.0]
    assert allowance.spend("b") == 0.0
    now[0] += 5
    assert allowance.wait("a") == pytest.approx(5)
    now[0] += 5
    assert allowance.spend("a") == 0.0
    assert allowance.spend("a") == pytest.approx(10)
    now[0] += 3_600
    assert [allowance.spend("a") for _ in range(7)] == [0.0] * 6 + [10.0]


def test_the_wait_that_is_told_is_long_enough(path: Path) -> None:
    with served(path) as server:
        asked = Callers(server.root, token_needed=False, hosts=frozenset(), requests_per_minute=50, timer=lambda: 0.0)
        for _ in range(50):
            asked.of({}, "address")
        with pytest.raises(Refusal) as refused:
            asked.of({}, "address")  # 1.2 s
        assert refused.value.headers["retry-after"] == "2"


def test_an_allowance_keeps_a_bounded_number_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "_ADDRESSES_KEPT", 100)
    allowance = Allowance(5, lambda: 0.0)
    for number in range(1_000):
        allowance.spend(f"address {number}")
    assert len(allowance._left) == 100
