"""ChatGPT's two tools: the shapes that its documentation asks for, as structured content and as one text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from mcp_clients import MODES, asynchronous, engines_on, problem, resource, said, served
from nacre.mcp_server.tools import chosen

TOOLS = chosen("chatgpt")


def both(result: types.CallToolResult) -> dict[str, Any]:
    """The answer, which is the same in both kinds of content."""
    assert not result.is_error, said(result)
    assert json.loads(said(result)) == result.structured_content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.parametrize("mode", MODES)
@asynchronous
async def test_search_and_fetch(path: Path, tmp_path: Path, mode: str) -> None:
    engines = engines_on(path)
    memory = engines.memory("default")
    tea = memory.remember("Tea is served at four in the garden", summary="Tea time", tags=["house", "tea"]).id
    long = memory.remember(f"Tea ships from Assam. {'It takes weeks. ' * 40}", source="letter.txt", kind="fact").id
    async with Client(served(engines, TOOLS, tmp_path), mode=mode) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["search", "fetch"]
        found = both(await client.call_tool("search", {"query": "when is tea served?"}))
        assert found.keys() == {"results"}
        assert found["results"][0] == {"id": tea, "title": "Tea time", "url": f"nacre://memory/{tea}"}
        assert all(each.keys() == {"id", "title", "url"} for each in found["results"])
        titles = {each["id"]: each["title"] for each in found["results"]}
        assert titles[long].startswith("Tea ships from Assam.")
        assert "\n" not in titles[long]
        assert len(titles[long]) < 200

        full = both(await client.call_tool("fetch", {"id": tea}))
        assert full.keys() == {"id", "title", "text", "url", "metadata"}
        assert (full["id"], full["title"], full["text"]) == (tea, "Tea time", "Tea is served at four in the garden")
        created = full["metadata"].pop("created")
        assert created == (await resource_of(engines, tea))["created"]
        assert full["metadata"] == {"kind": "note", "namespace": "general", "tags": "house, tea"}
        other = both(await client.call_tool("fetch", {"id": f"nacre://memory/{long}"}))  # what it cites
        assert (other["id"], other["metadata"]["source"], other["metadata"]["kind"]) == (long, "letter.txt", "fact")

        assert both(await client.call_tool("search", {"query": ""})) == {"results": []}
        assert said(await client.call_tool("search", {"query": ""})) == '{"results":[]}'
        assert problem(await client.call_tool("fetch", {"id": "nobody"})) == "id: no memory 'nobody'; search for it"
        assert problem(await client.call_tool("fetch", {})) == "id: is missing"
        assert problem(await client.call_tool("search", {"q": "tea"})) == (
            "q: is unknown; did you mean `query`? allowed: query"
        )
    assert {each.memory_id for one in memory.receipts() for each in one.deliveries if each.opened} == {tea, long}
    engines.close()


async def resource_of(engines: Any, memory_id: str) -> dict[str, Any]:
    """The memory as the default server's resource gives it: the URL that is cited names it."""
    async with Client(served(engines, chosen(""), Path("/"))) as client:
        return await resource(client, memory_id)
