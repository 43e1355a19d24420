"""Whatever the format, importing the same again writes nothing, and a changed source updates its memories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nacre
from nacre.importers.importer import Source
from nacre.importers.registry import recognised
from nacre.intake.importing import Import, ImportCounts

MAIL = (
    "From a Mon Mar  2 10:00:00 2026\nMessage-ID: <{0}@x>\nFrom: Ada <a@x>\nSubject: S\n"
    "Date: Mon, 2 Mar 2026 10:00:00 +0000\n\n{1}\n\n"
)
PARTS = "".join(f"## {name}\n\n{name} is {'round ' * 200}. [[Kiln]] #pots\n\n" for name in "AB")
LONG = f"# Pots\n\nAll of them.\n\n{PARTS}"
BASIC = "---\ntitle: K\ntype: note\npermalink: k\ntags: [a]\n---\n\n{0}\n\n- [fact] Hot #b (c)\n- part_of [[W]]\n"

# By format: the name of the file, its content, and what of it changes.
SAMPLES = {
    "csv": ("a.csv", "id,text,tags,date,n\n1,Tea,x;y,2026-03-01,4\n2,Ash,,,\n,No key,z,,5\n", ("Ash", "Clay")),
    "jsonl": ("a.jsonl", '{"id": 1, "text": "Tea", "m": {"a": [1]}}\n{"text": "Ash", "id": "x"}\n', ("Ash", "Clay")),
    "json": ("a.json", '[{"id": 1, "text": "Tea", "score": 0.25}, {"text": "Ash", "id": 2}]', ("Ash", "Clay")),
    "text": ("a.txt", "A line of ash.\n\n" * 3_000, ("ash", "clay")),
    "markdown": ("notes/a.md", f"---\ntags: [x/y]\naliases: [Vessels]\nn: 0.5\n---\n{LONG}", ("All of them", "None")),
    "mbox": ("a.mbox", MAIL.format(1, "Tea") + MAIL.format(2, "Ash"), ("Ash", "Clay")),
    "basic-memory": ("project/k.md", BASIC.format("Burns ash, see [[Ash]]."), ("Burns", "Needs")),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("secrets", ["warn", "redact"])
def test_importing_it_again_writes_nothing(path: Path, tmp_path: Path, name: str, secrets: str) -> None:
    within, content, (old, new) = SAMPLES[name]
    file = tmp_path / within
    file.parent.mkdir(exist_ok=True)
    place = file.parent if "/" in within else file

    def write(text: str) -> None:
        file.write_text(text, "utf-8")
        os.utime(file, (1_772_380_800, 1_772_380_800))

    with nacre.open(path, embedder="hashing", secrets=secrets) as memory:  # type: ignore[arg-type]
        write(content)
        assert recognised(place).name == name
        first = brought_in(memory, place)
        assert first.new > 1
        assert first == ImportCounts(new=first.new)
        events = memory.stats().events
        assert brought_in(memory, place) == ImportCounts(unchanged=first.new)
        assert memory.stats().events == events
        write(content.replace(old, new))
        again = brought_in(memory, place)
        assert again.new == again.refused == 0
        assert again.changed >= 1
        assert memory.stats().memories == first.new
        assert any(new in each.text for each in memory.every())


def brought_in(memory: nacre.Nacre, place: Path) -> ImportCounts:
    def refuse(where: str, error: object) -> None:
        raise AssertionError((where, error))

    (*_, counts) = Import(memory, recognised(place).read(Source(place)), refuse, at_once=3).run()
    return counts
