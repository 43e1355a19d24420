"""The examples of docs/client.md run, in their order, and what it says of arguments and errors is complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.errors import ServerError
from servers import serving

TEXT = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_examples_run(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) == 7
    with serving(path, token_needed=True) as server:
        monkeypatch.setenv("NACRE_TOKEN", server.token())
        made: dict[str, Any] = {}
        for block in BLOCKS:
            exec(compile(block.replace("http://127.0.0.1:8642", server.url), "docs/client.md", "exec"), made)
        made["team"].close()
    said = capsys.readouterr().out
    assert "The bins are emptied on Tuesdays." in said
    assert "('1m7s6ghtm8t30q6r',)" in said
    assert said.count("512 stored") == 2
    assert "476 stored" in said
    assert re.search(r"^0 150\d$", said, re.MULTILINE)


def test_arguments_and_errors_are_complete() -> None:
    arguments = re.findall(r"^\| `(\w+)` \|", TEXT.split("## Connecting")[1].split("## ")[0], re.MULTILINE)
    assert arguments == [*inspect.signature(nacre.connect).parameters]
    errors = re.findall(r"^\| `(\w+)` \|", TEXT.split("## Errors")[1].split("## ")[0], re.MULTILINE)
    assert sorted(errors) == sorted(each.__name__ for each in ServerError.__subclasses__())
