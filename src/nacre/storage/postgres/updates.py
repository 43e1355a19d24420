"""Which memory updates which, as rows. A link counts as long as both memories are live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.types.memory import Update
from nacre.types.search import Successor


def link(db: Db, new: Iterable[Update]) -> None:
    """Add links between memories of one space. Links to memories that do not exist are skipped."""


def link_later(db: Db, new: Sequence[Update]) -> None:
    """Add links between memories that were written before. Bumps the revision."""
    raise NotImplementedError


def unlink(db: Db, pairs: Sequence[Update]) -> int:
    """Delete links. Returns how many there were. Bumps the revision."""
    raise NotImplementedError


def of_memories(db: Db, memory_ids: Sequence[str]) -> list[Update]:
    """All links from or to these memories, between live ones."""
    raise NotImplementedError


def successors(db: Db, keys: Sequence[Key]) -> Mapping[Key, tuple[Successor, ...]]:
    """By (space, row), the live memories that update it, the latest first."""
    raise NotImplementedError
