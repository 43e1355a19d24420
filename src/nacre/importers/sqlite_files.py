"""SQLite files of other programs, which are read and never written, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from nacre.importers.importer import Refused

SQLITE_START = b"SQLite format 3\x00"
_VALUE_BYTES_MAX = 64 * 2**20
_BUSY_MS = 5_000
SQLITE_ERRORS = (apsw.Error, UnicodeDecodeError, OSError)


class SqliteFile:
    """An open file. Only ordinary tables are read: a view or a virtual table would run what its author wrote."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._encoding = str(self._first("PRAGMA encoding")).lower().replace("utf-16", "utf-16-")

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; none if there is no such table."""
        sql = self._first("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        if not (isinstance(sql, str) and sql.upper().startswith("CREATE TABLE")):
            return frozenset()
        return frozenset(
            name for (name,) in self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        )

    def rows(self, table: str, columns: Sequence[str], only: str = "true") -> Iterator[dict[str, Any] | Refused]:
        """These columns of all rows, None for those that the table lacks. Bytes are read as text.

        Of a file that is damaged further on, what comes before is given. `table`, `columns` and `only`, a condition,
        are written in this package, never in a file.
        """
        count = 0
        try:
            there = self.columns(table)
            known = [name for name in columns if name in there]
            if not known:
                return
            asked = ", ".join(f'typeof("{name}"), {_as_bytes(name)}' for name in known)
            for row in self._connection.execute(f'SELECT {asked} FROM "{table}" WHERE {only}'):  # noqa: S608
                count += 1
                values = (self._value(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True))
                yield dict.fromkeys(columns) | dict(zip(known, values, strict=True))
        except SQLITE_ERRORS as problem:
            yield Refused(f"{table}, row {count + 1:,}", f"cannot be read, nor can those after it ({problem})")

    def look_up(self, table: str, wanted: str, by: str, value: str) -> Any:
        """The column `wanted` of the first row with this value; None without one."""
        try:
            if not {wanted, by} <= self.columns(table):
                return None
            sql = f'SELECT typeof("{wanted}"), {_as_bytes(wanted)} FROM "{table}" WHERE "{by}" = ? LIMIT 1'  # noqa: S608
            return next((self._value(*row) for row in self._connection.execute(sql, (value,))), None)
        except SQLITE_ERRORS:
            return None

    def _value(self, kind: str, value: Any) -> Any:
        if not isinstance(value, bytes):
            return value
        return value.decode(self._encoding if kind == "text" else "utf-8", "replace")

    def _first(self, sql: str, values: Sequence[str] = ()) -> Any:
        return next(iter(self._connection.execute(sql, values)), (None,))[0]


def _as_bytes(name: str) -> str:
    """A column whose texts may be no texts of the file's encoding."""
    return f'CASE typeof("{name}") WHEN \'text\' THEN CAST("{name}" AS BLOB) ELSE "{name}" END'


@contextmanager
def opened(path: Path) -> Iterator[SqliteFile]:
    """The file, read-only. Where no other program writes it, not even a lock is taken."""
    log = path.with_name(f"{path.name}-wal")
    live = log.exists() and log.stat().st_size > 0
    uri = f"{path.resolve().as_uri()}?mode=ro{'' if live else '&immutable=1'}"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        yield SqliteFile(connection)
    finally:
        connection.close(True)


def rows_of(path: Path, table: str, columns: Sequence[str], only: str = "true") -> Iterator[dict[str, Any] | Refused]:
    """The same as `SqliteFile.rows`, of one table of a file."""
    try:
        with opened(path) as file:
            yield from file.rows(table, columns, only)
    except SQLITE_ERRORS as problem:
        yield Refused("file", f"cannot be read as an SQLite file ({problem})")


def has_table(path: Path, head: bytes, table: str, *columns: str) -> bool:
    """Whether it is an SQLite file with a table that has these columns."""
    if not head.startswith(SQLITE_START):
        return False
    try:
        with opened(path) as file:
            return file.columns(table) >= set(columns)
    except SQLITE_ERRORS:
        return False
