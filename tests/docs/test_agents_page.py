"""docs/agents.md says what is so: outputs are those of the command, and files those that are written."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from mcp import Client

from command_line import Cli
from mcp_clients import engines_on, said, served
from nacre.cli.group import nacre as commands
from nacre.config import client_config, client_hooks
from nacre.config.client_config import Client as ClientName
from nacre.config.client_config import Place
from nacre.mcp_server.tools import DEFAULT, GROUPS

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
BLOCKS = re.compile(
    r"(?:<!-- (?P<mark>\w+): (?P<name>[\w.-]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```\n", re.DOTALL
)
HOOKS = {each["name"]: each["text"] for each in BLOCKS.finditer(TEXT) if each["mark"] == "hooks"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="a stand-in for the program is a script with a first line"),
]

# ---------------------------------------------------------------- what the page shows


def test_every_block_is_understood() -> None:
    languages = [each["language"] for each in BLOCKS.finditer(TEXT)]
    assert 2 * len(languages) == TEXT.count("```")
    assert set(languages) == {"console", "json", "toml", "yaml", "text"}
    for each in BLOCKS.finditer(TEXT):
        match each["language"]:
            case "json":
                json.loads(each["text"])
            case "toml":
                tomllib.loads(each["text"])
    assert HOOKS.keys() == client_hooks.EVENTS.keys()


def test_every_command_on_the_page_is_one() -> None:
    for each in BLOCKS.finditer(TEXT):
        if each["language"] == "console":
            for line in each["text"].splitlines():
                assert line.startswith("$ nacre ")
                assert line.split()[2] in commands.loaded().commands, line


OUTPUTS = re.findall(r"```console\n\$ nacre (install [^\n]*)\n```\n\n```(?:json|toml|yaml)\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("arguments", "shown"), OUTPUTS)
def test_what_install_prints(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: str, shown: str
) -> None:
    program = tmp_path / "path" / "to" / "nacre"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = cli(*arguments.split())
    assert answer.code == 0
    assert answer.out.replace(str(program), "/path/to/nacre") == shown


def test_each_client_is_shown() -> None:
    assert {arguments.split()[1] for arguments, _ in OUTPUTS} == set(get_args(ClientName))


ROWS = [
    [cell.strip().strip("`") for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if re.match(r"\| `[\w-]+` \| `(?:user|project)` \|", line)
]


@pytest.mark.parametrize(("client", "scope", "linux", "macos", "windows"), ROWS)
def test_which_file_it_is(client: Any, scope: Any, linux: str, macos: str, windows: str) -> None:
    home, project = Path("/home/ada"), Path("/work")
    for platform, shown in (("linux", linux), ("darwin", macos), ("win32", windows)):
        place = Place(platform=platform, environment={"APPDATA": "/roaming"}, home=home, folder=project)
        expected = shown.replace("~", str(home)).replace("%APPDATA%", "/roaming")
        assert client_config.plan(client, place, ["nacre", "mcp"], scope).path == project / expected


def test_the_table_has_all_files() -> None:
    assert {(client, scope) for client, scope, *_ in ROWS} == {
        (client, scope)
        for client in get_args(ClientName)
        for scope in (("user",) if client in client_config.USER_ONLY else ("user", "project"))
    }


# ---------------------------------------------------------------- the conversation

TURN = re.compile(r"→ (\w+) (\{[^\n]*\})\n← (.*?)(?=\n\n→|\Z)", re.DOTALL)
IDS = re.compile(r"\b1m[0-9a-z]{14}\b")
ENDS = re.compile(r"(?<=</memory )[0-9a-z]+(?=>)")


def by_order(text: str, names: dict[str, str]) -> str:
    """The text with ids and their ends numbered by their first appearance, and without the day on which it ran."""
    numbered = IDS.sub(lambda found: names.setdefault(found[0], f"<{len(names) + 1}>"), text)
    numbered = ENDS.sub(lambda end: next(name for each, name in names.items() if each.endswith(end[0])), numbered)
    return re.sub(r'date="\d{4}-\d\d-\d\d"', 'date="today"', numbered)


def test_the_conversation_is_what_an_agent_is_told(tmp_path: Path) -> None:
    """With the real models, through the server, in one session from the first block to the last."""
    blocks = [each["text"].strip() for each in BLOCKS.finditer(TEXT) if each["mark"] == "conversation"]
    turns = [turn for block in blocks for turn in TURN.findall(block)]
    assert len(turns) == sum(block.count("→") for block in blocks) == 9
    shown: dict[str, str] = {}
    told: dict[str, str] = {}

    async def talk() -> None:
        engines = engines_on(tmp_path / "memories.db", embedder="minilm")
        try:
            async with Client(served(engines, DEFAULT, tmp_path)) as client:
                for tool, arguments, expected in turns:
                    answer = said(await client.call_tool(tool, json.loads(arguments)))
                    assert by_order(answer, told) == by_order(expected, shown), (tool, arguments)
        finally:
            engines.close()

    anyio.run(talk)


# ---------------------------------------------------------------- hooks


@pytest.mark.parametrize("client", client_hooks.EVENTS)
def test_the_hooks_are_those_that_are_written(client: ClientName) -> None:
    place = Place(platform="linux", environment={}, home=Path("/home/ada"), folder=Path("/work"))
    plan = client_hooks.plan(client, place, ["/path/to/nacre"], [])
    assert json.loads(HOOKS[client]) == plan.content
    assert f"`{str(plan.path).replace('/home/ada', '~')}`" in TEXT
    assert f"`{client_hooks.plan(client, place, [], [], 'project').path.relative_to('/work')}`" in TEXT


def test_every_tool_is_on_the_page() -> None:
    """And in its group."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE))
    assert {each.name for each in DEFAULT} <= rows.keys()
    for group, tools in GROUPS.items():
        assert re.findall(r"`(\w+)`", rows[group]) == [each.name for each in tools]
