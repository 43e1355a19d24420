"""The access tokens of a server. Of their secrets, only hashes are kept. The caller holds a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from nacre.storage.sqlite.rows import fetch, maybe_microseconds, maybe_moment, microseconds, moment, to_json
from nacre.types.access_tokens import AccessToken

TABLES = """
CREATE TABLE access_tokens (
  id          TEXT PRIMARY KEY,
  secret_hash BLOB NOT NULL,
  role        TEXT NOT NULL,
  spaces      TEXT,                       -- JSON array; NULL: all
  name        TEXT NOT NULL,
  created_us  INTEGER NOT NULL,
  expires_us  INTEGER                     -- NULL: never
) STRICT, WITHOUT ROWID;
"""

_COLUMNS = "id, role, spaces, name, created_us, expires_us"


def add(db: apsw.Connection, token: AccessToken, secret_hash: bytes) -> None:
    db.execute(
        f"INSERT INTO access_tokens ({_COLUMNS}, secret_hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            token.id,
            token.role,
            None if token.spaces is None else to_json(list(token.spaces)),
            token.name,
            microseconds(token.created),
            maybe_microseconds(token.expires),
            secret_hash,
        ),
    )


def listed(db: apsw.Connection) -> list[AccessToken]:
    """The newest first."""
    return [_token(row) for row in fetch(db, f"SELECT {_COLUMNS} FROM access_tokens ORDER BY created_us DESC, id DESC")]


def with_hash(db: apsw.Connection, token_id: str) -> tuple[AccessToken, bytes] | None:
    """A token and the hash of its secret."""
    for *columns, secret_hash in fetch(
        db, f"SELECT {_COLUMNS}, secret_hash FROM access_tokens WHERE id = ?", (token_id,)
    ):
        return _token(columns), secret_hash
    return None


def drop(db: apsw.Connection, token_id: str) -> bool:
    db.execute("DELETE FROM access_tokens WHERE id = ?", (token_id,))
    return db.changes() > 0


def _token(row: Sequence[Any]) -> AccessToken:
    token_id, role, spaces, name, created_us, expires_us = row
    return AccessToken(
        id=token_id,
        role=role,
        spaces=None if spaces is None else tuple(json.loads(spaces)),
        name=name,
        created=moment(created_us),
        expires=maybe_moment(expires_us),
    )
