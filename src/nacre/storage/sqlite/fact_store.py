"""The methods of the store for what memories say: facts, entities, relations, near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw

from nacre.analysis.names import fold
from nacre.errors import NotFound
from nacre.facts.statements import entities_named
from nacre.query.ast import Term
from nacre.storage.sqlite import entities, facts, near_duplicates, rows
from nacre.storage.sqlite.connection import Connections
from nacre.storage.sqlite.filters import Clause
from nacre.storage.sqlite.writes import bump, log_events
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.memory import Entry, Tokens


class KnowledgeTables:
    """Implements `nacre.interfaces.FactStore`."""

    _connections: Connections

    def add_facts(self, new: Sequence[Fact], at: datetime) -> None:
        with self._connections.writing() as db:
            row_of = _live_rows(db, [each.memory_id for each in new])
            groups = facts.write(db, [(row_of[each.memory_id], each) for each in new])
            entities.put_all(db, _named(new))
            facts.settle(db, groups)
            touched = dict.fromkeys((row_of[each.memory_id], each.space, each.memory_id, None) for each in new)
            log_events(db, "facts added", touched, at)

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        with self._connections.writing() as db:
            found = {each.id: each for each in facts.by_ids(db, ids)}
            missing = tuple(each for each in ids if each not in found)
            if missing:
                raise NotFound(missing, "see `nacre fact list`", what="fact")
            memory_ids = dict.fromkeys(each.memory_id for each in found.values())
            sql = "SELECT row, space, id, NULL FROM memories WHERE id IN (SELECT value FROM json_each(?))"
            touched = rows.fetch(db, sql, (rows.to_json(list(memory_ids)),))
            known = entities.about(db, [row for row, *_ in touched])
            clause = Clause("f.id IN (SELECT value FROM json_each(?))", (rows.to_json(list(ids)),))
            facts.settle(db, facts.remove(db, clause))
            entities.drop_unlinked(db, known)
            log_events(db, "facts dropped", touched, at)

    def update_confidence(self, changed: Sequence[Fact]) -> None:
        with self._connections.writing() as db:
            facts.settle(db, facts.update(db, changed))
            bump(db)

    def facts(self, query: FactQuery) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.listed(db, query)

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.by_ids(db, ids)

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        with self._connections.reading() as db:
            return facts.by_memory(db, memory_ids)

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        with self._connections.reading() as db:
            return facts.conflicting(db, spaces, at)

    def relations(
        self, terms: Sequence[Term], spaces: Sequence[str], at: datetime, limit: int
    ) -> list[tuple[Fact, float]]:
        with self._connections.reading() as db:
            return facts.relations(db, terms, spaces, at, limit)

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.relations_of(db, spaces, [fold(name) for name in names], at, limit)

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        with self._connections.writing() as db:
            row_of = _live_rows(db, memory_ids, space)
            number = entities.put(db, space, entity, kept=True)
            entities.link(db, number, row_of.values())
            facts.settle(db, _groups_of_entity(db, number))
            bump(db)

    def drop_entity(self, space: str, name: str) -> bool:
        with self._connections.writing() as db:
            number = entities.number_of(db, space, name)
            if number is None:
                return False
            groups = _groups_of_entity(db, number)
            db.execute("DELETE FROM entities WHERE entity = ?", (number,))
            facts.settle(db, groups)
            bump(db)
            return True

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        with self._connections.reading() as db:
            return entities.listed(db, spaces, names, limit)

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        with self._connections.reading() as db:
            return entities.of(db, memory_ids)

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._connections.reading() as db:
            return near_duplicates.of(db, memory_ids)

    def separate(self, memory_id: str) -> int:
        with self._connections.writing() as db:
            bump(db)
            return near_duplicates.separate(db, _live_rows(db, [memory_id])[memory_id])


def write_entries(db: apsw.Connection, written: Sequence[tuple[int, Entry]], *, anew: bool = False) -> None:
    """What new memories, or ones written anew, say: their facts, their entities, and what they nearly repeat."""
    groups = facts.write(db, [(row, fact) for row, entry in written for fact in entry.facts])
    named: list[tuple[str, NewEntity, int | None]] = []
    for row, entry in written:
        if entry.facts:
            named += _named(entry.facts)
        if entry.entities:
            named += [(entry.memory.space, each, row) for each in entry.entities]
    for number in entities.put_all(db, named):
        groups |= _groups_of_entity(db, number)
    facts.settle(db, groups)
    near_duplicates.link(db, written, later=anew)


def rewrite_entry(db: apsw.Connection, row: int, entry: Entry, before: Tokens) -> None:
    """A text was changed: what was read from the old one goes. `before` are its tokens."""
    known = entities.about(db, [row])
    groups = facts.remove(db, Clause("f.row = ? AND f.origin = 'extracted'", (row,)))
    near_duplicates.unlink(db, row)
    near_duplicates.unsketch(db, [(row, entry.memory.space, before)])
    write_entries(db, [(row, entry)], anew=True)
    entities.drop_unlinked(db, known)
    facts.settle(db, groups)


def _named(stated: Sequence[Fact]) -> list[tuple[str, NewEntity, int | None]]:
    """The entities that facts make known. They need no link: the facts name them."""
    return [(each.space, NewEntity(name=name), None) for each in stated for name in entities_named(each)]


def _live_rows(db: apsw.Connection, memory_ids: Sequence[str], space: str | None = None) -> dict[str, int]:
    sql = "SELECT id, row, space FROM memories WHERE deleted_us IS NULL AND id IN (SELECT value FROM json_each(?))"
    found = {
        memory_id: row
        for memory_id, row, held in rows.fetch(db, sql, (rows.to_json(list(memory_ids)),))
        if space in (None, held)
    }
    missing = tuple(dict.fromkeys(each for each in memory_ids if each not in found))
    if missing:
        raise NotFound(missing)
    return found


def _groups_of_entity(db: apsw.Connection, entity: int) -> set[facts.Group]:
    sql = (
        "SELECT DISTINCT f.space, f.subject_key, f.predicate_key FROM entity_names AS n "
        "JOIN facts AS f ON f.space = n.space AND f.subject_key = n.key WHERE n.entity = ?"
    )
    return {(space, subject, predicate) for space, subject, predicate in rows.fetch(db, sql, (entity,))}
