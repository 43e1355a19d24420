"""Remembering at the end of every answer: what is new of a transcript, once, in bounded time, as an import reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.engine.engine import Nacre
from nacre.hooks import transcripts
from nacre.hooks.transcripts import Stored, Transcript
from nacre.importers import claude_code, codex
from nacre.importers.importer import Source
from nacre.types.memory import Memory, NewMemory
from nacre.types.search import Filter

SESSION = "0d7a8d0e-5b1c-4a53-9f0e-6f5f4c7a2b11"
BEGIN = datetime(2026, 11, 15, 22, 0, 0, tzinfo=UTC)
CLIENTS = ["claude-code", "codex"]


def stamp(number: int) -> str:
    return f"{BEGIN + timedelta(seconds=number):%Y-%m-%dT%H:%M:%S}.000Z"


def claude_record(number: int, text: str, **more: Any) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {
        "parentUuid": f"u{number - 1}",
        "isSidechain": False,
        "cwd": "/home/ada/tea",
        "sessionId": SESSION,
        "type": role,
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
        "uuid": f"u{number}",
        "timestamp": stamp(number),
        **more,
    }


def codex_records(number: int, text: str) -> list[dict[str, Any]]:
    """A turn, and the event beside it that says the same."""
    role = "assistant" if number % 2 else "user"
    block = {"type": "output_text" if number % 2 else "input_text", "text": text}
    event = {"type": "agent_message" if number % 2 else "user_message", "message": text}
    message = {"type": "message", "role": role, "content": [block]}
    return [
        {"timestamp": stamp(number), "type": "event_msg", "payload": event},
        {"timestamp": stamp(number), "type": "response_item", "payload": message},
    ]


def codex_head() -> dict[str, Any]:
    meta = {
        "id": SESSION,
        "timestamp": stamp(0),
        "cwd": "/home/ada/tea",
        "originator": "codex_cli_rs",
        "source": "cli",
    }
    return {"timestamp": stamp(0), "type": "session_meta", "payload": meta}


def records(client: str, first: int, texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts, first):
        found = codex_records(number, text) if client == "codex" else [claude_record(number, text)]
        yield from (json.dumps(each) + "\n" for each in found)


class Session:
    """A transcript that grows, and a store."""

    def __init__(self, root: Path, client: str) -> None:
        self.client = client
        self.path = root / (f"rollout-2026-11-15T22-00-00-{SESSION}.jsonl" if client == "codex" else f"{SESSION}.jsonl")
        self.path.write_text(json.dumps(codex_head()) + "\n" if client == "codex" else "", "utf-8")
        self.store = root / "memories.db"
        self.count = 0

    def grow(self, *texts: str) -> None:
        self.append("".join(records(self.client, self.count, texts)))
        self.count += len(texts)

    def append(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    @property
    def transcript(self) -> Transcript:
        return Transcript(self.client, SESSION, self.path)

    def open(self) -> Nacre:
        return nacre.open(self.store, embedder="none")

    def remember(self) -> list[str]:
        """What a hook remembers. Returns the texts that it read."""
        with self.open() as memory:
            new = list(transcripts.turns(self.transcript, transcripts.last(self.transcript, memory)))
            memory.remember_many(new)
        return [each.text for each in sorted(new, key=lambda each: each.position or 0)]

    def stored(self) -> list[Memory]:
        with self.open() as memory:
            return sorted(memory.every(Filter(sessions=(SESSION,))), key=lambda each: each.position or 0)

    def imported(self) -> list[NewMemory]:
        reader = codex if self.client == "codex" else claude_code
        return [each for each in reader.read(Source(self.path)) if isinstance(each, NewMemory)]


@pytest.fixture(params=CLIENTS)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    return Session(tmp_path, request.param)


def test_a_session_that_grows_is_read_on_from_where_it_was(session: Session) -> None:
    session.grow("Which port?", "It is 9090.")
    assert session.remember() == ["Which port?", "It is 9090."]
    assert session.remember() == []
    session.grow("Thanks.", "You are welcome.", "Thanks.")
    assert session.remember() == ["Thanks.", "You are welcome.", "Thanks."]
    assert session.remember() == []
    found = session.stored()
    assert [(each.position, each.text, each.created) for each in found] == [
        (number, text, BEGIN + timedelta(seconds=number))
        for number, text in enumerate(["Which port?", "It is 9090.", "Thanks.", "You are welcome.", "Thanks."])
    ]


def test_an_import_of_the_same_transcript_changes_nothing(session: Session) -> None:
    """Read in pieces or as a whole, a turn is the same memory, down to its metadata."""
    for number in range(5):
        session.grow(f"question {number}", f"answer {number}")
        session.remember()
    with session.open() as memory:
        receipts = memory.remember_many(session.imported())
    assert {(each.duplicate, each.changed) for each in receipts} == {(True, ())}
    assert len(session.stored()) == len(receipts) == 10


def test_a_hook_after_an_import_reads_what_is_new(session: Session) -> None:
    session.grow("a question", "an answer")
    with session.open() as memory:
        memory.remember_many(session.imported())
    session.grow("another question")
    assert session.remember() == ["another question"]
    assert [each.position for each in session.stored()] == [0, 1, 2]


def test_what_was_forgotten_does_not_come_back(session: Session) -> None:
    session.grow("a question", "a slip")
    session.remember()
    with session.open() as memory:
        memory.forget([session.stored()[-1].id])
    session.grow("another question")
    assert session.remember() == ["another question"]
    assert [(each.position, each.text) for each in session.stored()] == [(0, "a question"), (2, "another question")]


def test_a_line_that_is_being_written_is_read_when_it_is_complete(session: Session) -> None:
    session.grow("first")
    session.remember()
    new = "".join(records(session.client, 1, ["second"]))
    session.append(new[:-20])
    assert session.remember() == []
    session.append(new[-20:])
    assert session.remember() == ["second"]


def test_the_last_line_may_have_no_end_yet(session: Session) -> None:
    session.grow("first", "second")
    session.path.write_bytes(session.path.read_bytes().rstrip(b"\n"))
    session.remember()
    assert session.remember() == []
    session.append("\n")
    session.grow("third")
    assert session.remember() == ["third"]
    assert [each.text for each in session.stored()] == ["first", "second", "third"]


@pytest.mark.parametrize(
    "damage", [b"\xc3\x28 \x00 not text\n", b"{\n", b"[]\n", b"5\n", b"[" * 100_000 + b"\n", b'{"type": "user"}\n']
)
def test_damage_loses_no_turn(session: Session, damage: bytes) -> None:
    """Before, between and after what is known."""
    begin = session.path.read_bytes()
    session.path.write_bytes(begin + damage)
    session.grow("first")
    session.remember()
    with session.path.open("ab") as file:
        file.write(damage)
    session.grow("second")
    assert session.remember() == ["second"]
    assert session.remember() == []
    assert [each.text for each in session.stored()] == ["first", "second"]
    assert [each.key for each in session.stored()] == [each.key for each in by_position(session.imported())]


def by_position(memories: list[NewMemory]) -> list[NewMemory]:
    return sorted(memories, key=lambda each: each.position or 0)


def test_a_transcript_that_was_written_anew_is_read_as_a_whole(session: Session) -> None:
    session.grow("first", "second")
    session.remember()
    old = session.path.read_text()
    session.path.write_text(old.replace('"u', '"v') if session.client == "claude-code" else old.split("\n")[0] + "\n")
    assert set(session.remember()) <= {"first", "second"}
    session.path.unlink()
    with session.open() as memory, pytest.raises(FileNotFoundError):
        list(transcripts.turns(session.transcript, transcripts.last(session.transcript, memory)))


def test_a_record_that_names_the_last_turn_is_not_that_turn(tmp_path: Path) -> None:
    """The next record has it as its parent, and a later one may quote it."""
    session = Session(tmp_path, "claude-code")
    session.grow("first")
    session.remember()
    session.append(json.dumps(claude_record(1, 'the uuid is "u0"')) + "\n")
    session.append(json.dumps({"type": "progress", "parentUuid": "u0", "uuid": "p", "sessionId": SESSION}) + "\n")
    assert session.remember() == ['the uuid is "u0"']


def test_turns_without_an_id_have_that_of_their_line(tmp_path: Path) -> None:
    """As an import gives them, so that it finds the same memories."""
    session = Session(tmp_path, "claude-code")
    for number in range(4):
        session.append(
            json.dumps(claude_record(number, f"turn {number}", uuid=None if number % 2 else f"u{number}")) + "\n"
        )
        session.remember()
    with session.open() as memory:
        receipts = memory.remember_many(session.imported())
    assert {(each.duplicate, each.changed) for each in receipts} == {(True, ())}


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_lines_are_found_however_the_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(transcripts, "BLOCK_BYTES", block)
    session = Session(tmp_path, "claude-code")
    session.grow(*(f"turn {number} " * (number + 1) for number in range(6)))
    for number in range(6):
        found = list(transcripts.turns(session.transcript, Stored(f"u{number}", number)))
        assert [each.position for each in by_position(found)] == list(range(number + 1, 6))


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_of_a_huge_transcript_only_the_end_is_parsed(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 MB of tool results and turns, of which the last answer is new."""
    session = Session(tmp_path, client)
    session.grow("first")
    result = {"type": "progress", "uuid": "p", "sessionId": SESSION, "data": "x" * 100_000}
    wrapped = {
        "timestamp": stamp(1),
        "type": "response_item",
        "payload": {"type": "function_call_output", "output": result},
    }
    bulk = json.dumps(wrapped if client == "codex" else result) + "\n"
    session.append(bulk * 600)
    session.grow("the last question")
    session.remember()
    session.grow("the last answer")
    parsed: list[int] = []
    loads = json.loads

    def counted(text: str | bytes, **options: Any) -> Any:
        parsed.append(len(text))
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", counted)
    with session.open() as memory:
        last = transcripts.last(session.transcript, memory)
    parsed.clear()
    new = list(transcripts.turns(session.transcript, last))
    monkeypatch.undo()
    assert [(each.text, each.position) for each in new] == [("the last answer", 2)]
    assert sum(parsed) < 5_000


# ---------------------------------------------------------------- as clients run it


def run(root: Path, event: Any, *options: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "nacre", "hook", "remember", "--wait", *options],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=root,
        env={
            "HOME": str(root),
            "NACRE_CONFIG": str(root / "config.toml"),
            "NACRE_STORE": str(root / "memories.db"),
            "NACRE_EMBEDDER": "none",
        }
        | {name: each for name, each in os.environ.items() if name == "PYTHONPATH"}
        | environment,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def texts_in(root: Path, space: str = "s") -> list[str]:
    with nacre.open(root / "memories.db", embedder="none", space=space) as memory:
        return [each.text for each in sorted(memory.every(), key=lambda each: each.position or 0)]


@pytest.mark.slow
def test_codex_remembers_at_each_stop(tmp_path: Path) -> None:
    session = Session(tmp_path, "codex")
    event = {
        "session_id": SESSION, "transcript_path": str(session.path), "cwd": str(tmp_path), "hook_event_name": "Stop",
        "model": "gpt", "permission_mode": "default", "turn_id": "1", "stop_hook_active": False,
        "last_assistant_message": "an answer",
    }  # fmt: skip
    session.grow("a question", "an answer")
    for _ in range(2):
        assert run(tmp_path, event, "--space", "s") == (0, "", "")
    session.grow("another question", "another answer")
    assert run(tmp_path, event, "--space", "s") == (0, "", "")
    assert texts_in(tmp_path) == ["a question", "an answer", "another question", "another answer"]
    code, out, err = run(tmp_path, event | {"transcript_path": None}, "--space", "s")  # a session that is not kept
    assert (code, out, len(err.splitlines())) == (0, "", 1)


@pytest.mark.slow
def test_a_notification_of_codex_and_its_hook_store_the_same(tmp_path: Path) -> None:
    """It names no transcript, so that of the session is looked up where Codex keeps them."""
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "15"
    folder.mkdir(parents=True)
    session = Session(folder, "codex")
    session.grow("a question", "an answer")
    event = {
        "type": "agent-turn-complete", "thread-id": SESSION, "turn-id": "1", "cwd": str(tmp_path),
        "input-messages": ["a question"], "last-assistant-message": "an answer",
    }  # fmt: skip
    stop = {
        "session_id": SESSION,
        "transcript_path": str(session.path),
        "cwd": str(tmp_path),
        "hook_event_name": "Stop",
    }
    for each in (event, stop, event):
        assert run(tmp_path, each, "--space", "s", CODEX_HOME=str(tmp_path / "codex")) == (0, "", "")
    assert texts_in(tmp_path) == ["a question", "an answer"]


@pytest.mark.slow
def test_a_turn_that_cannot_be_stored_costs_no_other(tmp_path: Path) -> None:
    session = Session(tmp_path, "claude-code")
    session.append(
        json.dumps(claude_record(0, "from a year that nobody stores", timestamp="0001-01-01T00:00:00Z")) + "\n"
    )
    session.append(json.dumps(claude_record(1, "x" * 19_000)) + "\n")
    session.append(json.dumps(claude_record(2, "last")) + "\n")
    event = {
        "session_id": SESSION,
        "transcript_path": str(session.path),
        "hook_event_name": "Stop",
        "cwd": str(tmp_path),
    }
    code, out, err = run(tmp_path, event, "--space", "s", NACRE_TEXT_CHARS_MAX="10000")
    assert (code, out) == (0, "")
    assert "text" in err
    assert texts_in(tmp_path)[-1] == "last"


@pytest.mark.slow
def test_no_store_is_made_for_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path, "claude-code")
    event = {
        "session_id": SESSION,
        "transcript_path": str(session.path),
        "hook_event_name": "Stop",
        "cwd": str(tmp_path),
    }
    assert run(tmp_path, event) == (0, "", "")
    assert not (tmp_path / "memories.db").exists()
