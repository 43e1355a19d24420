"""Numbers with their nouns, by hand and in the answers of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import nacre
from command_line import Cli
from nacre.analysis import wording
from nacre.embedders.hashing import Hashing


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 memories"), (1, "1 memory"), (2, "2 memories"), (1_234, "1,234 memories")]
)
def test_a_number_has_its_noun(number: int, said: str) -> None:
    assert wording.count_memories(number) == said
    assert wording.counted(number, "memory", "memories") == said
    assert wording.counted(number, "line") == said.replace("memory", "line").replace("memories", "lines")


def test_one_memory_is_never_several(cli: Cli) -> None:
    memory_id = cli("remember", "A short note", "--embedder", "none", "--json").json["id"]
    for said, *arguments in (
        ("1 memory matches", "facets"),
        ("(1 memory pending)", "stats"),
        ("1 memory has no vectors yet", "search", "short", "--mode", "hybrid"),
        ("embedded 1 memory", "reembed"),
        ("purged", "purge", memory_id),
    ):
        answer = cli(*arguments, stdin="y\n")
        assert said in answer.out
        assert "1 memories" not in answer.out + answer.err
    assert "Delete 1 memory permanently?" in answer.err


def test_a_note_of_the_library_counts_its_memories(path: Path) -> None:
    with nacre.open(path, embedder=None) as memory:
        memory.remember("one")
    with nacre.open(path, embedder=Hashing()) as memory:
        assert memory.search("one").notes == ("1 memory has no vectors yet: run `nacre reembed`",)
