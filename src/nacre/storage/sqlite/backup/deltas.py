"""What changed between two backups? The pages that differ, each compressed with its earlier content as the dictionary.

Pages have every kind of change, whichever table it was in, and applying them gives the store again to the byte. Most
changes of a page are small: a delta then takes some ten bytes, where the page takes four thousand.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import apsw

from nacre.storage.sqlite.backup import files
from nacre.storage.sqlite.opened_file import open_file
from nacre.storage.sqlite.schema import BACKUP_ID
from nacre.types.backups import Backup

_TABLE = "CREATE TABLE pages (page INTEGER PRIMARY KEY, delta BLOB NOT NULL) STRICT"


class Image:
    """All pages of a store as a backup has it: those of a full backup, changed by the incremental ones after it."""

    def __init__(self, chain: Sequence[Backup]) -> None:
        self._chain = chain
        self._closing = ExitStack()
        self._changed: defaultdict[int, list[int]] = defaultdict(list)  # by page: in which of the chain
        full, *increments = chain
        try:
            self._full = self._closing.enter_context(full.path.open("rb"))
            self._increments = [self._opened(each.path) for each in increments]
            for place, db in enumerate(self._increments):
                for (page,) in db.execute("SELECT page FROM pages"):
                    self._changed[page].append(place)
        except BaseException:
            self._closing.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def __iter__(self) -> Iterator[bytes]:
        return map(self.page, range(1, self._chain[-1].pages + 1))

    def page(self, number: int) -> bytes:
        """A page, numbered from 1; empty if the store has less."""
        full, *increments = self._chain
        content = b""
        if number <= full.pages:
            self._full.seek((number - 1) * full.page_bytes)
            content = self._full.read(full.page_bytes)
        changed = self._changed.get(number, ())
        for place, increment in enumerate(increments):
            if number > increment.pages:  # the store was smaller then
                content = b""
            elif place in changed:
                delta = self._increments[place].execute("SELECT delta FROM pages WHERE page = ?", (number,)).get
                content = self._applied(content, delta, increment.path)
        return content

    def checksum(self) -> str:
        checksum = hashlib.sha256()
        for page in self:
            checksum.update(page)
        return checksum.hexdigest()

    def _opened(self, path: Path) -> apsw.Connection:
        db = open_file(path, apsw.SQLITE_OPEN_READONLY)
        self._closing.callback(db.close)
        return db

    @staticmethod
    def _applied(before: bytes, delta: bytes, path: Path) -> bytes:
        try:
            return zlib.decompressobj(zdict=before).decompress(delta)
        except zlib.error as error:
            raise files.damaged(path, f"a page does not fit the backup before it ({error})") from None


def write(target: Path, full: Backup, before: Image) -> None:
    """Write the pages of a full backup that differ from those before into a new database."""
    db = open_file(target)
    try:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(f"PRAGMA application_id = {BACKUP_ID}")
        db.execute(_TABLE)
        db.execute("BEGIN")
        with Image([full]) as after:
            db.executemany("INSERT INTO pages VALUES (?, ?)", _differing(before, after))
        db.execute("COMMIT")
    finally:
        db.close()


def _differing(before: Image, after: Image) -> Iterator[tuple[int, bytes]]:
    for number, page in enumerate(after, 1):
        earlier = before.page(number)
        if page != earlier:
            compressor = zlib.compressobj(zdict=earlier)
            yield number, compressor.compress(page) + compressor.flush()
