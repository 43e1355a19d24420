"""Other people's clients, which are written for Node.js: the official TypeScript SDK and the inspector.

`make test` installs them if there is npm. Where they are missing, these tests are skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_clients import HttpProcess, environment
from nacre.mcp_server import server as server_module
from nacre.mcp_server.tools import DEFAULT, chosen
from node_clients import COMMANDS, FOLDER, needs_node, node

pytestmark = [pytest.mark.slow, needs_node]


def over_stdio(folder: Path) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "nacre", "mcp", "--tools", "all"],
        "env": environment(folder / "memories.db"),
        "cwd": str(folder),
    }


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """How a client reaches a server."""
    if request.param == "stdio":
        yield over_stdio(tmp_path)
        return
    with HttpProcess(tmp_path / "memories.db", "--tools", "all") as process:
        yield {"url": process.url}
        assert "Traceback" not in process.log()


# ---------------------------------------------------------------- the TypeScript SDK


def test_the_typescript_sdk(target: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules", target_is_directory=True)
    script = tmp_path / "client.mjs"  # packages are looked for beside a script
    script.write_bytes((Path(__file__).parent / "typescript_client.mjs").read_bytes())
    report = json.loads(node(script, json.dumps(target), folder=tmp_path).stdout)

    assert report["server"]["name"] == "nacre"
    assert report["tools"] == [each.name for each in chosen("all")]
    assert {each.name for each in DEFAULT} <= report["answers"].keys()
    assert report["capabilities"].keys() == {"completions", "logging", "prompts", "resources", "tools"}
    assert "`context`" in report["instructions"]
    answers = report["answers"]
    for name, several in answers.items():
        assert not any(each.get("isError") for each in several[:1]), (name, several)
    found = [
        answers[name][0]["content"][0]["text"] for name in ("search_memories", "context", "timeline", "get_memories")
    ]
    assert all("Tea is served at four ☕" in each for each in found), found

    done = [each[0] for each in report["progress"]]
    assert done == [512, 1024, 1100]
    assert {each[1] for each in report["progress"]} == {1100}

    assert len(report["asked"]) == 3
    assert report["asked"][0].startswith("Forget 1100 memories?\n- number 0 of many\n")
    said = [each["content"][0]["text"] for each in answers["forget"][1:]]
    assert said[:2] == [server_module._REFUSALS["decline"], server_module._REFUSALS["cancel"]]
    assert "number 0 of many" not in json.dumps(report["overview"])
    assert report["overview"]["total"] == 1

    assert report["resources"] == ["nacre://overview"]
    assert "nacre://tag/{tag}" in report["templates"]
    assert [each["summary"] for each in report["tea"]["memories"]] == ["Anna likes tea"]
    assert report["errors"]["resource"]["code"] == -32002
    assert report["errors"]["resource"]["data"] == {"uri": "nacre://tag/nobody"}
    assert report["errors"]["tool"]["code"] == -32602
    assert report["completion"] == {"values": ["tea"], "total": 1, "hasMore": False}
    assert report["tags"]["values"] == ["people", "tea"]
    assert report["prompts"] == ["recall", "keep"]
    assert "Anna likes tea" in report["recall"]["messages"][0]["content"]["text"]
    assert report["log"] == []


# ---------------------------------------------------------------- the inspector


def inspected(target: dict[str, Any], folder: Path, method: str, *options: str) -> Any:
    """What the inspector prints for one method."""
    if "url" in target:
        reached, command = ["--transport", "http", "--server-url", target["url"]], []
    else:
        variables = {name: value for name, value in target["env"].items() if name.startswith(("NACRE_", "PYTHON"))}
        # The inspector refuses an empty value.
        reached = [part for name, value in variables.items() if value for part in ("-e", f"{name}={value}")]
        command = ["--", target["command"], *target["args"]]
    done = node(
        COMMANDS / "mcp-inspector", "--cli", *reached, "--quiet", "--method", method, *options, *command, folder=folder
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def tool_called(target: dict[str, Any], folder: Path, name: str, **arguments: object) -> str:
    options = ("--tool-name", name, "--tool-args-json", json.dumps(arguments))
    return str(inspected(target, folder, "tools/call", *options)["content"][0]["text"])


def test_the_inspector(target: dict[str, Any], tmp_path: Path) -> None:
    """`--strict` fails for schemas that some clients do not understand."""
    listed = inspected(target, tmp_path, "tools/list", "--strict")
    assert [each["name"] for each in listed["tools"]] == [each.name for each in chosen("all")]
    kept = json.loads(tool_called(target, tmp_path, "remember", text="Tea is served at four ☕", tags=["tea"]))
    assert "Tea is served at four ☕" in tool_called(target, tmp_path, "context", query="when is tea served?")
    memory = inspected(target, tmp_path, "resources/read", "--uri", f"nacre://memory/{kept['id']}")
    assert json.loads(memory["contents"][0]["text"])["tags"] == ["tea"]
    templates = inspected(target, tmp_path, "resources/templates/list")["resourceTemplates"]
    assert "nacre://entity/{name}" in [each["uriTemplate"] for each in templates]
    prompt = inspected(target, tmp_path, "prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=tea at four")
    assert "Tea is served at four ☕" in prompt["messages"][0]["content"]["text"]


def test_the_inspector_in_the_protocol_of_2026(target: dict[str, Any], tmp_path: Path) -> None:
    options = ("--protocol-era", "modern")
    assert len(inspected(target, tmp_path, "tools/list", "--strict", *options)["tools"]) == len(chosen("all"))
    assert [each["uri"] for each in inspected(target, tmp_path, "resources/list", *options)["resources"]] == [
        "nacre://overview"
    ]


def test_the_inspector_finds_the_reference_servers_tools_in_order(tmp_path: Path) -> None:
    target = over_stdio(tmp_path)
    target["args"] = ["-m", "nacre", "mcp", "--compat", "knowledge-graph"]
    assert len(inspected(target, tmp_path, "tools/list", "--strict")["tools"]) == 9
