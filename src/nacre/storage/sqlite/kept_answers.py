"""Answers that a server gave, kept for requests that are sent again. The caller holds a transaction.

A row without an answer is a claim: somebody is carrying the request out.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

import apsw

from nacre.storage.sqlite.rows import fetch, microseconds, to_json
from nacre.types.kept_answers import CLAIM_LASTS, KEPT, Claim, KeptAnswer

TABLES = """
CREATE TABLE kept_answers (
  key      TEXT NOT NULL UNIQUE,
  request  BLOB NOT NULL,                 -- a hash of it
  ticket   TEXT NOT NULL UNIQUE,          -- of who carries it out
  at_us    INTEGER NOT NULL,              -- when it was claimed or answered
  answered INTEGER NOT NULL,
  purged   INTEGER NOT NULL,              -- 1: memories were purged since, so no answer that quotes any is kept
  quotes   INTEGER,
  status   INTEGER,
  headers  TEXT,                          -- JSON array of pairs
  body     BLOB
) STRICT;
CREATE INDEX kept_answers_by_time ON kept_answers (at_us);
"""


def claim(db: apsw.Connection, key: str, request: bytes, now: datetime) -> Claim:
    db.execute("DELETE FROM kept_answers WHERE at_us <= ?", (microseconds(now - KEPT),))
    ticket = os.urandom(16).hex()
    sql = "SELECT rowid, request, at_us, answered, quotes, status, headers, body FROM kept_answers WHERE key = ?"
    for row, known, at_us, answered, quotes, status, headers, body in fetch(db, sql, (key,)):
        if known != request:
            return Claim("different")
        if answered:
            answer = None if body is None else KeptAnswer(status, _headers(headers), body, bool(quotes))
            return Claim("answered", answer=answer)
        if at_us > microseconds(now - CLAIM_LASTS):
            return Claim("running")
        db.execute("DELETE FROM kept_answers WHERE rowid = ?", (row,))
    db.execute(
        "INSERT INTO kept_answers (key, request, ticket, at_us, answered, purged) VALUES (?, ?, ?, ?, 0, 0)",
        (key, request, ticket, microseconds(now)),
    )
    return Claim("claimed", ticket)


def keep(db: apsw.Connection, ticket: str, answer: KeptAnswer, now: datetime) -> None:
    """Keep the answer to a claimed request, unless another has claimed it since."""
    db.execute(
        "UPDATE kept_answers SET answered = 1, at_us = ?1, quotes = ?2, "
        "status = iif(purged AND ?2, NULL, ?3), headers = iif(purged AND ?2, NULL, ?4), "
        "body = iif(purged AND ?2, NULL, ?5) WHERE ticket = ?6 AND answered = 0",
        (microseconds(now), int(answer.quotes), answer.status, to_json(answer.headers), answer.body, ticket),
    )


def drop(db: apsw.Connection, ticket: str) -> None:
    db.execute("DELETE FROM kept_answers WHERE ticket = ? AND answered = 0", (ticket,))


def purge(db: apsw.Connection) -> None:
    """Delete all answers that may quote memories, and those that are being made now as soon as they are there."""
    db.execute(
        "UPDATE kept_answers SET purged = 1, status = NULL, headers = NULL, body = NULL WHERE answered = 0 OR quotes"
    )


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in json.loads(text))
