"""One process at a time embeds what waits in a file: they share the processors, and several would do the same work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import apsw

from nacre.runtime import private_files
from nacre.storage.claims import Claims, Pending, PendingTokens

SUFFIX = "-embedding"  # of an empty file beside the store, which is there as long as a process embeds


def claims(store: Path, pending: Pending, pending_tokens: PendingTokens) -> Claims:
    return Claims(pending, pending_tokens, partial(alone, store))


@contextmanager
def alone(store: Path) -> Iterator[bool]:
    """Whether no other process has the lock. It is one of SQLite, which ends with the process on every platform.

    Without it, as where no file can be made, the same is computed twice at worst, and stored once.
    """
    path = Path(f"{store}{SUFFIX}")
    try:
        private_files.create_file(path, private_files.mode_of(store))
        lock = apsw.Connection(str(path.absolute()))
    except (OSError, apsw.Error):
        yield True
        return
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except (apsw.BusyError, apsw.LockedError):
            yield False
            return
        except apsw.Error:
            yield True
            return
        yield True
        with suppress(OSError):
            path.unlink()
    finally:
        lock.close()
