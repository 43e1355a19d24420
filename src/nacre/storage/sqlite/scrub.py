"""Removes from the file what SQLite leaves behind of deleted rows.

`secure_delete` overwrites deleted cells and freed pages. Two places keep old bytes all the same. When SQLite moves
cells from one page to another, copies stay in the unused part of the page that they left. And the write-ahead log has
pages as they were, until it is truncated. A scrub truncates the log and fills the unused parts with zeros. It need not
know what was deleted, so any process can finish it.

A deletion that must leave nothing sets a mark in its own transaction. The mark stays until a scrub is done, and every
writer that sees it tries again.

Unused bytes are overwritten in the file itself, because SQLite offers no way to do that. It is safe, since nothing
reads them, as long as the file does not change meanwhile: the write-ahead log is empty, so that no checkpoint has
anything to copy, and the scrub holds the write lock, so that it stays empty. The transaction then ends with a commit,
after which no other connection trusts the pages that it has cached. The file is read through SQLite's own VFS: to open
it in another way and close it would release the locks that this process holds on it (POSIX).
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from nacre.storage.sqlite import encryption, page_checksums, rows

MARK = "scrub"  # in `meta`: the event before the first deletion that it is about, and a random word
WAIT_S = 2.0  # for other processes, in a purge
NEXT_WAIT_S = 0.0  # the same in a later write: the one after that tries again

_PAUSE_S = 0.005
_LOOKED_WAIT_S = 0.5  # at least, once all pages were looked at: so that this need not be repeated
_BLOCK_BYTES = 1 << 20
_HEADER_BYTES = 100
_PAGES_MAX = 1 << 25  # beyond, the first byte of an overflow page may look like that of a B-tree page
_INTERIOR, _LEAF = (2, 5), (10, 13)  # kinds of B-tree pages; other pages begin with 0 or 1


# ---------------------------------------------------------------- the mark


def request(db: apsw.Connection) -> None:
    """Ask for a scrub, in the transaction of a deletion."""
    before = rows.meta(db, MARK)
    since = before.split()[0] if before else db.execute("SELECT coalesce(max(seq), 0) FROM events").get
    rows.set_meta(db, MARK, f"{since} {os.urandom(8).hex()}")


def spaces(db: apsw.Connection) -> list[str]:
    """The spaces of the memories that were purged since the last scrub. Caches may still have them."""
    mark = rows.meta(db, MARK)
    if mark is None:
        return []
    sql = "SELECT DISTINCT space FROM events WHERE seq > ? AND action = 'purged'"
    return [space for (space,) in rows.fetch(db, sql, (int(mark.split()[0]),))]


# ---------------------------------------------------------------- scrubbing


def scrub(db: apsw.Connection, wait_s: float) -> bool:
    """Scrub the file if a scrub is pending. False: others were reading or writing all the time.

    The connection must be used for nothing else: the commit at the end tells all others that the file has changed.
    """
    db.set_busy_timeout(0)  # a checkpoint that waits would hold up every writer
    deadline = time.monotonic() + wait_s
    while True:
        try:
            mark = rows.meta(db, MARK)
            if mark is None or (_log_truncated(db) and _scrubbed(db, mark, deadline)):
                return True
        except apsw.BusyError:
            pass
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)


def _log_truncated(db: apsw.Connection) -> bool:
    """Copy the write-ahead log into the file and truncate it, unless others use it at this moment."""
    try:
        busy, _, _ = rows.fetch(db, "PRAGMA wal_checkpoint (TRUNCATE)")[0]
    except apsw.BusyError:
        return False
    return not busy


def _scrubbed(db: apsw.Connection, mark: str, deadline: float) -> bool:
    """Overwrite what is unused, and remove the mark. False: others were writing meanwhile.

    The pages are looked for without the lock. Those that need no change then need none later: SQLite copies unused
    bytes to no other page, and what was deleted is in no cell.
    """
    with opened(db.filename) as file:
        size = page_bytes(file)
        if size is None:
            return _rebuilt(db, mark)
        unclean = [number for number, page in pages(file, size) if unused(page, number) != []]
        deadline = max(deadline, time.monotonic() + _LOOKED_WAIT_S)
        while rows.meta(db, MARK) == mark:
            if _log_truncated(db) and _overwritten(db, mark, file, size, unclean):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_S)
    return False


def _overwritten(db: apsw.Connection, mark: str, file: apsw.VFSFile, size: int, unclean: Sequence[int]) -> bool:
    """Overwrite the unused parts of these pages with zeros, and remove the mark, unless others have written."""
    with _locked(db) as locked:
        if not locked or not _log_is_empty(db) or rows.meta(db, MARK) != mark:
            return False
        checksums = page_checksums.reserved_bytes(file.xRead(_HEADER_BYTES, 0)) > 0
        for number in unclean:
            page = file.xRead(size, number * size)
            clean = cleaned(page, number, checksums)
            if clean != page:
                file.xWrite(clean, number * size)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        db.execute("DELETE FROM meta WHERE key = ?", (MARK,))
        db.execute("COMMIT")
        return True


def _rebuilt(db: apsw.Connection, mark: str) -> bool:
    """Write the whole file again: pages that are encrypted cannot be changed in place."""
    db.execute("VACUUM")
    deadline = time.monotonic() + _LOOKED_WAIT_S
    while not _log_truncated(db):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)
    db.execute("DELETE FROM meta WHERE key = ? AND value = ?", (MARK, mark))
    return db.changes() > 0


@contextmanager
def _locked(db: apsw.Connection) -> Iterator[bool]:
    """A write transaction, which is rolled back unless it was committed. False: another process has one."""
    try:
        db.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        yield False
        return
    try:
        yield True
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _log_is_empty(db: apsw.Connection) -> bool:
    try:
        return Path(db.filename_wal).stat().st_size == 0
    except FileNotFoundError:  # then somebody else has a hand in the files
        return False


# ---------------------------------------------------------------- pages


@contextmanager
def opened(filename: str) -> Iterator[apsw.VFSFile]:
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
    file = apsw.VFSFile(page_checksums.platform_vfs(), filename, [flags, 0])
    try:
        yield file
    finally:
        file.xClose()


def page_bytes(file: apsw.VFSFile) -> int | None:
    """The size of a page; None where pages cannot be changed in place."""
    header = file.xRead(_HEADER_BYTES, 0)
    (size,) = struct.unpack_from(">H", header, len(encryption.PLAIN))
    size = 65_536 if size == 1 else size
    reserved = page_checksums.reserved_bytes(header)
    plain = header.startswith(encryption.PLAIN) and reserved in (0, page_checksums.RESERVED_BYTES)
    return size if plain and file.xFileSize() <= _PAGES_MAX * size else None


def pages(file: apsw.VFSFile, size: int) -> Iterator[tuple[int, bytes]]:
    """All pages of a file, with their numbers from 0. Reads a block at a time."""
    total = file.xFileSize()
    for start in range(0, total, _BLOCK_BYTES):
        block = file.xRead(min(_BLOCK_BYTES, total - start), start)
        for at in range(0, len(block), size):
            yield (start + at) // size, block[at : at + size]


def cleaned(page: bytes, number: int, checksums: bool) -> bytes:
    """The page with zeros in its unused parts. One that does not match its checksum stays as it is."""
    parts = unused(page, number)
    if not parts or (checksums and not page.endswith(page_checksums.checksum(page))):
        return page
    changed = bytearray(page)
    for begin, end in parts:
        changed[begin:end] = bytes(end - begin)
    if checksums:
        changed[-page_checksums.RESERVED_BYTES :] = page_checksums.checksum(changed)
    return bytes(changed)


def unused(page: bytes, number: int) -> list[tuple[int, int]] | None:
    """The unused parts of a B-tree page that are not zero, as begin and end.

    None: the page is not in order, as one that was written to while it was read.

    Between the pointers to the cells and the cells is a gap. Among the cells are free blocks, which begin with the
    place of the next one and their own size. (https://www.sqlite.org/fileformat2.html#b_tree_pages)
    """
    header = 0 if number else _HEADER_BYTES
    kind = page[header]
    if kind not in _INTERIOR and kind not in _LEAF:
        return []
    block, cells, content = struct.unpack_from(">HHH", page, header + 1)
    pointers = header + (12 if kind in _INTERIOR else 8)
    begin, content = pointers + 2 * cells, content or 65_536
    if (
        not begin <= content <= len(page)
        or min(struct.unpack_from(f">{cells}H", page, pointers), default=content) < content
    ):
        return None
    parts = [(begin, content)]
    while block:
        if not content <= block <= len(page) - 4:
            return None
        following, length = struct.unpack_from(">HH", page, block)
        parts.append((block + 4, block + length))
        if not 4 <= length <= len(page) - block or 0 < following < block + length:
            return None
        block = following
    return [(begin, end) for begin, end in parts if page[begin:end].strip(b"\0")]
