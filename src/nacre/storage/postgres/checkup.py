"""What every check of a store finds, and how it is repaired."""

from __future__ import annotations

from datetime import datetime

from nacre.storage.postgres.connection import Connections
from nacre.types.health import Finding


def diagnose(connections: Connections, now: datetime, *, fix: bool) -> list[Finding]:
    raise NotImplementedError
