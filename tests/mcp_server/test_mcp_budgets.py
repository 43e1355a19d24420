"""What clients hand to a model stays within what was asked for, with the real model.

Some clients hand over structured content and fall back to the text, others take the text: both are counted, with the
counter that `context` uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

import nacre
from mcp_clients import asynchronous, engines_on, given, handed_over, listed, said, served
from nacre.cli.demo import SAMPLES
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tools import DEFAULT
from nacre.serialization import decode
from nacre.types.memory import NewMemory
from sample_ranks import PROMISED

BUDGETS = (50, 75, 100, 150, 200, 300, 500, 800, 1_200, 2_000)
QUESTIONS = [query for query, _, _ in PROMISED][:6]
TIMELINE_TOKENS, ENTRIES = 1_500, 50


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpaceEngines]:
    made = engines_on(tmp_path_factory.mktemp("budgets") / "memories.db", embedder="minilm")
    lines = SAMPLES.read_text("utf-8").splitlines()
    made.memory("default").remember_many(decode.new_memory_line(line, at) for at, line in enumerate(lines, 1))
    yield made
    made.close()


def costs(engines: SpaceEngines, result: types.CallToolResult) -> int:
    """The tokens of the costlier of the two contents."""
    count = engines.memory("default").count_tokens
    return max(count(said(result)), count(handed_over(result)))


@asynchronous
async def test_a_context_costs_no_more_than_its_budget(engines: SpaceEngines, tmp_path: Path) -> None:
    outcomes = set()
    async with Client(served(engines, DEFAULT, tmp_path)) as client:
        for budget in BUDGETS:
            for query in QUESTIONS:
                for arguments in ({"budget_tokens": budget}, {"budget_tokens": str(budget), "repeat": "no"}):
                    named: dict[str, Any] = {**arguments, "query": query, "session": f"{budget % 300}"}
                    result = await client.call_tool("context", named)
                    assert not result.is_error, said(result)
                    assert result.structured_content is None
                    assert costs(engines, result) <= budget, (query, budget, said(result))
                    known = given(result)
                    assert known["tokens"] == engines.memory("default").count_tokens(said(result)) <= budget
                    outcomes.add(known["outcome"])
                    assert len(known["notes"]) >= (2 if isinstance(arguments["budget_tokens"], str) else 0)
    assert {"answered", "delivered"} <= outcomes


@asynchronous
async def test_a_note_on_arguments_is_said_where_there_is_room(engines: SpaceEngines, tmp_path: Path) -> None:
    async with Client(served(engines, DEFAULT, tmp_path)) as client:
        result = await client.call_tool("context", {"query": QUESTIONS[0], "budget_tokens": "2000"})
        assert said(result).endswith('\nbudget_tokens: "2000" was read as 2000')


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("", "the query asks for nothing: give some words"),
        ("since:whenever who is on call?", "since:whenever is not a time; write it like 7d, yesterday, last-week, "),
    ],
)
@asynchronous
async def test_a_note_on_the_question_is_said_where_there_is_room(
    engines: SpaceEngines, tmp_path: Path, query: str, last: str
) -> None:
    async with Client(served(engines, DEFAULT, tmp_path)) as client:
        long = await client.call_tool("context", {"query": query, "budget_tokens": 2000})
        assert said(long).splitlines()[-1].startswith(last)
        short = await client.call_tool("context", {"query": query, "budget_tokens": 25})
        assert costs(engines, short) <= 25
        assert given(short)["notes"][0].startswith(last)


LANGUAGES = {
    "Russian": "Мы решили перенести базу данных на новый сервер в пятницу вечером, номер {}.",
    "Chinese": "我们决定在星期五晚上把数据库迁移到新的服务器，以免影响客户的使用，编号{}。",
    "Arabic": "قررنا نقل قاعدة البيانات إلى خادم جديد مساء الجمعة حتى لا نزعج العملاء رقم {}.",
    "paths": "/usr/local/lib/x{}/foo_bar-baz.qux:37: 0xDEADBEEF != {{a:[1,2],b:3}}",
}


@pytest.mark.parametrize("apart", [timedelta(days=31), timedelta(days=1), timedelta(minutes=7)], ids=str)
@pytest.mark.parametrize("language", ["English", *LANGUAGES])
@asynchronous
async def test_fifty_entries_of_a_timeline_are_cheap(
    engines: SpaceEngines, path: Path, tmp_path: Path, apart: timedelta, language: str
) -> None:
    """Texts without a summary, and with one that is as long. With a month each, they are listed by year."""
    last = datetime(2026, 7, 1, 12, tzinfo=UTC)
    texts = [each.text for each in engines.memory("default").every()][: ENTRIES + 1]
    if language != "English":
        texts = [LANGUAGES[language].format(at) for at in range(ENTRIES + 1)]
    with nacre.open(path, embedder="none") as memory:
        memory.remember_many(
            NewMemory(text=text, created=last - apart * at, pinned=at % 10 == 0, summary=text if at % 2 else None)
            for at, text in enumerate(texts)
        )
    listing = engines_on(path, embedder="minilm")
    async with Client(served(listing, DEFAULT, tmp_path)) as client:
        result = await client.call_tool("timeline", {"limit": str(ENTRIES)})
    listing.close()
    known = given(result)
    assert len(listed(known)) == ENTRIES
    assert known["notes"]
    assert "next" in known
    assert [len(group) for group in known["entries"]] == [7 if apart < timedelta(31) else 4] * len(known["entries"])
    # The counter has a token for each letter of a script that the model does not know.
    assert all(len(line.split(" ", 2)[2]) > 2 for lines in known["entries"].values() for line in lines)
    assert json.loads(said(result)) == result.structured_content
    assert costs(engines, result) < TIMELINE_TOKENS, said(result)
