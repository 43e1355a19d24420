"""The same question gives the same ranking through every door, with the models that ship with Nacre.

The doors are the library, `nacre search` and `nacre mcp`, the last two in processes of their own. Each gets a copy of
one store that holds the demo's memories.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre
from mcp_clients import Process, engines_on, environment
from nacre.cli.demo import QUESTION
from nacre.config import factory
from nacre.embedders.hashing import Hashing
from nacre.embedders.minilm import MiniLM
from nacre.mcp_server import tools
from nacre.mcp_server.tool import Call
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.serialization import encode
from nacre.types.search import RerankMode
from sample_ranks import sample_store

pytestmark = pytest.mark.slow

QUESTIONS = (
    QUESTION,
    "Why do customers get charged twice?",
    "who looks after the kilns",
    "what did we decide about payments",
    "PR 601",
)
LIMIT = 8
HOW: RerankMode = "full"  # how many texts a fast reranking reads depends on the machine


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_store(tmp_path_factory.mktemp("ranking") / "memories.db")


@pytest.fixture
def copy(store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(store, tmp_path))


@pytest.fixture(scope="module")
def rankings(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, nacre.SearchResult]]:
    """What the library answers."""
    with nacre.open(shutil.copy(store, tmp_path_factory.mktemp("library"))) as memory:
        yield {question: memory.search(question, limit=LIMIT, rerank=HOW) for question in QUESTIONS}


def _ranking(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(hit["id"], hit["score"], hit["relevance"], hit["reasons"]) for hit in result["hits"]]


def _reranked(result: nacre.SearchResult) -> bool:
    return any(reason.signal == "rerank" for hit in result.hits for reason in hit.reasons)


def _encoded(result: nacre.SearchResult) -> dict[str, Any]:
    encoded: dict[str, Any] = json.loads(encode.dumps(encode.search_result(result)))
    return encoded


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_library_reranks(rankings: dict[str, nacre.SearchResult], question: str) -> None:
    assert len(rankings[question].hits) == LIMIT
    assert _reranked(rankings[question])


def test_the_command_line_ranks_as_the_library_does(rankings: dict[str, nacre.SearchResult], copy: Path) -> None:
    for question, expected in rankings.items():
        done = subprocess.run(
            [sys.executable, "-m", "nacre", "search", question, "--limit", str(LIMIT), "--rerank", HOW, "--json"],
            capture_output=True,
            env=environment(copy, NACRE_EMBEDDER="minilm"),
            cwd=copy.parent,
            timeout=60,
            check=True,
        )
        assert _ranking(json.loads(done.stdout)) == _ranking(_encoded(expected)), question


def test_agents_get_the_ranking_of_the_library(rankings: dict[str, nacre.SearchResult], copy: Path) -> None:
    with Process(copy, "--space", "default", "--embedder", "minilm").begin() as server:
        for question, expected in rankings.items():
            # Each call is a session of its own, or hits that were delivered before would be marked.
            result = server.call("search_memories", query=question, limit=LIMIT, rerank=HOW, session=question)
            hits = json.loads(result["content"][0]["text"])["hits"]
            assert hits == encode.brief(expected)["hits"], question
            assert "rerank 1" in " ".join(hit["why"] for hit in hits)
        assert server.close() == 0


def test_agents_get_the_reasons_of_the_library(rankings: dict[str, nacre.SearchResult], copy: Path) -> None:
    """The server's JSON names the reasons briefly; its engine gives them in full."""
    engines = engines_on(copy, embedder="minilm")
    try:
        memory = engines.memory("default")
        for question, expected in rankings.items():
            found = memory.search(question, limit=LIMIT, rerank=HOW)
            assert _ranking(_encoded(found)) == _ranking(_encoded(expected)), question
            (search,) = [each for each in tools.DEFAULT if each.name == "search_memories"]
            call = Call(memory, {"query": question, "limit": LIMIT, "rerank": HOW}, None, lambda _: None)
            assert search.answer(call).content == encode.brief(expected), question
    finally:
        engines.close()


def test_every_space_of_a_server_has_the_same_models(copy: Path) -> None:
    engines = engines_on(copy, embedder="minilm")
    try:
        texts = [hit.text for hit in engines.memory("default").search(QUESTION, limit=30).hits]
        engines.memory("another").remember_many(texts)
        for space in ("default", "another"):
            assert _reranked(engines.memory(space).search(QUESTION)), space
    finally:
        engines.close()


@pytest.mark.parametrize("embedder", [MiniLM(), "minilm"], ids=["object", "name"])
def test_the_reranker_depends_on_what_the_embedder_is(copy: Path, embedder: Any) -> None:
    with nacre.open(copy, embedder=embedder) as memory:
        assert _reranked(memory.search(QUESTION))
    with nacre.open(copy, embedder=embedder, reranker=None) as memory:
        assert not _reranked(memory.search(QUESTION))


class Own(Hashing):
    """An embedder of a user."""


@pytest.mark.parametrize("embedder", [Own(), Hashing(), "hashing", None, "none"])
def test_another_embedder_has_no_reranker_unless_one_is_given(embedder: Any) -> None:
    assert factory.load_models(embedder, "auto", 0).reranker is None
    own = NacreRerank()
    assert factory.load_models(embedder, own, 0).reranker is own
