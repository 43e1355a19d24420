"""Backups: what a backup file says of itself, which ones are kept, and what a call of `backup` did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Literal, TypeAlias

BackupKind: TypeAlias = Literal["full", "incremental"]


@dataclass(frozen=True, slots=True)
class Keep:
    """How many backups are kept: the last of each of so many days, weeks and months that have one."""

    days: int = 0
    weeks: int = 0
    months: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRequest:
    """Where a backup is written, and when. A file gets a full one, and has no others beside it."""

    to: Path  # a new file, or a folder
    at: datetime
    incremental: bool = False  # only what changed since the last one in the folder
    keep: Keep | None = None  # which of the folder are kept; None: all
    zone: tzinfo | None = None  # in which days, weeks and months begin; None: the machine's


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup file: the store as it was at one moment, or what changed since the backup before."""

    path: Path
    id: str
    kind: BackupKind
    created: datetime
    store_id: str
    schema_version: int
    seq: int  # of the last event in it
    memories: int
    forgotten: int
    pages: int  # of the store, not of the file
    page_bytes: int
    pages_checksum: str  # SHA-256 of all pages of the store
    base: str | None  # the checksum of the backup that an incremental one continues
    checksum: str  # SHA-256 of the file
    size_bytes: int  # of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """A new backup, the files that `keep` removed, and what there is to say about it."""

    backup: Backup
    removed: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
