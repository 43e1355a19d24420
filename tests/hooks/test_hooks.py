"""`nacre hook`, run as clients run it: as a program with an event on stdin or as an argument, in another folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import nacre
from nacre.config import project_space
from nacre.config import settings as settings_module
from nacre.hooks import client, sockets
from nacre.hooks.listener import Listener
from nacre.types.memory import Memory
from nacre.types.search import Filter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this platform has no Unix sockets"),
]

# ---------------------------------------------------------------- running hooks


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Stage:
    """A project, a store, and a folder for sockets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "memories.db"
        self.project = root / "project"
        for folder in (self.project / ".git", root / "home", root / "elsewhere"):
            folder.mkdir(parents=True)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "XDG_RUNTIME_DIR": str(self.root),
            "NACRE_CONFIG": str(self.root / "config.toml"),
            "NACRE_STORE": str(self.store),
            "NACRE_EMBEDDER": "none",
        } | ({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {})

    def context(self, event: Any, *options: str, **environment: str) -> Ran:
        return self._run(["context", *options], event, environment)

    def remember(self, event: Any, *options: str, **environment: str) -> Ran:
        return self._run(["remember", "--wait", *options], event, environment)

    def _run(self, arguments: list[str], event: Any, environment: dict[str, str]) -> Ran:
        """Run a hook in a folder that is not the project's."""
        done = subprocess.run(
            [sys.executable, "-m", "nacre", "hook", *arguments],
            input=(event if isinstance(event, str) else json.dumps(event)).encode(),
            capture_output=True,
            cwd=self.root / "elsewhere",
            env=self.environment | environment,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def server(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A server on the same store, which listens for hooks."""
        process = subprocess.Popen(
            [sys.executable, "-m", "nacre", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            cwd=self.root / "elsewhere",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        started = {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }  # fmt: skip
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": started}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        try:
            wait_until(lambda: self.sockets() != [])
            yield process
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def sockets(self) -> list[Path]:
        return sorted((self.root / "nacre").glob(f"*{sockets.SUFFIX}"))

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


BEGIN = datetime(2026, 11, 15, 22, 0, 0, tzinfo=UTC)
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
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([kind, content]))),
        "timestamp": "2026-11-15T22:00:00.000Z",
        **more,
    }


def at(second: int) -> str:
    """A time as transcripts have it."""
    return f"{BEGIN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.250Z"


TALK: list[tuple[str, str]] = [
    ("user", "Which port does the gateway use? We had 8080 – naïve, I know."),
    ("assistant", "Let me look at the configuration."),
    ("assistant", "It uses port 9090.\nSince March."),
    ("user", "Then document it, and mention 日本 in the example 🎉"),
    ("assistant", "Done: docs/gateway.md says so now."),
]


def transcript(stage: Stage, talk: Sequence[tuple[str, str]] = TALK) -> None:
    """As Claude Code writes it: a line for each block, with much between what was said."""
    said = [
        line(kind, text if kind == "user" else [{"type": "text", "text": text}], timestamp=at(number))
        for number, (kind, text) in enumerate(talk)
    ]
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


# ---------------------------------------------------------------- remembering


def test_claude_code_remembers_what_was_said_and_nothing_else(stage: Stage) -> None:
    transcript(stage)
    event = claude_event(stage, "SessionEnd", reason="prompt_input_exit")
    assert stage.remember(event, CLAUDE_PROJECT_DIR=str(stage.project)) == (0, "", "")
    found = stage.remembered(SESSION)
    assert [(each.metadata["role"], each.text) for each in found] == TALK
    assert [each.position for each in found] == [0, 1, 2, 3, 4]
    assert {(each.kind, each.source, each.session) for each in found} == {("episode", "claude-code", SESSION)}
    assert not any(each.facts for each in found)


def test_a_turn_has_its_own_time_and_key(stage: Stage) -> None:
    transcript(stage)
    stage.remember(claude_event(stage, "Stop", stop_hook_active=False))
    found = stage.remembered(SESSION)
    assert [each.created for each in found] == [
        BEGIN + timedelta(seconds=second, milliseconds=250) for second in range(len(TALK))
    ]
    assert {each.key is not None and each.key.startswith(f"claude-code:{SESSION}:") for each in found} == {True}


def test_claude_code_remembers_each_turn_once(stage: Stage) -> None:
    """Compaction comes first, the end of the session later; and a session may be gone on with."""
    transcript(stage, TALK[:3])
    compacting = claude_event(stage, "PreCompact", trigger="auto", custom_instructions="")
    ending = claude_event(stage, "SessionEnd", reason="other")
    assert stage.remember(compacting) == (0, "", "")  # the folder of the event does as well
    first = stage.remembered(SESSION)
    transcript(stage)
    for _ in range(2):
        assert stage.remember(ending) == (0, "", "")
    found = stage.remembered(SESSION)
    assert [each.text for each in found] == [text for _, text in TALK]
    assert [each.id for each in found[:3]] == [each.id for each in first]


def test_a_long_or_strange_text_loses_no_other(stage: Stage) -> None:
    transcript(stage, [("user", "a\0b \ud83d half"), ("assistant", "long " * 10_000), ("user", "  "), ("user", "last")])
    stage.remember(claude_event(stage, "SessionEnd", reason="other"))
    texts = [each.text for each in stage.remembered(SESSION)]
    assert texts[0] == "ab ? half"
    assert (texts[1][:10], len(texts[1])) == ("long long ", 20_000)
    assert texts[2:] == ["last"]


def test_a_line_of_another_shape_loses_no_other(stage: Stage) -> None:
    contents = ["first", ["a block"], [{"type": "text", "text": None}], 5, None, [[]], [{"type": ["text"]}], "last"]
    lines = [json.dumps(line("user", each)) for each in contents]
    deep = '{"type": "user", "message": {"content": ' + "[" * 100_000
    (stage.root / "transcript.jsonl").write_text("\n".join([deep, *lines]), "utf-8")
    assert stage.remember(claude_event(stage, "SessionEnd", reason="other")) == (0, "", "")
    assert [each.text for each in stage.remembered(SESSION)] == ["first", "a block", "last"]


def test_codex_remembers_what_it_tells_of_a_turn_without_a_transcript(stage: Stage) -> None:
    event = {
        "type": "agent-turn-complete",
        "thread-id": "b5f6c1c2-1111-2222-3333-444455556666",
        "turn-id": "12345",
        "cwd": str(stage.project),
        "client": "codex-tui",
        "input-messages": ["Rename `foo` to `bar` and update the callsites."],
        "last-assistant-message": "Rename complete and verified `cargo build` succeeds.",
    }
    for _ in range(2):
        assert stage.remember("", json.dumps(event)) == (0, "", "")
    later = event | {"turn-id": "12346", "input-messages": ["Thanks. Commit it."], "last-assistant-message": None}
    assert stage.remember("", json.dumps(later)) == (0, "", "")
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
    ran = stage.remember(asked)
    assert (ran.code, json.loads(ran.out), ran.err) == (0, {"continue": True}, "")
    answered = cursor_event(stage, "afterAgentResponse", text="Fixed: an index was off by one.")
    assert stage.remember(answered) == (0, "", "")
    found = stage.remembered("668320d2-2fd8-4888-b33c-2a466fec86e7")
    assert [(each.metadata["role"], each.text, each.source) for each in found] == [
        ("user", "Fix the bug in main.ts", "cursor"),
        ("assistant", "Fixed: an index was off by one.", "cursor"),
    ]


def test_a_space_may_be_named(stage: Stage) -> None:
    transcript(stage)
    stage.remember(claude_event(stage, "SessionEnd", reason="other"), "--space", "work")
    assert len(stage.remembered(SESSION, "work")) == len(TALK)
    assert stage.remembered(SESSION) == []
    asked = claude_event(stage, "UserPromptSubmit", prompt="gateway port", session_id="another")
    assert "9090" in stage.context(asked, "--space", "work").out
    assert "9090" in stage.context(asked | {"session_id": "third"}, NACRE_SPACE="work").out
    assert stage.context(asked) == (0, "", "")


def test_storing_goes_on_when_the_hook_has_ended(stage: Stage) -> None:
    transcript(stage)
    event = claude_event(stage, "SessionEnd", reason="other")
    assert stage._run(["remember"], event, {}) == (0, "", "")
    wait_until(lambda: stage.store.exists() and len(stage.remembered(SESSION)) == len(TALK))


# ---------------------------------------------------------------- telling

KNOWN = ("We chose Postgres over MySQL because of its JSON support.", "The gateway moved to port 9090 in March.")


def ask(stage: Stage, prompt: str, session: str = SESSION) -> str:
    ran = stage.context(claude_event(stage, "UserPromptSubmit", prompt=prompt, session_id=session))
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
    stage.remember(claude_event(stage, "SessionEnd", reason="other"))
    for source, tells in (("startup", True), ("resume", False), ("compact", True)):
        ran = stage.context(claude_event(stage, "SessionStart", source=source, model="opus"))
        assert (ran.code, ran.err) == (0, "")
        assert [text in ran.out for text in KNOWN] == [tells, tells], source
        assert not any(text in ran.out for _, text in TALK)


def test_cursor_is_given_in_json(stage: Stage) -> None:
    stage.know(*KNOWN)
    event = cursor_event(stage, "sessionStart", is_background_agent=False, composer_mode="agent")
    ran = stage.context(event)
    assert (ran.code, ran.err) == (0, "")
    said = json.loads(ran.out)
    assert said.keys() == {"additional_context"}
    assert KNOWN[0] in said["additional_context"]


def test_codex_is_given_in_plain_text(stage: Stage) -> None:
    stage.know(*KNOWN)
    event = claude_event(
        stage, "UserPromptSubmit", turn_id="1", model="o9", prompt="gateway port", transcript_path=None
    )
    ran = stage.context(event)
    assert (ran.code, ran.err) == (0, "")
    assert KNOWN[1] in ran.out


def test_projects_are_given_nothing_of_each_other(stage: Stage) -> None:
    stage.know(*KNOWN)
    other = stage.root / "other"
    other.mkdir()
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway port", cwd=str(other))
    assert stage.context(event) == (0, "", "")
    assert KNOWN[1] in stage.context(event, CLAUDE_PROJECT_DIR=str(stage.project / ".git" / "..")).out


def test_what_a_session_was_given_is_not_remembered_as_new(stage: Stage) -> None:
    """Quoted memories are left out of a turn. A turn that says the same in its own name is one."""
    stage.know(*KNOWN)
    delivered = ask(stage, "Why did we choose Postgres and not MySQL?").strip()
    said = f"{delivered}\nSo Postgres it is."
    transcript(stage, [("user", "What do you know?"), ("assistant", delivered), ("assistant", said)])
    stage.remember(claude_event(stage, "SessionEnd", reason="other"))
    assert [each.text.strip() for each in stage.remembered(SESSION)] == ["What do you know?", "So Postgres it is."]


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
    "no path": lambda stage: claude_event(stage, "SessionEnd", cwd="/a\0b", transcript_path="/a\0b"),
    "half a character": lambda stage: claude_event(stage, "SessionEnd", cwd="/\ud800", transcript_path="/\ud800"),
}


@pytest.mark.parametrize("event", BAD_EVENTS)
def test_a_hook_never_fails(stage: Stage, event: str) -> None:
    stage.know(*KNOWN)
    for ran in (stage.remember(BAD_EVENTS[event](stage)), stage.context(BAD_EVENTS[event](stage))):
        assert ran.code == 0
        assert len(ran.err.splitlines()) <= 1
        assert "Traceback" not in ran.err


@pytest.mark.parametrize("options", [["--bogus"], ["--space"], ["--budget", "many"]])
def test_wrong_options_refuse_no_prompt(stage: Stage, options: list[str]) -> None:
    """Exit code 2 of a hook lets Claude Code and Cursor refuse the prompt."""
    ran = stage.context(claude_event(stage, "UserPromptSubmit", prompt="gateway"), *options)
    assert (ran.code, ran.out) == (0, "")
    assert options[0] in ran.err


def test_a_hook_whose_folder_is_gone_does_not_fail(stage: Stage) -> None:
    stage.know(*KNOWN)
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m nacre hook context"
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway port")
    with stage.server():
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(event),
            text=True,
            capture_output=True,
            cwd=stage.root,
            env=stage.environment,
            check=False,
        )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_hook_says_what_failed(stage: Stage) -> None:
    stage.store.write_text("no database")
    ran = stage.context(claude_event(stage, "UserPromptSubmit", prompt="gateway"))
    assert (ran.code, ran.out) == (0, "")
    assert str(stage.store) in ran.err
    assert "is not JSON" in stage.context("{").err


def test_help_does_not_wait_for_an_event(stage: Stage) -> None:
    command = [sys.executable, "-m", "nacre", "hook", "context", "--help"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=stage.environment) as process:
        assert process.wait(30) == 0  # its input is still open, as on a terminal


def test_telling_makes_no_store(stage: Stage) -> None:
    assert ask(stage, "anything") == ""
    assert not stage.store.exists()
    with stage.server():
        assert ask(stage, "anything") == ""
        assert not stage.store.exists()


# ---------------------------------------------------------------- a server that runs already


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)


def loads_the_engine(stage: Stage, *options: str, **environment: str) -> bool:
    """Whether a hook had to answer by itself."""
    event = json.dumps(claude_event(stage, "UserPromptSubmit", prompt="gateway port", session_id=str(time.time_ns())))
    code = (
        "import sys\nimport nacre.cli\nfrom nacre.cli import main\nnacre.cli._leave = sys.exit\n"
        f"sys.argv = ['nacre', 'hook', 'context', *{list(options)!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(str('nacre.engine.engine' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=event.encode(),
        capture_output=True,
        cwd=stage.root / "elsewhere",
        env=stage.environment | environment,
        check=True,
    )
    assert KNOWN[1] in done.stdout.decode()
    return done.stderr.decode().endswith("True")


def test_a_server_answers_as_the_hook_would(stage: Stage) -> None:
    stage.know(*KNOWN)
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway port")
    alone = stage.context(event | {"session_id": "one"})
    assert KNOWN[1] in alone.out
    assert loads_the_engine(stage)
    with stage.server():
        assert stage.context(event | {"session_id": "two"}) == alone
        assert not loads_the_engine(stage)
        assert ask(stage, "gateway port", "one") == ""  # given before, by the hook itself
        cursor = stage.context(cursor_event(stage, "sessionStart"))
        assert KNOWN[0] in json.loads(cursor.out)["additional_context"]
    assert stage.sockets() == []
    assert ask(stage, "gateway port", "two") == ""  # given before, by the server


def test_projects_are_given_nothing_of_each_other_by_a_server(stage: Stage) -> None:
    stage.know(*KNOWN)
    other = stage.root / "other"
    other.mkdir()
    event = claude_event(stage, "UserPromptSubmit", prompt="gateway port", cwd=str(other))
    with stage.server("--space", project_space.space_of(stage.project)):
        assert stage.context(event) == (0, "", "")
        assert KNOWN[1] in stage.context(event, "--space", project_space.space_of(stage.project)).out


def test_a_server_of_another_store_is_not_asked(stage: Stage) -> None:
    stage.know(*KNOWN)
    with stage.server("--store", str(stage.root / "other.db")):
        assert loads_the_engine(stage)
        assert not (stage.root / "other.db").exists()
    with stage.server("--embedder", "hashing"):
        assert loads_the_engine(stage)
    with stage.server():
        assert not loads_the_engine(stage, "--store", "../memories.db")
        assert loads_the_engine(stage, "--store", "../memories.db", "--json")  # not an option that is passed on


def test_a_server_that_was_killed_is_not_asked(stage: Stage) -> None:
    stage.know(*KNOWN)
    with stage.server() as process:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert stage.sockets() != []
        assert loads_the_engine(stage)
    assert stage.sockets() == []
    with stage.server():
        assert not loads_the_engine(stage)


def test_nobody_else_can_ask(stage: Stage) -> None:
    with stage.server():
        (path,) = stage.sockets()
        assert path.parent.stat().st_mode & 0o077 == 0
        path.parent.chmod(0o755)  # as if another user had made it
        stage.know(*KNOWN)
        assert loads_the_engine(stage)
        with stage_without_private_folder(stage) as process:
            assert process.poll() is None
    assert not path.exists()


@contextmanager
def stage_without_private_folder(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    """A second server does not listen in a folder that others may enter, and works otherwise."""
    before = stage.sockets()
    with stage.server() as process:
        assert stage.sockets() == before
        yield process


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b'{"version": "0"}', b"x" * 2_000_000])
def test_a_strange_request_ends_nothing(stage: Stage, sent: bytes) -> None:
    stage.know(*KNOWN)
    with stage.server():
        (path,) = stage.sockets()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(path))
            try:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # it does not read on
                pass
        assert not loads_the_engine(stage)


# ---------------------------------------------------------------- a server that would answer otherwise


def test_a_server_with_other_settings_is_not_asked(stage: Stage) -> None:
    stage.know(*KNOWN)
    with stage.server():
        for name, value in (
            ("NACRE_DELIVERED_MINUTES", "5"),
            ("NACRE_NAMESPACE_WEIGHTS", "config:0.8"),
            ("NACRE_DECAY_RATES", "state=0.2"),
            ("NACRE_HNSW_EXPANSION_SEARCH", "500"),
        ):
            assert loads_the_engine(stage, **{name: value}), name
        assert not loads_the_engine(stage, NACRE_THREADS="1", NACRE_BUSY_TIMEOUT_MS="70")


def test_a_server_is_not_asked_about_what_only_the_hook_can_read(stage: Stage) -> None:
    """Variables, the home folder and paths from the working folder are those of each process."""
    stage.know(*KNOWN)
    (stage.root / "elsewhere" / "config.toml").write_text('store = "$ROOT/memories.db"\n')
    (stage.root / "other").mkdir()
    with stage.server():
        assert loads_the_engine(stage, NACRE_STORE="$ROOT/memories.db", ROOT=str(stage.root))
        assert loads_the_engine(stage, NACRE_CONFIG="config.toml")
        assert loads_the_engine(stage, NACRE_STORE="", NACRE_CONFIG="config.toml", ROOT=str(stage.root))
        absolute = str(stage.root / "elsewhere" / "config.toml")
        assert loads_the_engine(stage, NACRE_STORE="", NACRE_CONFIG=absolute, ROOT=str(stage.root))
        assert loads_the_engine(stage, HOME=str(stage.root / "other"))
        assert loads_the_engine(stage, "--space", "folder:../project")
        assert not loads_the_engine(stage, "--space", f"folder:{stage.project}")


def test_a_server_whose_store_was_replaced_is_not_asked(stage: Stage) -> None:
    stage.know(*KNOWN)
    with stage.server():
        assert not loads_the_engine(stage)
        for each in stage.root.glob("memories.db*"):
            each.rename(stage.root / f"old-{each.name}")
        assert ask(stage, "gateway port") == ""
        stage.know(*KNOWN)
        assert loads_the_engine(stage)


@contextmanager
def hanging(folder: Path, count: int) -> Iterator[None]:
    """Servers that listen and never answer."""
    with ExitStack() as stack:
        for number in range(count):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listening.bind(str(folder / f"9999999{number}.sock"))
            listening.listen()
        yield


def test_servers_that_hang_cost_five_seconds_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is given what the others have left, and the last ones a moment: they may be quick."""
    folder = sockets.folder({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert folder is not None
    Path(folder).mkdir(0o700)
    now = [100.0]
    waits: list[float] = []

    def waiting(self: socket.socket, seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds
        self.setblocking(False)

    monkeypatch.setattr(socket.socket, "settimeout", waiting)
    monkeypatch.setattr(client, "time", SimpleNamespace(time=time.time, monotonic=lambda: now[0]))
    with hanging(Path(folder), 4):
        assert client.ask((), b"{}", {"XDG_RUNTIME_DIR": str(tmp_path)}) is None
    assert waits == [5, 0.01, 0.01, 0.01]


def test_a_hook_answers_by_itself_when_servers_hang(stage: Stage) -> None:
    stage.know(*KNOWN)
    with stage.server() as process, hanging(stage.sockets()[0].parent, 3):
        process.send_signal(signal.SIGSTOP)
        try:
            assert KNOWN[1] in ask(stage, "gateway port", "one")
        finally:
            process.send_signal(signal.SIGCONT)
    with nacre.open(stage.store, embedder="none", space=project_space.space_of(stage.project)) as memory:
        assert len(memory.receipts(session="one")) == 1  # the server was too late to say anything


def test_a_server_that_does_not_listen_yet_is_not_taken_for_a_killed_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(stage.root))
    seen: list[list[Path]] = []
    listen = socket.socket.listen

    def listening(self: socket.socket) -> None:
        assert client.ask((), b"{}", os.environ) is None
        seen.append(stage.sockets())
        listen(self)

    monkeypatch.setattr(socket.socket, "listen", listening)
    settings = settings_module.load({"store": str(stage.store)}, stage.environment)
    listener = Listener(settings, lambda _: pytest.fail("nobody asks"))
    listener.start()
    assert seen == [[]]
    assert [each.name for each in stage.sockets()] == [f"{os.getpid()}{sockets.SUFFIX}"]
    listener.close()
    assert list((stage.root / "nacre").iterdir()) == []


def test_a_folder_with_a_long_name_is_passed_over(stage: Stage) -> None:
    """The path of a socket has at most 108 bytes, on some platforms fewer."""
    stage.know(*KNOWN)
    long = stage.root / ("x" * 120)
    (long / "nacre").mkdir(parents=True, mode=0o700)
    (long / "nacre" / "1.sock").touch()
    assert loads_the_engine(stage, XDG_RUNTIME_DIR=str(long))
