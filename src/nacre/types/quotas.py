"""How much a space may hold, and how fast a session may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Limits that a store checks in the transaction that writes; 0 is no limit.

    Forgotten memories count until they are purged. Bytes are those of texts, summaries, tags, sources, metadata and
    given facts in UTF-8, and of earlier values in the history; indexes and vectors do not count.
    """

    memories_max: int = 0  # of one space
    bytes_max: int = 0  # of one space
    session_writes_max: int = 0  # new memories of one session, or else of one origin, in a minute


NO_QUOTAS = Quotas()


class Usage(NamedTuple):
    """What a space holds."""

    memories: int = 0
    bytes: int = 0
