"""How does a backup become a store? It is built beside it and checked, then takes its place in one step."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from nacre.errors import InvalidInput, StoreBusy, StoreTooNew, StoreUnavailable
from nacre.storage.sqlite import encryption, rows, schema
from nacre.storage.sqlite.backup import chain, deltas, files
from nacre.storage.sqlite.connection import BUSY_TIMEOUT_MS, integrity_problems
from nacre.storage.sqlite.opened_file import open_file
from nacre.types.backups import Backup
from nacre.types.key import Key
from nacre.types.memory import Progress

_REPORTED_PAGES = 1_024
_LOGS = ("-wal", "-journal")  # SQLite would apply one that is left to the new store


def restore(
    source: Path, path: Path, *, force: bool, progress: Callable[[Progress], None], key: Key | None = None
) -> Backup:
    """Make a store of a backup and of those it continues. Raises, and changes nothing, unless every check passes."""
    with files.errors(path, "store"):
        path = path.resolve()  # SQLite's files are beside the one that a link leads to
        if path.is_dir() or not path.parent.is_dir():
            raise StoreUnavailable(f"store: {path} is not a place for a store; give a file in a folder that exists")
        if path.exists() and not force:
            raise InvalidInput("store", f"{path} exists; replace it with --force (force=True), or give another path")
        needed = _checked(source)
        if path.exists() and any(path.samefile(each.path) for each in needed):
            raise InvalidInput("store", f"{path} is the backup itself; give another path")
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.restoring")
        try:
            _build(new, needed, progress, key)
            _take_the_place_of(path, new, key)
        finally:
            new.unlink(missing_ok=True)
    return needed[-1]


def _checked(source: Path) -> list[Backup]:
    """A backup with those it continues, the full one first, if their checksums are right and the version is known."""
    described = files.read(source)
    if described.schema_version > schema.VERSION:
        raise StoreTooNew(
            f"backup: {source} has schema version {described.schema_version}, this Nacre knows up to {schema.VERSION}; "
            "upgrade Nacre"
        )
    others = files.in_folder(source.parent, described.store_id) if described.base is not None else []
    return chain.verified(described, others)


def _build(new: Path, needed: list[Backup], progress: Callable[[Progress], None], key: Key | None) -> None:
    """Write the pages of a backup into a new file, and make it a store that passes every check."""
    wanted = needed[-1]
    files.create(new)
    checksum = hashlib.sha256()
    with new.open("r+b") as file, deltas.Image(needed) as image:
        for number, page in enumerate(image, 1):
            checksum.update(page)
            file.write(page)
            if number % _REPORTED_PAGES == 0 or number == wanted.pages:
                progress(Progress(number, wanted.pages))
    if checksum.hexdigest() != wanted.pages_checksum:
        raise files.damaged(wanted.path, "its pages are not those of the store it was made from")
    db = open_file(new, key=encryption.needed(new, key))
    try:
        db.execute("PRAGMA journal_mode = OFF")  # a file that is not complete is removed
        problems = integrity_problems(db)
        if problems:
            raise files.damaged(wanted.path, problems)
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        # Results that were cached before cannot be taken for those of a store that has counted as far again.
        rows.set_meta(db, "revision", str(time.time_ns() // 1000))
    finally:
        db.close()
    with new.open("r+b") as file:
        files.sync(file)


def _take_the_place_of(path: Path, new: Path, key: Key | None) -> None:
    """Put a new store where another one is, or none. The old one is kept aside until the new one is in place.

    Its write-ahead log is emptied first, while no other process can write, and removed with the file.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.replaced")
    with _unwritten(path, key):
        if path.exists():
            _keep(path, aside)
        for suffix in _LOGS:
            if _size(_beside(path, suffix)):  # of a store that is gone or cannot be read
                _beside(path, suffix).replace(_beside(aside, suffix))
        new.replace(path)
        for suffix in (*_LOGS, "-shm"):
            _beside(path, suffix).unlink(missing_ok=True)
        files.sync_folder(path.parent)
    shutil.rmtree(_beside(path, "-cache"), ignore_errors=True)
    for suffix in ("", *_LOGS):
        _beside(aside, suffix).unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _keep(path: Path, aside: Path) -> None:
    """The old store gets a second name, so that there is a store under the first one all the time."""
    try:
        os.link(path, aside)
    except OSError:  # a file system without links
        shutil.copy2(path, aside)


@contextmanager
def _unwritten(path: Path, key: Key | None) -> Iterator[None]:
    """Hold the write lock of a store whose write-ahead log is empty. A missing or damaged one has no writers."""
    if not path.exists():
        yield
        return
    db = open_file(path, apsw.SQLITE_OPEN_READWRITE, key=encryption.needed(path, key))
    try:
        with suppress(apsw.NotADBError, apsw.CorruptError, apsw.IOError):
            _lock(db, path)
        if sys.platform == "win32":  # where no open file can be replaced, by whomever it was opened
            db.close()
        yield
    finally:
        db.close()  # SQLite leaves the log of a file that was replaced alone


def _lock(db: apsw.Connection, path: Path) -> None:
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        try:
            db.execute("PRAGMA wal_checkpoint (TRUNCATE)")
            db.execute("BEGIN IMMEDIATE")
        except (apsw.BusyError, apsw.LockedError):
            continue
        if not _size(_beside(path, "-wal")):
            return
        db.execute("ROLLBACK")  # another process has written in between
    raise StoreBusy(f"store: {path} is in use by other processes all the time; close them, or try again")
