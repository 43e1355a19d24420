"""Facts and relations as rows: written with their memory, settled by subject and predicate, found by words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import apsw

from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.facts import supersession
from nacre.facts.statements import said
from nacre.query.ast import Term, significant_terms
from nacre.ranking.bm25 import idf
from nacre.storage.sqlite.filters import Clause, marks
from nacre.storage.sqlite.rows import (
    fetch,
    json_columns,
    maybe_microseconds,
    maybe_moment,
    microseconds,
    moment,
    to_json,
)
from nacre.types.facts import Fact, FactQuery

Group = tuple[str, str, str]  # space, key of the subject, key of the predicate

TABLES = """
CREATE TABLE facts (
  fact          INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  row           INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  space         TEXT NOT NULL,
  subject       TEXT NOT NULL,
  predicate     TEXT NOT NULL,
  object        TEXT NOT NULL,
  type          TEXT NOT NULL,
  confidence    REAL NOT NULL,
  decay_rate    REAL NOT NULL,
  reinforced_us INTEGER NOT NULL,
  touched_us    INTEGER NOT NULL,
  valid_from_us INTEGER NOT NULL,
  valid_to_us   INTEGER,                  -- computed: the given end, or when another took its place
  superseded_by TEXT,                     -- computed
  quote         TEXT,
  relation      INTEGER NOT NULL,
  single        INTEGER NOT NULL,
  origin        TEXT NOT NULL,
  ends_us       INTEGER,                  -- the given end
  subject_key   TEXT NOT NULL,            -- folded names, by which they are compared
  predicate_key TEXT NOT NULL,
  object_key    TEXT NOT NULL
) STRICT;
CREATE INDEX facts_by_row ON facts (row);
CREATE INDEX facts_by_subject ON facts (space, subject_key, predicate_key);
CREATE INDEX facts_by_object ON facts (space, object_key) WHERE relation = 1;
-- The words of relations whose memory is live.
CREATE TABLE relation_words (
  space TEXT NOT NULL,
  word  TEXT NOT NULL,
  fact  INTEGER NOT NULL REFERENCES facts (fact) ON DELETE CASCADE,
  PRIMARY KEY (space, word, fact)
) STRICT, WITHOUT ROWID;
CREATE INDEX relation_words_by_fact ON relation_words (fact);
CREATE TRIGGER relations_forgotten AFTER UPDATE OF deleted_us ON memories
WHEN old.deleted_us IS NULL AND new.deleted_us IS NOT NULL BEGIN
  DELETE FROM relation_words WHERE fact IN (SELECT fact FROM facts WHERE row = old.row AND relation = 1);
END;
"""

COLUMNS = (
    "f.id, m.id, f.space, f.subject, f.predicate, f.object, f.type, f.confidence, f.decay_rate, f.reinforced_us, "
    "f.touched_us, f.valid_from_us, f.valid_to_us, f.superseded_by, f.quote, f.relation, f.single, f.origin, f.ends_us"
)
_FROM = "FROM facts AS f JOIN memories AS m ON m.row = f.row"
_WRITTEN = (
    "id, row, space, subject, predicate, object, type, confidence, decay_rate, reinforced_us, touched_us, "
    "valid_from_us, valid_to_us, superseded_by, quote, relation, single, origin, ends_us, subject_key, "
    "predicate_key, object_key"
)
# All names of what has a name in a space.
_NAMES = (
    "SELECT other.key FROM entity_names AS this JOIN entity_names AS other ON other.entity = this.entity "
    "WHERE this.space = {} AND this.key = ?"
)
_POSTINGS_MAX = 2_000  # of relation words looked at in one search, the rarest first


def fact(row: Sequence[Any]) -> Fact:
    """A fact from a row of COLUMNS."""
    (
        fact_id, memory_id, space, subject, predicate, object_, type_, confidence, decay_rate, reinforced_us,
        touched_us, valid_from_us, valid_to_us, superseded_by, quote, relation, single, origin, ends_us,
    ) = row  # fmt: skip
    return Fact(
        id=fact_id,
        memory_id=memory_id,
        space=space,
        subject=subject,
        predicate=predicate,
        object=object_,
        type=type_,
        confidence=confidence,
        decay_rate=decay_rate,
        reinforced=moment(reinforced_us),
        touched=moment(touched_us),
        valid_from=moment(valid_from_us),
        valid_to=maybe_moment(valid_to_us),
        superseded_by=superseded_by,
        quote=quote,
        relation=bool(relation),
        single=bool(single),
        origin=origin,
        ends=maybe_moment(ends_us),
    )


# ---------------------------------------------------------------- writing


def write(db: apsw.Connection, written: Iterable[tuple[int, Fact]]) -> set[Group]:
    """Keep facts of live memories, given by their rows. The groups are still to be settled."""
    listed = list(written)
    if not listed:
        return set()
    values = [
        (
            each.id, row, each.space, each.subject, each.predicate, each.object, each.type, each.confidence,
            each.decay_rate, microseconds(each.reinforced), microseconds(each.touched), microseconds(each.valid_from),
            maybe_microseconds(each.valid_to), None, each.quote, int(each.relation), int(each.single), each.origin,
            maybe_microseconds(each.ends), *said(each),
        )
        for row, each in listed
    ]  # fmt: skip
    sql = f"INSERT INTO facts ({_WRITTEN}) SELECT {json_columns(22)} FROM json_each(?) WHERE true RETURNING id, fact"
    number_of = dict(fetch(db, sql, (to_json(values),)))
    _index_words(db, [(number_of[each.id], each) for _, each in listed if each.relation])
    return {(each.space, *said(each)[:2]) for _, each in listed}


def _index_words(db: apsw.Connection, relations: Iterable[tuple[int, Fact]]) -> None:
    listed = [
        (each.space, word, number)
        for number, each in relations
        for word in relation_words(each.subject, each.predicate, each.object)
    ]
    if listed:
        db.execute(
            "INSERT OR IGNORE INTO relation_words SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
            (to_json(listed),),
        )


def remove(db: apsw.Connection, clause: Clause) -> set[Group]:
    """Delete facts. The groups are still to be settled."""
    gone = fetch(
        db, f"DELETE FROM facts AS f WHERE {clause.sql} RETURNING space, subject_key, predicate_key", clause.parameters
    )
    return {(space, subject, predicate) for space, subject, predicate in gone}


def groups_of(db: apsw.Connection, rows: Sequence[int]) -> set[Group]:
    sql = (
        "SELECT DISTINCT space, subject_key, predicate_key FROM facts "
        "WHERE single = 1 AND row IN (SELECT value FROM json_each(?))"
    )
    return {(space, subject, predicate) for space, subject, predicate in fetch(db, sql, (to_json(list(rows)),))}


def restored(db: apsw.Connection, rows: Sequence[int]) -> None:
    """Relations of memories that are live again are found again."""
    sql = f"SELECT f.fact, {COLUMNS} {_FROM} WHERE f.relation = 1 AND f.row IN (SELECT value FROM json_each(?))"
    _index_words(db, [(number, fact(columns)) for number, *columns in fetch(db, sql, (to_json(list(rows)),))])


def settle(db: apsw.Connection, groups: Iterable[Group]) -> None:
    """Which fact of each group holds until when."""
    seen: set[str] = set()
    for space, subject, predicate in sorted(groups):
        names = _names(db, space, subject)
        sql = (
            f"SELECT {COLUMNS} {_FROM} WHERE f.space = ? AND f.predicate_key = ? AND m.deleted_us IS NULL "
            f"AND f.subject_key IN ({marks(names)})"
        )
        found = [fact(row) for row in fetch(db, sql, (space, predicate, *names))]
        if not found or found[0].id in seen:
            continue
        seen.update(each.id for each in found)
        before = {each.id: each for each in found}
        changed = [each for each in supersession.settled(found) if each != before[each.id]]
        db.executemany(
            "UPDATE facts SET valid_to_us = ?, superseded_by = ? WHERE id = ?",
            ((maybe_microseconds(each.valid_to), each.superseded_by, each.id) for each in changed),
        )


def _names(db: apsw.Connection, space: str, key: str) -> list[str]:
    """All names of what has this name."""
    return [name for (name,) in fetch(db, _NAMES.format("?"), (space, key))] or [key]


def update(db: apsw.Connection, changed: Sequence[Fact]) -> set[Group]:
    """Write how far facts are believed, and since when. The groups are still to be settled."""
    db.executemany(
        "UPDATE facts SET confidence = ?, reinforced_us = ?, touched_us = ? WHERE id = ?",
        ((each.confidence, microseconds(each.reinforced), microseconds(each.touched), each.id) for each in changed),
    )
    return {(each.space, *said(each)[:2]) for each in changed}


# ---------------------------------------------------------------- reading


def by_ids(db: apsw.Connection, ids: Sequence[str]) -> list[Fact]:
    sql = f"SELECT {COLUMNS} {_FROM} WHERE f.id IN (SELECT value FROM json_each(?))"
    return [fact(row) for row in fetch(db, sql, (to_json(list(ids)),))]


def by_rows(db: apsw.Connection, memory_rows: Sequence[int]) -> list[tuple[int, Fact]]:
    sql = f"SELECT f.row, {COLUMNS} {_FROM} WHERE f.row IN (SELECT value FROM json_each(?)) ORDER BY f.fact"
    return [(row, fact(columns)) for row, *columns in fetch(db, sql, (to_json(list(memory_rows)),))]


def by_memory(db: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """The facts of memories, in the order they were written."""
    sql = "SELECT row FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    memory_rows = [row for (row,) in fetch(db, sql, (to_json(list(memory_ids)),))]
    found: defaultdict[str, list[Fact]] = defaultdict(list)
    for _, each in by_rows(db, memory_rows):
        found[each.memory_id].append(each)
    return {memory_id: tuple(facts) for memory_id, facts in found.items()}


def listed(db: apsw.Connection, query: FactQuery) -> list[Fact]:
    """Facts of live memories, the newest first."""
    clause = _holding(query.as_of) if query.as_of is not None and not query.history else Clause("1", ())
    clause &= Clause(f"m.deleted_us IS NULL AND f.space IN ({marks(query.spaces)})", tuple(query.spaces))
    for column, name in (("subject_key", query.subject), ("object_key", query.object)):
        if name is not None:
            clause &= _called(column, fold(name))
    if query.predicate is not None:
        clause &= Clause("f.predicate_key = ?", (predicate_words(query.predicate),))
    if query.type is not None:
        clause &= Clause("f.type = ?", (query.type,))
    if query.memory_id is not None:
        clause &= Clause("m.id = ?", (query.memory_id,))
    if query.relations:
        clause &= Clause("f.relation = 1", ())
    sql = f"SELECT {COLUMNS} {_FROM} WHERE {clause.sql} ORDER BY f.valid_from_us DESC, f.id DESC LIMIT ?"
    return [fact(row) for row in fetch(db, sql, (*clause.parameters, query.limit))]


def _holding(at: datetime) -> Clause:
    us = microseconds(at)
    return Clause("f.valid_from_us <= ? AND (f.valid_to_us IS NULL OR f.valid_to_us > ?)", (us, us))


def _called(column: str, key: str) -> Clause:
    return Clause(f"(f.{column} = ? OR f.{column} IN ({_NAMES.format('f.space')}))", (key, key))


def conflicting(db: apsw.Connection, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
    """Groups of single-valued facts of which several hold at once, with different objects."""
    clause = _holding(at) & Clause(
        f"m.deleted_us IS NULL AND f.single = 1 AND f.space IN ({marks(spaces)})", tuple(spaces)
    )
    sql = (
        f"SELECT f.space, coalesce('=' || n.entity, f.subject_key), f.predicate_key, {COLUMNS} {_FROM} "
        "LEFT JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key "
        f"WHERE {clause.sql} AND (f.space, f.predicate_key) IN ("
        "SELECT space, predicate_key FROM facts WHERE single = 1 GROUP BY space, predicate_key "
        "HAVING count(DISTINCT object_key) > 1) ORDER BY 1, 2, 3, f.valid_from_us, f.id"
    )
    groups: defaultdict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for space, subject, predicate, *columns in fetch(db, sql, clause.parameters):
        groups[space, subject, predicate].append(fact(columns))
    return [found for facts in groups.values() if (found := supersession.disagreeing(facts, at))]


def relations_of(
    db: apsw.Connection, spaces: Sequence[str], keys: Sequence[str], at: datetime, limit: int
) -> list[Fact]:
    """Relations that hold then, from or to what has one of these names."""
    clause = _holding(at) & Clause(
        f"m.deleted_us IS NULL AND f.relation = 1 AND f.space IN ({marks(spaces)}) "
        "AND (f.subject_key IN (SELECT value FROM json_each(?)) OR f.object_key IN (SELECT value FROM json_each(?)))",
        (*spaces, to_json(list(keys)), to_json(list(keys))),
    )
    sql = f"SELECT {COLUMNS} {_FROM} WHERE {clause.sql} ORDER BY f.valid_from_us DESC, f.id DESC LIMIT ?"
    return [fact(row) for row in fetch(db, sql, (*clause.parameters, limit))]


def relations(
    db: apsw.Connection, terms: Sequence[Term], spaces: Sequence[str], at: datetime, limit: int
) -> list[tuple[Fact, float]]:
    """Relations by BM25 without length normalisation: each word that a relation has adds its idf."""
    wanted = {term.text: term for term in significant_terms(terms) if not term.prefix}
    in_spaces = f"w.space IN ({marks(spaces)})"
    sql = (
        "SELECT w.word, count(*) FROM json_each(?) AS j CROSS JOIN relation_words AS w "
        f"ON {in_spaces} AND w.word = j.value GROUP BY 1"
    )
    having = dict(fetch(db, sql, (to_json(list(wanted)), *spaces)))
    if not having:
        return []
    # Counted from the index alone, so forgotten ones count, too: this weighs words, and finds nothing.
    counted = f"SELECT count(*) FROM facts WHERE relation = 1 AND space IN ({marks(spaces)})"
    total = db.execute(counted, tuple(spaces)).get
    postings = 0
    scores: defaultdict[int, float] = defaultdict(float)
    for word, count in sorted(having.items(), key=lambda each: (each[1], each[0])):
        if postings and postings + count > _POSTINGS_MAX:
            break
        postings += count
        weight = idf(total, count, common=wanted[word].common)
        for (number,) in db.execute(
            f"SELECT w.fact FROM relation_words AS w WHERE {in_spaces} AND w.word = ?", (*spaces, word)
        ):
            scores[number] += weight
    best = sorted(scores, key=lambda number: (-scores[number], -number))
    clause = _holding(at)
    sql = f"SELECT f.fact, {COLUMNS} {_FROM} WHERE f.fact IN (SELECT value FROM json_each(?)) AND {clause.sql}"
    found: list[tuple[Fact, float]] = []
    for start in range(0, len(best), 2 * limit):  # most hold, so that the first rows are mostly enough
        numbers = best[start : start + 2 * limit]
        holding = {number: fact(columns) for number, *columns in fetch(db, sql, (to_json(numbers), *clause.parameters))}
        found += [(holding[number], scores[number]) for number in numbers if number in holding]
        if len(found) >= limit:
            break
    return found[:limit]
