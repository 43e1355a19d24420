"""Which memories of a damaged file cannot be read?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from nacre.errors import StoreCorrupt
from nacre.storage.sqlite import rows

_TOGETHER = 256  # memories that are read at a time, as long as all of them can be read


def listed_memories(db: apsw.Connection) -> list[str]:
    """The ids of all memories, from their index alone: it may be whole where their rows are not."""
    return [each for (each,) in db.execute("SELECT id FROM memories INDEXED BY sqlite_autoindex_memories_1")]


def damaged_memories(db: apsw.Connection) -> Iterator[str]:
    """The ids of memories whose rows cannot be read, or whose text is not the one that was written.

    The ids come from their index alone. If it is damaged, too, apsw's error is raised.
    """
    ids = listed_memories(db)
    for start in range(0, len(ids), _TOGETHER):
        together = ids[start : start + _TOGETHER]
        if not _readable(db, together):
            yield from (each for each in together if not _readable(db, [each]))


def _readable(db: apsw.Connection, ids: Sequence[str]) -> bool:
    sql = f"SELECT {rows.READ_COLUMNS} FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value"
    try:
        found = [rows.memory(row) for row in db.execute(sql, (rows.to_json(list(ids)),))]
    except (StoreCorrupt, apsw.IOError, apsw.CorruptError, ValueError, OverflowError):
        return False
    return len(found) == len(ids)
