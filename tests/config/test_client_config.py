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
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Cli, clear_settings
from nacre.config import client_config
from nacre.config.client_config import Client, Place, Plan, Scope
from nacre.errors import InvalidInput

NOW = datetime(2026, 11, 15, 23, 4, 5, tzinfo=UTC)
COMMAND = ["/opt/nacre/bin/nacre", "mcp", "--space", "work"]
ENTRY = {"command": "/opt/nacre/bin/nacre", "args": ["mcp", "--space", "work"]}
JSON_CLIENTS = [each for each in get_args(Client) if each != "codex"]
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
        case _:
            assert json.loads(plan.snippet) == {"mcpServers": {"nacre": ENTRY}}


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=2))
def test_any_argument_survives(command: list[str]) -> None:
    root = Path("/nowhere")
    for client in ("cursor", "codex"):
        plan = plan_of(root, client, command=command)
        said = tomllib.loads(plan.snippet) if client == "codex" else json.loads(plan.snippet)
        assert said[plan.servers]["nacre"] == {"command": command[0], "args": command[1:]}


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
    assert client_config.server_command(python, "linux", ["--tools", "all"]) == [
        str(python), "-m", "nacre", "mcp", "--tools", "all",
    ]  # fmt: skip
    (python.parent / "nacre").touch()
    assert client_config.server_command(python, "linux", []) == [str(python.parent / "nacre"), "mcp"]
    assert client_config.server_command(python, "win32", []) == [str(python), "-m", "nacre", "mcp"]
    (python.parent / "nacre.exe").touch()
    assert client_config.server_command(python, "win32", []) == [str(python.parent / "nacre.exe"), "mcp"]


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
    assert list(after) == list(document | {plan.servers: 0})
    assert list(after[plan.servers]) == list(servers | {"nacre": 0})
    assert text_of(plan).endswith("}\n") == newline

    assert install(plan) is None  # nothing to do, no second backup
    assert len(files_beside(plan)) == 2

    assert remove(plan) is not None
    assert json.loads(text_of(plan)) == document | {plan.servers: others or {}}
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
        ('{\n  // my servers\n  "mcpServers": {}\n}', "is not valid JSON without comments (Expecting property name"),
        ('{"mcpServers": {},}', "is not valid JSON without comments"),
        ('{"a": 1, "mcpServers": {}', "is not valid JSON without comments"),
        ('{"a": 1, "a": 2}', "(the key 'a' is there twice)"),
        ('{"a": NaN}', "(NaN is not a JSON number)"),
        ("[" * 100_000, "is not valid JSON without comments"),
        ("[]", "must be an object, and 'mcpServers' in it must be one, too"),
        ("null", "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"mcpServers": []}', "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"mcpServers": null}', "must be an object, and 'mcpServers' in it must be one, too"),
        ('{"a": 1e999}', "cannot be edited without losing something"),
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
        ('[mcp_servers.nacre]\nurl = "https://x"', "cannot be edited without losing something"),
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


def started(*arguments: str) -> Any:
    command = client_config.server_command(Path(sys.executable), sys.platform, arguments)
    return {"command": command[0], "args": command[1:]}


@pytest.mark.parametrize("client", get_args(Client))
def test_without_write_it_is_printed_only(cli: Cli, tmp_path: Path, client: Client) -> None:
    answer = cli(client)
    assert answer.code == 0
    said = tomllib.loads(answer.out) if client == "codex" else json.loads(answer.out)
    entry = {"type": "stdio"} | started() if client == "vscode" else started()
    assert said == {{"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers"): {"nacre": entry}}
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
    assert json.loads(path.read_text()) == {"numStartups": 3, "mcpServers": {}}
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
        (["codex", "--scope", "project"], "scope: is project; for codex only user is allowed"),
        (["claude-desktop", "--scope", "project", "--write"], "scope: is project; for claude-desktop only user"),
        (["cursor", "--name", "a b"], "name: is 'a b'; 1 to 64 letters"),
        (["cursor", "--tools", " "], "tools: is blank"),
        (["cursor", "--tools", "all", "--compat", "knowledge-graph"], "tools: cannot be combined with --compat"),
        (["cursor", "--embedder", "gpt"], "--embedder: 'gpt' is unknown"),
        (["emacs"], "'emacs' is not one of"),
    ],
)
def test_bad_input_writes_nothing(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert list((tmp_path / "home").iterdir()) == []


def test_a_file_with_comments_is_shown_what_to_paste(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "project" / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n\t// mine\n\t"servers": {}\n}')
    answer = cli("vscode", "--scope", "project", "--write")
    assert answer.code == 2
    assert '"type": "stdio"' in answer.err
    assert path.read_text() == '{\n\t// mine\n\t"servers": {}\n}'
    assert cli("vscode", "--scope", "project").code == 0  # to print it, the file need not be understood
    assert cli("vscode", "--scope", "project", "--json").json["changed"] is True
