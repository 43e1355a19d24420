"""Forty calls in a row give the same answers through every door, with the real models.

tests/test_doors.py compares every field of every verb with a stand-in for the models. Here the models of the product
answer, and what one call writes is there for the next.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client

import nacre
from command_line import Cli, clear_settings
from mcp_clients import engines_on, said, served
from nacre import Filter, NewMemory, Recipe
from nacre.config import factory
from nacre.engine.engine import Nacre
from nacre.mcp_server.tools import chosen
from nacre.serialization import decode, encode
from nacre.types.recipe import adjusted
from nacre.types.search import RerankMode
from sample_ranks import sample_store

pytestmark = pytest.mark.slow

WHO = "who looks after the kilns"
TWICE = "Why do customers get charged twice?"
PORT = "Which port does the kiosk proxy listen on?"
UNKNOWN = "What is the wifi password of the Lisbon office?"
HOW: RerankMode = "full"  # how many texts a fast reranking reads depends on the machine
CLOSING = re.compile(r"</memory \w+>")  # with the end of an id
ID = re.compile(r"\b1m[0-9a-z]{14}\b")


class Same(NamedTuple):
    """One call through each door."""

    library: Callable[[Nacre], Any]
    cli: str
    tool: str
    arguments: dict[str, Any]


def search(query: str, options: str = "", given: dict[str, Any] | None = None, **library: Any) -> Same:
    return Same(
        lambda m: m.search(query, rerank=HOW, **library),
        f"search {shlex.quote(query)} --rerank {HOW} {options}",
        "search_memories",
        {"query": query, "rerank": HOW, **(given or {})},
    )


def context(query: str, options: str = "", given: dict[str, Any] | None = None, **library: Any) -> Same:
    return Same(
        lambda m: m.context(query, rerank=HOW, **library),
        f"context {shlex.quote(query)} --rerank {HOW} {options}",
        "context",
        {"query": query, "rerank": HOW, **(given or {})},
    )


def remember(text: str, options: str = "", given: dict[str, Any] | None = None, **fields: Any) -> Same:
    return Same(
        lambda m: m.remember(NewMemory(text=text, **fields)),
        f"remember {shlex.quote(text)} {options}",
        "remember",
        {"text": text, **(given or {})},
    )


def ago(days: str) -> Any:
    return decode.moment("start", days)


# fmt: off
CALLS: dict[str, Same] = {
    "a question": search(WHO),
    "another": search(TWICE),
    "a few": search("what did we decide about payments", "--limit 3", {"limit": 3}, limit=3),
    "an identifier": search("PR 601"),
    "words": search(WHO, "--mode keyword", {"mode": "keyword"}, mode="keyword"),
    "meaning": search(WHO, "--mode semantic", {"mode": "semantic"}, mode="semantic"),
    "by an alias": search(WHO, "--mode vector", {"mode": "vector"}, mode="vector"),
    "no answer": search(UNKNOWN),
    "only what is relevant": search(TWICE, "--min-score 0.3", {"min_score": 0.3}, min_score=0.3),
    "nothing is that relevant": search(UNKNOWN, "--min-score 0.9", {"min_score": 0.9}, min_score=0.9),
    "a tag": search("who", "--tag role", {"tags": ["role"]}, where=Filter(tags_all=("role",))),
    "a namespace": search("kilns", "--namespace people", {"namespaces": ["people"]},
                          where=Filter(namespaces=("people",))),
    "a kind": search("payments", "--kind fact", {"kinds": ["fact"]}, where=Filter(kinds=("fact",))),
    "important ones": search("kilns importance>=0.7"),
    "all words": search("kiln rota", "--all-words", {"match": "all"}, match="all"),
    "all words, and none has them": search("kiln submarine", "--all-words", {"match": "all"}, match="all"),
    "a similarity": search(WHO, "--min-similarity 0.3", {"min_similarity": 0.3}, min_similarity=0.3),
    "a phrase and an exclusion": search('"wood benches" -darkrooms'),
    "a filter in the query": search("tag:role Leipzig"),
    "a time in the query": search("what happened since 2026-05-01"),
    "another recipe": search(WHO, "--recipe fusion=rank", {"recipe": {"fusion": "rank"}},
                             recipe=adjusted(Recipe(), fusion="rank")),
    "facts of the hits": search("where does Mara work", "--include-facts", {"include_facts": True},
                                include_facts=True),
    "a context": context(TWICE),
    "a small context": context(TWICE, "--budget 120", {"budget_tokens": 120}, budget_tokens=120),
    "too small a context": context(TWICE, "--budget 25", {"budget_tokens": 25}, budget_tokens=25),
    "nothing known": context(UNKNOWN),
    "given to a session": context(WHO, "--asked-in talk", {"session": "talk"}, session="talk"),
    "already given": context(WHO, "--asked-in talk", {"session": "talk"}, session="talk"),
    "given again": context(WHO, "--asked-in talk --repeat", {"session": "talk", "repeat": True}, session="talk",
                           repeat=True),
    "given to another session": context(WHO, "--asked-in walk", {"session": "walk"}, session="walk"),
    "a new memory": remember("The kiosk proxy listens on port 8088.", "--tag kiosk", {"tags": ["kiosk"]},
                             tags=["kiosk"]),
    "it is found": search(PORT),
    "the same again": remember("The kiosk proxy listens on port 8088."),
    "a correction": remember("The kiosk proxy moved to port 9099."),
    "the correction is first": search(PORT),
    "and stands alone in a context": context(PORT),
    "a preference": remember("I prefer answers without bullet points."),
    "a timeline": Same(lambda m: m.timeline(limit=5), "timeline --limit 5", "timeline", {"limit": 5}),
    "a part of it": Same(lambda m: m.timeline(ago("1d"), where=Filter(tags_all=("kiosk",))),
                         "timeline --since 1d --tag kiosk", "timeline", {"start": "1d", "tags": ["kiosk"]}),
    "facts": Same(lambda m: m.facts(subject="kiosk proxy"), "fact list --subject 'kiosk proxy'", "facts",
                  {"subject": "kiosk proxy"}),
    "contradictions": Same(lambda m: m.conflicts(), "conflicts", "conflicts", {}),
    "counts": Same(lambda m: m.facets("kiosk"), "facets kiosk", "facets", {"query": "kiosk"}),
}
# fmt: on

Door = Callable[[Same], Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_store(tmp_path_factory.mktemp("calls") / "memories.db")


@pytest.fixture
def doors(
    store: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, tuple[Path, Door]]]:
    """Each has a copy of the store, and all have the same models, so that these load once."""
    clear_settings(monkeypatch, tmp_path / "config.toml")
    monkeypatch.setattr(factory, "load_models", cache(factory.load_models))
    monkeypatch.chdir(tmp_path)
    paths = {name: Path(shutil.copy(store, tmp_path / f"{name}.db")) for name in ("library", "cli", "mcp")}

    def by_cli(call: Same) -> Any:
        done = cli(*shlex.split(call.cli), "--json", "--store", str(paths["cli"]), "--embedder", "minilm")
        assert done.code == 0, done.err
        return done.json

    engines = engines_on(paths["mcp"], embedder="minilm")
    with (
        nacre.open(paths["library"]) as memory,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(served(engines, chosen("all"), tmp_path))) as client,
    ):

        def by_mcp(call: Same) -> Any:
            result = portal.call(client.call_tool, call.tool, call.arguments)
            assert not result.is_error, said(result)
            text = said(result)
            return json.loads(text) if text.startswith("{") else {"text": text}  # a context is plain text

        yield {
            "library": (paths["library"], lambda call: encoded(call.library(memory))),
            "cli": (paths["cli"], by_cli),
            "mcp": (paths["mcp"], by_mcp),
        }
    engines.close()


ENCODED: dict[type, Callable[[Any], Any]] = {
    nacre.SearchResult: encode.search_result,
    nacre.Context: encode.context,
    nacre.Timeline: encode.timeline,
    nacre.Remembered: encode.remembered,
    nacre.Facets: encode.facets,
    nacre.Belief: encode.belief,
    nacre.Disagreement: encode.disagreement,
}


def encoded(answer: Any) -> Any:
    """An answer of the library as the command line prints it."""
    return [encoded(each) for each in answer] if isinstance(answer, list) else ENCODED[type(answer)](answer)


def essence(answer: Any) -> Any:
    """What an answer says, in the JSON of the command line or in that of agents."""
    match answer:
        case {"hits": hits}:
            return [hit["id"] for hit in hits], bool(hits) and answer.get("answerable", True), answer.get("notes", [])
        case {"text": str() as text}:
            return text.strip()
        case {"entries": entries}:
            return ID.findall(json.dumps([each["id"] for each in entries] if isinstance(entries, list) else entries))
        case {"duplicate": duplicate}:
            return answer["id"], duplicate
        case {"total": total}:
            return total, answer.get("tags", {})
        case {"facts": several} | {"conflicts": several} | list(several):
            return [(each["subject"], each["predicate"], each.get("object")) for each in several]
    raise AssertionError(answer)


def with_texts(told: Any, texts: dict[str, str]) -> str:
    """Ids differ from door to door, so each stands for the text of its memory."""
    without_ids = ID.sub(lambda found: texts.get(found[0], found[0]), json.dumps(told, ensure_ascii=False))
    return CLOSING.sub("</memory>", without_ids)


def test_forty_calls_give_the_same_answers(doors: dict[str, tuple[Path, Door]]) -> None:
    assert len(CALLS) >= 40
    told = {door: {name: essence(ask(call)) for name, call in CALLS.items()} for door, (_, ask) in doors.items()}
    known: dict[str, dict[str, str]] = {}
    for door, (path, _) in doors.items():
        with nacre.open(path, embedder="none") as memory:
            ids = [each.id for each in memory.timeline(limit=1_000).entries]
            known[door] = {each.id: each.text for each in memory.get(ids)}
    for name in CALLS:
        expected = with_texts(told["library"][name], known["library"])
        for door in ("cli", "mcp"):
            assert with_texts(told[door][name], known[door]) == expected, (door, name)
    # That all are equal is not enough: these answers are right.
    answers = told["library"]
    proxy = [text for text in known["library"].values() if "kiosk proxy" in text]
    assert len(proxy) == 2
    assert known["library"][answers["the correction is first"][0][0]] == "The kiosk proxy moved to port 9099."
    assert "9099" in answers["and stands alone in a context"]
    assert "8088" not in answers["and stands alone in a context"]
    assert answers["already given"].startswith("Already given to this session")
    assert answers["given again"] == answers["given to a session"] == answers["given to another session"]
    assert answers["nothing known"].startswith("Nothing is known")
    assert answers["too small a context"].startswith("The budget is too small")
    assert answers["no answer"][1] is False
    assert answers["all words, and none has them"][0] == []
    assert answers["the same again"][1] is True
