"""The Claude Code plugin: what its manifests have to say, and that it is the same set-up as `nacre install` writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.cli.group import nacre as commands
from nacre.config import client_config, client_hooks
from nacre.config.client_config import Place
from nacre.mcp_server.tools import DEFAULT

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "claude-code"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
FIELDS = {"name", "version", "description", "author", "homepage", "repository", "license", "keywords"}
PLACE = Place(platform="linux", environment={}, home=Path("/home/ada"), folder=Path("/work"))


def read(name: str, root: Path = PLUGIN) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / name).read_text("utf-8"))
    return found


def test_the_manifest_names_the_plugin_and_its_version() -> None:
    manifest = read(".claude-plugin/plugin.json")
    assert manifest.keys() <= FIELDS
    assert NAME.fullmatch(manifest["name"])
    assert manifest["version"] == nacre.__version__
    assert isinstance(manifest["author"]["name"], str)
    assert all(isinstance(each, str) for each in manifest["keywords"])


def test_only_the_manifest_is_in_its_folder() -> None:
    """Parts that lie there are not found by the client."""
    assert [each.name for each in (PLUGIN / ".claude-plugin").iterdir()] == ["plugin.json"]
    assert {each.name for each in PLUGIN.iterdir()} == {
        ".claude-plugin", ".mcp.json", "hooks", "skills", "README.md",
    }  # fmt: skip


def test_the_server_and_the_hooks_are_those_of_the_command() -> None:
    server = client_config.plan("claude-code", PLACE, ["nacre", "mcp"])
    assert read(".mcp.json") == json.loads(server.snippet)
    hooks = read("hooks/hooks.json")
    assert {"hooks": hooks["hooks"]} == client_hooks.plan("claude-code", PLACE, ["nacre"], []).content
    assert hooks.keys() == {"description", "hooks"}


def test_the_marketplace_has_the_plugin() -> None:
    marketplace = read(".claude-plugin/marketplace.json", ROOT)
    assert marketplace.keys() == {"name", "owner", "metadata", "plugins"}
    assert NAME.fullmatch(marketplace["name"])
    assert marketplace["owner"].keys() == {"name"}
    (plugin,) = marketplace["plugins"]
    assert plugin["name"] == read(".claude-plugin/plugin.json")["name"]
    assert plugin["source"].startswith("./")
    assert (ROOT / plugin["source"]).resolve() == PLUGIN


def test_the_skill_names_tools_that_are_there() -> None:
    (path,) = PLUGIN.glob("skills/*/SKILL.md")
    front, text = re.fullmatch(r"---\n(.*?)\n---\n(.*)", path.read_text("utf-8"), re.DOTALL).groups()  # type: ignore[union-attr]
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == path.parent.name
    assert len(fields["description"]) <= 1_024
    named = set(re.findall(r"`(\w+)`", text)) - {"nacre", "query", "supersedes"}
    assert named == {each.name for each in DEFAULT}


def test_the_page_names_commands_that_are_there() -> None:
    text = (PLUGIN / "README.md").read_text("utf-8")
    for name in re.findall(r"`nacre (\w+)", text):
        assert name in commands.loaded().commands
    for page in re.findall(r"`(docs/[\w.]+)`", text):
        assert (ROOT / page).is_file()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("claude") is None, reason="Claude Code is not installed")
@pytest.mark.parametrize("path", [PLUGIN, ROOT])
def test_claude_code_takes_it(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    ran = subprocess.run(
        ["claude", "plugin", "validate", "--strict", str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
