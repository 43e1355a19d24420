"""Answers that a server gave, kept for requests that are sent again. The caller holds a transaction."""

from __future__ import annotations

from datetime import datetime

from nacre.storage.postgres.schema import Db
from nacre.types.kept_answers import Claim, KeptAnswer


def claim(db: Db, key: str, request: bytes, now: datetime) -> Claim:
    """Two that claim one key at once: the second waits for the first, and finds it running."""
    raise NotImplementedError


def keep(db: Db, ticket: str, answer: KeptAnswer, now: datetime) -> None:
    raise NotImplementedError


def drop(db: Db, ticket: str) -> None:
    raise NotImplementedError


def purge(db: Db) -> None:
    """Delete all answers that may quote memories, and those that are being made now as soon as they are there."""
