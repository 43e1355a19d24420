"""Tables and lists of objects: CSV, JSON Lines and JSON, whose columns are fields of memories.

Which column is which field is given, or guessed by its name. All other columns become metadata.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from nacre.analysis import encodings
from nacre.errors import InvalidInput
from nacre.importers.importer import HEAD_BYTES, Importer, Refused, Source, part_of_key, storable
from nacre.importers.json_records import Record, json_array, json_lines
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

# The names of columns that are taken for a field, the likeliest first; compared without case, spaces and marks.
GUESSES: Mapping[str, Sequence[str]] = {
    "text": ("text", "content", "body", "memory", "note", "message", "fact", "description", "value"),
    "key": ("key", "id", "uuid", "guid", "slug"),
    "created": ("created", "createdat", "createdtime", "date", "datetime", "timestamp", "time", "ts"),
    "happened": ("happened", "happenedat", "occurredat", "eventtime", "eventdate"),
    "expires": ("expires", "expiresat", "expiry"),
    "tags": ("tags", "tag", "labels", "keywords"),
    "summary": ("summary", "title", "subject", "headline"),
    "source": ("source", "url", "link"),
    "session": ("session", "sessionid", "conversation", "conversationid", "thread", "threadid"),
    "position": ("position", "turn", "index"),
    "kind": ("kind",),
    "namespace": ("namespace",),
    "importance": ("importance",),
    "origin": ("origin",),
    "pinned": ("pinned",),
    "language": ("language", "lang"),
}
_TIMES = ("created", "happened", "expires")
_PLAIN = re.compile(r"[^a-z0-9]")
_CELL_CHARS_MAX = 2 * LIMITS.text_chars_max
_COLUMNS_MAX = 10_000
_NAME_CHARS, _ID_CHARS = 150, 300  # in keys
_PATH_STEPS_MAX = 8  # of a column such as message.content
_ARRAYS = ("memories", "items", "records", "entries", "notes", "results", "data")  # members that may be the array
_LINES_SEEN = 5  # by which JSON Lines are recognised
_DELIMITERS = ",;\t|"
_CSV, _JSONL = (".csv", ".tsv"), (".jsonl", ".ndjson")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0", "")


# ---------------------------------------------------------------- reading


def read_csv(source: Source) -> Iterator[NewMemory | Refused]:
    """The rows of a table, whose first row names the columns."""
    csv.field_size_limit(_CELL_CHARS_MAX)
    with source.text() as text:
        lines = _bounded(text)
        first = next(lines, "")
        if not first.strip():
            return
        rows = csv.reader(_again(first, lines), delimiter=_delimiter(first))
        names = _named(next(rows))
        given = columns(source, names)
        while True:
            at = rows.line_num + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                yield Refused(f"line {at}", f"is no row of a table ({error})")
                continue
            if row is None:
                return
            if not any(each.strip() for each in row):
                continue
            if len(row) > len(names):
                yield Refused(f"line {at}", f"has {len(row):,} cells; the first line names {len(names):,}")
                continue
            cells: dict[str, Any] = {name: cell for name, cell in zip(names, row, strict=False) if cell.strip()}
            yield _record(source, f"line {at}", cells, given, "csv")


def read_jsonl(source: Source) -> Iterator[NewMemory | Refused]:
    """The objects of a JSON Lines file. A column may be a path: message.content."""
    yield from _objects(source, json_lines(source), "jsonl")


def read_json(source: Source) -> Iterator[NewMemory | Refused]:
    """The objects of a JSON array, which may be a member of an object."""
    yield from _objects(source, json_array(source, *_ARRAYS), "json")


def _objects(source: Source, records: Iterator[Record | Refused], kind: str) -> Iterator[NewMemory | Refused]:
    given: dict[str, str] | None = None
    for record in records:
        if isinstance(record, Refused):
            yield record
        elif not isinstance(record.value, dict):
            yield Refused(record.where, "is no object")
        else:
            # Columns are guessed by the first object that has a text; later ones may lack some.
            guessed = given if given is not None else columns(source, list(record.value), need_text=False)
            if "text" not in guessed:
                yield Refused(record.where, f"has no text; name its column: --map text=… ({_shown(record.value)})")
                continue
            given = guessed
            yield _record(source, record.where, record.value, given, kind)


def columns(source: Source, names: Sequence[str], *, need_text: bool = True) -> dict[str, str]:
    """Which column has which field. Raises InvalidInput where the caller named one that is not there."""
    for field in source.columns:
        if field not in GUESSES:
            raise InvalidInput("map", f"{field!r} is no field; allowed: {', '.join(GUESSES)}")
    found = dict(source.columns)
    by_name = {_PLAIN.sub("", name.lower()): name for name in reversed(names)}
    for field, guesses in GUESSES.items():
        column = next((by_name[each] for each in guesses if each in by_name), None)
        if field not in found and column is not None and column not in found.values():
            found[field] = column
    if need_text:
        missing = [column for column in source.columns.values() if column not in names]
        if missing or "text" not in found:
            problem = f"{missing[0]!r} is no column" if missing else "no column is known as the text: --map text=COLUMN"
            raise InvalidInput("map", f"{problem}; there are: {_shown(names)}")
    return found


def _record(
    source: Source, where: str, cells: Mapping[str, Any], given: Mapping[str, str], kind: str
) -> NewMemory | Refused:
    try:
        return _memory(source, cells, given, kind)
    except InvalidInput as error:
        return Refused(where, f"{error.field}: {error.problem}" if error.field else error.problem)


def _memory(source: Source, cells: Mapping[str, Any], given: Mapping[str, str], kind: str) -> NewMemory:
    values: dict[str, Any] = {}
    kept = dict(cells)
    for field, column in given.items():
        value = _at(cells, column)
        try:
            values[field] = _VALUES.get(field, _a_text)(value)
        except InvalidInput as error:
            if field in source.columns or field == "text":
                raise InvalidInput(field, f"{error.problem} (column {column!r})") from None
            continue  # only guessed, so it is another thing, which stays in the metadata
        if values[field] is not None:
            kept.pop(column, None)
    text = values.pop("text", None)
    if text is None:
        raise InvalidInput("text", f"is blank (column {given['text']!r})")
    key = values.pop("key", None)
    fields: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if "position" in fields and "session" not in fields:
        kept[given["position"]] = fields.pop("position")
    metadata = _metadata(kept)
    name = part_of_key(source.name, _NAME_CHARS)
    mark = part_of_key(key, _ID_CHARS) if key is not None else _digest(text, fields, metadata)
    return NewMemory(text=text, key=f"{kind}:{name}#{mark}", metadata=metadata, **fields)


def _digest(text: str, fields: Mapping[str, Any], metadata: Mapping[str, Json]) -> str:
    """Of a row without a key, everything that it says."""
    said = json.dumps([text, sorted(fields.items()), metadata], default=str, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _at(cells: Mapping[str, Any], column: str) -> Any:
    """The value of a column, which may be a path into an object."""
    if column in cells:
        return cells[column]
    value: Any = cells
    for step in column.split(".")[:_PATH_STEPS_MAX]:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


# ---------------------------------------------------------------- values


def _a_text(value: Any) -> str | None:
    """None if it is blank."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool | dict | list):
        raise InvalidInput("", f"must be a text, not {type(value).__name__}")
    return storable(str(value))


def _a_name(value: Any) -> str | None:
    name = _a_text(value)
    if name is not None and len(name) > LIMITS.name_chars_max:
        raise InvalidInput("", f"has {len(name):,} characters; at most {LIMITS.name_chars_max} are allowed")
    return name


def _tags(value: Any) -> tuple[str, ...]:
    """A list, or a text with commas, semicolons or spaces between tags that begin with #."""
    if isinstance(value, list):
        several = [each for each in value if isinstance(each, str | int)]
    else:
        text = _a_text(value) or ""
        several = [*re.split(r"[,;|]", text)] if not text.startswith("#") else [*re.split(r"[,;|\s]+", text)]
    found = (storable(str(each)).strip().removeprefix("#").strip() for each in several)
    return tuple(dict.fromkeys(each for each in found if each))


def moment(value: Any) -> datetime | None:
    """A time as tables have it: ISO 8601, as in mails, or seconds, milli- or microseconds since 1970."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    number = value if isinstance(value, int | float) else _number(str(value).strip())
    try:
        if number is not None:
            # Of the units, the one that gives a year from 1973 to 5138; before that, seconds.
            unit = next((each for each in (1, 10**3, 10**6, 10**9) if abs(number) < 10**11 * each), None)
            if unit is None or not math.isfinite(number):
                raise ValueError
            return datetime.fromtimestamp(number / unit, UTC)
        text = str(value).strip()
        try:
            found = datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+").replace(" Z", "Z"))
        except ValueError:
            found = parsedate_to_datetime(text)
        return found.astimezone(UTC)  # without a zone it is local
    except (ValueError, TypeError, OverflowError, OSError):
        shown = storable(str(value))[:40]
        raise InvalidInput("", f"{shown!r} is no time; 2026-03-01T10:00:00Z, or seconds since 1970, is one") from None


def _number(text: str) -> float | None:
    """A number that is no year or day without marks, such as 2026 or 20260301."""
    if not re.fullmatch(r"-?\d{9,19}(?:\.\d{1,9})?", text):
        return None
    return float(text) if "." in text else int(text)


def _whole(value: Any) -> int | None:
    text = _a_text(value)
    if text is None:
        return None
    if not re.fullmatch(r"-?\d{1,18}", text.strip()):
        raise InvalidInput("", f"{text[:40]!r} is no whole number")
    return int(text)


def _share(value: Any) -> float | None:
    text = _a_text(value)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise InvalidInput("", f"{text[:40]!r} is no number from 0 to 1")
    return number


def _truth(value: Any) -> bool | None:
    said = str(value).strip().lower() if value is not None else ""
    if said not in (*_TRUE, *_FALSE):
        raise InvalidInput("", f"{said[:40]!r} is neither true nor false")
    return said in _TRUE


_VALUES: Mapping[str, Any] = {
    **dict.fromkeys(_TIMES, moment),
    **dict.fromkeys(("session", "kind", "namespace", "origin"), _a_name),
    "tags": _tags,
    "position": _whole,
    "importance": _share,
    "pinned": _truth,
}


def _metadata(cells: Mapping[str, Any]) -> dict[str, Json]:
    """What is left of a row. Too large numbers and too deep objects are refused with the memory."""
    return {storable(str(name)): _plain(value, 0) for name, value in cells.items() if value is not None}


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        fits = math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63
        return value if fits else str(value)
    if isinstance(value, dict | list) and depth > 20:
        raise InvalidInput("metadata", "is nested too deep; at most 20 levels are allowed")
    if isinstance(value, dict):
        return {storable(str(name)): _plain(each, depth + 1) for name, each in value.items()}
    return [_plain(each, depth + 1) for each in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- lines of a table


def _bounded(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines. One without end is given in parts, which are no rows."""
    while line := text.readline(_CELL_CHARS_MAX):
        yield line.replace("\x00", "\ufffd")


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _delimiter(first: str) -> str:
    """What separates the names of the columns, outside of quotation marks."""
    bare = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=lambda each: (bare.count(each), -_DELIMITERS.index(each)))


def _named(first: list[str]) -> list[str]:
    """The names of the columns; what has none, or one that is there, gets a number."""
    names: list[str] = []
    for number, name in enumerate(first[:_COLUMNS_MAX], 1):
        name = storable(name.strip())
        names.append(name if name and name not in names else f"{name or 'column'} {number}")
    return names


def _shown(names: Sequence[str] | Mapping[str, Any]) -> str:
    listed = [storable(str(each))[:40] for each in names]
    return ", ".join(listed[:20]) + (", …" if len(listed) > 20 else "")


# ---------------------------------------------------------------- recognised


def _is_csv(path: Path, head: bytes) -> bool:
    return path.suffix.lower() in _CSV and (b"\x00" not in head or head.startswith(encodings.UTF_16))


def _is_jsonl(path: Path, head: bytes) -> bool:
    """JSON objects in lines, whatever the file is called. The last of the lines that are seen may be cut off."""
    if head.startswith(encodings.UTF_16):
        return path.suffix.lower() in _JSONL
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    objects = sum(map(_is_object, lines[:_LINES_SEEN]))
    if path.suffix.lower() in _JSONL:
        return objects > 0 or (len(lines) == 1 and len(head) == HEAD_BYTES and lines[0].lstrip()[:1] == b"{")
    return 0 < len(lines[:_LINES_SEEN]) == objects and b"\n" in head


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_json(path: Path, head: bytes) -> bool:
    """An array of objects, or an object with a member that may be one."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if path.suffix.lower() != ".json":
        return False
    if start[:1] == b"[":
        return start[1:].lstrip()[:1] == b"{"
    names = "|".join(_ARRAYS).encode()
    return start[:1] == b"{" and re.search(rb'"(?:' + names + rb')"\s*:\s*\[\s*\{', start) is not None


CSV = Importer("csv", "a table with a line of column names; --map says which column is which field", _is_csv, read_csv)
JSONL = Importer("jsonl", "JSON Lines of objects; --map says which member is which field", _is_jsonl, read_jsonl)
JSON = Importer("json", "a JSON array of objects; --map says which member is which field", _is_json, read_json)
TABLES = (CSV, JSONL, JSON)
