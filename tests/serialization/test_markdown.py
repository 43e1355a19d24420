"""Memories as Markdown, and back: texts intact, names safe."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.importers import nacre_markdown
from nacre.serialization import markdown
from nacre.types.memory import Memory

LINES = ("---", "", "# Title", "```", "<!-- nacre {} -->", "\\<!-- nacre {} -->", "  <!-- nacre x", "nacre: 1", "-->")
storable = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(LINES) | st.text(storable)).map("\n".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(storable),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(storable, max_size=5), part, max_size=3),
    max_leaves=5,
)


def memory(text: str, **fields: Any) -> Memory:
    usual: dict[str, Any] = {
        "id": "m1", "space": "s", "kind": "note", "namespace": "general", "summary": None, "tags": (), "source": None,
        "session": None, "position": None, "metadata": {}, "importance": 0.5,
        "created": datetime(2026, 3, 1, tzinfo=UTC), "updated": datetime(2026, 3, 1, tzinfo=UTC),
    }  # fmt: skip
    return Memory(text=text, **{**usual, **fields})


@given(texts, st.dictionaries(st.text(storable, max_size=5), values, max_size=3), st.lists(st.text(storable)))
def test_a_file_of_a_memory_has_it_unchanged(text: str, metadata: dict[str, Any], tags: list[str]) -> None:
    file = markdown.memory_file(memory(text, metadata=metadata, tags=tuple(tags)))
    ((fields, back),) = nacre_markdown.parts(file)
    assert (back, fields.get("metadata", {}), fields.get("tags", [])) == (text, metadata, tags)


@given(st.lists(st.tuples(texts, st.text(storable)), min_size=1, max_size=4))
def test_a_file_of_a_day_has_all_memories_unchanged(several: list[tuple[str, str]]) -> None:
    found = [memory(text, summary=summary) for text, summary in several]
    file = markdown.day_head(found[0]) + "".join(map(markdown.day_part, found))
    assert [(text, fields["summary"]) for fields, text in nacre_markdown.parts(file)] == several


@given(st.text(storable, max_size=200), st.text(storable, max_size=20))
def test_names_are_safe_and_differ(name: str, other: str) -> None:
    safe = markdown.safe_name(name)
    assert set(safe) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert 0 < len(safe) <= 100
    assert not safe.startswith((".", "-"))
    assert not safe.endswith(".")
    assert name == other or safe != markdown.safe_name(other)


@pytest.mark.parametrize(
    "name", ["CON", "con", "nul.txt", "com1", "..", ".", "", "a/b", "a\\b", "Work", "ü", "x" * 500]
)
def test_names_that_some_system_does_not_take(name: str) -> None:
    safe = markdown.safe_name(name)
    assert safe.split(".")[0] not in {"con", "nul", "com1", ""}
    assert safe != markdown.safe_name(name.swapcase()) or name == name.swapcase()
