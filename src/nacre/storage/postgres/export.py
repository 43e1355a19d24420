"""What is exported of a store, as of one moment, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.storage.postgres.connection import Connections
from nacre.types.transfer import ExportRequest, Record


def dump(connections: Connections, request: ExportRequest) -> Iterator[Record]:
    """All records that are asked for, the header first. `connections.reading()` gives a snapshot of its own."""
    raise NotImplementedError
