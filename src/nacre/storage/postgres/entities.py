"""Entities as rows: canonical names, aliases, and links to memories.

A memory is about an entity if a caller linked the two, or if a fact of the memory names the entity. Links are stored
here; facts are looked up by the folded names that they store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from nacre.analysis.names import fold
from nacre.storage.postgres import change_log
from nacre.storage.postgres.connection import fetch, run, value
from nacre.storage.postgres.rows import Key, columns_of
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import numbers
from nacre.types.facts import Entity, NewEntity
from nacre.types.transfer import EntityRecord

Number: TypeAlias = tuple[str, int]  # the space and the number of an entity

_GIVEN = "unnest(%s::text[], %s::bigint[]) AS given"

# By name: a fact names an entity as its subject or, if it is a relation, as its object.
_NAMED = """
SELECT n.space, n.entity, f.row FROM {facts} AS f JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key
WHERE {condition}
UNION SELECT n.space, n.entity, f.row FROM {facts} AS f
JOIN entity_names AS n ON n.space = f.space AND n.key = f.object_key WHERE f.relation AND {condition}
"""
_KNOWN = """
SELECT n.space, n.key, e.entity, e.name, e.type, e.kept FROM unnest(%s::text[], %s::text[]) AS given (space, key)
JOIN entity_names AS n ON n.space = given.space AND n.key = given.key
JOIN entities AS e ON e.space = n.space AND e.entity = n.entity
"""
_MOVE = """
WITH merged AS (SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS given (space, entity, becomes)),
renamed AS (
  UPDATE entity_names AS n SET entity = m.becomes FROM merged AS m WHERE n.space = m.space AND n.entity = m.entity
)
INSERT INTO links SELECT l.space, m.becomes, l.row FROM merged AS m
JOIN links AS l ON l.space = m.space AND l.entity = m.entity ON CONFLICT (space, entity, row) DO NOTHING
"""
_OF_KEYS = f"""
WITH asked AS MATERIALIZED (SELECT DISTINCT space, row FROM {_GIVEN} (space, row)),
named AS MATERIALIZED (SELECT f.* FROM asked AS a JOIN facts AS f ON f.space = a.space AND f.row = a.row)
SELECT l.space, l.entity, l.row FROM asked AS a JOIN links AS l ON l.space = a.space AND l.row = a.row
UNION {_NAMED.format(facts="named", condition="true")}
"""
# Nothing is about these: no link, and no fact by any of their names.
_DROP_UNLINKED = f"""
DELETE FROM entities AS e USING {_GIVEN} (space, entity)
WHERE e.space = given.space AND e.entity = given.entity AND NOT e.kept
AND NOT EXISTS (SELECT 1 FROM links AS l WHERE l.space = e.space AND l.entity = e.entity)
AND NOT EXISTS (
  SELECT 1 FROM entity_names AS n JOIN facts AS f ON f.space = n.space AND f.subject_key = n.key
  WHERE n.space = e.space AND n.entity = e.entity
)
AND NOT EXISTS (
  SELECT 1 FROM entity_names AS n JOIN facts AS f ON f.relation AND f.object_key = n.key AND f.space = n.space
  WHERE n.space = e.space AND n.entity = e.entity
)
"""
_COUNTED = f"""
WITH about AS (
  SELECT l.space, l.entity, l.row FROM links AS l WHERE l.space = ANY(%(spaces)s)
  UNION {_NAMED.format(facts="facts", condition="f.space = ANY(%(spaces)s)")}
)
SELECT e.name, count(m.row) FROM entities AS e
LEFT JOIN about AS a ON a.space = e.space AND a.entity = e.entity
LEFT JOIN memories AS m ON m.space = a.space AND m.row = a.row AND m.deleted_us IS NULL
WHERE e.space = ANY(%(spaces)s) GROUP BY e.name ORDER BY 2 DESC, e.name
"""


# ---------------------------------------------------------------- writing


class Put(NamedTuple):
    """An entity to add, and the rows of memories to link with it. `kept`: it stays even if no memory is about it."""

    space: str
    new: NewEntity
    rows: Sequence[int] = ()
    kept: bool = False


@dataclass(slots=True, eq=False)
class _Draft:
    """An entity as it will be. Those that are not stored yet have numbers after all others."""

    space: str
    number: int
    name: str
    type: str | None = None
    kept: bool = False
    stored: bool = False
    changed: bool = False
    becomes: _Draft | None = None  # the one that it is merged with

    @property
    def final(self) -> _Draft:
        return self if self.becomes is None else self.becomes.final

    @property
    def key(self) -> Number:
        return self.space, self.number


_NEW = 1 << 62  # from here on, numbers of entities that are not stored yet


def put_all(db: Db, several: Sequence[Put]) -> set[Number]:
    """Add entities one after another, or add a type and aliases to those that have their names.

    Entities that share a name are merged. Returns those that got aliases: these may have been merged with others.
    """
    if not several:
        return set()
    drafts = _Drafts(db, several)
    put = [drafts.put(each) for each in several]
    drafts.write(db)
    revived: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for each in several:
        revived[each.space].update(dict.fromkeys(map(fold, (each.new.name, *each.new.aliases))))
    for space, keys in revived.items():
        change_log.revive(db, "entity", space, list(keys))
    return {draft.final.key for each, draft in zip(several, put, strict=True) if each.new.aliases}


class _Drafts:
    """Entities as a write changes them, before they are written: all at once, however many they are."""

    def __init__(self, db: Db, several: Sequence[Put]) -> None:
        named = {(each.space, fold(name)) for each in several for name in (each.new.name, *each.new.aliases)}
        self._having: dict[tuple[str, str], _Draft] = {}  # by folded name
        self._keys: defaultdict[Number, list[tuple[str, str]]] = defaultdict(list)  # of each, those that are named
        self._every: list[_Draft] = []
        self._names: list[tuple[str, str, str, _Draft]] = []  # new ones
        self._links: list[tuple[_Draft, int]] = []
        stored: dict[Number, _Draft] = {}
        for space, key, number, name, kind, kept in fetch(db, _KNOWN, _two_columns(named)):
            draft = stored.setdefault((space, number), _Draft(space, number, name, kind, kept, stored=True))
            self._having[space, key] = draft
            self._keys[draft.key].append((space, key))
        self._every += stored.values()

    def put(self, given: Put) -> _Draft:
        space, new = given.space, given.new
        names: dict[tuple[str, str], str] = {}
        for name in (new.name, *new.aliases):
            names.setdefault((space, fold(name)), name)
        found = {draft.number: draft for key in names if (draft := self._having.get(key)) is not None}
        entity = self._having.get(next(iter(names)))
        if entity is None and found:  # found by an alias: the new name becomes the canonical one
            entity = found[min(found)]
            entity.name, entity.changed = new.name, True
        if entity is None:
            entity = _Draft(space, _NEW + len(self._every), new.name)
            self._every.append(entity)
        if new.type not in (None, entity.type):
            entity.type, entity.changed = new.type, True
        if given.kept and not entity.kept:
            entity.kept = entity.changed = True
        for other in found.values():
            if other is not entity:
                self._merge(other, entity)
        for key, name in names.items():
            if key not in self._having:
                self._having[key] = entity
                self._keys[entity.key].append(key)
                self._names.append((*key, name, entity))
        self._links += [(entity, row) for row in given.rows]
        return entity

    def _merge(self, other: _Draft, entity: _Draft) -> None:
        other.becomes = entity
        if other.kept and not entity.kept:
            entity.kept = entity.changed = True
        moved = self._keys.pop(other.key, [])
        self._keys[entity.key] += moved
        for key in moved:
            self._having[key] = entity

    def write(self, db: Db) -> None:
        fresh = [each for each in self._every if not each.stored and each.becomes is None]
        for draft, number in zip(fresh, numbers(db, "entity_numbers", len(fresh)), strict=True):
            draft.number = number
        changed = [each for each in self._every if each.stored and each.changed and each.becomes is None]
        _write_many(db, "INSERT INTO entities SELECT given.* FROM", fresh)
        _write_many(
            db,
            "UPDATE entities AS e SET name = given.name, type = given.type, kept = given.kept FROM",
            changed,
            "WHERE e.space = given.space AND e.entity = given.entity",
        )
        merged = [each for each in self._every if each.stored and each.becomes is not None]
        _move(db, [(each.space, each.number, each.final.number) for each in merged])
        if self._names:
            spaces, keys, names, owners = map(list, zip(*self._names, strict=True))
            run(
                db,
                "INSERT INTO entity_names SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[])",
                (spaces, keys, names, [each.final.number for each in owners]),
            )
        link(db, ((each.final.key, row) for each, row in self._links))


def _write_many(db: Db, verb: str, drafts: Sequence[_Draft], condition: str = "") -> None:
    if drafts:
        run(
            db,
            f"{verb} unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::boolean[]) "
            f"AS given (space, entity, name, type, kept) {condition}",
            (
                [each.space for each in drafts],
                [each.number for each in drafts],
                [each.name for each in drafts],
                [each.type for each in drafts],
                [each.kept for each in drafts],
            ),
        )


def _move(db: Db, merged: Sequence[tuple[str, int, int]]) -> None:
    """Move the names and links of entities to others, and delete them. Given are space, number and the other number."""
    if merged:
        spaces, old, new = map(list, zip(*merged, strict=True))
        run(db, _MOVE, (spaces, old, new))
        delete(db, zip(spaces, old, strict=True))


def union(
    db: Db, space: str, names: Mapping[str, str], known: Sequence[int], best: EntityRecord, *, kept: bool
) -> Number:
    """Make known entities one that has these names, too, by folded name. `best` gives its name and type."""
    if known:
        entity = min(known)
        any_kept = "kept OR (SELECT bool_or(kept) FROM entities WHERE space = %s AND entity = ANY(%s))"
        run(
            db,
            f"UPDATE entities SET name = %s, type = %s, kept = %s OR {any_kept} WHERE space = %s AND entity = %s",
            (best.name, best.type, kept, space, list(known), space, entity),
        )
        _move(db, [(space, other, entity) for other in known if other != entity])
    else:
        (entity,) = numbers(db, "entity_numbers", 1)
        run(db, "INSERT INTO entities VALUES (%s, %s, %s, %s, %s)", (space, entity, best.name, best.type, kept))
    run(
        db,
        "INSERT INTO entity_names AS n SELECT %s, given.*, %s FROM unnest(%s::text[], %s::text[]) AS given (key, name) "
        "ON CONFLICT (space, key) DO UPDATE SET name = greatest(n.name, excluded.name)",
        (space, entity, list(names), list(names.values())),
    )
    renamed = "UPDATE entity_names SET name = %s WHERE space = %s AND key = %s"
    run(db, renamed, (best.name, space, fold(best.name)))
    return space, entity


def link(db: Db, linked: Iterable[tuple[Number, int]]) -> None:
    """Link entities with memories of their spaces, given by their rows."""
    listed = [(space, entity, row) for (space, entity), row in linked]
    if listed:
        run(
            db,
            "INSERT INTO links SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) "
            "ON CONFLICT (space, entity, row) DO NOTHING",
            [list(column) for column in zip(*listed, strict=True)],
        )


def delete(db: Db, entities: Iterable[Number]) -> None:
    """Delete entities with their names and links."""
    run(
        db,
        f"DELETE FROM entities AS e USING {_GIVEN} (space, entity) "
        "WHERE e.space = given.space AND e.entity = given.entity",
        columns_of(entities),
    )


def drop_unlinked(db: Db, entities: Iterable[Number]) -> None:
    """Delete those of these entities that no memory is about any more, unless a caller added them by themselves."""
    given = columns_of(entities)
    if given[0]:
        run(db, _DROP_UNLINKED, given)


# ---------------------------------------------------------------- reading


def of_keys(db: Db, keys: Iterable[Key]) -> set[Number]:
    """The entities that these memories are about, by a link or by a fact."""
    return {(space, entity) for space, entity, _ in fetch(db, _OF_KEYS, columns_of(keys))}


def number_of(db: Db, space: str, name: str) -> int | None:
    found: int | None = value(db, "SELECT entity FROM entity_names WHERE space = %s AND key = %s", (space, fold(name)))
    return found


def keys_of(db: Db, space: str, entity: int) -> list[str]:
    """The folded names of an entity."""
    sql = "SELECT key FROM entity_names WHERE space = %s AND entity = %s ORDER BY key"
    return [key for (key,) in fetch(db, sql, (space, entity))]


def having(db: Db, space: str, keys: Sequence[str]) -> list[tuple[int, str, str, str | None, bool]]:
    """Entities that have one of these folded names: number, space, name, type, and whether it is kept."""
    sql = (
        "SELECT e.entity, e.space, e.name, e.type, e.kept FROM entities AS e WHERE e.space = %s AND e.entity IN "
        "(SELECT n.entity FROM entity_names AS n WHERE n.space = %s AND n.key = ANY(%s)) ORDER BY e.entity"
    )
    found = fetch(db, sql, (space, space, list(keys)))
    return [(number, stored_space, name, kind, kept) for number, stored_space, name, kind, kept in found]


def are_named(db: Db, space: str, keys: Sequence[str]) -> bool:
    """Whether a fact has one of these folded names as its subject or, in a relation, as its object."""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM facts WHERE space = %s AND subject_key = ANY(%s)) OR "
        "EXISTS (SELECT 1 FROM facts WHERE space = %s AND relation AND object_key = ANY(%s))"
    )
    return bool(value(db, sql, (space, list(keys), space, list(keys))))


def listed(db: Db, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
    """Entities that have one of these names, or all, ordered by space and name."""
    condition, parameters = "e.space = ANY(%s)", [list(spaces)]
    if names is not None:
        condition += " AND (e.space, e.entity) IN (SELECT space, entity FROM entity_names WHERE key = ANY(%s) AND "
        condition += "space = ANY(%s))"
        parameters += [[fold(name) for name in names], list(spaces)]
    sql = (
        f"SELECT e.space, e.entity, e.name, e.type FROM entities AS e WHERE {condition} "
        "ORDER BY e.space, e.name, e.entity LIMIT %s"
    )
    return list(_entities(db, fetch(db, sql, (*parameters, limit))).values())


def counted(db: Db, spaces: Sequence[str]) -> dict[str, int]:
    """By name, how many live memories are about an entity, the most frequent first."""
    return dict(db.execute(_COUNTED, {"spaces": list(spaces)}, binary=True).fetchall())


def by_memory(db: Db, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
    """By id of a memory, the entities that it is about, ordered by name."""
    asked = fetch(db, "SELECT space, row, id FROM memories WHERE id = ANY(%s)", (list(memory_ids),))
    id_of = {(space, row): memory_id for space, row, memory_id in asked}
    about = fetch(db, _OF_KEYS, columns_of(id_of))
    sql = (
        f"SELECT e.space, e.entity, e.name, e.type FROM {_GIVEN} (space, entity) "
        "JOIN entities AS e ON e.space = given.space AND e.entity = given.entity ORDER BY e.name, e.entity"
    )
    known = _entities(db, fetch(db, sql, columns_of({(space, entity) for space, entity, _ in about})))
    memories_of: defaultdict[Number, list[Key]] = defaultdict(list)
    for space, entity, row in about:
        memories_of[space, entity].append((space, row))
    found: dict[str, list[Entity]] = {}
    for number, entity in known.items():
        for key in memories_of[number]:
            found.setdefault(id_of[key], []).append(entity)
    return {memory_id: tuple(found[memory_id]) for memory_id in memory_ids if memory_id in found}


def _entities(db: Db, found: Sequence[tuple[Any, ...]]) -> dict[Number, Entity]:
    """Entities from rows of (space, number, name, type), with their aliases."""
    aliases: defaultdict[Number, list[str]] = defaultdict(list)
    canonical = {(space, entity): fold(name) for space, entity, name, _ in found}
    sql = (
        f"SELECT n.space, n.entity, n.name, n.key FROM {_GIVEN} (space, entity) "
        "JOIN entity_names AS n ON n.space = given.space AND n.entity = given.entity ORDER BY n.key"
    )
    for space, entity, name, key in fetch(db, sql, columns_of(canonical)):
        if key != canonical[space, entity]:
            aliases[space, entity].append(name)
    return {
        (space, entity): Entity(name=name, space=space, type=kind, aliases=tuple(aliases[space, entity]))
        for space, entity, name, kind in found
    }


def _two_columns(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    listed = sorted(pairs)
    return [one for one, _ in listed], [other for _, other in listed]
