"""The lenses of a store, as JSON. The caller holds a transaction."""

from __future__ import annotations

import apsw

from nacre.storage.sqlite import change_log
from nacre.storage.sqlite.rows import fetch


def put(db: apsw.Connection, space: str, name: str, body: str) -> None:
    db.execute("INSERT OR REPLACE INTO lenses VALUES (?, ?, ?)", (space, name, body))
    change_log.note(db, "lens", space, [name])


def drop(db: apsw.Connection, space: str, name: str) -> bool:
    db.execute("DELETE FROM lenses WHERE space = ? AND name = ?", (space, name))
    dropped = db.changes() > 0
    if dropped:
        change_log.note(db, "lens", space, [name], gone=True)
    return dropped


def listed(db: apsw.Connection, space: str) -> dict[str, str]:
    return dict(fetch(db, "SELECT name, body FROM lenses WHERE space = ? ORDER BY name", (space,)))
