"""Conversations as memories, turn by turn, as hooks store them: the text, and in its metadata who said it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from nacre.analysis import encodings
from nacre.analysis.turns import said
from nacre.importers.importer import HEAD_BYTES, Refused, storable
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_DEPTH_MAX = 20  # of what is kept as metadata
_SECONDS_MAX = 100_000_000_000  # a larger number of them, after the year 5138, is one of milliseconds


class Turn(NamedTuple):
    """What somebody said. `number` tells it from the others of its session, wherever it is read again."""

    session: str
    number: str
    role: str
    text: str
    created: datetime | None
    more: Mapping[str, Json] = {}  # metadata


class Title(NamedTuple):
    """A name of the session. One of a lower rank does not replace it, a later one of the same does."""

    text: str
    rank: int = 0


def memories(
    source: str,
    parts: Iterable[Turn | Title | Refused],
    spoken: Callable[[str], str] = said,
    *,
    titled_late: bool = True,
) -> Iterator[NewMemory | Refused]:
    """The turns as memories. `source` is the program that kept them, `spoken` leaves what was said of a text.

    The title becomes the summary of the first turn. `titled_late`: it may come after turns, so the first turn is given
    last.
    """
    first: NewMemory | None = None
    title: Title | None = None
    position = 0
    for part in parts:
        if isinstance(part, Refused):
            yield part
        elif isinstance(part, Title):
            if part.text.strip() and (title is None or part.rank >= title.rank):
                title = part
        elif text := spoken(part.text):
            session = fitting(part.session, LIMITS.name_chars_max)
            if first is not None and session != first.session:
                yield _titled(first, title)
                first, title, position = None, None, 0
            turn = NewMemory(
                text=text,
                kind="episode",
                session=session,
                position=position,
                source=source,
                created=part.created,
                metadata={"role": part.role, **part.more},
                key=key(source, part.session, part.number),
                extract=False,
            )
            position += 1
            if position > 1:
                yield turn
            elif titled_late:
                first = turn
            else:
                yield _titled(turn, title)
    if first is not None:
        yield _titled(first, title)


def _titled(turn: NewMemory, title: Title | None) -> NewMemory:
    text = "" if title is None else " ".join(said(title.text).split())[: LIMITS.summary_chars_max]
    return replace(turn, summary=text) if text else turn


# ---------------------------------------------------------------- recognising

_LOOKED_AT = 20  # lines of a file, files of a folder


def beginning(head: bytes) -> str:
    """The first bytes of a file as a text."""
    encoding = "utf-16" if head.startswith(encodings.UTF_16) else "utf-8-sig"
    return head.decode(encoding, "ignore")


def first_objects(head: bytes) -> Iterator[Mapping[str, Any]]:
    """The objects that the first lines of a file are."""
    for line in beginning(head).split("\n", _LOOKED_AT)[:_LOOKED_AT]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def heads(files: Iterable[Path]) -> Iterator[bytes]:
    """The beginnings of some files of a folder."""
    for path in islice(files, _LOOKED_AT):
        try:
            with path.open("rb") as file:
                yield file.read(HEAD_BYTES)
        except OSError:
            continue


# ---------------------------------------------------------------- values of all formats


def key(*parts: str) -> str:
    """The key of what these parts name."""
    return fitting(":".join(parts), LIMITS.key_chars_max)


def fitting(name: str, chars_max: int) -> str:
    """A name that a store can keep. Of a longer one the end is replaced by a digest of it all."""
    kept = storable(name)
    if len(kept) <= chars_max:
        return kept
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{kept[: chars_max - 33]}~{digest}"


def moment(value: object) -> datetime | None:
    """A time, given in seconds or milliseconds since 1970 or in ISO 8601; UTC if it has no zone. None: it is none."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value if abs(value) < _SECONDS_MAX else value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def plain(value: object, depth: int = 0) -> Json:
    """A value of JSON as a store can keep it in metadata."""
    if isinstance(value, dict) and depth < _DEPTH_MAX:
        return {storable(str(name)): plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list) and depth < _DEPTH_MAX:
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, dict | list):
        return "…"
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**300 else None
    return value if value is None or isinstance(value, bool | int) else storable(str(value))


def word(value: object) -> str:
    """A text that is not blank; "" for anything else."""
    return value if isinstance(value, str) and not value.isspace() else ""


def mapping(value: object) -> Mapping[str, Any]:
    """An object of JSON; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """An array of JSON; an empty one for anything else."""
    return value if isinstance(value, list) else []
