"""docs/agents.md says what is so: outputs are those of the command, files those that are written, and hooks are run.

The hooks run as their clients run them: as programs with an event on stdin or as an argument, in another folder.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import nacre
from command_line import Cli
from nacre.cli.group import nacre as commands
from nacre.config import client_config, project_space
from nacre.config.client_config import Place
from nacre.mcp_server.tools import DEFAULT, GROUPS
from nacre.types.memory import Memory
from nacre.types.search import Filter

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
BLOCKS = re.compile(
    r"(?:<!-- (?P<mark>\w+): (?P<name>[\w.-]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```\n", re.DOTALL
)
SCRIPTS = {each["name"]: each["text"] for each in BLOCKS.finditer(TEXT) if each["mark"] == "file"}
HOOKS = {each["name"]: each["text"] for each in BLOCKS.finditer(TEXT) if each["mark"] == "hooks"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="a stand-in for the program is a script with a first line"),
]

# ---------------------------------------------------------------- what the page shows


def test_every_block_is_understood() -> None:
    languages = [each["language"] for each in BLOCKS.finditer(TEXT)]
    assert 2 * len(languages) == TEXT.count("```")
    assert set(languages) == {"console", "json", "toml", "python"}
    for each in BLOCKS.finditer(TEXT):
        match each["language"]:
            case "json":
                json.loads(each["text"])
            case "toml":
                tomllib.loads(each["text"])
            case "python":
                assert each["mark"] == "file"
                ast.parse(each["text"], feature_version=(3, 8))
    assert SCRIPTS.keys() == {"nacre_context.py", "nacre_remember.py"}
    assert HOOKS.keys() == {"claude-code", "codex", "codex-notify", "cursor"}


def test_every_command_on_the_page_is_one() -> None:
    for each in BLOCKS.finditer(TEXT):
        if each["language"] == "console":
            for line in each["text"].splitlines():
                assert line.startswith("$ nacre ")
                assert line.split()[2] in commands.loaded().commands, line


OUTPUTS = re.findall(r"```console\n\$ nacre (install [^\n]*)\n```\n\n```(?:json|toml)\n(.*?)```", TEXT, re.DOTALL)


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
    assert {arguments.split()[1] for arguments, _ in OUTPUTS} == set(client_config._SERVERS)


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
        for client in client_config._SERVERS
        for scope in (("user",) if client in client_config.USER_ONLY else ("user", "project"))
    }


# ---------------------------------------------------------------- running hooks


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Stage:
    """A project, a store, and `nacre` on the path: a stand-in that is the real program and tells when it is done."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "memories.db"
        self.project = root / "project"
        self.done = root / "done"
        for folder in (self.project / ".git", self.done, root / "bin", root / "home", root / "elsewhere"):
            folder.mkdir(parents=True)
        for name, text in SCRIPTS.items():
            (root / name).write_text(text, "utf-8")
        self.program(
            "import os, pathlib, sys, time\nfrom nacre.cli import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
            f"done = pathlib.Path({str(self.done)!r}) / str(time.time_ns())\n"
            "done.with_suffix('.tmp').write_text(str(code))\ndone.with_suffix('.tmp').rename(done)\n"
        )

    def program(self, code: str) -> None:
        path = self.root / "bin" / "nacre"
        path.write_text(f"#!{sys.executable}\n{code}", "utf-8")
        path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.root / "bin"),
            "HOME": str(self.root / "home"),
            "NACRE_CONFIG": str(self.root / "config.toml"),
            "NACRE_STORE": str(self.store),
            "NACRE_EMBEDDER": "none",
        }

    def run(self, script: str, event: Any, *arguments: str, **environment: str) -> Ran:
        """Run a script of the page in a folder that is not the project's."""
        done = subprocess.run(
            [sys.executable, str(self.root / script), *arguments],
            input=(event if isinstance(event, str) else json.dumps(event)).encode(),
            capture_output=True,
            cwd=self.root / "elsewhere",
            env=self.environment | environment,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def wait(self, programs: int) -> None:
        """Until so many programs have ended well: what is remembered is written after its hook has ended."""
        until = time.monotonic() + 60
        while len(ended := [each for each in self.done.iterdir() if not each.suffix]) < programs:
            assert time.monotonic() < until, "nacre did not end"
            time.sleep(0.02)
        assert {each.read_text() for each in ended} == {"0"}
        assert len(ended) == programs

    def remembered(self, session: str, space: str | None = None) -> list[Memory]:
        """All of a session, in its order."""
        with nacre.open(self.store, embedder="none", space=space or project_space.space_of(self.project)) as memory:
            page = memory.timeline(where=Filter(sessions=(session,)), limit=100)
            found = memory.get([each.id for each in page.entries]) if page.entries else ()
        return sorted(found, key=lambda each: each.position or 0)

    def know(self, *texts: str) -> None:
        with nacre.open(self.store, embedder="none", space=project_space.space_of(self.project)) as memory:
            memory.remember_many(texts)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


SESSION = "0d7a8d0e-5b1c-4a53-9f0e-6f5f4c7a2b11"


def claude_event(stage: Stage, name: str, **more: Any) -> dict[str, Any]:
    return {
        "session_id": SESSION,
        "transcript_path": str(stage.root / "transcript.jsonl"),
        "cwd": str(stage.project),
        "permission_mode": "default",
        "hook_event_name": name,
        **more,
    }


def line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": SESSION,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": "5b0c",
        "timestamp": "2026-11-15T22:00:00.000Z",
        **more,
    }


TALK: list[tuple[str, str]] = [
    ("user", "Which port does the gateway use? We had 8080 – naïve, I know."),
    ("assistant", "Let me look at the configuration."),
    ("assistant", "It uses port 9090.\nSince March."),
    ("user", "Then document it, and mention 日本 in the example 🎉"),
    ("assistant", "Done: docs/gateway.md says so now."),
]


def transcript(stage: Stage, talk: Sequence[tuple[str, str]] = TALK) -> None:
    """As Claude Code writes it: a line for each block, with much between what was said."""
    said = [line(kind, text if kind == "user" else [{"type": "text", "text": text}]) for kind, text in talk]
    noise = [
        {"type": "summary", "summary": "Gateway port", "leafUuid": "1"},
        {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}},
        line("user", "<command-name>/model</command-name>"),
        line("user", "<local-command-stdout>Set model to opus</local-command-stdout>"),
        line("user", "Caveat: The messages below were generated by the user while running local commands."),
        line("assistant", [{"type": "thinking", "thinking": "The user wants the port.", "signature": "x"}]),
        line("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/etc/gw"}}]),
        line("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "port: 9090"}]),
        line("user", [{"type": "text", "text": "Base directory for this skill"}], isMeta=True),
        line("assistant", [{"type": "text", "text": "I am another agent."}], isSidechain=True),
        line("user", "This session is being continued from a previous conversation.", isCompactSummary=True),
        line("user", "[Request interrupted by user]"),
        {"type": "system", "subtype": "stop_hook_summary", "content": "hooks ran"},
    ]
    mixed = [
        *noise[:6],
        *(each for pair in zip(said, noise[6:], strict=False) for each in pair),
        *noise[6 + len(said) :],
    ]
    text = "\n".join(["not JSON", "[]", "5", *map(json.dumps, mixed), '{"type": "assistant", "mess'])
    (stage.root / "transcript.jsonl").write_text(text, "utf-8")


def commands_of(client: str) -> dict[str, str]:
    """The script that a client's hooks run, by event."""
    found = {}
    for event, entries in json.loads(HOOKS[client])["hooks"].items():
        (entry,) = entries
        (hook,) = entry.get("hooks", [entry])
        python, path = hook["command"].split(" ", 1)
        assert (python, Path(path).parent) == ("python3", Path("/path/to"))
        assert client == "cursor" or (hook["type"], hook["timeout"]) == ("command", 10)
        found[event] = Path(path).name
    return found


def test_which_events_run_which_script() -> None:
    tells, remembers = "nacre_context.py", "nacre_remember.py"
    assert commands_of("claude-code") == {
        "SessionStart": tells, "UserPromptSubmit": tells, "PreCompact": remembers, "SessionEnd": remembers,
    }  # fmt: skip
    assert commands_of("codex") == {"SessionStart": tells, "UserPromptSubmit": tells}
    assert tomllib.loads(HOOKS["codex-notify"]) == {"notify": ["python3", f"/path/to/{remembers}"]}
    assert json.loads(HOOKS["cursor"])["version"] == 1
    assert commands_of("cursor") == {
        "sessionStart": tells, "beforeSubmitPrompt": remembers, "afterAgentResponse": remembers,
    }  # fmt: skip


# ---------------------------------------------------------------- remembering


def test_claude_code_remembers_what_was_said_and_nothing_else(stage: Stage) -> None:
    transcript(stage)
    event = claude_event(stage, "SessionEnd", reason="prompt_input_exit")
    assert stage.run("nacre_remember.py", event, CLAUDE_PROJECT_DIR=str(stage.project)) == (0, "", "")
    stage.wait(1)
    found = stage.remembered(SESSION)
    assert [(each.metadata["role"], each.text) for each in found] == TALK
    assert [each.position for each in found] == [0, 1, 2, 3, 4]
    assert {(each.kind, each.source, each.session) for each in found} == {("episode", "claude-code", SESSION)}
    assert not any(each.facts for each in found)


def test_claude_code_remembers_each_turn_once(stage: Stage) -> None:
    """Compaction comes first, the end of the session later; and a session may be gone on with."""
    transcript(stage, TALK[:3])
    compacting = claude_event(stage, "PreCompact", trigger="auto", custom_instructions="")
    ending = claude_event(stage, "SessionEnd", reason="other")
    assert stage.run("nacre_remember.py", compacting) == (0, "", "")  # the folder of the event does as well
    stage.wait(1)
    first = stage.remembered(SESSION)
    transcript(stage)
    for count in (2, 3):
        assert stage.run("nacre_remember.py", ending) == (0, "", "")
        stage.wait(count)
    found = stage.remembered(SESSION)
    assert [each.text for each in found] == [text for _, text in TALK]
    assert [each.id for each in found[:3]] == [each.id for each in first]


def test_a_long_or_strange_text_loses_no_other(stage: Stage) -> None:
    transcript(stage, [("user", "a\0b \ud83d half"), ("assistant", "long " * 10_000), ("user", "  "), ("user", "last")])
    stage.run("nacre_remember.py", claude_event(stage, "SessionEnd", reason="other"))
    stage.wait(1)
    texts = [each.text for each in stage.remembered(SESSION)]
    assert texts[0] == "ab ? half"
    assert (texts[1][:10], len(texts[1])) == ("long long ", 20_000)
    assert texts[2:] == ["last"]


def test_codex_remembers_a_turn(stage: Stage) -> None:
    event = {
        "type": "agent-turn-complete",
        "thread-id": "b5f6c1c2-1111-2222-3333-444455556666",
        "turn-id": "12345",
        "cwd": str(stage.project),
        "client": "codex-tui",
        "input-messages": ["Rename `foo` to `bar` and update the callsites."],
        "last-assistant-message": "Rename complete and verified `cargo build` succeeds.",
    }
    assert stage.run("nacre_remember.py", "", json.dumps(event)) == (0, "", "")
    stage.wait(1)
    later = event | {"input-messages": ["Thanks. Commit it."], "last-assistant-message": None}
    assert stage.run("nacre_remember.py", "", json.dumps(later)) == (0, "", "")
    assert stage.run("nacre_remember.py", "", json.dumps(event)) == (0, "", "")
    stage.wait(3)
    found = stage.remembered("b5f6c1c2-1111-2222-3333-444455556666")
    assert [(each.metadata["role"], each.text) for each in found] == [
        ("user", "Rename `foo` to `bar` and update the callsites."),
        ("assistant", "Rename complete and verified `cargo build` succeeds."),
        ("user", "Thanks. Commit it."),
    ]
    assert {each.source for each in found} == {"codex"}


def cursor_event(stage: Stage, name: str, **more: Any) -> dict[str, Any]:
    return {
        "conversation_id": "668320d2-2fd8-4888-b33c-2a466fec86e7",
        "generation_id": "490b90b7-a2ce-4c2c-bb76-cb77b125df2f",
        "model": "default",
        "hook_event_name": name,
        "cursor_version": "3.12.17",
        "workspace_roots": [str(stage.project)],
        "user_email": None,
        **more,
    }


def test_cursor_remembers_prompt_and_answer_and_lets_the_prompt_pass(stage: Stage) -> None:
    asked = cursor_event(stage, "beforeSubmitPrompt", prompt="Fix the bug in main.ts", attachments=[])
    ran = stage.run("nacre_remember.py", asked)
    assert (ran.code, json.loads(ran.out), ran.err) == (0, {"continue": True}, "")
    stage.wait(1)
    answered = cursor_event(stage, "afterAgentResponse", text="Fixed: an index was off by one.")
    assert stage.run("nacre_remember.py", answered) == (0, "", "")
    stage.wait(2)
    found = stage.remembered("668320d2-2fd8-4888-b33c-2a466fec86e7")
    assert [(each.metadata["role"], each.text, each.source) for each in found] == [
        ("user", "Fix the bug in main.ts", "cursor"),
        ("assistant", "Fixed: an index was off by one.", "cursor"),
    ]


def test_a_space_may_be_named(stage: Stage) -> None:
    for name in SCRIPTS:
        script = stage.root / name
        text = script.read_text("utf-8")
        assert text.count('SPACE = ""') == 1
        script.write_text(text.replace('SPACE = ""', 'SPACE = "work"'), "utf-8")
    transcript(stage)
    stage.run("nacre_remember.py", claude_event(stage, "SessionEnd", reason="other"))
    stage.wait(1)
    assert len(stage.remembered(SESSION, "work")) == len(TALK)
    assert stage.remembered(SESSION) == []


# ---------------------------------------------------------------- telling

KNOWN = ("We chose Postgres over MySQL because of its JSON support.", "The gateway moved to port 9090 in March.")


def ask(stage: Stage, prompt: str, session: str = SESSION) -> str:
    ran = stage.run("nacre_context.py", claude_event(stage, "UserPromptSubmit", prompt=prompt, session_id=session))
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_a_prompt_brings_what_is_known_of_it_and_nothing_twice(stage: Stage) -> None:
    stage.know(*KNOWN)
    delivered = ask(stage, "Why did we choose Postgres and not MySQL?")
    assert KNOWN[0] in delivered
    assert KNOWN[1] not in delivered
    assert not delivered.startswith(("{", "["))  # plain text, which no client takes for JSON
    assert ask(stage, "Postgres or MySQL, which did we choose?") == ""
    assert KNOWN[0] in ask(stage, "Postgres or MySQL, which did we choose?", "another session")


@pytest.mark.parametrize(
    "prompt", ["--help", "-x --json", 'the "gateway port', "gateway port\n" * 5_000, "/port gateway"]
)
def test_any_prompt_will_do(stage: Stage, prompt: str) -> None:
    stage.know(*KNOWN)
    delivered = ask(stage, prompt)
    assert "Usage" not in delivered
    assert (KNOWN[1] in delivered) == ("gateway" in prompt)


def test_a_session_begins_with_what_is_new(stage: Stage) -> None:
    stage.know(*KNOWN)
    transcript(stage)
    stage.run("nacre_remember.py", claude_event(stage, "SessionEnd", reason="other"))
    stage.wait(1)
    for source, tells in (("startup", True), ("resume", False), ("compact", True)):
        ran = stage.run("nacre_context.py", claude_event(stage, "SessionStart", source=source, model="opus"))
        assert (ran.code, ran.err) == (0, "")
        assert [text in ran.out for text in KNOWN] == [tells, tells], source
        assert not any(text in ran.out for _, text in TALK)


def test_cursor_is_given_in_json(stage: Stage) -> None:
    stage.know(*KNOWN)
    event = cursor_event(stage, "sessionStart", is_background_agent=False, composer_mode="agent")
    ran = stage.run("nacre_context.py", event)
    assert (ran.code, ran.err) == (0, "")
    said = json.loads(ran.out)
    assert said.keys() == {"additional_context"}
    assert KNOWN[0] in said["additional_context"]


def test_codex_is_given_in_plain_text(stage: Stage) -> None:
    stage.know(*KNOWN)
    event = claude_event(
        stage, "UserPromptSubmit", turn_id="1", model="o9", prompt="gateway port", transcript_path=None
    )
    ran = stage.run("nacre_context.py", event)
    assert (ran.code, ran.err) == (0, "")
    assert KNOWN[1] in ran.out


def test_projects_are_given_nothing_of_each_other(stage: Stage) -> None:
    stage.know(*KNOWN)
    other = stage.root / "other"
    other.mkdir()
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway port", cwd=str(other))
    assert stage.run("nacre_context.py", event) == (0, "", "")
    assert KNOWN[1] in stage.run("nacre_context.py", event, CLAUDE_PROJECT_DIR=str(stage.project / ".git" / "..")).out


def test_what_a_session_was_given_is_not_remembered_as_new(stage: Stage) -> None:
    stage.know(*KNOWN)
    delivered = ask(stage, "Why did we choose Postgres and not MySQL?").strip()
    transcript(stage, [("user", "What do you know?"), ("assistant", delivered), ("assistant", KNOWN[0])])
    stage.run("nacre_remember.py", claude_event(stage, "SessionEnd", reason="other"))
    stage.wait(2)
    assert [each.text for each in stage.remembered(SESSION)] == ["What do you know?"]


# ---------------------------------------------------------------- out of the way

Spoil = Callable[[Stage], Any]
BAD_EVENTS: dict[str, Spoil] = {
    "nothing": lambda _: "",
    "no JSON": lambda _: "{",
    "no object": lambda _: "[]",
    "no fields": lambda _: {},
    "no session": lambda stage: claude_event(stage, "SessionEnd") | {"session_id": None},
    "no transcript": lambda stage: claude_event(stage, "SessionEnd"),
    "no text": lambda _: "\ufffd\x00",
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("event", BAD_EVENTS)
def test_a_hook_never_fails(stage: Stage, script: str, event: str) -> None:
    assert stage.run(script, BAD_EVENTS[event](stage)) == (0, "", "")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_hook_does_without_nacre(stage: Stage, script: str) -> None:
    transcript(stage)
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway")
    (stage.root / "bin" / "nacre").unlink()
    assert stage.run(script, event) == (0, "", "")
    stage.program("import sys\nprint('half an ans', end='')\nsys.exit('error: the disk is full')\n")
    assert stage.run(script, event) == (0, "", "")


def test_telling_makes_no_store(stage: Stage) -> None:
    assert ask(stage, "anything") == ""
    assert not stage.store.exists()


def test_a_hook_does_not_wait_for_ever(stage: Stage) -> None:
    stage.program("import time\ntime.sleep(600)\n")
    script = stage.root / "nacre_context.py"
    text = script.read_text("utf-8")
    assert text.count("timeout=8") == 1
    script.write_text(text.replace("timeout=8", "timeout=0.5"), "utf-8")
    assert stage.run("nacre_context.py", claude_event(stage, "UserPromptSubmit", prompt="gateway")) == (0, "", "")


def test_every_tool_is_on_the_page() -> None:
    """And in its group."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE))
    assert {each.name for each in DEFAULT} <= rows.keys()
    for group, tools in GROUPS.items():
        assert re.findall(r"`(\w+)`", rows[group]) == [each.name for each in tools]
