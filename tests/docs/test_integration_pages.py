"""The examples in docs/integrations/ run, offline and in order, and print what the pages say."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "integrations"
PAGES = sorted(page.name for page in FOLDER.glob("*.md") if page.name != "README.md")
NEEDED = {
    "haystack.md": "haystack",
    "langchain.md": "langchain_core",
    "langgraph.md": "langgraph",
    "llamaindex.md": "llama_index.core",
    "openai-agents.md": "agents",
    "pydantic-ai.md": "pydantic_ai",
}


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """An event loop for frameworks that would make one for synchronous calls, and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    pytest.importorskip(NEEDED[name], reason=f"the framework of {name} is not installed")
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / name).read_text("utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    shown = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert code
    exec(compile("\n".join(code), name, "exec"), {"__name__": name})
    assert capsys.readouterr().out == "".join(shown)


def test_every_page_is_in_the_list() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / "README.md").read_text("utf-8"))
    assert sorted(listed) == PAGES
