"""The MCP bundle: a manifest of the current format, and a server that starts."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.mcp_server.tools import DEFAULT

build_mcpb: Any = importlib.import_module("tools.build_mcpb")  # mypy knows it by its name alone

REQUIRED = {"manifest_version", "name", "version", "description", "author", "server"}
ALLOWED = REQUIRED | {
    "display_name", "license", "keywords", "tools", "prompts_generated", "compatibility", "user_config",
}  # fmt: skip


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    target = tmp_path / "dist" / "nacre.mcpb"
    build_mcpb.build(target)
    return target


def test_the_manifest_says_how_to_start_it(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "pyproject.toml", "src/server.py", "README.md", "LICENSE"]
        manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
        project = tomllib.loads(archive.read("pyproject.toml").decode())
    assert REQUIRED <= manifest.keys() <= ALLOWED
    assert (manifest["manifest_version"], manifest["version"]) == ("0.4", nacre.__version__)
    server = manifest["server"]
    assert (server["type"], server["entry_point"]) == ("uv", "src/server.py")
    command = server["mcp_config"]
    assert command["command"] == "uv"
    assert command["args"] == [
        "run", "--directory", "${__dirname}", "src/server.py", "--space", "${user_config.space}",
    ]  # fmt: skip
    assert manifest["user_config"].keys() == {"space"}
    assert manifest["user_config"]["space"].keys() <= {"type", "title", "description", "default", "required"}
    assert [each["name"] for each in manifest["tools"]] == [each.name for each in DEFAULT]
    assert project["project"]["dependencies"] == [f"nacre-memory[mcp]=={nacre.__version__}"]
    assert project["project"]["requires-python"] == manifest["compatibility"]["runtimes"]["python"]


def test_the_same_sources_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    build_mcpb.build(tmp_path / "again.mcpb")
    assert (tmp_path / "again.mcpb").read_bytes() == bundle.read_bytes()
    assert bundle.stat().st_size < 20_000


def test_a_wheel_may_be_in_it(tmp_path: Path) -> None:
    wheel = tmp_path / "nacre_memory-1-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    build_mcpb.build(tmp_path / "nacre.mcpb", wheel)
    with zipfile.ZipFile(tmp_path / "nacre.mcpb") as archive:
        assert archive.read(wheel.name) == b"a wheel"
        project = tomllib.loads(archive.read("pyproject.toml").decode())
    assert project["tool"]["uv"]["sources"] == {"nacre-memory": {"path": wheel.name}}


@pytest.mark.slow
def test_its_server_answers(bundle: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(bundle, tmp_path / "unpacked", "zip")
    asked = {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "src/server.py", "--space", "default", "--store", str(tmp_path / "a.db")],
        cwd=tmp_path / "unpacked",
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "nacre"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mcpb") is None, reason="the tool for MCP bundles is not installed")
def test_the_tool_for_bundles_takes_it(bundle: Path, tmp_path: Path) -> None:
    subprocess.run(["mcpb", "unpack", str(bundle), str(tmp_path / "unpacked")], capture_output=True, check=True)
    ran = subprocess.run(
        ["mcpb", "validate", str(tmp_path / "unpacked" / "manifest.json")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
