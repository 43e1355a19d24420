"""What a client's transcript says after the last turn that is stored, read as an import of the same file reads it.

Clients run a hook after every answer, and a transcript grows to hundreds of megabytes. So the hook asks the store for
the last turn that it has of the session, and reads on from there. No other state is kept, so a turn that was missed is
read the next time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nacre.analysis.turns import said_to_agent
from nacre.importers import claude_code, codex
from nacre.importers.conversations import Turn, memories
from nacre.importers.importer import HEAD_BYTES, Source
from nacre.types.memory import Memory, NewMemory
from nacre.types.search import Filter

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre

BLOCK_BYTES = 1 << 20


class Transcript(NamedTuple):
    """A session's file, and the client that writes it."""

    client: str
    session: str
    path: Path


class Stored(NamedTuple):
    """The last turn of a session that is stored: what is its own in its key, and its position."""

    number: str
    position: int


def named(event: Mapping[str, Any], environment: Mapping[str, str]) -> Transcript | None:
    """The transcript of an event. None: its client has none, or keeps none of this session."""
    if event.get("type") == "agent-turn-complete":
        path = _rollout(str(event["thread-id"]), environment)
        return None if path is None else Transcript("codex", event["thread-id"], path)
    if "conversation_id" in event:
        return None
    session, path = event["session_id"], Path(event["transcript_path"])
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return Transcript("codex" if codex.recognises(path, head) else "claude-code", session, path)


def _rollout(session: str, environment: Mapping[str, str]) -> Path | None:
    """The transcript that Codex keeps of a session, which its notification does not name."""
    if not re.fullmatch(r"[\w-]+", session):
        return None
    folder = codex.where(Path(environment.get("HOME") or Path.home()), environment)
    return next(folder.glob(f"*/*/*/rollout-*-{session}.jsonl"), None)


def last(transcript: Transcript, memory: Nacre) -> Stored | None:
    """The last stored turn. One that was forgotten counts, too: it must not come back."""
    prefix = f"{transcript.client}:{transcript.session}:"
    where = Filter(sessions=(transcript.session,), key_prefixes=(prefix,))
    found: list[Memory] = []
    for forgotten in (False, True):
        page = memory.timeline(where=where, limit=1, forgotten=forgotten)
        found += memory.get([each.id for each in page.entries])
    turns = [Stored(each.key.removeprefix(prefix), each.position or 0) for each in found if each.key is not None]
    return max(turns, key=lambda each: each.position, default=None)


def turns(transcript: Transcript, stored: Stored | None) -> Iterator[NewMemory]:
    """The turns after the stored one, or all. What cannot be read is left out: an import lists it."""
    tail = None if stored is None else _tail(transcript, stored)
    reader = codex if transcript.client == "codex" else claude_code
    said = [] if tail is None else [each for each in reader.parts(tail, transcript.path) if isinstance(each, Turn)]
    if reader is claude_code and any(each.number.isdecimal() for each in said):
        tail = None  # it has no id of its own, and its number is that of its line in the whole file
    if tail is None or stored is None:
        found = reader.read(Source(transcript.path))
        yield from (each for each in found if isinstance(each, NewMemory))
        return
    if reader is codex:
        said = [each._replace(number=str(int(each.number) + tail.left_out)) for each in said]
    for each in memories(transcript.client, said, said_to_agent):  # no titles: the first turn is not among them
        if isinstance(each, NewMemory):
            yield replace(each, position=(each.position or 0) + stored.position + 1)


class _Tail(Source):
    """A transcript from a byte on, after the line with which it begins where that one names the session.

    `left_out` is by how much the numbers of its records are too small.
    """

    def __init__(self, path: Path, start: int, first: bytes = b"", left_out: int = 0) -> None:
        super().__init__(path)
        self._start = start
        self._first = first
        self.left_out = left_out

    def lines(self, path: Path | None = None) -> Iterator[tuple[int, bytes]]:
        if self._first:
            yield 1, self._first
        with self.open(path) as file:
            file.seek(self._start)
            yield from enumerate(file, 2)


def _tail(transcript: Transcript, stored: Stored) -> _Tail | None:
    """None: the stored turn is not in the file."""
    if transcript.client == "codex":
        return _from_record(transcript.path, stored.number)
    start = _end_of(transcript.path, stored.number)
    return None if start is None else _Tail(transcript.path, start)


def _from_record(path: Path, number: str) -> _Tail | None:
    """What follows the record with this number. Blank lines are none."""
    if not number.isdecimal():
        return None
    records, first = 0, b""
    with path.open("rb") as file:
        for line in file:
            if not line.isspace():
                records += 1
                first = first or line
            if records == int(number):
                return _Tail(path, file.tell(), first, records - 1)
    return None


def _end_of(path: Path, uuid: str) -> int | None:
    """Where the line of this record ends, sought from the end of the file."""
    needle = json.dumps(uuid).encode()
    with path.open("rb") as file:
        at = file.seek(0, 2)
        rest = b""  # the beginning of a line that is not complete yet
        while at:
            size = min(BLOCK_BYTES, at)
            at -= size
            file.seek(at)
            data = file.read(size) + rest
            whole = data.find(b"\n") + 1 if at else 0  # a block without any end of a line gives 0, and is sought again
            found = data.rfind(needle, whole)
            while found >= 0:
                begin, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found) + 1 or len(data)
                if _is_record(data[begin:end], uuid):
                    return at + end
                found = data.rfind(needle, whole, begin)
            rest = data[:whole] or data
    return None


def _is_record(line: bytes, uuid: str) -> bool:
    """Whether it is the record itself, and not one that names it as its parent."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and entry.get("uuid") == uuid
