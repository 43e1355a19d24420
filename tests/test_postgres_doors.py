"""What doors do beside the verbs, on a store in PostgreSQL: commands, agents' servers, hooks, streams, numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre
from command_line import Cli
from mcp_clients import engines_on
from nacre.embedders.hashing import Hashing
from nacre.http_api import events
from nacre.knowledge_graph.graph import KnowledgeGraph
from nacre.mcp_server.graph_tools import TOOLS
from nacre.mcp_server.tool import Call
from postgres_server import needs_postgres
from servers import ThreadServer, error_of, listening, serving, wait_until
from stores import Opening, Stores

pytestmark = [pytest.mark.slow, needs_postgres]


@pytest.fixture
def named(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a new store, and its schema."""
    with Stores("postgres", tmp_path) as stores:
        yield stores.named(stores.place())


@pytest.fixture
def opening(named: tuple[str, str]) -> Opening:
    def opened(**options: Any) -> nacre.Nacre:
        return nacre.open(named[0], schema=named[1], embedder=Hashing(), **options)

    return opened


@pytest.fixture
def commands(cli: Cli, named: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, on the store in PostgreSQL."""
    monkeypatch.setenv("NACRE_STORE", named[0])
    monkeypatch.setenv("NACRE_POSTGRES_SCHEMA", named[1])
    return cli


@pytest.fixture
def server(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadServer]:
    monkeypatch.setattr(events, "POLL_S", 0.01)
    with serving(opening) as served:
        yield served


# ---------------------------------------------------------------- the command line


def test_commands_write_and_read(commands: Cli, opening: Opening) -> None:
    assert commands("remember", "The kettle is in the kitchen", "--tag", "home").code == 0
    assert "The [kettle] is in the kitchen" in commands("search", "kettle").out
    stats = commands("stats", "--json").json
    assert (stats["memories"], stats["spaces"]) == (1, {"default": 1})
    assert stats["size_bytes"] > stats["index_bytes"] > 0
    assert commands("rebuild").code == 0
    assert commands("reembed").code == 0
    with opening() as memory:
        assert [hit.text for hit in memory.search("kettle").hits] == ["The kettle is in the kitchen"]
        assert memory.receipts()[0].query == "kettle"


def test_the_settings_say_where_the_store_is(commands: Cli, named: tuple[str, str]) -> None:
    shown = commands("config", "--json").json
    assert named[0] in json.dumps(shown)
    assert named[1] in json.dumps(shown)


def test_a_store_moves_out_and_in(commands: Cli, tmp_path: Path, opening: Opening) -> None:
    commands("remember", "Ada lives in London", "--tag", "people")
    commands("remember", "The kettle is green")
    file = tmp_path / "moved.jsonl"
    assert commands("export", str(file)).code == 0
    assert len(file.read_text("utf-8").splitlines()) > 2
    with nacre.open(tmp_path / "other.db", embedder=Hashing()) as other, opening() as memory:
        list(other.load(memory.export()))
        assert {each.text for each in other.every()} == {"Ada lives in London", "The kettle is green"}
        other.remember("One more")
        list(memory.load(other.export()))
        assert {each.text for each in memory.every()} == {"Ada lives in London", "The kettle is green", "One more"}
    dry = commands("import", str(file), "--dry-run")
    assert dry.code == 0, dry.err
    again = commands("import", str(file))
    assert again.code == 0, again.err
    assert commands("stats", "--json").json["memories"] == 3


def test_a_folder_is_watched(commands: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "coffee.md").write_text("Coffee is in the red tin.\n", "utf-8")
    (notes / "tea.md").write_text("# Tea\n\nGreen tea is in the blue tin.\n", "utf-8")
    watched = commands("watch", str(notes), "--once")
    assert watched.code == 0, watched.err
    assert "blue tin" in commands("search", "where is the green tea").out
    (notes / "tea.md").unlink()
    commands("watch", str(notes), "--once")
    assert "blue tin" not in commands("search", "where is the green tea").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["backup", "--to", "{folder}"], "is backed up by PostgreSQL's own tools"),
        (["restore", "{folder}/some.db"], "a backup is restored to a file"),
        (["rekey"], "file"),
    ],
    ids=["backup", "restore", "rekey"],
)
def test_what_only_files_have_is_refused(commands: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    commands("remember", "The kettle is in the kitchen")
    (tmp_path / "some.db").write_bytes(b"")
    refused = commands(*(each.format(folder=tmp_path) for each in arguments))
    assert refused.code != 0
    assert said in refused.err
    assert "Traceback" not in refused.err


def test_a_store_that_is_not_there_is_empty_until_it_is_written(
    commands: Cli, monkeypatch: pytest.MonkeyPatch, named: tuple[str, str]
) -> None:
    monkeypatch.setenv("NACRE_POSTGRES_SCHEMA", f"{named[1]}_missing")
    found = commands("search", "kettle")
    assert found.code == 0
    assert "no memories yet" in found.out + found.err


def test_hooks_remember_and_answer(commands: Cli, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    told = {
        "conversation_id": "one", "generation_id": "g", "model": "default", "cursor_version": "3.12.17",
        "workspace_roots": [str(project)], "user_email": None,
    }  # fmt: skip
    said = {**told, "hook_event_name": "afterAgentResponse", "text": "The kettle is in the kitchen"}
    kept = commands("hook", "remember", "--wait", stdin=json.dumps(said))
    assert (kept.code, kept.err) == (0, "")
    asked = {"hook_event_name": "UserPromptSubmit", "cwd": str(project), "session_id": "two", "prompt": "The kettle?"}
    answer = commands("hook", "context", stdin=json.dumps(asked))
    assert (answer.code, answer.err) == (0, "")
    assert "The kettle is in the kitchen" in answer.out


# ---------------------------------------------------------------- agents


def test_the_tools_of_a_knowledge_graph(named: tuple[str, str]) -> None:
    by_name = {tool.name: tool for tool in TOOLS}
    engines = engines_on(named[0], postgres_schema=named[1])
    try:
        memory = engines.memory("default")

        def call(tool: str, **arguments: object) -> Any:
            return by_name[tool].answer(Call(memory, arguments, None, lambda _: None)).content

        ada = {"name": "Ada", "entityType": "person", "observations": ["likes tea", "lives in London"]}
        acme = {"name": "Acme", "entityType": "company", "observations": []}
        works = {"from": "Ada", "to": "Acme", "relationType": "works at"}
        call("create_entities", entities=[ada, acme])
        call("create_relations", relations=[works])
        assert call("read_graph") == {"entities": [ada, acme], "relations": [works]}
        call("delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea"]}])
        call("add_observations", observations=[{"entityName": "Acme", "contents": ["sells anvils"]}])
        assert call("open_nodes", names=["Acme"])["entities"] == [{**acme, "observations": ["sells anvils"]}]
        call("delete_entities", entityNames=["Acme"])
        left = call("read_graph")
        assert left == {"entities": [{**ada, "observations": ["lives in London"]}], "relations": []}
        assert len(KnowledgeGraph(memory).read().nodes) == 1
    finally:
        engines.close()


# ---------------------------------------------------------------- HTTP


def test_changes_of_other_processes_come_in_a_stream(server: ThreadServer, opening: Opening) -> None:
    with opening() as elsewhere, listening(server) as listener:
        ids = [elsewhere.remember(f"change {number}").id for number in range(5)]
        ids.append(server.root.remember("of this server").id)
        wait_until(lambda: len(listener.changes) == 6)
        assert [name for _, name in listener.changes] == ids
    assert listener.failed is None


def test_a_server_has_tokens_and_numbers(commands: Cli, server: ThreadServer) -> None:
    """A token that a command makes opens the server at once."""
    made = commands("token", "create", "--role", "read", "--json").json
    server.root.remember("The kettle is in the kitchen")
    with server.client(made["secret"]) as client:
        found = client.post("/v1/search", json={"query": "kettle"})
        assert len(found.json()["hits"]) == 1
        error_of(client.post("/v1/memories", json={"text": "no"}), 403)
    with server.client(server.token()) as client:
        told = client.get("/metrics").text
    sizes = [line for line in told.splitlines() if line.startswith("nacre_store_bytes")]
    assert float(sizes[0].split()[-1]) > 0


def test_a_request_that_is_sent_again_is_carried_out_once(server: ThreadServer, opening: Opening) -> None:
    with serving(opening) as another:
        answers = []
        for each in (server, another):
            with each.client(**{"Idempotency-Key": "one"}) as client:
                answers.append(client.post("/v1/memories", json={"text": "once"}))
        assert [each.status_code for each in answers] == [answers[0].status_code] * 2
        assert answers[0].json() == answers[1].json()
        assert server.root.stats().memories == 1
