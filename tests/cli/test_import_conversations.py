"""`nacre import` of conversations and of what other memory systems keep, and what is found in it afterwards."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from chat_exports import chatgpt_conversation
from command_line import Cli
from importing import lines
from nacre.types.memory import Memory
from nacre.types.search import Filter

SESSION = "5b1f6f6e-3c1d-4a53-9a36-0c8f5d1f2a11"
TALK = [
    ("user", "Which port does the gateway use?"),
    ("assistant", "It uses port 9090."),
    ("user", "Note it in the docs."),
    ("assistant", "Done."),
    ("user", "Thanks. Done."),
    ("assistant", "Done."),
]


def at(number: int) -> datetime:
    return datetime(2026, 3, 2, 9, 30, tzinfo=UTC) + timedelta(minutes=number)


# ---------------------------------------------------------------- the same conversation in each format


def claude_code(path: Path, count: int) -> Path:
    entries = [
        {
            "type": who,
            "uuid": f"u{number}",
            "sessionId": SESSION,
            "timestamp": at(number).isoformat(),
            "message": {"role": who, "content": text},
        }
        for number, (who, text) in enumerate(TALK[:count])
    ]
    return lines(
        path / f"{SESSION}.jsonl", [*entries, {"type": "ai-title", "aiTitle": "The port", "sessionId": SESSION}]
    )


def codex(path: Path, count: int) -> Path:
    meta = {"timestamp": at(0).isoformat(), "type": "session_meta", "payload": {"id": SESSION, "cwd": "/a"}}
    items = [
        {
            "timestamp": at(number).isoformat(),
            "type": "response_item",
            "payload": {"type": "message", "role": who, "content": [{"type": "text", "text": text}]},
        }
        for number, (who, text) in enumerate(TALK[:count])
    ]
    name = {"type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": "The port"}}
    return lines(path / f"rollout-2026-03-02T09-30-00-{SESSION}.jsonl", [meta, *items, name])


def chatgpt(path: Path, count: int) -> Path:
    file = path / "conversations.json"
    file.write_text(json.dumps([chatgpt_conversation(SESSION, "The port", TALK[:count], at(0))]))
    return file


def claude(path: Path, count: int) -> Path:
    messages = [
        {
            "uuid": f"u{number}",
            "sender": "human" if who == "user" else who,
            "text": text,
            "created_at": at(number).isoformat(),
        }
        for number, (who, text) in enumerate(TALK[:count])
    ]
    file = path / "conversations.json"
    file.write_text(json.dumps([{"uuid": SESSION, "name": "The port", "chat_messages": messages}]))
    return file


Writer = Callable[[Path, int], Path]
WRITERS: dict[str, Writer] = {"claude-code": claude_code, "codex": codex, "chatgpt": chatgpt, "claude": claude}


def stored(path: Path, **where: Any) -> list[Memory]:
    with nacre.open(path, embedder="hashing", create=False) as memory:
        return list(memory.every(Filter(**where)))


@pytest.mark.parametrize("name", WRITERS)
def test_a_conversation_comes_in_once(cli: Cli, path: Path, tmp_path: Path, name: str) -> None:
    file = WRITERS[name](tmp_path, 4)
    answer = cli("import", str(file), "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json == {"format": name, "new": 4, "changed": 0, "unchanged": 0, "refused": 0, "forgotten": 0}
    before = stored(path)
    assert cli("import", str(file), "--json").json == {
        "format": name,
        "new": 0,
        "changed": 0,
        "unchanged": 4,
        "refused": 0,
        "forgotten": 0,
    }
    assert stored(path) == before
    found = sorted(before, key=lambda each: each.position or 0)
    assert [(each.metadata["role"], each.text) for each in found] == TALK[:4]
    assert [each.created for each in found] == [at(number) for number in range(4)]
    assert {(each.session, each.kind, each.source) for each in found} == {(SESSION, "episode", name)}
    assert [each.summary for each in found] == ["The port", None, None, None]
    assert not any(each.facts for each in found)


@pytest.mark.parametrize("name", WRITERS)
def test_a_grown_conversation_adds_the_rest(cli: Cli, path: Path, tmp_path: Path, name: str) -> None:
    """Also where somebody says the same again."""
    cli("import", str(WRITERS[name](tmp_path, 3)))
    before = {each.id for each in stored(path)}
    grown = cli("import", str(WRITERS[name](tmp_path, 6)), "--json").json
    assert (grown["new"], grown["changed"], grown["unchanged"]) == (3, 0, 3)
    after = sorted(stored(path), key=lambda each: each.position or 0)
    assert before < {each.id for each in after}
    assert [(each.position, each.text) for each in after] == [(number, text) for number, (_, text) in enumerate(TALK)]


@pytest.mark.parametrize("name", WRITERS)
def test_a_dry_run_shows_what_would_come_in(cli: Cli, path: Path, tmp_path: Path, name: str) -> None:
    file = WRITERS[name](tmp_path, 4)
    shown = cli("import", str(file), "--dry-run")
    assert shown.out.startswith(f"would import 4 memories from {name}")
    assert "1 session" in shown.out
    assert not path.exists()


def test_bad_records_are_listed_and_the_rest_comes_in(cli: Cli, path: Path, tmp_path: Path) -> None:
    file = claude_code(tmp_path, 4)
    file.write_text(file.read_text() + "{broken\n")
    answer = cli("import", str(file))
    assert "imported 4 memories from claude-code" in answer.out
    assert "line 6" in answer.err
    assert len(stored(path)) == 4


def test_what_was_forgotten_does_not_disturb_the_rest(cli: Cli, path: Path, tmp_path: Path) -> None:
    cli("import", str(chatgpt(tmp_path, 4)))
    with nacre.open(path, embedder="hashing") as memory:
        memory.purge(keys=[f"chatgpt:{SESSION}:{SESSION}-1"])
    again = cli("import", str(tmp_path / "conversations.json"), "--json").json
    assert again["new"] + again["unchanged"] == 4


@pytest.mark.parametrize("first", ["hook", "import"])
def test_hooks_and_imports_store_a_turn_once(cli: Cli, path: Path, tmp_path: Path, first: str) -> None:
    """Whichever comes first, and whatever the other one finds later."""
    event = {"hook_event_name": "SessionEnd", "session_id": SESSION, "cwd": str(tmp_path)}

    def bring_in(how: str, count: int) -> None:
        file = claude_code(tmp_path, count)
        said = json.dumps({**event, "transcript_path": str(file)})
        arguments = ["hook", "remember", "--wait", said] if how == "hook" else ["import", str(file)]
        answer = cli(*arguments, "--space", "default")
        assert (answer.code, answer.err) == (0, "")

    bring_in(first, 3)
    bring_in("import" if first == "hook" else "hook", 4)
    bring_in(first, 6)
    found = sorted(stored(path), key=lambda each: each.position or 0)
    assert [(each.position, each.text, each.created) for each in found] == [
        (number, text, at(number)) for number, (_, text) in enumerate(TALK)
    ]
    assert found[0].summary == "The port"


# ---------------------------------------------------------------- other memory systems


def test_mem0(cli: Cli, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    nuts = {"id": "1", "memory": "Allergic to nuts", "user_id": "ada", "created_at": "2024-07-26T10:29:36-07:00"}
    lives = {"source": "ada", "relationship": "lives_in", "target": "berlin"}
    file.write_text(json.dumps({"results": [nuts], "relations": [lives]}))
    for wanted in ((2, 0, 0), (0, 0, 2)):
        done = cli("import", str(file), "--json").json
        assert (done["new"], done["changed"], done["unchanged"]) == wanted
    file.write_text(json.dumps({"results": [{**nuts, "memory": "Allergic to nuts and milk"}], "relations": [lives]}))
    done = cli("import", str(file), "--json").json
    assert (done["new"], done["changed"], done["unchanged"]) == (0, 1, 1)
    with nacre.open(path, embedder="hashing") as memory:
        (found,) = memory.get(keys=["mem0:1"]).memories
        assert (found.text, found.metadata) == ("Allergic to nuts and milk", {"user_id": "ada"})
        (believed,) = memory.facts(relations=True)
        assert (believed.fact.statement, believed.fact.relation) == ("ada lives in berlin", True)


def test_claude_mem(cli: Cli, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "claude-mem.db"
    columns = "id INTEGER PRIMARY KEY, memory_session_id, project, type, title, narrative, created_at, created_at_epoch"
    with sqlite3.connect(file) as database:
        database.execute(f"CREATE TABLE observations ({columns})")
        row = ("agent", "gateway", "bugfix", "Port corrected", "The gateway listens on 9090.", at(0).isoformat(), None)
        database.execute("INSERT INTO observations VALUES (1, ?, ?, ?, ?, ?, ?, ?)", row)
    database.close()
    for wanted in ((1, 0), (0, 1)):
        done = cli("import", str(file), "--json").json
        assert (done["format"], done["new"], done["unchanged"]) == ("claude-mem", *wanted)
    (found,) = stored(path, kinds=("observation",))
    assert (found.text, found.created) == ("Port corrected\nThe gateway listens on 9090.", at(0))


def test_langgraph(cli: Cli, path: Path, tmp_path: Path) -> None:
    """The adapter reads what was imported."""
    store = pytest.importorskip("nacre.integrations.langgraph")
    rows = [
        {"prefix": "users.ada", "key": "food", "value": {"likes": ["tea", 1]}, "created_at": "2026-03-02T09:30:00Z"},
        {"prefix": "users.ada", "key": "a/b", "value": {"n": 10**30}, "updated_at": "2026-03-03T10:00:00Z"},
        {"prefix": "users.boole", "key": "long", "value": {"text": "x" * 100_000}},
    ]
    file = lines(tmp_path / "dump.jsonl", rows)
    for wanted in ((3, 0, 0), (0, 0, 3)):
        done = cli("import", str(file), "--json").json
        assert (done["new"], done["changed"], done["unchanged"]) == wanted
    with store.NacreStore(path, embedder="hashing") as items:
        food, other = items.get(("users", "ada"), "food"), items.get(("users", "ada"), "a/b")
        assert (food.value, food.created_at) == ({"likes": ["tea", 1]}, at(0))
        assert (other.value, other.updated_at) == ({"n": 10**30}, datetime(2026, 3, 3, 10, tzinfo=UTC))
        assert items.get(("users", "boole"), "long").value == rows[2]["value"]
        assert sorted(items.list_namespaces()) == [("users", "ada"), ("users", "boole")]
