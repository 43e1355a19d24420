"""A basic-memory project: its observations and relations, and what else its notes say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from importing import is_recognised, read
from nacre.importers.basic_memory import BASIC_MEMORY, Observation, Relation, split
from nacre.importers.importer import Refused
from nacre.types.facts import NewEntity, NewFact

NOTE = """---
title: Kiln Design
type: spec
permalink: specs/kiln-design
tags: [ovens, heat]
created: 2026-03-01T10:00:00Z
---

# Kiln Design

The kiln burns [[Olive Wood]].

## Observations
- [decision] Walls of two layers #build (after the crack)
- [fact] Hot at 1200 °C
- [ ] a task
- [x] done
- [00:12] a word of a transcript

```
- [fact] code
```

## Relations
- part_of [[Workshop]]
- "depends on" [[specs/clay|Clay]] (the grey one)
- some prose with [[Ash]]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "specs").mkdir(parents=True)
    (folder / "specs/Kiln Design.md").write_text(NOTE)
    return folder


def test_a_note_is_its_text_its_observations_and_its_relations(project: Path) -> None:
    (body, decision, fact, part, depends), refused = read(BASIC_MEMORY, project)
    assert refused == []
    assert body.key == "basic-memory:project/specs/kiln-design"
    assert body.text == (
        "# Kiln Design\n\nThe kiln burns [[Olive Wood]].\n\n- [ ] a task\n- [x] done\n"
        "- [00:12] a word of a transcript\n\n```\n- [fact] code\n```\n\n- some prose with [[Ash]]\n"
    )
    assert [each.object for each in body.facts] == ["Olive Wood", "Ash"]
    about = NewEntity(name="Kiln Design", type="spec", aliases=("specs/kiln-design",))
    assert body.entities == [about, NewEntity(name="Olive Wood"), NewEntity(name="Ash")]

    assert (decision.kind, decision.text) == (
        "observation", "Kiln Design: Walls of two layers #build (after the crack)",
    )  # fmt: skip
    assert decision.metadata == {"title": "Kiln Design", "category": "decision", "context": "after the crack"}
    assert decision.tags == ("ovens", "heat", "build")
    (stated,) = decision.facts
    assert stated == NewFact(
        subject="Kiln Design", predicate="decision", object="Walls of two layers #build", type="decision", single=False
    )
    assert (fact.text, fact.entities) == ("Kiln Design: Hot at 1200 °C", [about])

    assert (part.kind, part.text) == ("relation", "Kiln Design part of Workshop")
    assert depends.text == "Kiln Design depends on specs/clay (the grey one)"
    assert [(each.facts[0].predicate, each.facts[0].object, each.facts[0].relation) for each in (part, depends)] == [
        ("part_of", "Workshop", True), ("depends on", "specs/clay", True),
    ]  # fmt: skip
    assert all(each.created == datetime(2026, 3, 1, 10, tzinfo=UTC) for each in (body, decision, fact, part, depends))


def test_keys_are_those_of_what_is_said_and_do_not_move(project: Path) -> None:
    before = {each.text: each.key for each in read(BASIC_MEMORY, project)[0]}
    file = project / "specs/Kiln Design.md"
    file.rename(project / "moved.md")
    (project / "moved.md").write_text(NOTE.replace("- [fact]", "- [idea] New\n- [fact]", 1))
    after = {each.text: each.key for each in read(BASIC_MEMORY, project)[0]}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_a_note_of_items_alone_has_no_text(project: Path) -> None:
    (project / "specs/Kiln Design.md").write_text(
        "# K\n\n## Observations\n- plain one #a/b\n\n## Relations\n- [[Clay]]\n"
    )
    (plain, clay), _ = read(BASIC_MEMORY, project)
    assert (plain.text, plain.tags, plain.metadata) == (
        "Kiln Design: plain one #a/b", ("a/b", "a"), {"title": "Kiln Design"},
    )  # fmt: skip
    assert (clay.text, clay.facts[0].predicate) == ("Kiln Design links to Clay", "links_to")


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("- [tech] C++ (fast)", Observation("tech", "C++", (), "fast")),
        ("* [q] Why?", Observation("q", "Why?", (), None)),
        ("- [a] #one#two three", Observation("a", "#one#two three", ("one",), None)),
        ("- [/] in progress", None),
        ("- [1:02:03 - 1:02:09] said", None),
        ("- [shown](note.md)", None),
        ("> - [!info] quoted", None),
        ("- see [[A]] and [[B]]", None),
        ("- uses [[A]] (b) and [[C]]", None),
        ("- uses [[A#B]]", Relation("uses", "A", None)),
        ("- uses [[ ]]", None),
        ("  - 'made of' [[A]]", Relation("made of", "A", None)),
        ("- [a] " + "(" * 10_000, Observation("a", "(" * 10_000, (), None)),
    ],
)
def test_what_is_an_item(line: str, item: Observation | Relation | None) -> None:
    body, items = split(f"Text.\n\n{line}\n")
    assert items == ([] if item is None else [item])
    assert (line in body) is (item is None)


def test_damaged_notes_cost_no_other(project: Path) -> None:
    (project / "a.md").write_bytes(b"---\ntitle: \xff\n---\n- [a] b")
    (project / "b.md").write_bytes(b"---\npermalink: [x]\ntype: 7\n---\n- [a] b")
    found, refused = read(BASIC_MEMORY, project)
    assert refused == [
        Refused("a.md", "cannot be read as UTF-8 text; name its encoding with --encoding, such as cp1252")
    ]
    assert found[0].key is not None
    assert found[0].key.startswith("basic-memory:project/b.md#observation:")
    assert len(found) == 6


def test_a_project_is_recognised(project: Path, tmp_path: Path) -> None:
    assert is_recognised(BASIC_MEMORY, project)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.md").write_text("---\ntitle: A\n---\ntext")
    assert not is_recognised(BASIC_MEMORY, plain)
