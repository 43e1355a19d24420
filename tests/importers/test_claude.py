"""The account export of Claude: conversations, and what Claude remembers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import DEEP, HUGE_NUMBER, JSON, is_recognised, lines, most_bytes, read, texts, turns
from nacre.importers.claude import CLAUDE

ID = "8f3a2b1c-0000-4000-8000-000000000001"


def message(name: str, sender: str, *blocks: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    shown = [each if isinstance(each, str) else "This block is not supported." for each in blocks]
    return {
        "uuid": name,
        "text": "\n".join(shown),
        "content": content,
        "sender": sender,
        "created_at": "2026-02-14T10:04:22.000000Z",
        "updated_at": "2026-02-14T10:04:22.000000Z",
        "attachments": [],
        "files": [],
        **more,
    }


def conversation(*messages: object, **more: Any) -> dict[str, Any]:
    return {
        "uuid": ID,
        "name": "Metrics in Postgres",
        "summary": "",
        "created_at": "2026-02-14T10:04:00.000000Z",
        "updated_at": "2026-02-14T10:22:41.000000Z",
        "account": {"uuid": "account-1"},
        "chat_messages": list(messages),
        **more,
    }


METRICS = conversation(
    message(
        "a",
        "human",
        "Where do we keep metrics?",
        attachments=[{"file_name": "plan.txt", "extracted_content": "x" * 500}],
    ),
    message(
        "b",
        "assistant",
        {"type": "thinking", "thinking": "Two stores."},
        {"type": "tool_use", "name": "web_search", "input": {"query": "metrics"}},
        {"type": "tool_result", "name": "web_search", "content": []},
        "In Postgres.",
        created_at="2026-02-14T10:05:00.500000Z",
    ),
    message("c", "human", "And logs?", created_at=None),
)
SAID = [
    (ID, 0, "user", "Where do we keep metrics?"),
    (ID, 1, "assistant", "In Postgres."),
    (ID, 2, "user", "And logs?"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conversations.json"


def written(file: Path, value: object, **options: Any) -> Path:
    file.write_text(json.dumps(value, **options), "utf-8")
    return file


@pytest.mark.parametrize("options", [{}, {"indent": 2}])
def test_what_was_said(file: Path, options: dict[str, Any]) -> None:
    written(file, [METRICS], **options)
    assert is_recognised(CLAUDE, file)
    memories, refused = read(CLAUDE, file)
    assert (turns(memories), refused) == (SAID, [])
    first, answer, last = sorted(memories, key=lambda each: each.position or 0)
    assert (first.key, first.summary, first.source) == (f"claude:{ID}:a", "Metrics in Postgres", "claude")
    assert first.metadata == {"role": "user", "files": ["plan.txt"]}
    assert answer.created == last.created == datetime(2026, 2, 14, 10, 5, 0, 500_000, UTC)


def test_json_lines_and_one_conversation(file: Path) -> None:
    second = {**METRICS, "uuid": "x2", "chat_messages": [message("d", "human", "Another one")]}
    lines(file, [METRICS, second])
    assert is_recognised(CLAUDE, file)
    memories, refused = read(CLAUDE, file)
    assert (turns(memories), refused) == ([*SAID, ("x2", 0, "user", "Another one")], [])
    for value, options in ((METRICS, {}), (METRICS, {"indent": 1})):
        assert turns(read(CLAUDE, written(file, value, **options))[0]) == SAID


def test_an_older_export_has_only_texts(file: Path) -> None:
    old = [
        {"uuid": each["uuid"], "sender": each["sender"], "text": each["content"][-1]["text"]}
        for each in METRICS["chat_messages"]
    ]
    memories, _ = read(CLAUDE, written(file, [conversation(*old)]))
    assert turns(memories) == SAID
    assert {each.created for each in memories} == {datetime(2026, 2, 14, 10, 4, tzinfo=UTC)}


@pytest.mark.parametrize("leaf", [None, "c2"])
def test_of_branches_the_last_counts(file: Path, leaf: str | None) -> None:
    tree = [
        message("a", "human", "one", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
        message("b", "assistant", "two, first", parent_message_uuid="a"),
        message("b2", "assistant", "two, again", parent_message_uuid="a"),
        message("c2", "human", "three", parent_message_uuid="b2"),
    ]
    memories, _ = read(CLAUDE, written(file, [conversation(*tree, current_leaf_message_uuid=leaf)]))
    assert texts(memories) == ["one", "two, again", "three"]


def test_a_grown_conversation_adds_the_rest(file: Path) -> None:
    first, _ = read(CLAUDE, written(file, [METRICS]))
    grown = conversation(*METRICS["chat_messages"], message("d", "assistant", "In files."))
    again, _ = read(CLAUDE, written(file, [grown]))
    assert [each.text for each in again if each not in first] == ["In files."]


def test_what_claude_remembers(tmp_path: Path) -> None:
    written(tmp_path / "conversations.json", [METRICS])
    account = {
        "conversations_memory": "Ada runs the metrics.",
        "project_memories": {"p1": "Uses Postgres.", "p2": " "},
        "account_uuid": "account-1",
    }
    written(tmp_path / "memories.json", [account])
    written(tmp_path / "users.json", [{"uuid": "account-1", "full_name": "Ada"}])
    assert is_recognised(CLAUDE, tmp_path)
    memories, refused = read(CLAUDE, tmp_path)
    remembered = [(each.key, each.text, each.metadata) for each in memories if each.session is None]
    assert refused == []
    assert remembered == [
        ("claude:memory:account-1", "Ada runs the metrics.", {}),
        ("claude:memory:account-1:p1", "Uses Postgres.", {"project": "p1"}),
    ]
    assert turns(each for each in memories if each.session) == SAID


# ---------------------------------------------------------------- damage


def test_damage_costs_no_other(file: Path) -> None:
    bad = ["5", "[]", "{}", '{"chat_messages": 5}', '{"chat_messages": [,]}', DEEP + "]" * len(DEEP), HUGE_NUMBER]
    good = conversation(*METRICS["chat_messages"][:1], 5, None, *METRICS["chat_messages"][1:], {}, {"sender": 5})
    file.write_text("[" + ",".join([*bad, json.dumps(good)]) + "]")
    memories, refused = read(CLAUDE, file)
    assert turns(memories) == SAID
    assert [each.where for each in refused] == [
        *(f"item {at}" for at in range(1, 8)),
        "item 8, message 2",
        "item 8, message 3",
    ]
    assert refused[2].problem == "is not a conversation: it has no list `chat_messages`"


def test_a_ring_of_parents_has_an_end(file: Path) -> None:
    ring = [
        message("a", "human", "one", parent_message_uuid="b"),
        message("b", "assistant", "two", parent_message_uuid="a"),
    ]
    memories, refused = read(CLAUDE, written(file, [conversation(*ring)]))
    assert (texts(memories), refused) == (["one", "two"], [])


@pytest.mark.parametrize("strange", [None, 5, [], {}, "x" * 100_000, "\ud800\0"])
def test_a_conversation_with_strange_fields_is_kept(file: Path, strange: object) -> None:
    names = ("uuid", "name", "created_at", "current_leaf_message_uuid")
    odd = {**message("a", "human", "hello"), **dict.fromkeys(("uuid", "created_at", "files", "attachments"), strange)}
    (memory,), refused = read(CLAUDE, written(file, [conversation(odd, **dict.fromkeys(names, strange))]))
    assert (memory.text, refused) == ("hello", [])
    assert 0 < len(memory.session or "") <= 200


@pytest.mark.slow
@given(st.lists(JSON, max_size=4), JSON, JSON)
def test_no_record_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], one: Any, two: Any
) -> None:
    file = tmp_path_factory.mktemp("t") / "conversations.json"
    names = ("uuid", "parent_message_uuid", "created_at", "text", "content", "files")
    talks = [
        conversation(
            *some,
            {**dict.fromkeys(names, one), "sender": "human"},
            {**dict.fromkeys(names, two), "sender": "human"},
            uuid=each,
        )
        for each in some
    ]
    kept = [{"conversations_memory": one, "project_memories": each, "account_uuid": two} for each in some]
    written(file, [*some, *talks, *kept])
    CLAUDE.recognises(file, file.read_bytes())
    read(CLAUDE, file)


@pytest.mark.slow
def test_a_huge_export_takes_little_memory(file: Path) -> None:
    result = {"type": "tool_result", "content": "x" * 400_000}
    with file.open("w") as out:
        for number in range(80):
            talk = conversation(
                message("a", "human", f"question {number}"),
                message("b", "assistant", result, "answer"),
                uuid=f"c{number}",
            )
            out.write(("," if number else "[") + json.dumps(talk))
        out.write("]")
    count, most = most_bytes(CLAUDE, file)
    assert count == 160
    assert most < 12_000_000


def test_others_are_not_recognised(tmp_path: Path) -> None:
    for content in (b"", b"[]", b'[{"mapping": {}}]', b"chat_messages", b"PK\x03\x04"):
        path = tmp_path / "x.json"
        path.write_bytes(content)
        assert not CLAUDE.recognises(path, content)
    assert not CLAUDE.recognises(tmp_path / "none", b"")
