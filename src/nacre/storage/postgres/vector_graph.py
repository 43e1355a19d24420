"""The graph (HNSW) by which near vectors are found where there are many: who builds it, and when.

A process that searches or writes looks, now and then, whether a store has grown so large that it needs one. If its user
is the owner of the tables, it has the server build one, while all others read and write. One process does so at a time:
it holds a lock for as long as it takes, in a transaction that sees nothing, because the server waits for all others. If
a process ends, the server goes on; what it leaves unfinished is dropped before the next attempt.

A graph has vectors of one length. Vectors of another length come with another model, which replaces all of them: then
the former graph is dropped.

To put a vector into a graph costs the server more than all else that is written of a memory, and only large spaces are
searched by it. So what is written once there is a graph stays beside it (`passages.beside_graph`), where a search
compares vectors one by one. The graph takes in those of large spaces in the background, a few at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import psycopg
from psycopg import errors, sql

from nacre.errors import NacreError, StoreUnavailable
from nacre.runtime import forks
from nacre.runtime.background import Worker
from nacre.storage.postgres.connection import Connections, fetch, run, value
from nacre.storage.postgres.schema import Db

SCANNED_MAX = 20_000  # passages: if no more match, they are compared one by one, not by the graph
DIMENSIONS_MAX = 4_000  # of a graph in pgvector
CONNECTIONS = 16  # of each passage in the graph
EF_CONSTRUCTION = 64
LOOKED_AFTER = 2_000  # passages that a process writes before it looks whether there is a graph
BULK = 100  # passages written at once; then others follow, and each is written faster while there is no graph
CALM_S = 5.0  # that a process waits after these
RETRY_S = 600.0  # after which it looks again, if it could not build one
BESIDE_MAX = 2_000  # passages of a large space that may stay beside the graph
_TAKEN_AT_ONCE = 50  # passages that the graph takes in by one transaction, for which their writers may wait
_LOCK_MS = 3_000  # that an unfinished graph is waited for
_POLLED_S = 0.2  # how often it is looked whether another process has ended its work

State: TypeAlias = Literal["ready", "building", "missing"]

_KEY = "hashtextextended(current_schema()::text, 2)"
OWN, FURTHER = "passages", "further_passages"  # the tables of vectors: of the store's model, and of further ones
TABLES = (OWN, FURTHER)
_GRAPHS = (
    "SELECT c.relname::text AS name, i.indisvalid AS is_valid FROM pg_index AS i "
    "JOIN pg_class AS c ON c.oid = i.indexrelid "
    "WHERE i.indrelid = '{0}'::regclass AND c.relname ^@ '{0}_by_vector_'"
)
EVERY_GRAPH = " UNION ALL ".join(map(_GRAPHS.format, TABLES))
_CROWDED = (
    "SELECT c.space FROM corpus AS c WHERE c.memories > %s AND EXISTS "
    "(SELECT FROM {table} AS p WHERE p.space = c.space AND p.beside_graph OFFSET %s)"
)
# Those that somebody else changes now are left for later.
_TAKE_IN = (
    "UPDATE {table} SET beside_graph = false WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM {table} WHERE beside_graph{where} LIMIT %s FOR UPDATE SKIP LOCKED))"
)
_OWNED = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'passages'::regclass"
_log = logging.getLogger("nacre")


class _Found(NamedTuple):
    """What graphs of a table there are, and what there should be."""

    table: str
    dimensions: int | None  # of the vectors; None: these are few, or too long for a graph
    finished: Sequence[str]
    unfinished: Sequence[str]

    @property
    def is_missing(self) -> bool:
        return self.dimensions is not None and self.name not in self.finished

    @property
    def name(self) -> str:
        """Of the graph that there should be."""
        return name(self.dimensions or 0, self.table)

    @property
    def former(self) -> list[str]:
        """Graphs of a model that was replaced."""
        return [] if self.dimensions is None else [each for each in self.finished if each != self.name]

    @property
    def state(self) -> State | None:
        if self.dimensions is None:
            return None
        if not self.is_missing:
            return "ready"
        return "building" if self.name in self.unfinished else "missing"


def name(dimensions: int, table: str = OWN) -> str:
    return f"{table}_by_vector_{dimensions:d}"


def state(db: Db) -> State | None:
    """The worst of all graphs. None: so few vectors need none."""
    states = [_found(db, table).state for table in TABLES]
    every: tuple[State, ...] = ("missing", "building", "ready")
    return next((each for each in every if each in states), None)


def is_there(db: Db, dimensions: int, table: str = OWN) -> bool:
    """Whether vectors of this length have a graph, be it unfinished."""
    return bool(value(db, "SELECT to_regclass(%s) IS NOT NULL", (name(dimensions, table),)))


class GraphBuilder:
    """Builds the graph of a store: in the background when it is needed, or at once when it is asked for."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._open: list[Db] = []
        self._retry_at = 0.0
        self._lock: threading.Lock
        self._worker: Worker
        self._closing: threading.Event
        self._written: int  # since it was looked whether there is a graph
        self._bulk_at: float  # when much was written last, by the clock of time.monotonic
        self._renew()
        forks.renew_in_child(self)

    def wrote(self, passages: int) -> None:
        """This process has written so many."""
        with self._lock:
            self._written += passages
            if passages >= BULK:
                self._bulk_at = time.monotonic()
            is_due = self._written >= LOOKED_AFTER
        if is_due:
            self.needed()

    def needed(self) -> None:
        """There may be need for a graph, which is built in the background then."""
        if time.monotonic() >= self._retry_at and not self._connections.read_only:
            with self._lock:
                self._written = 0
            self._worker.wake()

    def wait(self) -> None:
        """Until nothing is done in the background."""
        self._worker.join()

    def build(self, *, anew: bool = False) -> None:
        """Build the graph where it is needed and missing; `anew`: also where it is there. Waits for others that do.

        Raises StoreUnavailable where it is missing and the user may not build it.
        """
        while not self._build_if_free(anew=anew):
            time.sleep(_POLLED_S)

    def _build_if_free(self, *, anew: bool = False) -> bool:
        """The same, unless another one does so now."""
        with self._connections.apart(self._open) as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            db.execute("SET LOCAL transaction_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
            self._connections.set_path(db)
            # The only statement, and in the simple protocol: the build waits for transactions that hold any table, or
            # a snapshot, which the server keeps for the client after a statement with parameters.
            if db.execute(f"SELECT pg_try_advisory_xact_lock({_KEY})").fetchone() != (True,):
                return False
            with self._connections.apart(self._open) as other:
                self._build_alone(other, anew=anew)
            return True

    def after_fork(self) -> None:
        for each in self._open:  # to close one would end the session of the parent
            forks.leak(each)
        self._open = []
        self._renew()

    def close(self) -> None:
        """Wait for no more writes. What is being built is built on."""
        self._closing.set()

    def _renew(self) -> None:
        self._written, self._bulk_at = 0, -CALM_S
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._worker = Worker(self._build_missing, "nacre-graph")

    def _build_missing(self) -> None:
        while (left_s := self._bulk_at + CALM_S - time.monotonic()) > 0 and not self._closing.wait(left_s):
            pass
        try:
            self._build_if_free()
            self._take_in()
        except (NacreError, psycopg.Error) as error:
            self._retry_at = time.monotonic() + RETRY_S
            if not isinstance(error, StoreUnavailable):
                _log.warning(
                    "near vectors are found by comparing all of them, because no index could be built: %s", error
                )

    def _take_in(self) -> None:
        """Let the graph take in what was written to large spaces, unless another process has it do so."""
        for table in TABLES:
            for space in self._connections.read(_crowded, table):
                taken = _TAKEN_AT_ONCE
                while taken == _TAKEN_AT_ONCE and not self._closing.is_set():
                    taken = self._connections.write_soon(_take_some_in, table, space)

    def _build_alone(self, db: Db, *, anew: bool) -> None:
        for table in TABLES:
            self._build_of(db, table, anew=anew)

    def _build_of(self, db: Db, table: str, *, anew: bool) -> None:
        with db.transaction():
            self._connections.set_path(db)
            found, is_owned = _found(db, table), bool(value(db, _OWNED))
        if not (found.is_missing or found.former or found.unfinished or (anew and found.dimensions)):
            return
        if not is_owned:
            raise StoreUnavailable(
                f"store: only the owner of the tables of {self._connections.location} may build an index of their "
                "vectors; run `nacre rebuild` as the owner"
            )
        in_schema = self._connections.qualified
        for each in found.unfinished:
            with db.transaction():
                db.execute(f"SET LOCAL lock_timeout = {_LOCK_MS:d}")
                try:
                    db.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(in_schema(each)))
                except errors.LockNotAvailable:  # the server goes on with what a process that ended has begun
                    return
        if found.dimensions is not None and (found.is_missing or anew):
            began = time.monotonic()
            self._take_all_in(db, table)
            if found.is_missing:
                db.execute(self._statement(table, found.dimensions))
            else:
                db.execute(sql.SQL("REINDEX INDEX CONCURRENTLY {}").format(in_schema(found.name)))
            _log.info("built the index of vectors in %.0f s", time.monotonic() - began)
        for each in found.former:
            db.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(in_schema(each)))

    def _take_all_in(self, db: Db, table: str) -> None:
        """Take in what is beside the graph now, and not what others write meanwhile."""
        with db.transaction():
            self._connections.set_path(db)
            left = int(value(db, f"SELECT count(*) FROM {table} WHERE beside_graph"))
        for _ in range(0, left, _TAKEN_AT_ONCE):
            with db.transaction():
                self._connections.set_path(db)
                run(db, _TAKE_IN.format(table=table, where=""), (_TAKEN_AT_ONCE,))

    def _statement(self, table: str, dimensions: int) -> sql.Composed:
        """Builds the graph while others write."""
        vectors = sql.Identifier(self._connections.vectors_schema)
        return sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} "
            "USING hnsw ((vector::{vectors}.halfvec({dimensions})) {vectors}.halfvec_cosine_ops) "
            "WITH (m = {connections}, ef_construction = {ef}) "
            "WHERE NOT beside_graph AND {vectors}.vector_dims(vector) = {dimensions}"
        ).format(
            name=sql.Identifier(name(dimensions, table)),
            table=self._connections.qualified(table),
            vectors=vectors,
            dimensions=sql.Literal(dimensions),
            connections=sql.Literal(CONNECTIONS),
            ef=sql.Literal(EF_CONSTRUCTION),
        )


def _crowded(db: Db, table: str) -> list[str]:
    """Large spaces that have much beside the graph."""
    return [space for (space,) in fetch(db, _CROWDED.format(table=table), (SCANNED_MAX, BESIDE_MAX))]


def _take_some_in(db: Db, table: str, space: str) -> int:
    """How many passages of a space the graph has taken in; none where another process builds it or does the same."""
    if not value(db, f"SELECT pg_try_advisory_xact_lock({_KEY})"):
        return 0
    return run(db, _TAKE_IN.format(table=table, where=" AND space = %s"), (space, _TAKEN_AT_ONCE))


def _found(db: Db, table: str) -> _Found:
    graphs = fetch(db, _GRAPHS.format(table))
    finished = [each for each, is_valid in graphs if is_valid]
    unfinished = [each for each, is_valid in graphs if not is_valid]
    dimensions = value(db, f"SELECT vector_dims(vector) FROM {table} LIMIT 1")
    if dimensions is None or dimensions > DIMENSIONS_MAX:
        return _Found(table, None, finished, unfinished)
    is_large = (
        value(db, f"SELECT count(*) FROM (SELECT FROM {table} LIMIT %s) AS few", (SCANNED_MAX + 1,)) > SCANNED_MAX
    )
    return _Found(table, dimensions if is_large else None, finished, unfinished)
