"""One store file as this process has opened it: its connections, and whether it is still the file at its path.

A file that was deleted or replaced can still be written to by whoever has it open, and so can a write-ahead log: such
writes are lost without an error. So the files at the path are compared with those that were opened, by device and
inode, before and after each transaction. Only SQLite opens the files: closing another descriptor of a database would
drop the locks that SQLite holds on it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TypeAlias

import apsw

from nacre.errors import StoreCorrupt, StoreUnavailable
from nacre.runtime import forks
from nacre.storage.sqlite import encryption, page_checksums
from nacre.storage.sqlite.rows import RESTORE
from nacre.types.key import Key

IDLE_READERS_MAX = 16

Identity: TypeAlias = tuple[int, ...] | None  # None: there is no such file


def open_file(
    path: Path,
    flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
    parameters: str = "",
    key: Key | None = None,
) -> apsw.Connection:
    """The one place where a database file is opened: a store, a backup, or a copy that is not in its place yet.

    `parameters` are those of SQLite's URIs. A missing or empty file gets the key.
    """
    path = path.absolute()  # ":memory:" is a file name like any other
    encryption.check(path, key)
    vfs = page_checksums.vfs(encrypted=key is not None)  # parameters may name another one
    if parameters:
        db = apsw.Connection(encryption.uri(path, parameters), flags | apsw.SQLITE_OPEN_URI, vfs=vfs)
    else:
        db = apsw.Connection(str(path), flags, vfs=vfs)
    encryption.unlock(db, key)
    return db


def identity(path: str | Path, content: bool = False) -> Identity:
    """Which file this is; with `content`, in which state."""
    try:
        found = os.stat(path)  # noqa: PTH116  # a Path takes longer, and this runs in each transaction
    except OSError:
        return None
    if content:
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return found.st_dev, found.st_ino


def remove_if(path: str, this: Identity) -> None:
    """Remove a file, unless another one has taken its place."""
    if this is not None and identity(path) == this:
        with suppress(OSError):
            Path(path).unlink()


class Change(Enum):
    """What happened to a file since it was opened."""

    GONE = "there is no file at the path"
    REPLACED = "another file is at the path"
    LOG_LOST = "the write-ahead log at the path is not the one that was opened"


class Replaced(Exception):
    """The file at the path is another one than that which is open."""


_open_files: weakref.WeakSet[OpenedFile] = weakref.WeakSet()


class OpenedFile:
    """Connections to one file: many readers and one writer.

    `generation` tells apart what was read from this file and from one that was at the path before. Where the store
    cannot be written and has no shared memory, SQLite reads it without locks: then every change of the file counts.
    """

    def __init__(self, path: Path, generation: int, busy_timeout_ms: int, key: Key | None = None) -> None:
        self.generation = generation
        self.path = path
        self.writer_lock = threading.Lock()
        self._real = os.path.realpath(path)  # SQLite follows links: the log is beside the file itself
        self._busy_timeout_ms = busy_timeout_ms
        self._key = key
        self._idle: list[apsw.Connection] = []
        self._returned = threading.Condition()
        self._taken = 0
        self.retired = False
        self._checkpoint = True  # when the last connection is closed
        self._verified = False  # whether every connection must verify page checksums
        self._connect, self.without_locks = self._choose_access()
        self._opened = self._database()
        self.writer = self._connect_writer()
        self.read_only = self.without_locks or self.writer.readonly("main")
        self._logs: tuple[Identity, ...] = ()
        self._content: Identity = None

    def note_logs(self) -> None:
        """Remember the log that SQLite has opened with the first read."""
        self._logs = self._logs_at_path()
        self._content = identity(self._real, content=True)
        _open_files.add(self)

    # ---- is it the file at the path?

    def change(self) -> Change | None:
        """None: it is the file at the path, with its log."""
        if self.retired:
            return Change.REPLACED
        found = self._database()
        if found != self._opened:
            return Change.GONE if found is None else Change.REPLACED
        if self._logs != self._logs_at_path():
            return Change.REPLACED if self.without_locks else Change.LOG_LOST
        return None

    def _database(self) -> Identity:
        return identity(self.path, content=self.without_locks)

    def _logs_at_path(self) -> tuple[Identity, ...]:
        if self.without_locks:
            return (identity(self._real + "-wal", content=True),)
        return identity(self._real + "-wal"), identity(self._real + "-shm")

    def committed(self) -> None:
        """Note the state of the file after a write of our own, which may have moved the log into it."""
        self._content = identity(self._real, content=True)

    def save_lost_log(self) -> bool:
        """Move what is in a removed log into the file. The caller holds the writer's lock.

        Not if the file changed as well or someone has begun another log: then what is in ours belongs to no file.
        """
        untouched = identity(self._real, content=True) == self._content
        ours = all(found in (None, noted) for found, noted in zip(self._logs_at_path(), self._logs, strict=True))
        if self.read_only or not (untouched and ours):
            return False
        busy, *_ = self.writer.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchall()[0]
        self.committed()
        return not busy

    def is_in_place(self) -> bool:
        """Whether it is where it was, and only a link to it was changed."""
        return identity(self._real, content=self.without_locks) == self._opened

    def remove_stale_log(self) -> None:
        """Remove the log of a replaced file: SQLite would apply it to the file that is at the path now."""
        for name, noted in zip(("-wal", "-shm"), self._logs, strict=True):
            remove_if(self._real + name, noted)

    @contextmanager
    def all_at_rest(self, seconds: float) -> Iterator[list[OpenedFile]]:
        """All that this process has opened of this file, while nobody reads or writes it; none if somebody does.

        The connections of a process share what SQLite knows of a log, so a lost one is lost for all of them.
        """
        same = [each for each in list(_open_files) if each._opened == self._opened and not each.retired]
        with ExitStack() as held:
            for each in same:
                if not each.writer_lock.acquire(timeout=seconds):
                    same = []
                    break
                held.callback(each.writer_lock.release)
            yield same if all(each.wait_for_readers(seconds) for each in same) else []

    # ---- connections

    def connect(self) -> apsw.Connection:
        """A connection to the file that was opened. Raises Replaced if another one is at the path."""
        db = self._connect(self._real, self._key)
        try:
            db.set_busy_timeout(self._busy_timeout_ms)
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA secure_delete = ON")  # purged text leaves no bytes; the cost is not measurable
            db.execute("PRAGMA cache_size = -16384")  # KiB
            db.execute("PRAGMA temp_store = MEMORY")
            if self._database() != self._opened:
                raise Replaced
            self._check_verified(db)
        except BaseException:
            db.close()
            raise
        return db

    def _connect_writer(self) -> apsw.Connection:
        db = self.connect()
        db.execute("PRAGMA cache_size = -65536")  # KiB; a bulk write changes pages all over the indexes
        return db

    def require_checksums(self, required: bool) -> None:
        """What the store says of its pages. One damaged byte of the header could switch all checksums off.

        The writer is another connection afterwards if the file was empty when it was opened.
        """
        self._verified = required and self._connect is not _connect_to_log  # that reads without the checksum VFS
        if self._verified and not page_checksums.verified(self.writer):
            _close(self.writer, checkpoint=False)
            self.writer = self._connect_writer()
            self.writer.execute("PRAGMA schema_version")  # the first read opens the log

    def _check_verified(self, db: apsw.Connection) -> None:
        if not self._verified or page_checksums.verified(db):
            return
        if page_checksums.load():
            raise StoreCorrupt(f"store: {self.path} is damaged: its header is wrong; {RESTORE}")
        raise StoreUnavailable(
            f"store: {self.path} has page checksums, which this build of apsw cannot write; "
            "install apsw from PyPI: pip install --upgrade apsw"
        )

    def close_idle(self) -> None:
        """Close the readers that are not in use."""
        with self._returned:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def take_reader(self) -> apsw.Connection:
        with self._returned:
            self._taken += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self.connect()
        except BaseException:
            self._count_returned()
            raise

    def give_back(self, db: apsw.Connection) -> None:
        if not forks.usable():  # inherited by a child
            forks.leak(db)
            return
        if db.in_transaction:
            db.execute("ROLLBACK")  # readers have nothing to commit
        with self._returned:
            kept = not self.retired and len(self._idle) < IDLE_READERS_MAX
            if kept:
                self._idle.append(db)
        if not kept:
            _close(db, checkpoint=self._checkpoint)
        self._count_returned()

    def _count_returned(self) -> None:
        with self._returned:
            self._taken -= 1
            self._returned.notify_all()

    def wait_for_readers(self, seconds: float) -> bool:
        """Until no reader is in use. False: some still are."""
        with self._returned:
            return self._returned.wait_for(lambda: not self._taken, seconds)

    def close(self, *, checkpoint: bool = True) -> None:
        """Close all connections. Readers in use are closed when they are given back.

        Without `checkpoint`, SQLite leaves the files at the path alone: they may belong to another store by now.
        """
        with self._returned:
            self.retired, self._checkpoint = True, checkpoint
            idle, self._idle = self._idle, []
        for db in (*idle, self.writer):
            _close(db, checkpoint=checkpoint)

    # ---- how it is opened

    def _choose_access(self) -> tuple[Callable[[str, Key | None], apsw.Connection], bool]:
        """How SQLite can read the file, and whether that is without locks.

        Who may not write must not create the shared memory either: the owner could not write to it then.
        """
        logs = [Path(self._real + each).exists() for each in ("-wal", "-shm")]
        if _may_write(self._real) or all(logs):
            return _connect, False
        return (_connect_to_log if logs[0] else _connect_immutable), True


def _may_write(path: str) -> bool:
    """Whether SQLite may write to the file and beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(each, os.W_OK, effective_ids=effective) for each in (path, Path(path).parent))


def _connect(path: str, key: Key | None) -> apsw.Connection:
    return open_file(Path(path), apsw.SQLITE_OPEN_READWRITE, key=key)  # no file is created: its permissions matter


def _connect_immutable(path: str, key: Key | None) -> apsw.Connection:
    return open_file(Path(path), apsw.SQLITE_OPEN_READONLY, "immutable=1", key)


def _connect_to_log(path: str, key: Key | None) -> apsw.Connection:
    """A file with a write-ahead log, but without the shared memory that readers need to use it together."""
    if key is not None:  # no way without locks decrypts
        raise StoreUnavailable(
            f"store: {path} is encrypted, has a write-ahead log and cannot be written; open it once as someone who "
            "may, or copy it with its log to where you may"
        )
    lockless = next(name for name in apsw.vfs_names() if name.endswith("-none"))
    db = open_file(Path(path), apsw.SQLITE_OPEN_READONLY, f"vfs={lockless}")
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    return db


def _close(db: apsw.Connection, *, checkpoint: bool) -> None:
    if not checkpoint:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.close()
