"""Answers that a server gave, kept for requests that are sent again. The caller holds a transaction.

A row that is not answered is a claim: somebody is carrying the request out.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from nacre.storage.postgres.connection import fetch, run
from nacre.storage.postgres.rows import microseconds, to_json
from nacre.storage.postgres.schema import Db
from nacre.types.kept_answers import CLAIM_LASTS, KEPT, Claim, KeptAnswer

# What others delete at this moment is left to them.
_DELETE_OLD = (
    "DELETE FROM kept_answers WHERE (key, made_by) IN "
    "(SELECT key, made_by FROM kept_answers WHERE at_us <= %s AND key <> %s FOR UPDATE SKIP LOCKED)"
)
# A claim that is being written makes another one with its key wait, and is then found.
_INSERT = (
    "INSERT INTO kept_answers (key, request, ticket, at_us, answered, purged) VALUES (%s, %s, %s, %s, false, false) "
    "ON CONFLICT (key, made_by) DO NOTHING"
)
_FIND = (
    "SELECT request, at_us, answered, quotes, status, headers, body FROM kept_answers "
    "WHERE key = %s AND made_by = session_user AND at_us > %s FOR UPDATE"
)


def claim(db: Db, key: str, request: bytes, now: datetime) -> Claim:
    """Two that claim one key at once: the second waits for the first, and finds it running."""
    kept_since = microseconds(now - KEPT)
    run(db, _DELETE_OLD, (kept_since, key))
    ticket = os.urandom(16).hex()
    given = (key, request, ticket, microseconds(now))
    while not run(db, _INSERT, given):
        for known, at_us, answered, quotes, status, headers, body in fetch(db, _FIND, (key, kept_since)):
            if known != request:
                return Claim("different")
            if answered:
                answer = None if body is None else KeptAnswer(status, _headers(headers), body, bool(quotes))
                return Claim("answered", answer=answer)
            if at_us > microseconds(now - CLAIM_LASTS):
                return Claim("running")
        # It is too old, or it was dropped meanwhile.
        over = (
            "DELETE FROM kept_answers WHERE key = %s AND made_by = session_user "
            "AND (at_us <= %s OR NOT answered AND at_us <= %s)"
        )
        run(db, over, (key, kept_since, microseconds(now - CLAIM_LASTS)))
    return Claim("claimed", ticket)


def keep(db: Db, ticket: str, answer: KeptAnswer, now: datetime) -> None:
    """Keep the answer to a claimed request, unless another has claimed it since."""
    run(
        db,
        "UPDATE kept_answers SET answered = true, at_us = %s, quotes = %s, "
        "status = CASE WHEN purged AND %s THEN NULL ELSE %s::integer END, "
        "headers = CASE WHEN purged AND %s THEN NULL ELSE %s::text END, "
        "body = CASE WHEN purged AND %s THEN NULL ELSE %s::bytea END WHERE ticket = %s AND NOT answered",
        (
            *(microseconds(now), answer.quotes, answer.quotes, answer.status),
            *(answer.quotes, to_json(answer.headers), answer.quotes, answer.body, ticket),
        ),
    )


def drop(db: Db, ticket: str) -> None:
    run(db, "DELETE FROM kept_answers WHERE ticket = %s AND NOT answered", (ticket,))


def purge(db: Db) -> None:
    """Delete all answers that may quote memories, and those that are being made now as soon as they are there.

    Nothing is claimed until the purge is committed: who claims a request afterwards reads nothing that is purged. So
    call this at the end of a purge.
    """
    db.execute("LOCK TABLE kept_answers IN SHARE ROW EXCLUSIVE MODE")
    db.execute("SELECT clear_answers()")


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in json.loads(text))
