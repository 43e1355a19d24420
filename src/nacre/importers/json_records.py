"""JSON that is too large for memory, value by value: JSON Lines, and one long array, also as a member of an object.

A value that is damaged costs no other: where it ends is found by its brackets. One value and a piece of the file are
held at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from nacre.importers.importer import LINE_BYTES_MAX, Refused, Source

VALUE_CHARS_MAX = 32 * 2**20  # of one value of an array, such as a conversation with thousands of turns
_CHUNK_CHARS = 1 << 18
_WHITE = re.compile(r"[ \t\n\r\ufeff]*")
_STRUCTURE = re.compile(r'["\\{}\[\]]')
_SCALAR_END = re.compile(r"[,\]} \t\n\r]")
_OPENING = ('"', "{", "[")
_DECODER = json.JSONDecoder(strict=False)


class Record(NamedTuple):
    """A value, and where it stands."""

    where: str
    value: Any


class _Unreadable(Exception):
    """A value that is no JSON. The message says why."""


# ---------------------------------------------------------------- JSON Lines


def json_lines(source: Source, path: Path | None = None, within: str = "") -> Iterator[Record | Refused]:
    """The values of a JSON Lines file, without blank lines. `within` comes before the number in `where`."""
    for number, line in _lines(source, path):
        where = f"{within}line {number}"
        if len(line) > LINE_BYTES_MAX:
            yield Refused(where, f"has more than {LINE_BYTES_MAX:,} bytes; split it")
        elif line and not line.isspace():
            try:
                yield Record(where, _decoded(line))
            except _Unreadable as problem:
                yield Refused(where, f"is not JSON ({problem})")


def _lines(source: Source, path: Path | None) -> Iterator[tuple[int, bytes | str]]:
    """As bytes, so that one that is no text is refused alone; those of another encoding as texts."""
    if source.encoding_of(path) == "utf-8-sig":
        yield from source.lines(path)
        return
    most = LINE_BYTES_MAX + 1
    number = 0
    with source.text(path) as file:
        while line := file.readline(most):
            number += 1
            yield number, line
            while len(line) == most and not line.endswith("\n"):
                line = file.readline(most)


def _decoded(line: bytes | str) -> Any:
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except UnicodeDecodeError as problem:
        raise _Unreadable(f"no UTF-8 at byte {problem.start + 1}") from None
    except (ValueError, RecursionError) as problem:
        raise _Unreadable(_said(problem)) from None


def _said(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at character {problem.pos + 1}"
    return str(problem).partition(";")[0]  # a number with thousands of digits, thousands of brackets


# ---------------------------------------------------------------- one array


def json_array(source: Source, *members: str, path: Path | None = None, within: str = "") -> Iterator[Record | Refused]:
    """The values of a file that is an array; or, if it is an object, of its first member of these names.

    `where` counts them from 1, after `within`. Bytes that are no characters of the encoding are replaced.
    """
    with source.text(path) as file:
        text = _Text(file)
        if text.peek() == "{" and members:
            text.drop()
            try:
                if not _to_member(text, members):
                    yield Refused(f"{within}start", f"has no list as {' or '.join(map(repr, members))}")
                    return
            except _Unreadable as problem:
                yield Refused(f"{within}start", f"is not JSON ({problem})")
                return
        elif text.peek() != "[":
            yield Refused(f"{within}start", "is not a JSON array" + (" or object" if members else ""))
            return
        text.drop()
        yield from _values(text, within)


def _values(text: _Text, within: str) -> Iterator[Record | Refused]:
    number = 0
    while (mark := text.peek()) != "]":
        if mark == ",":
            text.drop()
            continue
        number += 1
        where = f"{within}item {number}"
        if not mark:
            yield Refused(where, "is missing: the file ends before its array does")
            return
        try:
            value = text.value()
        except _Unreadable as problem:
            yield Refused(where, f"is not JSON ({problem})")
        else:
            yield Record(where, value)


def _to_member(text: _Text, members: tuple[str, ...]) -> bool:
    """Go to the array that is the first of these members. False if there is none."""
    while (mark := text.peek()) != "}":
        if not mark:
            raise _Unreadable("the file ends before its object does")
        if mark in ",:":
            text.drop()
            continue
        name = text.value()
        if text.peek() == ":":
            text.drop()
        if name in members and text.peek() == "[":
            return True
        text.skip()
    return False


class _Text:
    """A text of which a piece is held, from the value that is read on."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not white space, which is not taken; "" at the end."""
        while True:
            found = _WHITE.match(self._held, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._held) or not self._more():
                return self._held[self._at : self._at + 1]

    def drop(self) -> None:
        """Take the character that was seen."""
        self._at += 1

    def value(self) -> Any:
        """The next value. One that is damaged or too long is taken, too."""
        if self.peek() not in _OPENING:
            return self._scalar()
        scan = _Scan(self._at)
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._held, self._at)
                return value
            except (ValueError, RecursionError) as problem:
                said = _said(problem)
            if self._ends(scan):
                raise _Unreadable(said)
            if len(self._held) - self._at > VALUE_CHARS_MAX:
                self._skip(scan)
                raise _Unreadable(f"it has more than {VALUE_CHARS_MAX:,} characters")
            start = self._at
            if not self._more():
                self._at = len(self._held)
                raise _Unreadable("the file ends within it")
            scan.at -= start

    def skip(self) -> None:
        """Take the next value without keeping it."""
        if self.peek() in _OPENING:
            self._skip(_Scan(self._at))
        else:
            self._taken_scalar()

    def _scalar(self) -> Any:
        try:
            return json.loads(self._taken_scalar())
        except ValueError as problem:
            raise _Unreadable(_said(problem)) from None

    def _taken_scalar(self) -> str:
        """A number, a word, or garbage: up to what ends it, which it is known by."""
        while (found := _SCALAR_END.search(self._held, self._at + 1)) is None:
            if len(self._held) - self._at > VALUE_CHARS_MAX or not self._more():
                break
        start, self._at = self._at, found.start() if found else len(self._held)
        return self._held[start : self._at]

    def _skip(self, scan: _Scan) -> None:
        while not self._ends(scan):
            scanned = self._at = min(scan.at, len(self._held))
            if not self._more():
                self._at = len(self._held)
                return
            scan.at -= scanned

    def _ends(self, scan: _Scan) -> bool:
        """Whether the value ends in the piece that is held; then it is taken."""
        end = scan.end(self._held)
        if end is None:
            return False
        self._at = end
        return True

    def _more(self) -> bool:
        """Hold more of the text, and less of what was taken. The longer a value is, the more is read at once."""
        rest = self._held[self._at :]
        piece = "" if self._ended else self._file.read(max(_CHUNK_CHARS, len(rest)))
        self._ended = not piece
        self._held, self._at = rest + piece, 0
        return bool(piece)


class _Scan:
    """Looks for the end of a text, list or object by its marks, also where it is damaged."""

    def __init__(self, at: int) -> None:
        self.at = at
        self._depth = 0
        self._quoted = False

    def end(self, text: str) -> int | None:
        """None: it is further on, so the scan goes on there."""
        while found := _STRUCTURE.search(text, self.at):
            self.at = found.end()
            mark = found[0]
            if mark == "\\":
                self.at += self._quoted
                continue
            if mark == '"':
                self._quoted = not self._quoted
            elif not self._quoted:
                self._depth += 1 if mark in "{[" else -1
            if self._depth <= 0 and not self._quoted:
                return self.at
        self.at = max(self.at, len(text))
        return None
