"""README.md is short, in order, and what it shows works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from nacre.cli import run

TEXT = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def commands(section: str) -> list[str]:
    """What is typed in the consoles of a section, without remarks."""
    blocks = re.findall(r"```console\n(.*?)```", SECTIONS[section], re.DOTALL)
    typed = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s{2,}#.*", "", line) for line in typed]


def test_it_is_short_and_in_order() -> None:
    assert len(TEXT.splitlines()) < 120
    assert list(SECTIONS) == ["Install", "Python", "Agents", "Command line", "Results", "Links"]
    assert {"make demo", "make test", "pip install nacre-memory"} <= set(commands("Install"))
    assert "nacre install claude-code --write" in commands("Agents")


def test_the_five_lines_of_python_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", SECTIONS["Python"], re.DOTALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        exec(compile(block, "README.md", "exec"), {})
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+% We chose PostgreSQL because of its JSON support\. \['.+'\]", line)


def test_the_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("NACRE_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("NACRE_EMBEDDER", "hashing")
    assert run(["remember", "Lin is on call", "--json"]) == 0
    remembered = json.loads(capsys.readouterr().out)["id"]
    Path("questions.jsonl").write_text(json.dumps({"query": "who is on call?", "ids": [remembered]}), "utf-8")
    typed = commands("Command line")
    assert len(typed) > 5
    for line in typed:
        program, *arguments = shlex.split(line.replace(" ID ", f" {remembered} "))
        assert program == "nacre"
        assert run(arguments) == 0, line
        answer = capsys.readouterr()
        assert answer.out or "search" in arguments, line
