"""Searches on a replica that is no staler than allowed.

The position of the write-ahead log says what a replica has. This process remembers how far the log was after each of
its own writes, and asks the primary now and then how far it is. A replica answers a search if it has come as far as the
last write here, and as far as the primary was at some moment within the allowed time; otherwise the primary answers.
So a process sees what it has written, and of the writes of others it misses those of the last seconds at most. No clock
but that of this process is used, and no right beyond that of reading.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from nacre.errors import InvalidInput, NacreError, StoreUnavailable
from nacre.runtime import forks
from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import WRITTEN, Connections, value
from nacre.storage.postgres.schema import Db
from nacre.types.health import Finding

STALENESS_S = 5.0  # that a search on a replica may lag behind the primary
RETRY_S = 10.0  # after which a replica that was away is asked again
CONNECT_S = 2  # that a replica may take to answer: the primary could answer instead
_REPLAYED = "SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0')::bigint"
_log = logging.getLogger("nacre")


class Replica:
    """A second server of the same store. It may be away: then the primary answers."""

    def __init__(
        self,
        dsn: str,
        schema_name: str,
        *,
        connections_max: int,
        spaces: tuple[str, ...] | None,
        staleness_s: float = STALENESS_S,
    ) -> None:
        self._dsn = dsn
        self._schema = schema_name
        self._connections_max = connections_max
        self._spaces = spaces
        self._staleness_s = staleness_s
        self._connections: Connections | None = None
        self._away_until = 0.0
        self._written = 0
        self._marks: deque[tuple[float, int]] = deque()  # moments, and how far the primary was then or later
        self.after_fork()
        forks.renew_in_child(self)

    def open(self, primary: Connections) -> None:
        """Connect to it, if it is there. Raises InvalidInput if it is no replica of this store."""
        try:
            self._opened(primary)
        except StoreUnavailable as error:
            self._away(str(error))

    def note_written(self, position: int) -> None:
        """A write of this process is in the log before this position."""
        with self._lock:
            self._written = max(self._written, position)

    @contextmanager
    def snapshot(self, primary: Connections) -> Iterator[Db]:
        """A reading transaction on the replica, or on the primary if the replica is away or too far behind."""
        with ExitStack() as stack:
            db = self._begun(stack, primary)
            if db is None:
                yield stack.enter_context(primary.snapshot())
                return
            try:
                yield db
            finally:
                if db.broken:
                    self._away("its connection was lost")

    def check(self, primary: Connections) -> Finding:
        """Whether the replica answers searches now."""
        try:
            replayed = self._opened(primary).read(_replayed)
        except NacreError as error:
            return Finding("replica", "note", f"the replica answers no searches, the primary does: {error}")
        if replayed is None:
            text = "the server named as replica is a primary itself, so it answers no searches"
            return Finding("replica", "note", text, "name a server that is in recovery")
        behind = max(0, int(primary.read(value, WRITTEN)) - replayed)
        return Finding("replica", "fine", f"the replica answers searches; it is {behind:,} bytes of log behind")

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._opening = threading.Lock()

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()

    # ---- which server

    def _begun(self, stack: ExitStack, primary: Connections) -> Db | None:
        """A transaction on the replica, which the stack ends; None: it may not answer."""
        if time.monotonic() < self._away_until:
            return None
        needed = self._needed(primary)

        def check(db: Db) -> None:
            replayed = _replayed(db)
            if replayed is None or replayed < needed:
                raise _BehindError

        try:
            return stack.enter_context(self._opened(primary).snapshot_if(check))
        except _BehindError:
            return None
        except NacreError as error:
            self._away(str(error))
            return None

    def _needed(self, primary: Connections) -> int:
        """How far the replica must have come."""
        now = time.monotonic()
        with self._lock:
            while self._marks and self._marks[0][0] < now - self._staleness_s:
                self._marks.popleft()
            fresh = bool(self._marks) and self._marks[-1][0] >= now - self._staleness_s / 2
        mark = None if fresh else (now, int(primary.read(value, WRITTEN)))
        with self._lock:
            if mark is not None:
                self._marks.append(mark)
            return max(self._written, self._marks[0][1])

    def _opened(self, primary: Connections) -> Connections:
        with self._opening:
            if self._connections is None:
                opened = Connections(
                    self._dsn,
                    self._schema,
                    create=False,
                    connections_max=self._connections_max,
                    spaces=self._spaces,
                    connect_s=CONNECT_S,
                )
                if opened.read(rows.meta, "store_id") != primary.read(rows.meta, "store_id"):
                    opened.close()
                    raise InvalidInput("replica", f"{opened.location} has another store; name a replica of this one")
                self._connections = opened
            return self._connections

    def _away(self, why: str) -> None:
        if time.monotonic() >= self._away_until:
            _log.warning("the replica answers no searches for %g s, the primary does: %s", RETRY_S, why)
        self._away_until = time.monotonic() + RETRY_S


class _BehindError(Exception):
    """The replica has not come far enough, or is no replica any more."""


def _replayed(db: Db) -> int | None:
    """How far a replica has come; None: it is none."""
    ((in_recovery, position),) = db.execute(_REPLAYED).fetchall()
    return int(position) if in_recovery else None
