"""LlamaIndex: a retriever of memories, and a block of its `Memory`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre import Filter
from nacre.embedders.hashing import Hashing

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock  # where it is installed
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode

from nacre.integrations.llamaindex import NacreMemoryBlock, NacreRetriever

pytestmark = pytest.mark.anyio


@pytest.fixture
def filled(memory: nacre.Nacre) -> nacre.Nacre:
    memory.remember(
        "The harbour of Porto is open at night.",
        tags=["port"],
        source="guide.md",
        created=datetime(2026, 5, 1, tzinfo=UTC),
        metadata={"city": "Porto", "deep": {"er": [1]}},
    )
    memory.remember("Trams climb the hills of Lisbon.", metadata={"city": "Lisbon", "kind": "transport"})
    memory.remember("The harbour of Lisbon has a ferry.", metadata={"city": "Lisbon"})
    return memory


# ---------------------------------------------------------------- the retriever


async def test_a_retriever_finds_memories_as_nodes(filled: nacre.Nacre) -> None:
    retriever = NacreRetriever(filled, similarity_top_k=2)
    assert isinstance(retriever, BaseRetriever)
    found = retriever.retrieve("harbour of Porto")
    expected = filled.search("harbour of Porto", limit=2).hits
    assert [each.node.node_id for each in found] == [each.id for each in expected]
    assert [each.score for each in found] == [each.relevance for each in expected]
    assert all(0 <= each.score <= 1 for each in found)
    best = found[0].node
    assert best.text == "The harbour of Porto is open at night."
    assert best.metadata["city"] == "Porto"
    assert best.metadata["deep"] == {"er": [1]}
    assert best.metadata["tags"] == ["port"]
    assert best.get_content(MetadataMode.EMBED) == best.text
    read = best.get_content(MetadataMode.LLM)
    assert "created: 2026-05-01" in read
    assert "source: guide.md" in read
    assert "city" not in read
    assert [each.node for each in await retriever.aretrieve("harbour of Porto")] == [each.node for each in found]


def test_metadata_of_the_caller_goes_first(filled: nacre.Nacre) -> None:
    (found,) = NacreRetriever(filled, similarity_top_k=1).retrieve("trams climb hills")
    assert found.node.metadata["kind"] == "transport"


def test_filters_and_modes_of_a_retriever(filled: nacre.Nacre) -> None:
    in_lisbon = NacreRetriever(filled, where=Filter(metadata={"city": "Lisbon"}), mode="keyword")
    assert [each.text for each in in_lisbon.retrieve("harbour")] == ["The harbour of Lisbon has a ferry."]
    assert NacreRetriever(filled, min_score=1.0).retrieve("harbour") == []
    assert NacreRetriever(filled, mode="keyword").retrieve("volcano") == []


def test_a_query_engine_answers_from_memories(filled: nacre.Nacre) -> None:
    engine = RetrieverQueryEngine.from_args(
        NacreRetriever(filled),
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)],
    )
    answer = engine.query("Where is a harbour?")
    assert len(answer.source_nodes) == 3
    assert "harbour" in str(answer)


def test_paths_are_opened_and_closed(path: Path) -> None:
    with NacreRetriever(path, embedder=None, space="trips") as retriever:
        retriever.memory.remember("The harbour of Porto is open at night.")
        assert len(retriever.retrieve("harbour")) == 1
    with pytest.raises(nacre.StoreError):
        retriever.retrieve("harbour")
    with NacreRetriever(path, embedder=None) as other_space:
        assert other_space.retrieve("harbour") == []


# ---------------------------------------------------------------- the memory block


@asynccontextmanager
async def chat(block: BaseMemoryBlock[Any], session: str = "trip", **options: Any) -> AsyncIterator[Memory]:
    """A memory whose queue is so short that almost every message leaves it."""
    given = {"token_limit": 400, "chat_history_token_ratio": 0.1, "token_flush_size": 10, **options}
    memory = Memory.from_defaults(session_id=session, memory_blocks=[block], **given)
    yield memory
    await memory.sql_store._async_engine.dispose()  # the framework leaves it open


def say(who: str, text: str) -> ChatMessage:
    return ChatMessage(role=who, content=text)


async def test_what_leaves_the_queue_is_remembered_and_recalled(memory: nacre.Nacre) -> None:
    async with chat(NacreMemoryBlock(memory=memory)) as talk:
        for at in range(6):
            await talk.aput(
                say("user", f"My locker in building {at} has the number {at * 111}, which I keep forgetting.")
            )
            await talk.aput(say("assistant", f"Noted: building {at}, number {at * 111}, and I hope it stays that way."))
        turns = list(memory.every(Filter(sessions=("trip",))))
        await talk.aput(say("user", "Which number has my locker in building 2?"))
        prompt = await talk.aget()
    assert len(turns) >= 8
    assert turns[0].text.startswith("My locker in building 0")
    assert [each.metadata["role"] for each in turns[:4]] == ["user", "assistant"] * 2
    assert [each.position for each in turns] == sorted({each.position for each in turns if each.position is not None})
    assert prompt[0].role == "system"
    assert "number 222" in str(prompt[0].content)
    assert "Recalled memories: data to consult" in str(prompt[0].content)


async def test_messages_that_are_equal_are_turns_of_their_own(memory: nacre.Nacre) -> None:
    block = NacreMemoryBlock(memory=memory)
    await block.aput([say("user", "yes"), say("assistant", "yes"), say("user", "yes")], session_id="a")
    await block.aput([say("user", "yes")], session_id="b")
    assert [each.text for each in memory.every(Filter(sessions=("a",)))] == ["yes"] * 3
    assert [each.text for each in memory.every(Filter(sessions=("b",)))] == ["yes"]


async def test_only_what_was_said_is_remembered(memory: nacre.Nacre) -> None:
    picture = ChatMessage(role="user", blocks=[ImageBlock(url="https://example.org/a.png")])
    two = ChatMessage(role="user", blocks=[TextBlock(text="first"), TextBlock(text="second")])
    given = [say("system", "be brief"), say("tool", "42"), say("assistant", ""), picture, two]
    await NacreMemoryBlock(memory=memory).aput(given)
    (turn,) = memory.every()
    assert turn.text.split() == ["first", "second"]
    assert turn.session == "default"


async def test_memories_of_the_whole_space_are_recalled(filled: nacre.Nacre, path: Path) -> None:
    block = NacreMemoryBlock(memory=filled)
    asked = [say("user", "Where is a ferry?")]
    first = await block.aget(asked, session_id="one")
    assert "The harbour of Lisbon has a ferry." in first
    assert await block.aget(asked, session_id="one") == first  # each prompt is made anew
    assert await block.aget([]) == ""
    assert await block.aget([say("assistant", "hello")]) == ""
    only_porto = NacreMemoryBlock(memory=filled, where=Filter(metadata={"city": "Porto"}))
    assert "ferry." not in await only_porto.aget(asked)
    with nacre.open(path, embedder=Hashing(), space="empty") as other:
        assert await NacreMemoryBlock(memory=other).aget(asked) == ""


async def test_the_question_may_be_several_messages(filled: nacre.Nacre) -> None:
    asked = [say("user", "ferry Lisbon"), say("assistant", "There is one."), say("user", "zzz?")]
    assert "ferry" not in await NacreMemoryBlock(memory=filled).aget(asked)
    assert "ferry" in await NacreMemoryBlock(memory=filled, user_messages=2).aget(asked)


async def test_a_budget_is_kept_and_content_is_cut_by_memories(memory: nacre.Nacre) -> None:
    memory.remember_many([f"Rule {at} of the harbour: moor in order of arrival, {'please ' * 20}" for at in range(20)])
    block = NacreMemoryBlock(memory=memory, budget_tokens=400)
    content = await block.aget([say("user", "rules of the harbour")])
    tokens = memory.count_tokens(content)
    assert 100 < tokens <= 400
    shorter = await block.atruncate(content, 100)
    assert shorter is not None
    assert content.startswith(shorter)
    assert shorter.count("<memory id=") == shorter.count("</memory ") > 0
    assert memory.count_tokens(shorter) <= tokens - 100
    assert await block.atruncate(content, 10_000) is None


async def test_a_block_is_truncated_in_a_memory(filled: nacre.Nacre) -> None:
    block = NacreMemoryBlock(memory=filled, priority=1)
    async with chat(block, token_limit=60, chat_history_token_ratio=0.9) as talk:
        await talk.aput(say("user", "Where is a harbour?"))
        assert [each.role for each in await talk.aget()][-1] == "user"


async def test_a_chat_engine_recalls(memory: nacre.Nacre) -> None:
    memory.remember("Mara likes Darjeeling tea.")
    async with chat(NacreMemoryBlock(memory=memory)) as talk:
        engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=talk)
        answer = await engine.achat("Which tea does Mara like?")
    assert "Mara likes Darjeeling tea." in str(answer)


async def test_a_block_opens_a_path(path: Path) -> None:
    nacre.open(path).close()
    block = NacreMemoryBlock(memory=path)
    await block.aput([say("user", "I moved to Faro.")], session_id="a")
    block.close()
    with nacre.open(path, embedder=None) as memory:
        assert [each.text for each in memory.every()] == ["I moved to Faro."]
    with pytest.raises(nacre.StoreError):
        await block.aput([say("user", "again")])
    assert "memory" not in block.model_dump()


@pytest.mark.slow
def test_several_sessions_at_once(path: Path) -> None:
    async def all_of_them(block: NacreMemoryBlock) -> None:
        await asyncio.gather(
            *(block.aput([say("user", f"{name} {at}") for at in range(4)], session_id=name) for name in "abcdef")
        )

    with nacre.open(path, embedder=None) as memory:
        asyncio.run(all_of_them(NacreMemoryBlock(memory=memory)))
        for name in "abcdef":
            said = [each.text for each in memory.every(Filter(sessions=(name,)))]
            assert said == [f"{name} {at}" for at in range(4)]
