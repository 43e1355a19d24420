"""How is a backup made? A copy of the store at one moment, checked, and under its name only when it is complete.

The copy is made by SQLite's backup API inside one read transaction: other processes go on writing, and none of it is
in the copy. Outside a transaction, the API would begin again with each of their writes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw

from nacre.analysis.wording import counted
from nacre.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from nacre.storage.sqlite import page_checksums, rows, schema
from nacre.storage.sqlite.backup import chain, deltas, files
from nacre.storage.sqlite.connection import Connections, integrity_problems
from nacre.storage.sqlite.opened_file import open_file
from nacre.types.backups import Backup, BackupRequest, BackupResult
from nacre.types.memory import Progress

_STEP_PAGES = 1_024
_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_CORRUPTFS)
# Whether a memory that is known up to an event was purged after it.
_PURGED_SINCE = (
    "SELECT EXISTS (SELECT 1 FROM events AS p WHERE p.seq > ?1 AND p.action = 'purged' "
    "AND EXISTS (SELECT 1 FROM events AS e WHERE e.memory_id = p.memory_id AND e.seq <= ?1))"
)


def backup(connections: Connections, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:
    """Write a backup to a file, or to a folder under a name of its own. Only a folder has increments and retention."""
    to = request.to
    with files.errors(to):
        if to.is_dir():
            with files.alone_in(to):
                return _to_folder(connections, request, progress)
        if request.incremental or request.keep is not None:
            raise InvalidInput("to", f"{to} is not a folder; `since` and `keep` need one that exists")
        if to.exists():
            raise InvalidInput("to", f"{to} exists already; give a new file, or a folder")
        if not to.parent.is_dir():
            raise StoreUnavailable(f"backup: the folder {to.parent} does not exist; create it or give another path")
        part = to.with_name(f".{to.name}.{secrets.token_hex(4)}.part")
        try:
            return BackupResult(backup=_published(_read_back(_taken(connections, part, request.at, progress)), to))
        finally:
            part.unlink(missing_ok=True)


def _to_folder(connections: Connections, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:
    folder = request.to
    copy, part = files.part_in(folder), files.part_in(folder)
    notes: list[str] = []
    try:
        taken = _taken(connections, copy, request.at, progress)
        before = files.in_folder(folder, taken.store_id)
        base = _base(connections, taken, before, notes) if request.incremental else None
        made = _read_back(taken) if base is None else _incremental(taken, base, part)
        made = _published(made, folder / files.generated_name(made))
    finally:
        copy.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    removed = [] if request.keep is None else chain.superfluous([*before, made], request.keep, request.zone)
    for each in reversed(removed):  # what continues another goes before it
        each.path.unlink(missing_ok=True)
    notes += _purged_notes(connections, made, [each for each in before if each not in removed])
    return BackupResult(backup=made, removed=tuple(each.path for each in removed), notes=tuple(notes))


def _taken(connections: Connections, part: Path, at: datetime, progress: Callable[[Progress], None]) -> Backup:
    """A full backup under a name that is not final: copied and checked, but not read back yet."""
    files.create(part)
    target = open_file(part, key=connections.key)
    try:
        with connections.reading(latest=True) as source:
            described = _described(source, part, at)
            try:
                _copy(source, target, progress)
                problems = ""
            except apsw.Error as error:
                if page_checksums.is_mismatch(error):
                    problems = page_checksums.MISMATCH
                elif _of_the_store(error):
                    raise
                else:
                    with files.errors(part.parent):
                        raise
        problems = problems or integrity_problems(target)
    finally:
        target.close()
    if problems:
        raise StoreCorrupt(
            f"store: {connections.path} is damaged ({problems}), and no backup was written; {rows.RESTORE}"
        )
    return files.finish(part, described)


def _of_the_store(error: apsw.Error) -> bool:
    """Whether a copy failed because the store could not be read. Otherwise the backup could not be written."""
    return isinstance(error, apsw.CorruptError | apsw.NotADBError) or getattr(error, "extendedresult", 0) in _READING


def _described(db: apsw.Connection, part: Path, at: datetime) -> Backup:
    """What the manifest says. Its first query begins the read transaction: the moment of the backup."""

    def number(sql: str) -> int:
        return int(db.execute(sql).get or 0)

    return Backup(
        path=part,
        id=secrets.token_hex(4),
        kind="full",
        created=at,
        store_id=rows.meta(db, "store_id") or "",
        schema_version=schema.version(db),
        seq=number("SELECT max(seq) FROM events"),
        memories=number("SELECT count(*) FROM memories WHERE deleted_us IS NULL"),
        forgotten=number("SELECT count(*) FROM memories WHERE deleted_us IS NOT NULL"),
        pages=0,
        page_bytes=number("PRAGMA page_size"),
        pages_checksum="",
        base=None,
        checksum="",
        size_bytes=0,
    )


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Callable[[Progress], None]) -> None:
    target.execute("PRAGMA journal_mode = OFF")  # a file that is not complete is removed
    target.execute("PRAGMA synchronous = OFF")
    if page_checksums.verified(source):
        page_checksums.reserve(target)
        target.execute(f"PRAGMA application_id = {schema.BACKUP_ID}")  # the first page says that others have checksums
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(_STEP_PAGES)
            progress(Progress(copying.page_count - copying.remaining, copying.page_count))
    target.execute("PRAGMA journal_mode = OFF")  # not WAL, as the store: it can be read in a read-only folder, too
    target.execute(f"PRAGMA application_id = {schema.BACKUP_ID}")


def _base(connections: Connections, taken: Backup, before: list[Backup], notes: list[str]) -> list[Backup] | None:
    """The chain that an incremental backup continues; None, with a note, where there is none to continue."""
    if connections.key is not None:
        notes.append("this is a full backup: the pages of an encrypted store all differ in each copy")
        return None
    if not before:
        notes.append("this is the first backup of this store in the folder, and a full one")
        return None
    last = before[-1]
    if last.page_bytes != taken.page_bytes or last.seq > taken.seq:
        notes.append(f"this is a full backup: the store was replaced since {last.path.name}")
        return None
    try:
        return chain.verified(last, before)
    except StoreError as error:
        notes.append(f"this is a full backup: the last one cannot be continued ({error})")
        return None


def _incremental(taken: Backup, base: list[Backup], part: Path) -> Backup:
    """What changed since the base, from a full backup that was taken. It is applied again to see that it is right."""
    files.create(part)
    with deltas.Image(base) as before:
        deltas.write(part, taken, before)
    made = _read_back(files.finish(part, replace(taken, kind="incremental", base=base[-1].checksum)))
    with deltas.Image([*base, made]) as image:
        if image.checksum() != taken.pages_checksum:
            raise files.damaged(part, "what was read back differs from what was written")
    return made


def _read_back(written: Backup) -> Backup:
    if files.verified(written.path) != written:
        raise files.damaged(written.path, "what was read back differs from what was written")
    return written


def _published(backup: Backup, path: Path) -> Backup:
    """Give a complete backup its name."""
    backup.path.replace(path)
    files.sync_folder(path.parent)
    return replace(backup, path=path)


def _purged_notes(connections: Connections, made: Backup, others: list[Backup]) -> list[str]:
    """Names the backups that have a memory which was purged since."""
    with connections.reading(latest=True) as db:
        older = [each.path.name for each in others if db.execute(_PURGED_SINCE, (each.seq,)).get]
    if not older:
        return []
    advice = "delete it" if len(older) == 1 else "delete them"
    if made.base is not None:
        advice = f"make a full backup, then {advice}"
    said = counted(len(older), "backup still has", "backups still have")
    return [f"{said} text that was purged later: {', '.join(older)}; {advice} to be rid of it"]
