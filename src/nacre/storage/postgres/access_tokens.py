"""The access tokens of a server. Of their secrets, only hashes are kept. The caller holds a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nacre.storage.postgres.connection import fetch, run
from nacre.storage.postgres.rows import maybe_microseconds, maybe_moment, microseconds, moment
from nacre.storage.postgres.schema import Db
from nacre.types.access_tokens import AccessToken

_COLUMNS = "id, role, spaces, name, created_us, expires_us"


def add(db: Db, token: AccessToken, secret_hash: bytes) -> None:
    run(
        db,
        f"INSERT INTO access_tokens ({_COLUMNS}, secret_hash) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (
            token.id,
            token.role,
            None if token.spaces is None else list(token.spaces),
            token.name,
            microseconds(token.created),
            maybe_microseconds(token.expires),
            secret_hash,
        ),
    )


def listed(db: Db) -> list[AccessToken]:
    """The newest first."""
    return [_token(row) for row in fetch(db, f"SELECT {_COLUMNS} FROM access_tokens ORDER BY created_us DESC, id DESC")]


def with_hash(db: Db, token_id: str) -> tuple[AccessToken, bytes] | None:
    """A token and the hash of its secret."""
    sql = f"SELECT {_COLUMNS}, secret_hash FROM access_tokens WHERE id = %s"
    for *columns, secret_hash in fetch(db, sql, (token_id,)):
        return _token(columns), secret_hash
    return None


def drop(db: Db, token_id: str) -> bool:
    return run(db, "DELETE FROM access_tokens WHERE id = %s", (token_id,)) > 0


def _token(row: Sequence[Any]) -> AccessToken:
    token_id, role, spaces, name, created_us, expires_us = row
    return AccessToken(
        id=token_id,
        role=role,
        spaces=None if spaces is None else tuple(spaces),
        name=name,
        created=moment(created_us),
        expires=maybe_moment(expires_us),
    )
