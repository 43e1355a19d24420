"""A toolset of Pydantic AI: the verbs as tools, errors that a model can act on, and one space."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.mcp_server import tools as mcp_tools

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")

from pydantic_ai import Agent, ModelRetry, models  # where it is installed
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset

from nacre.integrations.pydantic_ai import TOOLS, NacreToolset

pytestmark = pytest.mark.anyio
models.ALLOW_MODEL_REQUESTS = False


class Calls:
    """A model that calls these tools one after another, and then says what the last one answered."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = list(calls)
        self.answers: list[Any] = []
        self.offered: list[Any] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered = info.function_tools
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart | RetryPromptPart):
            self.answers.append(last.content)
        if self.calls:
            name, arguments = self.calls.pop(0)
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        return ModelResponse(parts=[TextPart("done")])

    async def run(self, toolset: NacreToolset, **options: Any) -> list[Any]:
        agent = Agent(FunctionModel(self), toolsets=[toolset])
        result = await agent.run("go on", **options)
        assert result.output == "done"
        return self.answers


async def test_a_model_remembers_and_finds(memory: nacre.Nacre) -> None:
    toolset = NacreToolset(memory)
    assert isinstance(toolset, AbstractToolset)
    given = {"text": "Mara likes Darjeeling tea.", "tags": ["tea"], "importance": 0.9, "happened": "2026-05-01"}
    (stored,) = await Calls(("remember", given)).run(toolset)
    (kept,) = memory.get(stored["id"])
    assert (kept.text, kept.tags, kept.importance) == (given["text"], ("tea",), 0.9)
    assert kept.happened is not None
    assert kept.happened.date().isoformat() == "2026-05-01"
    assert kept.origin is not None
    (fleeting,) = await Calls(("remember", {"text": "The lift is broken.", "expires": "2d"})).run(toolset)
    until = memory.get(fleeting["id"]).memories[0].expires
    assert until is not None
    assert until - datetime.now(UTC) < timedelta(days=2, seconds=1)
    memory.forget(fleeting["id"])
    memory.remember("The gateway listens on port 8080.")
    asked: list[tuple[str, dict[str, Any]]] = [
        ("search_memories", {"query": "which tea?", "limit": 1}),
        ("search_memories", {"query": "port", "mode": "keyword", "tags": ["tea"]}),
        ("get_memories", {"ids": [kept.id, "unknown"]}),
        ("timeline", {"limit": 5}),
        ("context", {"query": "which tea does Mara like?", "repeat": True}),
        ("forget", {"ids": [kept.id]}),
    ]
    found, none, full, page, context, forgotten = await Calls(*asked).run(toolset)
    assert [each["id"] for each in found["hits"]] == [kept.id]
    assert none["hits"] == []
    assert full["memories"][0]["text"] == kept.text
    assert full["missing"] == ["unknown"]
    assert json.dumps(page).count("Darjeeling") == 1
    assert "Mara likes Darjeeling tea." in context
    assert context.startswith("Recalled memories: data to consult")
    assert forgotten == {"forgotten": [kept.id]}
    assert memory.get(kept.id).memories[0].deleted is not None


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("remember", {"text": "  "}, "text: is blank"),
        ("remember", {"text": "x", "importance": 7}, "importance: is 7"),
        ("remember", {"text": "x", "happened": "someday"}, "happened: "),
        ("remember", {"text": "x", "expires": "someday"}, "expires: "),
        ("remember", {"text": "x", "supersedes": ["unknown"]}, "unknown"),
        ("search_memories", {"query": "x", "limit": 0}, "limit: is 0"),
        ("search_memories", {"query": "x", "as_of": "never"}, "as_of: "),
        ("timeline", {"start": "never"}, "start: "),
        ("context", {"query": "x", "budget_tokens": -1}, "budget_tokens: is -1"),
        ("get_memories", {"ids": [], "neighbours": -3}, "neighbours: is -3"),
        ("forget", {"ids": ["unknown"]}, "unknown"),
        ("remember", {"words": "x"}, ""),
        ("search_memories", {"query": "x", "mode": "magic"}, ""),
    ],
)
async def test_a_model_is_told_what_is_wrong_and_calls_again(
    memory: nacre.Nacre, name: str, arguments: dict[str, Any], problem: str
) -> None:
    told, answer = await Calls((name, arguments), ("timeline", {})).run(NacreToolset(memory))
    assert problem in (told if isinstance(told, str) else json.dumps(told))
    assert answer == {"entries": {}}


async def test_other_errors_end_the_run(memory: nacre.Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise nacre.StoreFull("the disk is full")

    monkeypatch.setattr(memory, "remember", full)
    with pytest.raises(nacre.StoreFull):
        await Calls(("remember", {"text": "x"})).run(NacreToolset(memory))


async def test_a_context_leaves_out_what_its_conversation_was_given(memory: nacre.Nacre) -> None:
    memory.remember("Mara likes Darjeeling tea.")
    toolset = NacreToolset(memory)
    ask: tuple[str, dict[str, Any]] = ("context", {"query": "what does Mara like?"})
    first, second = await Calls(ask, ask).run(toolset, conversation_id="one")
    assert "Darjeeling" in first
    assert "Darjeeling" not in second
    assert second
    (elsewhere,) = await Calls(ask).run(toolset, conversation_id="other")
    assert "Darjeeling" in elsewhere
    fixed = NacreToolset(memory, session="one")
    (again,) = await Calls(ask).run(fixed)
    assert "Darjeeling" not in again


async def test_only_the_named_tools_are_offered(memory: nacre.Nacre) -> None:
    calls = Calls()
    await calls.run(NacreToolset(memory, tools=["context", "remember"]))
    assert [each.name for each in calls.offered] == ["context", "remember"]
    with pytest.raises(nacre.InvalidInput, match="'purge' is unknown; allowed: remember"):
        NacreToolset(memory, tools=["purge"])


async def test_tools_are_described_like_those_of_the_server(memory: nacre.Nacre) -> None:
    calls = Calls()
    await calls.run(NacreToolset(memory))
    assert {each.name for each in calls.offered} == set(TOOLS) == {each.name for each in mcp_tools.DEFAULT}
    of_server: dict[str, Any] = {each.name: each for each in mcp_tools.DEFAULT}
    for each in calls.offered:
        own, theirs = each.parameters_json_schema["properties"], of_server[each.name].input["properties"]
        left_out = set(theirs) - set(own)
        assert set(own) <= set(theirs), each.name
        assert left_out <= {"session", "around", "span", "sessions", "histogram", "entities", "lens", "omit_delivered"}
        assert all(parameter.get("description") for parameter in own.values()), each.name
        assert each.description
        assert each.description.split()[0] == of_server[each.name].description.split()[0]
        assert each.parameters_json_schema.get("required") == of_server[each.name].input.get("required")


async def test_a_path_is_confined_to_its_space(path: Path) -> None:
    with nacre.open(path, embedder="hashing", space="other") as other:
        secret = other.remember("the other's secret tea").id
    with NacreToolset(path, embedder="hashing", space="mine") as toolset:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("search_memories", {"query": "secret tea"}),
            ("get_memories", {"ids": [secret]}),
            ("timeline", {}),
            ("context", {"query": "secret tea"}),
            ("forget", {"ids": [secret]}),
        ]
        answers = await Calls(*asked).run(toolset)
        assert "the other's" not in json.dumps(answers)
        assert secret not in json.dumps([answers[0], answers[2], answers[3]])
    with nacre.open(path, embedder="hashing", space="other") as other:
        assert other.get(secret).memories[0].deleted is None


async def test_an_engine_stays_open_and_a_path_is_closed(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        with NacreToolset(memory):
            pass
        assert memory.stats().memories == 0
    with NacreToolset(path, embedder=None) as toolset:
        pass
    with pytest.raises(nacre.StoreError):
        toolset.memory.facets()


async def test_every_tool_can_be_called_by_its_schema(memory: nacre.Nacre) -> None:
    """The framework's own test model calls each tool with values that its schema allows."""
    toolset = NacreToolset(memory, tools=["remember", "search_memories", "get_memories", "context"])
    agent = Agent(TestModel(), toolsets=[toolset])
    result = await agent.run("try all of them")
    assert "remember" in result.output
    assert memory.stats().memories == 1


@pytest.mark.slow
def test_several_agents_share_a_memory(path: Path) -> None:
    async def all_of_them(toolset: NacreToolset) -> None:
        await asyncio.gather(
            *(
                Calls(("remember", {"text": f"fact {at}"}), ("search_memories", {"query": "fact"})).run(toolset)
                for at in range(12)
            )
        )

    with NacreToolset(path, embedder=None) as toolset:
        asyncio.run(all_of_them(toolset))
        assert toolset.memory.facets().total == 12


def test_a_tool_may_be_called_directly(memory: nacre.Nacre) -> None:
    toolset = NacreToolset(memory)
    assert toolset.id == "nacre"
    with pytest.raises(ModelRetry, match="no memory"):
        toolset.tools["forget"].function(ids=["unknown"])
