"""Searches on replicas that are no staler than allowed.

The position of the write-ahead log says what a replica has. This process remembers how far the log was after each of
its own writes, and asks the primary now and then how far it is. A replica answers a search if it has come as far as the
last write here, and as far as the log of the primary was on its disk at some moment within the allowed time, as every
commit is before others see it. Replicas take turns; where none may answer, the primary does. So a process sees what it
has written, and of the writes of others it misses those of the last seconds at most. No clock but that of this process
is used, and no right beyond that of reading.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from nacre.errors import InvalidInput, NacreError, StoreBusy, StoreUnavailable
from nacre.runtime import forks
from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import Connections, value
from nacre.storage.postgres.schema import Db
from nacre.types.health import Finding
from nacre.types.location import STALENESS_S

RETRY_S = 10.0  # after which a replica that was away is asked again
CONNECT_S = 2  # that a replica may take to answer: another could answer instead
WAIT_MS = 100  # for a free connection to it, for the same reason
# What is in the log and on no disk yet is sent to no replica, and may stay there for long: reading writes to it, too.
FLUSHED = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint"
_REPLAYED = "SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0')::bigint"
_log = logging.getLogger("nacre")


class Replicas:
    """Further servers of the same store, which take turns. Any of them may be away."""

    def __init__(
        self,
        dsns: Sequence[str],
        schema_name: str,
        *,
        connections_max: int,
        spaces: tuple[str, ...] | None,
        staleness_s: float = STALENESS_S,
    ) -> None:
        """`connections_max` are those to each of them."""
        self._servers = [_Server(dsn, schema_name, connections_max, spaces) for dsn in dsns]
        self._staleness_s = staleness_s
        self._turns = itertools.count()
        self._written = 0
        self._marks: deque[tuple[float, int]] = deque()  # moments, and how far the primary was then or later
        self.after_fork()
        forks.renew_in_child(self)

    def open(self, primary: Connections) -> None:
        """Connect to those that are there. Raises InvalidInput for one that is no replica of this store."""
        for each in self._servers:
            try:
                each.opened(primary)
            except StoreUnavailable as error:
                each.leave_out(str(error))

    def note_written(self, position: int) -> None:
        """A write of this process is in the log before this position."""
        with self._lock:
            self._written = max(self._written, position)

    @contextmanager
    def snapshot(self, primary: Connections) -> Iterator[Db]:
        """A reading transaction on a replica, or on the primary if none may answer.

        Raises StoreUnavailable if the replica ends it before the block has ended; the next one is on another server.
        """
        with ExitStack() as stack:
            begun = self._begun(stack, primary)
            if begun is None:
                yield stack.enter_context(primary.snapshot())
                return
            server, db = begun
            try:
                yield db
            except (StoreUnavailable, StoreBusy) as error:  # busy: it replays what a reader keeps it from
                server.leave_out(str(error))
                raise StoreUnavailable(f"store: a replica ended the search ({error}); search again") from error

    def check(self, primary: Connections) -> list[Finding]:
        """Whether the replicas answer searches now."""
        return [each.check(primary) for each in self._servers]

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def close(self) -> None:
        for each in self._servers:
            each.close()

    def _begun(self, stack: ExitStack, primary: Connections) -> tuple[_Server, Db] | None:
        """A replica and a transaction on it, which the stack ends; None if none may answer."""
        there = [each for each in self._servers if each.is_there]
        if not there:
            return None
        needed = self._needed(primary)
        first = next(self._turns) % len(there)
        for each in (*there[first:], *there[:first]):
            db = each.begun(stack, primary, needed)
            if db is not None:
                return each, db
        return None

    def _needed(self, primary: Connections) -> int:
        """How far a replica must have come."""
        now = time.monotonic()
        with self._lock:
            while self._marks and self._marks[0][0] < now - self._staleness_s:
                self._marks.popleft()
            if self._marks and self._marks[-1][0] >= now - self._staleness_s / 2:
                return max(self._written, self._marks[0][1])
        position = int(primary.read(value, FLUSHED))
        with self._lock:
            self._marks.append((now, position))
            return max(self._written, self._marks[0][1])


class _Server:
    """One replica."""

    def __init__(self, dsn: str, schema_name: str, connections_max: int, spaces: tuple[str, ...] | None) -> None:
        self._dsn = dsn
        self._schema = schema_name
        self._connections_max = connections_max
        self._spaces = spaces
        self._connections: Connections | None = None
        self._away_until = 0.0
        self.after_fork()
        forks.renew_in_child(self)

    @property
    def is_there(self) -> bool:
        """Whether it may be asked now."""
        return time.monotonic() >= self._away_until

    def leave_out(self, why: str) -> None:
        """Do not ask it for a while."""
        if self.is_there:
            _log.warning("a replica is left out for %g s, and others answer: %s", RETRY_S, why)
        self._away_until = time.monotonic() + RETRY_S

    def begun(self, stack: ExitStack, primary: Connections, needed: int) -> Db | None:
        """A transaction on it, which the stack ends; None: it may not answer."""

        def check(db: Db) -> None:
            replayed = _replayed(db)
            if replayed is None or replayed < needed:
                raise _BehindError

        try:
            connections = self._connections
            if connections is None:
                if not self._opening.acquire(blocking=False):  # another thread waits for it already
                    return None
                try:
                    connections = self._open(primary)
                finally:
                    self._opening.release()
            return stack.enter_context(connections.snapshot_if(check))
        except (_BehindError, StoreBusy):
            return None
        except NacreError as error:
            self.leave_out(str(error))
            return None

    def opened(self, primary: Connections) -> Connections:
        """The connections to it. Raises InvalidInput if it has another store."""
        with self._opening:
            return self._open(primary)

    def check(self, primary: Connections) -> Finding:
        """Whether it answers searches now."""
        try:
            connections = self.opened(primary)
            replayed, name = connections.read(_replayed), connections.location
        except NacreError as error:
            return Finding("replica", "note", f"a replica answers no searches, others do: {error}")
        if replayed is None:
            text = f"{name} is named as a replica and is a primary itself, so it answers no searches"
            return Finding("replica", "note", text, "name a server that is in recovery")
        behind = max(0, int(primary.read(value, FLUSHED)) - replayed)
        return Finding("replica", "fine", f"{name} answers searches; it is {behind:,} bytes of log behind")

    def _open(self, primary: Connections) -> Connections:
        if self._connections is None:
            opened = Connections(
                self._dsn,
                self._schema,
                create=False,
                busy_timeout_ms=WAIT_MS,
                connections_max=self._connections_max,
                spaces=self._spaces,
                connect_s=CONNECT_S,
            )
            if opened.read(rows.meta, "store_id") != primary.read(rows.meta, "store_id"):
                opened.close()
                raise InvalidInput("replica", f"{opened.location} has another store; name a replica of this one")
            self._connections = opened
        return self._connections

    def after_fork(self) -> None:
        self._opening = threading.Lock()

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()


class _BehindError(Exception):
    """The replica has not come far enough, or is no replica any more."""


def _replayed(db: Db) -> int | None:
    """How far a replica has come; None: it is none."""
    ((in_recovery, position),) = db.execute(_REPLAYED).fetchall()
    return int(position) if in_recovery else None
