"""`nacre remember --file`: one file, several, and folders, with what their front matter says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from command_line import Cli
from nacre.cli import files, render
from nacre.types.memory import Progress

NOTE = """---
title: Kilns
tags: [ovens, hot]
date: 2026-03-01T10:00:00Z
author: Ada
---

The kiln in the cellar is hot.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a folder of notes."""
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes"
    for name, content in {
        "kilns.md": NOTE,
        "Clay.TXT": "Clay comes from the river.\r\nIt is grey.\r\n",
        "deep/er/glaze.rst": "Glaze needs ash.",
        "deep/.hidden/secret.md": "A secret",
        ".draft.md": "A draft",
        "picture.png": "\x89PNG",
        "binary.md": "ab\x00cd",
        "blank.txt": " \n",
    }.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_bytes(content.encode("latin-1"))
    return notes


def stored(cli: Cli, *ids: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cli("get", *ids, "--json").json["memories"]
    return found


def test_a_markdown_file_is_stored_with_what_its_front_matter_says(cli: Cli, folder: Path) -> None:
    assert folder.exists()
    done = cli("remember", "--file", "notes/kilns.md", "--json")
    (memory,) = stored(cli, done.json["id"])
    assert (memory["text"], memory["summary"], memory["tags"]) == (
        "The kiln in the cellar is hot.\n", "Kilns", ["ovens", "hot"],
    )  # fmt: skip
    assert (memory["created"], memory["source"]) == ("2026-03-01T10:00:00Z", "notes/kilns.md")
    assert memory["metadata"] == {"title": "Kilns", "author": "Ada"}
    assert "Ada" not in cli("search", "kiln", "--mode", "keyword").out


def test_options_count_more_than_front_matter(cli: Cli, folder: Path) -> None:
    fields = "--summary Mine --tag own --tag hot --created 2026-04-01T00:00:00Z --source s --meta author=Bo --meta n=1"
    done = cli("remember", "--file", str(folder / "kilns.md"), *fields.split(), "--json")
    (memory,) = stored(cli, done.json["id"])
    assert (memory["summary"], memory["tags"]) == ("Mine", ["ovens", "hot", "own"])
    assert (memory["created"], memory["source"]) == ("2026-04-01T00:00:00Z", "s")
    assert memory["metadata"] == {"title": "Kilns", "author": "Bo", "n": 1}


def test_a_text_file_has_no_front_matter_and_stdin_no_source(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "kilns.txt").write_text(NOTE, "utf-8")
    (memory,) = stored(cli, cli("remember", "--file", str(tmp_path / "kilns.txt"), "--json").json["id"])
    assert (memory["text"], memory["tags"]) == (NOTE, [])
    (memory,) = stored(cli, cli("remember", "--file", "-", "--json", stdin="---\na: 1\n---\nText").json["id"])
    assert (memory["text"], memory["source"]) == ("---\na: 1\n---\nText", None)


def test_a_folder_is_read_to_its_depth(cli: Cli, folder: Path) -> None:
    assert folder.exists()
    answer = cli("remember", "--file", "notes", "--tag", "pottery", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert [each["source"] for each in answer.json["remembered"]] == [
        "notes/Clay.TXT", "notes/kilns.md", "notes/deep/er/glaze.rst",
    ]  # fmt: skip
    assert answer.json["skipped"] == {"hidden": 2, "other": 1, "binary": 1, "empty": 1, "private": 0}
    clay, kiln, _ = stored(cli, *(each["id"] for each in answer.json["remembered"]))
    assert (clay["text"], clay["tags"]) == ("Clay comes from the river.\nIt is grey.\n", ["pottery"])
    assert kiln["tags"] == ["ovens", "hot", "pottery"]
    assert cli("search", "ash", "--source", "notes/deep/*", "--mode", "keyword", "--brief").out.count("Glaze") == 1
    again = cli("remember", "--file", "notes")
    assert again.out == (
        "remembered 0 files (3 already stored, 2 hidden skipped, 1 of other types skipped, 1 binary skipped, "
        "1 empty skipped)\n"
    )


def test_several_files_as_a_shell_writes_them(cli: Cli, folder: Path) -> None:
    """Of `--file *.md`, only the first name belongs to the option."""
    assert folder.exists()
    answer = cli("remember", "--file", "notes/kilns.md", "notes/.draft.md", "notes/deep", "--file", "notes/kilns.md")
    assert (answer.code, answer.out) == (0, "remembered 3 files (1 hidden skipped)\n")
    assert cli("facets", "--json").json["sources"] == {
        "notes/.draft.md": 1, "notes/deep/er/glaze.rst": 1, "notes/kilns.md": 1,
    }  # fmt: skip


def test_one_bad_file_costs_no_other(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tagged.md").write_text(f"---\ntags: [{'x' * 201}]\n---\nToo much", "utf-8")
    monkeypatch.setattr(files, "_BYTES_MAX", 300)
    (folder / "long.md").write_text("x" * 301, "utf-8")
    answer = cli("remember", "--file", "notes", "none.md", "notes/binary.md")
    assert answer.code == 2
    assert answer.out.startswith("remembered 3 files (2 hidden skipped")
    listed = answer.err.splitlines()
    assert listed[:-1] == [
        "notes/long.md: is too long; at most 1,000,000 characters are allowed: split it",
        "none.md: cannot be read (No such file or directory)",
        "notes/binary.md: cannot be read as UTF-8 text",
        "notes/tagged.md: tags: has 201 characters; at most 200 are allowed: split it",
    ]
    assert listed[-1].startswith("error: file: 4 files were not stored; all others were. Repair them")
    error = json.loads(cli("remember", "--file", "notes", "none.md", "--json").err)["error"]
    assert {each["file"]: each["field"] for each in error["errors"]} == {
        "notes/long.md": None, "none.md": None, "notes/tagged.md": "tags",
    }  # fmt: skip


def test_a_single_file_that_is_no_text_is_refused(cli: Cli, folder: Path, path: Path) -> None:
    assert "notes/binary.md cannot be read as UTF-8 text" in cli("remember", "--file", "notes/binary.md").error
    assert "none.md cannot be read (No such file" in cli("remember", "--file", "none.md").error
    assert "with --jsonl, give one file" in cli("remember", "--jsonl", "--file", "a", "b").error
    assert folder.exists()
    assert not path.exists()


def test_a_folder_without_texts_makes_no_store(cli: Cli, tmp_path: Path, path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = cli("remember", "--file", str(tmp_path / "empty"))
    assert (answer.code, answer.out, answer.err) == (0, "remembered 0 files\n", "")
    assert not path.exists()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_in_a_circle_ends(cli: Cli, folder: Path) -> None:
    (folder / "deep" / "circle").symlink_to(folder, target_is_directory=True)
    assert cli("remember", "--file", "notes").out.startswith("remembered 3 files")


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes in folders there")
def test_a_pipe_in_a_folder_is_not_waited_for(cli: Cli, folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    answer = cli("remember", "--file", "notes")
    assert (answer.code, answer.out.split(" (")[0]) == (0, "remembered 3 files")


def test_progress_counts_files(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Progress] = []

    class Bar:
        def __init__(self, _: str) -> None: ...

        def __enter__(self) -> Any:
            return shown.append

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(render, "progress", Bar)
    monkeypatch.setattr(files, "_CHUNK", 2)
    for number in range(3):
        (folder / f"more {number}.md").write_text(f"Note {number}", "utf-8")
    assert cli("remember", "--file", "notes").code == 0
    assert [each.done for each in shown] == [0, 2, 4, 6]
    assert {each.total for each in shown} == {8}
