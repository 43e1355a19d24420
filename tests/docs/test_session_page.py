"""The session with an agent that docs/session.md shows is the one that happens."""

from __future__ import annotations

import json
import os
import re
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from mcp import Client

import nacre
from nacre import ids
from nacre.cli.demo import SAMPLES
from nacre.config import settings
from nacre.engine.rerank_stage import RerankStage
from nacre.mcp_server.server import RequestHandlers, build_server
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tools import chosen
from nacre.serialization import decode

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "session.md").read_text("utf-8")


def test_an_agent_is_given_what_the_page_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RerankStage, "_time_limit", lambda *_: None)  # the same on a busy machine
    # A closing tag is longer where a text has the end of the id, and then less may fit.
    numbers = count(0x1234567, 100_003)
    monkeypatch.setattr(ids, "os", SimpleNamespace(urandom=lambda size: next(numbers).to_bytes(size)))
    asked, delivered = re.search(r"```json\n(.+?)\n```\n\n```\n(Recalled.+?)\n```", PAGE, re.DOTALL).groups()  # type: ignore[union-attr]
    lines = SAMPLES.read_text("utf-8").splitlines()
    with nacre.open(path) as memory:
        memory.remember_many(map(decode.new_memory_line, lines, range(1, len(lines) + 1)))

    async def session() -> tuple[str, str]:
        flags: dict[str, object] = {"store": path, "space": "default"}
        engines = SpaceEngines(settings.load(flags, os.environ))
        try:
            server = build_server(RequestHandlers(engines, chosen(""), None, "s"))
            async with Client(server, mode="legacy") as agent:
                results = [await agent.call_tool("context", json.loads(asked)) for _ in range(2)]
                first, again = (each.content[0].text for each in results)  # type: ignore[union-attr]
                return first, again
        finally:
            engines.close()

    first, again = anyio.run(session)
    # In tags, or among those that were left out. Of these as many are named as there is room for, or none.
    without_ids = re.compile(r'(?<=id=")\w+|(?<=</memory )\w+| \((?:\w+ )+…\)')
    assert without_ids.sub("", first) == without_ids.sub("", delivered)
    assert not set(re.findall(r'id="(\w+)"', again)) & set(re.findall(r'id="(\w+)"', first))
