"""The database of claude-mem, of version 12 and of its first versions."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from importing import is_recognised, read
from nacre.importers.claude_mem import CLAUDE_MEM

SESSION = "5b1f6f6e-3c1d-4a53-9a36-0c8f5d1f2a11"
AT = ("2026-03-02T09:30:00.000Z", 1_772_443_800_000)
WHEN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

_AT = "created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL"
_ID = "id INTEGER PRIMARY KEY AUTOINCREMENT"
SCHEMA = f"""
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions ({_ID}, content_session_id TEXT UNIQUE NOT NULL,
  memory_session_id TEXT UNIQUE, project TEXT NOT NULL, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL);
CREATE TABLE observations ({_ID}, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, content_hash TEXT, {_AT});
CREATE TABLE session_summaries ({_ID}, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT,
  notes TEXT, prompt_number INTEGER, {_AT});
CREATE TABLE user_prompts ({_ID}, content_session_id TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, {_AT});
CREATE TABLE directives ({_ID}, scope TEXT NOT NULL DEFAULT 'global', project TEXT,
  content TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active', {_AT});
"""
OLD_SCHEMA = f"""
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT, sdk_session_id TEXT, project TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL, project TEXT NOT NULL,
  text TEXT NOT NULL, type TEXT NOT NULL, {_AT});
"""


def insert(database: sqlite3.Connection, table: str, **values: object) -> None:
    row = {**values, "created_at": AT[0], "created_at_epoch": AT[1]}
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "claude-mem.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = wal")
    database.executescript(SCHEMA)
    database.execute("INSERT INTO sdk_sessions VALUES (1, ?, 'agent-1', 'gateway', ?, ?)", (SESSION, *AT))
    insert(
        database,
        "observations",
        memory_session_id="agent-1",
        project="gateway",
        type="bugfix",
        title="Port of the gateway corrected",
        subtitle="It was 8080.",
        narrative="The gateway listens on port 9090 since March.",
        facts=json.dumps(["gateway.toml has port 9090", 5]),
        concepts=json.dumps(["gotcha", "bugfix"]),
        files_read=json.dumps(["gateway.toml"]),
        files_modified="[]",
    )
    learned = {"request": "Fix the port", "investigated": "The configuration", "learned": "It is 9090"}
    others = {"completed": "", "next_steps": None, "notes": "None"}
    insert(database, "session_summaries", memory_session_id="agent-1", project="gateway", **learned, **others)
    insert(database, "user_prompts", content_session_id=SESSION, prompt_number=1, prompt_text="Which port is it?")
    insert(database, "user_prompts", content_session_id=SESSION, prompt_number=2, prompt_text="<private>abc</private>")
    insert(database, "directives", project="gateway", content="Never use port 8080.", status="active")
    insert(database, "directives", content="Old rule.", status="retired")
    database.commit()
    database.close()
    return path


def test_what_it_has(path: Path) -> None:
    assert is_recognised(CLAUDE_MEM, path)
    (observed, summary, prompt, directive), refused = read(CLAUDE_MEM, path)
    assert refused == []
    assert observed.text == (
        "Port of the gateway corrected\nIt was 8080.\nThe gateway listens on port 9090 since March.\n"
        "- gateway.toml has port 9090"
    )
    assert (observed.kind, observed.summary, observed.session) == (
        "observation",
        "Port of the gateway corrected",
        SESSION,
    )
    assert (observed.tags, observed.key) == (("bugfix", "gotcha"), "claude-mem:observation:agent-1:1")
    assert observed.metadata == {"project": "gateway", "files_read": ["gateway.toml"]}
    assert {each.created for each in (observed, summary, prompt, directive)} == {WHEN}
    assert summary.text == "Request: Fix the port\nInvestigated: The configuration\nLearned: It is 9090\nNotes: None"
    assert (summary.kind, summary.summary, summary.session) == ("summary", "Fix the port", SESSION)
    assert (prompt.text, prompt.kind, prompt.session, prompt.position) == ("Which port is it?", "episode", SESSION, 1)
    assert (prompt.key, prompt.metadata) == (f"claude-mem:prompt:{SESSION}:1", {"role": "user"})
    assert (directive.text, directive.kind) == ("Never use port 8080.", "instruction")


def test_it_is_not_changed(path: Path) -> None:
    before = path.read_bytes()
    assert read(CLAUDE_MEM, path) == read(CLAUDE_MEM, path)
    assert path.read_bytes() == before


def test_what_is_new_is_added(path: Path) -> None:
    before, _ = read(CLAUDE_MEM, path)
    with sqlite3.connect(path) as database:
        insert(database, "user_prompts", content_session_id=SESSION, prompt_number=3, prompt_text="And the host?")
    database.close()
    after, _ = read(CLAUDE_MEM, path)
    assert [each.text for each in after if each not in before] == ["And the host?"]


def test_the_first_versions(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        database.executescript(OLD_SCHEMA)
        database.execute("INSERT INTO sdk_sessions VALUES (1, ?, 'agent-1', 'gateway')", (SESSION,))
        insert(
            database,
            "observations",
            sdk_session_id="agent-1",
            project="gateway",
            text="Port is 9090.",
            type="discovery",
        )
        insert(
            database, "observations", sdk_session_id="agent-2", project="gateway", text="Host is a.", type="discovery"
        )
    database.close()
    assert is_recognised(CLAUDE_MEM, path)
    memories, refused = read(CLAUDE_MEM, path)
    assert [(each.text, each.session, each.tags) for each in memories] == [
        ("Port is 9090.", SESSION, ("discovery",)),
        ("Host is a.", "agent-2", ("discovery",)),
    ]
    assert refused == []


def test_strange_values(path: Path) -> None:
    """SQLite keeps any type in any column."""
    with sqlite3.connect(path) as database:
        for strange in (b"\xff\xfe", 5, 1.5, "{broken", "[" * 100_000, "9" * 10_000, '{"a": 1}', "x" * 100_000, "\0"):
            names = ("memory_session_id", "project", "type", "title", "text", "facts", "concepts", "files_read")
            insert(database, "observations", **dict.fromkeys(names, strange))
            insert(database, "user_prompts", content_session_id="s", prompt_number=strange, prompt_text="hello")
    database.close()
    memories, refused = read(CLAUDE_MEM, path)
    assert refused == []
    assert sum(each.text == "hello" for each in memories) == 9
    assert all(len(each.session or "") <= 200 and len(each.summary or "") <= 10_000 for each in memories)
    assert all(len(tag) <= 200 for each in memories for tag in each.tags)


def test_where_it_is() -> None:
    assert CLAUDE_MEM.where is not None
    assert CLAUDE_MEM.where(Path("/home/ada"), {}) == Path("/home/ada/.claude-mem/claude-mem.db")
