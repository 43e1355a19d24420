"""Facts and relations as rows. Every function runs inside a transaction that its caller holds.

A fact is written with its memory. A newer fact of the same subject and predicate may supersede an older one: the end
and the successor of each fact are computed by group and stored. Relations are found by their words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import apsw

from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.errors import NotFound
from nacre.facts import supersession
from nacre.facts.confidence import effective_confidence
from nacre.facts.statements import named_entities, statement_key
from nacre.query.ast import Term, significant_terms
from nacre.ranking.bm25 import idf
from nacre.storage.sqlite import change_log, entities, near_duplicates
from nacre.storage.sqlite.filters import EVERYTHING, LIVE, Clause, one_of, placeholders
from nacre.storage.sqlite.rows import (
    fetch,
    json_columns,
    maybe_microseconds,
    maybe_moment,
    microseconds,
    moment,
    to_json,
)
from nacre.storage.sqlite.writes import live_rows, log_events
from nacre.types.facts import Fact, FactQuery, NewEntity
from nacre.types.memory import Entry, Tokens
from nacre.types.stats import Frequencies

Group = tuple[str, str, str]  # space, subject key, predicate key: facts of one group may supersede each other

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

_COLUMNS = (
    "f.id, m.id, f.space, f.subject, f.predicate, f.object, f.type, f.confidence, f.decay_rate, f.reinforced_us, "
    "f.touched_us, f.valid_from_us, f.valid_to_us, f.superseded_by, f.quote, f.relation, f.single, f.origin, f.ends_us"
)
_FROM = "FROM facts AS f JOIN memories AS m ON m.row = f.row"
_INSERTED = (
    "id, row, space, subject, predicate, object, type, confidence, decay_rate, reinforced_us, touched_us, "
    "valid_from_us, valid_to_us, superseded_by, quote, relation, single, origin, ends_us, subject_key, "
    "predicate_key, object_key"
)
# All names of the entity that has a given name in a space.
_NAMES = (
    "SELECT other.key FROM entity_names AS this JOIN entity_names AS other ON other.entity = this.entity "
    "WHERE this.space = {} AND this.key = ?"
)
_NEWEST_FIRST = "ORDER BY f.valid_from_us DESC, f.id DESC"
_RELATION = Clause("f.relation = 1", ())
_POSTINGS_MAX = 2_000  # relation words read in one search, the rarest first


def _fact(row: Sequence[Any]) -> Fact:
    """A fact from a row of _COLUMNS."""
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


def add(db: apsw.Connection, new: Sequence[Fact], at: datetime) -> None:
    """Add facts to live memories. Raises NotFound."""
    row_of = live_rows(db, [each.memory_id for each in new])
    groups = _insert(db, [(row_of[each.memory_id], each) for each in new])
    entities.put_all(db, _entities_of(new))
    update_supersession(db, groups)
    changed = dict.fromkeys((row_of[each.memory_id], each.space, each.memory_id, None) for each in new)
    log_events(db, "facts added", changed, at)


def drop(db: apsw.Connection, ids: Sequence[str], at: datetime) -> None:
    """Delete facts, and entities that no memory is about any more. Raises NotFound."""
    found = {each.id: each for each in by_ids(db, ids)}
    missing = tuple(each for each in ids if each not in found)
    if missing:
        raise NotFound(missing, "see `nacre fact list`", what="fact")
    memory_ids = dict.fromkeys(each.memory_id for each in found.values())
    sql = "SELECT row, space, id, NULL FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    changed = fetch(db, sql, (to_json(list(memory_ids)),))
    for each in found.values():
        change_log.note(db, "fact", each.space, [each.id], gone=True)
    remove(db, ids)
    log_events(db, "facts dropped", changed, at)


def remove(db: apsw.Connection, ids: Sequence[str]) -> None:
    """Delete facts that are there, and entities that no memory is about any more."""
    numbers = to_json(list(ids))
    of_these = "SELECT DISTINCT row FROM facts WHERE id IN (SELECT value FROM json_each(?))"
    linked = entities.of_rows(db, [row for (row,) in fetch(db, of_these, (numbers,))])
    update_supersession(db, _delete(db, Clause("f.id IN (SELECT value FROM json_each(?))", (numbers,))))
    entities.drop_unlinked(db, linked)


def take(db: apsw.Connection, row: int, fact: Fact, *, is_live: bool) -> None:
    """Insert a fact of another store. That of a forgotten memory stays as it was when the memory was forgotten."""
    groups = _insert(db, [(row, fact)])
    if is_live:
        update_supersession(db, groups)
        return
    db.execute("UPDATE facts SET superseded_by = ? WHERE id = ?", (fact.superseded_by, fact.id))
    db.execute("DELETE FROM relation_words WHERE fact = (SELECT fact FROM facts WHERE id = ?)", (fact.id,))


def update_confidence(db: apsw.Connection, changed: Sequence[Fact]) -> None:
    """Write the confidence of facts and when it was last reinforced."""
    known = {each.id for each in by_ids(db, [each.id for each in changed])}
    for each in changed:
        if each.id in known:
            change_log.note(db, "fact", each.space, [each.id])
    db.executemany(
        "UPDATE facts SET confidence = ?, reinforced_us = ?, touched_us = ? WHERE id = ?",
        ((each.confidence, microseconds(each.reinforced), microseconds(each.touched), each.id) for each in changed),
    )
    update_supersession(db, {_group(each) for each in changed})


def put_entity(db: apsw.Connection, space: str, new: NewEntity, memory_ids: Sequence[str]) -> None:
    """Add an entity and link it with live memories. Entities that become one join their groups. Raises NotFound."""
    row_of = live_rows(db, memory_ids, space)
    entity = entities.put(db, space, new, kept=True)
    entities.link(db, entity, row_of.values())
    change_log.note(db, "entity", space, [fold(new.name)])
    update_supersession(db, groups_of_entity(db, entity))


def drop_entity(db: apsw.Connection, space: str, name: str) -> bool:
    """Delete an entity. Its names do not join groups any more. False where there is none."""
    entity = entities.number_of(db, space, name)
    if entity is None:
        return False
    change_log.note(db, "entity", space, entities.keys_of(db, entity), gone=True)
    remove_entity(db, entity)
    return True


def remove_entity(db: apsw.Connection, entity: int) -> None:
    groups = groups_of_entity(db, entity)
    db.execute("DELETE FROM entities WHERE entity = ?", (entity,))
    update_supersession(db, groups)


def write_entries(
    db: apsw.Connection, written: Sequence[tuple[int, Entry]], *, changed: bool = False, below: int | None = None
) -> None:
    """Write the facts, entities and near-duplicates of memories that are new or, if `changed`, have a new text.

    Near-duplicates are looked for as by `near_duplicates.link`.
    """
    groups = _insert(db, [(row, fact) for row, entry in written for fact in entry.facts])
    new: list[tuple[str, NewEntity, int | None]] = []
    for row, entry in written:
        if entry.facts:
            new += _entities_of(entry.facts)
        if entry.entities:
            new += [(entry.memory.space, each, row) for each in entry.entities]
    for entity in entities.put_all(db, new):
        groups |= groups_of_entity(db, entity)
    update_supersession(db, groups)
    near_duplicates.link(db, written, later=changed, below=below)


def rewrite_entry(db: apsw.Connection, row: int, entry: Entry, before: Tokens, *, below: int | None = None) -> None:
    """Replace what was extracted from the old text of a memory, whose tokens are `before`."""
    linked = entities.of_rows(db, [row])
    groups = _delete(db, Clause("f.row = ? AND f.origin = 'extracted'", (row,)))
    near_duplicates.unlink(db, row)
    near_duplicates.unsketch(db, [(row, entry.memory.space, before)])
    write_entries(db, [(row, entry)], changed=True, below=below)
    entities.drop_unlinked(db, linked)
    update_supersession(db, groups)


def index_relations(db: apsw.Connection, memory_rows: Sequence[int]) -> None:
    """Make the relations of restored memories searchable again."""
    sql = f"SELECT f.fact, {_COLUMNS} {_FROM} WHERE f.relation = 1 AND f.row IN (SELECT value FROM json_each(?))"
    found = fetch(db, sql, (to_json(list(memory_rows)),))
    _index_words(db, [(number, _fact(columns)) for number, *columns in found])


def groups_of_rows(db: apsw.Connection, memory_rows: Sequence[int]) -> set[Group]:
    """The groups in which facts of these memories may supersede others."""
    sql = (
        "SELECT DISTINCT space, subject_key, predicate_key FROM facts "
        "WHERE single = 1 AND row IN (SELECT value FROM json_each(?))"
    )
    return _groups(db, sql, (to_json(list(memory_rows)),))


def update_supersession(db: apsw.Connection, groups: Iterable[Group]) -> None:
    """Compute the end and the successor of each fact of these groups again."""
    seen: set[str] = set()
    for space, subject, predicate in sorted(groups):
        names = [name for (name,) in fetch(db, _NAMES.format("?"), (space, subject))] or [subject]
        clause = Clause("f.space = ? AND f.predicate_key = ?", (space, predicate)) & LIVE
        clause &= one_of("f.subject_key", names)
        found = _select(db, clause)
        if not found or found[0].id in seen:
            continue
        seen.update(each.id for each in found)
        before = {each.id: each for each in found}
        changed = [each for each in supersession.apply_supersession(found) if each != before[each.id]]
        db.executemany(
            "UPDATE facts SET valid_to_us = ?, superseded_by = ? WHERE id = ?",
            ((maybe_microseconds(each.valid_to), each.superseded_by, each.id) for each in changed),
        )


def _insert(db: apsw.Connection, new: Sequence[tuple[int, Fact]]) -> set[Group]:
    """Insert facts, given with the row of their memory. The caller updates the supersession of the groups."""
    if not new:
        return set()
    values = [
        (
            each.id, row, each.space, each.subject, each.predicate, each.object, each.type, each.confidence,
            each.decay_rate, microseconds(each.reinforced), microseconds(each.touched), microseconds(each.valid_from),
            maybe_microseconds(each.valid_to), None, each.quote, int(each.relation), int(each.single), each.origin,
            maybe_microseconds(each.ends), *statement_key(each),
        )
        for row, each in new
    ]  # fmt: skip
    sql = f"INSERT INTO facts ({_INSERTED}) SELECT {json_columns(22)} FROM json_each(?) WHERE true RETURNING id, fact"
    number_of = dict(fetch(db, sql, (to_json(values),)))
    _index_words(db, [(number_of[each.id], each) for _, each in new if each.relation])
    return {_group(each) for _, each in new}


def _delete(db: apsw.Connection, clause: Clause) -> set[Group]:
    """Delete facts. The caller updates the supersession of the groups."""
    sql = f"DELETE FROM facts AS f WHERE {clause.sql} RETURNING space, subject_key, predicate_key"
    return _groups(db, sql, clause.parameters)


def _index_words(db: apsw.Connection, relations: Iterable[tuple[int, Fact]]) -> None:
    listed = [
        (each.space, word, number)
        for number, each in relations
        for word in relation_words(each.subject, each.predicate, each.object)
    ]
    if listed:
        db.execute(
            f"INSERT OR IGNORE INTO relation_words SELECT {json_columns(3)} FROM json_each(?)", (to_json(listed),)
        )


def _entities_of(stated: Sequence[Fact]) -> list[tuple[str, NewEntity, int | None]]:
    """The entities that facts name. They need no link to a memory: the facts name them."""
    return [(each.space, NewEntity(name=name), None) for each in stated for name in named_entities(each)]


def _group(fact: Fact) -> Group:
    subject, predicate, _ = statement_key(fact)
    return fact.space, subject, predicate


def groups_of_entity(db: apsw.Connection, entity: int) -> set[Group]:
    sql = (
        "SELECT DISTINCT f.space, f.subject_key, f.predicate_key FROM entity_names AS n "
        "JOIN facts AS f ON f.space = n.space AND f.subject_key = n.key WHERE n.entity = ?"
    )
    return _groups(db, sql, (entity,))


def _groups(db: apsw.Connection, sql: str, parameters: tuple[Any, ...]) -> set[Group]:
    return {(space, subject, predicate) for space, subject, predicate in fetch(db, sql, parameters)}


# ---------------------------------------------------------------- reading


def by_ids(db: apsw.Connection, ids: Sequence[str]) -> list[Fact]:
    return _select(db, Clause("f.id IN (SELECT value FROM json_each(?))", (to_json(list(ids)),)))


def by_rows(db: apsw.Connection, memory_rows: Sequence[int]) -> dict[int, tuple[Fact, ...]]:
    """By row of a memory, its facts in the order they were written."""
    sql = f"SELECT f.row, {_COLUMNS} {_FROM} WHERE f.row IN (SELECT value FROM json_each(?)) ORDER BY f.fact"
    found: defaultdict[int, list[Fact]] = defaultdict(list)
    for row, *columns in fetch(db, sql, (to_json(list(memory_rows)),)):
        found[row].append(_fact(columns))
    return {row: tuple(facts) for row, facts in found.items()}


def every(db: apsw.Connection, clause: Clause) -> Iterator[tuple[Fact, bytes]]:
    """Facts with the hashes of their memories' texts, in the order they were written."""
    sql = f"SELECT {_COLUMNS}, m.content_hash {_FROM} WHERE {clause.sql} ORDER BY f.fact"
    for *columns, content_hash in db.execute(sql, clause.parameters):
        yield _fact(columns), content_hash


def labels_of_others(db: apsw.Connection, memory_rows: Sequence[int]) -> Iterator[str]:
    """The metadata of all memories but these, as JSON, and the words of their facts."""
    others = "row NOT IN (SELECT value FROM json_each(?1))"
    sql = (
        f"SELECT metadata FROM memories WHERE metadata <> '{{}}' AND {others} UNION ALL "
        f"SELECT subject || ' ' || predicate || ' ' || object || ' ' || ifnull(quote, '') FROM facts WHERE {others}"
    )
    return (text for (text,) in db.execute(sql, (to_json(list(memory_rows)),)))


def by_memory(db: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """By id of a memory, its facts in the order they were written."""
    sql = "SELECT row FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    memory_rows = [row for (row,) in fetch(db, sql, (to_json(list(memory_ids)),))]
    return {facts[0].memory_id: facts for facts in by_rows(db, memory_rows).values()}


def listed(db: apsw.Connection, query: FactQuery) -> list[Fact]:
    """Facts of live memories, the newest first."""
    clause = _current_clause(query.as_of) if query.as_of is not None and not query.history else EVERYTHING
    clause &= LIVE & one_of("f.space", query.spaces)
    for column, name in (("subject_key", query.subject), ("object_key", query.object)):
        if name is not None:
            clause &= _name_clause(column, fold(name))
    if query.predicate is not None:
        clause &= Clause("f.predicate_key = ?", (predicate_words(query.predicate),))
    if query.type is not None:
        clause &= Clause("f.type = ?", (query.type,))
    if query.memory_id is not None:
        clause &= Clause("m.id = ?", (query.memory_id,))
    if query.relations:
        clause &= _RELATION
    if not query.min_confidence or query.as_of is None:
        return _select(db, clause, f"{_NEWEST_FIRST} LIMIT ?", query.limit)
    clause &= Clause("f.confidence >= ?", (query.min_confidence,))  # it only fades
    facts = map(_fact, db.execute(f"SELECT {_COLUMNS} {_FROM} WHERE {clause.sql} {_NEWEST_FIRST}", clause.parameters))
    sure = (each for each in facts if effective_confidence(each, query.as_of) >= query.min_confidence)
    return list(islice(sure, query.limit))


def conflicting(db: apsw.Connection, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
    """Groups of single-valued facts of which several are current, with different objects."""
    clause = _current_clause(at) & LIVE & Clause("f.single = 1", ()) & one_of("f.space", spaces)
    sql = (
        f"SELECT f.space, coalesce('=' || n.entity, f.subject_key), f.predicate_key, {_COLUMNS} {_FROM} "
        "LEFT JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key "
        f"WHERE {clause.sql} AND (f.space, f.predicate_key) IN ("
        "SELECT space, predicate_key FROM facts WHERE single = 1 GROUP BY space, predicate_key "
        "HAVING count(DISTINCT object_key) > 1) ORDER BY 1, 2, 3, f.valid_from_us, f.id"
    )
    groups: defaultdict[Group, list[Fact]] = defaultdict(list)
    for space, subject, predicate, *columns in fetch(db, sql, clause.parameters):
        groups[space, subject, predicate].append(_fact(columns))
    return [found for facts in groups.values() if (found := supersession.conflicting(facts, at))]


def relations_of(
    db: apsw.Connection, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int
) -> list[Fact]:
    """Current relations from or to one of these names, the newest first."""
    keys = to_json([fold(name) for name in names])
    clause = _current_clause(at) & LIVE & _RELATION & one_of("f.space", spaces)
    clause &= Clause(
        "(f.subject_key IN (SELECT value FROM json_each(?)) OR f.object_key IN (SELECT value FROM json_each(?)))",
        (keys, keys),
    )
    return _select(db, clause, f"{_NEWEST_FIRST} LIMIT ?", limit)


def search_relations(
    db: apsw.Connection,
    terms: Sequence[Term],
    spaces: Sequence[str],
    at: datetime,
    limit: int,
    frequencies: Frequencies | None = None,
) -> list[tuple[Fact, float]]:
    """The best current relations with their scores: a relation scores the sum of the idfs of the terms it has.

    That is BM25 for texts in which each word occurs once and whose length does not matter.
    """
    scores = _relation_scores(db, terms, spaces, frequencies)
    best = sorted(scores, key=lambda number: (-scores[number], -number))
    clause = _current_clause(at)
    sql = f"SELECT f.fact, {_COLUMNS} {_FROM} WHERE f.fact IN (SELECT value FROM json_each(?)) AND {clause.sql}"
    found: list[tuple[Fact, float]] = []
    for start in range(0, len(best), 2 * limit):  # most are current, so the first batch is usually enough
        numbers = best[start : start + 2 * limit]
        current = {
            number: _fact(columns) for number, *columns in fetch(db, sql, (to_json(numbers), *clause.parameters))
        }
        found += [(current[number], scores[number]) for number in numbers if number in current]
        if len(found) >= limit:
            break
    return found[:limit]


def relation_frequencies(db: apsw.Connection, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
    """How many relations these spaces have, and how many of them have each word."""
    return Frequencies(_relations(db, spaces), _relations_having(db, words, spaces))


def _relations(db: apsw.Connection, spaces: Sequence[str]) -> int:
    """Counted from an index alone, so relations of forgotten memories count, too. This only weighs words."""
    counted = f"SELECT count(*) FROM facts WHERE relation = 1 AND space IN ({placeholders(spaces)})"
    return int(db.execute(counted, tuple(spaces)).get)


def _relations_having(db: apsw.Connection, words: Sequence[str], spaces: Sequence[str]) -> dict[str, int]:
    sql = (
        "SELECT w.word, count(*) FROM json_each(?) AS j CROSS JOIN relation_words AS w "
        f"ON w.space IN ({placeholders(spaces)}) AND w.word = j.value GROUP BY 1"
    )
    return dict(fetch(db, sql, (to_json(list(words)), *spaces)))


def _relation_scores(
    db: apsw.Connection, terms: Sequence[Term], spaces: Sequence[str], frequencies: Frequencies | None
) -> dict[int, float]:
    """Scores by number of the fact. Stops at a bounded number of postings, so the most frequent words may not count."""
    wanted = {term.text: term for term in significant_terms(terms) if not term.prefix}
    in_spaces = f"w.space IN ({placeholders(spaces)})"
    having = _relations_having(db, list(wanted), spaces) if frequencies is None else frequencies.having
    if not having:
        return {}
    total = _relations(db, spaces) if frequencies is None else frequencies.memories
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
    return scores


def _select(db: apsw.Connection, clause: Clause, order: str = "", *parameters: int) -> list[Fact]:
    sql = f"SELECT {_COLUMNS} {_FROM} WHERE {clause.sql} {order}"
    return [_fact(row) for row in fetch(db, sql, (*clause.parameters, *parameters))]


def _current_clause(at: datetime) -> Clause:
    us = microseconds(at)
    return Clause("f.valid_from_us <= ? AND (f.valid_to_us IS NULL OR f.valid_to_us > ?)", (us, us))


def _name_clause(column: str, key: str) -> Clause:
    """Facts that have this name, or another one of the same entity, in a column."""
    return Clause(f"(f.{column} = ? OR f.{column} IN ({_NAMES.format('f.space')}))", (key, key))
