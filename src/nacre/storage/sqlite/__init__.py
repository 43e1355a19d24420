"""A store in one SQLite file."""

from nacre.storage.sqlite.connection import BUSY_TIMEOUT_MS
from nacre.storage.sqlite.store import SqliteStore

__all__ = ["BUSY_TIMEOUT_MS", "SqliteStore"]
