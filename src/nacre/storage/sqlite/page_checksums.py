"""A checksum on each page of the file, by SQLite's checksum VFS: a damaged page is an error, not a wrong answer.

The VFS is a shim over the platform's own, and an extension that comes with apsw. It writes the checksums of files that
reserve 8 bytes a page, verifies each page that is read from such a file, and leaves all other files alone. An encrypted
store reserves other bytes, and its cipher authenticates each page.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import apsw

from nacre.storage.sqlite.rows import set_meta

MISMATCH = "a page does not match its checksum"
_NAME = "cksmvfs"
RESERVED_BYTES = 8  # exactly: the VFS recognises its files by them
_RESERVED_AT = 20  # in the header of a file
_WORD = 0xFFFFFFFF


@cache
def platform_vfs() -> str:
    """The VFS that knows nothing of checksums."""
    return apsw.vfs_names()[0]


@cache
def load() -> bool:
    """Make the VFS the default of this process, so that no connection forgets the checksums. False: there is none.

    The file is found by its name, because importing `apsw.sqlite_extra` takes 10 ms.
    """
    found = sorted(Path(apsw.__file__).with_name("sqlite_extra_binaries").glob("cksumvfs.*"))
    if not found or not hasattr(apsw.Connection, "reserve_bytes"):  # a version or a build of apsw without it
        return False
    usual = platform_vfs()
    db = apsw.Connection(":memory:")
    try:
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
        db.load_extension(str(found[0]))
    except apsw.Error:
        return False
    finally:
        db.close()
    if getattr(apsw, "mc_version", None) is not None:  # ciphers do not work through it
        apsw.set_default_vfs(usual)
    return True


def vfs(encrypted: bool) -> str | None:
    """The VFS to open a file with; None: the default."""
    return _NAME if load() and not encrypted else None


def reserve(db: apsw.Connection) -> None:
    """Give a file checksums. It must be empty, or be vacuumed next while no other connection has it open."""
    if load():
        db.reserve_bytes("main", RESERVED_BYTES)


def add(db: apsw.Connection) -> None:
    """Give a file checksums that has none. Raises apsw.BusyError while another connection has it open."""
    db.execute("PRAGMA journal_mode = DELETE")  # takes the file for this connection alone
    try:
        reserve(db)
        db.execute("VACUUM")
        # Pages that went to the disk before the first one, which says so, still lack their checksums.
        db.execute("PRAGMA checksum_verification = OFF")
        db.execute("VACUUM")
        db.execute("PRAGMA checksum_verification = ON")
        note(db)
    finally:
        db.execute("PRAGMA journal_mode = WAL")


def note(db: apsw.Connection) -> None:
    """Write into a store whether its pages have checksums."""
    set_meta(db, "page_checksums", "on" if verified(db) else "off")


def verified(db: apsw.Connection) -> bool:
    """Whether the pages that this connection reads are verified."""
    return str(db.execute("PRAGMA checksum_verification").get) == "1"


def reserved_bytes(header: bytes) -> int:
    """How many bytes of each page SQLite does not use: RESERVED_BYTES where pages have checksums."""
    return header[_RESERVED_AT]


def checksum(page: bytes | bytearray) -> bytes:
    """What the last bytes of a page must be: two sums over its words, each of which takes in the other."""
    words = struct.unpack(f"<{(len(page) - RESERVED_BYTES) // 4}I", page[:-RESERVED_BYTES])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _WORD
        second = (second + odd + first) & _WORD
    return struct.pack("<II", first, second)


def is_mismatch(error: apsw.Error) -> bool:
    """Whether it was raised for a page that does not match its checksum."""
    return isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
