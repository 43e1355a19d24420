"""README.md is short, in order, and what it shows works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from nacre.cli import run
from postgres_server import fresh_schemas, needs_postgres

TEXT = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def _turn(author: str, text: str, parent: str | None, at: int) -> dict[str, object]:
    message = {
        "author": {"role": author},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": 1_760_000_000 + at,
    }
    return {"message": message, "parent": parent, "children": []}


CONVERSATIONS = [
    {
        "title": title,
        "conversation_id": title,
        "create_time": 1_760_000_000,
        "current_node": "b",
        "mapping": {"a": _turn("user", asked, None, 0), "b": _turn("assistant", answered, "a", 20)},
    }
    for title, asked, answered in (
        ("Bread", "My sourdough is flat. What am I doing wrong?", "Let the dough rest overnight in the fridge."),
        ("Trip", "Which train goes from Lyon to Turin?", "The TGV from Lyon Part-Dieu at 8:40, four hours."),
    )
]


def commands(section: str) -> list[str]:
    """What is typed in the consoles of a section, without remarks."""
    blocks = re.findall(r"```console\n(.*?)```", SECTIONS[section], re.DOTALL)
    typed = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s{2,}#.*", "", line) for line in typed]


def test_it_is_short_and_in_order() -> None:
    assert len(TEXT.splitlines()) < 120
    sections = (
        "Install, Python, Agents, Server and page, Command line, Any language, In and out, "
        "When one machine is not enough, Results, Links"
    )
    assert list(SECTIONS) == sections.split(", ")
    assert {"make demo", "make test", "pip install nacre-memory"} <= set(commands("Install"))
    assert "nacre install claude-code --write" in commands("Agents")


def test_the_five_lines_of_python_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", SECTIONS["Python"], re.DOTALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        exec(compile(block, "README.md", "exec"), {})
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+% We chose PostgreSQL because of its JSON support\. \['.+'\]", line)


def test_a_history_comes_in_is_asked_and_goes_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the section as they stand there, with the real model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("NACRE_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("conversations.json").write_text(json.dumps(CONVERSATIONS), "utf-8")
    Path("notes").mkdir()
    Path("notes", "Boiler.md").write_text("The boiler is serviced by Sato every October. #house", "utf-8")
    typed = commands("In and out")
    assert len(typed) == 5
    said = {}
    for line in typed:
        _, *arguments = shlex.split(line)
        assert run([*arguments, "--once"] if arguments[0] == "watch" else arguments) == 0, line
        said[line] = capsys.readouterr().out
    assert [each.splitlines()[0] for each in list(said.values())[:2]] == [
        "would import 4 memories from chatgpt",
        "imported 4 memories from chatgpt",
    ]
    for question, answer in (("how long should the dough rest?", "overnight"), ("who maintains the heating?", "Sato")):
        assert run(["search", question, "--json"]) == 0
        assert answer in json.loads(capsys.readouterr().out)["hits"][0]["snippet"]["text"]
    texts = [each.read_text("utf-8") for each in Path("out").rglob("*.md")]
    assert len(texts) == 5
    assert sum("overnight" in each for each in texts) == 1


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


@pytest.mark.slow
@needs_postgres
def test_a_store_moves_to_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("NACRE_EMBEDDER", "hashing")
    copied, served, worked = map(shlex.split, commands("When one machine is not enough"))
    assert run(["remember", "Lin is on call", "--store", "agent.db"]) == 0
    with fresh_schemas() as schemas:
        schema = schemas.new()

        def typed(line: list[str], *more: str) -> int:
            return run([*(schemas.dsn if each.startswith("postgresql://") else each for each in line[1:]), *more])

        assert typed(copied, "--target-schema", schema) == 0
        monkeypatch.setenv("NACRE_POSTGRES_SCHEMA", schema)
        assert typed(served, "--help") == 0  # its options are there
        assert run(["remember", "Ada is away", "--defer-embeddings", "--store", schemas.dsn]) == 0
        assert typed(worked, "--once") == 0
        capsys.readouterr()
        assert run(["search", "who is on call?", "--store", schemas.dsn, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert "Lin" in found["hits"][0]["snippet"]["text"]
        assert found["notes"] == []  # that something waits for its vectors
