"""`nacre remember --file`: files and folders as memories, each file one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from nacre.analysis import encodings, front_matter
from nacre.analysis.front_matter import Document
from nacre.analysis.private import PRIVATE_ONLY, without_private
from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.group import answer
from nacre.cli.options import opened, stdin_text, wants_json
from nacre.cli.refusals import Refusals
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NacreError
from nacre.importers.importer import Refused, walk
from nacre.importers.notes import MARKDOWN, TEXTS
from nacre.serialization import encode
from nacre.types.memory import Json, NewMemory, Progress, Remembered
from nacre.validation import LIMITS

STDIN = Path("-")
_BYTES_MAX = 4 * LIMITS.text_chars_max  # a file that is larger has too many characters in any case
_CHUNK = 32  # files of one transaction, so that progress is shown
_SKIPPED = {  # of a folder: why, and how it is said
    "hidden": "hidden",
    "other": "of other types",
    "binary": "binary",
    "empty": "empty",
    "private": "private",
}


def new_memory(path: Path, fields: Mapping[str, Any]) -> NewMemory:
    """One file as a memory."""
    try:
        return _memory(path, _text(path), fields)
    except InvalidInput as error:
        raise InvalidInput("file", f"{path} {error.problem}") from None


def _memory(path: Path, text: str | None, fields: Mapping[str, Any]) -> NewMemory:
    """Given fields count more than those of the front matter; tags are joined."""
    if text is None:
        raise InvalidInput("", "cannot be read as UTF-8 text")
    public = without_private(text)  # before its title is read, which may be private, too
    if text.strip() and not public:
        raise InvalidInput("", PRIVATE_ONLY)
    text = public
    document = front_matter.read(text) if path.suffix.lower() in MARKDOWN else Document(text)
    found: dict[str, Any] = {"summary": document.title, "created": document.created}
    if path != STDIN:
        found["source"] = path.as_posix().encode("utf-8", "replace").decode()  # a name may be any bytes
    joined = {
        "tags": tuple(dict.fromkeys((*document.tags, *fields.get("tags", ())))),
        "metadata": {**document.metadata, **fields.get("metadata", {})},
    }
    return NewMemory(text=document.text, **{**found, **fields, **joined})


def _text(path: Path) -> str | None:
    """The text of a file; None if it is none."""
    if path == STDIN:
        return stdin_text()
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput("", f"cannot be read ({error.strerror})") from None
    if len(content) > _BYTES_MAX:
        raise InvalidInput("", f"is too long; at most {LIMITS.text_chars_max:,} characters are allowed: split it")
    return encodings.text_of(content)


# ---------------------------------------------------------------- several


def remember_files(context: click.Context, paths: Iterable[Path], fields: Mapping[str, Any], defer: bool) -> None:
    """Store every file that can be stored; the others are listed in the end."""
    refusals, skipped = Refusals("file"), Counter[str]()
    files = list(_found(paths, refusals, skipped))
    stored: list[tuple[NewMemory, Remembered]] = []
    if files:
        with opened(context, create=True, defer_embeddings=defer) as memory, render.progress("remembering") as bar:
            for start in range(0, len(files), _CHUNK):
                bar(Progress(start, len(files)))
                chunk = files[start : start + _CHUNK]
                stored += _stored(memory, list(_readable(chunk, fields, refusals, skipped)), refusals)
    counts: dict[str, Json] = {name: skipped[name] for name in _SKIPPED}
    remembered: list[Json] = [{"source": new.source, **encode.remembered(receipt)} for new, receipt in stored]
    answer(context, {"remembered": remembered, "skipped": counts}, [_said([each for _, each in stored], skipped)])
    if not wants_json(context):
        render.remark_first([f"{new.source or STDIN}: {note}" for new, receipt in stored for note in receipt.notes])
    refusals.report(context, "stored")


def _found(paths: Iterable[Path], refusals: Refusals, skipped: Counter[str]) -> Iterator[tuple[Path, bool]]:
    """The files that are named, and the texts in folders that are named, each with whether it is named itself."""

    for path in dict.fromkeys(paths):
        if path == STDIN or not os.path.isdir(path):  # noqa: PTH112  # a Path raises where a name is too long
            yield path, True
            continue
        for found in walk(path, TEXTS, links=True, skipped=skipped):
            if isinstance(found, Refused):
                refusals.add((path / found.where).as_posix(), InvalidInput("", found.problem))
            else:
                yield found[1], False


def _readable(
    files: Iterable[tuple[Path, bool]], fields: Mapping[str, Any], refusals: Refusals, skipped: Counter[str]
) -> Iterator[NewMemory]:
    """The files as memories. One that is named must be a text; one in a folder is skipped if it is none."""
    for path, named in files:
        try:
            text = _text(path)
            if not named and text and not text.isspace() and not without_private(text):
                skipped["private"] += 1
            elif named or (text and not text.isspace()):
                yield _memory(path, text, fields)
            else:
                skipped["binary" if text is None else "empty"] += 1
        except InvalidInput as error:
            refusals.add(path.as_posix(), error)


def _stored(memory: Nacre, items: Sequence[NewMemory], refusals: Refusals) -> list[tuple[NewMemory, Remembered]]:
    """What was stored, with its receipts."""
    bad: set[int] = set()

    def refuse(number: int, error: NacreError) -> None:
        refusals.add(items[number - 1].source or str(STDIN), error)
        bad.add(number)

    receipts = list(chain.from_iterable(memory.remember_batches(items, refused=refuse)))
    return list(zip((each for number, each in enumerate(items, 1) if number not in bad), receipts, strict=True))


def _said(receipts: Sequence[Remembered], skipped: Counter[str]) -> render.Line:
    already = sum(receipt.duplicate for receipt in receipts)
    more = [f"{already:,} already stored"] if already else []
    more += [f"{skipped[name]:,} {said} skipped" for name, said in _SKIPPED.items() if skipped[name]]
    return [
        (f"remembered {counted(len(receipts) - already, 'file')}", ""),
        (f" ({', '.join(more)})" if more else "", "dim"),
    ]
