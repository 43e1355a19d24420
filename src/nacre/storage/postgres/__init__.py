"""A store in PostgreSQL with pgvector."""

from nacre.runtime import native_packages

native_packages.numpy()  # before the modules below import it: two threads must not

from nacre.storage.postgres.connection import BUSY_TIMEOUT_MS  # noqa: E402
from nacre.storage.postgres.node import PostgresNode  # noqa: E402
from nacre.storage.postgres.schema import NoStore  # noqa: E402
from nacre.storage.postgres.store import PostgresStore  # noqa: E402

__all__ = ["BUSY_TIMEOUT_MS", "NoStore", "PostgresNode", "PostgresStore"]
