"""Markdown that `nacre export` wrote: files of one memory each, or of a day. What people change in them is read, too.

`serialization/markdown.py` writes them. Front matter has the fields, each as JSON; the file of a day has them in a
comment before each memory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from nacre.errors import InvalidInput
from nacre.importers.importer import HEAD_BYTES, Importer, Refused, Source, storable
from nacre.importers.notes import MARKDOWN
from nacre.types.facts import NewFact
from nacre.types.memory import NewMemory

MARK, VERSION = "nacre", 1  # the field by which a file of ours is known
COMMENT = "<!-- nacre "
ESCAPED = re.compile(r"^(\\*)<!-- nacre ", re.MULTILINE)  # gets one more backslash in the text of a memory
_UNESCAPED = re.compile(r"^\\(\\*<!-- nacre )", re.MULTILINE)
_OURS = re.compile(rf"---\r?\n{MARK}: {VERSION}\b".encode())
_PART = re.compile(r"^<!-- nacre (\{.*\}) -->$", re.MULTILINE)
_FILES_SEEN = 50  # by which a folder is recognised

_TIMES = ("created", "happened", "expires")
_FACT_TIMES = ("valid_from", "valid_to")
_FIELDS = {each.name for each in fields_of(NewMemory)} - {"text", "entities", "extract", "supersedes"}
_FACT_FIELDS = {each.name for each in fields_of(NewFact)}


def read(source: Source) -> Iterator[NewMemory | Refused]:
    """The memories of a folder, or of one file."""
    if not source.is_folder:
        yield from _read_file(source, source.name, source.path)
        return
    for found in source.files(MARKDOWN):
        if isinstance(found, Refused):
            yield found
        else:
            yield from _read_file(source, *found)


def _read_file(source: Source, within: str, path: Path) -> Iterator[NewMemory | Refused]:
    try:
        text = storable(source.content(path).decode("utf-8-sig"))
    except InvalidInput as error:
        yield Refused(within, error.problem)
        return
    except UnicodeDecodeError:
        yield Refused(within, "cannot be read as UTF-8")
        return
    if not text.startswith(f"---\n{MARK}: "):
        yield Refused(within, "was not written by `nacre export`; import it with --format markdown")
        return
    for number, (fields, said) in enumerate(parts(text), 1):
        try:
            yield _memory(fields, said)
        except (InvalidInput, TypeError, ValueError) as error:
            problem = error.problem if isinstance(error, InvalidInput) else f"has a field of the wrong type ({error})"
            yield Refused(f"{within}, memory {number}" if number > 1 else within, problem)


def parts(text: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The memories of a file: fields, and the text. What somebody wrote before the first one of a day is left out."""
    head, _, body = text.partition("\n---\n")
    fields = _front_matter(head)
    if "day" not in fields:
        yield fields, _without_frame(body)
        return
    pieces = _PART.split(body)
    for at in range(1, len(pieces), 2):
        try:
            found = json.loads(pieces[at])
        except ValueError:
            found = {}
        said = pieces[at + 1].removeprefix("\n")
        yield found, _UNESCAPED.sub(r"\1", _without_frame(said, last=at + 2 == len(pieces)))


def _without_frame(body: str, *, last: bool = True) -> str:
    """A text without the blank line before it, the line end after it, and that before the next memory."""
    return body.removeprefix("\n").removesuffix("\n" if last else "\n\n")


def _front_matter(head: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    last = ""
    for line in head.split("\n")[1:]:
        if line.startswith((" ", "-")) and last:
            several = found[last] if isinstance(found.get(last), list) else []
            found[last] = [*several, _value(line.strip().removeprefix("-").strip())]
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip()
            found[last] = _value(value.strip())
    return {name: value for name, value in found.items() if value is not None and name != MARK}


def _value(text: str) -> Any:
    """JSON, or what an editor has made of it: a plain word, or one in single quotes."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text[1:-1].replace("''", "'") if text[0] == text[-1] == "'" and len(text) > 1 else text


def _memory(fields: Mapping[str, Any], text: str) -> NewMemory:
    """Fields that are not known become metadata."""
    if not isinstance(fields, dict):
        raise InvalidInput("", "has fields that are no object")
    given = {name: value for name, value in fields.items() if name in _FIELDS and value is not None}
    for name in _TIMES:
        if name in given:
            given[name] = _time(given[name])
    facts = [each for each in given.pop("facts", ()) if isinstance(each, dict)]
    more = {name: value for name, value in fields.items() if name not in (*_FIELDS, "id", "updated", "day")}
    if more:
        given["metadata"] = {**given.get("metadata", {}), **more}
    given["facts"] = [_fact(each) for each in facts if each.get("origin", "given") == "given"]
    return NewMemory(text=text, **given)


def _fact(fields: Mapping[str, Any]) -> NewFact:
    known: dict[str, Any] = {name: value for name, value in fields.items() if name in _FACT_FIELDS}
    for name in _FACT_TIMES:
        if name in known:
            known[name] = _time(known[name])
    return NewFact(**known)


def _time(value: object) -> datetime:
    moment = datetime.fromisoformat(str(value))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _recognises(path: Path, head: bytes) -> bool:
    if not path.is_dir():
        return path.suffix.lower() in MARKDOWN and _OURS.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
    for each in islice(_files(path), _FILES_SEEN):
        with each.open("rb") as file:
            if _OURS.match(file.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")):
                return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    for found, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(found, name)
            if not name.startswith(".") and path.suffix.lower() in MARKDOWN and path.is_file():
                yield path


NACRE_MARKDOWN = Importer(
    "nacre-markdown",
    "Markdown that `nacre export` wrote: a file or a folder",
    _recognises,
    read,
)
