"""Takes in what another store has beside its memories: facts, entities, updates, near-duplicates, lenses, and what was
dropped. The caller holds a write transaction, and the memories are there already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from nacre.analysis.names import fold
from nacre.storage import merging
from nacre.storage.postgres import change_log, counters, entities, export, facts, rows
from nacre.storage.postgres.connection import copy, fetch, run, value
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import numbers
from nacre.types.facts import Fact
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    FactRecord,
    LensRecord,
    SimilarRecord,
    UpdateRecord,
    update_name,
)


class Related:
    """Counts what was new or changed."""

    def __init__(self, db: Db, counts: Counter[str]) -> None:
        self._db = db
        self.counts = counts

    def take_facts(self, records: Sequence[FactRecord]) -> None:
        db, given = self._db, [each.fact for each in records]
        sql = "SELECT id, space, row, content_hash, deleted_us IS NULL FROM memories WHERE id = ANY(%s)"
        memories = {each: rest for each, *rest in fetch(db, sql, ([each.memory_id for each in given],))}
        sql = (
            "SELECT c.space, c.name FROM unnest(%s::text[], %s::text[]) AS given (space, name) "
            "JOIN changes AS c ON c.space = given.space AND c.kind = 'fact' AND c.name = given.name AND c.gone"
        )
        gone = {(space, name) for space, name in fetch(db, sql, transposed(((f.space, f.id) for f in given), 2))}
        known = {each.id: each for each in facts.by_ids(db, [each.id for each in given])}
        new: list[tuple[int, Fact, bool]] = []
        surer: list[Fact] = []
        for fact, text in ((each.fact, each.text) for each in records):
            if fact.memory_id not in memories or (fact.space, fact.id) in gone:
                continue
            space, row, hashed, is_live = memories[fact.memory_id]
            if space != fact.space or text not in (None, hashed.hex()):
                continue
            stored = known.get(fact.id)
            if stored is None:
                new.append((row, fact, is_live))
            elif stored.memory_id == fact.memory_id and merging.surer(fact, stored):
                surer.append(fact)
        facts.take(db, new)
        facts.write_confidence(db, surer)
        if new or surer:
            self.counts["facts"] += len(new) + len(surer)

    def take_entities(self, records: Sequence[EntityRecord]) -> None:
        """Entities none of whose names another one of these has."""
        db = self._db
        places = [place for each in records for place in places_of_names(each)]
        given = transposed(places, 2)
        sql = (
            "SELECT n.space, n.key FROM unnest(%s::text[], %s::text[]) AS given (space, key) "
            "JOIN entity_names AS n ON n.space = given.space AND n.key = given.key "
            "UNION SELECT c.space, c.name FROM unnest(%s::text[], %s::text[]) AS given (space, key) "
            "JOIN changes AS c ON c.space = given.space AND c.kind = 'entity' AND c.name = given.key"
        )
        met = {(space, key) for space, key in fetch(db, sql, given * 2)}
        ids = list({memory_id for each in records for memory_id in each.memory_ids})
        sql = "SELECT id, space, row FROM memories WHERE id = ANY(%s)"
        key_of = {memory_id: (space, row) for memory_id, space, row in fetch(db, sql, (ids,))}
        new = []
        for each in records:
            linked = [key_of[one][1] for one in each.memory_ids if one in key_of and key_of[one][0] == each.space]
            if met.isdisjoint(places_of_names(each)):
                new.append((each, linked))
            else:
                self._write_entities(new)
                new = []
                self._entity(each, linked)
        self._write_entities(new)

    def _write_entities(self, new: Sequence[tuple[EntityRecord, Sequence[int]]]) -> None:
        """Insert entities whose names nothing is known of."""
        db = self._db
        asked = [place for each, linked in new if not (each.kept or linked) for place in places_of_names(each)]
        named = _named(db, asked)
        wanted = [
            (each, linked) for each, linked in new if each.kept or linked or not named.isdisjoint(places_of_names(each))
        ]
        if not wanted:
            return
        numbered = list(zip(numbers(db, "entity_numbers", len(wanted)), wanted, strict=True))
        copy(
            db,
            "entities (space, entity, name, type, kept)",
            ("text", "int8", "text", "text", "bool"),
            ((each.space, number, each.name, each.type, each.kept) for number, (each, _) in numbered),
        )
        copy(
            db,
            "entity_names (space, key, name, entity)",
            ("text", "text", "text", "int8"),
            ((each.space, key, name, number) for number, (each, _) in numbered for key, name in _names(each).items()),
        )
        entities.link(db, [((each.space, number), row) for number, (each, linked) in numbered for row in linked])
        taken = [(each.space, fold(each.name), each.changed) for each, _ in wanted if each.changed is not None]
        change_log.take_all(db, "entity", taken)
        facts.update_supersession(
            db, facts.groups_of_entities(db, [(each.space, number) for number, (each, _) in numbered])
        )
        self.counts["entities"] += len(wanted)

    def _entity(self, record: EntityRecord, linked: Sequence[int]) -> None:
        """Merge an entity with those that have one of its names."""
        db, space = self._db, record.space
        names, canonical = _names(record), fold(record.name)
        dropped = change_log.of(db, "entity", space, [canonical]).get(canonical)
        if dropped is not None and dropped.gone and dropped.at >= (record.changed or merging.LONG_AGO):
            return
        if not record.kept and not linked and not entities.are_named(db, space, list(names)):
            return
        known = entities.having(db, space, list(names))
        before = list(export.entity_records(db, known))
        best = record
        for each in before:
            best = each if merging.entity_wins(each, best) else best
        number = entities.union(db, space, names, [each[0] for each in known], best, kept=record.kept)
        entities.link(db, [(number, row) for row in linked])
        (after,) = export.entity_records(db, entities.having(db, space, [canonical]))
        changed = max((each.changed for each in (record, *before) if each.changed), default=None)
        if changed is not None and after.changed != changed:
            change_log.take(db, "entity", space, fold(best.name), changed)
        if before != [replace(after, changed=before[0].changed if before else None)]:
            facts.update_supersession(db, facts.groups_of_entities(db, [number]))
            self.counts["entities"] += 1

    def take_updates(self, records: Sequence[UpdateRecord]) -> None:
        db = self._db
        sql = (
            "SELECT given.place, n.space, o.row, n.row, u.cue, c.at_us "
            "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (newer, older, place) "
            "JOIN memories AS n ON n.id = given.newer "
            "JOIN memories AS o ON o.id = given.older AND o.space = n.space AND o.row <> n.row "
            "LEFT JOIN updates AS u ON u.space = n.space AND u.older = o.row AND u.newer = n.row "
            "LEFT JOIN changes AS c ON c.space = n.space AND c.kind = 'update' AND c.name = n.id || ' ' || o.id "
            "ORDER BY given.place"
        )
        given = transposed(((each.newer, each.older) for each in records), 2)
        written, taken = [], []
        for place, space, older, newer, cue, at_us in fetch(db, sql, given):
            record = records[place - 1]
            local = rows.maybe_moment(at_us), "" if cue is None else f"+{cue}"
            if merging.later((record.changed, f"+{record.cue}"), local):
                written.append((space, older, newer, record.cue))
                if record.changed is not None:
                    taken.append((space, update_name(record.newer, record.older), record.changed))
        if written:
            run(
                db,
                "INSERT INTO updates SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[]) "
                "ON CONFLICT (space, older, newer) DO UPDATE SET cue = excluded.cue",
                transposed(written, 4),
            )
            change_log.take_all(db, "update", taken)
            self.counts["updates"] += len(written)

    def take_similar(self, records: Sequence[SimilarRecord]) -> None:
        db = self._db
        sql = (
            "SELECT given.place, a.space, a.row, b.row, a.content_hash, b.content_hash, coalesce(s.apart, false) "
            "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (one, other, place) "
            "JOIN memories AS a ON a.id = given.one "
            "JOIN memories AS b ON b.id = given.other AND b.space = a.space AND b.row <> a.row "
            "LEFT JOIN near_duplicates AS s ON s.space = a.space AND s.row = a.row AND s.other = b.row "
            "ORDER BY given.place"
        )
        given = transposed(((each.one, each.other) for each in records), 2)
        pairs: list[tuple[str, int, int, bool]] = []
        separated: list[tuple[str, str]] = []
        for place, space, one, other, one_hash, other_hash, apart in fetch(db, sql, given):
            record = records[place - 1]
            if (one_hash.hex(), other_hash.hex()) == record.texts:
                pairs += [(space, one, other, record.apart), (space, other, one, record.apart)]
                if record.apart and not apart:
                    separated.append((space, record.one))
        if pairs:
            run(
                db,
                "INSERT INTO near_duplicates AS n "
                "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bool[]) "
                "ON CONFLICT (space, row, other) DO UPDATE SET apart = n.apart OR excluded.apart",
                transposed(pairs, 4),
            )
        for space, several in groupby(separated, key=lambda each: each[0]):
            change_log.note(db, "apart", space, [name for _, name in several])
        if pairs:
            counters.bump_revision(db)

    def take_lens(self, record: LensRecord) -> None:
        db, place = self._db, (record.space, record.name)
        body = value(db, "SELECT body FROM lenses WHERE space = %s AND name = %s", place)
        change = change_log.of(db, "lens", record.space, [record.name]).get(record.name)
        if merging.later((record.changed, record.body), (None if change is None else change.at, body or "")):
            put = "INSERT INTO lenses VALUES (%s, %s, %s) ON CONFLICT (space, name) DO UPDATE SET body = excluded.body"
            run(db, put, (*place, record.body))
            if record.changed is not None:
                change_log.take(db, "lens", *place, record.changed)
            self.counts["lenses"] += 1

    def take_dropped(self, record: Dropped) -> None:
        db, space, name = self._db, record.space, record.name
        change = change_log.of(db, record.kind, space, [name]).get(name)
        if record.kind == "fact":
            if change is not None and change.gone:
                return
            if facts.by_ids(db, [name]):
                facts.remove(db, [name])
                self.counts["facts"] += 1
        elif change is not None and (change.at, not change.gone) >= (record.changed, False):
            return
        elif record.kind == "entity":
            for each in entities.having(db, space, [name]):
                (known,) = export.entity_records(db, [each])
                if known.changed is not None and known.changed > record.changed:
                    return
                facts.remove_entity(db, (space, each[0]))
                self.counts["entities"] += 1
        elif record.kind == "update":
            newer, _, older = name.partition(" ")
            self.counts["updates"] += _unlinked(db, newer, older)
        else:
            self.counts["lenses"] += run(db, "DELETE FROM lenses WHERE space = %s AND name = %s", (space, name))
        change_log.take(db, record.kind, space, name, record.changed, gone=True)


def _names(record: EntityRecord) -> dict[str, str]:
    """The names of an entity by folded name."""
    return {fold(name): name for name in (*record.aliases, record.name)}


def places_of_names(record: EntityRecord) -> list[tuple[str, str]]:
    return [(record.space, key) for key in _names(record)]


def transposed(listed: Iterable[tuple[Any, ...]], count: int) -> tuple[list[Any], ...]:
    """Rows as columns, to be given to `unnest`."""
    every = list(listed)
    return tuple([each[at] for each in every] for at in range(count))


def _named(db: Db, places: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of these spaces and folded names that a fact has as its subject or, in a relation, as its object."""
    sql = (
        "SELECT given.space, given.key FROM unnest(%s::text[], %s::text[]) AS given (space, key) WHERE "
        "EXISTS (SELECT 1 FROM facts AS f WHERE f.space = given.space AND f.subject_key = given.key) OR "
        "EXISTS (SELECT 1 FROM facts AS f WHERE f.space = given.space AND f.relation AND f.object_key = given.key)"
    )
    return {(space, key) for space, key in fetch(db, sql, transposed(places, 2))}


def _unlinked(db: Db, newer: str, older: str) -> int:
    return run(
        db,
        "DELETE FROM updates AS u USING memories AS n JOIN memories AS o ON o.space = n.space "
        "WHERE n.id = %s AND o.id = %s AND u.space = n.space AND u.newer = n.row AND u.older = o.row",
        (newer, older),
    )
