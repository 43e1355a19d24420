"""The session with an agent that docs/session.md shows is the one that happens."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import anyio
from mcp import Client

import nacre
from nacre.cli.demo import SAMPLES
from nacre.config import settings
from nacre.mcp_server.offered import chosen
from nacre.mcp_server.places import Places
from nacre.mcp_server.server import AgentsDoor, server
from nacre.serialization import decode

PAGE = (Path(__file__).parents[2] / "docs" / "session.md").read_text("utf-8")


def test_an_agent_is_given_what_the_page_shows(path: Path) -> None:
    asked, delivered = re.search(r"```json\n(.+?)\n```\n\n```\n(Recalled.+?)\n```", PAGE, re.DOTALL).groups()  # type: ignore[union-attr]
    lines = SAMPLES.read_text("utf-8").splitlines()
    with nacre.open(path) as memory:
        memory.remember_many(map(decode.new_memory_line, lines, range(1, len(lines) + 1)))

    async def session() -> tuple[str, str]:
        flags: dict[str, object] = {"store": path, "space": "default"}
        places = Places(settings.load(flags, os.environ))
        try:
            async with Client(server(AgentsDoor(places, chosen(""), None, "s")), mode="legacy") as agent:
                results = [await agent.call_tool("context", json.loads(asked)) for _ in range(2)]
                first, again = (each.content[0].text for each in results)  # type: ignore[union-attr]
                return first, again
        finally:
            places.close()

    first, again = anyio.run(session)
    without_ids = re.compile(r'id="\w+"')
    assert without_ids.sub("", first) == without_ids.sub("", delivered)
    assert not set(re.findall(r'id="(\w+)"', again)) & set(re.findall(r'id="(\w+)"', first))
