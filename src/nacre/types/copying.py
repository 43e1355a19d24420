"""What a copy of a whole store has beside the records of an export, and what is said of it in the end.

A copy begins with the header and the records of an export, vectors included. What a server keeps and the recall log
follow, which are written anew by each copy, and checksums of all of it come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from nacre.types.access_tokens import AccessToken
from nacre.types.recall_log import Receipt, Usage
from nacre.types.transfer import Record


@dataclass(frozen=True, slots=True)
class LogBegins:
    """The recall log, usage and access tokens follow, in place of those that are there."""


@dataclass(frozen=True, slots=True)
class ReceiptRecord:
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """How a memory was used, and when each outcome last earned its credit."""

    memory_id: str
    usage: Usage
    opened: datetime | None = None
    used: datetime | None = None
    wrong: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokenRecord:
    token: AccessToken
    secret_hash: bytes


@dataclass(frozen=True, slots=True)
class Checksums:
    """Of all that a store has, by sort of record: how many there are, and the sum of their hashes in any order."""

    counts: Mapping[str, int]
    sums: Mapping[str, int]

    def differing(self, other: Checksums) -> tuple[str, ...]:
        """The sorts of records that two stores do not have the same of."""
        return tuple(
            name
            for name in self.counts
            if (self.counts[name], self.sums[name]) != (other.counts[name], other.sums[name])
        )


LogRecord: TypeAlias = LogBegins | ReceiptRecord | UsageRecord | TokenRecord
CopyRecord: TypeAlias = Record | LogRecord | Checksums
LOG_RECORDS = (LogBegins, ReceiptRecord, UsageRecord, TokenRecord)


@dataclass(frozen=True, slots=True)
class CopyMark:
    """How far a copy from another store has come here."""

    source: str  # the id of the other store
    seq: int  # all changes there up to this number are here
    own: int = 0  # the number of the last change here when it was written: others have written since if it is higher


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy of a store did.

    `counts` has the number of records of each sort in the target, which is compared with the source by counts and
    checksums; it is empty where memories were merged into others, which cannot be compared.
    """

    source: str
    target: str
    added: int  # memories
    updated: int
    seq: int  # of the source; the next copy takes over what changed after it
    verified: bool
    counts: Mapping[str, int] = field(default_factory=dict[str, Any])
