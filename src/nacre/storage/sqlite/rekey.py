"""Changes the key of a store: encrypts a plain one, encrypts it with another key, or decrypts it.

The new file is written aside, checked, and renamed. A process that is killed at any moment leaves the old file or the
new one, each whole. Rewriting pages in place would leave a file of two keys that none of them opens.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import closing
from pathlib import Path

import apsw

from nacre.errors import StoreBusy, StoreError, StoreFull, WrongKey
from nacre.runtime import private_files
from nacre.storage.sqlite import encryption, page_checksums
from nacre.storage.sqlite.backup import files
from nacre.storage.sqlite.connection import BUSY_TIMEOUT_MS, integrity_problems
from nacre.storage.sqlite.opened_file import open_file
from nacre.storage.sqlite.store import SqliteStore
from nacre.types.key import Key

_COUNTS = "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM passages), (SELECT max(seq) FROM events)"
_RETRY_S = 0.05


def rekey(path: Path, old: Key | None, new: Key | None, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
    """Encrypt the store with another key; None: it is plain. Raises StoreBusy while others have it open."""
    if new is not None:
        encryption.require()
    old = encryption.needed(path, old)
    if new is None and encryption.is_encrypted(path) is False:
        raise WrongKey(f"store: {path} is not encrypted; there is nothing to decrypt")
    SqliteStore(path, busy_timeout_ms, create=False, key=old).close()  # checks path and key, upgrades the schema
    aside = encryption.aside(path)
    with files.errors(path, "store"):
        with closing(open_file(path, apsw.SQLITE_OPEN_READWRITE, key=old)) as first:
            _take_alone(first, path, busy_timeout_ms)  # what it writes gets its checksum; below, nothing is written
        usual = f"vfs={apsw.vfs_names()[0]}"  # the VFS of page checksums does not write encrypted pages
        db = open_file(path, apsw.SQLITE_OPEN_READWRITE, usual, old)
        try:
            _take_alone(db, path, busy_timeout_ms)
            _copy(db, aside, path, new)
            _compare(db, aside, path, new)
            if sys.platform == "win32":  # an open file cannot be replaced there
                db.close()
            aside.replace(os.path.realpath(path))
        finally:
            aside.unlink(missing_ok=True)
            db.close()
        files.sync_folder(aside.parent)
    shutil.rmtree(encryption.cache_folder(path), ignore_errors=True)  # of the plain store


def _take_alone(db: apsw.Connection, path: Path, busy_timeout_ms: int) -> None:
    """Lock the file for all others until the connection is closed, and move the write-ahead log into it."""
    deadline = time.monotonic() + busy_timeout_ms / 1000
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA temp_store = MEMORY")
    while True:
        try:
            db.execute("PRAGMA journal_mode = DELETE").fetchall()
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"store: {path} is open in another process; nothing was changed. End the programs that use it, "
                    "agents' servers among them, and try again"
                ) from None
            time.sleep(_RETRY_S)


def _copy(db: apsw.Connection, aside: Path, path: Path, new: Key | None) -> None:
    """Write the store to another file with the new key."""
    aside.unlink(missing_ok=True)
    private_files.create_file(aside, private_files.mode_of(path))
    failed = None
    try:
        cipher = "key=" if new is None else f"cipher={encryption.CIPHER}&key=raw:{new.digits}"
        db.execute("VACUUM INTO ?", (encryption.uri(aside, cipher),))
    except apsw.Error as error:
        failed = type(error)  # its text may have the URI in it, with the key
    if failed is apsw.FullError:
        raise StoreFull(f"store: no room left for a copy of {path}; nothing was changed. Free some space and try again")
    if failed is not None:
        raise StoreError(f"store: no copy of {path} can be written ({failed.__name__}); nothing was changed")
    with aside.open("r+b") as file:
        files.sync(file)


def _compare(db: apsw.Connection, aside: Path, path: Path, new: Key | None) -> None:
    """Read every page of the copy before it takes the place of the store."""
    copy = open_file(aside, key=new)
    try:
        page_checksums.note(copy)
        if integrity_problems(copy) or copy.execute(_COUNTS).fetchall() != db.execute(_COUNTS).fetchall():
            raise StoreError(f"store: the copy of {path} is not the same; nothing was changed. Check the disk")
    finally:
        copy.close()
