"""The lenses of a space, by name."""

from __future__ import annotations

from nacre.storage.postgres import change_log, counters
from nacre.storage.postgres.connection import fetch, hold, run
from nacre.storage.postgres.schema import Db


def put(db: Db, space: str, name: str, body: str) -> None:
    hold(db, [space])
    run(
        db,
        "INSERT INTO lenses VALUES (%s, %s, %s) ON CONFLICT (space, name) DO UPDATE SET body = excluded.body",
        (space, name, body),
    )
    change_log.note(db, "lens", space, [name])
    counters.bump_revision(db)


def drop(db: Db, space: str, name: str) -> bool:
    hold(db, [space])
    dropped = run(db, "DELETE FROM lenses WHERE space = %s AND name = %s", (space, name)) > 0
    if dropped:
        change_log.note(db, "lens", space, [name], gone=True)
    counters.bump_revision(db)
    return dropped


def listed(db: Db, space: str) -> dict[str, str]:
    return dict(fetch(db, "SELECT name, body FROM lenses WHERE space = %s ORDER BY name", (space,)))
