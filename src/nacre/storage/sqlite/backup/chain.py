"""Which backups does one need, and which ones may go?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from nacre.errors import StoreCorrupt
from nacre.storage.sqlite.backup import files
from nacre.types.backups import Backup, Keep


def needed_by(backup: Backup, others: Sequence[Backup]) -> list[Backup]:
    """A backup with those it continues, the full one first. Raises StoreCorrupt where one of them is missing."""
    by_checksum = {each.checksum: each for each in others}
    chain = [backup]
    while (base := (last := chain[-1]).base) is not None:
        before = by_checksum.get(base)
        if before is None:
            raise StoreCorrupt(
                f"backup: {last.path} continues a backup that is not in its folder (checksum {base:.12}…); "
                "put that one there, or use a full backup"
            )
        if (before.store_id, before.page_bytes) != (last.store_id, last.page_bytes) or before.seq > last.seq:
            raise files.damaged(last.path, f"it cannot continue {before.path.name}")
        chain.append(before)
    return chain[::-1]


def verified(backup: Backup, others: Sequence[Backup]) -> list[Backup]:
    """The chain of a backup, after the checksum of every file in it was compared."""
    return [files.verified(each.path) for each in needed_by(backup, others)]


# What a backup of a day, a week or a month is known by.
_PERIODS: tuple[tuple[str, Callable[[datetime], tuple[int, ...]]], ...] = (
    ("days", lambda at: (at.year, at.month, at.day)),
    ("weeks", lambda at: at.isocalendar()[:2]),
    ("months", lambda at: (at.year, at.month)),
)


def superfluous(backups: Sequence[Backup], keep: Keep, zone: tzinfo | None) -> list[Backup]:
    """The backups that need not be kept, of these, the oldest first. The newest is kept, and what a kept one needs."""
    kept = {each.checksum for each in backups[-1:]}
    for field, period in _PERIODS:
        last_of = {period(each.created.astimezone(zone)): each.checksum for each in backups}  # the last one stays
        many: int = getattr(keep, field)
        kept.update(list(last_of.values())[len(last_of) - many :] if many < len(last_of) else last_of.values())
    base_of = {each.checksum: each.base for each in backups}
    for each in list(kept):
        base = base_of.get(each)
        while base is not None:
            kept.add(base)
            base = base_of.get(base)
    return [each for each in backups if each.checksum not in kept]
