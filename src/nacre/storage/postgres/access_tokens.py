"""The access tokens of a server. Of their secrets, only hashes are kept. The caller holds a transaction."""

from __future__ import annotations

from nacre.storage.postgres.schema import Db
from nacre.types.access_tokens import AccessToken


def add(db: Db, token: AccessToken, secret_hash: bytes) -> None:
    raise NotImplementedError


def listed(db: Db) -> list[AccessToken]:
    """The newest first."""
    raise NotImplementedError


def with_hash(db: Db, token_id: str) -> tuple[AccessToken, bytes] | None:
    """A token and the hash of its secret."""
    raise NotImplementedError


def drop(db: Db, token_id: str) -> bool:
    raise NotImplementedError
