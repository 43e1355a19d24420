"""Errors and notes over MCP name tools, and never a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

import nacre
from mcp_clients import asynchronous, engines_on, given, problem, served
from nacre.embedders.hashing import Hashing
from nacre.engine.embedding import _NOT_STORED
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tools import chosen
from nacre.mcp_server.wording import TOOLS, for_agents

SOURCES = Path(nacre.__file__).parent
COMMAND = re.compile(r"`(?:nacre [a-z]|pip )[^`]*`")
NO_ANSWERS = (
    "cli",
    "client",
    "evaluation",
    "hooks",
    "http_api",
    "importers",
    "intake",
    "integrations",
)  # what they say is read by people
# Of verbs that no tool calls.
NOT_FOR_AGENTS = (
    *("access_tokens.py", "checkup.py", "moving.py", "nodes.py", "sdk.py", "server_checks.py", "table_checks.py"),
    *("vector_graph.py", "wording.py"),
)
ALL = {each.name for each in chosen("all")}


def _said() -> Iterator[str]:
    """Lines of the sources that name a command and may end in an answer to an agent."""
    for file in SOURCES.rglob("*.py"):
        if file.relative_to(SOURCES).parts[0] in NO_ANSWERS or file.name in NOT_FOR_AGENTS:
            continue
        for line in file.read_text("utf-8").splitlines():
            code = line.partition("  # ")[0]
            if COMMAND.search(code) and '"' in code and '"""' not in code and "_log." not in code:
                yield code.strip()


def test_every_command_that_the_engine_names_has_words_for_agents() -> None:
    lines = list(_said())
    assert len(lines) > 15
    # One phrase of a message may be split over two lines of the source: its end has the command.
    whole = [line.replace('"`pip uninstall', '"replace the CPU package with `pip uninstall') for line in lines]
    left = [line for line in whole if COMMAND.search(for_agents(line, ALL))]
    assert left == []
    named = {found for line in lines for found in re.findall(r"`nacre ([a-z ]+)`", line)} - {
        "reembed",
        "doctor",
        "nodes add",
    }
    assert named == TOOLS.keys()
    assert {tool for tool, _ in TOOLS.values()} <= ALL


@pytest.mark.parametrize(
    ("text", "offered", "expected"),
    [
        ("id: no memory 'x'; check it with `nacre timeline`", {"timeline"},
         "id: no memory 'x'; check it with `timeline`"),
        ("id: no memory 'x'; check it with `nacre timeline`", {"search", "fetch"}, "id: no memory 'x'; search for it"),
        ("check it with `nacre timeline` or `nacre fact list`", ALL, "check it with `timeline` or `facts`"),
        ("no entity is called 'x'; see `nacre entity list`", {"search_memories"},
         "no entity is called 'x'; search without it"),
        ("name one, see `nacre log`", ALL, "name one, see `recall_log`"),
        ("3 memories have no vectors yet: run `nacre reembed`", ALL,
         "3 memories have no vectors yet: ask the user to re-embed the store"),
        ("run `nacre reembed` to compute them again, or open the store with another model", ALL,
         "ask the user to re-embed the store, or open the store with another model"),
        ("reinstall it with `pip install --force-reinstall nacre-memory`, or set embedder to none", (),
         "ask the user to reinstall Nacre, or set embedder to none"),
        ("install them with `pip install numpy onnxruntime`, or x", (), "ask the user to install them, or x"),
        ("replace the CPU package with `pip uninstall --yes onnxruntime` and `pip install onnxruntime-gpu`, or x", (),
         "ask the user to replace the CPU package, or x"),
        ("limit: is 0; 1 to 9 is allowed", (), "limit: is 0; 1 to 9 is allowed"),
        ("give the `next` of the page before", (), "give the `next` of the page before"),
        (f"cannot be reached; {_NOT_STORED}", ALL,
         "cannot be reached; the texts were not stored: try again, or ask the user to look after the embedder"),
        ("`nacre frobnicate`", ALL, "`nacre frobnicate`"),
        ("text: must be a text, not NoneType", (), "text: must be a text, not null"),
        ("tags: must be a list of texts, not dict (item 2 of the input)", (),
         "tags: must be a list of texts, not an object (item 2 of the input)"),
        ("mode: 'fast, not list' is unknown", (), "mode: 'fast, not list' is unknown"),
        (f"limit: is '{'x' * 9_999}'; 1 to 9 is allowed", (),
         f"limit: is '{'x' * 989} … {'x' * 980}'; 1 to 9 is allowed"),
    ],
)  # fmt: skip
def test_commands_become_tools(text: str, offered: Any, expected: str) -> None:
    assert for_agents(text, offered) == expected


# ---------------------------------------------------------------- triggered

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("timeline", {"around": "nobody"}),
    ("forget", {"ids": ["nobody"]}),
    ("restore", {"ids": ["nobody"]}),
    ("update_memory", {"id": "nobody", "text": "x"}),
    ("related", {"id": "nobody"}),
    ("history", {"id": "nobody"}),
    ("why", {"id": "nobody", "query": "x"}),
    ("mark", {"ids": ["nobody"], "outcome": "used"}),
    ("mark", {"ids": ["TEA"], "outcome": "used"}),
    ("mark", {"ids": ["TEA"], "outcome": "used", "receipt": "nothing"}),
    ("state_fact", {"subject": "a", "predicate": "b", "object": "c", "memory_id": "nobody"}),
    ("add_entity", {"name": "a", "memory_ids": ["nobody"]}),
    ("reinforce", {"ids": ["nobody"]}),
    ("drop_facts", {"ids": ["nobody"]}),
    ("related_entities", {"name": "nobody"}),
    ("search_memories", {"query": "x", "lens": "pink"}),
    ("recall_log", {"before": "nothing"}),
]
FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("state_fact", {"subject": "a", "predicate": "b"}, "object: is missing"),
    ("state_fact", {"subject": "a", "predicate": "b", "object": "c", "confidence": "high"},
     "confidence: is 'high'; a number from 0 to 1 is allowed"),
    ("state_fact", {"subject": "a", "predicate": "b", "object": "c", "sure": True}, "sure: is unknown; allowed: "),
    ("update_memory", {"id": "TEA"}, "changes: are missing; give at least one of expires, happened, importance, "),
]  # fmt: skip


@asynchronous
async def test_errors_name_arguments(path: Path, tmp_path: Path) -> None:
    engines = engines_on(path)
    async with Client(served(engines, chosen("all"), tmp_path)) as client:
        for name, arguments, expected in FIELDS:
            assert problem(await client.call_tool(name, arguments)).startswith(expected), (name, arguments)
    engines.close()


@asynchronous
async def test_errors_name_tools(path: Path, tmp_path: Path) -> None:
    engines = engines_on(path)
    tea = engines.memory("default").remember("Tea is served at four").id
    named = set()
    async with Client(served(engines, chosen("all"), tmp_path)) as client:
        for name, arguments in REFUSED:
            given = {key: [tea] if value == ["TEA"] else value for key, value in arguments.items()}
            delivered = problem(await client.call_tool(name, given))
            assert not COMMAND.search(delivered), (name, delivered)
            named |= {each for each in re.findall(r"`([a-z_]+)`", delivered) if each in ALL}
    engines.close()
    assert named == {"timeline", "facts", "entities", "recall_log"}


@asynchronous
async def test_notes_name_tools(path: Path, tmp_path: Path) -> None:
    with nacre.open(path, embedder=None) as memory:
        memory.remember("Tea is served at four")
        memory.save_lens(nacre.Lens(name="ours", boost_entities=("Nobody",)))
    engines = engines_on(path)
    for tools, expected in (("all", "`entities`"), ("", "search without it")):
        async with Client(served(engines, chosen(tools), tmp_path)) as client:
            found = given(await client.call_tool("search_memories", {"query": "tea", "lens": "ours"}))
            vectors = "1 memory has no vectors yet: ask the user to re-embed the store"
            assert any(each.endswith(expected) for each in found["notes"])
            assert vectors in given(await client.call_tool("search_memories", {"query": "tea"}))["notes"]
    engines.close()


class Other(Hashing):
    """Another model."""

    @property
    def fingerprint(self) -> str:
        return "another"


@asynchronous
async def test_a_store_of_another_model_is_no_matter_for_a_shell(path: Path, tmp_path: Path) -> None:
    with nacre.open(path, embedder=Other(), clock=lambda: datetime.now(UTC)) as memory:
        memory.remember("Tea is served at four")
    engines: SpaceEngines = engines_on(path)
    async with Client(served(engines, chosen(""), tmp_path)) as client:
        delivered = problem(await client.call_tool("timeline", {}))
        assert "ask the user to re-embed the store" in delivered
        assert not COMMAND.search(delivered)
        for reading in (client.read_resource("nacre://overview"), client.get_prompt("recall", {"topic": "tea"})):
            with pytest.raises(MCPError, match="ask the user to re-embed the store"):
                await reading
    engines.close()
