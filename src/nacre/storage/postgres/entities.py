"""Entities as rows: canonical names, aliases, and links to memories."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.storage.postgres.schema import Db
from nacre.types.facts import Entity


def listed(db: Db, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
    """Entities that have one of these names, or all, ordered by space and name."""
    raise NotImplementedError


def counted(db: Db, spaces: Sequence[str]) -> dict[str, int]:
    """By name, how many live memories are about an entity, the most frequent first."""
    raise NotImplementedError


def by_memory(db: Db, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
    """By id of a memory, the entities that it is about, ordered by name."""
    raise NotImplementedError
