"""`nacre install --hooks`: Nacre's hooks beside those of others, in each client's own shape."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Cli, clear_settings
from nacre.config import client_config, client_hooks, json_text
from nacre.config.client_config import Client, Place, Scope
from nacre.config.client_hooks import EVENTS, HookPlan
from nacre.errors import InvalidInput

NOW = datetime(2026, 11, 15, 23, 4, 5, tzinfo=UTC)
PROGRAM = ["/opt/nacre/bin/nacre"]
CONTEXT, REMEMBER = "/opt/nacre/bin/nacre hook context", "/opt/nacre/bin/nacre hook remember"


def place(root: Path, platform: str = "linux", **environment: str) -> Place:
    return Place(platform=platform, environment=environment, home=root / "home", folder=root / "project")


def plan_of(root: Path, client: Client = "claude-code", scope: Scope = "user", *arguments: str) -> HookPlan:
    return client_hooks.plan(client, place(root), PROGRAM, arguments, scope)


def put(plan: HookPlan, text: str) -> None:
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    plan.path.write_bytes(text.encode())


def install(plan: HookPlan) -> Path | None:
    change = client_hooks.installation(plan)
    return None if change.after is None else client_config.write(change, NOW)


def remove(plan: HookPlan) -> Path | None:
    change = client_hooks.removal(plan)
    return None if change.after is None else client_config.write(change, NOW)


def text_of(plan: HookPlan) -> str:
    return plan.path.read_bytes().decode()


def group(command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": 10}]}


OURS: dict[Client, Any] = {
    "claude-code": {
        "hooks": {
            "SessionStart": [group(CONTEXT)],
            "UserPromptSubmit": [group(CONTEXT)],
            "Stop": [group(REMEMBER)],
            "SessionEnd": [group(REMEMBER)],
        }
    },
    "codex": {
        "hooks": {
            "SessionStart": [group(CONTEXT)],
            "UserPromptSubmit": [group(CONTEXT)],
            "Stop": [group(REMEMBER)],
        }
    },
    "cursor": {
        "version": 1,
        "hooks": {
            "sessionStart": [{"command": CONTEXT}],
            "beforeSubmitPrompt": [{"command": REMEMBER}],
            "afterAgentResponse": [{"command": REMEMBER}],
        },
    },
}


@pytest.mark.parametrize("client", EVENTS)
def test_each_client_has_its_hooks(tmp_path: Path, client: Client) -> None:
    plan = plan_of(tmp_path, client)
    assert json.loads(plan.file.snippet) == OURS[client]
    assert install(plan) is None  # no file, no backup
    assert json.loads(text_of(plan)) == OURS[client]
    assert install(plan) is None
    assert client_hooks.installation(plan).after is None
    assert remove(plan) is not None
    assert json.loads(text_of(plan)) == ({"version": 1} if client == "cursor" else {})
    assert client_hooks.removal(plan).after is None


FILES: list[tuple[Client, Scope, dict[str, str], str]] = [
    ("claude-code", "user", {}, "home/.claude/settings.json"),
    ("claude-code", "user", {"CLAUDE_CONFIG_DIR": "{root}/other"}, "other/settings.json"),
    ("claude-code", "project", {"CLAUDE_CONFIG_DIR": "{root}/other"}, "project/.claude/settings.local.json"),
    ("codex", "user", {}, "home/.codex/hooks.json"),
    ("codex", "user", {"CODEX_HOME": "{root}/codex"}, "codex/hooks.json"),
    ("codex", "project", {"CODEX_HOME": "{root}/codex"}, "project/.codex/hooks.json"),
    ("cursor", "user", {}, "home/.cursor/hooks.json"),
    ("cursor", "project", {}, "project/.cursor/hooks.json"),
]


@pytest.mark.parametrize(("client", "scope", "environment", "expected"), FILES)
def test_which_file_it_is(
    tmp_path: Path, client: Client, scope: Scope, environment: dict[str, str], expected: str
) -> None:
    here = place(tmp_path, "linux", **{name: text.format(root=tmp_path) for name, text in environment.items()})
    assert client_hooks.plan(client, here, PROGRAM, [], scope).path == tmp_path / expected


def test_a_client_without_hooks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^hooks: are not known of zed; .* Known: claude-code, codex, cursor$"):
        plan_of(tmp_path, "zed")


def test_the_command_is_quoted_for_the_shell_that_runs_it(tmp_path: Path) -> None:
    program, arguments = ["C:\\my tools\\nacre.exe"], ["--space", "it's mine"]
    in_bash = "'C:\\my tools\\nacre.exe' hook context --space 'it'\"'\"'s mine'"
    in_windows = '"C:\\my tools\\nacre.exe" hook context --space "it\'s mine"'
    cases: list[tuple[Client, str, str]] = [
        ("codex", "linux", in_bash),
        ("codex", "win32", in_windows),
        ("claude-code", "win32", in_bash),
    ]
    for client, platform, expected in cases:
        plan = client_hooks.plan(client, place(tmp_path, platform), program, arguments)
        assert plan.commands["UserPromptSubmit"] == expected
        put(plan, plan.file.snippet)
        assert client_hooks.installation(plan).after is None  # it is recognised
        assert json_text.read((client_hooks.removal(plan).after or b"").decode()) == {}


WITH_OTHERS = """\
{
  // mine
  "model": "opus",   "permissions": {"allow": ["Bash(ls:*)"]},
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}, // a sound
    ],
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}]
  },
  "x": 1e999
}
"""


def test_hooks_and_settings_of_others_stay_to_the_letter(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    put(plan, WITH_OTHERS)
    backup = install(plan)
    assert backup is not None
    assert backup.read_text() == WITH_OTHERS
    found = json_text.read(text_of(plan))
    before = json_text.read(WITH_OTHERS)
    assert found["hooks"] == before["hooks"] | OURS["claude-code"]["hooks"] | {
        "Stop": [*before["hooks"]["Stop"], group(REMEMBER)]
    }
    for line in WITH_OTHERS.splitlines():
        if "{" not in line and line.strip() not in ("}", "],", "},"):
            assert line in text_of(plan).splitlines()
    assert install(plan) is None
    remove(plan)
    assert text_of(plan) == WITH_OTHERS


def test_ours_are_brought_up_to_date_where_they_are(tmp_path: Path) -> None:
    """An entry from another path or with other options is ours, too; what was added to it stays, and one is enough."""
    plan = plan_of(tmp_path, "claude-code", "user", "--space", "work")
    old = {
        "hooks": {
            "UserPromptSubmit": [
                {
                    "matcher": "",
                    "hooks": [
                        {"type": "command", "command": "/old/python -m nacre hook context", "timeout": 3},
                        {"type": "command", "command": "other"},
                        {"type": "command", "command": "nacre hook context --space x"},
                    ],
                }
            ],
            "PreCompact": [group("nacre hook remember")],
        }
    }
    put(plan, json.dumps(old, indent=1))
    install(plan)
    found = json.loads(text_of(plan))["hooks"]
    ours = {"type": "command", "command": f"{CONTEXT} --space work", "timeout": 3}
    other = {"type": "command", "command": "other"}
    assert found["UserPromptSubmit"] == [{"matcher": "", "hooks": [ours, other]}]
    assert found["Stop"] == [group(f"{REMEMBER} --space work")]
    assert install(plan) is None
    remove(plan)
    assert json.loads(text_of(plan)) == {"hooks": {"UserPromptSubmit": [{"matcher": "", "hooks": [other]}]}}


@pytest.mark.parametrize(
    "command", ["nacre hook context | tee log", "nacre search x", "echo nacre hook context", "my-nacre-hook context"]
)
def test_what_is_built_around_a_hook_belongs_to_the_user(tmp_path: Path, command: str) -> None:
    plan = plan_of(tmp_path)
    text = json.dumps({"hooks": {"Stop": [group(command)]}}, indent=2)
    put(plan, text)
    assert client_hooks.removal(plan).after is None
    install(plan)
    assert json.loads(text_of(plan))["hooks"]["Stop"] == [group(command), group(REMEMBER)]
    remove(plan)
    assert text_of(plan) == text


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        "{",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {"Stop": ["x"]}}',
        '{"hooks": {"PreToolUse": 5}}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str) -> None:
    plan = plan_of(tmp_path)
    put(plan, text)
    for change in (client_hooks.installation, client_hooks.removal):
        with pytest.raises(InvalidInput, match=r"nothing was changed\. Add this entry by hand:\n\{") as error:
            change(plan)
        assert error.value.field == str(plan.path)
        assert REMEMBER in error.value.problem
    assert text_of(plan) == text
    assert [each.name for each in plan.path.parent.iterdir()] == ["settings.json"]


HANDLERS = st.sampled_from(
    [
        {"type": "command", "command": "say done"},
        {"type": "prompt", "prompt": "Is it done?"},
        {"type": "command", "command": 5},
        {"type": "command", "command": "nacre hook remember && echo"},
    ]
)
GROUPS = st.one_of(
    st.builds(lambda inner: {"matcher": "*", "hooks": inner}, st.lists(HANDLERS, min_size=1, max_size=2)),
    st.just({"matcher": "x"}),
    st.just({"hooks": "x"}),
)
HOOKS = st.dictionaries(
    st.sampled_from(["Stop", "SessionEnd", "PreToolUse"]), st.lists(GROUPS, min_size=1, max_size=2), min_size=1
)


@pytest.mark.slow
@settings(max_examples=60)
@given(hooks=st.none() | HOOKS, more=st.booleans(), indent=st.sampled_from([None, 2, "\t"]))
def test_installing_and_removing_leaves_the_file_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, hooks: Any, more: bool, indent: int | str | None
) -> None:
    plan = plan_of(tmp_path_factory.mktemp("root"))
    document = ({"model": "opus"} if more else {}) | ({} if hooks is None else {"hooks": hooks})
    before = json.dumps(document, indent=indent)
    put(plan, before)
    install(plan)
    found = json.loads(text_of(plan))["hooks"]
    assert all(group(command) in found[event] for event, command in plan.commands.items())
    remove(plan)
    assert text_of(plan) == before


# ---------------------------------------------------------------- the command


@pytest.fixture
def cli(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`nacre install` in a home and a project of its own."""
    clear_settings(monkeypatch, tmp_path / "config.toml", "XDG_", "CLAUDE", "CODEX")
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(sys, "platform", "linux")
    return partial(cli, "install")


def test_server_and_hooks_are_set_up_together(cli: Cli, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shown = cli("claude-code", "--hooks", "--space", "work")
    assert shown.code == 0
    server, hooks = shown.out.split("\n\n")
    assert json.loads(server)["mcpServers"]["nacre"]["args"] == ["mcp", "--space", "work"]
    assert json.loads(hooks)["hooks"]["Stop"][0]["hooks"][0]["command"].endswith(" hook remember --space work")
    assert f"This belongs in {home}/.claude/settings.json; use --write to write it." in shown.err
    assert list(home.iterdir()) == []

    written = cli("claude-code", "--hooks", "--write")
    assert written.out == f"nacre written to {home}/.claude.json\nhooks written to {home}/.claude/settings.json\n"
    assert written.err == "Restart claude-code to apply the change.\n"
    again = cli("claude-code", "--hooks", "--write", "--json").json
    assert (again["changed"], again["hooks"]["changed"], again["hooks"]["written"]) == (False, False, False)
    assert again["hooks"]["path"] == f"{home}/.claude/settings.json"

    assert cli("claude-code", "--remove").code == 0  # the server alone
    assert "hook remember" in (home / ".claude" / "settings.json").read_text()
    removed = cli("claude-code", "--hooks", "--remove")
    assert removed.out.splitlines()[:2] == [
        f"nacre was not in {home}/.claude.json",
        f"hooks removed from {home}/.claude/settings.json",
    ]
    assert json.loads((home / ".claude" / "settings.json").read_text()) == {}


def test_nothing_is_written_if_one_of_the_files_cannot_be(cli: Cli, tmp_path: Path) -> None:
    settings_file = tmp_path / "home" / ".claude" / "settings.json"
    settings_file.parent.mkdir()
    settings_file.write_text("{")
    answer = cli("claude-code", "--hooks", "--write")
    assert (answer.code, answer.out) == (2, "")
    assert str(settings_file) in answer.err
    assert not (tmp_path / "home" / ".claude.json").exists()


def test_hooks_of_a_client_that_has_none(cli: Cli) -> None:
    assert "hooks: are not known of zed" in cli("zed", "--hooks").err


def test_codex_is_told_that_it_asks(cli: Cli) -> None:
    assert "Codex runs new hooks after you have trusted them" in cli("codex", "--hooks").err
