"""Markdown and plain texts: what a note says, what it is linked with, and what is no note."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from importing import most_bytes
from nacre.importers import notes
from nacre.importers.importer import Refused, Source
from nacre.importers.notes import MARKDOWN_NOTES, PLAIN_TEXT
from nacre.types.facts import NewEntity
from nacre.types.memory import NewMemory

NOTE = """---
aliases: [Ash glaze, celadon]
tags:
  - craft/glaze
created: 2026-03-01T10:00:00Z
author: Ada
---
Glazes need #ash/wood, see [[Kiln|the kiln]] and [[rivers/Clay#Grey]].

```python
# not a heading, no #tag, no [[Link]]
```
"""
LONG = "# Pots\n\nAll pots.\n\n" + "".join(
    f"## {name}\n\n{name} is {'round ' * 150}.\n\n" for name in ("Bowl", "Vase", "Bowl")
)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "Vault"
    for name, content in {
        "Glaze.md": NOTE,
        "deep/Kiln.md": "It is hot: [Glaze](../Glaze.md) ![[kiln.png]] [[Kiln]]",
        "plain.txt": "Clay comes\r\nfrom the river #not-a-tag.",
        ".obsidian/workspace.md": "hidden",
        ".trash/old.md": "hidden",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def read(path: Path, **options: str) -> list[NewMemory]:
    return [each for each in all_of(path, **options) if isinstance(each, NewMemory)]


def all_of(path: Path, **options: str) -> list[NewMemory | Refused]:
    importer = MARKDOWN_NOTES if path.is_dir() or path.suffix == ".md" else PLAIN_TEXT
    return list(importer.read(Source(path, **options)))  # type: ignore[arg-type]


def linked(memory: NewMemory) -> list[tuple[str, str, str]]:
    assert all(each.relation and each.single is False for each in memory.facts)
    return [(each.subject, each.predicate, each.object) for each in memory.facts]


def test_a_note_is_a_memory_with_what_it_says_of_itself(vault: Path) -> None:
    (glaze, plain, kiln) = read(vault)
    assert (glaze.key, glaze.summary, glaze.source) == (
        "file:Vault/Glaze.md", "Glaze", os.path.realpath(vault / "Glaze.md"),
    )  # fmt: skip
    assert glaze.text.startswith("Glazes need #ash/wood, see [[Kiln|the kiln]]")
    assert glaze.text.endswith("# not a heading, no #tag, no [[Link]]\n```\n")
    assert glaze.tags == ("craft/glaze", "craft", "ash/wood", "ash")
    assert glaze.created == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert glaze.metadata == {"title": "Glaze", "aliases": ["Ash glaze", "celadon"], "author": "Ada"}
    assert linked(glaze) == [("Glaze", "links to", "Kiln"), ("Glaze", "links to", "Clay")]
    assert glaze.entities == [
        NewEntity(name="Glaze", aliases=("Ash glaze", "celadon")), NewEntity(name="Kiln"), NewEntity(name="Clay"),
    ]  # fmt: skip
    assert linked(kiln) == [("Kiln", "links to", "Glaze")]  # no picture, not itself
    assert (plain.key, plain.text, plain.tags) == (
        "file:Vault/plain.txt", "Clay comes\nfrom the river #not-a-tag.", (),
    )  # fmt: skip
    assert plain.created == datetime.fromtimestamp((vault / "plain.txt").stat().st_mtime, UTC)


def test_a_long_note_is_a_memory_for_each_section(tmp_path: Path) -> None:
    file = tmp_path / "pots.md"
    file.write_text(LONG)
    found = read(file)
    assert [each.key for each in found] == [
        "file:pots.md", "file:pots.md#Pots > Bowl", "file:pots.md#Pots > Vase", "file:pots.md#Pots > Bowl#2",
    ]  # fmt: skip
    assert [each.summary for each in found] == [
        "pots > Pots", "pots > Pots > Bowl", "pots > Pots > Vase", "pots > Pots > Bowl"
    ]  # fmt: skip
    assert [each.metadata.get("headings") for each in found][:2] == [["Pots"], ["Pots", "Bowl"]]
    assert "".join(each.text for each in found) == LONG


def test_it_stays_the_same_memory_when_it_becomes_long(tmp_path: Path) -> None:
    file = tmp_path / "pots.md"
    file.write_text("# Pots\n\nAll pots.")
    (short,) = read(file)
    file.write_text(LONG)
    assert read(file)[0].key == short.key == "file:pots.md"


def test_a_long_text_is_cut_at_paragraphs(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    text = "".join(f"Paragraph {number} of clay.\n\n" for number in range(3_000))
    file.write_text(text)
    found = read(file)
    assert "".join(each.text for each in found) == text
    assert [each.key for each in found] == ["file:log.txt", "file:log.txt#2", "file:log.txt#3", "file:log.txt#4"]
    assert all(each.text.startswith("Paragraph") and len(each.text) <= 20_000 for each in found)


def test_a_text_that_is_read_in_pieces_is_cut_in_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.txt"
    file.write_text("".join(f"Paragraph {number} of grey clay, café.\n\n" for number in range(5_000)), "utf-8")
    whole = [each.text for each in read(file)]
    monkeypatch.setattr(notes, "FILE_BYTES_MAX", 1_000)
    monkeypatch.setattr(notes, "_READ_CHARS", 777)
    assert [each.text for each in read(file)] == whole
    file.write_text("a <private>b</private>" + "c" * 2_000)
    assert [each.problem for each in all_of(file) if isinstance(each, Refused)] == [
        "has private parts and is too long to tell where these end; split it"
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"caf\xe9", "cannot be read as UTF-8 text; name its encoding with --encoding, such as cp1252"),
        (b"a\x00b", "cannot be read as UTF-8 text; name its encoding with --encoding, such as cp1252"),
        (b"<private>all</private>", "is private as a whole; nothing of it is stored"),
        (b"x" * 4_000_001, "is too long; at most 4,000,000 bytes are allowed: split it"),
    ],
)
def test_what_is_no_note_is_refused_and_costs_no_other(vault: Path, content: bytes, problem: str) -> None:
    (vault / "a.md").write_bytes(content)
    assert [each for each in all_of(vault) if isinstance(each, Refused)] == [Refused("a.md", problem)]
    assert len(read(vault)) == 3


def test_encodings(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    for encoding in ("utf-8-sig", "utf-16"):
        file.write_bytes("---\ntags: grün\n---\nZoë".encode(encoding))
        (found,) = read(file)
        assert (found.text, found.tags) == ("Zoë", ("grün",))
    file.write_bytes("café".encode("cp1252"))
    assert read(file, encoding="cp1252")[0].text == "café"


def test_empty_notes_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(" \n")
    (tmp_path / "b.txt").write_text("")
    assert all_of(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="names are bytes elsewhere only")
def test_names_may_be_anything(tmp_path: Path) -> None:
    for name in ("a#b%.md", "new\nline.md", "x" * 240 + ".md", " .md", os.fsdecode(b"caf\xe9.md")):
        (tmp_path / name).write_text("Tea, [[Tea]]")
    found = read(tmp_path, name="n")
    assert all(each.summary and each.summary.strip() for each in found)
    keys = [each.key or "" for each in found]
    assert {"file:n/a%23b%25.md", "file:n/new\nline.md", "file:n/caf\ufffd.md"} <= {*keys}
    assert all(len(each) <= 310 for each in keys)
    assert all(len(name) <= 200 for each in found for fact in each.facts for name in (fact.subject, fact.object))


@pytest.mark.parametrize(
    "front",
    [
        "a: &a [x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]",  # grows tenfold with each line in readers of all YAML
        "a: " + "[" * 5_000,
        "a:\n" + "  - " * 3_000,
        "tags: " + ", ".join(f"t{number}" for number in range(2_000)),
        "aliases: [" + ", ".join(f"name {number}" for number in range(1_000)) + "]",
        "title: " + "x" * 15_000,
        "!!python/object/apply:os.system ['true']: 1",
    ],
)
def test_hostile_front_matter_is_bounded(tmp_path: Path, front: str) -> None:
    file = tmp_path / "note.md"
    file.write_text(f"---\n{front}\n---\nTea " + " ".join(f"#u{number} [[N{number}]]" for number in range(2_000)))
    for found in read(file):
        assert len(found.tags) <= 100
        assert len(found.entities) <= 100
        assert len(found.facts) <= 1_000
        assert len(found.summary or "") <= 10_000


def test_deep_headings_and_quotations_end(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    for text in (
        "#" * 100_000 + "\n" + "x" * 3_000,
        "".join(f"{'#' * (1 + number % 6)} h{number}\ntext\n" for number in range(20_000)),
        "`" * 100_000 + " `a` " + "``b`` " * 20_000,
        "[[" * 100_000,
        "[a](" * 100_000,
        "> " * 100_000,
        "# " + " " * 200_000 + "x",
    ):
        file.write_text(text)
        assert "".join(each.text for each in read(file)).strip() == text.strip()


@pytest.mark.slow
def test_a_large_text_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    with file.open("w") as out:
        for number in range(30):
            out.write(f"Entry {number} of clay and ash.\n\n" * 32_000)
    assert file.stat().st_size > 25_000_000
    assert most_bytes(PLAIN_TEXT, file)[1] < 8_000_000


def test_formats_are_recognised(vault: Path, tmp_path: Path) -> None:
    assert MARKDOWN_NOTES.recognises(vault, b"")
    assert MARKDOWN_NOTES.recognises(vault / "Glaze.md", b"")
    assert not MARKDOWN_NOTES.recognises(tmp_path / "a.txt", b"text")
    assert PLAIN_TEXT.recognises(tmp_path / "a.TXT", b"text")
    assert not PLAIN_TEXT.recognises(tmp_path / "a.txt", b"te\x00xt")
    (vault / "deep/Kiln.md").unlink()
    (vault / "Glaze.md").unlink()
    assert not MARKDOWN_NOTES.recognises(vault, b"")
    assert PLAIN_TEXT.recognises(vault, b"")
