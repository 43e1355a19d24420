"""What is a backup file? A SQLite database, then a manifest as JSON, then a line with the checksum of both.

SQLite takes the size of a database from its header and ignores what follows, so every SQLite can read a backup. A full
backup is the database of the store. An incremental one has a table of page deltas, see deltas.py.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import apsw

from nacre.errors import NacreError, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from nacre.runtime import private_files
from nacre.types.backups import Backup

NAME = re.compile(r"nacre-\d{8}T\d{6}Z-[0-9a-f]{8}-(full|incremental)\.db")
_PART = re.compile(r"\.nacre-[0-9a-f]{8}\.part(-journal|-wal|-shm)?")
_LOCK = ".nacre-backup.lock"
_LOCK_TIMEOUT_MS = 10_000
_LAST_LINE = re.compile(rb"nacre-backup 1 (\d{10}) ([0-9a-f]{64})\n")
_LAST_LINE_BYTES = len("nacre-backup 1 ") + 10 + 1 + 64 + 1
_MANIFEST_BYTES_MAX = 1 << 20
_CHUNK_BYTES = 1 << 20
_OUTSIDE = ("path", "checksum", "size_bytes")  # fields that the file itself tells


def generated_name(backup: Backup) -> str:
    return f"nacre-{backup.created:%Y%m%dT%H%M%SZ}-{backup.id}-{backup.kind}.db"


def part_in(folder: Path) -> Path:
    """A name for a file that is not complete yet. `alone_in` removes what is left under such a name."""
    return folder / f".nacre-{secrets.token_hex(4)}.part"


# ---------------------------------------------------------------- writing


def create(path: Path) -> None:
    """A new, empty file that only its owner can read."""
    if not private_files.create_file(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def finish(path: Path, backup: Backup) -> Backup:
    """Append the manifest and the checksum to a database, and wait for the disk. Returns what `read` will.

    The database of a full backup is counted and summed up for the manifest.
    """
    with path.open("r+b") as file:
        checksum = digest(file)
        if backup.kind == "full":
            pages = file.tell() // backup.page_bytes
            backup = replace(backup, pages=pages, pages_checksum=checksum.hexdigest())
        kept = {name: value for name, value in asdict(backup).items() if name not in _OUTSIDE}
        manifest = json.dumps(kept | {"created": backup.created.isoformat()}).encode() + b"\n"
        checksum.update(manifest)
        file.write(manifest)
        file.write(f"nacre-backup 1 {len(manifest):010} {checksum.hexdigest()}\n".encode())
        size = file.tell()
        sync(file)
    return replace(backup, path=path, checksum=checksum.hexdigest(), size_bytes=size)


def digest(file: IO[bytes], size: int | None = None) -> hashlib._Hash:
    """The SHA-256 of so many bytes from the place of the file, or of all the rest."""
    checksum = hashlib.sha256()
    left = size
    while chunk := file.read(_CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES)):
        checksum.update(chunk)
        if left is not None:
            left -= len(chunk)
    return checksum


def sync(file: IO[bytes]) -> None:
    """Wait until a file is on the disk, and let what is read of it next come from there."""
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: Path) -> None:
    """Wait until a renamed file has its name on the disk. Windows has no such call."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    except OSError as error:  # some network file systems cannot
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


# ---------------------------------------------------------------- reading


def read(path: Path) -> Backup:
    """What a backup says of itself. Raises StoreUnavailable, or StoreCorrupt for a file that is no backup."""
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except (OSError, ValueError) as error:  # a NUL in the path
        raise StoreUnavailable(f"backup: {path} cannot be read ({error}); check the path") from None


def _read(file: IO[bytes], path: Path) -> Backup:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LAST_LINE_BYTES))
    found = _LAST_LINE.fullmatch(file.read())
    length = int(found[1]) if found else 0
    if not found or length > min(size, _MANIFEST_BYTES_MAX):
        raise StoreCorrupt(f"backup: {path} is not a backup of Nacre, or its end is missing; give another file")
    file.seek(size - _LAST_LINE_BYTES - length)
    try:
        manifest: dict[str, Any] = json.loads(file.read(length))
        manifest["created"] = datetime.fromisoformat(manifest["created"])
        kept = {each.name: manifest[each.name] for each in fields(Backup) if each.name not in _OUTSIDE}
        return Backup(**kept, path=path, checksum=found[2].decode(), size_bytes=size)
    except (ValueError, TypeError, KeyError):
        raise damaged(path, "its manifest cannot be read") from None


def verified(path: Path) -> Backup:
    """What a backup says of itself, after its checksum was compared."""
    backup = read(path)
    with errors(path), path.open("rb") as file:
        if digest(file, backup.size_bytes - _LAST_LINE_BYTES).hexdigest() != backup.checksum:
            raise damaged(path, "its checksum differs")
    return backup


def damaged(path: Path, problem: str) -> StoreCorrupt:
    return StoreCorrupt(f"backup: {path} is damaged: {problem}; use another backup")


# ---------------------------------------------------------------- folders


def in_folder(folder: Path, store_id: str) -> list[Backup]:
    """The backups of a store in a folder that were named by Nacre, the oldest first. Other files are passed over."""
    found = []
    with errors(folder):
        for path in folder.iterdir():
            if NAME.fullmatch(path.name):
                with suppress(StoreError):
                    found.append(read(path))
    return sorted((each for each in found if each.store_id == store_id), key=lambda each: (each.created, each.seq))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time write and remove backups in a folder, and remove what a killed one left.

    The lock is one of SQLite, which ends with the process on every platform.
    """
    path = folder / _LOCK
    with errors(folder):
        private_files.create_file(path)
        lock = apsw.Connection(str(path.absolute()))
        try:
            lock.set_busy_timeout(_LOCK_TIMEOUT_MS)
            lock.execute("BEGIN EXCLUSIVE")
            for left in folder.iterdir():
                if _PART.fullmatch(left.name):
                    left.unlink(missing_ok=True)
            yield
        finally:
            lock.close()


@contextmanager
def errors(path: Path, what: str = "backup") -> Iterator[None]:
    """Errors of the system and of SQLite on a backup file or folder become errors of Nacre."""
    try:
        yield
    except NacreError:
        raise
    except (apsw.BusyError, apsw.LockedError):
        raise StoreBusy(f"backup: another process is writing a backup to {path}; try again") from None
    except (apsw.Error, OSError) as error:
        if isinstance(error, apsw.FullError) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"{what}: no room left for {path}; free some space and try again") from error
        raise StoreUnavailable(f"{what}: {path} cannot be used ({error}); check the path, and who may write") from error
