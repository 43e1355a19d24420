"""The values of a JSON file in whichever way it lists them: as an array, as JSON Lines, as a list in an object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from nacre.errors import InvalidInput
from nacre.importers.conversations import beginning
from nacre.importers.importer import HEAD_BYTES, Refused, Source
from nacre.importers.json_records import Record, json_array, json_lines


def json_values(
    source: Source, *members: str, path: Path | None = None, within: str = ""
) -> Iterator[Record | Refused]:
    """The values, one at a time. Those of an object are in its first member of these names; without one, it is a
    value itself."""
    with source.open(path) as file:
        head = file.read(HEAD_BYTES)
    text = beginning(head).lstrip()
    line, _, rest = text.partition("\n")
    listed = any(re.search(rf'"{re.escape(name)}"\s*:\s*\[', text) for name in members)
    if text.startswith("["):
        yield from json_array(source, path=path, within=within)
    elif listed and text.startswith("{") and not _is_other(line, members):
        yield from json_array(source, *members, path=path, within=within)
    elif text.startswith("{") and rest and not rest.startswith("{") and not _is_object(line):
        yield from _one(source, path, within)
    else:
        yield from json_lines(source, path, within)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_other(line: str, members: tuple[str, ...]) -> bool:
    """Whether a line is an object without such a member, so that the file is JSON Lines."""
    return _is_object(line) and not any(name in json.loads(line) for name in members)


def _one(source: Source, path: Path | None, within: str) -> Iterator[Record | Refused]:
    """An object over many lines."""
    where = within.strip() or "file"
    encoding = source.encoding_of(path)
    try:
        yield Record(where, json.loads(source.content(path).decode(encoding, "replace"), strict=False))
    except InvalidInput as error:
        yield Refused(where, error.problem)
    except (ValueError, RecursionError) as problem:
        yield Refused(where, f"is not JSON ({str(problem).partition(';')[0]})")
