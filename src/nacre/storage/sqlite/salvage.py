"""What can be saved of a damaged file? Every row that can still be read is copied into a new store.

Tables are copied row by row, in ranges that are halved around what cannot be read. Pages that do not match their
checksum are read a second time for memories alone, because their texts have checksums of their own. What is derived
from the memories is made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw

from nacre.analysis.wording import count_memories, counted
from nacre.errors import InvalidInput, StoreCorrupt
from nacre.ids import content_hash
from nacre.storage.sqlite import damage, further_vectors, rows, schema, token_vectors
from nacre.storage.sqlite.connection import transaction
from nacre.storage.sqlite.opened_file import open_file
from nacre.storage.sqlite.store import SqliteStore
from nacre.types.health import Salvage
from nacre.types.key import Key

# From memories, by `rebuild` or by triggers.
_DERIVED = ("tokens", "tags", "vocabulary", "corpus", "sketches", "space_usage")
_UNREADABLE = (apsw.IOError, apsw.CorruptError, UnicodeDecodeError)
_RANGE = 4_096  # keys that are read at a time
_OWN_META = ("schema_version", "page_checksums", "words_version")  # of the new file, not copied
Row: TypeAlias = tuple[Any, ...]


class Table(NamedTuple):
    """A table whose rows are copied."""

    name: str
    columns: tuple[str, ...]
    key: str  # by which its rows are read in order; the rowid if it has one
    has_rowid: bool

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)


def salvage(path: Path, to: Path, key: Key | None = None) -> Salvage:
    """Copy what can be read of a store into a new one. The damaged file stays as it is.

    Raises InvalidInput if the new file exists, and StoreCorrupt if not even the list of tables can be read.
    """
    if to.exists():
        raise InvalidInput("salvage", f"{to} exists already; give a new file")
    if not to.parent.is_dir():
        raise InvalidInput("salvage", f"the folder {to.parent} does not exist; create it or give another path")
    try:
        with closing(open_file(path, apsw.SQLITE_OPEN_READWRITE, key=key)) as source:
            tables = _tables(source)
            SqliteStore(to, key=key).close()
            with closing(open_file(to, key=key)) as target:
                found = _copied(source, target, tables, to)
        SqliteStore(to, key=key).close()  # derives the rest
    except (*_UNREADABLE, apsw.NotADBError) as error:
        _remove(to)
        raise StoreCorrupt(f"store: nothing can be read of {path} ({error}); {rows.RESTORE}") from error
    except BaseException:
        _remove(to)
        raise
    return found


def _remove(to: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        to.with_name(to.name + suffix).unlink(missing_ok=True)


def _tables(source: apsw.Connection) -> list[Table]:
    """The tables that hold what cannot be made again, memories first."""
    if source.execute("PRAGMA application_id").get != schema.APPLICATION_ID:
        raise StoreCorrupt(f"store: {source.filename} is no Nacre store, or its first page is damaged; {rows.RESTORE}")
    listed = rows.fetch(source, "SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
    virtual = tuple(f"{name}_" for name, sql in listed if sql.upper().startswith("CREATE VIRTUAL"))
    found = []
    for name, sql in listed:
        if name in _DERIVED or name.startswith(("sqlite_", *virtual)) or f"{name}_" in virtual:
            continue
        info = rows.fetch(source, f"PRAGMA table_info ({name})")
        has_rowid = "WITHOUT ROWID" not in sql.upper()
        first = next(column for _, column, *_, primary in info if primary) if not has_rowid else "rowid"
        found.append(Table(name, tuple(column for _, column, *_ in info), first, has_rowid))
    return sorted(found, key=lambda each: each.name != "memories")


# ---------------------------------------------------------------- copying


def _copied(source: apsw.Connection, target: apsw.Connection, tables: Sequence[Table], to: Path) -> Salvage:
    copied: dict[str, int] = {}
    lost: dict[str, int] = {}
    notes: list[str] = []
    with transaction(target):
        for table in tables:
            copied[table.name] = _insert(target, table, _readable_rows(source, table))
            lost[table.name] = 0 if table.name == "meta" else _number_of(source, table.name) - copied[table.name]
        again = _memories_of_damaged_pages(source, target, tables[0])
        copied["memories"] += again
        missing = _missing_memories(source, target)
        lost["memories"] = len(missing) if missing is not None else lost["memories"] - again
        left_out = _drop_orphans(target)
        if rows.meta(target, "model") is None:  # then nobody knows what the vectors mean
            target.execute("DELETE FROM passages")
        if rows.meta(target, "token_model") is None:
            target.execute("DELETE FROM token_vectors")
        _ask_for_vectors(target)
        rows.set_meta(target, "words_version", "")
    if again:
        notes.append(f"{count_memories(again)} from damaged pages: the texts are right, other fields may not be")
    if left_out:
        notes.append(f"{counted(left_out, 'row', 'rows')} of lost memories left out")
    return Salvage(
        path=to,
        copied={name: number for name, number in copied.items() if number},
        lost={name: number for name, number in lost.items() if number > 0},
        lost_memories=tuple(missing or ()),
        notes=tuple(notes),
    )


def _insert(target: apsw.Connection, table: Table, found: Iterator[Row]) -> int:
    """Insert rows, but for those that the table does not allow: they are damaged."""
    known = {column for _, column, *_ in target.execute(f"PRAGMA table_info ({table.name})")}
    places = [place for place, column in enumerate(table.columns) if column in known]
    columns = ", ".join(table.columns[place] for place in places)
    marks = ", ".join("?" * len(places))
    where = f" WHERE ?1 NOT IN ({', '.join(map(repr, _OWN_META))})" if table.name == "meta" else ""
    sql = f"INSERT OR REPLACE INTO {table.name} ({columns}) SELECT {marks}{where}"
    number = 0
    for row in found:
        with suppress(apsw.ConstraintError):
            target.execute(sql, [row[place] for place in places])
            number += target.changes()
    return number


def _readable_rows(source: apsw.Connection, table: Table) -> Iterator[Row]:
    if table.has_rowid:
        first, last = _bounds(source, table)
        for start in range(first, last + 1, _RANGE):
            yield from _in_range(source, table, start, min(start + _RANGE - 1, last))
        return
    seen: set[Row] = set()
    for order in ("ASC", "DESC"):  # up to what cannot be read, from either end
        with suppress(*_UNREADABLE):
            for row in source.execute(f"SELECT {table.listed} FROM {table.name} ORDER BY {table.key} {order}"):
                if row not in seen:
                    seen.add(row)
                    yield row


def _bounds(source: apsw.Connection, table: Table) -> tuple[int, int]:
    """The first and the last rowid, or more than these where they cannot be read."""
    least, most = 1, 0
    with suppress(*_UNREADABLE):
        most = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).get or 0
    with suppress(*_UNREADABLE):
        least = source.execute(f"SELECT min(rowid) FROM {table.name}").get or 1
    with suppress(*_UNREADABLE):
        most = max(most, source.execute(f"SELECT max(rowid) FROM {table.name}").get or 0)
    if not most and table.name == "token_vectors":
        with suppress(*_UNREADABLE):
            most = (source.execute("SELECT max(row) FROM memories").get + 1) * token_vectors.PLACES
    return least, most


def _in_range(source: apsw.Connection, table: Table, first: int, last: int) -> Iterator[Row]:
    sql = f"SELECT {table.listed} FROM {table.name} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    try:
        found = source.execute(sql, (first, last)).fetchall()
    except _UNREADABLE:
        if first < last:
            middle = (first + last) // 2
            yield from _in_range(source, table, first, middle)
            yield from _in_range(source, table, middle + 1, last)
        return
    yield from found


def _number_of(source: apsw.Connection, table: str) -> int:
    """How many rows there were; 0 if nobody can tell."""
    with suppress(*_UNREADABLE):
        return int(source.execute(f"SELECT count(*) FROM {table}").get)
    return 0


def _memories_of_damaged_pages(source: apsw.Connection, target: apsw.Connection, memories: Table) -> int:
    """Copy memories from pages that do not match their checksum, if the text matches its own."""
    source.execute("PRAGMA checksum_verification = OFF")  # does nothing where pages have none
    try:
        known = {row for (row,) in target.execute("SELECT row FROM memories")}
        at = {column: place for place, column in enumerate(memories.columns)}
        found = (
            row
            for row in _readable_rows(source, memories)
            if row[at["row"]] not in known and _is_written(row[at["text"]], row[at["content_hash"]])
        )
        return _insert(target, memories, found)
    finally:
        source.execute("PRAGMA checksum_verification = ON")


def _is_written(text: object, written_hash: object) -> bool:
    return isinstance(text, str) and content_hash(text) == written_hash


def _missing_memories(source: apsw.Connection, target: apsw.Connection) -> list[str] | None:
    """The ids of memories that were not copied, by the index of ids; None if that cannot be read."""
    with suppress(*_UNREADABLE):
        known = {each for (each,) in target.execute("SELECT id FROM memories")}
        return [each for each in damage.listed_memories(source) if each not in known]
    return None


# ---------------------------------------------------------------- what belongs to lost rows


def _drop_orphans(target: apsw.Connection) -> int:
    """Delete rows that refer to lost ones. Returns how many."""
    before = target.total_changes()
    tables = [name for (name,) in target.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    references = [
        (table, column, parent, to or "rowid")
        for table in tables
        for _, _, parent, column, to, *_ in target.execute(f"PRAGMA foreign_key_list ({table})").fetchall()
    ]
    changed = True
    while changed:
        reached = target.total_changes()
        for table, column, parent, to in references:
            target.execute(
                f"DELETE FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT {to} FROM {parent})"
            )
        changed = target.total_changes() > reached
    target.execute(f"DELETE FROM token_vectors WHERE key / {token_vectors.PLACES} NOT IN (SELECT row FROM memories)")
    return target.total_changes() - before


def _ask_for_vectors(target: apsw.Connection) -> None:
    """Let `reembed` make the vectors of memories that may lack some.

    Passages are written one after the other, so a gap between the keys of one memory, or a first passage that does not
    begin with the text, or a last one that does not end with it, tells that some are lost.
    """
    target.execute(
        "UPDATE memories SET embedded = 0 WHERE embedded = 1 AND row NOT IN (SELECT p.row FROM passages AS p "
        "GROUP BY p.row HAVING count(*) = max(p.passage) - min(p.passage) + 1 AND min(p.start_char) = 0 "
        "AND max(p.end_char) >= (SELECT length(rtrim(m.text)) FROM memories AS m WHERE m.row = p.row))"
    )
    target.execute("DELETE FROM passages WHERE row IN (SELECT row FROM memories WHERE embedded = 0)")
    target.execute(
        "UPDATE memories SET token_passages = NULL WHERE token_passages IS NOT NULL "
        "AND (embedded = 0 OR token_passages <> "
        f"(SELECT count(*) FROM token_vectors AS t WHERE t.key / {token_vectors.PLACES} = memories.row))"
    )
    target.execute(
        f"DELETE FROM token_vectors WHERE key / {token_vectors.PLACES} IN "
        "(SELECT row FROM memories WHERE token_passages IS NULL)"
    )
    further_vectors.let_pend(target)
