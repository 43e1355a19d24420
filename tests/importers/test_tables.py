"""CSV and JSON Lines: which column is which field, what the others are, and rows that are none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import JSON, most_bytes
from nacre.errors import InvalidInput
from nacre.importers import tables
from nacre.importers.importer import HEAD_BYTES, Importer, Refused, Source
from nacre.importers.tables import CSV, JSONL
from nacre.importers.tables import JSON as JSON_ARRAY
from nacre.types.memory import NewMemory

TEA = datetime(2026, 3, 1, 16, tzinfo=UTC)


def read(
    file: Path, content: str | bytes, encoding: str | None = None, **columns: str
) -> tuple[list[NewMemory], list[Refused]]:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    importer = {".csv": CSV, ".tsv": CSV, ".json": JSON_ARRAY}.get(file.suffix, JSONL)
    found = list(importer.read(Source(file, columns=columns, encoding=encoding)))
    return [each for each in found if isinstance(each, NewMemory)], [
        each for each in found if isinstance(each, Refused)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "notes.csv"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


# ---------------------------------------------------------------- tables


def test_columns_are_known_by_their_names(table: Path) -> None:
    (tea,), refused = read(
        table,
        "ID;Content;Created At;Labels;Title;Author;URL;thread_id;index\n"
        '7;"Tea at ""four""\nsharp";2026-03-01T16:00:00Z;"drinks, hot";Tea;Ada;https://x.test/7;t1;3\n',
    )
    assert (refused, tea.text, tea.key) == ([], 'Tea at "four"\nsharp', "csv:notes.csv#7")
    assert (tea.created, tea.tags, tea.summary) == (TEA, ("drinks", "hot"), "Tea")
    assert (tea.source, tea.session, tea.position) == ("https://x.test/7", "t1", 3)
    assert tea.metadata == {"Author": "Ada"}


def test_columns_may_be_named(table: Path) -> None:
    found, _ = read(table, "a,b,text\nTea,x,note\n", text="a", key="b")
    assert [(each.text, each.key, each.metadata) for each in found] == [("Tea", "csv:notes.csv#x", {"text": "note"})]
    for columns, problem in (
        ({"text": "c"}, "'c' is no column; there are: a, b, text"),
        ({"colour": "a"}, "'colour' is no field; allowed: text, key, created"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            read(table, "a,b,text\nTea,x,note\n", **columns)
    with pytest.raises(InvalidInput, match="no column is known as the text: --map text=COLUMN; there are: a, b"):
        read(table, "a,b\nTea,x\n")


def test_rows_without_a_key_are_known_by_all_that_they_say(table: Path) -> None:
    (first, second, third), _ = read(table, "text,who\nTea,Ada\nTea,Bob\nTea,Ada\n")
    assert first.key == third.key != second.key
    (_, again), _ = read(table, "text,who\nNew,Ada\nTea,Ada\n")
    assert again.key == first.key


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.csv", "|"), ("a.tsv", "\t"), ("a.csv", ";")])
def test_what_separates_columns_is_seen(tmp_path: Path, name: str, mark: str) -> None:
    found, _ = read(tmp_path / name, f'text{mark}"note, a;b"\r\nTea{mark}four\r\n\r\n{mark}\r\n')
    assert [(each.text, each.metadata) for each in found] == [("Tea", {"note, a;b": "four"})]


def test_a_bad_row_costs_no_other(table: Path) -> None:
    found, refused = read(table, "text,importance\nTea,.5\na,b,c\n,\n,2\nAsh,high\nClay,\n", importance="importance")
    assert [(each.text, each.importance) for each in found] == [("Tea", 0.5), ("Clay", 0.5)]
    assert refused == [
        Refused("line 3", "has 3 cells; the first line names 2"),
        Refused("line 5", "importance: '2' is no number from 0 to 1 (column 'importance')"),
        Refused("line 6", "importance: 'high' is no number from 0 to 1 (column 'importance')"),
    ]  # fmt: skip
    assert read(table, "text,importance\n,0.5\n")[1] == [Refused("line 2", "text: is blank (column 'text')")]


def test_what_is_only_guessed_stays_where_it_does_not_fit(table: Path) -> None:
    """A column may be called date and have something else."""
    (first, second), refused = read(table, "text,date,position\nTea,soon,2\nAsh,2026-03-01T16:00:00Z,3\n")
    assert (refused, first.created, first.metadata) == ([], None, {"date": "soon", "position": 2})
    assert (second.created, second.metadata) == (TEA, {"position": 3})


def test_a_quotation_mark_without_end_costs_what_it_swallows(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_CELL_CHARS_MAX", 1_000)
    found, refused = read(table, "text,n\nTea,1\n" + '"open,' + "x,y\n" * 1_000 + "Ash,2\n")
    assert found[0].text == "Tea"
    assert found[-1].text == "Ash"
    assert "field larger than field limit (1000)" in refused[0].problem


@pytest.mark.parametrize("content", [b"", b"\n\n", b"text", b"text\n", b"\x00\x00", b'"', b"text,text\n\x00,\x00"])
def test_a_table_of_nothing_ends(table: Path, content: bytes) -> None:
    try:
        read(table, content)
    except InvalidInput as error:
        assert error.field == "map"  # noqa: PT017


def test_encodings(table: Path) -> None:
    assert read(table, "text\nZoë\n".encode("utf-16"))[0][0].text == "Zoë"
    assert read(table, "\ufefftext\nZoë\n")[0][0].text == "Zoë"
    assert read(table, "text\ncafé\n".encode("cp1252"), "cp1252")[0][0].text == "café"
    assert read(table, "text\ncafé\n".encode("cp1252"))[0][0].text == "caf\ufffd"


@pytest.mark.parametrize(
    "said",
    ["2026-03-01T16:00:00Z", "2026-03-01 17:00:00+01:00", "2026-03-01 16:00:00 UTC", "Sun, 01 Mar 2026 16:00:00 +0000",
     "1772380800", "1772380800.0", "1772380800000", "1772380800000000", 1772380800],
)  # fmt: skip
def test_times(said: object) -> None:
    assert tables.moment(said) == TEA


@pytest.mark.parametrize(
    "said", ["tea", "99999999999999999999999", "1e400", float("inf"), 10**400, [], {}, "0000-00-00"]
)
def test_no_times(said: object) -> None:
    with pytest.raises(InvalidInput, match="is no time"):
        tables.moment(said)
    assert tables.moment("") is tables.moment(None) is None


# ---------------------------------------------------------------- objects


def test_objects_are_read_as_rows_are(lines: Path) -> None:
    (tea, ash), refused = read(
        lines,
        json.dumps({"id": 7, "body": "Tea", "ts": 1772380800, "tags": ["hot", 5], "from": {"name": "Ada"}})
        + "\n\n[1]\n{bad\n"
        + json.dumps({"body": "Ash", "x": None}),
    )
    assert (tea.key, tea.text, tea.created, tea.tags) == ("jsonl:notes.jsonl#7", "Tea", TEA, ("hot", "5"))
    assert tea.metadata == {"from": {"name": "Ada"}}
    assert (ash.text, ash.metadata) == ("Ash", {})
    assert [each.where for each in refused] == ["line 3", "line 4"]
    assert refused[0].problem == "is no object"


def test_a_column_may_be_a_path(lines: Path) -> None:
    content = json.dumps({"message": {"content": "Tea", "id": "m1"}, "who": "Ada"})
    (tea,), _ = read(lines, content, text="message.content", key="message.id")
    assert (tea.text, tea.key, tea.metadata["who"]) == ("Tea", "jsonl:notes.jsonl#m1", "Ada")


@pytest.mark.parametrize("before", ["[", '{"count": 2, "meta": {"data": []}, "entries": ['])
def test_objects_may_be_in_an_array(tmp_path: Path, before: str) -> None:
    after = "]" if before == "[" else "]}"
    (tea, ash), refused = read(tmp_path / "a.json", f'{before}{{"id": 1, "text": "Tea"}}, 7, {{"text": "Ash"}}{after}')
    assert (tea.key, ash.text, refused) == ("json:a.json#1", "Ash", [Refused("item 2", "is no object")])


def test_objects_without_a_text_are_refused(lines: Path) -> None:
    found, refused = read(lines, '{"a": 1}\n{"text": {"x": 1}}\n{"text": "Tea"}\n{"other": "x"}\n')
    assert [each.text for each in found] == ["Tea"]
    assert refused == [
        Refused("line 1", "has no text; name its column: --map text=… (a)"),
        Refused("line 2", "text: must be a text, not dict (column 'text')"),
        Refused("line 4", "text: is blank (column 'text')"),
    ]


@given(st.lists(st.dictionaries(st.sampled_from(["text", "id", "date", "tags", "session", "x"]), JSON), max_size=4))
def test_any_object_is_a_memory_or_refused(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    found, refused = read(file, "\n".join(map(json.dumps, objects)))
    assert len(found) + len(refused) == len(objects)


def test_what_would_break_a_store_is_bounded(lines: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    content = "\n".join(
        json.dumps({"text": "Tea\u0000\ud800", **more})
        for more in ({"id": "k" * 5_000}, {"n": 10**30}, {"deep": deep}, {"nan": float("nan")}, {"session": "s" * 300})
    )
    found, refused = read(lines, content)
    assert all(each.text == "Tea\ufffd\ufffd" and len(each.key or "") <= 512 for each in found)
    assert [each.metadata for each in found[1:]] == [{"n": str(10**30)}, {"nan": "nan"}, {"session": "s" * 300}]
    assert refused == [Refused("line 3", "metadata: is nested too deep; at most 20 levels are allowed")]


# ---------------------------------------------------------------- recognised


@pytest.mark.parametrize(
    ("importer", "name", "content", "expected"),
    [
        (CSV, "a.csv", b"text", True),
        (CSV, "a.txt", b"text,b", False),
        (CSV, "a.csv", b"PK\x00", False),
        (JSONL, "a.jsonl", b'{"a": 1}', True),
        (JSONL, "a.jsonl", b'{"a": ' + b"1" * HEAD_BYTES, True),
        (JSONL, "a.jsonl", b"[1]", False),
        (JSONL, "a.log", b'{"a": 1}\n{"b"', False),
        (JSONL, "a.log", b'{"a": 1}\n{"b": 2}\n', True),
        (JSONL, "a.json", b'{\n"a": 1}\n', False),
        (JSON_ARRAY, "a.json", b'\xef\xbb\xbf [\n{"a', True),
        (JSON_ARRAY, "a.json", b'{"x": 1, "items" : [ {', True),
        (JSON_ARRAY, "a.json", b'{"x": 1}', False),
        (JSON_ARRAY, "a.json", b"[1, 2]", False),
        (JSON_ARRAY, "a.txt", b"[{", False),
    ],
)
def test_formats_are_recognised(importer: Importer, name: str, content: bytes, *, expected: bool) -> None:
    assert importer.recognises(Path(name), content[:HEAD_BYTES]) is expected


@pytest.mark.slow
@pytest.mark.parametrize("importer", [CSV, JSONL])
def test_a_large_file_takes_little_memory(tmp_path: Path, importer: Importer) -> None:
    file = tmp_path / f"large.{importer.name}"
    with file.open("w") as out:
        out.write("" if importer is JSONL else "text,n\n")
        for number in range(10_000):
            text = f"Entry {number} " + "of clay " * 125
            out.write(json.dumps({"text": text, "n": number}) + "\n" if importer is JSONL else f"{text},{number}\n")
    count, most = most_bytes(importer, file)
    assert (count, file.stat().st_size > 10_000_000) == (10_000, True)
    assert most < 5_000_000
