"""Transactions on one store in PostgreSQL, by a pool of connections. Errors of PostgreSQL become errors of Nacre.

A reading transaction sees one moment (REPEATABLE READ). A writing one holds its spaces: two writers of one space take
turns, writers of different spaces do not wait for each other. So a write may read and then decide, as if it were alone
with its space, and no two writers wait for each other in a circle: spaces are locked in one order, before anything is
written, and a counter of `counters` after that.

A function that works on a connection may be called again, after its transaction was undone by the server or the
connection was lost before COMMIT was sent. It must have no other effects.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from nacre.errors import InvalidInput, MaybeStored, NacreError, StoreBusy, StoreError, StoreTooNew, StoreUnavailable
from nacre.runtime import forks
from nacre.storage.postgres import failures, halfvec, row_security, schema
from nacre.storage.postgres.arrays import ListDumper
from nacre.storage.postgres.schema import STORE_KEY, Db
from nacre.types.location import CONNECTIONS_MAX, SCHEMA

BUSY_TIMEOUT_MS = 10_000  # that a write waits for others
READ_TIMEOUT_MS = 60_000  # of one statement that reads
WRITE_TIMEOUT_MS = 300_000  # of one statement that writes
CONNECT_S = 10  # that a server may take to answer
_ATTEMPTS = 4  # of a transaction that the server undid
_PAUSE_S = 0.01  # before the second one, longer before each further one
_PAUSE_MAX_S = 0.5
_SOON_MS = 1  # for a write that does not wait for others
# A host that vanished is noticed within a minute, and not after the two hours that systems wait.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
_APPLICATION = "nacre"
_log = logging.getLogger("nacre")

P = ParamSpec("P")
T = TypeVar("T")
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

# What a search looks for decides how: it is planned each time.
_READS = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = force_custom_plan"
# A replica refuses READ WRITE by an error of its own. A table that was just filled has no statistics: the server takes
# it for an empty one, and would read all of it for each row of a write. So writes go by indexes; they may be planned
# once.
_WRITES = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off"
# Operators may limit how long a transaction lasts.
_LOCKS = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL transaction_timeout = 0"
_READ_ONLY = (  # a replica, or a user that may only read
    "SELECT current_setting('transaction_read_only')::boolean "
    "OR NOT has_table_privilege(quote_ident(%s) || '.memories', 'INSERT')"
)
_ABOUT_SESSION = "SELECT row_security_active(quote_ident(%s) || '.memories'), pg_backend_pid()"
_PREPARED_AFTER = 5  # times that a statement was sent
WRITTEN = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"  # how far the write-ahead log has come
# Nobody upgrades the tables meanwhile; who was upgraded before is told so.
_SHARES_STORE = f"SELECT pg_advisory_xact_lock_shared({STORE_KEY}); SELECT value FROM meta WHERE key = 'schema_version'"
_HOLDS_STORE = f"SELECT pg_advisory_xact_lock({STORE_KEY}); SELECT value FROM meta WHERE key = 'schema_version'"
_UNREPLICATED = "01000"  # the class of the warning that COMMIT gives if no standby has confirmed it in time
_AHEAD_OF_ALL = 1 << 62  # a position of the log that no replica reaches
# Of the transactions that write to this store, or lock its tables, the one that began first.
_HOLDER = """
SELECT a.pid, a.usename, a.application_name, host(a.client_addr),
  extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM pg_stat_activity AS a WHERE a.pid <> pg_backend_pid() AND a.pid IN (
  SELECT l.pid FROM pg_locks AS l
  WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND (
    l.locktype = 'advisory' AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(%(schema)s, 1)
    OR l.locktype = 'relation' AND l.mode <> 'AccessShareLock' AND l.relation IN (
      SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s
    )
  )
) ORDER BY a.xact_start LIMIT 1
"""


# ---------------------------------------------------------------- statements


def fetch(db: Db, statement: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return db.execute(statement, parameters, binary=True).fetchall()


def value(db: Db, statement: str, parameters: Parameters = ()) -> Any:
    """The first column of the first row; None without a row."""
    found = db.execute(statement, parameters, binary=True).fetchone()
    return None if found is None else found[0]


def run(db: Db, statement: str, parameters: Parameters = ()) -> int:
    """How many rows a statement changed."""
    return db.execute(statement, parameters).rowcount


def run_many(db: Db, statement: str, several: Iterable[Sequence[Any]]) -> None:
    """One statement for each row of parameters, sent together."""
    listed = list(several)
    if listed:
        with db.cursor() as cursor:
            cursor.executemany(statement, listed)


def copy(db: Db, target: str, types: Sequence[str], several: Iterable[Sequence[Any]]) -> None:
    """Append rows in bulk. `target` is a table with its columns, `types` are those of the columns."""
    if db.checks_rows:  # PostgreSQL knows no COPY into tables whose rows it checks
        run_many(db, f"INSERT INTO {target} VALUES ({', '.join(f'%s::{each}' for each in types)})", several)
        return
    with db.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT BINARY)") as rows:
        rows.set_types(types)
        for each in several:
            rows.write_row(each)


# ---------------------------------------------------------------- locks, at the beginning of a writing transaction


def hold(db: Db, spaces: Iterable[str]) -> None:
    """Be the only writer of these spaces until the transaction ends. Raises SpaceMoved for those of other nodes."""
    db.execute("SELECT hold_spaces(%s, true)", (list(dict.fromkeys(spaces)),))


def hold_unchecked(db: Db, spaces: Iterable[str]) -> None:
    """The same, whichever node has the spaces."""
    db.execute("SELECT hold_spaces(%s, false)", (list(dict.fromkeys(spaces)),))


def hold_memories(db: Db, ids: Iterable[str]) -> None:
    """Be the only writer of the spaces of these memories."""
    hold(db, (space for (space,) in fetch(db, "SELECT DISTINCT space FROM memories WHERE id = ANY(%s)", (list(ids),))))


def try_hold(db: Db, spaces: Iterable[str]) -> list[str]:
    """Those of these spaces that are here and that no other writer holds. This one does, then."""
    key = "hashtextextended(current_schema()::text || chr(31) || space, 0)"
    found = fetch(
        db,
        f"SELECT space, pg_try_advisory_xact_lock({key}) FROM unnest(%s::text[]) AS given (space) "
        "WHERE NOT EXISTS (SELECT 1 FROM placements AS p WHERE p.space = given.space AND p.state <> 'here')",
        (list(dict.fromkeys(spaces)),),
    )
    return [space for space, held in found if held]


# ---------------------------------------------------------------- the pool


class Connections:
    """Safe to use from several threads, and after a fork. No two transactions share a connection."""

    def __init__(
        self,
        dsn: str,
        schema_name: str = SCHEMA,
        *,
        create: bool = True,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        connections_max: int = CONNECTIONS_MAX,
        spaces: Sequence[str] | None = None,
        connect_s: int = CONNECT_S,
        note_written: Callable[[int], None] | None = None,
    ) -> None:
        """`note_written` is told how far the write-ahead log has come, after each write that is durable."""
        try:
            known = conninfo_to_dict(dsn)
        except psycopg.Error:  # its message may have the password
            raise InvalidInput("store", "is no address of PostgreSQL; give postgresql://user@host/database") from None
        self._secrets = [str(known[name]) for name in ("password", "sslpassword") if known.get(name)]
        own: dict[str, Any] = {
            "connect_timeout": connect_s,
            "application_name": _APPLICATION,
            "client_encoding": "UTF8",
        }
        self._conninfo = make_conninfo("", **{**own, **_KEEPALIVE, **known})
        self.schema = schema_name
        self.location = _location(known, schema_name)
        self._busy_timeout_ms = busy_timeout_ms
        self.connections_max = connections_max
        self._note_written = note_written
        self._closed = False
        self.read_only = False
        self._idle: list[Db] = []
        self._renew()
        with self._translated(), forks.at_work():
            db = self._first()
            with _closed_on_error(db):
                vectors = schema.prepare(db, schema_name, create, self.location)
                self.vectors_schema = vectors
                self._settings = self._with_path(vectors, spaces)
                self._types = halfvec.type_of(db)
                self._make_ready(db)
                self.read_only = bool(value(db, _READ_ONLY, (schema_name,)))
            self._idle.append(db)
        forks.close_before(self)
        forks.renew_in_child(self)

    def __repr__(self) -> str:
        return f"Connections({self.location!r})"

    # ---- reading

    def read(self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function reads: in the snapshot that the thread holds, or else of this moment."""
        viewing = self._viewing
        if viewing is not None:
            with self._translated():
                return work(viewing, *args, **kwargs)
        until = self._until(self._busy_timeout_ms)
        for attempt in count():
            try:
                with self._translated(), self.reading() as db:
                    return work(db, *args, **kwargs)
            except _Lost as lost:
                self._wait(attempt, lost, until)
        raise AssertionError("the last attempt raises")

    @contextmanager
    def view(self, opened: Callable[[], AbstractContextManager[Db]] | None = None) -> Iterator[None]:
        """A snapshot: all reads of this thread inside the block see one moment. `opened` may give it."""
        if self._viewing is not None:
            yield
            return
        with (opened or self.snapshot)() as db:
            self._own.view = db
            try:
                yield
            finally:
                self._own.view = None

    @contextmanager
    def snapshot(self, timeout_ms: int = READ_TIMEOUT_MS) -> Iterator[Db]:
        """A reading transaction of its own, which is begun again if the connection was lost before."""
        with ExitStack() as stack:
            db = self._begun(stack, lambda: self.reading(timeout_ms))
            try:
                with self._translated():
                    yield db
            except _Lost as lost:  # what was read before cannot be read again of the same moment
                raise self._error(lost.error) from lost.error

    def _begun(self, stack: ExitStack, transaction: Callable[[], AbstractContextManager[Db]]) -> Db:
        """A connection with a transaction, which the stack ends."""
        until = self._until(self._busy_timeout_ms)
        for attempt in count():
            try:
                with self._translated():
                    return stack.enter_context(transaction())
            except _Lost as lost:
                self._wait(attempt, lost, until)
        raise AssertionError("the last attempt raises")

    @contextmanager
    def snapshot_if(self, check: Callable[[Db], None], timeout_ms: int = READ_TIMEOUT_MS) -> Iterator[Db]:
        """The same, without another attempt, if `check` raises nothing on the connection before it is begun."""
        try:
            with self._translated(), self.reading(timeout_ms, check) as db:
                yield db
        except _Lost as lost:
            raise self._error(lost.error) from lost.error

    @contextmanager
    def reading(self, timeout_ms: int = READ_TIMEOUT_MS, check: Callable[[Db], None] | None = None) -> Iterator[Db]:
        """A reading transaction of its own. Raises _Lost if the connection ends."""
        with self._transaction(_READS, timeout_ms, timeout_ms, check) as db:
            db.seen = {}
            try:
                yield db
            finally:
                db.seen = None
            with suppress(psycopg.OperationalError):  # all is read
                db.execute("COMMIT", prepare=False)

    @property
    def _viewing(self) -> Db | None:
        return getattr(self._own, "view", None)

    # ---- writing

    def write(self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry a function out in one transaction: all of it is stored, or nothing."""
        return self._write(lambda db: work(db, *args, **kwargs))

    def write_once(self, work: Callable[[Db], T], is_stored: Callable[[Db], bool | None]) -> T:
        """`write`. If its COMMIT was not answered, `is_stored` says what became of it: if it is not stored, it is
        carried out again. None: it cannot be told.
        """
        return self._write(work, is_stored=is_stored)

    def write_soon(self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, but it does not wait for the disk: a crash of the server may undo it."""
        return self._write(lambda db: work(db, *args, **kwargs), durable=False)

    def write_if_free(self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same as `write_soon`. Raises StoreBusy where it would have to wait for another write."""
        return self._write(lambda db: work(db, *args, **kwargs), durable=False, wait_ms=_SOON_MS)

    @contextmanager
    def writing_to(self, spaces: Sequence[str]) -> Iterator[None]:
        """Every write of this thread inside the block holds these spaces, and so raises SpaceMoved if one is not here.

        Which spaces a write is about may be read from rows, and those of a space that was moved away are gone.
        """
        self._own.held = spaces
        try:
            yield
        finally:
            self._own.held = ()

    @contextmanager
    def confirming(self, confirm: Callable[[], None]) -> Iterator[None]:
        """Every write of this thread inside the block calls this before COMMIT. If it raises, nothing is written."""
        self._own.confirm = confirm
        try:
            yield
        finally:
            self._own.confirm = None

    def write_alone(self, work: Callable[Concatenate[Db, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same while no other writes, in any space. All other functions share the store."""
        return self._write(lambda db: work(db, *args, **kwargs), alone=True)

    def _write(
        self,
        work: Callable[[Db], T],
        *,
        durable: bool = True,
        wait_ms: int | None = None,
        alone: bool = False,
        is_stored: Callable[[Db], bool | None] | None = None,
    ) -> T:
        waits_ms = self._busy_timeout_ms if wait_ms is None else wait_ms
        begin = f"{_WRITES}; SET LOCAL synchronous_commit = off" if not durable else _WRITES
        lock = _HOLDS_STORE if alone else _SHARES_STORE
        until = self._until(waits_ms)
        for attempt in count():
            try:
                with self._translated(), self._transaction(begin, waits_ms, WRITE_TIMEOUT_MS, lock=lock) as db:
                    if alone and db.checks_rows and value(db, "SELECT own_spaces()") is not None:
                        raise StoreUnavailable(
                            f"store: the user of {self.location} is bound to spaces, and this is about all of them; "
                            "let the owner do it"
                        )
                    if held := getattr(self._own, "held", ()):
                        hold(db, held)
                    result = work(db)
                    if (confirm := getattr(self._own, "confirm", None)) is not None:
                        confirm()
                    self._commit(db)
                    if durable and self._note_written is not None:
                        self._note_written(self._position(db))
                    return result
            except _Unanswered as unanswered:
                known = None if is_stored is None else self._looked_up(is_stored)
                if known:
                    if self._note_written is not None:
                        self._note_written(self._position(unanswered.db))
                    return result
                if known is None or attempt + 1 >= _ATTEMPTS:
                    raise MaybeStored(f"store: the connection to {self.location} was lost {failures.LOST}") from None
            except _Lost as lost:
                self._wait(attempt, lost, until)
        raise AssertionError("the last attempt raises")

    def _looked_up(self, is_stored: Callable[[Db], bool | None]) -> bool | None:
        """Whether a write is stored: None, if the server does not say so.

        It is acknowledged then, so the look writes, too: its own COMMIT waits for the standbys that the other's has to
        wait for.
        """

        def look(db: Db) -> bool | None:
            known = is_stored(db)
            run(db, "UPDATE counters SET value = value WHERE name = 'revision'")
            return known

        try:
            return self._write(look)
        except NacreError:
            return None

    def _commit(self, db: Db) -> None:
        """End a writing transaction. Raises _Unanswered if it may be stored, and MaybeStored if no standby has it."""
        db.warnings.clear()
        try:
            done = db.execute("COMMIT", prepare=False)
        except psycopg.Error as error:
            if failures.is_lost(db, error):
                raise _Unanswered(db) from error
            raise  # the server has undone it
        if done.statusmessage != "COMMIT":  # but ROLLBACK: a statement has failed before, and nobody noticed
            raise StoreError(f"store: {self.location} has undone this write; nothing was written")
        if _UNREPLICATED in db.warnings:
            raise MaybeStored(
                f"store: {self.location} has stored this, but no standby has confirmed it, so a fail-over may lose it; "
                "check the standbys that synchronous_standby_names lists"
            )

    def _position(self, db: Db) -> int:
        """How far the log has come after a write that is committed, whatever happens to its connection now."""
        with suppress(psycopg.Error):
            return int(value(db, WRITTEN))
        with suppress(NacreError), self.snapshot() as another:
            return int(value(another, WRITTEN))
        return _AHEAD_OF_ALL

    # ---- beside transactions

    @contextmanager
    def holding(self) -> Iterator[Db]:
        """A connection with a transaction for locks, which it holds however long the block takes. Nothing is written.

        What ends it meanwhile ends the locks, and is no error.
        """
        with ExitStack() as stack:
            db = self._begun(stack, lambda: self._transaction(_LOCKS, READ_TIMEOUT_MS, READ_TIMEOUT_MS))
            with self._translated():
                yield db
            with suppress(psycopg.Error):
                db.execute("ROLLBACK")

    @contextmanager
    def outside(self, timeout_ms: int) -> Iterator[Db]:
        """A connection without a transaction, for commands that allow none. They are cancelled after this time."""
        try:
            with self._translated(), forks.at_work(), self._connection() as db:
                timer = threading.Timer(timeout_ms / 1000, db.cancel_safe)
                timer.daemon = True
                timer.start()
                try:
                    yield db
                finally:
                    timer.cancel()
                    timer.join()  # the connection is given to others next
        except _Lost as lost:
            raise self._error(lost.error) from lost.error

    @contextmanager
    def apart(self, opened: list[Db]) -> Iterator[Db]:
        """A connection beside those of the pool, for commands that take long. A fork does not wait for it.

        It is in `opened` meanwhile, so that a child that was forked can keep it from being closed.
        """
        with self._translated():
            db = self._connect()
            opened.append(db)
            try:
                yield db
            finally:
                if db in opened:
                    opened.remove(db)
                    db.close()

    def qualified(self, name: str) -> sql.Identifier:
        """A table or an index of the store, for commands outside of its transactions."""
        return sql.Identifier(self.schema, name)

    def set_path(self, db: Db) -> None:
        """Let a transaction of a connection of `apart` find the tables."""
        db.execute(self._settings, prepare=False)

    # ---- connections

    @contextmanager
    def _transaction(
        self,
        begin: str,
        wait_ms: int,
        timeout_ms: int,
        check: Callable[[Db], None] | None = None,
        *,
        lock: str | None = None,
    ) -> Iterator[Db]:
        """A connection with a transaction that the caller commits. It is undone if the block raises.

        `lock` is what one that writes begins with.
        """
        with forks.at_work(), self._connection() as db:
            try:
                if check is not None:
                    check(db)
                statements = [
                    *(begin, self._settings, f"SET LOCAL lock_timeout = {max(wait_ms, 1):d}"),  # 0 would be for ever
                    f"SET LOCAL statement_timeout = {timeout_ms:d}",
                ]
                if lock is None:
                    db.execute("; ".join(statements), prepare=False)
                else:
                    self._check_version(db.execute("; ".join((*statements, lock)), prepare=False))
                yield db
            except BaseException as error:
                lost = failures.is_lost(db, error)
                if lock is not None and not self.read_only and failures.is_read_only(error):
                    lost = True  # the server has become a replica, and another one the primary
                if lost:
                    db.close()
                elif db.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        db.execute("ROLLBACK", prepare=False)
                if lost or isinstance(error, failures.UNDONE):
                    raise _Lost(error) from error
                if isinstance(error, errors.LockNotAvailable) and wait_ms > _SOON_MS:
                    raise self._busy(db, error, wait_ms) from error
                raise

    def _check_version(self, begun: psycopg.Cursor[Any]) -> None:
        """Raise StoreTooNew if the tables were upgraded since the store was opened: this code would not keep them."""
        while begun.nextset():
            pass
        ((version,),) = begun.fetchall()
        if int(version) > schema.VERSION:
            raise StoreTooNew(
                f"store: {self.location} was upgraded to schema version {version} meanwhile, this Nacre knows up to "
                f"{schema.VERSION}; upgrade Nacre, and start this process anew"
            )

    def _busy(self, db: Db, error: psycopg.Error, waited_ms: int) -> StoreBusy:
        """Who others wait for, as far as PostgreSQL lets this user know it."""
        found = None
        with suppress(psycopg.Error):
            found = db.execute(_HOLDER, {"schema": self.schema}).fetchone()
        if found is None:
            who = str(error).strip().split("\n")[0]
        else:
            process, user, application, host, seconds = found
            named = f"process {process} of user {user}" + (f", {application}" if application else "")
            named += f" at {host}" if host else ""
            who = f"{named} has been writing there" + ("" if seconds is None else f" for {seconds:.0f} s")
        return StoreBusy(
            f"store: {self.location} was busy for {waited_ms / 1000:g} s, which is all that this call waits ({who}); "
            "try again, or raise busy_timeout_ms"
        )

    @contextmanager
    def _connection(self) -> Iterator[Db]:
        db = self._taken()
        try:
            yield db
        finally:
            self._give_back(db)

    def _taken(self) -> Db:
        if self._closed:
            raise StoreUnavailable(f"store: {self.location} is closed; open it again")
        free = self._free
        if not free.acquire(timeout=max(self._busy_timeout_ms, 1) / 1000):
            raise StoreBusy(
                f"store: all {self.connections_max} connections to {self.location} were in use for "
                f"{self._busy_timeout_ms / 1000:g} s; try again, or allow more"
            )
        try:
            with self._lock:
                db = self._idle.pop() if self._idle else None
            return self._connected() if db is None else db
        except BaseException:
            free.release()
            raise

    def _give_back(self, db: Db) -> None:
        with self._lock:
            if not self._closed and db.info.transaction_status == TransactionStatus.IDLE:
                self._idle.append(db)
                db = None  # type: ignore[assignment]
        self._free.release()
        if db is not None:
            db.close()

    def _connected(self) -> Db:
        try:
            db = self._connect()
            with _closed_on_error(db):
                self._make_ready(db)
        except psycopg.OperationalError as error:
            raise _Lost(error) from error
        return db

    def _connect(self) -> Db:
        db = Db.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        db.warnings = set()
        db.add_notice_handler(lambda said: db.warnings.add(said.sqlstate))
        return db

    def _first(self) -> Db:
        """The connection that the store is opened with. A server that is only starting is waited for."""
        until = self._until(self._busy_timeout_ms)
        while True:
            try:
                return self._connect()
            except psycopg.OperationalError as error:
                if not failures.will_pass(error) or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_MAX_S)

    def _make_ready(self, db: Db) -> None:
        halfvec.register(db, self._types)
        db.adapters.register_dumper(list, ListDumper)  # quoting the values of a list takes six times as long
        ((db.checks_rows, process),) = fetch(db, _ABOUT_SESSION, (self.schema,))
        # A pooler gives a number of its own, and maybe each transaction another session, without what others prepared.
        if process == db.info.backend_pid:
            db.prepare_threshold = _PREPARED_AFTER

    def _with_path(self, vectors: str, spaces: Sequence[str] | None) -> str:
        """The settings of each transaction. They are set in it, so that a connection may be shared with others."""
        path = sql.SQL("SET LOCAL search_path = {}, {}").format(sql.Identifier(self.schema), sql.Identifier(vectors))
        settings = [path.as_string(None), "SET LOCAL jit = off"]
        if spaces is not None:
            bound = sql.Literal(row_security.setting(spaces)).as_string(None)
            settings.append(f"SET LOCAL {row_security.SETTING} = {bound}")
        return "; ".join(settings)

    @staticmethod
    def _until(waits_ms: int) -> float:
        return time.monotonic() + waits_ms / 1000

    def _wait(self, attempt: int, lost: _Lost, until: float) -> None:
        """Before the next attempt. After the last one, raise what happened.

        A server that was started anew, or another one in its place, may need some seconds: a lost connection is
        replaced for as long as the call may wait, and at least once, because one of the pool may have ended long ago.
        """
        undone = isinstance(lost.error, failures.UNDONE)
        again = attempt + 1 < _ATTEMPTS if undone else attempt == 0 or time.monotonic() < until
        if self._closed or not again or not failures.may_pass(lost.error):
            raise self._error(lost.error) from lost.error
        if not undone:  # the others were lost, too
            with self._lock:
                lost_too, self._idle = self._idle, []
            for each in lost_too:
                each.close()
        time.sleep(min(_PAUSE_S * 4 ** min(attempt, _ATTEMPTS), _PAUSE_MAX_S) * (0.5 + random.random()))  # noqa: S311

    # ---- errors

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of PostgreSQL become errors of Nacre that say what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise self._error(error) from error

    def _error(self, error: BaseException) -> NacreError:
        return failures.translated(error, self.location, self._secrets)

    # ---- closing, and forks

    def close(self) -> None:
        """Close all connections. Calls still running in other threads finish first."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if forks.usable():  # what a child inherited is the parent's to close
            for each in idle:
                each.close()

    def before_fork(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def after_fork(self) -> None:
        for each in self._idle:  # to close one would end the session of the parent
            forks.leak(each)
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self.connections_max)
        self._idle = []
        self._own = threading.local()  # the snapshot that a thread holds, if any


class _Lost(Exception):
    """A transaction was undone by the server, or its connection was lost before it was to be committed."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class _Unanswered(Exception):
    """The connection was lost while a transaction was committed."""

    def __init__(self, db: Db) -> None:
        super().__init__()
        self.db = db


@contextmanager
def _closed_on_error(db: Db) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _location(known: dict[str, Any], schema_name: str) -> str:
    """A store as errors name it: without password and options."""
    user = f"{known['user']}@" if known.get("user") else ""
    hosts = [f"[{host}]" if ":" in host else host for host in str(known.get("host") or "localhost").split(",")]
    ports = str(known.get("port") or "").split(",")
    if len(ports) != len(hosts):  # one for all
        ports = ports[:1] * len(hosts)
    named = ",".join(f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=True))
    within = "" if schema_name == SCHEMA else f" (schema {schema_name})"
    return f"postgresql://{user}{named}/{known.get('dbname') or ''}{within}"
