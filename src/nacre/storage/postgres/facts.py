"""Facts and relations as rows. Every function runs inside a transaction that its caller holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from nacre.query.ast import Term
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.types.facts import Fact, FactQuery, NewEntity
from nacre.types.memory import Entry
from nacre.types.quotas import Quotas

# ---------------------------------------------------------------- verbs: they hold the spaces that they write to


def add(db: Db, new: Sequence[Fact], at: datetime, quotas: Quotas) -> None:
    """Add facts to live memories, within the quotas. Raises NotFound."""
    raise NotImplementedError


def drop(db: Db, ids: Sequence[str], at: datetime) -> None:
    """Delete facts, and entities that no memory is about any more. Raises NotFound."""
    raise NotImplementedError


def update_confidence(db: Db, changed: Sequence[Fact]) -> None:
    """Write the confidence of facts and when it was last reinforced. Bumps the revision."""
    raise NotImplementedError


def put_entity(db: Db, space: str, new: NewEntity, memory_ids: Sequence[str]) -> None:
    """Add an entity and link it with live memories. Raises NotFound. Bumps the revision."""
    raise NotImplementedError


def drop_entity(db: Db, space: str, name: str) -> bool:
    """Delete an entity. False where there is none. Bumps the revision if there was one."""
    raise NotImplementedError


# ---------------------------------------------------------------- parts of other writes: their spaces are held


def write_entries(db: Db, written: Sequence[tuple[int, Entry]]) -> None:
    """Write the facts and entities of memories that are new or have a new text, given with their rows."""


def rewrite_entry(db: Db, row: int, entry: Entry) -> None:
    """Replace what was extracted from the old text of a memory."""


def hidden(db: Db, keys: Sequence[Key]) -> None:
    """Memories were forgotten: their relations are not found any more, and what their facts superseded holds again."""


def restored(db: Db, keys: Sequence[Key]) -> None:
    """Memories are live again, with their relations and what their facts supersede."""


def purged(db: Db, keys: Sequence[Key]) -> None:
    """Delete the facts and links of memories, and entities that no memory is about any more. `links` are there yet."""
    raise NotImplementedError


# ---------------------------------------------------------------- reading


def listed(db: Db, query: FactQuery) -> list[Fact]:
    raise NotImplementedError


def by_ids(db: Db, ids: Sequence[str]) -> list[Fact]:
    raise NotImplementedError


def by_memory(db: Db, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    raise NotImplementedError


def by_keys(db: Db, keys: Iterable[Key]) -> Mapping[Key, tuple[Fact, ...]]:
    """By (space, row), the facts of memories in the order they were written."""
    raise NotImplementedError


def conflicting(db: Db, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
    raise NotImplementedError


def search_relations(
    db: Db, terms: Sequence[Term], spaces: Sequence[str], at: datetime, limit: int
) -> list[tuple[Fact, float]]:
    raise NotImplementedError


def relations_of(db: Db, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
    raise NotImplementedError
