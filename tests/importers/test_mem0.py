"""Memories of mem0: what `get_all` returns, and the file of its history."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import DEEP, HUGE_NUMBER, JSON, is_recognised, lines, most_bytes, read
from nacre.importers.mem0 import MEM0
from nacre.types.facts import NewFact

NUTS: dict[str, Any] = {
    "id": "f38b689d-6b24-45b7-bced-17fbb4d8bac7",
    "memory": "Allergic to nuts",
    "hash": "9f3c",
    "metadata": {"category": "health", "score": 2},
    "categories": ["health", "food"],
    "created_at": "2024-07-26T10:29:36.630547-07:00",
    "updated_at": None,
    "user_id": "ada",
    "agent_id": "cook",
}
TEA = {"id": "2", "memory": "Drinks tea", "user_id": "ada", "created_at": "2024-08-01T00:00:00Z", "metadata": None}
LIVES = {"source": "ada", "relationship": "lives_in", "target": "berlin"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mem0.json"


def written(file: Path, value: object, **options: Any) -> Path:
    file.write_text(json.dumps(value, **options), "utf-8")
    return file


def test_a_memory(file: Path) -> None:
    written(file, {"results": [NUTS, TEA]})
    assert is_recognised(MEM0, file)
    (nuts, tea), refused = read(MEM0, file)
    assert refused == []
    assert (nuts.text, nuts.key, nuts.source) == ("Allergic to nuts", f"mem0:{NUTS['id']}", "mem0")
    assert nuts.metadata == {"category": "health", "score": 2, "user_id": "ada", "agent_id": "cook"}
    assert nuts.tags == ("health", "food")
    assert nuts.created == datetime(2024, 7, 26, 17, 29, 36, 630547, UTC)
    assert (tea.text, tea.metadata, tea.kind) == ("Drinks tea", {"user_id": "ada"}, None)


@pytest.mark.parametrize("shape", ["array", "pages", "memories", "lines", "indented", "relations first"])
def test_all_its_shapes(file: Path, shape: str) -> None:
    both = [NUTS, TEA]
    match shape:
        case "array":
            written(file, both)
        case "pages":
            written(file, {"count": 2, "next": None, "previous": None, "results": both})
        case "memories":
            written(file, {"memories": both})
        case "lines":
            lines(file, both)
        case "indented":
            written(file, {"results": both}, indent=2)
        case "relations first":
            written(file, {"relations": [LIVES], "results": both})
    assert is_recognised(MEM0, file)
    memories, refused = read(MEM0, file)
    assert [each.text for each in memories][:2] == ["Allergic to nuts", "Drinks tea"]
    assert refused == []


def test_relations_are_facts(file: Path) -> None:
    older = {"source": "ada", "relation": "works_at", "destination": "acme_corp"}
    written(file, {"results": [NUTS], "relations": [LIVES, older, {"source": "ada"}, 5]})
    memories, refused = read(MEM0, file)
    fact = NewFact(
        subject="ada",
        predicate="lives in",
        object="berlin",
        type="relationship",
        relation=True,
        quote="ada lives in berlin",
    )
    assert [each.text for each in memories] == ["Allergic to nuts", "ada lives in berlin", "ada works at acme corp"]
    assert (memories[1].facts, memories[1].entities, memories[1].kind) == ((fact,), ("ada", "berlin"), "fact")
    assert memories[1].key == "mem0:relation:ada:lives in:berlin"
    assert [each.where for each in refused] == ["item 3", "item 4"]


def test_what_has_expired_is_left_out(file: Path) -> None:
    gone, stays = {**NUTS, "expiration_date": "2020-01-01"}, {**TEA, "expiration_date": "2999-01-01"}
    (tea,), refused = read(MEM0, written(file, [gone, stays]))
    assert (tea.text, tea.expires, refused) == ("Drinks tea", datetime(2999, 1, 1, tzinfo=UTC), [])


def test_a_changed_memory_keeps_its_key(file: Path) -> None:
    (before,), _ = read(MEM0, written(file, [NUTS]))
    (after,), _ = read(MEM0, written(file, [{**NUTS, "memory": "Allergic to nuts and milk"}]))
    assert (before.key, before.text != after.text) == (after.key, True)


def test_damage_costs_no_other(file: Path) -> None:
    bad = ["5", "[]", "{}", '{"id": "x"}', '{"memory": "x"}', '{"memory": "x", "id": 5}', '{"memory": , }', HUGE_NUMBER]
    deep = DEEP + "]" * len(DEEP)
    file.write_text('{"results": [' + ",".join([json.dumps(TEA), *bad, deep, json.dumps(NUTS)]) + "]}")
    memories, refused = read(MEM0, file)
    assert [each.text for each in memories] == ["Drinks tea", "Allergic to nuts"]
    assert [each.where for each in refused] == [f"item {number}" for number in range(2, 11)]


def test_strange_fields_cost_no_memory(file: Path) -> None:
    strange = {
        "id": "x" * 10_000,
        "memory": "half \ud800 and \0",
        "metadata": {"big": 10**40, "list": [[[1.5]]], "a\0b": "\udc00"},
        "categories": ["", 5, "c" * 1_000, None],
        "created_at": "soon",
        "user_id": ["ada"],
    }
    (memory,), refused = read(MEM0, written(file, [strange]))
    assert (memory.text, memory.created, refused) == ("half ? and", None, [])
    assert memory.metadata == {"big": 1e40, "list": [[[1.5]]], "a\ufffdb": "\ufffd", "user_id": ["ada"]}
    assert [len(each) for each in memory.tags] == [200]


@pytest.mark.slow
@given(st.lists(JSON, max_size=5), JSON, JSON)
def test_no_record_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], one: Any, two: Any
) -> None:
    file = tmp_path_factory.mktemp("t") / "m.json"
    names = ("metadata", "categories", "created_at", "expiration_date", "user_id", "role")
    of_shape = [{**dict.fromkeys(names, each), "memory": one, "id": two} for each in some]
    relations = [dict.fromkeys(("source", "relationship", "target"), each) for each in (*some, one)]
    for value in ({"results": [*some, *of_shape], "relations": [*relations, *some]}, some, one):
        read(MEM0, written(file, value))
        MEM0.recognises(file, file.read_bytes())


@pytest.mark.slow
def test_a_huge_file_takes_little_memory(file: Path) -> None:
    with file.open("w") as out:
        out.write('{"results": [')
        for number in range(5_000):
            out.write(("," if number else "") + json.dumps({**TEA, "id": str(number), "metadata": {"x": "y" * 4_000}}))
        out.write(f'], "relations": [{json.dumps(LIVES)}]}}')
    count, most = most_bytes(MEM0, file)
    assert count == 5_001
    assert most < 12_000_000


# ---------------------------------------------------------------- its history


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
            " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        database.executemany(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                ("1", "nuts", None, "Allergic to nuts", "ADD", "2024-07-26T10:00:00Z", None, 0, "ada", "user"),
                ("2", "tea", None, "Drinks tea", "ADD", "2024-07-26T11:00:00Z", None, 0, None, None),
                (
                    "3",
                    "nuts",
                    "Allergic to nuts",
                    "Not allergic",
                    "UPDATE",
                    "2024-07-26T10:00:00Z",
                    "2024-08-01",
                    0,
                    "ada",
                    "user",
                ),
                ("4", "tea", "Drinks tea", None, "DELETE", None, "2024-08-02T00:00:00Z", 1, None, None),
                ("5", None, None, "lost", "ADD", None, None, 0, None, None),
            ],
        )
    database.close()
    return path


def test_the_history_gives_what_is_left(history: Path) -> None:
    assert is_recognised(MEM0, history)
    before = history.read_bytes()
    (memory,), (refusal,) = read(MEM0, history)
    assert (memory.key, memory.text, memory.metadata) == (
        "mem0:nuts",
        "Not allergic",
        {"actor_id": "ada", "role": "user"},
    )
    assert memory.created == datetime(2024, 7, 26, 10, tzinfo=UTC)
    assert refusal.problem == "has no text or no id"
    assert history.read_bytes() == before
    assert list(history.parent.iterdir()) == [history]


def test_others_are_not_recognised(tmp_path: Path) -> None:
    for content in (b"", b"[]", b'{"memory": 5}', b'"memory": "x"', b'[{"memory": "x"}]', b"SQLite format 3\0"):
        path = tmp_path / "x"
        path.write_bytes(content)
        assert not MEM0.recognises(path, content)
    assert not MEM0.recognises(tmp_path, b"")
