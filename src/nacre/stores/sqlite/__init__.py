"""A store in one SQLite file."""

from nacre.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
