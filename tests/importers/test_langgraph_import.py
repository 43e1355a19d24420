"""Items of a LangGraph store, which become what `nacre.integrations.langgraph` makes of them."""

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
from nacre.importers import langgraph
from nacre.importers.langgraph import LANGGRAPH
from nacre.integrations.parts import joined, names_of

ROW: dict[str, Any] = {
    "prefix": "users.ada.memories",
    "key": "food",
    "value": {
        "kind": "Memory",
        "content": {"content": "Allergic to nuts"},
        "tags": ["health", True, None],
        "weight": 0.5,
    },
    "created_at": "2026-03-02T09:30:00+00:00",
    "updated_at": "2026-03-03T10:00:00.250000+01:00",
}
TEXT = "kind: Memory\ncontent: Allergic to nuts\ntags: health\ntags: true\ntags: null\nweight: 0.5"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.jsonl"


def written(file: Path, value: object) -> Path:
    file.write_text(json.dumps(value), "utf-8")
    return file


def test_a_row_of_the_table(file: Path) -> None:
    lines(file, [ROW, {**ROW, "key": "text", "value": json.dumps(ROW["value"])}])
    assert is_recognised(LANGGRAPH, file)
    (memory, other), refused = read(LANGGRAPH, file)
    assert refused == []
    assert memory.key == "langgraph/users/ada/memories/food"
    assert memory.text == other.text == TEXT
    assert memory.namespace == "users/ada/memories"
    assert memory.metadata == {**ROW["value"], "langgraph": {"updated": "2026-03-03T09:00:00.250000+00:00"}}
    assert memory.created == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def test_items_and_arrays(file: Path) -> None:
    item = {**ROW, "namespace": ["users", "ada", "memories"]}
    del item["prefix"]
    wanted = read(LANGGRAPH, lines(file, [ROW]))
    for value in ([ROW], [item], {"items": [item]}):
        assert is_recognised(LANGGRAPH, written(file, value))
        assert read(LANGGRAPH, file) == wanted


@pytest.mark.parametrize("namespace", [["a/b", "50%", "line\nbreak"], ["Zoë", "人"], ["x" * 150, "y" * 150]])
def test_keys_are_those_of_the_store(file: Path, namespace: list[str]) -> None:
    (memory,), _ = read(LANGGRAPH, lines(file, [{"namespace": namespace, "key": "k/1", "value": {}}]))
    assert memory.key == joined("langgraph", *namespace, "k/1")
    assert names_of(memory.key) == ("langgraph", *namespace, "k/1")
    assert 0 < len(memory.namespace) <= 200
    assert memory.text.endswith("k%2F1")


def test_a_value_that_metadata_cannot_hold_is_kept_as_json(file: Path) -> None:
    odd = [{"n": 10**30}, {"half": "\ud800"}, {"langgraph": 1}, {"a": [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]}]
    rows = [{"namespace": ["a"], "key": str(number), "value": value} for number, value in enumerate(odd)]
    memories, refused = read(LANGGRAPH, lines(file, [json.dumps(each) for each in rows]))
    assert refused == []
    for memory, value in zip(memories, odd, strict=True):
        own = memory.metadata["langgraph"]
        assert isinstance(own, dict)
        assert json.loads(str(own["json"])) == value
    large = {"text": "x" * 100_000}
    (memory,), _ = read(LANGGRAPH, lines(file, [{"namespace": ["a"], "key": "k", "value": large}]))
    assert (json.loads(memory.text), memory.metadata) == (large, {"langgraph": {"json": True}})


def test_private_parts_do_not_break_the_json(file: Path) -> None:
    private = {"n": 10**30, "text": "a <private>b</private> c <d>", "list": ["<private>x"]}
    (memory,), _ = read(LANGGRAPH, lines(file, [{"namespace": ["a"], "key": "k", "value": private}]))
    own = memory.metadata["langgraph"]
    assert isinstance(own, dict)
    written = str(own["json"])
    assert json.loads(written) == {"n": 10**30, "text": "a c <d>", "list": [""]}
    assert "<" not in written


def test_time_to_live(file: Path) -> None:
    over = {**ROW, "key": "over", "expires_at": "2020-01-01T00:00:00+00:00", "ttl_minutes": 5}
    stays = {**ROW, "key": "stays", "expires_at": "2999-01-01 00:00:00", "ttl_minutes": 60.0, "updated_at": None}
    (memory,), refused = read(LANGGRAPH, lines(file, [over, stays]))
    assert (memory.expires, refused) == (datetime(2999, 1, 1, tzinfo=UTC), [])
    assert memory.metadata["langgraph"] == {"ttl": 60.0}


def test_the_file_of_a_store(tmp_path: Path) -> None:
    """As SqliteStore writes it: values are bytes, times have no zone and are UTC."""
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP"
            " DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (prefix, key))"
        )
        row = (ROW["prefix"], "food", json.dumps(ROW["value"]).encode(), "2026-03-02 09:30:00", "2026-03-02 09:30:00")
        database.execute("INSERT INTO store VALUES (?, ?, ?, ?, ?)", row)
        database.execute("INSERT INTO store VALUES ('a', 'bad', '[1]', NULL, NULL)")
        database.execute("ALTER TABLE store ADD COLUMN expires_at TIMESTAMP")
        database.execute("ALTER TABLE store ADD COLUMN ttl_minutes REAL")
    database.close()
    assert is_recognised(LANGGRAPH, path)
    (memory,), (refusal,) = read(LANGGRAPH, path)
    assert (memory.key, memory.text) == ("langgraph/users/ada/memories/food", TEXT)
    assert memory.created == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert refusal.where == "store, row 2"


def test_damage_costs_no_other(file: Path) -> None:
    bad: list[object] = ["5", "[]", "{}", DEEP, HUGE_NUMBER, "{broken", {**ROW, "key": 5}, {**ROW, "value": [1]}]
    bad += [{**ROW, "prefix": 5}, {**ROW, "value": "{"}, {**ROW, "prefix": "x" * 600}]
    memories, refused = read(LANGGRAPH, lines(file, [ROW, *bad, {**ROW, "key": "last"}]))
    assert [each.key for each in memories] == [
        "langgraph/users/ada/memories/food",
        "langgraph/users/ada/memories/last",
    ]
    assert [each.where for each in refused] == [f"line {number}" for number in range(2, len(bad) + 2)]


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_a_deep_value_is_kept_or_refused(file: Path, depth: int) -> None:
    deep = '{"namespace": ["a"], "key": "k", "value": ' + '{"a": ' * depth + "1" + "}" * (depth + 1)
    memories, refused = read(LANGGRAPH, lines(file, [deep]))
    assert len(memories) + len(refused) == 1


@pytest.mark.slow
@given(st.lists(JSON, max_size=5), JSON, JSON)
def test_no_record_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], one: Any, two: Any
) -> None:
    file = tmp_path_factory.mktemp("t") / "s.jsonl"
    rows = [{"prefix": "a", "key": "k", "value": {"x": each}, "created_at": one, "expires_at": two} for each in some]
    rows += [{"namespace": one, "key": two, "value": each, "ttl_minutes": one} for each in some]
    LANGGRAPH.recognises(file, lines(file, [json.dumps(each) for each in (*some, *rows)]).read_bytes())
    read(LANGGRAPH, file)


@pytest.mark.slow
def test_a_huge_dump_takes_little_memory(file: Path) -> None:
    with file.open("w") as out:
        for number in range(3_000):
            out.write(json.dumps({**ROW, "key": str(number), "value": {"text": "x" * 10_000}}) + "\n")
    count, most = most_bytes(LANGGRAPH, file)
    assert count == 3_000
    assert most < 4_000_000


def test_others_are_not_recognised(tmp_path: Path) -> None:
    for content in (b"", b"[]", b'{"prefix": "a", "key": "b"}', b'{"type":"entity","name":"x"}', b"SQLite format 3\0"):
        path = tmp_path / "x"
        path.write_bytes(content)
        assert not LANGGRAPH.recognises(path, content)


def test_the_escapes_are_those_of_the_store() -> None:
    strange = "a/b%\x00\x1f\x7f\ud800é人"
    assert langgraph._joined(strange, "") == joined(strange, "")
