"""Transactions on one store file: many readers and one writer. Errors of SQLite become errors of Nacre."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain, repeat
from pathlib import Path

import apsw

from nacre.errors import NacreError, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from nacre.runtime import forks, private_files
from nacre.storage.sqlite import encryption, page_checksums, schema
from nacre.storage.sqlite.opened_file import Change, OpenedFile, Replaced, identity, remove_if
from nacre.storage.sqlite.rows import RESTORE, meta
from nacre.types.key import Key
from nacre.validation import storable

BUSY_TIMEOUT_MS = 10_000
_PROBLEMS_MAX = 3
_PAUSES_S = (0.001, 0.002, 0.005, 0.01, 0.02)  # between attempts to lock the file; the last is repeated
_log = logging.getLogger("nacre")
_OPENINGS_MAX = 10  # in a row, of a file that is replaced again and again
_UNREADABLE = (UnicodeDecodeError, json.JSONDecodeError, OverflowError)  # by rows that are damaged


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All that is written in the block is committed, or nothing."""
    db.execute("BEGIN IMMEDIATE")
    with committing(db):
        yield


@contextmanager
def committing(db: apsw.Connection) -> Iterator[None]:
    """The same for a transaction that has begun."""
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself rolls back on a full disk
            db.execute("ROLLBACK")
        raise


def integrity_problems(db: apsw.Connection) -> str:
    """The first problems that SQLite finds in a file; empty if there are none."""
    try:
        found = [str(problem) for (problem,) in db.execute(f"PRAGMA integrity_check ({_PROBLEMS_MAX})")]
    except apsw.IOError as error:
        if not page_checksums.is_mismatch(error):
            raise
        return page_checksums.MISMATCH
    return "" if found == ["ok"] else "; ".join(found)


def is_database_error(error: Exception) -> bool:
    """Whether it says something about the database or the machine, not about the caches next to it."""
    return isinstance(error, (NacreError, apsw.Error, MemoryError, *_UNREADABLE))


class Connections:
    """Safe to use from several threads. No two transactions share a connection.

    Before and after each transaction, the open file must be the one at the path. If another file of the same store is
    there, such as a restored backup, it is opened, and `generation` changes; so it does after a fork. `prepare` is
    called with the writing connection of each file that was opened, and whether it is read-only, before it is used.
    """

    def __init__(
        self,
        path: Path,
        busy_timeout_ms: int,
        create: bool,
        prepare: Callable[[apsw.Connection, bool], None],
        key: Key | None = None,
        checksums: bool = True,
    ) -> None:
        """`checksums`: whether a file without a key gets page checksums when it is created or rebuilt."""
        self.path = path
        self.key = key
        self._checksums = checksums and key is None
        self._location = path.absolute()  # also for a program that changes its working folder
        self._busy_timeout_ms = busy_timeout_ms
        self._prepare_content = prepare
        self._opening = threading.Lock()
        self._own = threading.local()  # the transaction that a thread is in, and the snapshot that it holds, if any
        self._closed = False
        self._generation = 0
        self._file: OpenedFile | None = None  # None: to be opened
        self.store_id = ""
        self._check_path(create)
        with forks.at_work(), self._translated(None):
            encryption.check(path, key)  # before a file is created
            if create:
                self._create()
            self._file = self._opened()
        self.read_only = self._file.read_only
        forks.close_before(self)
        forks.renew_in_child(self)

    # ---- reading

    @contextmanager
    def view(self) -> Iterator[None]:
        """A snapshot: all reads of this thread inside the block share one read transaction."""
        if self._viewing is not None:
            yield
            return
        with self._latest() as db:
            self._own.view = db
            try:
                yield
            finally:
                self._own.view = None

    @property
    def _viewing(self) -> apsw.Connection | None:
        return getattr(self._own, "view", None)

    @property
    def generation(self) -> int:
        """Of the file that this thread's transaction reads."""
        file: OpenedFile | None = getattr(self._own, "file", None)
        return self._generation if file is None else file.generation

    def reading(self, *, latest: bool = False) -> AbstractContextManager[apsw.Connection]:
        """A read transaction: that of the snapshot the thread holds, unless there is none or `latest` is set."""
        db = self._viewing
        return self._latest() if latest or db is None else self._within(db)

    @contextmanager
    def _within(self, db: apsw.Connection) -> Iterator[apsw.Connection]:
        with self._translated(getattr(self._own, "file", None)):
            yield db

    @contextmanager
    def _latest(self) -> Iterator[apsw.Connection]:
        with forks.at_work():
            file, db = self._taken()
            before, self._own.file = getattr(self._own, "file", None), file
            try:
                with self._translated(file):
                    db.execute("BEGIN")
                    yield db
            finally:
                self._own.file = before
                file.give_back(db)

    def _taken(self) -> tuple[OpenedFile, apsw.Connection]:
        """The file at the path, and a connection to it for one reader."""
        for _ in range(_OPENINGS_MAX):
            file = self._current()
            with self._translated(file):
                try:
                    return file, file.take_reader()
                except Replaced:
                    continue
        raise self._replaced("while it was opened")

    # ---- writing

    @contextmanager
    def writing(self, *, durable: bool = True, wait: bool = True) -> Iterator[apsw.Connection]:
        """A write transaction: all of it is written to the file at the path, or nothing.

        Without `durable` it does not wait for the disk: a crash of the machine, not of the process, may undo it.
        Without `wait` it raises StoreBusy at once if another write is under way.
        """
        with forks.at_work(), self._begun(durable, wait) as file, self._translated(file):
            with committing(file.writer):
                yield file.writer
                if file.change() is not None:
                    raise self._replaced("while this was written; nothing was stored")
            self._check_committed(file)

    @contextmanager
    def _begun(self, durable: bool, wait: bool) -> Iterator[OpenedFile]:
        """The file at the path, with a transaction of its writer that began within the busy timeout.

        While another process holds the lock of the file, the writer is given back between the attempts: a thread that
        waits does not keep others waiting after their own time.
        """
        deadline = time.monotonic() + (self._busy_timeout_ms / 1000 if wait else 0)
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            with self._writer(deadline) as file:
                try:
                    with self._translated(file):
                        begun = self._try_begin(file.writer, durable)
                    if begun:
                        yield file
                        return
                finally:
                    if not durable:
                        file.writer.execute("PRAGMA synchronous = FULL")
            if time.monotonic() >= deadline:
                raise self._busy()
            time.sleep(pause_s)

    def _try_begin(self, db: apsw.Connection, durable: bool) -> bool:
        """Begin a transaction, unless another process has one."""
        if not durable:
            db.execute("PRAGMA synchronous = NORMAL")
        db.set_busy_timeout(0)
        try:
            db.execute("BEGIN IMMEDIATE")
            return True
        except apsw.BusyError:
            return False
        finally:
            db.set_busy_timeout(self._busy_timeout_ms)

    def _check_committed(self, file: OpenedFile) -> None:
        """What was committed is in the file at the path; otherwise the caller must not believe that it is stored."""
        change = file.change()
        if change is None:
            file.committed()
        elif change is not Change.LOG_LOST or not file.save_lost_log():
            raise self._replaced("while this was written, and it may not be stored; search for it before you repeat it")

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """A new connection outside a transaction, for maintenance, while no other thread of this process writes."""
        with forks.at_work(), self._writer() as file, self._translated(file):
            try:
                db = file.connect()
            except Replaced:
                raise self._replaced("while it was opened") from None
            with closing(db):
                yield db
            file.committed()

    def add_checksums(self) -> None:
        """Give a file without page checksums its checksums, if they are wanted and nobody else has it open."""
        if not self._checksums or not page_checksums.load():
            return
        with forks.at_work(), self._writer() as file, self._translated(file):
            if schema.has_page_checksums(file.writer):
                return
            file.close_idle()
            try:
                page_checksums.add(file.writer)
            except apsw.BusyError:
                _log.warning("%s is open elsewhere, so its pages get no checksums; close others and rebuild", self.path)
                return
            file.require_checksums(schema.has_page_checksums(file.writer))  # the first read opens a new log
            file.note_logs()
            file.committed()

    @contextmanager
    def _writer(self, deadline: float | None = None) -> Iterator[OpenedFile]:
        """The file at the path, whose writer no other thread of this process uses."""
        if deadline is None:
            deadline = time.monotonic() + self._busy_timeout_ms / 1000
        while True:
            file = self._current()
            if file.read_only:
                raise StoreUnavailable(
                    f"store: {self.path} is read-only: nothing was written; check its permissions and those of its "
                    "folder, or copy it to where you may write"
                )
            if not file.writer_lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise self._busy()
            try:
                self._check_open()
                if file.change() is not None:  # while another thread wrote
                    continue
                yield file
                return
            finally:
                file.writer_lock.release()

    # ---- closing

    def close(self) -> None:
        """Close everything. Calls still running in other threads finish first."""
        if not forks.usable():  # what a child inherited is the parent's to close
            self._closed = True
            return
        with forks.at_work(), self._opening:
            self._closed = True
            if self._file is not None:
                with self._file.writer_lock:
                    self._put_away(self._file)

    def before_fork(self) -> None:
        if self._file is not None:
            self._put_away(self._file)

    def _put_away(self, file: OpenedFile) -> None:
        with self._translated(file):
            change = file.change()
            if change is Change.LOG_LOST:
                file.save_lost_log()
            file.close(checkpoint=change is None)
        self._file = None

    def after_fork(self) -> None:
        self._opening = threading.Lock()
        self._own = threading.local()
        if self._file is not None:  # inherited in use: SQLite must not touch it here, not even to close it
            forks.refuse(self._file)

    # ---- the file at the path

    def _current(self) -> OpenedFile:
        """The file at the path. Another one than before is opened first."""
        self._check_open()
        file = self._file
        if file is not None and file.change() is None:
            return file
        if not self._opening.acquire(timeout=self._busy_timeout_ms / 1000):
            raise self._busy()
        try:
            self._check_open()
            file = self._file
            if file is not None:
                change = file.change()
                if change is None:
                    return file
                self._give_up(file, change)
            with self._translated(None):
                self._file = self._opened()
            return self._file
        finally:
            self._opening.release()

    def _give_up(self, file: OpenedFile, change: Change) -> None:
        """Close a file that is not the one at the path any more, so that the one which is can be opened."""
        if change is Change.GONE:
            raise StoreUnavailable(
                f"store: {self.path} was deleted or moved while it was open; put it back, or restore a backup, "
                "and try again; to begin anew, open the store again"
            )
        if change is Change.LOG_LOST:
            self._give_up_log(file)
        elif not file.retired:
            in_place = file.is_in_place()
            if not in_place:
                file.remove_stale_log()
            file.close(checkpoint=in_place)
        self._file = None

    def _give_up_log(self, file: OpenedFile) -> None:
        """The write-ahead log was removed. What is in it is moved into the file first, as long as nobody else can have
        begun another one."""
        seconds = 0.0 if getattr(self._own, "file", None) is not None else self._busy_timeout_ms / 1000
        with self._translated(file), file.all_at_rest(seconds) as same:
            if not same:
                raise StoreUnavailable(
                    f"store: the write-ahead log of {self.path} was removed while it was in use; try again"
                )
            file.save_lost_log()
            for each in same:
                each.close(checkpoint=False)

    def _create(self) -> None:
        """Create the file if there is none. A log that was there before it belongs to a file that was deleted."""
        real = Path(os.path.realpath(self._location))
        if real.exists():
            return
        logs = [(each, identity(each)) for each in (f"{real}-wal", f"{real}-shm")]
        try:
            if not private_files.create_file(real):
                return
        except OSError as error:
            raise StoreUnavailable(
                f"store: {self.path} cannot be created ({error.strerror}); check its permissions"
            ) from None
        for each, before in logs:
            remove_if(each, before)

    def _opened(self) -> OpenedFile:
        """The file at the path, with the current schema. It must be the same store as before."""
        for _ in range(_OPENINGS_MAX):
            if not self._location.exists():
                raise StoreUnavailable(f"store: {self.path} does not exist any more; put it back, or restore a backup")
            try:
                file = OpenedFile(self._location, self._generation + 1, self._busy_timeout_ms, self.key)
            except Replaced:
                continue
            try:
                self._prepare(file)
                self._check_same_store(file.writer)
            except Replaced:
                file.close(checkpoint=False)
                continue
            except BaseException:
                file.close()
                raise
            self._generation += 1
            return file
        raise self._replaced("while it was opened")

    def _check_same_store(self, db: apsw.Connection) -> None:
        found = meta(db, "store_id") or ""
        if self.store_id and found != self.store_id:
            raise StoreUnavailable(
                f"store: {self.path} was replaced by another store while it was open; "
                "open it again to use that one, or put the former one back"
            )
        self.store_id = found

    def _prepare(self, file: OpenedFile) -> None:
        """Bring the file to the current schema. Several processes may do this at once."""
        db = file.writer
        deadline = time.monotonic() + self._busy_timeout_ms / 1000
        while True:
            try:
                version = schema.version(db)
                if not file.is_in_place():  # it was replaced by one with another key, and unlocked then
                    raise Replaced
                if file.read_only:
                    self._check_readable(db, version)
                elif version != schema.VERSION or db.execute("PRAGMA journal_mode").get != "wal":
                    self._upgrade(db, version)
                break
            except apsw.BusyError:  # changing to WAL does not wait for other processes
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        file.require_checksums(self.key is None and schema.has_page_checksums(db))
        file.note_logs()
        if not file.read_only:
            encryption.tidy(self._location, self.key)
        self._prepare_content(file.writer, file.read_only)
        file.committed()

    def _check_readable(self, db: apsw.Connection, version: int) -> None:
        """A file that cannot be written cannot be brought to this version."""
        schema.check_known(db, version)
        if version != schema.VERSION:
            raise StoreUnavailable(
                f"store: {self.path} is read-only and {f'has schema version {version}' if version else 'empty'}; "
                "open it once where it can be written, to bring it to this version"
            )

    def _upgrade(self, db: apsw.Connection, version: int) -> None:
        if self._checksums and not version:
            page_checksums.reserve(db)
        db.execute("PRAGMA journal_mode = WAL")
        with transaction(db):
            schema.migrate(db)

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

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"store: {self.path} is closed; open it again")

    def _busy(self) -> StoreBusy:
        seconds = self._busy_timeout_ms / 1000
        return StoreBusy(f"store: {self.path} stayed locked by another writer for {seconds:g} s; try again")

    def _replaced(self, when: str) -> StoreUnavailable:
        return StoreUnavailable(f"store: {self.path} or its write-ahead log was deleted, moved or replaced {when}")

    @contextmanager
    def _translated(self, file: OpenedFile | None) -> Iterator[None]:
        try:
            yield
        except NacreError:
            raise
        except apsw.Error as error:
            if file is not None and file.change() is not None:  # no damage, but two files in one answer
                raise self._replaced("while it was in use; try again") from error
            raise self._store_error(error) from error
        except _UNREADABLE as error:
            raise StoreCorrupt(f"store: {self.path} is damaged ({error}); {RESTORE}") from error

    def _store_error(self, error: apsw.Error) -> StoreError:
        path = self.path
        match error:
            case apsw.BusyError() | apsw.LockedError():
                return self._busy()
            case apsw.FullError():
                return StoreFull(f"store: no room left for {path}; nothing was written. Free some space and try again")
            case apsw.NotADBError():
                return StoreCorrupt(f"store: {path} is not a database; give the path of a Nacre store or a new file")
            case apsw.IOError() if page_checksums.is_mismatch(error):
                return StoreCorrupt(
                    f"store: {path} is damaged: {page_checksums.MISMATCH}; {RESTORE}, or see `nacre doctor` "
                    "if another program has written to it"
                )
            case apsw.CorruptError():
                return StoreCorrupt(f"store: {path} is damaged ({error}); {RESTORE}")
            case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
                return StoreUnavailable(f"store: {path} cannot be opened for writing ({error}); check its permissions")
        return StoreError(f"store: {path}: {type(error).__name__}: {error}")
