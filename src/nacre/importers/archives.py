"""Account exports: a file of conversations, a folder with such files, or the zip archive that they come in.

Nothing is unpacked to the disk, and no name in an archive is used as a path.
"""

from __future__ import annotations

import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from nacre.analysis import encodings
from nacre.importers.importer import HEAD_BYTES, Refused, Source, storable

T = TypeVar("T")

CONVERSATIONS = re.compile(r"conversations(-\d{1,6})?\.jsonl?", re.IGNORECASE)
_FOLDERS_MAX = 4  # in folders: an archive may have been unpacked into one
_MEMBERS_MAX = 100_000
_RATIO_MAX = 200  # JSON becomes 5 to 20 times as long when it is unpacked
_RATIO_FROM_BYTES = 64 * 2**20
_BROKEN = (zipfile.BadZipFile, OSError)
_UNREADABLE = (RuntimeError, NotImplementedError, ValueError, EOFError, zlib.error, lzma.LZMAError)  # of zipfile


class Member(Source):
    """A file in a zip archive, which is unpacked while it is read."""

    def __init__(self, archive: Source, unpacking: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        super().__init__(archive.path, name=archive.name, columns=archive.columns, encoding=archive.encoding)
        self._unpacking = unpacking
        self._member = member

    def open(self, path: Path | None = None) -> io.BufferedReader:
        assert path is None
        try:
            packed = self._unpacking.open(self._member)
        except _UNREADABLE as problem:  # encrypted, or packed in an unknown way
            raise zipfile.BadZipFile(str(problem)) from None
        return io.BufferedReader(_Unpacked(packed, self._member.compress_size))

    def encoding_of(self, path: Path | None = None) -> str:
        with self.open(path) as file:
            return "utf-16" if file.read(2) in encodings.UTF_16 else self.encoding or "utf-8-sig"


class _Unpacked(io.RawIOBase):
    """A file that ends with an error where it becomes much longer than any text does."""

    def __init__(self, file: IO[bytes], packed_bytes: int) -> None:
        self._file = file
        self._most = max(_RATIO_MAX * packed_bytes, _RATIO_FROM_BYTES)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            piece = self._file.read(len(buffer))
        except _UNREADABLE as problem:
            raise zipfile.BadZipFile(str(problem) or "it ends too early") from None
        buffer[: len(piece)] = piece
        self._read += len(piece)
        if self._read > self._most:
            raise zipfile.BadZipFile(
                f"it is more than {_RATIO_MAX} times as long as it is packed; unpack it first if you trust it"
            )
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


def heads(path: Path, head: bytes, names: re.Pattern[str] = CONVERSATIONS) -> Iterator[bytes]:
    """The beginnings of the files with these names: of a folder, of an archive, or of the file itself."""
    try:
        if path.is_dir():
            for each in _in_folder(path, names):
                with each.open("rb") as file:
                    yield file.read(HEAD_BYTES)
        elif head.startswith(b"PK"):
            source = Source(path)
            with zipfile.ZipFile(path) as archive:
                for member in _in_archive(archive, names):
                    with Member(source, archive, member).open() as unpacked:
                        yield unpacked.read(HEAD_BYTES)
        else:
            yield head
    except (*_BROKEN, *_UNREADABLE):
        return


def each(
    source: Source, read: Callable[[Source, Path | None, str], Iterator[T]], names: re.Pattern[str] = CONVERSATIONS
) -> Iterator[T | Refused]:
    """What `read` gives of each file with such a name. What cannot be unpacked is refused, and the rest is read."""
    if source.is_folder:
        for found in source.files({".json", ".jsonl"}):
            if isinstance(found, Refused):
                yield found
            elif names.fullmatch(found[1].name):
                yield from read(source, found[1], f"{found[0]} ")
        return
    with source.open() as file:
        if not file.peek(2).startswith(b"PK"):
            yield from read(source, source.path, "")
            return
        try:
            archive = zipfile.ZipFile(file)
            members = list(_in_archive(archive, names))
        except (*_BROKEN, *_UNREADABLE) as problem:
            yield Refused("archive", f"cannot be read ({problem})")
            return
        for member in members:
            name = storable(member.filename.rpartition("/")[2])
            try:
                yield from read(Member(source, archive, member), None, f"{name} ")
            except _BROKEN as problem:
                yield Refused(name, f"cannot be unpacked ({problem})")


def _in_folder(folder: Path, names: re.Pattern[str]) -> list[Path]:
    found = (path for depth in range(_FOLDERS_MAX) for path in folder.glob(f"{'*/' * depth}*.json*"))
    return sorted(path for path in found if names.fullmatch(path.name) and path.is_file() and not path.is_symlink())


def _in_archive(archive: zipfile.ZipFile, names: re.Pattern[str]) -> list[zipfile.ZipInfo]:
    members = archive.infolist()[:_MEMBERS_MAX]
    return sorted(
        (
            each
            for each in members
            if names.fullmatch(each.filename.rpartition("/")[2]) and "__MACOSX" not in each.filename
        ),
        key=lambda each: each.filename,
    )
