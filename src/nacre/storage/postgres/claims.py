"""Memories that one worker embeds and the others leave to it.

A claim is an advisory lock that its transaction holds. It ends with the transaction, so with the connection of a worker
that was killed, too. It is written nowhere, nobody but another claim waits for it, and the transaction has no snapshot
while texts are embedded, so vacuum does not wait either. What is stored does not depend on it: a memory that has its
vectors by then is left out when they are written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nacre.errors import InvalidInput
from nacre.interfaces import NOTHING_CLAIMED, Claimed
from nacre.runtime import forks
from nacre.storage.postgres import further_vectors
from nacre.storage.postgres.connection import Connections, fetch
from nacre.storage.postgres.filters import Clause
from nacre.storage.postgres.listing import PENDING, PENDING_TOKENS
from nacre.storage.postgres.placements import HIDDEN
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db

CONNECTIONS_MIN = 2  # one that holds claims, one that writes
_LOOKED_AT = 256  # memories at least, at a time
_BEGIN: Key = ("", 0)
_HERE = Clause(f"NOT {HIDDEN.format('m')}", ())
# A second set of keys beside those of spaces.
_CLAIM = (
    "SELECT space, row FROM unnest(%s::text[], %s::bigint[]) AS found (space, row) WHERE pg_try_advisory_xact_lock("
    "hashtextextended(current_schema()::text || chr(31) || space || chr(31) || row, 2)) LIMIT %s"
)


class Claims:
    """Claims of this process. Each goes on where the last one ended, so that every space has its turn."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._last = _BEGIN
        self.after_fork()
        forks.renew_in_child(self)

    @contextmanager
    def claimed(self, limit: int, *, tokens: bool, further: str | None = None) -> Iterator[Claimed]:
        """As in `nacre.interfaces.Store`."""
        if self._connections.connections_max < CONNECTIONS_MIN:
            raise InvalidInput("connections", f"is 1, and embedding needs {CONNECTIONS_MIN}; allow more")
        free = self._free
        if not free.acquire(blocking=False):  # who waited here with a claim would keep itself from writing
            yield NOTHING_CLAIMED
            return
        try:
            with self._connections.holding() as db:
                new = self._take(db, Clause(PENDING, ()) & _HERE, limit)
                left = limit - len(new)
                lacking = self._take(db, Clause(PENDING_TOKENS, ()) & _HERE, left) if tokens else {}
                left -= len(lacking)
                others = {}
                if further is not None:
                    others = self._take(db, further_vectors.pending_clause(db, further) & _HERE, left)
                # This comes last and is sent alone: until then, the server keeps the snapshot of the last query.
                db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield Claimed(new, lacking, others)
        finally:
            free.release()

    def after_fork(self) -> None:
        # Each claim has a connection, and what is embedded is written by another one.
        self._free = threading.Semaphore(max(1, self._connections.connections_max // 2))

    def _take(self, db: Db, condition: Clause, limit: int) -> dict[str, str]:
        """Claim up to so many of those that match a condition: their texts by id."""
        taken: list[Key] = []
        for keys in self._pages(db, condition, max(limit, _LOOKED_AT)):
            if len(taken) == limit:
                break
            spaces, numbers = map(list, zip(*keys, strict=True))
            taken += fetch(db, _CLAIM, (spaces, numbers, limit - len(taken)))
        if not taken:
            return {}
        self._last = taken[-1]
        # Who had claimed one of them a moment ago has written it before the claim ended.
        sql = (
            "SELECT m.id, m.text FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY AS taken (space, row, place) "
            "JOIN memories AS m ON m.space = taken.space AND m.row = taken.row "
            f"AND {condition.sql} ORDER BY taken.place"
        )
        given = [list(column) for column in zip(*taken, strict=True)]
        return dict(fetch(db, sql, (*given, *condition.parameters)))

    def _pages(self, db: Db, condition: Clause, size: int) -> Iterator[list[Key]]:
        """All that match a condition, in order, from the last claim on and then from the beginning to it."""
        last = self._last
        for first, until in ((last, None), (_BEGIN, last)):
            while True:
                bounds = "(m.space, m.row) > (%s, %s)" + ("" if until is None else " AND (m.space, m.row) <= (%s, %s)")
                sql = (
                    f"SELECT m.space, m.row FROM memories AS m WHERE {condition.sql} AND {bounds} "
                    "ORDER BY m.space, m.row LIMIT %s"
                )
                keys: list[Key] = [
                    tuple(each) for each in fetch(db, sql, (*condition.parameters, *first, *(until or ()), size))
                ]
                if keys:
                    yield keys
                if len(keys) < size:
                    break
                first = keys[-1]
