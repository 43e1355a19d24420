"""A session of the OpenAI Agents SDK: items as they were added, in order, by several processes, and found as turns."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre import Filter
from nacre.embedders.hashing import Hashing

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import (  # where it is installed
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from nacre.integrations.openai_agents import NacreSession

pytestmark = pytest.mark.anyio

ITEMS: list[Any] = [
    {"role": "user", "content": "Which tea does Mara like?"},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "ask the tool"}]},
    {"type": "function_call", "name": "look_up", "arguments": '{"who": "Mara"}', "call_id": "c", "id": "f"},
    {"type": "function_call_output", "call_id": "c", "output": "Darjeeling " * 20_000},
    {
        "role": "assistant",
        "type": "message",
        "id": "m",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Mara likes Darjeeling.", "annotations": [], "logprobs": []}],
    },
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64," + "A" * 70_000}]},
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "ok"},
    {"role": "system", "content": "Answer briefly."},
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda several: st.lists(several, max_size=3) | st.dictionaries(st.text(max_size=4), several, max_size=3),
    max_leaves=6,
)
CONTENT = st.text(st.characters(exclude_categories=()), max_size=40) | st.lists(
    st.fixed_dictionaries({"type": st.just("input_text"), "text": st.text(max_size=20)}) | JSON, max_size=3
)
SAID = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": CONTENT})
OTHER = st.dictionaries(st.sampled_from(["type", "name", "output", "id"]), JSON, max_size=4)


def test_it_is_a_session(memory: nacre.Nacre) -> None:
    session = NacreSession("s", memory)
    assert isinstance(session, Session)
    assert session.session_id == "s"


async def test_items_come_back_as_they_were_added(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    assert await session.get_items() == []
    await session.add_items(ITEMS[:4])
    await session.add_items([])
    await session.add_items(ITEMS[4:])
    assert await session.get_items() == ITEMS
    assert await NacreSession("chat", memory).get_items() == ITEMS


@pytest.mark.slow
@settings(max_examples=30)
@given(batches=st.lists(st.lists(SAID | OTHER, max_size=4), max_size=4))
def test_any_items_come_back(batches: list[list[Any]]) -> None:
    async def check(memory: nacre.Nacre) -> None:
        session = NacreSession("s", memory)
        for batch in batches:
            await session.add_items(batch)
        expected = [each for batch in batches for each in batch]
        assert json.dumps(await session.get_items()) == json.dumps(expected)
        popped = [await session.pop_item() for _ in range(len(expected) + 1)]
        assert json.dumps(popped) == json.dumps([*reversed(expected), None])

    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "s.db", embedder=None) as memory:
        asyncio.run(check(memory))


async def test_the_latest_items(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory, session_settings=SessionSettings(limit=2))
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS[-2:]
    assert await session.get_items(3) == ITEMS[-3:]
    assert await session.get_items(0) == []
    assert await session.get_items(100) == ITEMS
    assert await session.get_items(-1) == ITEMS


async def test_pop_takes_the_last_one(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    await session.add_items(ITEMS)
    for left in range(len(ITEMS), 0, -1):
        assert await session.pop_item() == ITEMS[left - 1]
        assert await session.get_items() == ITEMS[: left - 1]
    assert await session.pop_item() is None
    await session.add_items(ITEMS[:1])
    assert await session.pop_item() == ITEMS[0]


async def test_clear_forgets_this_session_only(memory: nacre.Nacre) -> None:
    note = memory.remember("a note that stays").id
    names = ["a", "a/b", "a%2Fb", "A", "ab"]
    sessions = [NacreSession(name, memory) for name in names]
    for name, session in zip(names, sessions, strict=True):
        await session.add_items([*ITEMS, {"role": "user", "content": f"I am in {name}"}])
    await sessions[0].clear_session()
    assert await sessions[0].get_items() == []
    for name, session in zip(names[1:], sessions[1:], strict=True):
        assert (await session.get_items())[-1] == {"role": "user", "content": f"I am in {name}"}
        assert len(await session.get_items()) == len(ITEMS) + 1
    assert not memory.get(note).memories[0].deleted
    await sessions[0].add_items(ITEMS[:1])
    assert await sessions[0].get_items() == ITEMS[:1]


async def test_what_was_said_is_found_as_turns(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    await session.add_items(ITEMS)
    turns = list(memory.every(Filter(sessions=("chat",))))
    assert [each.text for each in turns] == ["Which tea does Mara like?", "Mara likes Darjeeling.", "ok", "ok"]
    assert [each.metadata["role"] for each in turns] == ["user", "assistant", "user", "user"]
    positions = [each.position for each in turns]
    assert None not in positions
    assert len(set(positions)) == 4
    assert [each.is_turn for each in turns] == [True] * 4
    assert len({each.key for each in turns}) == 4
    found = memory.search("likes Darjeeling", where=Filter(sessions=("chat",))).hits[0]
    assert found.text == "Mara likes Darjeeling."
    answer = memory.get(found.id, neighbours=1)
    assert [each.summary for each in answer.neighbours[found.id]] == ["Which tea does Mara like?", "ok"]


async def test_what_repeats_a_recalled_memory_is_kept(memory: nacre.Nacre) -> None:
    memory.remember("The deployment window of the gateway is on Tuesday at noon.")
    assert memory.search("deployment window", session="chat").hits
    said: Any = {"role": "assistant", "content": "The deployment window of the gateway is on Tuesday at noon."}
    session = NacreSession("chat", memory)
    await session.add_items([said])
    assert await session.get_items() == [said]


async def test_what_is_private_is_not_kept_and_breaks_nothing(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    await session.add_items(
        [
            {"role": "user", "content": "<private>the code is 4711</private>"},
            {"role": "user", "content": "My name is Mara <private>and the code is 4711</private>"},
            {"type": "function_call", "name": "<private>4711</private>", "arguments": "{}", "call_id": "c"},
        ]
    )
    assert [each.get("content") for each in await session.get_items()] == ["", "My name is Mara", None]
    assert [each.text for each in memory.every(Filter(sessions=("chat",)))] == ["My name is Mara"]
    assert "4711" not in json.dumps([dict(each.metadata) for each in memory.every()])


async def test_secrets_are_redacted_or_refused(path: Path) -> None:
    said: Any = {"role": "user", "content": "my password is hunter2-and-more-9"}
    with NacreSession("chat", path, embedder=None, secrets="redact") as session:
        await session.add_items([said])
        (item,) = await session.get_items()
        assert item.get("content") == "my password is [redacted: password]"
    with NacreSession("chat", path, embedder=None, secrets="refuse") as session:
        with pytest.raises(nacre.InvalidInput, match="has a secret"):
            await session.add_items([said])
        assert len(await session.get_items()) == 1


async def test_odd_characters_are_found_and_come_back(memory: nacre.Nacre) -> None:
    items: list[Any] = [{"role": "user", "content": "tide \x00 table \ud800"}, {"role": "user", "content": "\n\x00"}]
    session = NacreSession("chat", memory)
    await session.add_items(items)
    assert await session.get_items() == items
    assert [each.text for each in memory.search("tide table", mode="keyword").hits] == ["tide  table ?"]


async def test_other_memories_under_the_prefix_are_no_items(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    await session.add_items(ITEMS[:1])
    memory.remember("a note beside it", key="openai-agents/chat/note")
    await session.add_items(ITEMS[1:2])
    assert await session.get_items() == ITEMS[:2]


async def test_a_session_is_in_its_space(path: Path) -> None:
    with nacre.open(path, embedder=None, space="ada") as one, nacre.open(path, embedder=None, space="bob") as other:
        await NacreSession("chat", one).add_items(ITEMS)
        assert await NacreSession("chat", other).get_items() == []
        await NacreSession("chat", other).clear_session()
        assert await NacreSession("chat", one).get_items() == ITEMS


async def test_a_path_is_opened_and_closed(path: Path) -> None:
    with NacreSession("chat", path, embedder=None) as session:
        await session.add_items(ITEMS)
    with NacreSession("chat", path, embedder=None) as session:
        assert await session.get_items() == ITEMS
    with nacre.open(path, embedder=None) as memory:
        with NacreSession("chat", memory):
            pass
        assert memory.stats().memories > 0


@pytest.mark.parametrize("name", ["", "  ", "\ud800", None])
def test_a_session_has_a_name(memory: nacre.Nacre, name: Any) -> None:
    with pytest.raises(nacre.InvalidInput, match="session_id"):
        NacreSession(name, memory)


async def test_what_is_no_json_is_refused_and_nothing_is_stored(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    items: Any = [*ITEMS, {"role": "user", "content": object()}]
    with pytest.raises(nacre.InvalidInput, match="is not JSON"):
        await session.add_items(items)
    assert await session.get_items() == []


async def test_a_part_that_was_purged_takes_its_item_along(memory: nacre.Nacre) -> None:
    session = NacreSession("chat", memory)
    await session.add_items(ITEMS)
    pieces = [each for each in memory.every() if "item_piece" in each.metadata and each.text == "…"]
    memory.purge(pieces[0].id)
    left = await session.get_items()
    assert left == [each for each in ITEMS if each in left]
    assert len(left) == len(ITEMS) - 1


async def test_a_clock_that_goes_back_changes_no_order(memory: nacre.Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    session = NacreSession("chat", memory)
    await session.add_items([{"role": "user", "content": "first"}])
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    await session.add_items([{"role": "user", "content": "second"}])
    assert [each.get("content") for each in await session.get_items()] == ["first", "second"]


@pytest.mark.slow
def test_many_threads_add_and_no_batch_is_torn(path: Path) -> None:
    with nacre.open(path, embedder=None) as memory:

        def add(number: int) -> None:
            batch: list[Any] = [{"role": "user", "content": f"{number}/{at}"} for at in range(5)]
            asyncio.run(NacreSession("chat", memory).add_items(batch))

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(add, range(24)))
        items = asyncio.run(NacreSession("chat", memory).get_items())
    said = [str(each.get("content")) for each in items]
    batches = [said[at : at + 5] for at in range(0, len(said), 5)]
    assert sorted(batches) == sorted([f"{number}/{at}" for at in range(5)] for number in range(24))


@pytest.mark.slow
def test_no_item_is_given_to_two_who_pop(path: Path) -> None:
    with nacre.open(path, embedder=None) as one, nacre.open(path, embedder=None) as other:
        asyncio.run(NacreSession("chat", one).add_items([{"role": "user", "content": str(at)} for at in range(24)]))
        start = threading.Barrier(6)

        def pop(number: int) -> list[str]:
            session = NacreSession("chat", one if number % 2 else other)
            start.wait()
            items: list[Any] = [asyncio.run(session.pop_item()) for _ in range(4)]
            return [each["content"] for each in items]

        with ThreadPoolExecutor(6) as threads:
            popped = [each for several in threads.map(pop, range(6)) for each in several]
        assert sorted(popped, key=int) == [str(at) for at in range(24)]
        assert asyncio.run(NacreSession("chat", one).get_items()) == []


ADDING = """
import asyncio, sys
from nacre.integrations.openai_agents import NacreSession
path, name = sys.argv[1:]
with NacreSession("chat", path, embedder=None) as session:
    for at in range(6):
        asyncio.run(session.add_items([{"role": "user", "content": f"{name} {at} {each}"} for each in range(3)]))
"""


@pytest.mark.slow
def test_many_processes_add(path: Path) -> None:
    nacre.open(path, embedder=None).close()
    running = [subprocess.Popen([sys.executable, "-c", ADDING, str(path), name]) for name in "abc"]
    assert [each.wait(timeout=120) for each in running] == [0, 0, 0]
    with NacreSession("chat", path, embedder=None) as session:
        said = [str(each.get("content")) for each in asyncio.run(session.get_items())]
    assert len(said) == 3 * 6 * 3
    for name in "abc":
        own = [each for each in said if each.startswith(name)]
        assert own == [f"{name} {at} {each}" for at in range(6) for each in range(3)]
    assert all(said[at][:-2] == said[at + 2][:-2] for at in range(0, len(said), 3))


# ---------------------------------------------------------------- in a run of an agent


class Scripted(Model):  # type: ignore[misc]
    """A model that answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:  # noqa: A002, ARG002
        self.asked.append(list(input) if isinstance(input, list) else input)
        return ModelResponse(output=[self.answers.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])


async def test_a_run_goes_on_where_the_session_ended(path: Path) -> None:
    @function_tool  # type: ignore[untyped-decorator]
    def weather(city: str) -> str:
        return f"sunny in {city}"

    call = ResponseFunctionToolCall(
        id="f", type="function_call", name="weather", arguments='{"city": "Porto"}', call_id="c"
    )
    model = Scripted(call, said("It is sunny in Porto."), said("Take sunglasses."))
    agent = Agent(name="guide", model=model, tools=[weather])
    quiet = RunConfig(tracing_disabled=True)
    with NacreSession("trip", path, embedder=Hashing()) as session:
        first = await Runner.run(agent, "How is the weather in Porto?", session=session, run_config=quiet)
        assert first.final_output == "It is sunny in Porto."
    with NacreSession("trip", path, embedder=Hashing()) as session:
        second = await Runner.run(agent, "What should I take along?", session=session, run_config=quiet)
        assert second.final_output == "Take sunglasses."
        items = await session.get_items()
        (hit, *_) = session.memory.search("sunglasses").hits
    texts = json.dumps(model.asked[-1])
    assert "How is the weather in Porto?" in texts
    assert "sunny in Porto" in texts
    assert [each.get("type") or each.get("role") for each in items] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
        "message",
    ]
    assert hit.memory.session == "trip"
