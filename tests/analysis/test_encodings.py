"""A byte order mark is no part of a text, wherever a text is read."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Answer, Cli
from nacre.analysis import encodings
from nacre.cli import run

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")  # the last one with a mark, too
TEXT = "Grüße, 東京 🚲\nand a second line"


@pytest.fixture
def piped(cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """A command with these bytes as its input."""
    assert cli is not None

    def call(content: bytes, *arguments: str) -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        code = run(list(arguments))
        return Answer(code, *capsys.readouterr())

    return call


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-16-be"])
def test_a_mark_is_skipped(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    assert encodings.decoded(f"{mark}{TEXT}".encode(encoding)) == TEXT


@pytest.mark.parametrize("content", [b"caf\xe9", b"\xff\xfe\x00", b"\xff\xfe\x00\xd8"])
def test_no_other_encoding_is_guessed(content: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        encodings.decoded(content)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_files_and_pipes_are_remembered_without_it(
    cli: Cli, piped: Callable[..., Answer], tmp_path: Path, encoding: str
) -> None:
    note = tmp_path / "note.md"
    note.write_bytes(f"---\ntags: [tea]\n---\n{TEXT}\r\n".encode(encoding))
    from_file = cli("remember", "--file", str(note), "--json").json["id"]
    assert cli("get", from_file, "--json").json["memories"][0]["tags"] == ["tea"]
    for arguments in (("remember", "--json"), ("remember", "--file", "-", "--json", "--kind", "other")):
        from_pipe = json.loads(piped(f"piped {TEXT}\r\n".encode(encoding), *arguments).out)["id"]
        assert cli("get", from_pipe, "--json").json["memories"][0]["text"] == f"piped {TEXT}\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lines_are_read_without_it(cli: Cli, piped: Callable[..., Answer], tmp_path: Path, encoding: str) -> None:
    lines = "".join(json.dumps({"text": each}, ensure_ascii=False) + "\n" for each in ("one \u2028 line", "two 🚲"))
    file = tmp_path / "lines.jsonl"
    file.write_bytes(lines.encode(encoding))
    assert cli("remember", "--jsonl", "--file", str(file)).out.startswith("remembered 2 (0 ")
    assert piped(lines.encode(encoding), "remember", "--jsonl").out.startswith("remembered 0 (2 ")
    graph = json.dumps({"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]})
    file.write_bytes(f"{graph}\n".encode(encoding))
    assert cli("import", str(file), "--json").json["observations"] == 1
    memory_id = cli("search", "two", "--json").json["hits"][0]["id"]
    file.write_bytes(f"two\t{memory_id}\n".encode(encoding))
    assert cli("eval", str(file), "--json").code == 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_settings_and_lenses_are_read_without_it(cli: Cli, path: Path, encoding: str) -> None:
    path.with_name("config.toml").write_bytes('space = "house"\r\n'.encode(encoding))
    assert "house" in cli("config").out
    file = path.with_name("lens.json")
    file.write_bytes('{"limit": 3}'.encode(encoding))
    assert cli("lens", "save", "short", "--file", str(file)).code == 0
