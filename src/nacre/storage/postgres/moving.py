"""Moves a space from one node to another while others read and write it.

Its rows are copied in passes, each of which finds what has changed since the one before. For the last one, the space is
held on the source: writers wait. When both sides are equal, the source gives the space away, in the transaction that
holds it. That one row decides who answers: before its commit the source does, after it the target. Whoever finds that
the source has given the space away completes the rest, so it does not matter where a move is killed; the next one goes
on from what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nacre.errors import Conflict, StoreCorrupt
from nacre.storage.postgres import counters, moved_log, placements, rows, space_copy
from nacre.storage.postgres.connection import Connections, fetch, hold, hold_unchecked, run, value
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.space_copy import TABLES, Side

_PASSES_MAX = 8
_FEW = 1_000  # rows: if a pass has found no more, the rest is copied while writers wait
_BATCH = 5_000  # rows that are deleted at once
_TIMEOUT_MS = 3_600_000  # of one statement of a pass
_MODELS = ("model", "token_model")


def copy_over(source: Connections, target: Connections, space: str) -> tuple[int, int]:
    """Copy a space, and give it away to the target. Returns how many rows were copied, and compared at the end.

    Raises SpaceMoved if the source does not answer for it any more.
    """
    source_id, target_id = (str(each.read(rows.meta, "store_id")) for each in (source, target))
    target.write(_arrive, space, source_id)
    arriving = Side(target_id, lambda work: target.write(_while_arriving, space, source_id, work))
    copied = 0
    for _ in range(_PASSES_MAX):
        with source.snapshot(_TIMEOUT_MS) as db:
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            changed, _ = _sync(Side(source_id, partial(_on, db)), arriving, space)
            logged, _ = moved_log.sync(db, arriving, space)
        changed += logged
        copied += changed
        if changed <= _FEW:
            break
    changed, compared = source.write(_give_away, space, source_id, arriving)
    return copied + changed, compared


def clear(connections: Connections, space: str, owner: str) -> int:
    """Delete what a node has of a space that another one answers for. Returns how many rows there were."""
    cleared = 0
    while deleted := connections.write(_clear_some, space, owner):
        cleared += deleted
    return cleared


# ---------------------------------------------------------------- on the target


def _arrive(db: Db, space: str, source_id: str) -> None:
    hold_unchecked(db, [space])
    known = placements.placements(db, [space]).get(space)
    if known is not None and known.state == "here":
        raise StoreCorrupt(f"space: two nodes answer for {space!r}; nothing was moved; look into `nacre nodes status`")
    run(
        db,
        "INSERT INTO placements VALUES (%s, 'arriving', %s) "
        "ON CONFLICT (space) DO UPDATE SET state = 'arriving', other = excluded.other",
        (space, source_id),
    )


def _while_arriving(db: Db, space: str, source_id: str, work: Callable[[Db], Any]) -> Any:
    hold_unchecked(db, [space])
    known = placements.placements(db, [space]).get(space)
    if known is None or known.state != "arriving" or known.other != source_id:
        raise Conflict(f"space: {space!r} was moved by somebody else meanwhile; see `nacre nodes status`")
    return work(db)


def _advance(space: str, changes: int, last: dict[str, int], usage: list[tuple[Any, ...]], db: Db) -> None:
    """Count on from where the source is, so that what is written next comes after what was copied."""
    counters.advance(db, changes)
    for sequence, number in last.items():
        placements.advance_sequence(db, sequence, number)
    run(db, "DELETE FROM space_usage WHERE space = %s", (space,))
    for memories, size in usage:
        run(db, "INSERT INTO space_usage VALUES (%s, %s, %s)", (space, memories, size))
    counters.bump_revision(db)


# ---------------------------------------------------------------- on the source


def _give_away(db: Db, space: str, source_id: str, target: Side) -> tuple[int, int]:
    """The last pass, while nobody writes to the space."""
    hold(db, [space])
    here = Side(source_id, partial(_on, db))
    models = {name: rows.meta(db, name) for name in _MODELS}
    target.carry_out(partial(_adopt, models))
    changed, compared = _sync(here, target, space)
    if changed:
        again, compared = _sync(here, target, space)
        if again:
            raise StoreCorrupt(f"space: {again} rows of {space!r} differ after they were copied; nothing was moved")
    logged, receipts = moved_log.sync(db, target, space)  # receipts of other spaces may come to the target meanwhile
    target.carry_out(partial(_check_models, models))
    last = {each: int(value(db, f"SELECT last_value FROM {each}")) for each in placements.SEQUENCES}
    usage = fetch(db, "SELECT memories, bytes FROM space_usage WHERE space = %s", (space,))
    target.carry_out(partial(_advance, space, counters.last(db, "events"), last, usage))
    run(db, "UPDATE placements SET state = 'gone', other = %s WHERE space = %s", (target.store_id, space))
    counters.bump_revision(db)
    return changed + logged, compared + receipts


def _clear_some(db: Db, space: str, owner: str) -> int:
    hold_unchecked(db, [space])
    known = placements.placements(db, [space]).get(space)
    if known is None:
        return 0
    if known.state == "here":
        raise Conflict(f"space: {space!r} is on this node; nothing was deleted")
    if known.state == "arriving":  # from where it will not come
        run(db, "UPDATE placements SET state = 'gone', other = %s WHERE space = %s", (owner, space))
    for name in reversed(TABLES):  # what refers to others first
        table = space_copy.table_of(db, name)
        keys = ", ".join(("space", *table.key))
        sql = f"DELETE FROM {name} WHERE ({keys}) IN (SELECT {keys} FROM {name} WHERE space = %s LIMIT %s)"
        deleted = run(db, sql, (space, _BATCH))
        if deleted:
            return deleted
    deleted = moved_log.leave(db, space, _BATCH)
    if not deleted:
        run(db, "DELETE FROM space_usage WHERE space = %s", (space,))
    return deleted


# ---------------------------------------------------------------- both


def _sync(source: Side, target: Side, space: str) -> tuple[int, int]:
    """One pass over all tables. Returns how many rows were changed, and compared."""
    changed = compared = 0
    for name in TABLES:
        table = source.carry_out(partial(space_copy.table_of, name=name))
        synced = space_copy.sync(source, target, table, space)
        changed += synced.changed
        compared += synced.compared
    return changed, compared


def _adopt(models: dict[str, str | None], db: Db) -> None:
    for name, model in models.items():
        if model is not None:
            run(db, "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", (name, model))
    _check_models(models, db)


def _check_models(models: dict[str, str | None], db: Db) -> None:
    for name, model in models.items():
        if model is not None and rows.meta(db, name) != model:
            raise Conflict(
                "model: the nodes have vectors of different models; run `nacre reembed`, and then move again"
            )


def _on(db: Db, work: Callable[[Db], Any]) -> Any:
    return work(db)
