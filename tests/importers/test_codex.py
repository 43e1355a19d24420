"""Transcripts of Codex, of the layout since September 2025 and of the one before."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import DEEP, HUGE_NUMBER, JSON, is_recognised, lines, most_bytes, read, texts, turns
from nacre.importers.codex import CODEX

SESSION = "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"
NAME = f"rollout-2026-03-02T09-30-00-{SESSION}.jsonl"


def line(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-02T09:30:{second:02}.250Z", "type": kind, "payload": payload}


def message(second: int, role: str, *texts: str, **more: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return line(second, "response_item", type="message", role=role, content=content, **more)


META = line(
    0,
    "session_meta",
    id=SESSION,
    timestamp="2026-03-02T09:30:00.100Z",
    cwd="/home/ada/gateway",
    originator="codex-tui",
    cli_version="0.137.0",
    source="cli",
    base_instructions={"text": "You are Codex."},
)
IDE = "# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:\n"
TALK: list[dict[str, Any]] = [
    META,
    message(1, "developer", "<permissions instructions>Ask first.</permissions instructions>"),
    message(
        1,
        "user",
        "# AGENTS.md instructions for /home/ada/gateway\n\n<INSTRUCTIONS>Be brief.</INSTRUCTIONS>",
        "<environment_context>\n  <cwd>/home/ada/gateway</cwd>\n</environment_context>",
    ),
    message(2, "user", "Which port does the gateway use?"),
    line(2, "event_msg", type="user_message", message="Which port does the gateway use?", images=[]),
    line(2, "turn_context", cwd="/home/ada/gateway", model="gpt-5-codex", turn_id="t1"),
    line(3, "response_item", type="reasoning", summary=[{"type": "summary_text", "text": "Look."}]),
    message(4, "assistant", "I look at the configuration.", phase="commentary"),
    line(5, "response_item", type="function_call", name="shell", arguments='{"command":"cat a"}', call_id="c"),
    line(6, "response_item", type="function_call_output", call_id="c", output="port = 9090\n" * 1_000),
    line(7, "event_msg", type="agent_message", message="It uses port 9090."),
    message(7, "assistant", "It uses port 9090."),
    line(7, "event_msg", type="token_count", info=None),
    message(9, "user", f"{IDE}Note it in the docs."),
    line(10, "compacted", message="The user asked for the port.", replacement_history=[]),
]
SAID = [
    (SESSION, 0, "user", "Which port does the gateway use?"),
    (SESSION, 1, "assistant", "I look at the configuration."),
    (SESSION, 2, "assistant", "It uses port 9090."),
    (SESSION, 3, "user", "Note it in the docs."),
]
OLD: list[dict[str, Any]] = [
    {"id": SESSION, "timestamp": "2025-06-12T08:00:00.522Z", "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "Sort the list."}]},
    {"type": "reasoning", "summary": [], "encrypted_content": None},
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is sorted."}]},
    {"record_type": "state"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / NAME


def test_what_was_said(file: Path) -> None:
    lines(file, TALK)
    assert is_recognised(CODEX, file)
    memories, refused = read(CODEX, file)
    assert (turns(memories), refused) == (SAID, [])
    assert {(each.kind, each.source, each.extract) for each in memories} == {("episode", "codex", False)}
    by_position = {each.position: each for each in memories}
    assert by_position[0].key == f"codex:{SESSION}:4"
    assert by_position[2].created == datetime(2026, 3, 2, 9, 30, 7, 250_000, UTC)
    assert by_position[2].metadata == {"role": "assistant", "folder": "/home/ada/gateway"}


def test_the_older_layout(file: Path) -> None:
    lines(file, OLD)
    assert is_recognised(CODEX, file)
    memories, refused = read(CODEX, file)
    assert (turns(memories), refused) == (
        [(SESSION, 0, "user", "Sort the list."), (SESSION, 1, "assistant", "It is sorted.")],
        [],
    )
    assert {each.created for each in memories} == {datetime(2025, 6, 12, 8, 0, 0, 522_000, UTC)}


def test_without_its_first_line_the_session_is_named_by_the_file(file: Path) -> None:
    memories, _ = read(CODEX, lines(file, TALK[1:]))
    assert turns(memories) == SAID
    assert {each.metadata.get("folder") for each in memories} == {None}
    memories, _ = read(CODEX, lines(file.with_name("copy.jsonl"), TALK[1:]))
    assert {each.session for each in memories} == {"copy"}


def test_a_session_that_goes_on_from_another_is_its_own(file: Path) -> None:
    parent = line(0, "session_meta", id="parent", cwd="/elsewhere", timestamp="2026-01-01T00:00:00Z")
    memories, _ = read(CODEX, lines(file, [META, parent, *TALK[1:]]))
    assert turns(memories) == SAID


@pytest.mark.parametrize(
    "source",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}},
        {"source": "cli", "thread_source": "subagent"},
    ],
)
def test_other_agents_are_left_out(file: Path, source: dict[str, Any]) -> None:
    meta = {**META, "payload": {**META["payload"], **source}}
    assert read(CODEX, lines(file, [meta, *TALK[1:]])) == ([], [])


def test_the_name_of_a_thread_is_the_summary_of_its_first_turn(file: Path) -> None:
    named = line(11, "event_msg", type="thread_name_updated", thread_id=SESSION, thread_name="The port")
    memories, _ = read(CODEX, lines(file, [*TALK, named]))
    assert {each.position: each.summary for each in memories} == {0: "The port", 1: None, 2: None, 3: None}


def test_a_grown_transcript_adds_the_rest(file: Path) -> None:
    first, _ = read(CODEX, lines(file, TALK))
    again, _ = read(CODEX, file)
    assert again == first
    grown, _ = read(CODEX, lines(file, [*TALK, message(12, "assistant", "Done.")]))
    assert [each.text for each in grown if each not in first] == ["Done."]


def test_the_folder_of_sessions(tmp_path: Path) -> None:
    lines(tmp_path / "2026" / "03" / "02" / NAME, TALK)
    old = "rollout-2025-06-12T08-00-00-old.jsonl"
    lines(tmp_path / "2025" / "06" / "12" / old, [{**OLD[0], "id": "old"}, *OLD[1:], "{broken"])
    lines(tmp_path / "history.jsonl", [{"session_id": SESSION, "ts": 1, "text": "not a transcript"}])
    assert is_recognised(CODEX, tmp_path)
    memories, refused = read(CODEX, tmp_path)
    assert texts(memories) == [*(text for *_, text in SAID), "Sort the list.", "It is sorted."]
    assert [each.where for each in refused] == [f"2025/06/12/{old} line 8"]
    assert CODEX.where is not None
    assert CODEX.where(Path("/home/ada"), {}) == Path("/home/ada/.codex/sessions")
    assert CODEX.where(Path("/home/ada"), {"CODEX_HOME": "/data"}) == Path("/data/sessions")


def test_compressed_transcripts_are_named(tmp_path: Path) -> None:
    lines(tmp_path / NAME, TALK)
    for name in (f"{NAME}.zst", "rollout-2025-06-12T08-00-00-old.jsonl.zst"):
        (tmp_path / name).write_bytes(b"\x28\xb5\x2f\xfd")
    memories, (refusal,) = read(CODEX, tmp_path)
    assert turns(memories) == SAID
    assert refusal == (
        "rollout-2025-06-12T08-00-00-old.jsonl.zst",
        "is compressed; unpack it, for example with `zstd -d`",
    )


# ---------------------------------------------------------------- damage


def test_a_damaged_line_costs_no_other(file: Path) -> None:
    bad = ["not JSON", "[]", "5", DEEP, f'{{"type": "event_msg", "payload": {HUGE_NUMBER}}}']
    contents: list[Any] = [None, 5, "text", [], [None, 5, {"text": []}]]
    odd = [line(3, "response_item", type="message", role="user", content=each) for each in contents]
    memories, refused = read(CODEX, lines(file, [META, *bad, *odd, TALK[3], '{"timestamp": "2026']))
    assert texts(memories) == ["Which port does the gateway use?"]
    assert [each.where for each in refused] == [f"line {number}" for number in (2, 3, 4, 5, 6, 7, 8, 9, 13)]
    assert refused[-2].problem == "is a turn of the user without a list as its content"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_other_encodings(file: Path, encoding: str) -> None:
    lines(file, [META, message(1, "user", "Zoë 人 🎉 \ud83d half")], encoding=encoding)
    assert is_recognised(CODEX, file)
    memories, refused = read(CODEX, file)
    if encoding == "utf-16":  # there it is replaced as it is read
        assert [text[:7] for text in texts(memories)] == ["Zoë 人 🎉"]
    else:  # half a character is no UTF-8
        assert [each.where for each in refused] == ["line 2"]


@pytest.mark.slow
@given(st.lists(JSON, max_size=4), st.sampled_from(["session_meta", "response_item", "event_msg", "message"]), JSON)
def test_no_record_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], kind: str, other: Any
) -> None:
    names = ("type", "role", "content", "id", "timestamp", "cwd", "source", "thread_name")
    payloads = [dict.fromkeys(names, each) | {"type": other, "role": "user"} for each in some]
    written = [json.dumps(each) for each in some]
    written += [json.dumps({"type": kind, "payload": each, "timestamp": other}) for each in (*some, *payloads)]
    written += [
        json.dumps({"type": "message", "role": "user", "content": [{"type": "text", "text": other}, each]})
        for each in some
    ]
    CODEX.recognises(Path("none"), "\n".join(written).encode())
    read(CODEX, lines(tmp_path_factory.mktemp("t") / NAME, written))


def test_white_space_takes_no_quadratic_time(file: Path) -> None:
    spaces = " " * 1_000_000
    memories, _ = read(CODEX, lines(file, [META, message(1, "user", spaces + "# Context from my IDE setup:" + spaces)]))
    assert len(memories) == 1


@pytest.mark.slow
def test_a_huge_transcript_takes_little_memory(file: Path) -> None:
    with file.open("w") as out:
        out.write(json.dumps(META) + "\n")
        for number in range(300):
            result = line(1, "response_item", type="function_call_output", call_id="c", output="x" * 100_000)
            out.write(json.dumps(result) + "\n" + json.dumps(message(2, "assistant", f"turn {number}")) + "\n")
    count, most = most_bytes(CODEX, file)
    assert count == 300
    assert most < 4_000_000


def test_others_are_not_recognised(tmp_path: Path) -> None:
    for content in (b"", b"{}", b'{"type": "message"}', b'{"type": []}', b'{"type":"entity","name":"x"}', b'{"id": 1}'):
        assert not CODEX.recognises(tmp_path / "x.jsonl", content)
    assert not CODEX.recognises(tmp_path, b"")
