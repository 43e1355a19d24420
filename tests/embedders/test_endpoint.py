"""A model behind an endpoint: what is sent, what is refused, and every way in which an endpoint can fail.

The server is a real one on this machine. It answers with vectors of words and trigrams, or as a test says.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client

import nacre
from command_line import Cli
from faulty_servers import Answer, FaultyServer, answered, cut, faulty, refused
from mcp_clients import asynchronous, engines_on, given, problem, served
from nacre import EmbedderFailed, EmbedderMismatch, InvalidInput
from nacre.config import embedders
from nacre.embedders import endpoint
from nacre.embedders.endpoint import Endpoint
from nacre.embedders.hashing import Hashing
from nacre.mcp_server.tools import chosen
from servers import error_of, serving

JSON = "Content-Type: application/json\r\n"


def body_of(request: bytes) -> Any:
    return json.loads(request.partition(b"\r\n\r\n")[2])


def embeddings(vectors: Sequence[Any], indexes: Sequence[Any] | None = None) -> Answer:
    """An answer with these vectors."""
    places = range(len(vectors)) if indexes is None else indexes
    data = [
        {"object": "embedding", "index": place, "embedding": each} for place, each in zip(places, vectors, strict=True)
    ]
    return answered(200, json.dumps({"object": "list", "data": data, "model": "m"}), JSON)


def vectors_of(request: bytes, dimensions: int = 16) -> list[Any]:
    """Not normalised, as some models answer."""
    found: list[Any] = (3 * Hashing(dimensions).embed_passages(body_of(request)["input"])).tolist()
    return found


def good(request: bytes) -> bytes | None:
    return embeddings(vectors_of(request))(request)


def good_of(dimensions: int) -> Answer:
    return lambda request: embeddings(vectors_of(request, dimensions))(request)


def changed(change: Callable[[list[Any]], Any]) -> Answer:
    """The good answer, with another list of its vectors."""
    return lambda request: embeddings(change(vectors_of(request)))(request)


@pytest.fixture(autouse=True)
def unhurried_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts are short."""
    monkeypatch.setattr(endpoint, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.delenv(endpoint.KEY_VARIABLE, raising=False)


@pytest.fixture
def plain_cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, without token vectors."""
    monkeypatch.setenv("NACRE_TOKEN_VECTORS", "off")
    return cli


def on(server: FaultyServer, options: str = "") -> str:
    return f"{server.url}/v1#m{options}"


def embedder_of(setting: str) -> Endpoint:
    found = embedders.foreign(setting)
    assert isinstance(found, Endpoint)
    return found


opened = partial(nacre.open, token_vectors=False)  # those come from MiniLM, whatever the endpoint says


@pytest.fixture
def closed() -> str:
    """The address of a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1#m"


# ---------------------------------------------------------------- what is sent


def test_texts_are_sent_in_batches_and_vectors_have_length_one() -> None:
    texts = [f"text {number}" for number in range(endpoint.TEXTS_AT_ONCE + 5)]
    with faulty(good) as server:
        found = embedder_of(on(server)).embed_passages(texts)
        first, second = map(body_of, server.requests)
        head = server.requests[0].partition(b"\r\n\r\n")[0].lower()
    assert (first, second["input"]) == ({"model": "m", "input": texts[: endpoint.TEXTS_AT_ONCE]}, texts[-5:])
    assert head.startswith(b"post /v1/embeddings ")
    assert b"authorization" not in head
    np.testing.assert_allclose(found, Hashing(16).embed_passages(texts), atol=1e-6)
    assert server.connections == 1


def test_questions_and_passages_have_their_own_prefixes() -> None:
    with faulty(good) as server:
        embedder = embedder_of(on(server, "?query=search_query: &passage=search%5Fdocument:%20&dimensions=16"))
        embedder.embed_query("pie")
        embedder.embed_passages(["apple pie"])
        assert [body_of(each) for each in server.requests] == [
            {"model": "m", "input": ["search_query: pie"], "dimensions": 16},
            {"model": "m", "input": ["search_document: apple pie"], "dimensions": 16},
        ]
    assert embedder.fingerprint == "endpoint/m?query=search_query: &passage=search_document: &dimensions=16"


def test_the_key_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_EMBEDDER_KEY", "sk-geheim")
    refusing = answered(401, json.dumps({"error": {"message": "Incorrect API key: sk-geheim"}}), JSON)
    with faulty(good, refusing) as server:
        embedder = embedder_of(on(server))
        embedder.embed_query("pie")
        assert b"\r\nauthorization: bearer sk-geheim\r\n" in server.requests[0].lower()
        with pytest.raises(
            EmbedderFailed, match=r"refuses the key; set NACRE_EMBEDDER_KEY \(Incorrect API key: \*\*\*\)"
        ):
            embedder.embed_query("cake")
        assert len(server.requests) == 2


@pytest.mark.parametrize("key", ["sk-\x00geheim", "sk-geheim\r\nHost: elsewhere", "sk-gehëim"])
def test_a_key_that_is_none_is_refused_and_not_shown(path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "\x00" in key:  # no variable can have that
        monkeypatch.setattr(os, "environ", {**os.environ, "NACRE_EMBEDDER_KEY": key})
    else:
        monkeypatch.setenv("NACRE_EMBEDDER_KEY", key)
    with pytest.raises(InvalidInput, match=r"^NACRE_EMBEDDER_KEY: has characters that no key has") as refused_:
        opened(path, embedder="http://127.0.0.1:1/v1#m")
    assert "geh" not in str(refused_.value)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "HTTPS_PROXY"])
def test_an_environment_that_cannot_be_used(path: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "nonsense://nowhere")
    with opened(path, embedder="https://embeddings.invalid/v1#m") as memory:
        with pytest.raises(EmbedderFailed, match=r"https://embeddings\.invalid/v1 cannot be asked"):
            memory.remember("apple pie")
        assert memory.stats().memories == 0


def test_nothing_is_sent_before_a_text_is_embedded(path: Path) -> None:
    with faulty(good) as server:
        with opened(path, embedder=on(server), defer_embeddings=True) as memory:
            memory.remember("apple pie")
            assert memory.search("apple", mode="keyword").hits
            memory.timeline()
            assert memory.stats().pending == 1
        assert server.connections == 0


def test_a_store_is_filled_and_searched_by_meaning(path: Path) -> None:
    with faulty(good) as server:
        with opened(path, embedder=on(server)) as memory:
            memory.remember_many(["apple pie", "cherry cake", "a text of many words " * 200])
            hit = memory.search("apple pies", mode="semantic", rerank=False).hits[0]
            assert hit.text == "apple pie"
            assert memory.stats().pending == 0
        assert sum(len(body_of(each)["input"]) for each in server.requests) > 4  # the long text has passages


@pytest.mark.parametrize("text", ["", "naïve 数学 🙂" * 300, "\ud800 lone", "a" * 5000])
def test_any_text_can_be_sent(text: str) -> None:
    with faulty(good) as server:
        embedder = embedder_of(on(server))
        assert embedder.embed_passages([text]).shape == (1, 16)
        spans = [span for span, _ in embedder.weigh(text)]
        assert "".join(text[span.start : span.end] for span in spans) == "".join(text.split())
        assert embedder.vocabulary_coverage("ERR_2270 pie") == pytest.approx(3 / 11)


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("http://127.0.0.1:11434/v1", "names no model; write it after a #, like http://127.0.0.1:11434/v1#nomic"),
        ("http://127.0.0.1:11434/v1#", "names no model"),
        ("http://#m", "'http://' is no URL of an endpoint; write it like"),
        ("http://host:99999/v1#m", "is no URL of an endpoint"),
        ("https://ho st/v1#m", "is no URL of an endpoint"),
        ("http://me:geheim@host/v1#m", "has a name or password in its URL; put the key into NACRE_EMBEDDER_KEY"),
        ("http://host/v1?a=b#m", "has a query in its URL; options follow the model"),
        ("http://host/v1#m?prefix=q", "'prefix=q' is no option of an endpoint; allowed: query, passage, dimensions,"),
        ("http://host/v1#m?query", "'query' is no option of an endpoint"),
        ("http://host/v1#m?dimensions=0", "dimensions is '0'; a whole number from 1 to 65536 is allowed"),
        ("http://host/v1#m?timeout=soon", "timeout is 'soon'; a number of seconds from 0.1 to 3600 is allowed"),
        ("ftp://host/v1#m", "is unknown; allowed: minilm, minilm-cuda, hashing, none, onnx:DIR, or an endpoint like"),
    ],
)
def test_a_wrong_setting_is_refused(path: Path, cli: Cli, setting: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused_:
        opened(path, embedder=setting)
    assert refused_.value.field == "embedder"
    assert said in refused_.value.problem
    assert "geheim" not in str(refused_.value)
    assert not path.exists()
    failed = cli("--embedder", setting, "remember", "apple pie")
    assert failed.code == 2
    assert said in failed.err


def test_the_address_is_no_part_of_the_fingerprint() -> None:
    one, other = (embedder_of(f"{url}#nomic-embed-text:v1.5") for url in ("http://a/v1", "https://b:1/v1/"))
    assert one.fingerprint == other.fingerprint == "endpoint/nomic-embed-text:v1.5"
    assert embedder_of("http://a/v1#m?timeout=5").fingerprint == embedder_of("http://a/v1#m").fingerprint
    assert embedder_of("http://a/v1#intfloat/e5-base?query=query: ").fingerprint == (
        "endpoint/intfloat/e5-base?query=query: "
    )


# ---------------------------------------------------------------- what goes wrong

NOT_STORED = (
    "the texts were not stored: try again, or store them with `--defer-embeddings` and run `nacre reembed` later"
)
FAULTS: dict[str, tuple[Answer, str]] = {
    "no answer": (refused, "cannot be reached"),
    "cut off": (cut(answered(200, '{"data": []}', JSON), 5), "cannot be reached"),
    "no JSON": (
        answered(200, "<html>hello</html>", JSON),
        "answers something that is no JSON; does its address end in",
    ),
    "another JSON": (answered(200, '{"models": ["a"]}', JSON), r"answers without a list of embeddings \(.*models"),
    "a list": (answered(200, "[1, 2]", JSON), "answers without a list of embeddings"),
    "an error with status 200": (answered(200, '{"error": "out of memory"}', JSON), "out of memory"),
    "no numbers": (changed(lambda found: ["apple" for _ in found]), "an embedding that is no list of numbers"),
    "true": (changed(lambda found: [[True] * 16 for _ in found]), "an embedding that is no list of numbers"),
    "empty vectors": (changed(lambda found: [[] for _ in found]), "an embedding that is no list of numbers"),
    "no vector": (changed(lambda found: [None for _ in found]), "an embedding that is no list of numbers"),
    "NaN": (changed(lambda found: [[float("nan"), *each[1:]] for each in found]), "a vector with NaN, infinity, or"),
    "infinity": (changed(lambda found: [[float("inf"), *each[1:]] for each in found]), "a vector with NaN, infinity"),
    "too large": (changed(lambda found: [[1e300, *each[1:]] for each in found]), "a vector with NaN, infinity"),
    "zeros": (changed(lambda found: [[0.0] * 16 for _ in found]), "nothing but zeros"),
    "half a batch": (changed(lambda found: found[: len(found) // 2]), r"answers \d vectors for \d texts"),
    "too many": (changed(lambda found: [*found, found[0]]), r"answers \d vectors for \d texts"),
    "several lengths": (
        changed(lambda found: [each[: 8 + 8 * (number % 2)] for number, each in enumerate(found)]),
        r"a vector of (8|16) numbers where others have (8|16)",
    ),
    "no model": (answered(404, '{"error": {"message": "try pulling it first"}}', JSON), r"no model m.*try pulling it"),
    "bad request": (answered(400, '{"detail": "input is too long"}', JSON), r"status 400 \(input is too long\)"),
    "elsewhere": (answered(307, "", "Location: http://elsewhere/\r\n"), "sends elsewhere, to http://elsewhere/; name"),
    "busy": (answered(503, "loading the model", ""), r"answers with status 503 \(loading the model\)"),
    "too many requests": (answered(429, "", "Retry-After: 9999\r\n"), "answers with status 429"),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_stores_nothing_and_leaves_words(
    path: Path, fault: Answer, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path, embedder="none") as memory:
        kept = memory.remember("apple pie").id
    with faulty(fault) as server, opened(path, embedder=on(server)) as memory, caplog.at_level(logging.ERROR):
        before = memory.stats()
        with pytest.raises(EmbedderFailed, match=said) as failed:
            memory.remember_many(["cherry cake", "hot kiln"])
        assert str(failed.value).startswith(f"embedder: {server.url}/v1 ")
        assert str(failed.value).endswith(f"; {NOT_STORED}")
        assert memory.stats() == before  # nothing is half written
        if "where others" in said:
            return  # one question has one vector
        result = memory.search("apple")
        assert [(hit.id, hit.match_type) for hit in result.hits] == [(kept, "bm25")]
        (note,) = [each for each in result.notes if each.startswith("the embedder failed: keyword results only (")]
        assert f"{server.url}/v1 " in note
        semantic = memory.search("apple", mode="semantic")
        assert semantic.hits == ()
        assert any("the embedder failed: no results by meaning" in each for each in semantic.notes)


@pytest.mark.parametrize("name", ["no answer", "no JSON", "NaN", "half a batch", "no model", "busy"])
def test_a_fault_on_the_command_line(plain_cli: Cli, name: str) -> None:
    cli, (fault, _) = plain_cli, FAULTS[name]
    assert cli("--embedder", "none", "remember", "apple pie").code == 0
    with faulty(fault) as server:
        failed = cli("--embedder", on(server), "remember", "cherry cake")
        assert (failed.code, failed.out) == (3, "")
        assert f"error: embedder: {server.url}/v1 " in failed.err
        assert "`--defer-embeddings`" in failed.err
        found = cli("--json", "--embedder", on(server), "search", "apple")
        assert found.code == 0
        assert [hit["snippet"]["text"] for hit in found.json["hits"]] == ["apple pie"]
        assert any("the embedder failed: keyword results only" in each for each in found.json["notes"])
        assert len(cli("--json", "timeline").json["entries"]) == 1
        assert cli("--embedder", on(server), "remember", "--defer-embeddings", "cherry cake").code == 0
    with faulty(good) as server:
        assert cli("--embedder", on(server), "reembed").code == 0
        assert cli("--json", "--embedder", on(server), "stats").json["pending"] == 0


def test_an_endpoint_that_is_down(path: Path, closed: str) -> None:
    with opened(path, embedder=closed) as memory:
        with pytest.raises(EmbedderFailed, match=r"cannot be reached .*refused"):
            memory.remember("apple pie")
        assert memory.stats().memories == 0
    with opened(path, embedder=closed, defer_embeddings=True) as memory:
        kept = memory.remember("apple pie").id
        result = memory.search("apple")
        assert [hit.id for hit in result.hits] == [kept]


@pytest.mark.parametrize("trickles", [False, True])
def test_an_endpoint_that_is_slow(path: Path, trickles: bool) -> None:
    def slow(_: bytes) -> bytes | None:
        if trickles:  # the head and a part come at once, and then no more
            return b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"
        time.sleep(1.5)
        return None

    with faulty(slow) as server, opened(path, embedder=on(server, "?timeout=0.3")) as memory:
        with pytest.raises(EmbedderFailed, match=r"did not answer within 0\.3 s"):
            memory.remember("apple pie")
        assert memory.stats().memories == 0
        assert any("did not answer within" in each for each in memory.search("apple").notes)


@pytest.mark.parametrize("passing", [answered(503, "", ""), answered(429, "", "Retry-After: 0\r\n"), refused])
def test_what_passes_is_tried_again(path: Path, passing: Answer) -> None:
    with faulty(passing, passing, good) as server, opened(path, embedder=on(server)) as memory:
        memory.remember("apple pie")
        assert memory.stats().pending == 0
        assert len(server.requests) == 3
    with faulty(passing, good) as server:
        assert embedder_of(on(server)).embed_query("pie").shape == (16,)


def test_what_does_not_pass_is_not_tried_again() -> None:
    for fault in (answered(400, "", ""), answered(200, "nonsense", "")):
        with faulty(fault) as server:
            with pytest.raises(EmbedderFailed):
                embedder_of(on(server)).embed_passages(["apple pie"])
            assert len(server.requests) == 1


def test_pauses_grow_and_a_server_may_ask_for_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_FIRST_PAUSE_S", 0.5)
    pauses: list[float] = []
    asks = answered(429, "", "Retry-After: 7\r\n")
    with faulty(answered(500, "", ""), answered(502, "", ""), asks, good) as server:
        which = embedders.endpoint("embedder", on(server))
        Endpoint(which, pause=pauses.append).embed_passages(["apple pie"])
    first, second, third = pauses
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert third == 7


def test_vectors_come_in_the_order_of_their_texts() -> None:
    def backwards(request: bytes) -> bytes | None:
        found = Hashing(16).embed_passages(body_of(request)["input"]).tolist()
        return embeddings(found[::-1], range(len(found))[::-1])(request)

    texts = ["apple", "cherry", "kiln"]
    with faulty(backwards) as server:
        found = embedder_of(on(server)).embed_passages(texts)
    np.testing.assert_allclose(found, Hashing(16).embed_passages(texts), atol=1e-6)


@pytest.mark.parametrize("indexes", [(0, 0, 1), (1, 2, 3), (0, 1, "2"), (0, 1, True), (0, 1, None)])
def test_numbers_that_name_no_text(indexes: tuple[Any, ...]) -> None:
    with (
        faulty(embeddings([[1.0], [2.0], [3.0]], indexes)) as server,
        pytest.raises(EmbedderFailed, match=r"vectors with the numbers \[.*\], not one for each of 3 texts"),
    ):
        embedder_of(on(server)).embed_passages(["apple", "cherry", "kiln"])


def test_vectors_without_numbers_are_in_order() -> None:
    answer = answered(200, json.dumps({"data": [{"embedding": [1, 0]}, {"embedding": [0, 2]}]}), JSON)
    with faulty(answer) as server:
        assert embedder_of(on(server)).embed_passages(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_a_failure_in_a_later_batch_keeps_what_was_acknowledged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 2)
    with faulty(good, answered(400, "", "")) as server, opened(path, embedder=on(server)) as memory:
        acknowledged = []
        with pytest.raises(EmbedderFailed):  # noqa: PT012
            for batch in memory.remember_batches(["apple pie", "cherry cake", "hot kiln", "cold rain"]):
                acknowledged += batch
        assert len(acknowledged) == memory.stats().memories == 2
        assert memory.stats().pending == 0


def test_an_update_that_cannot_be_embedded_changes_nothing(path: Path) -> None:
    with faulty(good, answered(400, "", "")) as server, opened(path, embedder=on(server)) as memory:
        kept = memory.remember("apple pie").id
        with pytest.raises(EmbedderFailed):
            memory.update(kept, text="cherry cake")
        assert memory.get(kept)[0].text == "apple pie"


# ---------------------------------------------------------------- another model


def test_another_model_is_refused_until_memories_are_embedded_again(path: Path) -> None:
    with faulty(good) as server:
        with opened(path, embedder=on(server)) as memory:
            memory.remember_many(["apple pie", "cherry cake"])
        other = f"{server.url}/v1#other"
        with pytest.raises(
            EmbedderMismatch, match="come from endpoint/m, not from endpoint/other; run `nacre reembed`"
        ):
            opened(path, embedder=other)
        with opened(path, embedder=other, switch_model=True) as memory:
            assert [state.done for state in memory.reembed()][-1] == 2
            assert memory.stats().model == "endpoint/other"


def test_a_model_of_another_length_under_the_same_name(path: Path) -> None:
    with faulty(good) as server, opened(path, embedder=on(server)) as memory:
        kept = memory.remember("apple pie").id
    with faulty(good_of(24)) as server, opened(path, embedder=on(server)) as memory:
        said = r"endpoint/m gives vectors of 24 numbers, and those of the store have 16: it is another model"
        with pytest.raises(EmbedderMismatch, match=said):
            memory.remember("cherry cake")
        assert memory.stats().memories == 1
        result = memory.search("apple")
        assert [(hit.id, hit.match_type) for hit in result.hits] == [(kept, "bm25")]
        assert any("it is another model under the same name" in each for each in result.notes)


def test_a_length_that_changes_while_it_is_open(path: Path) -> None:
    with faulty(good, good_of(24)) as server, opened(path, embedder=on(server)) as memory:
        memory.remember("apple pie")
        with pytest.raises(EmbedderFailed, match="a vector of 24 numbers where others have 16"):
            memory.remember("cherry cake")


def test_reembedding_goes_on_after_the_endpoint_was_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 4)
    with opened(path, embedder="hashing") as memory:
        memory.remember_many([f"apple number {number}" for number in range(20)])
    fails = answered(400, "", "")
    with faulty(fails) as server, opened(path, embedder=on(server), switch_model=True) as memory:
        with pytest.raises(EmbedderFailed):
            list(memory.reembed())
        assert memory.stats().model == Hashing().fingerprint  # what there was is still there
        assert memory.stats().pending == 0
    with faulty(good, good, good, fails) as server, opened(path, embedder=on(server), switch_model=True) as memory:
        with pytest.raises(EmbedderFailed):
            list(memory.reembed())
        done = 20 - memory.stats().pending
        assert 0 < done < 20
    with faulty(good) as server, opened(path, embedder=on(server)) as memory:
        assert [state.done for state in memory.reembed()][-1] == 20 - done
        assert sum(len(body_of(each)["input"]) for each in server.requests) == 20 - done
        assert memory.stats().pending == 0


def test_a_worker_asks_an_endpoint_again_that_was_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.pending.POLL_S", 0.01)
    with opened(path, embedder="hashing") as memory:
        memory.remember("apple pie")
    told: list[Exception] = []
    with faulty(good) as server:
        setting = on(server)
        with opened(path, embedder=setting, switch_model=True) as memory:
            list(memory.reembed())
        server.answers = [good, answered(400, "", ""), good]
        with opened(path, embedder=setting, defer_embeddings=True) as memory:
            memory.remember("cherry cake")
            states = memory.pending.run(batch=1, failed=told.append)
            for _ in states:
                if memory.stats().pending == 0:
                    if told:
                        break
                    memory.remember("hot kiln")
    assert len(told) == 1


# ---------------------------------------------------------------- through servers


def test_a_server_says_that_its_endpoint_is_away(path: Path, closed: str) -> None:
    with serving(lambda: opened(path, embedder=closed)) as server:
        with nacre.connect(server.url) as memory:
            with pytest.raises(EmbedderFailed, match=r"cannot be reached .*; the texts were not stored: try again"):
                memory.remember("apple pie")
            assert memory.stats().memories == 0
            assert any("the embedder failed: keyword results only" in each for each in memory.search("pie").notes)
        with server.client() as client:
            refused_ = error_of(client.post("/v1/memories", json={"text": "apple pie"}), 503)
    assert refused_["type"] == "EmbedderFailed"


@asynchronous
async def test_an_agent_is_told_what_to_do(path: Path, tmp_path: Path, closed: str) -> None:
    engines = engines_on(path, embedder=closed, token_vectors="off")
    async with Client(served(engines, chosen("all"), tmp_path)) as client:
        told = problem(await client.call_tool("remember", {"text": "apple pie"}))
        assert told.endswith("the texts were not stored: try again, or ask the user to look after the embedder")
        notes = given(await client.call_tool("search_memories", {"query": "pie"}))["notes"]
        assert any("the embedder failed: keyword results only" in each for each in notes)
    engines.close()


# ---------------------------------------------------------------- what reads texts


def test_what_reads_texts_goes_with_any_endpoint(path: Path) -> None:
    """Late interaction by MiniLM's token vectors, and the reranker."""
    with faulty(good) as server, nacre.open(path, embedder=on(server)) as memory:
        kept = memory.remember_many(
            ["The kiln was fired on Monday.", "Ada bakes an apple pie.", "Rain fell all night."]
        )
        stats = memory.stats()
        assert (stats.model, stats.pending, stats.pending_tokens) == ("endpoint/m", 0, 0)
        assert (stats.token_model or "").startswith("nacre-tokens-v1")
        hit = memory.search("Who bakes a pie with fruit?").hits[0]
        assert hit.id == kept[1].id
        assert {"maxsim", "rerank"} <= {each.signal for each in hit.reasons}
        foreign = memory.search("кто печёт пирог")  # nothing that MiniLM could read
        assert all("maxsim" not in {each.signal for each in other.reasons} for other in foreign.hits)
    fault = answered(400, "", "")
    with faulty(fault) as server, nacre.open(path, embedder=on(server)) as memory:
        with pytest.raises(EmbedderFailed):
            memory.remember("cherry cake")
        assert (memory.stats().memories, len(server.requests)) == (3, 1)


# ---------------------------------------------------------------- processes


def test_without_the_extra_an_error_says_what_to_install(
    path: Path, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with opened(path, embedder=closed) as memory:
        with pytest.raises(EmbedderFailed, match=r"install it with `pip install 'nacre-memory\[embedders\]'`"):
            memory.remember("apple pie")
        assert any("nacre-memory[embedders]" in note for note in memory.search("apple").notes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_has_a_connection_of_its_own() -> None:
    with faulty(good) as server:
        embedder = embedder_of(on(server))
        embedder.embed_query("apple")
        child = os.fork()
        if child == 0:
            os._exit(0 if embedder.embed_query("cherry").shape == (16,) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        embedder.embed_query("kiln")
        assert server.connections == 2
