"""Entities as rows: canonical names, aliases, and links to memories.

A memory is about an entity if a caller linked the two, or if a fact of the memory names the entity. Links are stored
here; facts are looked up by the folded names that they store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from nacre.analysis.names import fold
from nacre.storage.sqlite import change_log
from nacre.storage.sqlite.filters import placeholders
from nacre.storage.sqlite.rows import fetch, to_json
from nacre.types.facts import Entity, NewEntity
from nacre.types.transfer import EntityRecord

TABLES = """
CREATE TABLE entities (
  entity INTEGER PRIMARY KEY AUTOINCREMENT,
  space  TEXT NOT NULL,
  name   TEXT NOT NULL,
  type   TEXT,
  kept   INTEGER NOT NULL                 -- 0: it goes with the last memory that is about it
) STRICT;
CREATE TABLE entity_names (
  space  TEXT NOT NULL,
  key    TEXT NOT NULL,                   -- the folded name
  name   TEXT NOT NULL,
  entity INTEGER NOT NULL REFERENCES entities (entity) ON DELETE CASCADE,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_names_by_entity ON entity_names (entity);
CREATE TABLE links (
  entity INTEGER NOT NULL REFERENCES entities (entity) ON DELETE CASCADE,
  row    INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  PRIMARY KEY (entity, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_row ON links (row);
"""


# A fact names an entity as its subject or, if it is a relation, as its object.
NAMED = "n.space = f.space AND (n.key = f.subject_key OR (f.relation = 1 AND n.key = f.object_key))"


def put(db: apsw.Connection, space: str, new: NewEntity, *, kept: bool = False) -> int:
    """Add an entity, or add a type and aliases to the one that has this name. Entities that share a name are merged.

    `kept`: the entity stays even if no memory is about it.
    """
    found = _numbers(db, space, [new.name, *new.aliases])
    entity = found.get(fold(new.name))
    if entity is None and found:
        entity = min(found.values())
    if entity is None:
        entity = int(
            db.execute(
                "INSERT INTO entities (space, name, type, kept) VALUES (?, ?, ?, 0) RETURNING entity",
                (space, new.name, new.type),
            ).get
        )
    elif fold(new.name) not in found:  # found by an alias: the new name becomes the canonical one
        db.execute("UPDATE entities SET name = ? WHERE entity = ?", (new.name, entity))
    if new.type is not None:
        db.execute("UPDATE entities SET type = ? WHERE entity = ?", (new.type, entity))
    if kept:
        db.execute("UPDATE entities SET kept = 1 WHERE entity = ?", (entity,))
    _merge(db, entity, found.values())
    db.executemany(
        "INSERT OR IGNORE INTO entity_names VALUES (?, ?, ?, ?)",
        ((space, fold(name), name, entity) for name in (new.name, *new.aliases)),
    )
    change_log.revive(db, "entity", space, [fold(name) for name in (new.name, *new.aliases)])
    return entity


def union(
    db: apsw.Connection, space: str, names: Mapping[str, str], known: Sequence[int], best: EntityRecord, *, kept: bool
) -> int:
    """Make known entities one that has these names, too, by folded name. `best` gives its name and type."""
    if known:
        entity = min(known)
        _merge(db, entity, known)
    else:
        sql = "INSERT INTO entities (space, name, type, kept) VALUES (?, ?, ?, 0) RETURNING entity"
        entity = int(db.execute(sql, (space, best.name, best.type)).get)
    db.execute(
        "UPDATE entities SET name = ?, type = ?, kept = max(kept, ?) WHERE entity = ?",
        (best.name, best.type, int(kept), entity),
    )
    db.executemany(
        "INSERT INTO entity_names VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET name = max(name, excluded.name)",
        ((space, key, name, entity) for key, name in names.items()),
    )
    db.execute("UPDATE entity_names SET name = ? WHERE space = ? AND key = ?", (best.name, space, fold(best.name)))
    return entity


def _merge(db: apsw.Connection, entity: int, others: Iterable[int]) -> None:
    """Move the names and links of other entities to one."""
    for other in sorted({each for each in others if each != entity}):
        db.execute(
            "UPDATE entities SET kept = max(kept, (SELECT kept FROM entities WHERE entity = ?)) WHERE entity = ?",
            (other, entity),
        )
        db.execute("UPDATE entity_names SET entity = ? WHERE entity = ?", (entity, other))
        db.execute("INSERT OR IGNORE INTO links SELECT ?, row FROM links WHERE entity = ?", (entity, other))
        db.execute("DELETE FROM entities WHERE entity = ?", (other,))


def having(db: apsw.Connection, space: str, keys: Sequence[str]) -> list[tuple[int, str, str, str | None, int]]:
    """Entities that have one of these folded names: number, space, name, type, and whether it is kept."""
    sql = (
        "SELECT e.entity, e.space, e.name, e.type, e.kept FROM entities AS e WHERE e.entity IN (SELECT n.entity "
        "FROM entity_names AS n WHERE n.space = ? AND n.key IN (SELECT value FROM json_each(?))) ORDER BY e.entity"
    )
    found = fetch(db, sql, (space, to_json(list(keys))))
    return [(number, stored_space, name, kind, kept) for number, stored_space, name, kind, kept in found]


def are_named(db: apsw.Connection, space: str, keys: Sequence[str]) -> bool:
    """Whether a fact has one of these folded names as its subject or, in a relation, as its object."""
    given = "IN (SELECT value FROM json_each(?2))"
    sql = (
        f"SELECT EXISTS (SELECT 1 FROM facts WHERE space = ?1 AND subject_key {given}) OR "
        f"EXISTS (SELECT 1 FROM facts WHERE space = ?1 AND relation = 1 AND object_key {given})"
    )
    return bool(db.execute(sql, (space, to_json(list(keys)))).get)


def keys_of(db: apsw.Connection, entity: int) -> list[str]:
    """The folded names of an entity."""
    return [key for (key,) in fetch(db, "SELECT key FROM entity_names WHERE entity = ? ORDER BY key", (entity,))]


def _numbers(db: apsw.Connection, space: str, names: Sequence[str]) -> dict[str, int]:
    sql = "SELECT key, entity FROM entity_names WHERE space = ? AND key IN (SELECT value FROM json_each(?))"
    return dict(fetch(db, sql, (space, to_json([fold(name) for name in names]))))


def put_all(db: apsw.Connection, several: Iterable[tuple[str, NewEntity, int | None]]) -> set[int]:
    """Add entities, given with their space, and link each with the memory in `row`, if any.

    Returns the entities that got aliases: these may have been merged with others.
    """
    known: dict[tuple[str, str], int] = {}
    changed: set[int] = set()
    for space, new, row in several:
        place = space, fold(new.name)
        if new.aliases:
            known.clear()  # a merge deletes numbers
        if place not in known or new.type is not None:
            known[place] = put(db, space, new)
        if new.aliases:
            changed.add(known[place])
        if row is not None:
            link(db, known[place], [row])
    return changed


def link(db: apsw.Connection, entity: int, memory_rows: Iterable[int]) -> None:
    db.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", ((entity, row) for row in memory_rows))


def of_rows(db: apsw.Connection, memory_rows: Sequence[int]) -> list[int]:
    """The entities that these memories are about, by a link or by a fact."""
    sql = (
        "SELECT entity FROM links WHERE row IN (SELECT value FROM json_each(?1)) UNION "
        f"SELECT n.entity FROM facts AS f JOIN entity_names AS n ON {NAMED} "
        "WHERE f.row IN (SELECT value FROM json_each(?1))"
    )
    return [entity for (entity,) in fetch(db, sql, (to_json(list(memory_rows)),))]


def drop_unlinked(db: apsw.Connection, numbers: Sequence[int]) -> None:
    """Delete those of these entities that no memory is about any more, unless a caller added them by themselves."""
    db.execute(
        "DELETE FROM entities WHERE kept = 0 AND entity IN (SELECT value FROM json_each(?)) "
        "AND NOT EXISTS (SELECT 1 FROM links WHERE links.entity = entities.entity) AND NOT EXISTS ("
        f"SELECT 1 FROM entity_names AS n JOIN facts AS f ON {NAMED} WHERE n.entity = entities.entity)",
        (to_json(list(numbers)),),
    )


def number_of(db: apsw.Connection, space: str, name: str) -> int | None:
    return _numbers(db, space, [name]).get(fold(name))


def listed(db: apsw.Connection, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
    """Entities that have one of these names, or all, ordered by space and name."""
    clause = f"e.space IN ({placeholders(spaces)})"
    parameters: tuple[str | int, ...] = tuple(spaces)
    if names is not None:
        known = "SELECT entity FROM entity_names WHERE space = e.space AND key IN (SELECT value FROM json_each(?))"
        clause += f" AND e.entity IN ({known})"
        parameters += (to_json([fold(name) for name in names]),)
    order = "ORDER BY e.space, e.name, e.entity LIMIT ?"
    sql = f"SELECT e.entity, e.space, e.name, e.type FROM entities AS e WHERE {clause} {order}"
    return list(_entities(db, fetch(db, sql, (*parameters, limit))).values())


def counted(db: apsw.Connection, spaces: Sequence[str]) -> dict[str, int]:
    """By name, how many live memories are about an entity, the most frequent first."""
    within = f"IN ({placeholders(spaces)})"
    sql = (
        "WITH about (entity, row) AS ("
        f"SELECT l.entity, l.row FROM links AS l JOIN entities AS e USING (entity) WHERE e.space {within} "
        "UNION SELECT n.entity, f.row FROM facts AS f "
        f"JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key WHERE f.space {within} "
        "UNION SELECT n.entity, f.row FROM facts AS f "
        "JOIN entity_names AS n ON n.space = f.space AND n.key = f.object_key "
        f"WHERE f.relation = 1 AND f.space {within}) "
        "SELECT e.name, count(m.row) FROM entities AS e LEFT JOIN about AS a USING (entity) "
        f"LEFT JOIN memories AS m ON m.row = a.row AND m.deleted_us IS NULL WHERE e.space {within} "
        "GROUP BY e.name ORDER BY 2 DESC, e.name"
    )
    return dict(fetch(db, sql, tuple(spaces) * 4))


def by_memory(db: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
    """By id of a memory, the entities that it is about, ordered by name."""
    links = fetch(
        db,
        "WITH asked AS (SELECT row, id FROM memories WHERE id IN (SELECT value FROM json_each(?))) "
        "SELECT a.id, l.entity FROM asked AS a JOIN links AS l ON l.row = a.row "
        "UNION SELECT a.id, n.entity FROM asked AS a JOIN facts AS f ON f.row = a.row "
        "JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key "
        "UNION SELECT a.id, n.entity FROM asked AS a JOIN facts AS f ON f.row = a.row AND f.relation = 1 "
        "JOIN entity_names AS n ON n.space = f.space AND n.key = f.object_key",
        (to_json(list(memory_ids)),),
    )
    sql = (
        "SELECT e.entity, e.space, e.name, e.type FROM entities AS e "
        "WHERE e.entity IN (SELECT value FROM json_each(?)) ORDER BY e.name, e.entity"
    )
    known = _entities(db, fetch(db, sql, (to_json(list({entity for _, entity in links})),)))
    place = {entity: at for at, entity in enumerate(known)}
    found: defaultdict[str, list[Entity]] = defaultdict(list)
    for memory_id, entity in sorted(links, key=lambda each: place[each[1]]):
        found[memory_id].append(known[entity])
    return {memory_id: tuple(several) for memory_id, several in found.items()}


def _entities(db: apsw.Connection, found: Sequence[tuple[Any, ...]]) -> dict[int, Entity]:
    """By number, entities from rows of (number, space, name, type), with their aliases."""
    aliases: defaultdict[int, list[str]] = defaultdict(list)
    of_these = (
        "SELECT entity, name, key FROM entity_names WHERE entity IN (SELECT value FROM json_each(?)) ORDER BY key"
    )
    canonical = {entity: fold(name) for entity, _, name, _ in found}
    for entity, name, key in fetch(db, of_these, (to_json([each[0] for each in found]),)):
        if key != canonical[entity]:
            aliases[entity].append(name)
    return {
        entity: Entity(name=name, space=space, type=type_, aliases=tuple(aliases[entity]))
        for entity, space, name, type_ in found
    }
