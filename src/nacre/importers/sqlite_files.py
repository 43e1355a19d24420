"""SQLite files of other programs, which are read and never written, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from nacre.importers.importer import Refused

_START = b"SQLite format 3\x00"
_VALUE_BYTES_MAX = 64 * 2**20
_BUSY_MS = 5_000
_NAME_CHARS_MAX = 200


class SqliteFile:
    """An open file. Only ordinary tables are read: a view or a virtual table runs what its author wrote."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._encoding = str(self._one("PRAGMA encoding")).replace("UTF-16", "utf-16-")

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; none if there is no such table."""
        found = self._one("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        if not (isinstance(found, str) and found.upper().startswith("CREATE TABLE")):
            return frozenset()
        rows = self._connection.execute("SELECT name FROM pragma_table_xinfo(?)", (table,))
        return frozenset(name for (name,) in rows)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any] | Refused]:
        """These columns of all rows; None where the table lacks one. Bytes are read as text.

        Of a file that is damaged further on, what comes before is given.
        """
        there = self.columns(table) if self._is_readable(table) else frozenset()
        known = [name for name in columns if name in there]
        if not known:
            return
        asked = ", ".join(
            f'typeof("{name}"), CASE typeof("{name}") WHEN \'text\' THEN CAST("{name}" AS BLOB) ELSE "{name}" END'
            for name in known
        )
        count = 0
        try:
            for row in self._connection.execute(f'SELECT {asked} FROM "{table}"'):  # noqa: S608  # names of this package
                count += 1
                values = (self._value(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True))
                yield dict.fromkeys(columns) | dict(zip(known, values, strict=True))
        except apsw.Error as problem:
            yield Refused(f"{table}, row {count + 1:,}", f"cannot be read, nor those after it ({problem})")

    def _is_readable(self, table: str) -> bool:
        try:
            return bool(self.columns(table))
        except (apsw.Error, UnicodeDecodeError):
            return False

    def _value(self, kind: str, value: Any) -> Any:
        if not isinstance(value, bytes):
            return value
        return value.decode(self._encoding if kind == "text" else "utf-8", "replace")

    def _one(self, sql: str, values: Sequence[str] = ()) -> Any:
        return next(iter(self._connection.execute(sql, values)), (None,))[0]


@contextmanager
def opened(path: Path) -> Iterator[SqliteFile]:
    """The file, read-only. Without a log that a program still writes, it is not even locked."""
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


def has_table(path: Path, head: bytes, table: str, *columns: str) -> bool:
    """Whether it is an SQLite file with a table that has these columns."""
    if not head.startswith(_START):
        return False
    try:
        with opened(path) as file:
            return file.columns(table) >= set(columns)
    except (apsw.Error, OSError, UnicodeDecodeError):
        return False
