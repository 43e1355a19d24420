"""A store in one SQLite file."""

from nacre.stores.sqlite.connections import BUSY_TIMEOUT_MS
from nacre.stores.sqlite.store import SqliteStore

__all__ = ["BUSY_TIMEOUT_MS", "SqliteStore"]
