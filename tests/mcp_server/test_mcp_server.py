"""The agent's door in this process, spoken to by the SDK's own client in both dialects of the protocol.

What listed tools look like is kept in data/mcp_tools.json; NACRE_RENEW_SNAPSHOT=1 writes it anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.session import ListRootsFnT
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

import nacre
from mcp_clients import (
    ANSWER_SECONDS,
    INITIALIZED,
    MODES,
    asynchronous,
    engines_on,
    initialize,
    listed,
    message,
    problem,
    resource,
    said,
    served,
    spoken_to,
    tool_call,
)
from mcp_clients import given as structured
from nacre.analysis.quoting import empty_line
from nacre.cli.demo import SAMPLES
from nacre.config import project_space
from nacre.engine import writer
from nacre.engine.calendar import local_date
from nacre.errors import InvalidInput
from nacre.mcp_server import chatgpt_tools, graph_tools, server_info
from nacre.mcp_server import server as server_module
from nacre.mcp_server.handshake import VERSIONS, early_answer
from nacre.mcp_server.server import RequestHandlers
from nacre.mcp_server.server_info import Profile
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tool import Tool
from nacre.mcp_server.tools import DEFAULT, GROUPS, chosen
from nacre.serialization import decode, encode
from sample_ranks import PROMISED

SNAPSHOT = Path(__file__).parents[1] / "data" / "mcp_tools.json"
RENEW = "NACRE_RENEW_SNAPSHOT"
ALL = chosen("all")

# Upper estimates, for no tokenizer of a large model is installed. Counted with o200k: 4.17 characters a token for the
# listed tools, and 2.84 for hits, whose ids are costly.
CHARS_A_TOKEN_OF_TOOLS = 3.95
CHARS_A_TOKEN_OF_HITS = 2.7


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engines(path: Path) -> Iterator[SpaceEngines]:
    made = engines_on(path)
    yield made
    made.close()


@pytest.fixture
def door(engines: SpaceEngines, tmp_path: Path) -> Server[Any]:
    """A server with every tool, in a folder that is no project."""
    return served(engines, ALL, tmp_path)


@pytest.fixture
def memory(engines: SpaceEngines) -> nacre.Nacre:
    """The engine that callers reach who name no project."""
    return engines.memory("default")


async def call(client: Client, name: str, /, **arguments: object) -> dict[str, Any]:
    return structured(await client.call_tool(name, arguments))


async def refusal(client: Client, name: str, /, **arguments: object) -> str:
    return problem(await client.call_tool(name, arguments))


async def remembered(client: Client, text: str, /, **fields: object) -> str:
    answer = await call(client, "remember", text=text, **fields)
    assert answer == {"id": answer["id"], "duplicate": False}
    return str(answer["id"])


# ---------------------------------------------------------------- the tools that every agent gets


@asynchronous
async def test_a_client_is_given_who_answers(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        assert client.protocol_version == {"legacy": VERSIONS[-1], "auto": "2026-07-28"}[mode]
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("nacre", nacre.__version__)
        assert client.instructions == server_info.MEMORY.instructions
        able = client.server_capabilities
        assert able.tools is not None
        assert able.resources is not None
        assert able.prompts is not None
        assert [each.name for each in (await client.list_tools()).tools] == [each.name for each in ALL]


@asynchronous
async def test_remember_search_get_timeline_context_forget(door: Server[Any], memory: nacre.Nacre, mode: str) -> None:
    async with Client(door, mode=mode) as client:
        leave = await remembered(
            client,
            "Henrik is on parental leave until 18 October",
            namespace="people",
            kind="fact",
            tags=["leave"],
            summary="Henrik is away",
            source="mail",
            happened="2026-03-01T12:00:00Z",
            importance=0.9,
        )
        oncall = await remembered(client, "Mara takes the pager while Henrik is away")
        plain = memory.search("who is on leave?")  # nobody's session, so nobody was told anything

        result = await client.call_tool("search_memories", {"query": "who is on leave?"})
        assert json.loads(said(result)) == encode.brief(plain)
        assert result.structured_content is None
        assert structured(result)["hits"][0]["id"] == leave
        assert structured(result)["hits"][0]["date"] == "2026-03-01"

        result = await client.call_tool("get_memories", {"ids": [oncall, "nobody", leave]})
        assert structured(result) == encode.brief_fetched(memory.get([oncall, "nobody", leave], missing_ok=True))
        assert structured(result)["missing"] == ["nobody"]
        full = structured(result)["memories"][1]
        assert {name: full[name] for name in ("text", "namespace", "kind", "tags", "summary", "source")} == {
            "text": "Henrik is on parental leave until 18 October",
            "namespace": "people",
            "kind": "fact",
            "tags": ["leave"],
            "summary": "Henrik is away",
            "source": "mail",
        }
        assert (full["happened"], full["importance"]) == ("2026-03-01T12:00:00Z", 0.9)
        assert json.loads(said(result)) == structured(result)

        result = await client.call_tool("timeline", {"limit": 1})
        assert structured(result) == encode.brief_timeline(memory.timeline(limit=1))
        assert json.loads(said(result)) == structured(result)
        assert listed(structured(result)) == [oncall]
        following = await call(client, "timeline", cursor=structured(result)["next"])
        today = local_date(memory.get(leave)[0].created, None).day
        ((line,),) = following["entries"].values()
        assert line == f"{today} {leave} [2026-03-01] Henrik is away"

        packed = await client.call_tool("context", {"query": "who takes the pager?", "repeat": True})
        assert packed.structured_content is None
        assert "Mara takes the pager while Henrik is away" in said(packed)
        expected = encode.context(memory.context("who takes the pager?"))
        assert structured(packed) | {"receipt": None} == expected | {"receipt": None}

        assert await call(client, "forget", ids=[leave]) == {"forgotten": [leave]}
        assert listed(await call(client, "timeline")) == [oncall]
        assert leave not in said(await client.call_tool("search_memories", {"query": "who is on leave?"}))


@asynchronous
async def test_filters_and_times_are_passed_on(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        ids = {
            name: await remembered(client, f"The {name} fox jumps", namespace=name, kind=kind, tags=tags, session=name)
            for name, kind, tags in (("red", "note", ["quick"]), ("brown", "fact", ["quick", "sly"]))
        }
        for arguments, expected in (
            ({"namespaces": ["red"]}, ["red"]),
            ({"namespaces": "red"}, ["red"]),
            ({"kinds": ["fact", "note"]}, ["red", "brown"]),
            ({"tags": ["quick", "sly"]}, ["brown"]),
            ({"tags": []}, ["red", "brown"]),
            ({"tags": None, "kinds": None}, ["red", "brown"]),
        ):
            wanted = {ids[each] for each in expected}
            found = await call(client, "search_memories", query="fox", mode="keyword", **arguments)
            assert {each["id"] for each in found["hits"]} == wanted, arguments
            assert set(listed(await call(client, "timeline", **arguments))) == wanted, arguments
            packed = await call(client, "context", query="fox", repeat=True, min_score=0, **arguments)
            assert {each["id"] for each in packed["quoted"]} == wanted, arguments
        red, brown = ids.values()
        page = await call(client, "timeline", sessions=["brown"], start="yesterday", histogram="month")
        assert listed(page) == [brown]
        assert list(page["histogram"].values()) == [1]
        assert await call(client, "timeline", end="yesterday") == {"entries": {}}
        around = await call(client, "timeline", around=red, span=1, oldest_first=True)
        assert (listed(around), around["anchor"]) == ([red, brown], red)
        assert (await call(client, "search_memories", query="fox", as_of="2020-01-01"))["hits"] == []
        assert (await call(client, "search_memories", query="fox", limit=1))["hits"][0]["id"] in ids.values()
        assert (await call(client, "search_memories", query="umbrella", min_score=0.9))["hits"] == []
        assert (await call(client, "context", query="fox", budget_tokens=0))["quoted"] == []
        (one,) = (await call(client, "get_memories", ids=red, neighbours=3, entities=True))["memories"]
        assert "neighbours" not in one
        assert "entities" not in one


@asynchronous
async def test_what_says_nothing_is_left_out(door: Server[Any], mode: str) -> None:
    """Of both kinds of content alike; but an empty list that is the answer stays."""
    async with Client(door, mode=mode) as client:
        for name, arguments, expected in (
            ("search_memories", {"query": "tea"}, '{"hits":[]}'),
            ("timeline", {}, '{"entries":{}}'),
            ("get_memories", {"ids": []}, '{"memories":[]}'),
            ("forget", {"ids": []}, '{"forgotten":[]}'),
            ("facts", {}, '{"facts":[]}'),
        ):
            assert said(await client.call_tool(name, arguments)) == expected
        result = await client.call_tool("remember", {"text": "Tea at four"})
        tea = structured(result)["id"]
        assert said(result) == f'{{"id":"{tea}","duplicate":false}}'
        (fetched,) = (await call(client, "get_memories", ids=[tea]))["memories"]
        assert {name: fetched[name] for name in fetched if name != "created"} == {
            "id": tea, "text": "Tea at four", "kind": "note", "namespace": "general",
        }  # fmt: skip


# ---------------------------------------------------------------- what goes wrong

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {}, "text: is missing"),
    ("remember", {"text": None}, "text: is missing"),
    ("remember", {"text": " \n"}, "text: is blank; give 1 to 1,000,000 characters"),
    ("remember", {"text": True}, "text: must be a text, not true or false"),
    ("remember", {"text": "x" * 1_000_001}, "text: has 1,000,001 characters; at most 1,000,000 are allowed: split it"),
    ("remember", {"text": "x\0y"}, "text: contains a NUL or a lone surrogate; only valid Unicode text is allowed"),
    ("remember", {"text": "x", "tags": ["t", {}]}, "tags[1]: must be a text, not an object"),
    ("remember", {"text": "x", "tags": ["t"] * 101}, "tags: has 101 values; at most 100 are allowed"),
    ("remember", {"text": "x", "importance": "high"}, "importance: is 'high'; a number from 0 to 1 is allowed"),
    ("remember", {"text": "x", "happened": "purple"}, "happened: 'purple' is not a time; write it like 7d, "),
    ("remember", {"text": "x", "happened": {}},
     "happened: must be a text like 7d, yesterday or 2026-03-01, not an object"),
    ("remember", {"text": "x", "space": "other"}, "space: is unknown; did you mean `namespace`? allowed: text, "),
    ("search_memories", {}, "query: is missing"),
    ("search_memories", {"query": ["x", "y"]}, "query: must be a text, not a list"),
    ("search_memories", {"query": "x", "start": "7d"},
     "start: is unknown; write since:7d or until:2026-03 in the query; allowed: "),
    ("search_memories", {"query": "x", "limit": 1_001}, "limit: is 1001; a whole number from 1 to 1,000 is allowed"),
    ("search_memories", {"query": "x", "limit": "many"}, "limit: is 'many'; a whole number from 1 to 1,000 is allowed"),
    ("search_memories", {"query": "x", "mode": "fast"}, "mode: 'fast' is unknown; allowed: keyword, semantic, hybrid"),
    ("search_memories", {"query": "x", "lens": "pink"}, "lens: 'pink' is unknown; allowed: none, debugging, "),
    ("search_memories", {"query": "x", "spaces": ["other"]}, "spaces: is unknown; did you mean `namespaces`?"),
    ("search_memories", {"query": "x", "session": "x" * 201}, "session: has 201 characters; at most 200 are allowed"),
    ("timeline", {"start": "2026-02-30"}, "start: '2026-02-30' is not a time; "),
    ("timeline", {"start": "2026-03-02", "end": "2026-03-01"}, "end: must be after start"),
    ("timeline", {"cursor": "next"}, "cursor: 'next' is not one; give the `next` of the page before"),
    ("timeline", {"around": "nobody"}, "id: no memory 'nobody'; "),
    ("timeline", {"histogram": "year"}, "histogram: 'year' is unknown; allowed: day, week, month"),
    ("get_memories", {"ids": {"id": "x"}}, "ids: must be a list of texts, not an object"),
    ("get_memories", {"ids": ["x", None]}, "ids[1]: must be a text, not null"),
    ("get_memories", {"ids": ["x"] * 10_001}, "ids: 10001 are too many; at most 10000 in one call"),
    ("get_memories", {"ids": ["x"], "neighbours": 51}, "neighbours: is 51; a whole number from 0 to 50 is allowed"),
    ("context", {"query": "x", "budget_tokens": -1}, "budget_tokens: is -1; a whole number of 0 or more is allowed"),
    ("context", {"query": "x", "repeat": "perhaps"}, "repeat: must be true or false, not a text"),
    ("forget", {"ids": ["nobody"]}, "id: no memory 'nobody'; check it with `timeline`"),
    ("forget", {}, "ids: is missing"),
]  # fmt: skip


@asynchronous
async def test_errors_are_the_engines_and_write_nothing(door: Server[Any], memory: nacre.Nacre, mode: str) -> None:
    async with Client(door, mode=mode) as client:
        for name, arguments, expected in REFUSED:
            delivered = await refusal(client, name, **arguments)
            assert delivered.startswith(expected), (name, arguments, delivered)
    assert memory.facets().total == 0


@asynchronous
async def test_an_unknown_tool_is_an_error_of_the_protocol(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    async with Client(served(engines, DEFAULT, tmp_path), mode=mode) as client:
        for name in ("recall", "facts", ""):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}; allowed: remember, search_memories") as caught:
                await client.call_tool(name, {})
            assert caught.value.code == types.INVALID_PARAMS


VALID: dict[str, dict[str, Any]] = {
    "remember": {"text": "x"},
    "search_memories": {"query": "x"},
    "get_memories": {"ids": ["x"]},
    "context": {"query": "x"},
    "forget": {"ids": ["x"]},
    "state_fact": {"subject": "x", "predicate": "is", "object": "y"},
    "reinforce": {"ids": ["x"]},
    "drop_facts": {"ids": ["x"]},
    "related_entities": {"name": "x"},
    "add_entity": {"name": "x"},
    "mark": {"ids": ["x"], "outcome": "used"},
    "save_lens": {"name": "x"},
    "why": {"id": "x", "query": "x"},
    "remember_many": {"memories": [{"text": "x"}]},
    "update_memory": {"id": "x", "text": "y"},
    "related": {"id": "x"},
    "restore": {"ids": ["x"]},
    "history": {"id": "x"},
}
ODD: list[Any] = [{}, [], [5], ["x"], ["x", "y"], {"x": {}}, 5, -1, 0.5, True, "", "x", "x\0y", None]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
@asynchronous
async def test_whatever_a_model_puts_into_a_field_is_answered(
    engines: SpaceEngines, tmp_path: Path, tool: Tool
) -> None:
    """No field that a schema names is unknown, and no value ends in an exception that nobody thought of."""
    strange = []
    memory = engines.memory("default")
    ids = [memory.remember(text).id for text in ("Ada lives in London", "Bo lives in Rome")]
    async with Client(served(engines, [tool], tmp_path), mode="legacy") as client:
        for field in cast("dict[str, Any]", tool.input.get("properties", {})):
            for value in (*ODD, ids):
                try:
                    result = await client.call_tool(tool.name, {**VALID.get(tool.name, {}), field: value})
                except MCPError as error:
                    strange.append((field, value, str(error)))
                    continue
                if f"{field}: is unknown" in said(result) or "failed inside" in said(result):
                    strange.append((field, value, said(result)))
        assert (await refusal(client, tool.name, **VALID.get(tool.name, {}), bogus=1)).startswith(
            ("bogus: is unknown; allowed: ", "fact.bogus: is unknown; allowed: ")
        )
    assert strange == []


@asynchronous
async def test_an_exception_that_nobody_thought_of_is_an_error_and_not_the_end(
    engines: SpaceEngines, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    async with Client(served(engines, DEFAULT, tmp_path), mode=mode) as client:
        with monkeypatch.context() as broken:
            broken.setattr(nacre.Nacre, "timeline", fail)
            delivered = await refusal(client, "timeline")
        assert "ZeroDivisionError" in delivered
        assert "by nothing" not in delivered  # it may quote what nobody is to see
        assert await call(client, "timeline") == {"entries": {}}


@asynchronous
async def test_a_store_that_cannot_be_opened_is_a_clear_error(tmp_path: Path, mode: str) -> None:
    (tmp_path / "notes.db").write_text("This is no database, but a text that somebody wrote. " * 20)
    engines = engines_on(tmp_path / "notes.db")
    expected = "store: .*notes.db"
    async with Client(served(engines, DEFAULT, tmp_path), mode=mode) as client:
        assert (await refusal(client, "timeline")).startswith("store: ")
        with pytest.raises(MCPError, match=expected) as caught:
            await client.read_resource("nacre://overview")
        assert caught.value.code == types.INTERNAL_ERROR
        with pytest.raises(MCPError, match=expected):
            await client.get_prompt("recall", {"topic": "x"})


# ---------------------------------------------------------------- the tools that are offered by group


def test_groups_of_tools_are_chosen_by_name() -> None:
    assert chosen("") == DEFAULT
    assert chosen("why") == (*DEFAULT, *GROUPS["why"])
    assert chosen(" log , facts,") == (*DEFAULT, *GROUPS["facts"], *GROUPS["log"])
    assert chosen("all,why") == (*DEFAULT, *(tool for tools in GROUPS.values() for tool in tools))
    assert len({each.name for each in ALL}) == len(ALL)
    with pytest.raises(InvalidInput, match=r"^tools: 'fact' is unknown; allowed: facts, entities, .*, all, chatgpt$"):
        chosen("why,fact")
    assert chosen(" chatgpt") == chatgpt_tools.TOOLS
    with pytest.raises(InvalidInput, match=r"^tools: chatgpt has tools of its own and is not combined"):
        chosen("chatgpt,why")


@asynchronous
async def test_facts(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        (london,) = (
            await call(client, "state_fact", subject="Ada", predicate="lives in", object="London", type="location")
        )["facts"]
        assert (london["subject"], london["predicate"], london["object"]) == ("Ada", "lives in", "London")
        assert london["effective"] == london["confidence"]
        source = await remembered(client, "Ada wrote that she moved")
        (paris,) = (
            await call(
                client,
                "state_fact",
                subject="Ada",
                predicate="lives in",
                object="Paris",
                type="location",
                memory_id=source,
                confidence=0.9,
            )
        )["facts"]
        assert paris["memory_id"] == source
        assert [each["object"] for each in (await call(client, "facts", subject="Ada"))["facts"]] == ["Paris"]
        delivered = (await call(client, "facts", subject="Ada", history=True))["facts"]
        assert {each["object"] for each in delivered} == {"London", "Paris"}
        assert (await call(client, "facts", memory_id=source))["facts"][0]["id"] == paris["id"]

        said_again = await call(client, "state_fact", subject="Ada", predicate="likes", object="tea")
        twice = await call(client, "state_fact", subject="Ada", predicate="likes", object="tea")
        assert twice["facts"][0]["memory_id"] == said_again["facts"][0]["memory_id"]

        for confidence in (0.9, 0.3):
            await call(
                client, "state_fact", subject="Bo", predicate="port", object=f"{confidence}", confidence=confidence,
                type="config",
            )  # fmt: skip
        found = await call(client, "conflicts")
        assert [(each["subject"], len(each["facts"])) for each in found["conflicts"]] == [("Bo", 2)]
        assert found["stale"] == []
        assert await call(client, "reinforce", ids=[paris["id"]]) == {"reinforced": 1}
        assert await call(client, "drop_facts", ids=[paris["id"]]) == {"dropped": [paris["id"]]}
        assert [
            each["object"] for each in (await call(client, "facts", subject="Ada", predicate="lives in"))["facts"]
        ] == ["London"]


@asynchronous
async def test_entities(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        tea = await remembered(client, "The countess takes her tea at four")
        added = await call(client, "add_entity", name="Ada", kind="person", aliases=["countess"], memory_ids=[tea])
        assert added["entity"] == {"name": "Ada", "space": "default", "type": "person", "aliases": ["countess"]}
        assert (await call(client, "entities", names=["Countess"]))["entities"] == [added["entity"]]
        await call(client, "state_fact", subject="Ada", predicate="knows", object="Babbage", relation=True)
        (babbage,) = (await call(client, "related_entities", name="countess", depth=2))["entities"]
        assert (babbage["name"], babbage["distance"]) == ("Babbage", 1)
        assert babbage["path"][0]["predicate"] == "knows"
        assert (await call(client, "search_memories", query="entity:ada tea"))["hits"][0]["id"] == tea


@asynchronous
async def test_the_recall_log(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        tea = await remembered(client, "Tea is served at four")
        await call(client, "search_memories", query="when is tea?")
        (receipt,) = (await call(client, "recall_log", memory_id=tea))["receipts"]
        assert (receipt["query"], receipt["session"]) == ("when is tea?", "this session")
        assert receipt["deliveries"][0]["memory_id"] == tea
        assert await call(client, "mark", ids=[tea], outcome="used", receipt=receipt["id"]) == {"marked": [tea]}
        assert await call(client, "mark", ids=[tea], outcome="used") == {"marked": []}
        (receipt,) = (await call(client, "recall_log", session="this session", limit=5))["receipts"]
        assert receipt["deliveries"][0]["used"] is not None
        assert (await call(client, "recall_log", session="another"))["receipts"] == []


@asynchronous
async def test_lenses(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        await remembered(client, "Tea is served at four", namespace="house")
        await remembered(client, "Tea ships from Assam", namespace="trade")
        built_in = len((await call(client, "lenses"))["lenses"])
        made = await call(client, "save_lens", name="house", where={"namespaces": ["house"]}, description="at home")
        assert made["lens"]["where"]["namespaces"] == ["house"]
        known = (await call(client, "lenses"))["lenses"]
        assert len(known) == built_in + 1
        assert known[-1] == made["lens"]
        (hit,) = (await call(client, "search_memories", query="tea", lens="house"))["hits"]
        assert hit["snippet"] == "Tea is served at four"


@asynchronous
async def test_why(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        tea = await remembered(client, "Tea is served at four")
        await remembered(client, "Coffee comes later")
        found = await call(client, "why", id=tea, query="tea", mode="keyword")
        assert (found["rank"], found["hit"]["id"], found["left_out"]["stage"]) == (1, tea, "found")
        missed = await call(client, "why", id=tea, query="coffee", mode="keyword")
        assert (missed["rank"], missed["hit"]) == (None, None)
        assert missed["left_out"]["remedy"]
        met = (await call(client, "why", id=tea, query="when is tea served?"))["matched"]
        assert [(each["asked"], each["found"], each["memory_id"]) for each in met] == [
            ("tea", "Tea", tea),
            ("served", "served", tea),
        ]


@asynchronous
async def test_more_of_memories(door: Server[Any], memory: nacre.Nacre, mode: str) -> None:
    async with Client(door, mode=mode) as client:
        answer = await call(
            client,
            "remember_many",
            memories=[
                {"text": "Tea is served at four", "tags": ["tea"]},
                {"text": "Tea is served at four"},
                {"text": "Coffee is served at ten", "session": "another", "facts": []},
            ],
        )
        tea, again, coffee = answer["remembered"]
        assert (tea["duplicate"], again) == (False, {**tea, "duplicate": True})
        kept = (await call(client, "get_memories", ids=[tea["id"], coffee["id"]]))["memories"]
        assert [each.get("session") for each in kept] == [None, "another"]
        assert {each.origin for each in memory.get([tea["id"], coffee["id"]])} == {"this session"}

        changed = await call(client, "update_memory", id=tea["id"], text="Tea is served at five", tags=["tea", "late"])
        assert (changed["memory"]["text"], changed["memory"]["tags"]) == ("Tea is served at five", ["tea", "late"])
        found = await call(client, "history", id=tea["id"])
        assert [each["action"] for each in found["events"]] == ["remembered", "updated"]
        assert found["events"][1]["before"]["text"] == "Tea is served at four"

        near = await call(client, "related", id=tea["id"], limit=3)
        assert [each["id"] for each in near["hits"]] == [coffee["id"]]
        assert (await call(client, "facets"))["total"] == 2
        counted = await call(client, "facets", query="tea AND five")
        assert (counted["total"], counted["tags"]) == (1, {"tea": 1, "late": 1})

        await call(client, "forget", ids=tea["id"])
        assert (await call(client, "facets"))["total"] == 1
        assert await call(client, "restore", ids=[tea["id"]]) == {"restored": [tea["id"]]}
        assert (await call(client, "facets"))["total"] == 2


@asynchronous
async def test_a_bad_memory_does_not_lose_the_others(door: Server[Any], memory: nacre.Nacre, mode: str) -> None:
    bad: list[Any] = [
        {"txt": "Bad"},
        {"text": ""},
        5,
        {"text": "x", "tags": {}},
        {"text": "x", "supersedes": ["nobody"]},
    ]
    async with Client(door, mode=mode) as client:
        answer = await call(client, "remember_many", memories=["Tea at four", *bad, {"text": "Coffee at ten"}])
        assert [each.text for each in memory.get([each["id"] for each in answer["remembered"]])] == [
            "Tea at four", "Coffee at ten",
        ]  # fmt: skip
        places = [each.partition(": ") for each in answer["refused"]]
        assert [place for place, _, _ in places] == [f"memories[{at}]" for at in range(1, 6)]
        assert [problem[:40] for _, _, problem in places] == [
            "txt: is unknown; did you mean `text`? al", "text: is blank; give 1 to 1,000,000 char",
            "memory: must be a JSON object, not a num", "tags: must be a list of texts, not an ob",
            "id: no memory 'nobody'; `supersedes` nam",
        ]  # fmt: skip

        delivered = await refusal(client, "remember_many", memories=[{"text": ""}])
        assert delivered.splitlines() == [
            "memories: none was stored",
            "memories[0]: text: is blank; give 1 to 1,000,000 characters",
        ]
        assert (await call(client, "facets"))["total"] == 2
        assert await call(client, "remember_many", memories=[]) == {"remembered": []}


@asynchronous
async def test_progress_is_reported_to_who_asked(door: Server[Any], mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCH_EMBEDDED", 4)
    delivered: list[tuple[float, float | None]] = []
    others: list[object] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        delivered.append((progress, total))
        assert message is None

    async def overhear(message: object) -> None:
        others.append(message)

    async with Client(door, mode=mode, message_handler=overhear) as client:
        texts = [{"text": f"number {each}"} for each in range(10)]
        await client.call_tool("remember_many", {"memories": texts}, progress_callback=note)
        assert delivered == [(4, 10), (8, 10), (10, 10)]
        others.clear()
        await client.call_tool("remember_many", {"memories": [{"text": f"more {each}"} for each in range(10)]})
        assert (await call(client, "facets"))["total"] == 20
        assert len(delivered) == 3
        assert others == []


# ---------------------------------------------------------------- how they are listed


async def list_of(tools: Any, path: Path, mode: str = "legacy") -> list[dict[str, Any]]:
    engines = engines_on(path)
    async with Client(served(engines, tools, path.parent), mode=mode) as client:
        found = (await client.list_tools()).tools
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in found]


@asynchronous
async def test_tools_are_listed_as_they_were(path: Path) -> None:
    """Every model reads these words: they change on purpose or not at all."""
    now = {"default": await list_of(DEFAULT, path)}
    now |= {name: await list_of(tools, path) for name, tools in GROUPS.items()}
    now |= {"chatgpt": await list_of(chatgpt_tools.TOOLS, path)}
    now |= {"knowledge-graph": await list_of(graph_tools.TOOLS, path)}
    if os.environ.get(RENEW):
        SNAPSHOT.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", "utf-8")
    before = json.loads(SNAPSHOT.read_text("utf-8"))
    changed = [
        f"{group}: {each['name']}"
        for group in now.keys() | before.keys()
        for each in (*now.get(group, ()), *before.get(group, ()))
        if each not in now.get(group, ()) or each not in before.get(group, ())
    ]
    hint = f"if that is meant, run this test with {RENEW}=1 and commit {SNAPSHOT.name}"
    assert changed == [], f"listed otherwise than in {SNAPSHOT.name}: {sorted(set(changed))}; {hint}"
    assert now == before, f"the order of tools or groups has changed; {hint}"


@asynchronous
async def test_both_dialects_list_the_same(path: Path) -> None:
    assert await list_of(ALL, path, "auto") == await list_of(ALL, path)


@asynchronous
async def test_the_usual_tools_are_few_words(path: Path) -> None:
    text = json.dumps(await list_of(DEFAULT, path), ensure_ascii=False, separators=(",", ":"))
    assert len(text) / CHARS_A_TOKEN_OF_TOOLS < 1_500


@asynchronous
async def test_effects_are_given(door: Server[Any]) -> None:
    """Clients ask a person before a tool that is not said to read only, and more urgently if it destroys."""
    async with Client(door) as client:
        hints = {each.name: each.annotations for each in (await client.list_tools()).tools}
    reads = {name for name, hint in hints.items() if hint is not None and hint.read_only_hint}
    destroys = {name for name, hint in hints.items() if hint is not None and hint.destructive_hint}
    assert reads == {
        "search_memories", "timeline", "get_memories", "context", "facts", "conflicts", "entities",
        "related_entities", "recall_log", "lenses", "why", "related", "facets", "history",
    }  # fmt: skip
    assert destroys == {"forget", "drop_facts", "save_lens", "update_memory"}
    again = {name for name, hint in hints.items() if hint is not None and not hint.idempotent_hint}
    assert again == {  # they deliver, open, or confirm facts: what a later call gives depends on it
        "search_memories", "get_memories", "context", "state_fact", "reinforce",
    }  # fmt: skip
    assert all(hint is not None and hint.open_world_hint is False for hint in hints.values())


@pytest.mark.slow
@asynchronous
async def test_ten_hits_are_few_words(path: Path, tmp_path: Path) -> None:
    """The sample memories and questions of the demo, with the real model."""
    engines = engines_on(path, embedder="minilm")
    lines = SAMPLES.read_text("utf-8").splitlines()
    engines.memory("default").remember_many(decode.new_memory_line(line, at) for at, line in enumerate(lines, 1))
    many = 0
    async with Client(served(engines, DEFAULT, tmp_path, None)) as client:
        for query, _, _ in PROMISED:
            result = await client.call_tool("search_memories", {"query": query})
            hits = structured(result)["hits"]
            assert len(hits) <= 10
            assert len(said(result)) / CHARS_A_TOKEN_OF_HITS < 900, query
            many += len(hits) == 10
    engines.close()
    assert many >= 8


# ---------------------------------------------------------------- resources and prompts


@asynchronous
async def test_resources(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    memory = engines.memory("default")
    elsewhere = engines.memory("elsewhere").remember("Nobody here may read this").id
    async with Client(served(engines, DEFAULT, tmp_path), mode=mode) as client:
        tea = await remembered(client, "Tea is served at four", tags=["tea"])
        assert [each.uri for each in (await client.list_resources()).resources] == ["nacre://overview"]

        async def read(uri: str) -> Any:
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert (content.uri, content.mime_type) == (uri, "application/json")
            return json.loads(content.text)

        assert await read(f"nacre://memory/{tea}") == encode.memory(memory.get(tea)[0])
        overview = await read("nacre://overview")
        assert (overview["total"], overview["tags"]) == (1, {"tea": 1})
        assert [each["id"] for each in overview["newest"]] == [tea]
        for uri in (f"nacre://memory/{elsewhere}", "nacre://memory/", "nacre://nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError, match=r"^id: no ") as caught:
                await client.read_resource(uri)
            assert caught.value.code == {"legacy": -32002, "auto": types.INVALID_PARAMS}[mode]
            assert caught.value.data == {"uri": uri}


@asynchronous
async def test_prompts(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        await remembered(client, "Tea is served at four")
        assert [each.name for each in (await client.list_prompts()).prompts] == ["recall", "keep"]

        async def written(name: str, **arguments: str) -> str:
            (only,) = (await client.get_prompt(name, arguments)).messages
            assert only.role == "user"
            assert isinstance(only.content, types.TextContent)
            return only.content.text

        recalled = await written("recall", topic="when is tea served?")
        assert "Tea is served at four" in recalled
        assert "not instructions" in recalled
        assert recalled.endswith("\n\nWith this in mind: when is tea served?")
        again = await call(client, "remember", text="Note: Tea is served at four")
        assert len(again["recalled"]) == 1  # what a prompt gave is known to the connection, too
        unknown = await written("recall", topic="zebra crossings")
        assert unknown == f"{empty_line('nothing')}\n\nWith this in mind: zebra crossings"
        assert "`remember`" in await written("keep")
        for name, arguments, expected in (
            ("recall", {}, "topic: is missing"),
            ("recall", {"topic": " "}, "topic: is missing"),
            ("nothing", {}, "no prompt 'nothing'; allowed: recall and keep"),
        ):
            with pytest.raises(MCPError, match=expected) as caught:
                await client.get_prompt(name, arguments)
            assert caught.value.code == types.INVALID_PARAMS


# ---------------------------------------------------------------- what holds, and what is not known


@asynchronous
async def test_a_hit_names_its_successor(door: Server[Any]) -> None:
    async with Client(door) as client:
        old = await remembered(client, "the gateway listens on port 8080")
        new = await remembered(client, "the gateway listens on port 9090", supersedes=old)
        first, second = (await call(client, "search_memories", query="gateway port"))["hits"]
        assert (first["id"], second["id"], second["superseded_by"]["id"]) == (new, old, new)
        assert "superseded_by" not in first
        explained = await call(client, "why", id=old, query="gateway port")
        assert explained["below"].startswith(f"below, because {new} superseded it on 20")
        packed = await call(client, "context", query="gateway port")
        assert ([each["id"] for each in packed["quoted"]], packed["outcome"]) == ([new], "answered")
        assert packed["quoted"][0]["instead_of"] == [old]


@asynchronous
async def test_an_empty_context_says_why(door: Server[Any]) -> None:
    async with Client(door) as client:
        tea = await remembered(client, "green tea is in the cupboard")
        for arguments, outcome, line in (
            ({"query": "zebra crossings"}, "nothing", empty_line("nothing")),
            ({"query": "green tea", "budget_tokens": 30}, "budget", empty_line("budget", [tea])),
            ({"query": "green tea", "budget_tokens": 23}, "budget", empty_line("budget", [tea], 0)),
            ({"query": "green tea", "budget_tokens": 10}, "budget", "Budget too small."),
            ({"query": "green tea", "budget_tokens": 1}, "budget", "Budget too small."),
            ({"query": "green tea", "session": "talk"}, "answered", None),
            ({"query": "green tea", "session": "talk"}, "delivered", empty_line("delivered", [tea])),
        ):
            answer = await client.call_tool("context", arguments)
            assert structured(answer)["outcome"] == outcome, arguments
            assert line is None or said(answer) == line, arguments
            assert 0 < structured(answer)["tokens"] <= max(5, int(str(arguments.get("budget_tokens", 1_500))))


# ---------------------------------------------------------------- sessions


@asynchronous
async def test_what_a_session_was_given_is_marked_or_left_out(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    async with Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as client:
        ask = partial(call, client, "search_memories", session="talk")
        tea = await remembered(client, "Tea is served at four")
        assert "delivered" not in (await ask(query="tea"))["hits"][0]
        milk = await remembered(client, "Tea is served with milk")
        again = (await ask(query="tea served"))["hits"]
        assert {each["id"]: each.get("delivered") for each in again} == {tea: True, milk: None}
        found = await ask(query="served tea", omit_delivered=True)
        assert found["hits"] == []
        assert "2" in found["notes"][0]
        new = await remembered(client, "Tea is served in the garden")
        found = await ask(query="served tea", omit_delivered=True)
        assert [each["id"] for each in found["hits"]] == [new]
        other = await ask(query="served tea", omit_delivered=True, session="guest")
        assert len(other["hits"]) == 3
    for connection in ("talk", "two", None):  # a connection is no session, whatever its name
        async with Client(served(engines, DEFAULT, tmp_path, connection), mode=mode) as client:
            for _ in range(2):
                found = await call(client, "search_memories", query="served tea", omit_delivered=True)
                assert [each.get("delivered") for each in found["hits"]] == [None] * 3
                assert "no effect without a session" in found["notes"][0]


@asynchronous
async def test_agents_on_one_connection_hide_nothing_from_each_other(
    engines: SpaceEngines, tmp_path: Path, mode: str
) -> None:
    """Two sub-agents ask in turn, the one about the same as the other, then both at once."""
    async with Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as client:
        tea = await remembered(client, "Tea is served at four")
        milk = await remembered(client, "Tea is served with milk")
        asked = {"query": "how and when is tea served?"}
        await call(client, "search_memories", **asked)
        await call(client, "get_memories", ids=[tea])

        async def given(**more: Any) -> set[str]:
            context = await call(client, "context", **asked, **more)
            assert context["left_out"] == []
            return {each["id"] for each in context["quoted"]}

        for _ in range(3):
            assert await given() == {tea, milk}
        async with anyio.create_task_group() as both:
            for _ in range(2):
                both.start_soon(given)
        assert await given(session="first") == await given(session="second") == {tea, milk}
        await call(client, "search_memories", **asked, session="third")
        await call(client, "get_memories", ids=[tea, milk])  # of somebody else on this connection
        assert await given(session="third") == {tea, milk}
        await call(client, "search_memories", **asked, session="fourth")
        await call(client, "get_memories", ids=[tea], session="fourth")
        fourth = await call(client, "context", **asked, session="fourth")
        assert fourth["left_out"] == [{"id": tea, "why": "delivered"}]


@asynchronous
async def test_a_session_begins_anew_when_it_asks_for_a_repeat(
    engines: SpaceEngines, tmp_path: Path, mode: str
) -> None:
    """And the connection that reads may be another than the one that asked for it, as with a hook."""
    async with (
        Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as agent,
        Client(served(engines, DEFAULT, tmp_path, "two"), mode=mode) as hook,
    ):
        tea = await remembered(agent, "Tea is served at four")
        asked = {"query": "when is tea served?", "session": "talk"}
        assert (await call(agent, "context", **asked))["outcome"] == "answered"
        assert (await call(hook, "context", **asked))["outcome"] == "delivered"
        milk = await remembered(agent, "The garden is closed in winter")
        about_milk = await call(hook, "context", query="when is the garden closed?", session="talk", repeat=True)
        assert [each["id"] for each in about_milk["quoted"]] == [milk]
        again = await call(agent, "context", **asked)  # given before the repeat
        assert [each["id"] for each in again["quoted"]] == [tea]
        assert (await call(agent, "context", **asked))["outcome"] == "delivered"


@asynchronous
async def test_a_context_names_what_it_left_out(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    async with Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as client:
        tea = await remembered(client, "Tea is served at four")
        await client.call_tool("context", {"query": "when is tea served?", "session": "talk"})
        milk = await remembered(client, "Tea is served with milk")
        answer = await client.call_tool("context", {"query": "how is tea served?", "session": "talk"})
        assert said(answer).splitlines()[-1] == (
            f"Already given to this session: {tea}. Ask with repeat to get it again, or get it by id."
        )
        assert f'id="{milk}"' in said(answer)
        assert structured(answer)["tokens"] <= 1_500


@asynchronous
async def test_a_connection_is_an_origin_and_no_conversation(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    async with Client(served(engines, ALL, tmp_path, "one"), mode=mode) as client:
        tea = await remembered(client, "Tea is served at four", pinned=True)
        milk = await remembered(client, "Tea is served with milk", session="a talk")
        await call(client, "state_fact", subject="Tea", predicate="costs", object="nothing")
        (fact,) = listed(await call(client, "timeline", limit=1))
        found = (await call(client, "get_memories", ids=[tea, milk, fact], neighbours=2))["memories"]
        assert {each.origin for each in engines.memory("default").get([tea, milk, fact])} == {"one"}
        assert [each.get("session") for each in found] == [None, "a talk", None]
        assert [each.get("pinned") for each in found] == [True, None, None]
        assert [each for each in found if "neighbours" in each] == []
        assert listed(await call(client, "timeline", sessions=["a talk"])) == [milk]
        await call(client, "search_memories", query="tea at four")
        assert (await call(client, "remember", text="TEA IS SERVED AT FOUR"))["recalled"] == [tea]
        await call(client, "search_memories", query="tea with milk", session="mine")  # named, and remembered without
        assert (await call(client, "remember", text="TEA IS SERVED WITH MILK"))["recalled"] == [milk]
        both = "Recalled memories:\n- Tea is served at four.\n- **Note:** I was told that tea is served with milk"
        assert (await call(client, "remember", text=both))["recalled"] == [tea, milk]
        assert (await call(client, "remember", text="Note: tea is served at five")).get("recalled", []) == []


@asynchronous
async def test_a_context_does_not_repeat_itself(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    async with Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as client:
        tea = await remembered(client, "Tea is served at four")
        await call(client, "search_memories", session="talk", query="when is tea served?")  # a part
        first = await call(client, "context", session="talk", query="when is tea served?")
        assert [each["id"] for each in first["quoted"]] == [tea]
        second = await client.call_tool("context", {"query": "is tea served at four?", "session": "talk"})
        assert structured(second)["left_out"] == [{"id": tea, "why": "delivered"}]
        assert "Tea is served" not in said(second)
        milk = await remembered(client, "Tea is served with milk")
        third = await call(client, "context", session="talk", query="how is tea served?")
        assert [each["id"] for each in third["quoted"]] == [milk]
        whole = await call(client, "context", session="talk", query="how is tea served?", repeat=True)
        assert {each["id"] for each in whole["quoted"]} == {tea, milk}
    async with Client(served(engines, DEFAULT, tmp_path, "two"), mode=mode) as client:
        fresh = await call(client, "context", session="another talk", query="how is tea served?")
        assert {each["id"] for each in fresh["quoted"]} == {tea, milk}


@asynchronous
async def test_what_was_recalled_is_not_remembered_as_new(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    memory = engines.memory("default")
    tea = memory.remember("Tea is served at four in the garden").id
    echo = "tea is served, at four, in the garden!"
    async with Client(served(engines, DEFAULT, tmp_path, "one"), mode=mode) as client:
        await call(client, "search_memories", query="when is tea served?")
        answer = await call(client, "remember", text=echo)
        assert answer == {"id": tea, "duplicate": True, "recalled": [tea]}
        assert memory.facets().total == 1
        news = await remembered(client, "Tea is served at five in the garden")
        assert news != tea
    async with Client(served(engines, DEFAULT, tmp_path, "two"), mode=mode) as client:
        assert await remembered(client, echo) not in (tea, news)
    assert memory.facets().total == 3


@pytest.mark.slow
@asynchronous
async def test_many_calls_at_once_on_one_connection(door: Server[Any], memory: nacre.Nacre, mode: str) -> None:
    async with Client(door, mode=mode) as client:

        async def one(number: int) -> None:
            mine = await remembered(client, f"guest{number} drinks tea")
            found = await call(client, "search_memories", query=f"guest{number}", mode="keyword")
            assert [each["id"] for each in found["hits"]] == [mine]

        async with anyio.create_task_group() as all_of_them:
            for number in range(40):
                all_of_them.start_soon(one, number)
    assert memory.facets().total == 40


# ---------------------------------------------------------------- spaces


def rooted(*folders_or_uris: Path | str) -> ListRootsFnT:
    """A client that works in these folders."""

    async def roots(context: object) -> types.ListRootsResult:  # noqa: ARG001
        uris = [each.as_uri() if isinstance(each, Path) else each for each in folders_or_uris]
        return types.ListRootsResult.model_validate({"roots": [{"uri": each} for each in uris]})

    return roots


def repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    return folder


def working_in(folder: Path, engines: SpaceEngines, mode: str, session: str = "one") -> Client:
    """A client that names its project as its dialect can: by roots, or by starting the server there."""
    if mode == "legacy":
        return Client(served(engines, ALL, folder.parent, session), mode=mode, list_roots_callback=rooted(folder))
    return Client(served(engines, ALL, folder, session), mode=mode)


@asynchronous
async def test_projects_do_not_see_each_other(engines: SpaceEngines, tmp_path: Path, mode: str) -> None:
    """Not by search, not by id, not by a word in another word's stead."""
    ours, theirs = repository(tmp_path / "our shop"), repository(tmp_path / "100% theirs")
    async with working_in(theirs, engines, mode) as client:
        secret = await remembered(client, "Ada lives in London and hides the key under the xylophone", tags=["hush"])
        await call(client, "search_memories", query="xylophone")
        await call(client, "add_entity", name="Ada", aliases=["xylophonist"], memory_ids=[secret])
        await call(client, "save_lens", name="xylophones", where={"tags_any": ["hush"]})
        (kept,) = (await call(client, "get_memories", ids=[secret]))["memories"]
        facts = [each["id"] for each in kept["facts"]]
        assert facts
        (receipt,) = (await call(client, "recall_log"))["receipts"]
    space = project_space.space_of(theirs)
    assert engines.memory(space).get(secret)[0].space == space
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_memories", {"query": "Ada hides the key"}),
        ("search_memories", {"query": f'"Ada hides" OR space:"{space}"'}),
        ("search_memories", {"query": f"space:{space} key"}),
        ("search_memories", {"query": "xilophone"}),
        ("search_memories", {"query": "entity:Ada key"}),
        ("search_memories", {"query": "key", "session": "one"}),
        ("context", {"query": "where does Ada hide the key?", "min_score": 0}),
        ("context", {"query": f"space:{space} key", "min_score": 0}),
        ("timeline", {}),
        ("timeline", {"sessions": ["one"], "histogram": "day"}),
        ("facts", {}),
        ("facts", {"subject": "Ada"}),
        ("conflicts", {}),
        ("entities", {}),
        ("entities", {"names": ["Ada"]}),
        ("related_entities", {"name": "Ada"}),
        ("recall_log", {}),
        ("recall_log", {"session": "one"}),
        ("recall_log", {"before": receipt["id"]}),
        ("lenses", {}),
        ("facets", {}),
        ("facets", {"query": "key"}),
        ("facets", {"query": f"space:{space} key"}),
        ("remember_many", {"memories": [{"text": "put there", "space": space}]}),
    ]
    async with working_in(ours, engines, mode) as client:
        for name, arguments in calls:
            heard = said(await client.call_tool(name, arguments)).lower()
            for word in ("xylophon", "hush", secret, *facts, "london"):
                assert word not in heard, (name, arguments, heard)
        assert (await call(client, "facets"))["total"] == 0
        overview = await client.read_resource("nacre://overview")
        assert "hush" not in overview.model_dump_json()
        with pytest.raises(MCPError, match=f"no resource 'nacre://memory/{secret}'"):
            await client.read_resource(f"nacre://memory/{secret}")
        recalled = await client.get_prompt("recall", {"topic": "where does Ada hide the key?"})
        assert "xylophone" not in recalled.model_dump_json()
        assert "lens: 'xylophones' is unknown" in await refusal(
            client, "search_memories", query="key", lens="xylophones"
        )
    async with working_in(theirs, engines, mode, "two") as client:
        (found,) = (await call(client, "get_memories", ids=[secret]))["memories"]
        assert [each["id"] for each in found.pop("facts")] == facts  # what was opened is believed a little more
        assert found == {name: value for name, value in kept.items() if name != "facts"}


BY_ID: list[tuple[str, dict[str, Any]]] = [
    ("get_memories", {"ids": ["ID"]}),
    ("forget", {"ids": ["ID"]}),
    ("restore", {"ids": ["ID"]}),
    ("timeline", {"around": "ID"}),
    ("update_memory", {"id": "ID", "text": "overwritten"}),
    ("history", {"id": "ID"}),
    ("related", {"id": "ID"}),
    ("why", {"id": "ID", "query": "key"}),
    ("mark", {"ids": ["ID"], "outcome": "wrong"}),
    ("recall_log", {"memory_id": "ID"}),
    ("facts", {"memory_id": "ID"}),
    ("state_fact", {"subject": "Ada", "predicate": "is", "object": "here", "memory_id": "ID"}),
    ("add_entity", {"name": "Mine", "memory_ids": ["ID"]}),
    ("reinforce", {"ids": ["ID"]}),
    ("drop_facts", {"ids": ["ID"]}),
]


@asynchronous
async def test_an_id_of_another_project_is_an_id_that_nobody_has(
    engines: SpaceEngines, tmp_path: Path, mode: str
) -> None:
    """Word for word, so that nobody can tell that it is there."""
    memory = engines.memory(project_space.space_of(tmp_path / "theirs"))
    secret = memory.remember("Ada lives in London").id
    (fact,) = memory.get(secret)[0].facts
    memory.search("Ada")
    before = memory.get(secret)[0], memory.history(secret), memory.receipts()
    unknown = "0" * len(secret)
    assert [name for name, _ in BY_ID if name not in {tool.name for tool in ALL}] == []
    async with working_in(repository(tmp_path / "ours"), engines, mode) as client:
        delivered = []
        for name, arguments in BY_ID:
            for foreign in (secret, fact.id):
                heard = [
                    said(await client.call_tool(name, json.loads(json.dumps(arguments).replace("ID", each))))
                    for each in (foreign, unknown)
                ]
                if heard[0].replace(foreign, "ID") != heard[1].replace(unknown, "ID"):
                    delivered.append((name, "memory" if foreign == secret else "fact", *heard))
        assert delivered == []
    assert (memory.get(secret)[0], memory.history(secret), memory.receipts()) == before


@asynchronous
async def test_a_space_that_was_named_counts_more_than_roots(path: Path, tmp_path: Path, mode: str) -> None:
    engines = engines_on(path, space="fixed")
    for name in ("one", "two"):
        async with working_in(repository(tmp_path / name), engines, mode) as client:
            await remembered(client, f"Said in {name}")
            both = listed(await call(client, "timeline"))
    assert {each.space for each in engines.memory("fixed").get(both)} == {"fixed"}
    assert len(both) == 2
    engines.close()


async def space_told(client: Client) -> str:
    """The space that a client writes to."""
    written = await call(client, "remember", text=f"written at {anyio.current_time()}")
    return str((await resource(client, written["id"]))["space"])


@asynchronous
async def test_without_roots_the_servers_own_repository_counts(
    engines: SpaceEngines, tmp_path: Path, mode: str
) -> None:
    shop = repository(tmp_path / "shop")
    (shop / "src").mkdir()
    for folder, expected in (
        (shop, project_space.space_of(shop)),
        (shop / "src", project_space.space_of(shop)),
        (tmp_path, "default"),
        (tmp_path / "nowhere", "default"),
    ):
        for callback in (None, rooted(), rooted("file:///%00")):
            made = served(engines, DEFAULT, folder)
            async with Client(made, mode=mode, list_roots_callback=callback) as client:
                assert await space_told(client) == expected


@asynchronous
async def test_the_first_root_that_is_a_folder_counts(engines: SpaceEngines, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "my shop & co"), repository(tmp_path / "two")
    for roots, expected in (
        ((one, two), one),
        ((two, one), two),
        ((one / "src" / "deep", two), one),
        (("file:///%00", two), two),
        ((f"file://{tmp_path}/my shop & co/",), one),
        ((f"file://localhost{two}",), two),
    ):
        made = served(engines, DEFAULT, tmp_path)
        async with Client(made, mode="legacy", list_roots_callback=rooted(*roots)) as client:
            assert await space_told(client) == project_space.space_of(expected), roots


@asynchronous
async def test_a_client_that_changes_its_roots_moves(engines: SpaceEngines, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    here = [one]

    async def roots(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return await rooted(*here)(context)

    async with Client(served(engines, DEFAULT, tmp_path), mode="legacy", list_roots_callback=roots) as client:
        first = await remembered(client, "Said in the first project")
        here[:] = [two]
        assert await space_told(client) == project_space.space_of(one)  # nobody said that it moved
        with pytest.warns(MCPDeprecationWarning):
            await client.send_roots_list_changed()
        assert await space_told(client) == project_space.space_of(two)
        assert (await call(client, "get_memories", ids=[first]))["missing"] == [first]


@asynchronous
async def test_a_client_that_does_not_say_its_roots_is_served_all_the_same(
    engines: SpaceEngines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = repository(tmp_path / "shop")
    asked = []

    async def fails(context: object) -> types.ErrorData:  # noqa: ARG001
        asked.append("fails")
        return types.ErrorData(code=types.INTERNAL_ERROR, message="no idea")

    async def hangs(context: object) -> types.ErrorData:  # noqa: ARG001
        asked.append("hangs")
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(server_module, "ROOTS_WAIT_S", 0.05)
    for callback in (fails, hangs):
        made = served(engines, DEFAULT, shop)
        async with Client(made, mode="legacy", list_roots_callback=callback) as client:
            with anyio.fail_after(ANSWER_SECONDS):
                assert await space_told(client) == project_space.space_of(shop)
            assert await space_told(client) == project_space.space_of(shop)
    assert asked == ["fails", "hangs"]  # once each


# ---------------------------------------------------------------- line by line


PROFILES = (server_info.MEMORY, server_info.GRAPH, server_info.CHATGPT)


async def sdk_answer(request: bytes, profile: Profile) -> Any:
    """What the SDK answers to a line; None if nothing."""
    handlers = RequestHandlers(engines_on(Path("never opened.db")), DEFAULT, Path.cwd(), "one")
    async with spoken_to(server_module.build_server(handlers, profile=profile)) as line:
        await line.send(request, message(id="then", method="ping"))
        first = await line.receive()
        if first.get("id") == "then":
            return None
        assert (await line.receive())["id"] == "then"
        return first


@pytest.mark.parametrize("profile", PROFILES, ids=["memory", "graph", "chatgpt"])
@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_the_early_answer_is_the_sdks(version: str, profile: Profile) -> None:
    for number in (0, 1, -5, "", "one"):
        for capabilities in ({}, {"roots": {"listChanged": True}}, {"sampling": {}, "experimental": {"x": {"y": 1}}}):
            request = initialize(number, version, capabilities=capabilities)
            early = early_answer(request, profile=profile)
            assert early is not None, request
            assert early == await sdk_answer(request, profile)


@asynchronous
async def test_all_versions_that_begin_with_a_handshake_are_answered_early() -> None:
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "vscode", "python"])
def test_what_clients_send_is_answered_early(client: str) -> None:
    assert early_answer(initialize(**FIRST_LINES[client]), profile=server_info.MEMORY) is not None


FIRST_LINES: dict[str, dict[str, Any]] = {
    "claude-code": {"number": 0, "version": "2025-11-25", "capabilities": {"roots": {}, "elicitation": {}}},
    "codex": {"number": 0, "version": "2025-06-18", "capabilities": {"elicitation": {}}},
    "cursor": {"number": 0, "version": "2025-06-18", "capabilities": {"roots": {"listChanged": False}}},
    "vscode": {
        "number": 1,
        "version": "2025-06-18",
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    },
    "python": {"number": 1, "version": "2025-11-25"},
}


PLAIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
LEFT = {
    "nothing": b"",
    "a blank line": b"\n",
    "no JSON": b"initialize please\n",
    "half of it": initialize()[:40],
    "not UTF-8": initialize().replace(b"a test", b"\xff\xfe"),
    "marked as UTF-8": b"\xef\xbb\xbf" + initialize(),
    "in UTF-16": initialize().decode().encode("utf-16"),
    "nested without end": b"[" * 100_000,
    "nested inside": initialize(capabilities={}).replace(b"{}", b"[" * 100_000),
    "a batch": b"[" + initialize()[:-1] + b"]\n",
    "a number": b"5\n",
    "another method": message(id=1, method="tools/list"),
    "no method": message(id=1),
    "no id": message(method="initialize", params={}),
    "an id that is null": initialize(None),
    "an id that is true": initialize(True),
    "an id that is no whole number": initialize(1.5),
    "an id that is a list": initialize([1]),
    "a version to come": initialize(version="2026-07-28"),
    "a version that never was": initialize(version="1.0"),
    "a version that is a number": initialize(version=cast("str", 20250618)),
    "no parameters": message(id=1, method="initialize"),
    "no capabilities": json.dumps(PLAIN).encode(),
    "capabilities that are none": initialize(capabilities=[]),
    "roots that are a number": initialize(capabilities={"roots": 5}),
    "a client without a name": initialize(clientInfo={"version": "1"}),
    "a client whose title is a number": initialize(clientInfo={"name": "x", "version": "1", "title": 5}),
    "another protocol": initialize().replace(b'"2.0"', b'"1.0"'),
}


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_odd_first_lines_are_left_to_the_sdk(line: bytes) -> None:
    assert early_answer(line, profile=server_info.MEMORY) is None


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", *VERSIONS, "roots", "2.0"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["roots", "x", "name"]), inner),
    max_leaves=4,
)
PARTS = ("jsonrpc", "id", "method", "protocolVersion", "capabilities", "clientInfo", "_meta", "title", "roots", "extra")


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(PARTS), SMALL, st.sampled_from(PROFILES))
@example("_meta", 5, server_info.MEMORY)
@example("_meta", {}, server_info.MEMORY)
@example("extra", 5, server_info.MEMORY)
@example("roots", {"listChanged": "yes"}, server_info.MEMORY)
@example("title", 5, server_info.MEMORY)
@example("title", None, server_info.MEMORY)
def test_an_early_answer_is_never_other_than_the_sdks(part: str, value: Any, profile: Profile) -> None:
    """A request with one part exchanged: it is answered as the SDK does, or left to it."""
    client = {"name": "a test", "version": "1"}
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    params: dict[str, Any] = {"protocolVersion": VERSIONS[-1], "capabilities": {}, "clientInfo": client}
    inside = {"title": client, "roots": params["capabilities"]}.get(part, request if part in request else params)
    inside[part] = value
    line = json.dumps(request | {"params": params}).encode() + b"\n"
    early = early_answer(line, profile=profile)
    if early is not None:
        assert early == anyio.run(sdk_answer, line, profile)


@asynchronous
async def test_roots_that_make_no_sense_are_no_roots(engines: SpaceEngines, tmp_path: Path) -> None:
    """Clients name remote folders, too, and some answer with what the protocol does not know."""
    for number, result in enumerate(
        (
            {"roots": [{"uri": "vscode-remote://ssh-remote+host/srv/shop"}]},
            {"roots": [{"uri": "untitled:Untitled-1"}]},
            {"roots": [{"name": "without an address"}]},
            {"roots": [{"uri": "file://[::1/x"}]},
            {"roots": None},
            {},
        )
    ):
        async with spoken_to(served(engines, DEFAULT, tmp_path)) as line:
            await line.send(initialize(capabilities={"roots": {}}), INITIALIZED)
            assert (await line.receive())["id"] == "first"
            await line.send(tool_call("note", "remember", text=f"A note, the {number}th"))
            asked = await line.receive()
            assert asked["method"] == "roots/list"
            await line.send(message(id=asked["id"], result=result))
            answer = await line.receive()
            assert answer["id"] == "note"
            assert answer["result"]["isError"] is False, (result, answer)
    assert engines.memory("default").facets().total == 6
