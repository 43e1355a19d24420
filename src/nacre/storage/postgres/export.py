"""Exports the records of a store, as of one moment, in constant memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from nacre.analysis.names import fold
from nacre.storage import merging
from nacre.storage.postgres import change_log, facts, further_vectors, rows
from nacre.storage.postgres.connection import Connections, fetch, value
from nacre.storage.postgres.filters import EVERYTHING, Clause, filter_clause
from nacre.storage.postgres.halfvec import received
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
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

_CHUNK = 500  # memories whose events and vectors are read at once
_ROWS = 2_000  # that are fetched at once of a cursor
_TIMEOUT_MS = 3_600_000  # of one statement: it may have to sort all memories
EVENT_COLUMNS = "seq, at_us, action, memory_id, space, before, uid"
_GIVEN = "unnest(%s::text[], %s::bigint[]) AS given (space, row)"

# Displaced memories that nothing displaces any more, because of a change that was made here: they stay forgotten.
STALE = (
    "SELECT d.space, d.row FROM displaced AS d JOIN memories AS x ON x.space = d.space AND x.row = d.row "
    "WHERE NOT EXISTS (SELECT 1 FROM memories AS w WHERE w.space = x.space AND w.identity = x.identity "
    "AND w.deleted_us IS NULL AND (w.updated_us, w.id) > (x.updated_us, x.id))"
)


def dump(connections: Connections, request: ExportRequest) -> Iterator[Record]:
    """One read transaction, which lasts until the last record is taken. Others go on writing."""
    with snapshot(connections) as db:
        yield from records(db, request)


@contextmanager
def snapshot(connections: Connections) -> Iterator[Db]:
    """A read transaction for as long as somebody takes the records."""
    with connections.snapshot(_TIMEOUT_MS) as db:
        db.execute("SET LOCAL cursor_tuple_fraction = 1")  # all rows are read
        db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # whoever takes the records may be slow
        yield db


def records(db: Db, request: ExportRequest) -> Iterator[Record]:
    """The caller holds such a transaction."""
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


def entity_records(db: Db, found: Iterable[tuple[Any, ...]], seen: Clause = EVERYTHING) -> Iterator[EntityRecord]:
    """Entities from rows of (number, space, name, type, kept), with their links to the memories that are seen."""
    for chunk in _chunks(found):
        given = ([space for _, space, *_ in chunk], [number for number, *_ in chunk])
        names: defaultdict[int, dict[str, str]] = defaultdict(dict)
        changed: dict[int, int] = {}
        sql = (
            f"SELECT n.entity, n.key, n.name, c.at_us FROM {_GIVEN} "
            "JOIN entity_names AS n ON n.space = given.space AND n.entity = given.row "
            "LEFT JOIN changes AS c ON c.space = n.space AND c.kind = 'entity' AND c.name = n.key AND NOT c.gone "
            "ORDER BY n.key"
        )
        for number, key, name, at_us in fetch(db, sql, given):
            names[number][key] = name
            if at_us is not None:
                changed[number] = max(at_us, changed.get(number, at_us))
        links: defaultdict[int, list[str]] = defaultdict(list)
        sql = (
            f"SELECT l.entity, m.id FROM {_GIVEN} JOIN links AS l ON l.space = given.space AND l.entity = given.row "
            f"JOIN memories AS m ON m.space = l.space AND m.row = l.row WHERE {seen.sql} ORDER BY m.id"
        )
        for number, memory_id in fetch(db, sql, (*given, *seen.parameters)):
            links[number].append(memory_id)
        for number, space, name, kind, kept in chunk:
            canonical = fold(name)
            yield EntityRecord(
                space=space,
                name=name,
                type=kind,
                kept=kept,
                aliases=tuple(each for key, each in names[number].items() if key != canonical),
                memory_ids=tuple(links[number]),
                changed=rows.maybe_moment(changed.get(number)),
            )


class _Dump:
    def __init__(self, db: Db, request: ExportRequest) -> None:
        self._db = db
        self._request = request
        where = request.where
        self._where = where
        self._partial = where is not None and replace(where, spaces=()) != Filter()
        since = request.since
        self._since = change_log.since(db, since) if isinstance(since, datetime) else since
        self._store_id = rows.meta(db, "store_id") or ""
        self._stale: list[Key] = [(space, row) for space, row in fetch(db, STALE)]
        self._seen = EVERYTHING if where is None else filter_clause(where)
        self._touched = self._seen  # memories that changed, or all
        if self._since:
            actions = "" if request.vectors else "AND e.action <> 'embedded'"
            changed = f"m.id IN (SELECT e.memory_id FROM events AS e WHERE e.seq > %s {actions})"
            stale = "(m.space, m.row) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
            self._touched = self._seen & Clause(f"({changed} OR {stale})", (self._since, *rows.columns_of(self._stale)))

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
            memories=int(value(self._db, counted, self._touched.parameters)),
        )

    def _stream(self, name: str, sql: str, parameters: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, in portions."""
        with self._db.cursor(name=f"nacre_{name}") as cursor:
            cursor.itersize = _ROWS
            cursor.execute(sql, parameters, binary=True)
            yield from cursor

    # ---- memories

    def _memories(self) -> Iterator[Record]:
        """Keys are sorted, and not the memories with all their texts."""
        stale = set(self._stale)
        every = f"SELECT m.space, m.row FROM memories AS m WHERE {self._touched.sql} ORDER BY m.row"
        sql = (
            "SELECT m.space, m.row, EXISTS (SELECT 1 FROM displaced AS d WHERE d.space = m.space AND d.row = m.row), "
            f"m.embedded, m.token_passages, {rows.READ_COLUMNS} FROM {_GIVEN} "
            "JOIN memories AS m ON m.space = given.space AND m.row = given.row ORDER BY m.row"
        )
        for keys in _chunks(self._stream("memories", every, self._touched.parameters)):
            chunk = fetch(self._db, sql, rows.columns_of(keys))
            memories = [rows.memory(columns) for _, _, _, _, _, *columns in chunk]
            events = self._events([memory.id for memory in memories])
            passages = self._passages(chunk) if self._request.vectors else {}
            further = further_vectors.of_memories(self._db, keys) if self._request.vectors else {}
            for (space, row, displaced, *_), memory in zip(chunk, memories, strict=True):
                exported = replace(memory, deleted=None) if displaced and (space, row) not in stale else memory
                yield MemoryRecord(
                    exported, tuple(events[memory.id]), passages.get((space, row)), further.get((space, row), {})
                )

    def _events(self, ids: Sequence[str]) -> dict[str, list[EventRecord]]:
        sql = f"SELECT {EVENT_COLUMNS} FROM events WHERE memory_id = ANY(%s) AND seq > %s ORDER BY seq"
        found: defaultdict[str, list[EventRecord]] = defaultdict(list)
        for row in fetch(self._db, sql, (list(ids), self._since)):
            event = event_record(row, self._store_id)
            found[event.memory_id].append(event)
        return found

    def _passages(self, chunk: Sequence[tuple[Any, ...]]) -> dict[Key, StoredPassages]:
        embedded = {
            (space, row): token_passages for space, row, _, has_vectors, token_passages, *_ in chunk if has_vectors
        }
        keys = rows.columns_of(list(embedded))
        spans: defaultdict[Key, list[Span]] = defaultdict(list)
        vectors: defaultdict[Key, list[bytes]] = defaultdict(list)
        sql = (
            f"SELECT p.space, p.row, p.start_char, p.end_char, p.vector FROM {_GIVEN} "
            "JOIN passages AS p ON p.space = given.space AND p.row = given.row ORDER BY p.place"
        )
        for space, row, start, end, sent in fetch(self._db, sql, keys):
            spans[space, row].append(Span(start, end))
            vectors[space, row].append(received(sent))
        tokens: defaultdict[Key, list[bytes]] = defaultdict(list)
        sql = (
            f"SELECT t.space, t.row, t.vectors FROM {_GIVEN} "
            "JOIN token_vectors AS t ON t.space = given.space AND t.row = given.row ORDER BY t.place"
        )
        for space, row, packed in fetch(self._db, sql, keys):
            tokens[space, row].append(packed)
        return {
            key: StoredPassages(
                tuple(spans[key]), tuple(vectors[key]), None if token_passages is None else tuple(tokens[key])
            )
            for key, token_passages in embedded.items()
        }

    # ---- what belongs to memories

    def _facts(self) -> Iterator[Record]:
        clause = self._seen
        if self._since:
            noted = Clause(
                "EXISTS (SELECT 1 FROM changes AS c WHERE c.space = f.space AND c.kind = 'fact' AND c.name = f.id "
                "AND c.seq > %s)",
                (self._since,),
            )
            clause = _either(self._touched, self._seen & noted)
        sql = f"SELECT {facts.COLUMNS}, m.content_hash {facts.FROM} WHERE {clause.sql} ORDER BY f.fact"
        for *columns, content_hash in self._stream("facts", sql, clause.parameters):
            fact = facts.fact(columns)
            yield FactRecord(fact, content_hash.hex() if fact.origin == "extracted" else None)

    def _entities(self) -> Iterator[Record]:
        clause = self._in_spaces("e.space")
        if self._since or self._partial:
            noted = Clause(
                "EXISTS (SELECT 1 FROM entity_names AS n JOIN changes AS c ON c.space = n.space AND c.kind = 'entity' "
                "AND c.name = n.key WHERE n.space = e.space AND n.entity = e.entity AND c.seq > %s)",
                (self._since,),
            )
            if self._partial:
                noted &= _about(self._seen)
            clause &= _either(_about(self._touched), noted)
        sql = (
            f"SELECT e.entity, e.space, e.name, e.type, e.kept FROM entities AS e WHERE {clause.sql} ORDER BY e.entity"
        )
        found = self._stream("entities", sql, clause.parameters)
        yield from entity_records(self._db, found, self._seen)

    def _updates(self) -> Iterator[Record]:
        clause = self._pair_clause("n", "o", Clause("c.seq > %s", (self._since,)))
        sql = (
            "SELECT n.id, o.id, u.cue, c.at_us FROM updates AS u "
            "JOIN memories AS n ON n.space = u.space AND n.row = u.newer "
            "JOIN memories AS o ON o.space = u.space AND o.row = u.older LEFT JOIN changes AS c "
            "ON c.space = u.space AND c.kind = 'update' AND c.name = n.id || ' ' || o.id "
            f"WHERE {clause.sql} ORDER BY n.id, o.id"
        )
        for newer, older, cue, at_us in self._stream("updates", sql, clause.parameters):
            yield UpdateRecord(newer, older, cue, rows.maybe_moment(at_us))

    def _similar(self) -> Iterator[Record]:
        noted = Clause(
            "EXISTS (SELECT 1 FROM changes AS c WHERE c.space = a.space AND c.kind = 'apart' "
            "AND c.name IN (a.id, b.id) AND c.seq > %s)",
            (self._since,),
        )
        clause = self._pair_clause("a", "b", noted)
        sql = (
            "SELECT a.id, b.id, a.content_hash, b.content_hash, s.apart FROM near_duplicates AS s "
            "JOIN memories AS a ON a.space = s.space AND a.row = s.row "
            "JOIN memories AS b ON b.space = s.space AND b.row = s.other "
            f"WHERE a.id < b.id AND {clause.sql} ORDER BY a.id, b.id"
        )
        for one, other, one_hash, other_hash, apart in self._stream("similar", sql, clause.parameters):
            yield SimilarRecord(one, other, (one_hash.hex(), other_hash.hex()), apart)

    def _pair_clause(self, one: str, other: str, noted: Clause) -> Clause:
        """Pairs of memories that are both seen and, after a number, of which either changed, or that were noted."""
        if self._where is None and not self._since:
            return EVERYTHING
        clause = _one_of_these(one, self._seen) & _one_of_these(other, self._seen)
        if self._since:
            either = _either(_one_of_these(one, self._touched), _one_of_these(other, self._touched))
            clause &= _either(either, noted)
        return clause

    # ---- the rest

    def _lenses(self) -> Iterator[Record]:
        clause = self._in_spaces("l.space")
        if self._since:
            clause &= Clause("c.seq > %s", (self._since,))
        sql = (
            "SELECT l.space, l.name, l.body, c.at_us FROM lenses AS l LEFT JOIN changes AS c "
            f"ON c.space = l.space AND c.kind = 'lens' AND c.name = l.name WHERE {clause.sql} ORDER BY 1, 2"
        )
        for space, name, body, at_us in self._stream("lenses", sql, clause.parameters):
            yield LensRecord(space, name, body, rows.maybe_moment(at_us))

    def _dropped(self) -> Iterator[Record]:
        clause = self._in_spaces("c.space") & Clause("c.seq > %s", (self._since,))
        columns = "c.kind, c.space, c.name, c.at_us"
        sql = f"SELECT {columns} FROM changes AS c WHERE c.gone AND {clause.sql} ORDER BY c.seq"
        for kind, space, name, at_us in self._stream("dropped", sql, clause.parameters):
            yield Dropped(kind, space, name, rows.moment(at_us))

    def _events_of_purged(self) -> Iterator[Record]:
        clause = self._in_spaces("e.space") & Clause("e.seq > %s", (self._since,))
        sql = (
            f"SELECT {EVENT_COLUMNS} FROM events AS e WHERE e.memory_id <> '' AND {clause.sql} "
            "AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = e.memory_id) ORDER BY e.seq"
        )
        for row in self._stream("purged", sql, clause.parameters):
            yield event_record(row, self._store_id)

    def _in_spaces(self, column: str) -> Clause:
        return EVERYTHING if self._where is None else Clause(f"{column} = ANY(%s)", (list(self._where.spaces),))


def _chunks(found: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(found)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk


def _either(one: Clause, other: Clause) -> Clause:
    return Clause(f"({one.sql} OR {other.sql})", (*one.parameters, *other.parameters))


def _one_of_these(alias: str, clause: Clause) -> Clause:
    these = f"SELECT m.space, m.row FROM memories AS m WHERE {clause.sql}"
    return Clause(f"({alias}.space, {alias}.row) IN ({these})", clause.parameters)


def _about(clause: Clause) -> Clause:
    """Entities that memories are about, by a link or by a fact."""
    of_facts = (
        "SELECT n.space, n.entity FROM facts AS f JOIN memories AS m ON m.space = f.space AND m.row = f.row "
        "JOIN entity_names AS n ON n.space = f.space AND n.key = f.{} WHERE {} {}"
    )
    sql = (
        "(e.space, e.entity) IN (SELECT l.space, l.entity FROM links AS l "
        f"JOIN memories AS m ON m.space = l.space AND m.row = l.row WHERE {clause.sql} "
        f"UNION {of_facts.format('subject_key', clause.sql, '')} "
        f"UNION {of_facts.format('object_key', clause.sql, 'AND f.relation')})"
    )
    return Clause(sql, clause.parameters * 3)
