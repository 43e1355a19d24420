"""SQLite files of others: read and never changed, whatever they are."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import most_bytes, read
from nacre.importers.claude_mem import CLAUDE_MEM
from nacre.importers.importer import Refused
from nacre.importers.langgraph import LANGGRAPH
from nacre.importers.mem0 import MEM0
from nacre.importers.sqlite_files import SQLITE_START, has_table, opened, rows_of

COLUMNS = ("prefix", "key", "value")


def table(path: Path, *rows: tuple[Any, ...], before: str = "") -> Path:
    database = sqlite3.connect(path)
    if before:
        database.execute(before)
    database.execute(
        "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text, PRIMARY KEY (prefix, key))"
    )
    database.executemany("INSERT INTO store VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a b%3F?#.db"  # what a URI would read in another way


def values(path: Path) -> list[dict[str, Any]]:
    return [each for each in rows_of(path, "store", (*COLUMNS, "missing")) if isinstance(each, dict)]


def test_rows(path: Path) -> None:
    table(path, ("a", "1", "text"), ("a", "2", b"bytes"), ("a", "3", 5), ("a", "4", None))
    assert has_table(path, SQLITE_START, "store", *COLUMNS)
    assert [each["value"] for each in values(path)] == ["text", "bytes", "5", None]
    assert {each["missing"] for each in values(path)} == {None}
    assert list(rows_of(path, "none", COLUMNS)) == []
    assert list(rows_of(path, "store", ("missing",))) == []


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_texts_of_every_encoding(path: Path, encoding: str) -> None:
    table(path, ("a", "1", "Zoë 人"), ("a", "2", "Zoë 人".encode()), before=f"PRAGMA encoding = '{encoding}'")
    assert [each["value"] for each in values(path)] == ["Zoë 人", "Zoë 人"]


def test_a_text_that_is_none(path: Path) -> None:
    table(path)
    database = sqlite3.connect(path)
    database.execute("INSERT INTO store VALUES ('a', '1', CAST(x'6162FF00ED' AS TEXT))")
    database.commit()
    database.close()
    assert [each["value"] for each in values(path)] == ["ab\ufffd\0\ufffd"]


def test_what_another_program_writes_now_is_read(path: Path) -> None:
    writing = sqlite3.connect(path)
    try:
        writing.execute("PRAGMA journal_mode = wal")
        writing.execute("CREATE TABLE store (prefix, key, value)")
        writing.execute("INSERT INTO store VALUES ('a', '1', 'only in the log')")
        writing.commit()
        before = path.read_bytes()
        assert [each["value"] for each in values(path)] == ["only in the log"]
        assert path.read_bytes() == before
        writing.execute("INSERT INTO store VALUES ('a', '2', 'written after')")
        writing.commit()
    finally:
        writing.close()
    assert len(values(path)) == 2


def test_nothing_is_written(path: Path) -> None:
    table(path, ("a", "1", "text"))
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert len(values(path)) == 1
    finally:
        path.parent.chmod(0o700)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, when)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with opened(path) as file, pytest.raises(Exception, match="readonly"):
        file._connection.execute("DELETE FROM store")


# ---------------------------------------------------------------- hostile


def test_a_view_is_not_read(path: Path) -> None:
    """One that never ends would be read for ever."""
    database = sqlite3.connect(path)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS prefix, x AS key FROM n"
    database.execute(f"CREATE VIEW store AS {endless}")
    database.execute(f"CREATE VIEW history AS {endless}")
    database.execute("CREATE VIRTUAL TABLE observations USING fts5(id, project, created_at, created_at_epoch)")
    database.commit()
    database.close()
    head = path.read_bytes()[:1_000]
    for importer in (LANGGRAPH, MEM0, CLAUDE_MEM):
        assert not importer.recognises(path, head)
        assert read(importer, path) == ([], [])


def test_names_are_only_names(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute('CREATE TABLE store (prefix, key, value, "x"" FROM store; DROP TABLE store; --")')
    database.execute("CREATE TRIGGER t AFTER INSERT ON store BEGIN DELETE FROM store; END")
    database.commit()
    database.close()
    assert has_table(path, SQLITE_START, "store", *COLUMNS)
    assert values(path) == []


def test_a_huge_value_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.importers.sqlite_files._VALUE_BYTES_MAX", 10_000)
    table(path, ("a", "1", "x"), ("a", "2", "y" * 1_000_000))
    first, second = rows_of(path, "store", COLUMNS)
    assert isinstance(first, dict)
    assert isinstance(second, Refused)
    assert (second.where, second.problem[:14]) == ("store, row 2", "cannot be read")


@pytest.mark.parametrize("content", [b"", SQLITE_START, SQLITE_START + b"\xff" * 5_000, b"no database", b"\0" * 4_096])
def test_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert not has_table(path, content, "store", *COLUMNS)
    assert all(isinstance(each, Refused) for each in rows_of(path, "store", COLUMNS))


def test_no_file(path: Path) -> None:
    (refusal,) = rows_of(path, "store", COLUMNS)
    assert isinstance(refusal, Refused)
    assert not path.exists()


def test_a_damaged_page_costs_nothing_that_comes_before(path: Path) -> None:
    table(path, *(("a", f"{number:05}", '{"text": "' + "x" * 1_000 + '"}') for number in range(500)))
    content = path.read_bytes()
    path.write_bytes(content[:300_000] + b"\xff" * 100_000 + content[400_000:])
    memories, refused = read(LANGGRAPH, path)
    assert 0 < len(memories) < 500
    assert len(refused) == 1


def test_a_cut_file_is_refused(path: Path) -> None:
    table(path, *(("a", str(number), "x" * 1_000) for number in range(500)))
    path.write_bytes(path.read_bytes()[:200_000])
    memories, (refusal,) = read(LANGGRAPH, path)
    assert (memories, "malformed" in refusal.problem) == ([], True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("t") / "a.db"
    table(path, *((f"p{number}", str(number), '{"text": "hello"}') for number in range(100)))
    return path.read_bytes()


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 20_000), st.binary(min_size=1, max_size=8)), min_size=1, max_size=6))
def test_a_damaged_file_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, damage: list[tuple[int, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("t")
    content = bytearray(whole)
    for at, piece in damage:
        at %= len(content)
        content[at : at + len(piece)] = piece
    (folder / "a.db").write_bytes(content)
    for importer in (LANGGRAPH, MEM0, CLAUDE_MEM):
        importer.recognises(folder / "a.db", bytes(content[:1_000]))
        read(importer, folder / "a.db")
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_huge_file_takes_little_memory(path: Path) -> None:
    table(path, *(("a", str(number), '{"text": "' + "x" * 10_000 + '"}') for number in range(3_000)))
    count, most = most_bytes(LANGGRAPH, path)
    assert count == 3_000
    assert most < 2_000_000
