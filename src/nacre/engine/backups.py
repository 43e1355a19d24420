"""Backups of the whole store."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from nacre import validation
from nacre.engine.parts import Parts
from nacre.types.backups import BackupRequest, BackupResult
from nacre.types.memory import Progress


class BackupService:
    """Copies a store to files. A confined engine may not: a backup has all spaces."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def backup(
        self,
        to: str | PathLike[str],
        since: str | None,
        keep: str | None,
        progress: Callable[[Progress], None] | None,
    ) -> BackupResult:
        parts = self._parts
        parts.access.check_unconfined("backup", "has")
        if progress is not None:
            validation.function("progress", progress)
        request = BackupRequest(
            to=validation.file_path("to", to),
            at=parts.clock(),
            incremental=validation.since(since),
            keep=validation.keep(keep),
            zone=parts.zone,
        )
        return parts.store.backup(request, (lambda _: None) if progress is None else progress)
