"""A store in PostgreSQL with pgvector."""

from nacre.storage.postgres.connection import BUSY_TIMEOUT_MS
from nacre.storage.postgres.schema import SCHEMA
from nacre.storage.postgres.store import PostgresStore

__all__ = ["BUSY_TIMEOUT_MS", "SCHEMA", "PostgresStore"]
