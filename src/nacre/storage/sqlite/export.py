"""Exports the records of a store, as of one moment, in constant memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import apsw

from nacre.analysis.names import fold
from nacre.storage import merging
from nacre.storage.sqlite import change_log, entities, facts, further_vectors, rows
from nacre.storage.sqlite.connection import Connections
from nacre.storage.sqlite.filters import EVERYTHING, Clause, filter_clause, one_of
from nacre.storage.sqlite.token_vectors import PLACES
from nacre.types.memory import Span
from nacre.types.search import Filter
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    ExportRequest,
    FactRecord,
    Header,
    LensRecord,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
)

T = TypeVar("T")

_CHUNK = 200  # memories whose events and vectors are read at once
EVENT_COLUMNS = "seq, at_us, action, memory_id, space, before, uid"

# Displaced memories that nothing displaces any more, because of a change that was made here: they stay forgotten.
STALE = (
    "SELECT d.row FROM displaced AS d JOIN memories AS x ON x.row = d.row WHERE NOT EXISTS ("
    "SELECT 1 FROM memories AS w WHERE w.space = x.space "
    "AND ifnull(w.key, w.content_hash) = ifnull(x.key, x.content_hash) AND w.deleted_us IS NULL "
    "AND (w.updated_us, w.id) > (x.updated_us, x.id))"
)


def dump(connections: Connections, request: ExportRequest) -> Iterator[Record]:
    """One read transaction, which lasts until the last record is taken. Others go on writing."""
    with connections.reading(latest=True) as db:
        yield from records(db, request)


def records(db: apsw.Connection, request: ExportRequest) -> Iterator[Record]:
    """The caller holds a read transaction."""
    return _Dump(db, request).records()


def event_record(row: Sequence[Any], store_id: str) -> EventRecord:
    """An event from a row of EVENT_COLUMNS."""
    seq, at_us, action, memory_id, space, before, uid = row
    at = rows.moment(at_us)
    return EventRecord(
        uid=uid or merging.event_uid(store_id, seq, at),
        at=at,
        action=action,
        memory_id=memory_id,
        space=space,
        before=json.loads(before) if before else {},
    )


def entity_records(
    db: apsw.Connection, found: Iterable[tuple[int, str, str, str | None, int]], seen: Clause = EVERYTHING
) -> Iterator[EntityRecord]:
    """Entities from rows of (number, space, name, type, kept), with their links to the memories that are seen."""
    for chunk in _chunks(found):
        numbers = rows.to_json([number for number, *_ in chunk])
        names: defaultdict[int, dict[str, str]] = defaultdict(dict)
        changed: dict[int, int] = {}
        sql = (
            "SELECT n.entity, n.key, n.name, c.at_us FROM entity_names AS n LEFT JOIN changes AS c "
            "ON c.kind = 'entity' AND c.space = n.space AND c.name = n.key AND c.gone = 0 "
            "WHERE n.entity IN (SELECT value FROM json_each(?)) ORDER BY n.key"
        )
        for number, key, name, at_us in rows.fetch(db, sql, (numbers,)):
            names[number][key] = name
            if at_us is not None:
                changed[number] = max(at_us, changed.get(number, at_us))
        links: defaultdict[int, list[str]] = defaultdict(list)
        sql = (
            "SELECT l.entity, m.id FROM links AS l JOIN memories AS m ON m.row = l.row "
            f"WHERE l.entity IN (SELECT value FROM json_each(?)) AND {seen.sql} ORDER BY m.id"
        )
        for number, memory_id in rows.fetch(db, sql, (numbers, *seen.parameters)):
            links[number].append(memory_id)
        for number, space, name, kind, kept in chunk:
            canonical = fold(name)
            yield EntityRecord(
                space=space,
                name=name,
                type=kind,
                kept=bool(kept),
                aliases=tuple(each for key, each in names[number].items() if key != canonical),
                memory_ids=tuple(links[number]),
                changed=rows.maybe_moment(changed.get(number)),
            )


class _Dump:
    def __init__(self, db: apsw.Connection, request: ExportRequest) -> None:
        self._db = db
        self._request = request
        where = request.where
        self._where = where
        self._partial = where is not None and replace(where, spaces=()) != Filter()
        since = request.since
        self._since = change_log.since(db, since) if isinstance(since, datetime) else since
        self._store_id = rows.meta(db, "store_id") or ""
        self._stale = [row for (row,) in rows.fetch(db, STALE)]
        self._seen = EVERYTHING if where is None else filter_clause(where)
        self._touched = self._seen  # memories that changed, or all
        if self._since:
            actions = "" if request.vectors else "AND action <> 'embedded'"
            changed = f"m.row IN (SELECT row FROM events WHERE seq > ? AND memory_id <> '' {actions})"
            stale = "m.row IN (SELECT value FROM json_each(?))"
            both = Clause(f"({changed} OR {stale})", (self._since, rows.to_json(self._stale)))
            self._touched = self._seen & both

    def records(self) -> Iterator[Record]:
        yield self._header()
        yield from self._memories()
        yield from self._facts()
        yield from self._entities()
        yield from self._updates()
        yield from self._similar()
        if not self._partial:
            yield from self._lenses()
            yield from self._dropped()
            yield from self._events_of_purged()

    def _header(self) -> Header:
        counted = f"SELECT count(*) FROM memories AS m WHERE {self._touched.sql}"
        return Header(
            store=self._store_id,
            at=self._request.at,
            seq=change_log.last(self._db),
            since=self._since,
            where=merging.filter_text(self._where),
            vectors=self._request.vectors,
            model=rows.meta(self._db, "model"),
            token_model=rows.meta(self._db, "token_model"),
            further_models=further_vectors.models(self._db) if self._request.vectors else (),
            memories=int(self._db.execute(counted, self._touched.parameters).get or 0),
        )

    # ---- memories

    def _memories(self) -> Iterator[Record]:
        stale = set(self._stale)
        sql = (
            "SELECT m.row, EXISTS (SELECT 1 FROM displaced AS d WHERE d.row = m.row), m.embedded, m.token_passages, "
            f"{rows.READ_COLUMNS} FROM memories AS m WHERE {self._touched.sql} ORDER BY m.row"
        )
        for chunk in _chunks(self._db.execute(sql, self._touched.parameters)):
            memories = [rows.memory(columns) for _, _, _, _, *columns in chunk]
            events = self._events([memory.id for memory in memories])
            passages = self._passages(chunk) if self._request.vectors else {}
            further = further_vectors.packed(self._db, [row for row, *_ in chunk]) if self._request.vectors else {}
            for (row, displaced, *_), memory in zip(chunk, memories, strict=True):
                exported = replace(memory, deleted=None) if displaced and row not in stale else memory
                yield MemoryRecord(exported, tuple(events[memory.id]), passages.get(row), further.get(row, {}))

    def _events(self, ids: Sequence[str]) -> dict[str, list[EventRecord]]:
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM events WHERE memory_id IN (SELECT value FROM json_each(?)) "
            "AND seq > ? ORDER BY seq"
        )
        found: defaultdict[str, list[EventRecord]] = defaultdict(list)
        for row in self._db.execute(sql, (rows.to_json(list(ids)), self._since)):
            event = event_record(row, self._store_id)
            found[event.memory_id].append(event)
        return found

    def _passages(self, chunk: Sequence[tuple[Any, ...]]) -> dict[int, StoredPassages]:
        embedded = {row: token_passages for row, _, has_vectors, token_passages, *_ in chunk if has_vectors}
        numbers = rows.to_json(list(embedded))
        spans: defaultdict[int, list[Span]] = defaultdict(list)
        vectors: defaultdict[int, list[bytes]] = defaultdict(list)
        sql = (
            "SELECT p.row, p.start_char, p.end_char, p.vector FROM passages AS p "
            "WHERE p.row IN (SELECT value FROM json_each(?)) ORDER BY p.passage"
        )
        for row, start, end, vector in self._db.execute(sql, (numbers,)):
            spans[row].append(Span(start, end))
            vectors[row].append(vector)
        tokens: defaultdict[int, list[bytes]] = defaultdict(list)
        sql = (
            "SELECT j.value, t.vectors FROM json_each(?) AS j CROSS JOIN token_vectors AS t "
            f"ON t.key >= j.value * {PLACES} AND t.key < (j.value + 1) * {PLACES} ORDER BY t.key"
        )
        for row, blob in self._db.execute(sql, (numbers,)):
            tokens[row].append(blob)
        return {
            row: StoredPassages(
                tuple(spans[row]), tuple(vectors[row]), None if token_passages is None else tuple(tokens[row])
            )
            for row, token_passages in embedded.items()
        }

    # ---- what belongs to memories

    def _facts(self) -> Iterator[Record]:
        noted = Clause("f.id IN (SELECT name FROM changes WHERE kind = 'fact' AND seq > ?)", (self._since,))
        wanted = self._seen if not self._since else Clause(*_either(self._touched, self._seen & noted))
        for fact, content_hash in facts.every(self._db, wanted):
            yield FactRecord(fact, content_hash.hex() if fact.origin == "extracted" else None)

    def _entities(self) -> Iterator[Record]:
        clause = EVERYTHING if self._where is None else one_of("e.space", self._where.spaces)
        if self._since or self._partial:
            noted = Clause(
                "EXISTS (SELECT 1 FROM entity_names AS n JOIN changes AS c ON c.kind = 'entity' "
                "AND c.space = n.space AND c.name = n.key WHERE n.entity = e.entity AND c.seq > ?)",
                (self._since,),
            )
            if self._partial:
                noted &= _about(self._seen)
            clause &= Clause(*_either(_about(self._touched), noted))
        sql = (
            f"SELECT e.entity, e.space, e.name, e.type, e.kept FROM entities AS e WHERE {clause.sql} ORDER BY e.entity"
        )
        yield from entity_records(self._db, self._db.execute(sql, clause.parameters), self._seen)

    def _updates(self) -> Iterator[Record]:
        noted = Clause("c.seq > ?", (self._since,))
        clause = self._pair_clause("n", "o", noted)
        sql = (
            "SELECT n.id, o.id, u.cue, c.at_us FROM updates AS u JOIN memories AS n ON n.row = u.newer "
            "JOIN memories AS o ON o.row = u.older LEFT JOIN changes AS c ON c.kind = 'update' "
            f"AND c.space = n.space AND c.name = n.id || ' ' || o.id WHERE {clause.sql} ORDER BY u.older, u.newer"
        )
        for newer, older, cue, at_us in self._db.execute(sql, clause.parameters):
            yield UpdateRecord(newer, older, cue, rows.maybe_moment(at_us))

    def _similar(self) -> Iterator[Record]:
        noted = Clause(
            "EXISTS (SELECT 1 FROM changes AS c WHERE c.kind = 'apart' AND c.space = a.space "
            "AND c.name IN (a.id, b.id) AND c.seq > ?)",
            (self._since,),
        )
        clause = self._pair_clause("a", "b", noted)
        sql = (
            "SELECT a.id, b.id, a.content_hash, b.content_hash, s.apart FROM similar AS s "
            "JOIN memories AS a ON a.row = s.row JOIN memories AS b ON b.row = s.other "
            f"WHERE s.row < s.other AND {clause.sql} ORDER BY s.row, s.other"
        )
        for one, other, one_hash, other_hash, apart in self._db.execute(sql, clause.parameters):
            yield SimilarRecord(one, other, (one_hash.hex(), other_hash.hex()), bool(apart))

    def _pair_clause(self, one: str, other: str, noted: Clause) -> Clause:
        """Pairs of memories that are both seen and, after a number, of which either changed, or that were noted."""
        if self._where is None and not self._since:
            return EVERYTHING
        clause = _one_of_these(one, self._seen) & _one_of_these(other, self._seen)
        if self._since:
            either = Clause(*_either(_one_of_these(one, self._touched), _one_of_these(other, self._touched)))
            clause &= Clause(*_either(either, noted))
        return clause

    # ---- the rest

    def _lenses(self) -> Iterator[Record]:
        clause = self._in_spaces("l.space")
        if self._since:
            clause &= Clause("c.seq > ?", (self._since,))
        sql = (
            "SELECT l.space, l.name, l.body, c.at_us FROM lenses AS l LEFT JOIN changes AS c "
            f"ON c.kind = 'lens' AND c.space = l.space AND c.name = l.name WHERE {clause.sql} ORDER BY 1, 2"
        )
        for space, name, body, at_us in self._db.execute(sql, clause.parameters):
            yield LensRecord(space, name, body, rows.maybe_moment(at_us))

    def _dropped(self) -> Iterator[Record]:
        clause = self._in_spaces("c.space") & Clause("c.seq > ?", (self._since,))
        columns = "c.kind, c.space, c.name, c.at_us"
        sql = f"SELECT {columns} FROM changes AS c WHERE c.gone = 1 AND {clause.sql} ORDER BY c.seq"
        for kind, space, name, at_us in self._db.execute(sql, clause.parameters):
            yield Dropped(kind, space, name, rows.moment(at_us))

    def _events_of_purged(self) -> Iterator[Record]:
        clause = self._in_spaces("space") & Clause("seq > ?", (self._since,))
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM events WHERE memory_id <> '' AND {clause.sql} "
            "AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = memory_id) ORDER BY seq"
        )
        for row in self._db.execute(sql, clause.parameters):
            yield event_record(row, self._store_id)

    def _in_spaces(self, column: str) -> Clause:
        return EVERYTHING if self._where is None else one_of(column, self._where.spaces)


def _chunks(found: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(found)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk


def _either(one: Clause, other: Clause) -> tuple[str, tuple[Any, ...]]:
    return f"({one.sql} OR {other.sql})", (*one.parameters, *other.parameters)


def _one_of_these(alias: str, clause: Clause) -> Clause:
    return Clause(f"{alias}.row IN (SELECT m.row FROM memories AS m WHERE {clause.sql})", clause.parameters)


def _about(clause: Clause) -> Clause:
    """Entities that memories are about, by a link or by a fact."""
    sql = (
        "e.entity IN (SELECT l.entity FROM links AS l JOIN memories AS m ON m.row = l.row "
        f"WHERE {clause.sql} UNION SELECT n.entity FROM facts AS f JOIN memories AS m ON m.row = f.row "
        f"JOIN entity_names AS n ON {entities.NAMED} WHERE {clause.sql})"
    )
    return Clause(sql, (*clause.parameters, *clause.parameters))
