"""Account exports in a zip archive or in a folder, as they come and as somebody may make them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import is_recognised, most_bytes, read, texts
from nacre.importers import archives
from nacre.importers.chatgpt import CHATGPT
from nacre.importers.claude import CLAUDE


def chat(name: str, said: str) -> dict[str, object]:
    message = {
        "id": "m",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": [said]},
        "create_time": 1.0,
    }
    return {"title": "T", "mapping": {"a": {"message": message, "parent": None}}, "current_node": "a", "id": name}


def claude_chat(name: str, said: str) -> dict[str, object]:
    return {"uuid": name, "name": "T", "chat_messages": [{"uuid": "m", "sender": "human", "text": said}]}


FILES = {
    "export/conversations-000.json": json.dumps([chat("1", "first"), chat("2", "second")]),
    "export/conversations-001.json": json.dumps([chat("3", "third")]),
    "export/shared_conversations.json": json.dumps([{"id": "x", "mapping": {}}]),
    "export/user.json": "{}",
    "export/chat.html": "<html>",
    "__MACOSX/export/conversations-000.json": "junk",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return zipped(tmp_path / "export.zip", FILES)


def zipped(path: Path, files: dict[str, str], packed: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packed) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


def test_an_archive_of_several_files(archive: Path) -> None:
    assert is_recognised(CHATGPT, archive)
    memories, refused = read(CHATGPT, archive)
    assert (texts(memories), refused) == (["first", "second", "third"], [])


def test_an_unpacked_archive(tmp_path: Path) -> None:
    for name, content in FILES.items():
        if not name.startswith("__"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
    assert is_recognised(CHATGPT, tmp_path)
    assert texts(read(CHATGPT, tmp_path)[0]) == ["first", "second", "third"]
    assert texts(read(CHATGPT, tmp_path / "export")[0]) == ["first", "second", "third"]
    assert texts(read(CHATGPT, tmp_path / "export" / "conversations-001.json")[0]) == ["third"]


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack(tmp_path: Path, packed: int) -> None:
    path = zipped(tmp_path / "e.zip", {"conversations.json": json.dumps([claude_chat("1", "hello")])}, packed)
    assert is_recognised(CLAUDE, path)
    assert texts(read(CLAUDE, path)[0]) == ["hello"]


def test_an_encoding_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "e.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("conversations.json", json.dumps([chat("1", "Zoë")], ensure_ascii=False).encode("utf-16"))
    assert is_recognised(CHATGPT, path)
    assert texts(read(CHATGPT, path)[0]) == ["Zoë"]


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    path = zipped(tmp_path / "e.zip", {"a/conversations.json": json.dumps([chat("1", "hello"), 5])})
    assert [each.where for each in read(CHATGPT, path)[1]] == ["conversations.json item 2"]


# ---------------------------------------------------------------- hostile


def test_names_lead_nowhere(tmp_path: Path) -> None:
    """An archive may name any path. Nothing is written, and nothing but the archive is read."""
    inner = tmp_path / "in"
    inner.mkdir()
    outside = {
        "../conversations.json": json.dumps([chat("1", "above")]),
        "/etc/conversations-1.json": json.dumps([chat("2", "root")]),
        "..\\..\\conversations-2.json": json.dumps([chat("3", "windows")]),
        "a/\x1b[31mconversations.json": json.dumps([chat("4", "not named so")]),
    }
    path = zipped(inner / "e.zip", outside)
    memories, refused = read(CHATGPT, path)
    assert texts(memories)[:2] == ["above", "root"]
    assert refused == []
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["e.zip", "in"]


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_RATIO_FROM_BYTES", 1_000_000)
    start = json.dumps([chat("1", "hello")])[:-1]
    files = {
        "conversations.json": start + " " * 40_000_000 + "]",
        "conversations-1.json": json.dumps([chat("2", "rest")]),
    }
    path = zipped(tmp_path / "e.zip", files)
    memories, refused = read(CHATGPT, path)
    assert texts(memories) == ["hello", "rest"]
    (refusal,) = refused
    assert refusal.where == "conversations.json"
    assert refusal.problem.startswith(
        "cannot be unpacked (it is more than 200 times as long as it is packed; unpack it"
    )


@pytest.mark.slow
def test_a_large_archive_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "e.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out,
        out.open("conversations.json", "w", force_zip64=True) as file,
    ):
        for number in range(100):
            talk = json.dumps({**chat(str(number), f"said {number}"), "other": " ".join(map(str, range(60_000)))})
            file.write((("," if number else "[") + talk).encode())
        file.write(b"]")
    count, most = most_bytes(CHATGPT, path)
    assert count == 100
    assert most < 12_000_000


def test_an_encrypted_archive_is_refused(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (start := content.find(mark, start)) >= 0:
            flags = struct.unpack_from("<H", content, start + at)[0]
            struct.pack_into("<H", content, start + at, flags | 1)
            start += 4
    archive.write_bytes(content)
    memories, refused = read(CHATGPT, archive)
    assert memories == []
    assert [each.where for each in refused] == ["conversations-000.json", "conversations-001.json"]
    assert "encrypted" in refused[0].problem


def test_a_cut_archive_is_refused(archive: Path) -> None:
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    assert not CHATGPT.recognises(archive, archive.read_bytes())
    memories, (refusal,) = read(CHATGPT, archive)
    assert (memories, refusal.where) == ([], "archive")


@pytest.mark.slow
@given(st.data())
def test_a_damaged_archive_raises_nothing(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("t") / "e.zip"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", data.draw(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]))) as out:
        out.writestr("conversations.json", json.dumps([chat("1", "hello " * 50)] * 3))
    content = bytearray(made.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    CHATGPT.recognises(path, bytes(content))
    read(CHATGPT, path)
