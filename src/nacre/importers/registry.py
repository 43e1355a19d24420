"""Every importer, in the order in which they are asked whether they recognise a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from nacre.errors import InvalidInput
from nacre.importers.basic_memory import BASIC_MEMORY
from nacre.importers.chatgpt import CHATGPT
from nacre.importers.claude import CLAUDE
from nacre.importers.claude_code import CLAUDE_CODE
from nacre.importers.claude_mem import CLAUDE_MEM
from nacre.importers.codex import CODEX
from nacre.importers.importer import HEAD_BYTES, Importer
from nacre.importers.langgraph import LANGGRAPH
from nacre.importers.mbox import MBOX
from nacre.importers.mem0 import MEM0
from nacre.importers.nacre_markdown import NACRE_MARKDOWN
from nacre.importers.notes import MARKDOWN_NOTES, PLAIN_TEXT
from nacre.importers.tables import CSV, JSON, JSONL

# One that recognises its own files for sure comes before one that takes any Markdown, table or text.
IMPORTERS: tuple[Importer, ...] = (
    CLAUDE_CODE,
    CODEX,
    CHATGPT,
    CLAUDE,
    CLAUDE_MEM,
    LANGGRAPH,
    MEM0,
    MBOX,
    NACRE_MARKDOWN,
    BASIC_MEMORY,
    CSV,
    JSONL,
    JSON,
    MARKDOWN_NOTES,
    PLAIN_TEXT,
)

ELSEWHERE = ("knowledge-graph", "nacre")  # formats that are no list of memories, so that they are read elsewhere


def named(name: str) -> Importer:
    """The importer of this format."""
    for each in IMPORTERS:
        if each.name == name:
            return each
    raise InvalidInput("format", f"{name!r} is unknown; known: {_names()}")


def recognised(path: Path, shown: Path | None = None) -> Importer:
    """The importer of the format that a file or folder is in. `shown` is what an error calls it."""
    start = head(path, shown)
    for each in IMPORTERS:
        if each.recognises(path, start):
            return each
    raise InvalidInput("path", f"{shown or path} is in no known format; name it with --format: {_names()}")


def at_home(home: Path, environment: Mapping[str, str]) -> list[tuple[Importer, Path]]:
    """What programs keep on this machine by themselves and can be imported, and where it is."""
    places = ((each, each.where(home, environment)) for each in IMPORTERS if each.where is not None)
    return [(importer, place) for importer, place in places if place.exists()]


def _names() -> str:
    return ", ".join((*ELSEWHERE, *(each.name for each in IMPORTERS)))


def head(path: Path, shown: Path | None = None) -> bytes:
    """The first bytes of a file, b"" of a folder. Raises InvalidInput for what is neither, or cannot be read."""
    said = shown or path
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # a Path raises another error where a name is too long
        if stat.S_ISDIR(mode):
            return b""
        if not stat.S_ISREG(mode):
            raise InvalidInput("path", f"{said} is neither a file nor a folder")
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:  # a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput("path", f"{said} cannot be read ({reason})") from None
