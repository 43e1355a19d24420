"""The account export of ChatGPT: the branch that was shown last, and of it what a person saw."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import DEEP, HUGE_NUMBER, JSON, is_recognised, most_bytes, read, texts, turns
from nacre.importers.chatgpt import CHATGPT

START = 1_772_443_800.25  # 2026-03-02, 9:30 in UTC
ID = "68c13686-4a3c-8329-940b-479ccb6a079f"


def node(
    name: str,
    parent: str | None,
    role: str = "",
    content: object = None,
    *,
    children: tuple[str, ...] = (),
    at: object = START,
    **more: Any,
) -> dict[str, Any]:
    """A node of the tree; without a role it has no message, as the root."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    message = {
        "id": f"message-{name}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        "channel": None,
        **more,
    }
    return {"id": name, "message": message if role else None, "parent": parent, "children": list(children)}


def conversation(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "title": "Trip to Lisbon",
        "create_time": START - 1,
        "update_time": START + 100,
        "mapping": {each["id"]: each for each in nodes},
        "moderation_results": [],
        "current_node": nodes[-1]["id"],
        "plugin_ids": None,
        "conversation_id": ID,
        "gizmo_id": None,
        "is_archived": False,
        "id": ID,
        **more,
    }


HIDDEN = {"metadata": {"is_visually_hidden_from_conversation": True}}
LISBON = conversation(
    node("root", None, children=("system",)),
    node("system", "root", "system", "", **HIDDEN, children=("profile",), at=None),
    node(
        "profile",
        "system",
        "user",
        {"content_type": "user_editable_context", "user_profile": "Ada", "user_instructions": "Be brief"},
        children=("a",),
    ),
    node("a", "profile", "user", "Which airline flies to Lisbon?", children=("b", "c")),
    node("b", "a", "assistant", "The first answer, which was regenerated."),
    node("c", "a", "assistant", {"content_type": "thoughts", "thoughts": []}, children=("d",)),
    node("d", "c", "assistant", {"content_type": "code", "text": "search('x')"}, recipient="web", children=("e",)),
    node("e", "d", "tool", {"content_type": "text", "parts": ["results " * 1_000]}, children=("f",)),
    node(
        "f",
        "e",
        "assistant",
        "TAP does.\ue200cite\ue202turn0search1\ue202turn0search2\ue201",
        at=START + 60,
        metadata={"model_slug": "gpt-5"},
        children=("g",),
    ),
    node(
        "g",
        "f",
        "user",
        {
            "content_type": "multimodal_text",
            "parts": [
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"},
                {"content_type": "audio_transcription", "text": "Book the window seat.", "direction": "in"},
                "Please.",
            ],
        },
        at=None,
    ),
)
SAID = [
    (ID, 0, "user", "Which airline flies to Lisbon?"),
    (ID, 1, "assistant", "TAP does."),
    (ID, 2, "user", "Book the window seat.\nPlease."),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conversations.json"


def written(file: Path, value: object, **options: Any) -> Path:
    file.write_text(json.dumps(value, **options), "utf-8")
    return file


@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_what_was_said(file: Path, options: dict[str, Any]) -> None:
    written(file, [LISBON], **options)
    assert is_recognised(CHATGPT, file)
    memories, refused = read(CHATGPT, file)
    assert (turns(memories), refused) == (SAID, [])
    assert {(each.kind, each.source, each.extract) for each in memories} == {("episode", "chatgpt", False)}
    first, answer, last = sorted(memories, key=lambda each: each.position or 0)
    assert (first.key, first.summary) == (f"chatgpt:{ID}:message-a", "Trip to Lisbon")
    assert (answer.summary, answer.metadata) == (None, {"role": "assistant", "model": "gpt-5"})
    assert answer.created == last.created == datetime(2026, 3, 2, 9, 31, 0, 250_000, UTC)  # the last has no time


def test_one_conversation_is_enough(file: Path) -> None:
    for value, options in ((LISBON, {}), (LISBON, {"indent": 1}), ({"conversations": [LISBON]}, {})):
        assert turns(read(CHATGPT, written(file, value, **options))[0]) == SAID


@pytest.mark.parametrize("current", [None, "gone", 5, []])
def test_without_a_current_message_the_newest_branch_counts(file: Path, current: object) -> None:
    later = node("h", "c", "user", "Another branch", at=START + 30)
    tree = {
        **LISBON,
        "mapping": {**LISBON["mapping"], "h": later, "g": LISBON["mapping"]["g"]},
        "current_node": current,
    }
    tree["mapping"]["g"]["message"]["create_time"] = START + 90
    try:
        assert turns(read(CHATGPT, written(file, [tree]))[0]) == SAID
    finally:
        tree["mapping"]["g"]["message"]["create_time"] = None


def test_a_grown_conversation_adds_the_rest(file: Path) -> None:
    first, _ = read(CHATGPT, written(file, [LISBON]))
    grown = {
        **LISBON,
        "mapping": {**LISBON["mapping"], "h": node("h", "g", "assistant", "It is booked.", at=START + 200)},
        "current_node": "h",
    }
    again, _ = read(CHATGPT, written(file, [grown]))
    assert [each.text for each in again if each not in first] == ["It is booked."]


# ---------------------------------------------------------------- damage


def test_a_ring_of_parents_has_an_end(file: Path) -> None:
    ring = conversation(node("a", "b", "user", "one"), node("b", "a", "assistant", "two"))
    alone = conversation(node("a", "a", "user", "itself"))
    lost = conversation(node("b", "gone", "user", "without a parent"))
    memories, refused = read(
        CHATGPT, written(file, [ring, {**alone, "conversation_id": "2"}, {**lost, "conversation_id": "3"}])
    )
    assert (texts(memories), refused) == (["itself", "without a parent", "one", "two"], [])


def test_damaged_conversations_cost_no_other(file: Path) -> None:
    good = json.dumps(LISBON)
    bad = ["5", "[]", '"text"', "{}", '{"mapping": 5}', '{"mapping": {"a": }}', DEEP + "]" * len(DEEP), HUGE_NUMBER]
    file.write_text("[" + ",".join([*bad, good]) + "]")
    memories, refused = read(CHATGPT, file)
    assert turns(memories) == SAID
    assert [each.where for each in refused] == [f"item {number}" for number in range(1, 9)]
    assert refused[3].problem == "is not a conversation: it has no object `mapping` of its messages"


def test_damaged_messages_cost_no_other(file: Path) -> None:
    odd = {"x": 5, "y": None, "z": {"message": 5}, "w": {"message": {"author": 5, "content": [], "metadata": "?"}}}
    memories, refused = read(CHATGPT, written(file, [{**LISBON, "mapping": {**LISBON["mapping"], **odd}}]))
    assert turns(memories) == SAID
    assert [each.where for each in refused] == ["item 1, message x", "item 1, message y"]


def test_a_cut_file_gives_what_is_whole(file: Path) -> None:
    second = {**LISBON, "conversation_id": "second"}
    content = json.dumps([LISBON, second])
    file.write_text(content[: content.rindex("Which airline")])
    memories, refused = read(CHATGPT, file)
    assert turns(memories) == SAID
    assert refused[0].where == "item 2"


@pytest.mark.parametrize(
    "strange",
    [
        {"conversation_id": None, "id": None, "title": None, "create_time": None},
        {"conversation_id": 5, "id": [], "title": {}, "create_time": "x"},
        {"conversation_id": "c" * 10_000, "title": "t" * 100_000, "create_time": 1e300},
        {"conversation_id": "\ud800", "title": "a\0b \udc00", "create_time": True},
    ],
)
def test_a_conversation_with_strange_fields_is_kept(file: Path, strange: dict[str, Any]) -> None:
    memories, refused = read(CHATGPT, written(file, [{**LISBON, **strange}]))
    assert (texts(memories), refused) == ([text for *_, text in SAID], [])
    assert all(0 < len(each.session or "") <= 200 for each in memories)
    assert all(len(each.summary or "") <= 10_000 for each in memories)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_other_encodings(file: Path, encoding: str) -> None:
    talk = conversation(node("a", None, "user", "naïve Zoë"))
    file.write_bytes(json.dumps([talk], ensure_ascii=False).encode(encoding))
    assert is_recognised(CHATGPT, file)
    memories, refused = read(CHATGPT, file)
    assert (texts(memories), refused) == (["na\ufffdve Zo\ufffd" if encoding == "latin-1" else "naïve Zoë"], [])


@pytest.mark.slow
@given(st.lists(JSON, max_size=4), JSON, JSON)
def test_no_record_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], one: Any, two: Any
) -> None:
    file = tmp_path_factory.mktemp("t") / "conversations.json"
    trees: list[Any] = [
        {"mapping": {"a": each, "b": {"message": each, "parent": one}}, "current_node": "b"} for each in some
    ]
    trees += [
        conversation(
            node("a", "b", "user", each),
            node(
                "b",
                one,
                "assistant",
                {"content_type": "text", "parts": [two, each]},
                metadata=one,
                recipient=two if two != one else "all",
                at=one,
            ),
        )
        for each in some
    ]
    written(file, [*some, *trees])
    CHATGPT.recognises(file, file.read_bytes())
    read(CHATGPT, file)


@pytest.mark.slow
def test_a_huge_export_takes_little_memory(file: Path) -> None:
    """40 MB in one array, in one line."""
    output = "results " * 50_000
    with file.open("w") as out:
        for number in range(100):
            talk = conversation(
                node("a", None, "user", f"question {number}"),
                node("b", "a", "tool", {"content_type": "text", "parts": [output]}),
                node("c", "b", "assistant", f"answer {number}"),
                conversation_id=f"c{number}",
            )
            out.write(("," if number else "[") + json.dumps(talk))
        out.write("]")
    count, most = most_bytes(CHATGPT, file)
    assert count == 200
    assert most < 12_000_000


def test_others_are_not_recognised(tmp_path: Path) -> None:
    for content in (
        b"",
        b"[]",
        b"{}",
        b'[{"chat_messages": []}]',
        b"mapping",
        b"PK\x03\x04",
        b'{"type":"entity","name":"x"}',
    ):
        path = tmp_path / "x.json"
        path.write_bytes(content)
        assert not CHATGPT.recognises(path, content)
    assert not CHATGPT.recognises(tmp_path / "none", b"")
