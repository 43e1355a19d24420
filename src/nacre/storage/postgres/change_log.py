"""When did what leaves no event change last? Numbers of changes and events are of one sequence (counters.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nacre.storage.postgres.schema import Db
from nacre.types.changes import ChangePage


def note(db: Db, kind: str, space: str, names: Iterable[str], *, gone: bool = False) -> None:
    """A change of this moment."""


def page(db: Db, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
    """Events and changes of these spaces after a number; with None, only the number of the last one."""
    raise NotImplementedError
