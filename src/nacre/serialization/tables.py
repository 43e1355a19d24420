"""Memories as rows of a table: CSV for spreadsheets, Parquet for analysis."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from nacre.errors import InvalidInput
from nacre.serialization import encode, markdown
from nacre.types.memory import Json, Memory

COLUMNS = (
    "id", "key", "space", "kind", "namespace", "text", "summary", "tags", "source", "session", "position", "metadata",
    "importance", "created", "updated", "happened", "expires", "pinned", "origin", "language", "facts",
)  # fmt: skip
_TIMES = ("created", "updated", "happened", "expires")
_JSON = ("tags", "metadata", "facts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet may run what begins like this
_GROUP_ROWS = 2_000


def write_csv(file: IO[str], memories: Iterable[Memory]) -> Iterator[int]:
    """Write a table with a header. Yields the number of rows so far.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for number, memory in enumerate(memories, 1):
        writer.writerow([_cell(name, value) for name, value in zip(COLUMNS, _row(memory), strict=True)])
        yield number


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _JSON:
        return encode.dumps(value, indent=None)
    if name in _TIMES:
        return encode.moment(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value)


def write_parquet(path: Path, memories: Iterable[Memory]) -> Iterator[int]:
    """Write a Parquet file, a few thousand rows at a time. Yields the number of rows so far."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            "format", "parquet needs pyarrow; install it with `pip install nacre-memory[parquet]`"
        ) from None
    moment = pyarrow.timestamp("us", tz="UTC")
    types: dict[str, Any] = {
        **dict.fromkeys(COLUMNS, pyarrow.string()),
        **dict.fromkeys(_TIMES, moment),
        "tags": pyarrow.list_(pyarrow.string()),
        "position": pyarrow.int64(),
        "importance": pyarrow.float64(),
        "pinned": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(name, types[name]) for name in COLUMNS])
    done = 0
    rest = iter(memories)
    with pyarrow.parquet.ParquetWriter(str(path), schema, compression="zstd") as writer:
        while group := list(islice(rest, _GROUP_ROWS)):
            rows = [dict(zip(COLUMNS, _row(each), strict=True)) for each in group]
            for row in rows:
                row |= {name: encode.dumps(row[name], indent=None) for name in ("metadata", "facts")}
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            done += len(group)
            yield done


def _row(memory: Memory) -> Sequence[Any]:
    facts: list[Json] = [markdown.fact(each) for each in memory.facts]
    special: dict[str, Any] = {"tags": list(memory.tags), "metadata": dict(memory.metadata), "facts": facts}
    return [special[name] if name in special else getattr(memory, name) for name in COLUMNS]
