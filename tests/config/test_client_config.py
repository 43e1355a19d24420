"""`nacre install`: the right file for each client, the right entry in it, and nothing else changed.

Homes and projects are temporary folders: nothing real is touched.
"""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import sys
import tomllib
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Cli, clear_settings
from nacre.config import client_config, json_text
from nacre.config.client_config import Address, Client, Place, Plan, Scope
from nacre.errors import InvalidInput

NOW = datetime(2026, 11, 15, 23, 4, 5, tzinfo=UTC)
COMMAND = ["/opt/nacre/bin/nacre", "mcp", "--space", "work"]
ENTRY = {"command": "/opt/nacre/bin/nacre", "args": ["mcp", "--space", "work"]}
JSON_CLIENTS = [each for each in get_args(Client) if each not in ("codex", "goose")]
ABOUT = "Memories of earlier conversations"
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def place(root: Path, platform: str = "linux", **environment: str) -> Place:
    return Place(platform=platform, environment=environment, home=root / "home", folder=root / "project")


def plan_of(root: Path, client: Client, scope: Scope = "user", command: list[str] = COMMAND) -> Plan:
    return client_config.plan(client, place(root), command, scope)


def install(plan: Plan) -> Path | None:
    change = client_config.installation(plan)
    return None if change.after is None else client_config.write(change, NOW)


def remove(plan: Plan) -> Path | None:
    change = client_config.removal(plan)
    return None if change.after is None else client_config.write(change, NOW)


def put(plan: Plan, text: str) -> None:
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    plan.path.write_bytes(text.encode("utf-8", "surrogatepass"))


def parsed(text: str, client: Client) -> Any:
    if client == "codex":
        return tomllib.loads(text)
    return yaml.safe_load(text) if client == "goose" else json.loads(text)


def text_of(plan: Plan) -> str:
    return plan.path.read_bytes().decode("utf-8")


def files_beside(plan: Plan) -> set[str]:
    return {each.name for each in plan.path.parent.iterdir()}


# ---------------------------------------------------------------- which file

PLACES: list[tuple[Client, Scope, str, dict[str, str], str]] = [
    *(("claude-code", "user", platform, {}, "home/.claude.json") for platform in ("linux", "darwin", "win32")),
    ("claude-code", "user", "linux", {"CLAUDE_CONFIG_DIR": "{root}/other"}, "other/.claude.json"),
    *(("claude-code", "project", platform, {}, "project/.mcp.json") for platform in ("linux", "darwin", "win32")),
    ("claude-code", "project", "linux", {"CLAUDE_CONFIG_DIR": "{root}/other"}, "project/.mcp.json"),
    ("claude-desktop", "user", "linux", {}, "home/.config/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "linux", {"XDG_CONFIG_HOME": "{root}/xdg"}, "xdg/Claude/claude_desktop_config.json"),
    (
        "claude-desktop",
        "user",
        "darwin",
        {"XDG_CONFIG_HOME": "{root}/xdg"},
        "home/Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ("claude-desktop", "user", "win32", {}, "home/AppData/Roaming/Claude/claude_desktop_config.json"),
    ("claude-desktop", "user", "win32", {"APPDATA": "{root}/data"}, "data/Claude/claude_desktop_config.json"),
    *(("cursor", "user", platform, {}, "home/.cursor/mcp.json") for platform in ("linux", "darwin", "win32")),
    *(("cursor", "project", platform, {}, "project/.cursor/mcp.json") for platform in ("linux", "darwin", "win32")),
    *(("codex", "user", platform, {}, "home/.codex/config.toml") for platform in ("linux", "darwin", "win32")),
    ("codex", "user", "linux", {"CODEX_HOME": "{root}/codex"}, "codex/config.toml"),
    ("codex", "user", "linux", {"CODEX_HOME": ""}, "home/.codex/config.toml"),
    ("vscode", "user", "linux", {}, "home/.config/Code/User/mcp.json"),
    ("vscode", "user", "linux", {"XDG_CONFIG_HOME": "{root}/xdg"}, "xdg/Code/User/mcp.json"),
    ("vscode", "user", "darwin", {}, "home/Library/Application Support/Code/User/mcp.json"),
    ("vscode", "user", "win32", {"APPDATA": "{root}/data"}, "data/Code/User/mcp.json"),
    ("vscode", "user", "win32", {}, "home/AppData/Roaming/Code/User/mcp.json"),
    *(("vscode", "project", platform, {}, "project/.vscode/mcp.json") for platform in ("linux", "darwin", "win32")),
    *(("codex", "project", platform, {}, "project/.codex/config.toml") for platform in ("linux", "darwin", "win32")),
    ("codex", "project", "linux", {"CODEX_HOME": "{root}/codex"}, "project/.codex/config.toml"),
    *(("gemini-cli", "user", platform, {}, "home/.gemini/settings.json") for platform in ("linux", "darwin", "win32")),
    *(("gemini-cli", "project", each, {}, "project/.gemini/settings.json") for each in ("linux", "darwin", "win32")),
    *(("opencode", "user", each, {}, "home/.config/opencode/opencode.json") for each in ("linux", "darwin", "win32")),
    ("opencode", "user", "darwin", {"XDG_CONFIG_HOME": "{root}/xdg"}, "xdg/opencode/opencode.json"),
    *(("opencode", "project", platform, {}, "project/opencode.json") for platform in ("linux", "darwin", "win32")),
    *(
        ("windsurf", "user", each, {}, "home/.codeium/windsurf/mcp_config.json")
        for each in ("linux", "darwin", "win32")
    ),
    *(("zed", "user", platform, {}, "home/.config/zed/settings.json") for platform in ("linux", "darwin")),
    ("zed", "user", "win32", {"APPDATA": "{root}/data"}, "data/Zed/settings.json"),
    *(("zed", "project", platform, {}, "project/.zed/settings.json") for platform in ("linux", "darwin", "win32")),
    *(
        ("cline", "user", platform, {}, "home/.cline/data/settings/cline_mcp_settings.json")
        for platform in ("linux", "darwin", "win32")
    ),
    ("cline", "user", "linux", {"CLINE_MCP_SETTINGS_PATH": "{root}/c.json"}, "c.json"),
    *(("goose", "user", platform, {}, "home/.config/goose/config.yaml") for platform in ("linux", "darwin")),
    ("goose", "user", "win32", {}, "home/AppData/Roaming/Block/goose/config/config.yaml"),
    *(("copilot-cli", "user", each, {}, "home/.copilot/mcp-config.json") for each in ("linux", "darwin", "win32")),
    ("copilot-cli", "user", "linux", {"COPILOT_HOME": "{root}/copilot"}, "copilot/mcp-config.json"),
    *(("copilot-cli", "project", each, {}, "project/.github/mcp.json") for each in ("linux", "darwin", "win32")),
]


@pytest.mark.parametrize(("client", "scope", "platform", "environment", "expected"), PLACES)
def test_each_client_has_its_file(
    tmp_path: Path, client: Client, scope: Scope, platform: str, environment: dict[str, str], expected: str
) -> None:
    here = place(tmp_path, platform, **{name: text.format(root=tmp_path) for name, text in environment.items()})
    plan = client_config.plan(client, here, COMMAND, scope)
    assert plan.path == tmp_path / expected
    assert (
        client_config.write(client_config.installation(plan), NOW) is None
    )  # folders are made, and there is no backup
    assert text_of(plan) == plan.snippet


def test_every_client_scope_and_platform_is_in_the_table() -> None:
    asked = {(client, scope, platform) for client, scope, platform, _, _ in PLACES}
    for client in get_args(Client):
        for scope in ("user",) if client in client_config.USER_ONLY else get_args(Scope):
            assert asked >= {(client, scope, platform) for platform in ("linux", "darwin", "win32")}


@pytest.mark.parametrize("client", client_config.USER_ONLY)
def test_some_clients_have_no_project(tmp_path: Path, client: Client) -> None:
    with pytest.raises(InvalidInput, match=f"^scope: is project; for {client} only user is allowed$"):
        plan_of(tmp_path, client, "project")


PACKAGED = "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"
USUAL = "home/AppData/Roaming/Claude/claude_desktop_config.json"


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], USUAL),
        ([PACKAGED], PACKAGED),
        ([PACKAGED, USUAL], PACKAGED),
        ([USUAL, "Packages/Claude_pzs8sxrjxfjjc/x"], USUAL),
        (["Packages/Claude_pzs8sxrjxfjjc/x"], PACKAGED),
        (["Packages/Claudette_1/x"], USUAL),
    ],
)
def test_a_packaged_claude_on_windows_reads_a_file_of_its_own(tmp_path: Path, there: list[str], expected: str) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}")
    here = place(tmp_path, "win32", LOCALAPPDATA=str(tmp_path))
    assert client_config.plan("claude-desktop", here, COMMAND).path == tmp_path / expected


# ---------------------------------------------------------------- what belongs into it


@pytest.mark.parametrize("client", get_args(Client))
def test_a_snippet_is_a_whole_file(tmp_path: Path, client: Client) -> None:
    plan = plan_of(tmp_path, client)
    match client:
        case "codex":
            assert tomllib.loads(plan.snippet) == {"mcp_servers": {"nacre": ENTRY}}
        case "vscode":
            assert json.loads(plan.snippet) == {"servers": {"nacre": {"type": "stdio", **ENTRY}}}
        case "opencode":
            assert json.loads(plan.snippet) == {"mcp": {"nacre": {"type": "local", "command": COMMAND}}}
        case "zed":
            assert json.loads(plan.snippet) == {"context_servers": {"nacre": ENTRY}}
        case "copilot-cli":
            said: dict[str, Any] = {"type": "local", **ENTRY, "tools": ["*"]}
            assert json.loads(plan.snippet) == {"mcpServers": {"nacre": said}}
        case "goose":
            said = {"cmd": COMMAND[0], "args": COMMAND[1:], "timeout": 300}
            said = {"enabled": True, "type": "stdio", "name": "nacre", "description": ABOUT, **said}
            assert yaml.safe_load(plan.snippet) == {"extensions": {"nacre": said}}
        case _:
            assert json.loads(plan.snippet) == {"mcpServers": {"nacre": ENTRY}}


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=2))
def test_any_argument_survives(command: list[str]) -> None:
    root = Path("/nowhere")
    for client in ("cursor", "codex", "goose"):
        plan = plan_of(root, client, command=command)
        said = parsed(plan.snippet, client)[plan.servers]["nacre"]
        assert [said.get("command") or said["cmd"], *said["args"]] == command


def test_a_server_is_called_by_a_plain_name(tmp_path: Path) -> None:
    for name in ("", "a.b", "a b", "näcre", "n" * 65, 'a"]', "a\n"):
        with pytest.raises(InvalidInput, match=r"^name: is .*; 1 to 64 letters, digits, _ and - are allowed$"):
            client_config.plan("codex", place(tmp_path), COMMAND, name=name)
    assert client_config.plan("codex", place(tmp_path), COMMAND, name="my-memory_2").snippet.startswith(
        "[mcp_servers.my-memory_2]\n"
    )


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^command: .* cannot be written to a file as text"):
        client_config.plan("cursor", place(tmp_path), ["/opt/\udcff/nacre", "mcp"])


def test_the_command_works_from_anywhere(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3.11"
    python.parent.mkdir()
    assert client_config.program(python, "linux") == [str(python), "-m", "nacre"]
    (python.parent / "nacre").touch()
    assert client_config.program(python, "linux") == [str(python.parent / "nacre")]
    assert client_config.program(python, "win32") == [str(python), "-m", "nacre"]
    (python.parent / "nacre.exe").touch()
    assert client_config.program(python, "win32") == [str(python.parent / "nacre.exe")]


# ---------------------------------------------------------------- JSON

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())  # also halves of characters, which JSON can say and UTF-8 cannot
)
VALUES = st.recursive(
    LEAVES, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3)
)
OTHERS = st.dictionaries(st.text().filter(lambda name: name != "nacre"), VALUES, max_size=3)
DOCUMENTS = st.dictionaries(st.text(), VALUES, max_size=4)
OURS: st.SearchStrategy[dict[str, Any] | None] = (
    st.none() | st.just({}) | st.just({"command": "old", "env": {"A": "1"}}) | st.just({"url": "http://x"})
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    document=DOCUMENTS,
    others=st.none() | OTHERS,
    ours=OURS,
    client=st.sampled_from(JSON_CLIENTS),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    newline=st.booleans(),
)
def test_json_keeps_all_else(
    tmp_path_factory: pytest.TempPathFactory,
    document: dict[str, Any],
    others: dict[str, Any] | None,
    ours: dict[str, Any] | None,
    client: Client,
    indent: int | str | None,
    newline: bool,
) -> None:
    plan = plan_of(tmp_path_factory.mktemp("root"), client)
    document = {name: each for name, each in document.items() if name != plan.servers}
    servers = (others or {}) | ({} if ours is None else {"nacre": ours})
    if others is not None or ours is not None:
        document[plan.servers] = servers
    before = json.dumps(document, indent=indent) + ("\n" if newline else "")
    put(plan, before)

    backup = install(plan)
    assert backup is not None
    assert backup.read_text("utf-8") == before
    after = json.loads(text_of(plan))
    kept = ours if ours and "url" not in ours else {}
    assert after == document | {plan.servers: servers | {"nacre": kept | plan.entry}}
    if ours is None and servers:
        assert comparable(json_text.read(text_of(plan))) == comparable(after)
    assert list(after) == list(document | {plan.servers: 0})
    assert list(after[plan.servers]) == list(servers | {"nacre": 0})
    assert text_of(plan).endswith("}\n") == newline

    assert install(plan) is None  # nothing to do, no second backup
    assert len(files_beside(plan)) == 2

    assert remove(plan) is not None
    left = {name: each for name, each in document.items() if name != plan.servers}
    assert json.loads(text_of(plan)) == left | ({plan.servers: others} if others else {})
    if ours is None and (others or others is None):
        assert text_of(plan) == before
    assert remove(plan) is None
    assert len(files_beside(plan)) == 3


def test_json_is_written_in_the_manner_of_the_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "cursor")
    put(plan, '\ufeff{\r\n\t"thème": "é 日本",\r\n\t"mcpServers": {}\r\n}')
    install(plan)
    assert text_of(plan) == (
        '\ufeff{\r\n\t"thème": "é 日本",\r\n\t"mcpServers": {\r\n\t\t"nacre": {\r\n'
        '\t\t\t"command": "/opt/nacre/bin/nacre",\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"mcp",\r\n\t\t\t\t"--space",\r\n\t\t\t\t"work"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}'
    )


@pytest.mark.parametrize("blank", ["", " \n\n"])
def test_a_blank_file_is_an_empty_one(tmp_path: Path, blank: str) -> None:
    for client in get_args(Client):
        plan = plan_of(tmp_path / client, client)
        put(plan, blank)
        backup = install(plan)
        assert backup is not None
        assert backup.read_text() == blank
        assert text_of(plan).strip() == plan.snippet.strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "mcpServers": {}', "is not valid JSON (line 1, column 26: a comma or } is expected)"),
        ('{\n  "a": 1,\n  b: 2}', "(line 3, column 3: a name in double quotes is expected)"),
        ('{"a": 1, "a": 2}', "(line 1, column 10: the key 'a' is there twice)"),
        ('{"a": NaN}', "(line 1, column 7: a value is expected)"),
        ('{"a" 1}', "(line 1, column 6: a colon is expected)"),
        ('{"a": 01}', "is not valid JSON"),
        ('{"a": 1 "b": 2}', "is not valid JSON"),
        ('{"a": 1,, "b": 2}', "is not valid JSON"),
        ("{,}", "is not valid JSON"),
        ('{"a": "x\ny"}', "is not valid JSON"),
        ("{\"a\": 'x'}", "is not valid JSON"),
        ('{"a": 1} x', "(line 1, column 10: something follows the end)"),
        ('{"a": /* open }', "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "must be an object, and 'mcpServers' in it must be one, too"),
        ("null", "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"mcpServers": []}', "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"mcpServers": null}', "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"a": "\udcff"}', "cannot be read ('utf-8' codec can't decode"),
    ],
)
def test_a_json_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, said: str) -> None:
    plan = plan_of(tmp_path, "cursor")
    put(plan, text)
    before = plan.path.read_bytes()
    with pytest.raises(InvalidInput) as error:
        client_config.installation(plan)
    assert error.value.field == str(plan.path)
    assert said in error.value.problem
    assert error.value.problem.endswith("nothing was changed. Add this entry by hand:\n" + plan.snippet.strip())
    assert plan.path.read_bytes() == before
    assert files_beside(plan) == {"mcp.json"}


COMMENTED = """\
// Zed settings
{
  "theme": "One", // the light one
  /* servers */
  "context_servers": {
    "docs": { "command": "npx", "args": ["-y", "docs"] }, // "nacre": {
  },
  "url": "http://x//y",
}
"""


def test_comments_and_the_last_comma_stay(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "zed")
    put(plan, COMMENTED)
    install(plan)
    assert text_of(plan) == COMMENTED.replace(
        '// "nacre": {\n',
        '// "nacre": {\n    "nacre": {\n      "command": "/opt/nacre/bin/nacre",\n      "args": [\n        "mcp",\n'
        '        "--space",\n        "work"\n      ]\n    },\n',
    )
    assert install(plan) is None
    remove(plan)
    assert text_of(plan) == COMMENTED


def test_comments_in_our_entry_stay_when_it_changes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "opencode")
    put(plan, '{"mcp": {"nacre": {\n  // slow\n  "timeout": 9, "type": "local", "command": ["old"] /* mine */ } }}')
    install(plan)
    command = json.dumps(COMMAND)
    assert text_of(plan) == (
        '{"mcp": {"nacre": {\n  // slow\n  "timeout": 9, "type": "local", "command": ' + command + " /* mine */ } }}"
    )


def test_an_entry_in_the_other_form_of_cline_is_replaced(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "cline")
    put(plan, '{"mcpServers": {"nacre": {"transport": {"type": "stdio", "command": "old"}}}}')
    install(plan)
    assert json.loads(text_of(plan)) == {"mcpServers": {"nacre": ENTRY}}
    assert install(plan) is None


def test_of_two_names_the_one_that_is_there_is_used(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "opencode.jsonc").write_text("{}")
    assert plan_of(tmp_path, "opencode", "project").path.name == "opencode.jsonc"


# ---------------------------------------------------------------- YAML

GOOSE = """\
# my settings
GOOSE_MODEL: gpt  # good enough
extensions:
  developer:
    enabled: true
    type: builtin
    note: |
      nacre:
        enabled: false

  # the documentation
  docs:
    cmd: npx
    args: [-y, "docs: #1"]
# the end
GOOSE_MODE: auto
"""
ENTRY_OF_GOOSE = """\
  nacre:
    enabled: true
    type: stdio
    name: nacre
    description: "Memories of earlier conversations"
    cmd: /opt/nacre/bin/nacre
    args:
      - mcp
      - "--space"
      - work
    timeout: 300
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_yaml_keeps_all_else_to_the_letter(tmp_path: Path, newline: str) -> None:
    plan = plan_of(tmp_path, "goose")
    text = GOOSE.replace("\n", newline)
    put(plan, text)
    install(plan)
    at = text.index("# the end")
    assert text_of(plan) == text[:at] + ENTRY_OF_GOOSE.replace("\n", newline) + text[at:]
    assert install(plan) is None
    document = yaml.safe_load(text_of(plan))
    assert document["extensions"].pop("nacre") == plan.entry
    assert document == yaml.safe_load(text)
    remove(plan)
    assert text_of(plan) == text


@pytest.mark.parametrize("before", ["", "# only this\n", "GOOSE_MODE: auto\n", "---\nlist:\n- a\n- b: 1\nx: 'it''s'\n"])
def test_a_section_is_made_and_removed_with_its_only_entry(tmp_path: Path, before: str) -> None:
    plan = plan_of(tmp_path, "goose")
    put(plan, before)
    install(plan)
    assert text_of(plan) == before + "extensions:\n" + ENTRY_OF_GOOSE
    remove(plan)
    assert text_of(plan) == before


@pytest.mark.parametrize("empty", ["extensions: {}", "extensions:", "extensions: null # none", '"extensions": {}'])
def test_an_empty_section_is_filled(tmp_path: Path, empty: str) -> None:
    plan = plan_of(tmp_path, "goose")
    put(plan, f"{empty}\nGOOSE_MODE: auto")
    install(plan)
    assert yaml.safe_load(text_of(plan)) == {"extensions": {"nacre": plan.entry}, "GOOSE_MODE": "auto"}
    assert text_of(plan).endswith("GOOSE_MODE: auto")


def test_what_goose_wrote_anew_is_recognised(tmp_path: Path) -> None:
    """It keeps no comments, sorts nothing, and adds settings of its own."""
    plan = plan_of(tmp_path, "goose")
    entry = {**plan.entry, "timeout": 300, "envs": {}, "bundled": None, "available_tools": []}
    put(plan, yaml.safe_dump({"extensions": {"a": {"enabled": False}, "nacre": entry}}, sort_keys=False))
    assert install(plan) is None
    other = plan_of(tmp_path, "goose", command=["/new/nacre", "mcp", "a: b", "- c", "yes", "\x7f\u2028"])
    install(other)
    found = yaml.safe_load(text_of(other))["extensions"]
    assert found == {"a": {"enabled": False}, "nacre": entry | other.entry}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extensions: {nacre: {}}\n", "line 1: 'extensions' is not in block style"),
        ("extensions: *other\n", "line 1: 'extensions' is not in block style"),
        ("extensions:\n- a\n", "'extensions' is not a mapping in block style"),
        ("extensions:\n  - a\n", "is no key of a mapping"),
        ("extensions: 5\n", "line 1: 'extensions' is not in block style"),
        ("extensions:\n\tnacre: 1\n", "line 2: it is indented by a tab"),
        ("extensions:\n    a: 1\n  b: 2\n", "'extensions' is not a mapping in block style"),
        ("extensions: {}\nextensions: {}\n", "the key 'extensions' is there twice"),
        ("extensions:\n  nacre: 1\n  nacre: 2\n", "the key 'nacre' is there twice"),
        ("- a\n- b\n", "line 1: the file is no mapping"),
        ("{extensions: {}}\n", "is no key of a mapping in block style"),
        ("a: 1\n---\nb: 2\n", "line 2: '---' is no key"),
        ("a: 'open\nextensions:\n  b: 1'\n", "line 1: a text goes over several lines"),
        ('a:\n  b: "open\nextensions:\n  "\n', "line 2: a text goes over several lines"),
        ("a: 1\u2028extensions: 5\n", "other ends of lines"),
        ("extensions:\n  nacre: 5\n", "cannot be edited"),
        ("extensions:\n  nacre: {enabled: true}\n", "cannot be edited"),
        ("just words\n", "is no key of a mapping in block style"),
    ],
)
def test_a_yaml_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, said: str) -> None:
    plan = plan_of(tmp_path, "goose")
    put(plan, text)
    with pytest.raises(InvalidInput) as error:
        client_config.installation(plan)
    assert said in error.value.problem
    assert error.value.problem.endswith(plan.snippet.strip())
    assert text_of(plan) == text


NAMES = st.text("abcXYZ_09", min_size=1, max_size=6)
SCALARS = st.booleans() | st.integers() | st.text(max_size=12) | st.none()
EXTENSION = st.dictionaries(
    NAMES, SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(NAMES, SCALARS), max_size=4
)


@pytest.mark.slow
@settings(max_examples=80)
@given(
    top=st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=3)),
    extensions=st.dictionaries(NAMES, EXTENSION, max_size=3),
    ours=st.none() | EXTENSION,
    width=st.sampled_from([20, 10_000]),
)
def test_any_settings_of_goose_stay_or_the_file_is_left_alone(
    tmp_path_factory: pytest.TempPathFactory, top: Any, extensions: Any, ours: Any, width: int
) -> None:
    plan = plan_of(tmp_path_factory.mktemp("root"), "goose")
    inside = extensions | ({} if ours is None else {"nacre": ours})
    document = top | ({"extensions": inside} if inside else {})
    before = yaml.safe_dump(document, sort_keys=False, width=width) if document else ""
    put(plan, before)
    try:
        install(plan)
    except InvalidInput:
        assert text_of(plan) == before
        return
    kept = {} if ours is None or {"url", "uri"} & ours.keys() else ours
    assert yaml.safe_load(text_of(plan)) == document | {"extensions": inside | {"nacre": kept | plan.entry}}
    assert install(plan) is None
    remove(plan)
    assert (yaml.safe_load(text_of(plan)) or {}) == top | ({"extensions": extensions} if extensions else {})
    if ours is None:
        assert text_of(plan) == before


# ---------------------------------------------------------------- all of them

KEPT: dict[str, str] = {
    "JSON": '{\n    "theme": "dark", // mine\n    "SERVERS": {\n        /* a */ "other": {"command": "x"}\n    }\n}\n',
    "TOML": 'theme = "dark" # mine\n\n[SERVERS.other]\ncommand = "x"\n',
    "YAML": "theme: dark # mine\n\nSERVERS:\n    # a\n    other:\n        cmd: x\n",
}
BROKEN: dict[str, list[str]] = {
    "JSON": ["{", '{"SERVERS": 5}', '{"SERVERS": {"nacre": 1, "nacre": 2}}', "\0", "[" * 100_000],
    "TOML": ["[", "SERVERS = 5", "[SERVERS.nacre]\ncommand = 1\n[SERVERS.nacre]\n", "\0"],
    "YAML": ["{", "SERVERS: 5", "SERVERS:\n  nacre: 1\n  nacre: 2\n", "\0", "SERVERS:\n\tnacre: 1\n"],
}


@pytest.mark.parametrize("client", get_args(Client))
def test_a_file_of_any_client_is_as_it_was_after_removal(tmp_path: Path, client: Client) -> None:
    plan = plan_of(tmp_path, client)
    text = KEPT[plan.language].replace("SERVERS", plan.servers)
    put(plan, text)
    assert install(plan) is not None
    assert all(line in text_of(plan).splitlines() for line in text.splitlines() if '"other"' not in line)
    assert "other" in text_of(plan)
    assert install(plan) is None
    assert client_config.removal(plan).entry == plan.entry
    remove(plan)
    assert text_of(plan) == text
    assert remove(plan) is None


@pytest.mark.parametrize(
    ("client", "text"), [(each, text) for each in get_args(Client) for text in BROKEN[client_config.language(each)]]
)
def test_a_broken_file_of_any_client_is_left_alone(tmp_path: Path, client: Client, text: str) -> None:
    plan = plan_of(tmp_path, client)
    put(plan, text.replace("SERVERS", plan.servers))
    before = plan.path.read_bytes()
    for change in (client_config.installation, client_config.removal):
        with pytest.raises(InvalidInput, match="nothing was changed") as error:
            change(plan)
        assert error.value.problem.endswith(plan.snippet.strip())
    assert plan.path.read_bytes() == before
    assert len(files_beside(plan)) == 1


# ---------------------------------------------------------------- a server that runs already

URL = "http://127.0.0.1:8642/mcp"
BEARER = {"headers": {"Authorization": "Bearer ${NACRE_TOKEN}"}}
OF_EDITORS = {"headers": {"Authorization": "Bearer ${env:NACRE_TOKEN}"}}
GOOSE_SERVER = {"enabled": True, "type": "streamable_http", "name": "nacre", "description": ABOUT, "uri": URL}
REMOTE: list[tuple[Client, dict[str, Any], dict[str, Any]]] = [
    ("claude-code", {"type": "http", "url": URL}, BEARER),
    ("cursor", {"url": URL}, OF_EDITORS),
    ("codex", {"url": URL}, {"bearer_token_env_var": "NACRE_TOKEN"}),
    ("vscode", {"type": "http", "url": URL}, OF_EDITORS),
    ("gemini-cli", {"type": "http", "url": URL}, BEARER),
    ("opencode", {"type": "remote", "url": URL}, {"headers": {"Authorization": "Bearer {env:NACRE_TOKEN}"}}),
    ("windsurf", {"serverUrl": URL}, OF_EDITORS),
    ("zed", {"url": URL}, {}),
    ("cline", {"type": "streamableHttp", "url": URL}, {}),
    ("goose", GOOSE_SERVER | {"timeout": 300}, BEARER | {"env_keys": ["NACRE_TOKEN"]}),
    ("copilot-cli", {"type": "http", "url": URL, "tools": ["*"]}, BEARER),
]


def test_every_client_but_one_takes_an_address() -> None:
    assert {client for client, *_ in REMOTE} == set(get_args(Client)) - {"claude-desktop"}
    assert {client for client, _, token in REMOTE if token} == set(client_config.TAKES_VARIABLES)


@pytest.mark.parametrize(("client", "entry", "token"), REMOTE)
def test_each_client_names_an_address_in_its_own_way(
    tmp_path: Path, client: Client, entry: dict[str, Any], token: dict[str, Any]
) -> None:
    plan = client_config.plan(client, place(tmp_path), Address(URL))
    assert plan.entry == entry
    assert parsed(plan.snippet, client) == {plan.servers: {"nacre": entry}}
    if token:
        plan = client_config.plan(client, place(tmp_path), Address(URL, "NACRE_TOKEN"))
        assert plan.entry == entry | token
        assert parsed(plan.snippet, client) == {plan.servers: {"nacre": entry | token}}
    else:
        with pytest.raises(InvalidInput, match=f"^token-variable: {client} is not known to read variables in headers"):
            client_config.plan(client, place(tmp_path), Address(URL, "NACRE_TOKEN"))


@pytest.mark.parametrize(("client", "token"), [(client, token) for client, _, token in REMOTE])
def test_a_server_to_start_and_one_that_runs_take_each_others_place(
    tmp_path: Path, client: Client, token: dict[str, Any]
) -> None:
    started = plan_of(tmp_path, client)
    reached = client_config.plan(client, place(tmp_path), Address(URL, "NACRE_TOKEN" if token else None))
    install(started)
    for plan in (reached, started, reached):
        install(plan)
        assert parsed(text_of(plan), client) == {plan.servers: {"nacre": plan.entry}}
        assert client_config.installation(plan).after is None
    remove(started)
    assert not parsed(text_of(started), client)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8642", "ftp://x/mcp", "http://", "http://[::1", "http://x/ y", "http://x/${A}", "http://x:99999/"],
)
def test_what_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^url: is .*; give one such as http://127.0.0.1:8642/mcp$"):
        client_config.plan("cursor", place(tmp_path), Address(url))


def test_no_secret_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^url: has a password"):
        client_config.plan("cursor", place(tmp_path), Address("http://me:secret@x/mcp"))
    with pytest.raises(InvalidInput, match=r"^token-variable: is 'sk-1 2'; give the name of a variable, not a token$"):
        client_config.plan("cursor", place(tmp_path), Address(URL, "sk-1 2"))


# ---------------------------------------------------------------- TOML

BLOCKS = [
    "[model_providers.local]\nname = 'local' # don't\nurl = \"http://[::1]:80/#x\"\n",
    'notice = """\n[mcp_servers.nacre]\ncommand = "not this one"\n"""\n',
    "literal = '''\n[mcp_servers.nacre]\n'quoted''''\n",
    '[mcp_servers.docs]\ncommand = "npx"\nargs = [\n  "-y", # ]\n  "docs[1]",\n]\nenv = { "A#B" = "}", C = "1" }\n',
    '[[profiles]]\nname = "a"\n\n  [[profiles.rules]]\n  match = [\'x\', "y]"]\n\n[[profiles]]\nname = "b"\n',
    "# a comment that belongs to nobody\n\n",
    '[mcp_servers."na.cre"]\ncommand = "other"\n',
    "[times]\nat = 2026-11-15T23:04:05Z\nlimit = inf\nnone = nan\nhex = 0xFF\n",
    '["quoted \\"] table"]\n"a = [" = "\\\\"\n',
    "[mcp_servers]\n",
]
OWN = [
    '[mcp_servers.nacre]\ncommand = "old"\nargs = [\n  "a", # first\n  "b",\n]\n',
    "[mcp_servers.nacre] # mine\n# why\nstartup_timeout_sec = 20\ncommand = 'old'\nenv = { NACRE_LOG = \"off\" }\n",
    '[ mcp_servers . "nacre" ]\n\nargs = []\n\n[mcp_servers.nacre.env]\nA = "]"\n',
    "[mcp_servers.nacre.env]\n# only this\nA = '''x\n'''\n",
]
TOP = ("notice", "literal")  # settings of the document itself stand before every table


def toml_files() -> st.SearchStrategy[tuple[str, str, str]]:
    """What stands before our table, our table or nothing, and what stands after it."""

    def joined(blocks: list[str], own: str, cut: int) -> tuple[str, str, str]:
        ordered = [each for each in blocks if each.startswith(TOP)]
        first = len(ordered)
        ordered += [each for each in blocks if not each.startswith(TOP)]
        cut = max(first, min(cut, len(ordered)))
        return "\n".join(ordered[:cut]), own, "\n".join(ordered[cut:])

    return st.builds(
        joined,
        st.lists(st.sampled_from(BLOCKS), unique=True),
        st.sampled_from(["", *OWN]),
        st.integers(0, len(BLOCKS)),
    )


def comparable(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, default=repr)


@pytest.mark.slow
@settings(max_examples=150)
@given(parts=toml_files(), crlf=st.booleans())
def test_toml_keeps_all_else_to_the_letter(
    tmp_path_factory: pytest.TempPathFactory, parts: tuple[str, str, str], crlf: bool
) -> None:
    plan = plan_of(tmp_path_factory.mktemp("root"), "codex")
    before, own, after = (each.replace("\n", "\r\n") if crlf else each for each in parts)
    put(plan, before + own + after)
    document = tomllib.loads(before + own + after)
    servers = document.get("mcp_servers", {})

    backup = install(plan)
    assert backup is not None
    assert backup.read_bytes().decode() == before + own + after
    written = text_of(plan)
    expected = document | {"mcp_servers": servers | {"nacre": servers.get("nacre", {}) | ENTRY}}
    assert comparable(tomllib.loads(written)) == comparable(expected)
    if any(line.startswith("[") and "env" not in line for line in own.splitlines()):  # it has a table of its own
        assert written.startswith(before)
        assert written.endswith(after)
    else:
        assert written.startswith(before + own + after)
    if "\r" in before + own + after:
        assert "\n" not in written.replace("\r\n", "")
    assert install(plan) is None

    assert remove(plan) is not None
    servers.pop("nacre", None)
    found = {"mcp_servers": {}} | tomllib.loads(text_of(plan))
    assert comparable(found) == comparable(document | {"mcp_servers": servers})
    if not own:
        assert text_of(plan) == before + after
    assert remove(plan) is None


BEFORE = """\
model = "o9" # the big one

[mcp_servers.nacre] # mine
# it is slow to start
startup_timeout_sec = 20
command = "old"  # gone
args = [
  "a",
  # and so on
]
env.NACRE_LOG = "off"

# the documentation
[mcp_servers.docs]
url = "https://docs.example"

[mcp_servers.nacre.env]
A = "1"
"""


def test_only_our_lines_of_our_table_are_written_anew(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "codex")
    text = BEFORE.replace('env.NACRE_LOG = "off"\n', "")
    put(plan, text)
    install(plan)
    assert text_of(plan) == text.replace('command = "old"', 'command = "/opt/nacre/bin/nacre"').replace(
        'args = [\n  "a",\n  # and so on\n]', 'args = ["mcp", "--space", "work"]'
    )
    remove(plan)
    assert text_of(plan) == (
        'model = "o9" # the big one\n\n# the documentation\n[mcp_servers.docs]\nurl = "https://docs.example"\n'
    )


def test_tables_stay_where_they_are(tmp_path: Path) -> None:
    """Read as a whole, tomlkit puts the two servers next to each other."""
    plan = plan_of(tmp_path, "codex")
    text = '[mcp_servers.docs]\nurl = "x"\n\n[[rules]]\nname = "a"\n\n[mcp_servers.nacre]\ncommand = "old"  # mine\n'
    put(plan, text)
    install(plan)
    args = 'args = ["mcp", "--space", "work"]\n'
    assert text_of(plan) == text.replace("nacre]\n", f"nacre]\n{args}").replace('"old"', '"/opt/nacre/bin/nacre"')
    remove(plan)
    assert text_of(plan) == '[mcp_servers.docs]\nurl = "x"\n\n[[rules]]\nname = "a"\n'


def test_what_is_missing_in_our_table_follows_its_header(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "codex")
    put(plan, "[mcp_servers.nacre] # mine")
    install(plan)
    assert text_of(plan) == (
        '[mcp_servers.nacre] # mine\ncommand = "/opt/nacre/bin/nacre"\nargs = ["mcp", "--space", "work"]\n'
    )


def test_a_new_table_stands_at_the_end(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "codex")
    put(plan, '\ufeffmodel = "o9"')
    install(plan)
    assert text_of(plan) == '\ufeffmodel = "o9"\n\n' + plan.snippet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", "is not valid TOML"),
        ("mcp_servers = 5", "must be an object, and 'mcp_servers' in it must be one, too"),
        ("[[mcp_servers]]", "must be an object, and 'mcp_servers' in it must be one, too"),
        ('mcp_servers = { docs = { command = "x" } }', "cannot be edited without losing something"),
        ('mcp_servers.nacre.command = "x"', "cannot be edited without losing something"),
        ('[mcp_servers]\nnacre = { command = "x" }', "cannot be edited without losing something"),
        ('[mcp_servers]\nnacre.command = "x"', "cannot be edited without losing something"),
        ("[mcp_servers]\nnacre = 5", "cannot be edited without losing something"),
    ],
)
def test_a_toml_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, said: str) -> None:
    plan = plan_of(tmp_path, "codex")
    put(plan, text)
    with pytest.raises(InvalidInput) as error:
        client_config.installation(plan)
    assert said in error.value.problem
    assert error.value.problem.endswith(plan.snippet.strip())
    assert text_of(plan) == text
    assert files_beside(plan) == {"config.toml"}


def test_other_forms_of_the_same_are_recognised_and_removed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "codex")
    inline = '{ args = ["mcp", "--space", "work"], command = "/opt/nacre/bin/nacre" }'
    put(plan, f'[mcp_servers]\nnacre = {inline}\ndocs.url = "x"\n')
    assert install(plan) is None
    remove(plan)
    assert text_of(plan) == '[mcp_servers]\ndocs.url = "x"\n'
    put(plan, 'mcp_servers.nacre.command = "x"\n')
    with pytest.raises(InvalidInput, match="cannot be edited without losing something"):
        client_config.removal(plan)


# ---------------------------------------------------------------- writing


def test_a_backup_is_never_overwritten(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "cursor")
    put(plan, "{}")
    assert install(plan) == plan.path.with_name("mcp.json.backup-20261115T230405Z")
    written = text_of(plan)
    assert remove(plan) == plan.path.with_name("mcp.json.backup-20261115T230405Z-2")
    assert plan.path.with_name("mcp.json.backup-20261115T230405Z").read_text() == "{}"
    assert plan.path.with_name("mcp.json.backup-20261115T230405Z-2").read_text() == written


@POSIX_ONLY
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_permissions_are_kept_and_given_to_the_backup(tmp_path: Path, mode: int) -> None:
    plan = plan_of(tmp_path, "claude-code")
    put(plan, '{"secret": 1}')
    plan.path.chmod(mode)
    backup = install(plan)
    assert backup is not None
    assert {stat.S_IMODE(each.stat().st_mode) for each in (plan.path, backup)} == {mode}


@POSIX_ONLY
def test_a_new_file_may_be_read_as_any_other(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "claude-code", "project")
    install(plan)
    usual = tmp_path / "usual"
    usual.touch()
    assert plan.path.stat().st_mode == usual.stat().st_mode


@POSIX_ONLY
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, there: bool) -> None:
    plan = plan_of(tmp_path, "cursor")
    plan.path.parent.mkdir(parents=True)
    real = tmp_path / "dotfiles" / "cursor.json"
    plan.path.symlink_to("../../dotfiles/cursor.json")
    if there:
        real.parent.mkdir()
        real.write_text('{"a": 1}')
    backup = install(plan)
    assert plan.path.is_symlink()
    assert json.loads(real.read_text()) == ({"a": 1} if there else {}) | {"mcpServers": {"nacre": ENTRY}}
    assert {each.name for each in real.parent.iterdir()} == {"cursor.json"}
    if there:
        assert backup is not None
        assert (backup.parent, backup.read_text()) == (plan.path.parent, '{"a": 1}')
        assert not backup.is_symlink()


def test_a_crash_after_the_backup_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path, "cursor")
    put(plan, '{"a": 1}')

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidInput, match=r"cannot be written \(.*No space left on device\); nothing was changed"):
        install(plan)
    assert text_of(plan) == '{"a": 1}'
    assert files_beside(plan) == {"mcp.json", "mcp.json.backup-20261115T230405Z"}


@pytest.mark.parametrize("before", [None, '{"a": 1}'])
def test_what_the_client_wrote_meanwhile_is_not_lost(tmp_path: Path, before: str | None) -> None:
    plan = plan_of(tmp_path, "claude-code")
    if before is not None:
        put(plan, before)
    change = client_config.installation(plan)
    put(plan, '{"a": 2}')
    with pytest.raises(InvalidInput, match="was changed by another program meanwhile; run the command again"):
        client_config.write(change, NOW)
    assert text_of(plan) == '{"a": 2}'
    assert not [name for name in files_beside(plan) if name.endswith(".tmp")]


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "cursor")
    plan.path.mkdir(parents=True)
    with pytest.raises(InvalidInput, match="cannot be read"):
        client_config.installation(plan)
    other = plan_of(tmp_path / "other", "cursor")
    other.path.parent.parent.mkdir(parents=True)
    other.path.parent.touch()
    with pytest.raises(InvalidInput, match="cannot be read"):
        client_config.installation(other)


# ---------------------------------------------------------------- the command


@pytest.fixture
def cli(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`nacre install` in a home and a project of its own."""
    clear_settings(monkeypatch, tmp_path / "config.toml", "XDG_", "CLAUDE", "CODEX")
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(sys, "platform", "linux")
    return partial(cli, "install")


def whole(*arguments: str) -> list[str]:
    return [*client_config.program(Path(sys.executable), sys.platform), "mcp", *arguments]


def started(*arguments: str) -> Any:
    command = whole(*arguments)
    return {"command": command[0], "args": command[1:]}


@pytest.mark.parametrize("client", get_args(Client))
def test_without_write_it_is_printed_only(cli: Cli, tmp_path: Path, client: Client) -> None:
    answer = cli(client)
    assert answer.code == 0
    plan = client_config.plan(client, Place(platform="linux", environment={}, home=tmp_path, folder=tmp_path), whole())
    assert parsed(answer.out, client) == {plan.servers: {"nacre": plan.entry}}
    path = cli(client, "--json").json["path"]
    assert answer.err.splitlines()[-1] == f"This belongs in {path}; use --write to write it."
    assert ("all chats share one space" in answer.err) == (client == "claude-desktop")
    assert "all chats share" not in cli(client, "--space", "me").err
    assert list((tmp_path / "home").iterdir()) == []


def test_options_are_handed_on(cli: Cli, tmp_path: Path) -> None:
    answer = cli(
        "cursor", "--store", "notes/a.db", "--space", "work", "--embedder", "none", "--tools", "facts,entities",
        "--json",
    )  # fmt: skip
    assert answer.json["content"] == started(
        "--store", str(tmp_path / "project" / "notes" / "a.db"), "--space", "work", "--embedder", "none",
        "--tools", "facts,entities",
    )  # fmt: skip
    graph = cli("cursor", "--compat", "knowledge-graph", "--json").json["content"]
    assert graph == started("--compat", "knowledge-graph")
    home = cli("cursor", "--store", "~/b.db", "--json").json["content"]
    assert home == started("--store", str(tmp_path / "home" / "b.db"))
    keyed = cli("cursor", "--key-file", "my.key", "--json").json["content"]
    assert keyed == started("--key-file", str(tmp_path / "project" / "my.key"))
    assert cli("cursor", "--key-file", "keyring:work", "--json").json["content"] == started(
        "--key-file", "keyring:work"
    )
    here = cli("cursor", "--space", "folder:.", "--json").json["content"]["args"][-1]
    elsewhere = cli("cursor", "--space", f"folder:{tmp_path / 'project'}", "--json").json["content"]["args"][-1]
    assert here == elsewhere != "folder:."


def test_an_address_is_all_that_a_client_needs(cli: Cli) -> None:
    answer = cli("zed", "--url", URL)
    assert json.loads(answer.out) == {"context_servers": {"nacre": {"url": URL}}}
    assert "note: if the server asks for a token, add the header Authorization to the entry in" in answer.err
    answer = cli("codex", "--url", URL, "--token-variable", "NACRE_TOKEN", "--scope", "project")
    assert answer.out == f'[mcp_servers.nacre]\nurl = "{URL}"\nbearer_token_env_var = "NACRE_TOKEN"\n'
    assert "path of this machine" not in answer.err
    hooked = cli("claude-code", "--url", URL, "--hooks", "--space", "me").out  # hooks open the store by themselves
    assert hooked.count("--space me") == 4


def test_write_and_remove(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "home" / ".claude.json"
    path.write_text('{"numStartups": 3}\n')
    said = {"client": "claude-code", "path": str(path), "scope": "user", "content": started()}
    assert cli("claude-code", "--json").json == said | {"written": False, "backup": None, "changed": True}

    answer = cli("claude-code", "--write", "--json")
    backup = answer.json["backup"]
    assert answer.json == said | {"written": True, "backup": backup, "changed": True}
    assert Path(backup).read_text() == '{"numStartups": 3}\n'
    assert json.loads(path.read_text()) == {"numStartups": 3, "mcpServers": {"nacre": started()}}

    assert cli("claude-code", "--json").json == said | {"written": False, "backup": None, "changed": False}
    assert cli("claude-code").err == f"This belongs in {path}; it is there already.\n"
    assert cli("claude-code", "--write").out == f"nacre was already in {path}\n"

    changed = cli("claude-code", "--write", "--space", "x")
    assert changed.out.startswith(f"nacre written to {path}\nbackup: {path}.backup-")
    assert changed.err == "Restart claude-code to apply the change.\n"

    removed = cli("claude-code", "--remove", "--json").json
    assert removed["content"] == started("--space", "x")
    assert (removed["written"], removed["changed"]) == (True, True)
    assert path.read_text() == '{"numStartups": 3}\n'
    assert cli("claude-code", "--remove").out == f"nacre was not in {path}\n"
    assert cli("claude-code", "--remove", "--json").json["content"] is None


def test_several_servers_live_together(cli: Cli, tmp_path: Path) -> None:
    for name, space in (("work", "a"), ("home", "b")):
        assert cli("vscode", "--scope", "project", "--name", name, "--space", space, "--write").code == 0
    written = json.loads((tmp_path / "project" / ".vscode" / "mcp.json").read_text())
    assert {name: each["args"][-1] for name, each in written["servers"].items()} == {"work": "a", "home": "b"}


def test_what_to_know_is_said_beside_the_answer(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "contains a path of this machine" in cli("claude-code", "--scope", "project").err
    monkeypatch.setenv("NACRE_STORE", str(tmp_path / "a.db"))
    answer = cli("cursor")
    assert "the client may start the server without NACRE_STORE; give options" in answer.err
    assert json.loads(answer.out)["mcpServers"]["nacre"] == started()
    assert "pip install" not in answer.err
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else name)
    assert "install it with `pip install 'nacre-memory[mcp]'`" in cli("cursor").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["goose", "--scope", "project"], "scope: is project; for goose only user is allowed"),
        (["claude-desktop", "--scope", "project", "--write"], "scope: is project; for claude-desktop only user"),
        (["cursor", "--name", "a b"], "name: is 'a b'; 1 to 64 letters"),
        (["cursor", "--tools", " "], "tools: is blank"),
        (["cursor", "--tools", "all", "--compat", "knowledge-graph"], "tools: cannot be combined with --compat"),
        (["cursor", "--embedder", "gpt"], "--embedder: 'gpt' is unknown"),
        (["emacs"], "'emacs' is not one of"),
        (["claude-desktop", "--url", URL], "url: is not possible for claude-desktop"),
        (["cursor", "--url", URL, "--space", "x"], "url: cannot be combined with --space; give that to the server"),
        (["cursor", "--url", URL, "--tools", "all"], "url: cannot be combined with --tools"),
        (["cursor", "--token-variable", "T"], "token-variable: is for a server with --url"),
    ],
)
def test_bad_input_writes_nothing(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert list((tmp_path / "home").iterdir()) == []


def test_a_file_that_is_not_understood_is_shown_what_to_paste(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "project" / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n\t# mine\n\t"servers": {}\n}')
    answer = cli("vscode", "--scope", "project", "--write")
    assert answer.code == 2
    assert '"type": "stdio"' in answer.err
    assert path.read_text() == '{\n\t# mine\n\t"servers": {}\n}'
    assert cli("vscode", "--scope", "project").code == 0  # to print it, the file need not be understood
    assert cli("vscode", "--scope", "project", "--json").json["changed"] is True
