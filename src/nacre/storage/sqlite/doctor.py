"""Checks a store, and repairs what can be made from the memories."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw

from nacre.errors import StoreUnavailable
from nacre.runtime import private_files
from nacre.storage.sqlite import checkup, encryption
from nacre.storage.sqlite.opened_file import open_file
from nacre.storage.sqlite.store import SqliteStore
from nacre.types.health import Finding
from nacre.types.key import Key


def diagnose(path: Path, key: Key | None, now: datetime, *, fix: bool = False) -> list[Finding]:
    """What every check finds. With `fix`, what can be put right is, and is marked as fixed."""
    if not path.exists():
        raise StoreUnavailable(f"store: {path} does not exist; check the path")
    found = checkup.examine(path, key, now)
    broken = {each.check for each in found if each.level == "problem"}
    if not broken.isdisjoint(checkup.TRUTH):  # nothing can be made from memories that cannot be read
        broken.discard("words")
    repairs = [repair for check, repair in REPAIRS.items() if check in broken]
    if not fix or not repairs:
        return found
    for repair in repairs:
        repair(path, key)
    after = checkup.examine(path, key, now)
    still = {each.check for each in after if each.level == "problem"}
    fixed = [replace(each, fixed=True) for each in found if each.level == "problem" and each.check not in still]
    return [*fixed, *after]


def _rebuild(path: Path, key: Key | None) -> None:
    with closing(SqliteStore(path, key=key)) as store:
        store.rebuild()


def _accept_pages(path: Path, key: Key | None) -> None:
    """Write all pages anew, with their checksums, if nothing but these is wrong."""
    if not checkup.only_checksums_differ(path, key):
        return
    with closing(open_file(path, apsw.SQLITE_OPEN_READWRITE, key=key)) as db:
        db.execute("PRAGMA checksum_verification = OFF")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint (TRUNCATE)")


def _drop_caches(path: Path, _: Key | None) -> None:
    for each in encryption.cache_folder(path).iterdir():
        with suppress(OSError):  # used by another process (Windows)
            each.unlink()


def _make_private(path: Path, _: Key | None) -> None:
    for each in checkup.loose_files(path):
        each.chmod(private_files.folder_mode(private_files.FILE_MODE) if each.is_dir() else private_files.FILE_MODE)
    if os.name == "posix" and encryption.cache_folder(path).is_dir():
        for each in encryption.cache_folder(path).iterdir():
            each.chmod(private_files.FILE_MODE)


# By check. What none of these repairs is restored from a backup, or salvaged.
REPAIRS: dict[str, Callable[[Path, Key | None], None]] = {
    "permissions": _make_private,
    "integrity": _accept_pages,
    "caches": _drop_caches,
    "words": _rebuild,
}
