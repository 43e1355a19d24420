"""The lenses of a space, by name."""

from __future__ import annotations

from nacre.storage.postgres.schema import Db


def put(db: Db, space: str, name: str, body: str) -> None:
    raise NotImplementedError


def drop(db: Db, space: str, name: str) -> bool:
    raise NotImplementedError


def listed(db: Db, space: str) -> dict[str, str]:
    raise NotImplementedError
