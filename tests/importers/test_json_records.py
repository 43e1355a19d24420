"""JSON larger than memory: any value, damaged or not, however the file is cut into pieces."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.importers import json_records
from nacre.importers.importer import Refused, Source
from nacre.importers.json_records import Record, json_array, json_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.json"


def array(file: Path, content: str | bytes, *members: str) -> list[Record | Refused]:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(json_array(Source(file), *members))


def lines(file: Path, content: bytes) -> list[Record | Refused]:
    file.write_bytes(content)
    return list(json_lines(Source(file)))


def values(read: list[Record | Refused]) -> list[Any]:
    return [each.value for each in read if isinstance(each, Record)]


def refused(read: list[Record | Refused]) -> list[Refused]:
    return [each for each in read if isinstance(each, Refused)]


# ---------------------------------------------------------------- an array


@given(st.lists(VALUES, max_size=6), st.integers(1, 40), st.sampled_from([None, 0, 2]), st.booleans())
def test_an_array_is_read_whatever_its_pieces(wanted: list[Any], piece: int, indent: int | None, escaped: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.MonkeyPatch.context():
        patch.setattr(json_records, "_CHUNK_CHARS", piece)
        text = json_records._Text(_file(json.dumps(wanted, indent=indent, ensure_ascii=escaped)))
        assert text.peek() == "["
        text.drop()
        read = list(json_records._values(text, ""))
    assert [each.where for each in read] == [f"item {number}" for number in range(1, len(wanted) + 1)]
    assert values(read) == wanted


@given(st.text('[]{}",:\\ 1en\u00e9', max_size=40), st.integers(1, 7))
def test_no_garbage_is_too_strange(garbage: str, piece: int) -> None:
    """It comes to an end, with values or with what is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_CHUNK_CHARS", piece)
        patch.setattr(json_records, "VALUE_CHARS_MAX", 16)
        text = json_records._Text(_file(garbage))
        assert all(each.where for each in json_records._values(text, ""))


def _file(content: str) -> Any:
    import io

    return io.StringIO(content)


@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_a_damaged_value_costs_no_other(file: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(json_records, "_CHUNK_CHARS", piece)
    read = array(file, '[{"a": 1}, {"b": tru, "c": ["}"]}, nothing, "x", {"d" 4}, [1,,2], 12, {"e": "\\"}"}]')
    assert values(read) == [{"a": 1}, "x", 12, {"e": '"}'}]
    assert [each.where for each in refused(read)] == ["item 2", "item 3", "item 5", "item 6"]
    assert all(each.problem.startswith("is not JSON (") for each in refused(read))


def test_a_file_that_is_cut_off_keeps_what_came_before(file: Path) -> None:
    read = array(file, '[{"a": 1}, {"b": [1, 2')
    assert read == [
        Record("item 1", {"a": 1}),
        Refused("item 2", "is not JSON (the file ends within it)"),
        Refused("item 3", "is missing: the file ends before its array does"),
    ]


def test_what_cannot_be_held_is_refused_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "VALUE_CHARS_MAX", 1_000)
    monkeypatch.setattr(json_records, "_CHUNK_CHARS", 100)
    read = array(file, json.dumps([1, {"long": "x" * 10_000, "deep": [{}]}, 2]))
    assert values(read) == [1, 2]
    assert refused(read) == [Refused("item 2", "is not JSON (it has more than 1,000 characters)")]


@pytest.mark.parametrize(
    "bad", ["[" * 100_000 + "]" * 100_000, "1" * 10_000, '{"a":' * 50_000 + "1" + "}" * 50_000], ids=["[", "1", "{"]
)
def test_what_would_break_a_reader_is_refused(file: Path, bad: str) -> None:
    read = array(file, f'["before", {bad}, "after"]')
    assert values(read) == ["before", "after"]
    assert [each.where for each in refused(read)] == ["item 2"]
    assert values(lines(file, f'"before"\n{bad}\n"after"'.encode())) == ["before", "after"]


def test_the_array_may_be_a_member(file: Path) -> None:
    text = json.dumps({"meta": {"results": [0]}, "n": 1, "results": {}, "items": [1, "]", {"items": 2}], "z": 3})
    assert values(array(file, text, "results", "items")) == [1, "]", {"items": 2}]
    assert refused(array(file, '{"a": 1}', "items")) == [Refused("start", "has no list as 'items'")]
    assert refused(array(file, '{"a": 1')) == [Refused("start", "is not a JSON array")]
    assert refused(array(file, '{"a": 1', "items"))[0].problem == "is not JSON (the file ends before its object does)"
    assert refused(array(file, "", "items")) == [Refused("start", "is not a JSON array or object")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_that_say_so_are_read(file: Path, encoding: str) -> None:
    assert values(array(file, '["Zoë", "人"]'.encode(encoding))) == ["Zoë", "人"]
    assert values(lines(file, '"Zoë"\r\n\r\n"人"\r\n'.encode(encoding))) == ["Zoë", "人"]


def test_bytes_that_are_no_text(file: Path) -> None:
    """In a line they cost the line; in an array, where nothing says what they belong to, themselves."""
    assert values(array(file, b'["caf\xe9", "tea"]')) == ["caf\ufffd", "tea"]
    read = lines(file, b'"caf\xe9"\n"tea"\n')
    assert read == [Refused("line 1", "is not JSON (no UTF-8 at byte 5)"), Record("line 2", "tea")]
    assert values(list(json_lines(Source(file, encoding="latin-1")))) == ["café", "tea"]


# ---------------------------------------------------------------- lines


def test_a_line_that_is_too_long_is_refused_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("importer", "json_records"):
        monkeypatch.setattr(f"nacre.importers.{module}.LINE_BYTES_MAX", 100)
    for content in (b'1\n"%s"\n2' % (b"x" * 1_000), '1\n"{}"\n2'.format("x" * 1_000).encode("utf-16")):
        read = lines(file, content)
        assert values(read) == [1, 2]
        assert refused(read) == [Refused("line 2", "has more than 100 bytes; split it")]


def test_progress_is_counted_in_bytes(file: Path) -> None:
    file.write_bytes(b"[1]\n" * 100_000)
    source = Source(file)
    done = [source.done for _ in json_lines(source)]
    assert source.total == done[-1] == 400_000
    assert done == sorted(done)
    assert done[0] < 400_000


@pytest.mark.slow
def test_a_large_array_takes_little_memory(file: Path) -> None:
    """30 MB of conversations of 30 kB, held one at a time."""
    with file.open("w") as out:
        out.write("[" + ",\n".join([json.dumps({"turns": ["tea and ash"] * 2_000})] * 1_000) + "]")
    assert file.stat().st_size > 28_000_000
    tracemalloc.start()
    try:
        count = sum(len(each.value["turns"]) for each in json_array(Source(file)) if isinstance(each, Record))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2_000_000
    assert peak < 5_000_000
