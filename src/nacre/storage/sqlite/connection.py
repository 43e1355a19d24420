"""Connections to one store file: many readers and one writer. Errors of SQLite become errors of Nacre."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import apsw

from nacre.errors import NacreError, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from nacre.storage.sqlite import schema
from nacre.validation import storable

BUSY_TIMEOUT_MS = 10_000
_IDLE_READERS_MAX = 16


class Connections:
    """Safe to use from several threads. No two transactions share a connection."""

    def __init__(self, path: Path, busy_timeout_ms: int, create: bool) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._idle: list[apsw.Connection] = []
        self._idle_lock = threading.Lock()
        self._writer_lock = threading.Lock()
        self._views = threading.local()  # the connection of the snapshot that a thread holds, if any
        self._closed = False
        self._check_path(create)
        with self._translated():
            self._writer = self._prepare()

    @contextmanager
    def view(self) -> Iterator[None]:
        """A snapshot: all reads of this thread inside the block share one read transaction."""
        if self._viewing is not None:
            yield
            return
        with self._latest() as db:
            self._views.db = db
            try:
                yield
            finally:
                self._views.db = None

    @property
    def _viewing(self) -> apsw.Connection | None:
        return getattr(self._views, "db", None)

    def reading(self, *, latest: bool = False) -> AbstractContextManager[apsw.Connection]:
        """A read transaction: that of the snapshot the thread holds, unless there is none or `latest` is set."""
        db = self._viewing
        return self._latest() if latest or db is None else nullcontext(db)

    @contextmanager
    def _latest(self) -> Iterator[apsw.Connection]:
        db = self._take_reader()
        try:
            with self._translated():
                db.execute("BEGIN")
                yield db
        finally:
            self._give_back(db)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[apsw.Connection]:
        """A write transaction: all of it is written, or nothing.

        Without `durable` it does not wait for the disk: a crash of the machine, not of the process, may undo it.
        """
        if not self._writer_lock.acquire(timeout=self._busy_timeout_ms / 1000):
            raise self._busy()
        try:
            self._check_open()
            with self._translated():
                if not durable:
                    self._writer.execute("PRAGMA synchronous = NORMAL")
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:  # SQLite itself rolls back on a full disk
                        self._writer.execute("ROLLBACK")
                    raise
        finally:
            if not durable and not self._closed:
                self._writer.execute("PRAGMA synchronous = FULL")
            self._writer_lock.release()

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """The writing connection outside a transaction, for maintenance."""
        with self._writer_lock, self._translated():
            self._check_open()
            yield self._writer

    def close(self) -> None:
        """Close everything. Calls still running in other threads finish first."""
        with self._writer_lock:
            if self._closed:
                return
            self._closed = True
            with self._idle_lock:
                for db in self._idle:
                    db.close()
                self._idle.clear()
            self._writer.close()

    # ---- inside

    def _check_path(self, create: bool) -> None:
        if not storable(str(self.path)):
            raise StoreUnavailable(f"store: {str(self.path)!r} is not a path; give one of valid Unicode text")
        folder = self.path.parent
        if not folder.is_dir():
            raise StoreUnavailable(f"store: the folder {folder} does not exist; create it or give another path")
        if self.path.is_dir():
            raise StoreUnavailable(f"store: {self.path} is a folder; give the path of a file in it")
        if not create and not self.path.exists():
            raise StoreUnavailable(
                f"store: {self.path} does not exist; remember something to make it, or check the path"
            )

    def _prepare(self) -> apsw.Connection:
        """A connection to a file that has the current schema. Several processes may do this at once."""
        db = self._connect()
        db.execute("PRAGMA cache_size = -65536")  # KiB; a bulk write changes pages all over the indexes
        deadline = time.monotonic() + self._busy_timeout_ms / 1000
        try:
            while True:
                try:
                    if schema.version(db) != schema.VERSION or db.execute("PRAGMA journal_mode").get != "wal":
                        self._upgrade(db)
                    return db
                except apsw.BusyError:  # changing to WAL does not wait for other processes
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        except BaseException:
            db.close()
            raise

    @staticmethod
    def _upgrade(db: apsw.Connection) -> None:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        try:
            schema.migrate(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _connect(self) -> apsw.Connection:
        db = apsw.Connection(str(self.path.absolute()))  # an absolute path: ":memory:" is a file name like any other
        db.set_busy_timeout(self._busy_timeout_ms)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")  # purged text leaves no bytes in the file; the cost is not measurable
        db.execute("PRAGMA cache_size = -16384")  # KiB
        db.execute("PRAGMA temp_store = MEMORY")
        return db

    def _take_reader(self) -> apsw.Connection:
        self._check_open()
        with self._idle_lock:
            if self._idle:
                return self._idle.pop()
        with self._translated():
            return self._connect()

    def _give_back(self, db: apsw.Connection) -> None:
        if db.in_transaction:
            db.execute("ROLLBACK")  # readers have nothing to commit
        with self._idle_lock:
            if not self._closed and len(self._idle) < _IDLE_READERS_MAX:
                self._idle.append(db)
                return
        db.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"store: {self.path} is closed; open it again")

    def _busy(self) -> StoreBusy:
        seconds = self._busy_timeout_ms / 1000
        return StoreBusy(f"store: {self.path} stayed locked by another writer for {seconds:g} s; try again")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except NacreError:
            raise
        except apsw.Error as error:
            raise self._store_error(error) from error
        except (UnicodeDecodeError, json.JSONDecodeError, OverflowError) as error:
            raise StoreCorrupt(f"store: {self.path} is damaged ({error}); restore it from a backup") from error

    def _store_error(self, error: apsw.Error) -> StoreError:
        path = self.path
        match error:
            case apsw.BusyError() | apsw.LockedError():
                return self._busy()
            case apsw.FullError():
                return StoreFull(f"store: no room left for {path}; nothing was written. Free some space and try again")
            case apsw.NotADBError():
                return StoreCorrupt(f"store: {path} is not a database; give the path of a Nacre store or a new file")
            case apsw.CorruptError():
                return StoreCorrupt(f"store: {path} is damaged ({error}); restore it from a backup")
            case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
                return StoreUnavailable(f"store: {path} cannot be opened for writing ({error}); check its permissions")
        return StoreError(f"store: {path}: {type(error).__name__}: {error}")
