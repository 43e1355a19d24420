"""What an importer is: it recognises its format, and reads it record by record.

A new format is one file beside this one and one line in `registry.py`. An importer streams: it holds one record at a
time, however large its file. A record that it cannot read is `Refused`, and the others are read all the same. Every
memory that it makes has a key, which is the same when the record is read again, also if its content has changed then.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from nacre.analysis import encodings
from nacre.errors import InvalidInput
from nacre.types.memory import NewMemory
from nacre.validation import LIMITS

HEAD_BYTES = 65_536  # of a file, by which its format is recognised
LINE_BYTES_MAX = 32 * 2**20  # of a longer line only the beginning is given, which no format can read
FILE_BYTES_MAX = 4 * LIMITS.text_chars_max  # of a file that is read as a whole
FILES_MAX = 1_000_000  # of a folder
DEPTH_MAX = 100  # folders in folders
_BUFFER_BYTES = 1 << 18
_CUT = re.compile("[\x00\ud800-\udfff]")


class Refused(NamedTuple):
    """A record that cannot be read, and why. The others are read all the same."""

    where: str  # such as "line 12" or "notes/tea.md"
    problem: str  # what is wrong with it: "is not JSON (…)"


class Source:
    """What is to be read, and how far that is. Importers open files through it, so that it counts the bytes.

    `name` stands in the keys of memories: that of the file or folder, unless the caller gives another. `columns` says
    which column of a table has which field of a memory. `encoding` is that of texts which are not UTF-8.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        columns: Mapping[str, str] = MappingProxyType({}),
        encoding: str | None = None,
    ) -> None:
        if name is not None and not 0 < len(name.strip()) <= LIMITS.name_chars_max:
            raise InvalidInput("name", f"has {len(name):,} characters; 1 to {LIMITS.name_chars_max} are allowed")
        self.path = path
        self.name = storable(path.resolve().name or "root") if name is None else storable(name)
        self.columns = columns
        self.encoding = encoding
        self.is_folder = path.is_dir()
        self.done = 0  # bytes
        self.total = 0 if self.is_folder else _size(path)  # bytes; 0: not known

    def open(self, path: Path | None = None) -> io.BufferedReader:
        """The file, or this one of the folder, to be read from its start."""
        return io.BufferedReader(_Counted(self, path or self.path), _BUFFER_BYTES)

    def text(self, path: Path | None = None) -> io.TextIOWrapper:
        """The same as text. What is no character of its encoding is replaced, lines may end in any way."""
        return io.TextIOWrapper(self.open(path), self.encoding_of(path), errors="replace")

    def encoding_of(self, path: Path | None = None) -> str:
        """UTF-16 if the file says so, or else what the caller said, or UTF-8."""
        with (path or self.path).open("rb") as file:
            return "utf-16" if file.read(2) in encodings.UTF_16 else self.encoding or "utf-8-sig"

    def lines(self, path: Path | None = None) -> Iterator[tuple[int, bytes]]:
        """The lines of a file with their numbers, from 1. Of one that is too long only the beginning is given."""
        most = LINE_BYTES_MAX + 1
        number = 0
        with self.open(path) as file:
            while line := file.readline(most):
                number += 1
                yield number, line
                while len(line) == most and not line.endswith(b"\n"):
                    line = file.readline(most)

    def content(self, path: Path | None = None) -> bytes:
        """A whole file. Raises InvalidInput where it is too long, or cannot be read."""
        try:
            with self.open(path) as file:
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise InvalidInput("", f"cannot be read ({error.strerror or error})") from None
        if len(content) > FILE_BYTES_MAX:
            raise InvalidInput("", f"is too long; at most {FILE_BYTES_MAX:,} bytes are allowed: split it")
        return content

    def files(self, suffixes: Collection[str]) -> Iterator[tuple[str, Path] | Refused]:
        """The files of a folder with these suffixes, in a fixed order, each with its path in the folder.

        Hidden files and folders are left out. So is everything that is a link to elsewhere, so that no file outside of
        the folder is read. `total` is set.
        """
        several = list(walk(self.path, suffixes))
        self.total = sum(_size(each[1]) for each in several if not isinstance(each, Refused))
        yield from several


def walk(
    folder: Path, suffixes: Collection[str], *, links: bool = False, skipped: Counter[str] | None = None
) -> Iterator[tuple[str, Path] | Refused]:
    """The files of a folder with these suffixes, and of the folders in it, each with its path in the folder.

    `links` reads files that are links to elsewhere; folders that are links are never read. `skipped` counts what is
    `hidden` or `other`.
    """
    counts = Counter[str]() if skipped is None else skipped
    waiting = [(folder, "")]
    number = 0
    while waiting:
        at, within = waiting.pop()
        if within.count("/") > DEPTH_MAX:
            yield Refused(storable(within), f"lies too deep; at most {DEPTH_MAX} folders are followed")
            continue
        try:
            with os.scandir(at) as listed:
                entries = sorted(listed, key=lambda each: each.name)
        except OSError as error:
            yield Refused(storable(within) or ".", f"cannot be read ({error.strerror or error})")
            continue
        counts["hidden"] += sum(each.name.startswith(".") for each in entries)
        entries = [each for each in entries if not each.name.startswith(".")]
        folders = [each for each in entries if each.is_dir(follow_symlinks=False)]
        for each in entries:
            if each.is_dir():
                continue
            if not each.is_file(follow_symlinks=links) or Path(each.name).suffix.lower() not in suffixes:
                counts["other"] += 1
                continue
            number += 1
            if number > FILES_MAX:
                yield Refused(storable(within) or ".", f"has more than {FILES_MAX:,} files; import its folders alone")
                return
            yield storable(f"{within}{each.name}"), Path(each.path)
        waiting += [(Path(each.path), f"{within}{each.name}/") for each in reversed(folders)]


class _Counted(io.RawIOBase):
    """A file that tells its source how many bytes of it are read."""

    def __init__(self, source: Source, path: Path) -> None:
        self._source = source
        self._file = path.open("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any, /) -> int:
        count = self._file.readinto(buffer) or 0
        self._source.done += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class Importer(NamedTuple):
    """One format.

    `recognises` gets a path and the first HEAD_BYTES of the file, b"" for a folder; it may look into a folder. `where`
    gives the folder or file in which a program keeps its history by itself, from the user's home and the environment.
    """

    name: str
    about: str  # one line: what it is, and what becomes of it
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Source], Iterator[NewMemory | Refused]]
    where: Callable[[Path, Mapping[str, str]], Path] | None = None


def part_of_key(text: str, chars_max: int) -> str:
    """A text as a part of a key: of a longer one its beginning and a digest. Escapes what separates the parts."""
    text = storable(text).replace("%", "%25").replace("#", "%23")
    if len(text) <= chars_max:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return f"{text[: chars_max - 33]}~{digest}"


def storable(text: str) -> str:
    """The text with what no store can keep, NUL and half characters, replaced."""
    return _CUT.sub("\ufffd", text)


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
