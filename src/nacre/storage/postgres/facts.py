"""Facts and relations as rows. Every function runs inside a transaction that its caller holds.

A fact is written with its memory. A newer fact of the same subject and predicate may supersede an older one: the end
and the successor of each fact are computed by group and stored. Relations are found by their words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from itertools import groupby, islice
from typing import Any, TypeAlias

from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.errors import NotFound
from nacre.facts import supersession
from nacre.facts.confidence import effective_confidence
from nacre.facts.statements import named_entities, statement_key
from nacre.query.ast import Term, significant_terms
from nacre.ranking.bm25 import idf
from nacre.storage.postgres import change_log, counters, entities, space_usage
from nacre.storage.postgres.connection import copy, fetch, hold, run, value
from nacre.storage.postgres.entities import Number, Put
from nacre.storage.postgres.rows import Key, columns_of, maybe_microseconds, maybe_moment, microseconds, moment
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import Touched, live_keys, log_events, numbers
from nacre.types.facts import Fact, FactQuery, NewEntity
from nacre.types.memory import Entry
from nacre.types.quotas import Quotas
from nacre.types.stats import Frequencies

Group: TypeAlias = tuple[str, str, str]  # space, subject key, predicate key: facts of one may supersede each other
_Place: TypeAlias = tuple[str, int | None, str | None, str]  # space, entity of the subject or else its key, predicate

COLUMNS = (
    "f.id, m.id, f.space, f.subject, f.predicate, f.object, f.type, f.confidence, f.decay_rate, f.reinforced_us, "
    "f.touched_us, f.valid_from_us, f.valid_to_us, f.superseded_by, f.quote, f.relation, f.single, f.origin, f.ends_us"
)
FROM = "FROM facts AS f JOIN memories AS m ON m.space = f.space AND m.row = f.row"
_WRITTEN = (
    "fact, id, row, space, subject, predicate, object, type, confidence, decay_rate, reinforced_us, touched_us, "
    "valid_from_us, valid_to_us, superseded_by, quote, relation, single, origin, ends_us, subject_key, predicate_key, "
    "object_key"
)
_WRITTEN_TYPES = (
    *("int8", "text", "int8", "text", "text", "text", "text", "text", "float8", "float8", "int8", "int8"),
    *("int8", "int8", "text", "text", "bool", "bool", "text", "int8", "text", "text", "text"),
)
_LIVE = "m.deleted_us IS NULL"
_CURRENT = "f.valid_from_us <= %s AND (f.valid_to_us IS NULL OR f.valid_to_us > %s)"
_NEWEST_FIRST = "ORDER BY f.valid_from_us DESC, f.id DESC"
_OF_KEYS = "(f.space, f.row) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
_POSTINGS_MAX = 2_000  # relation words read in one search, the rarest first

# The facts of groups, with those of the same predicate that have another name of the subject. `entity` and `alone`
# tell groups apart: the entity of the subject or, without one, its name.
_MEMBERS = """
FROM (
  SELECT DISTINCT given.space, n.entity, CASE WHEN n.entity IS NULL THEN given.subject END AS alone, given.predicate,
    coalesce(o.key, given.subject) AS subject
  FROM unnest(%s::text[], %s::text[], %s::text[]) AS given (space, subject, predicate)
  LEFT JOIN entity_names AS n ON n.space = given.space AND n.key = given.subject
  LEFT JOIN entity_names AS o ON o.space = n.space AND o.entity = n.entity
) AS g
JOIN facts AS f ON f.space = g.space AND f.subject_key = g.subject AND f.predicate_key = g.predicate
JOIN memories AS m ON m.space = f.space AND m.row = f.row AND m.deleted_us IS NULL
"""
# Single-valued facts that are current, where a group has several objects: then the least of them is not the greatest.
_CONFLICTING = f"""
SELECT * FROM (
  SELECT n.entity, f.subject_key, f.predicate_key, min(f.object_key) OVER same AS least,
    max(f.object_key) OVER same AS most, {COLUMNS}
  {FROM} LEFT JOIN entity_names AS n ON n.space = f.space AND n.key = f.subject_key
  WHERE f.space = ANY(%s) AND f.single AND {_LIVE} AND {_CURRENT}
  WINDOW same AS (
    PARTITION BY f.space, n.entity, CASE WHEN n.entity IS NULL THEN f.subject_key END, f.predicate_key
  )
) AS found WHERE least <> most
"""


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
        relation=relation,
        single=single,
        origin=origin,
        ends=maybe_moment(ends_us),
    )


# ---------------------------------------------------------------- verbs: they hold the spaces that they write to


def add(db: Db, new: Sequence[Fact], at: datetime, quotas: Quotas) -> None:
    """Add facts to live memories, within the quotas. Raises NotFound."""
    spaces = {each.space for each in new}
    hold(db, spaces)
    held = space_usage.held(db, quotas, spaces)
    key_of = live_keys(db, [each.memory_id for each in new])
    groups = _insert(db, [(key_of[each.memory_id][1], each) for each in new])
    entities.put_all(db, _entities_of(new))
    update_supersession(db, groups)
    space_usage.check(db, quotas, held)
    log_events(db, "facts added", dict.fromkeys(Touched(*key_of[each.memory_id], each.memory_id) for each in new), at)


def drop(db: Db, ids: Sequence[str], at: datetime) -> None:
    """Delete facts, and entities that no memory is about any more. Raises NotFound."""
    hold(db, (space for (space,) in fetch(db, "SELECT DISTINCT space FROM facts WHERE id = ANY(%s)", (list(ids),))))
    found = {each.id: each for each in by_ids(db, ids)}
    missing = tuple(each for each in ids if each not in found)
    if missing:
        raise NotFound(missing, "see `nacre fact list`", what="fact")
    dropped = [found[each] for each in dict.fromkeys(ids)]
    memory_ids = list(dict.fromkeys(each.memory_id for each in dropped))
    sql = "SELECT id, space, row FROM memories WHERE id = ANY(%s)"
    touched = {each[0]: Touched(each[1], each[2], each[0]) for each in fetch(db, sql, (memory_ids,))}
    remove(db, ids)
    _note(db, dropped, gone=True)
    log_events(db, "facts dropped", [touched[each] for each in memory_ids], at)


def update_confidence(db: Db, changed: Sequence[Fact]) -> None:
    """Write the confidence of facts and when it was last reinforced. Bumps the revision."""
    hold(db, {each.space for each in changed})
    write_confidence(db, changed)
    counters.bump_revision(db)


def put_entity(db: Db, space: str, new: NewEntity, memory_ids: Sequence[str]) -> None:
    """Add an entity and link it with live memories. Raises NotFound. Bumps the revision.

    Entities that become one join their groups.
    """
    hold(db, [space])
    linked = [row for _, row in live_keys(db, memory_ids, space).values()]
    put = Put(space, new, linked, kept=True)
    entities.put_all(db, [put])
    number = entities.number_of(db, space, new.name)
    assert number is not None
    update_supersession(db, groups_of_entities(db, [(space, number)]))
    change_log.note(db, "entity", space, [fold(new.name)])
    counters.bump_revision(db)


def drop_entity(db: Db, space: str, name: str) -> bool:
    """Delete an entity. Its names do not join groups any more. False where there is none.

    Bumps the revision if there was one.
    """
    hold(db, [space])
    number = entities.number_of(db, space, name)
    if number is None:
        return False
    keys = entities.keys_of(db, space, number)
    remove_entity(db, (space, number))
    change_log.note(db, "entity", space, keys, gone=True)
    counters.bump_revision(db)
    return True


# ---------------------------------------------------------------- parts of other writes: their spaces are held


def write_entries(db: Db, written: Sequence[tuple[int, Entry]]) -> None:
    """Write the facts and entities of memories that are new or have a new text, given with their rows."""
    update_supersession(db, _write(db, written))


def rewrite_entry(db: Db, row: int, entry: Entry) -> None:
    """Replace what was extracted from the old text of a memory."""
    key = entry.memory.space, row
    linked = entities.of_keys(db, [key])
    groups = _delete(db, "f.space = %s AND f.row = %s AND f.origin = 'extracted'", key)
    groups |= _write(db, [(row, entry)])
    entities.drop_unlinked(db, linked)
    update_supersession(db, groups)


def hidden(db: Db, keys: Sequence[Key]) -> None:
    """Memories were forgotten: their relations are not found any more, and what their facts superseded holds again."""
    run(
        db,
        "DELETE FROM relation_words AS w USING facts AS f "
        f"WHERE {_OF_KEYS} AND f.relation AND w.space = f.space AND w.fact = f.fact",
        columns_of(keys),
    )
    update_supersession(db, groups_of_keys(db, keys))


def restored(db: Db, keys: Sequence[Key]) -> None:
    """Memories are live again, with their relations and what their facts supersede."""
    sql = f"SELECT f.fact, {COLUMNS} {FROM} WHERE f.relation AND {_OF_KEYS}"
    _index_words(db, [(number, fact(columns)) for number, *columns in fetch(db, sql, columns_of(keys))])
    update_supersession(db, groups_of_keys(db, keys))


def purged(db: Db, keys: Sequence[Key]) -> None:
    """Delete the facts and links of memories, and entities that no memory is about any more. `links` are there yet."""
    linked = entities.of_keys(db, keys)
    groups = _delete(db, _OF_KEYS, columns_of(keys))
    run(
        db,
        "DELETE FROM links AS l USING unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "WHERE l.space = given.space AND l.row = given.row",
        columns_of(keys),
    )
    entities.drop_unlinked(db, linked)
    update_supersession(db, groups)


def remove(db: Db, ids: Sequence[str]) -> None:
    """Delete facts that are there, and entities that no memory is about any more."""
    sql = "SELECT DISTINCT f.space, f.row FROM facts AS f WHERE f.id = ANY(%s)"
    linked = entities.of_keys(db, [(space, row) for space, row in fetch(db, sql, (list(ids),))])
    groups = _delete(db, "f.id = ANY(%s)", (list(ids),))
    entities.drop_unlinked(db, linked)
    update_supersession(db, groups)


def take(db: Db, new: Sequence[tuple[int, Fact, bool]]) -> None:
    """Insert facts of another store, given with the row of their memory and whether that is live.

    Those of a forgotten memory stay as they were when it was forgotten.
    """
    forgotten = {(fact.space, row) for row, fact, is_live in new if not is_live}
    _insert(db, [(row, fact) for row, fact, _ in new], forgotten)
    update_supersession(db, _groups_of(fact for _, fact, is_live in new if is_live))


def write_confidence(db: Db, changed: Sequence[Fact]) -> None:
    """Write the confidence of those of these facts that are there. Of a fact given twice, the last counts."""
    given: dict[str, Fact] = {}
    for each in changed:
        given.pop(each.id, None)
        given[each.id] = each
    latest = list(given.values())
    sql = (
        "UPDATE facts AS f SET confidence = given.confidence, reinforced_us = given.reinforced_us, "
        "touched_us = given.touched_us FROM unnest(%s::text[], %s::text[], %s::float8[], %s::bigint[], %s::bigint[]) "
        "AS given (space, id, confidence, reinforced_us, touched_us) "
        "WHERE f.space = given.space AND f.id = given.id RETURNING f.id"
    )
    columns = (
        [each.space for each in latest],
        [each.id for each in latest],
        [float(each.confidence) for each in latest],
        [microseconds(each.reinforced) for each in latest],
        [microseconds(each.touched) for each in latest],
    )
    known = {fact_id for (fact_id,) in fetch(db, sql, columns)}
    written = [each for each in latest if each.id in known]
    update_supersession(db, _groups_of(written))
    _note(db, written, gone=False)


def remove_entity(db: Db, entity: Number) -> None:
    groups = groups_of_entities(db, [entity])
    entities.delete(db, [entity])
    update_supersession(db, groups)


def groups_of_keys(db: Db, keys: Iterable[Key]) -> set[Group]:
    """The groups in which facts of these memories may supersede others."""
    sql = f"SELECT DISTINCT f.space, f.subject_key, f.predicate_key FROM facts AS f WHERE f.single AND {_OF_KEYS}"
    return _groups(fetch(db, sql, columns_of(keys)))


def groups_of_entities(db: Db, numbers: Iterable[Number]) -> set[Group]:
    """The groups of facts about entities."""
    sql = (
        "SELECT DISTINCT f.space, f.subject_key, f.predicate_key FROM entity_names AS n "
        "JOIN facts AS f ON f.space = n.space AND f.subject_key = n.key AND f.single "
        "WHERE (n.space, n.entity) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
    )
    return _groups(fetch(db, sql, columns_of(numbers)))


def update_supersession(db: Db, groups: Iterable[Group]) -> None:
    """Compute the end and the successor of each single-valued fact of these groups again; the others have neither."""
    listed = sorted(groups)
    if not listed:
        return
    sql = f"SELECT g.entity, g.alone, g.predicate, {COLUMNS} {_MEMBERS} WHERE f.single"
    members: defaultdict[_Place, list[Fact]] = defaultdict(list)
    for entity, alone, predicate, *columns in fetch(db, sql, _columns(listed, 3)):
        each = fact(columns)
        members[each.space, entity, alone, predicate].append(each)
    before = {each.id: each for several in members.values() for each in several}
    after = [each for several in members.values() for each in supersession.apply_supersession(several)]
    changed = [
        (each.space, each.id, maybe_microseconds(each.valid_to), each.superseded_by)
        for each in after
        if each != before[each.id]
    ]
    if changed:
        run(
            db,
            "UPDATE facts AS f SET valid_to_us = given.valid_to_us, superseded_by = given.superseded_by "
            "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[]) "
            "AS given (space, id, valid_to_us, superseded_by) WHERE f.space = given.space AND f.id = given.id",
            _columns(changed, 4),
        )


def _write(db: Db, written: Sequence[tuple[int, Entry]]) -> set[Group]:
    """Write facts and entities. The caller updates the supersession of the groups."""
    groups = _insert(db, [(row, fact) for row, entry in written for fact in entry.facts])
    put: list[Put] = []
    for row, entry in written:
        if entry.facts:
            put += _entities_of(entry.facts)
        put += [Put(entry.memory.space, each, (row,)) for each in entry.entities]
    merged = entities.put_all(db, put)
    return groups | groups_of_entities(db, merged) if merged else groups


def _insert(db: Db, new: Sequence[tuple[int, Fact]], forgotten: Set[Key] = frozenset()) -> set[Group]:
    """Insert facts, given with the row of their memory. The caller updates the supersession of the groups."""
    if not new:
        return set()
    numbered = [(number, *each) for number, each in zip(numbers(db, "fact_numbers", len(new)), new, strict=True)]
    written = [(number, row, fact, (fact.space, row) not in forgotten) for number, row, fact in numbered]
    copy(db, f"facts ({_WRITTEN})", _WRITTEN_TYPES, (_written(*each) for each in written))
    relations = [(number, fact, is_live) for number, _, fact, is_live in written if fact.relation]
    _count_relations(db, (fact.space for _, fact, _ in relations), 1)
    _index_words(db, [(number, fact) for number, fact, is_live in relations if is_live])
    return _groups_of(each for _, each in new)


def _written(number: int, row: int, fact: Fact, is_live: bool) -> tuple[Any, ...]:
    """The values of _WRITTEN."""
    return (
        *(number, fact.id, row, fact.space, fact.subject, fact.predicate, fact.object, fact.type),
        *(float(fact.confidence), float(fact.decay_rate), microseconds(fact.reinforced), microseconds(fact.touched)),
        *(microseconds(fact.valid_from), maybe_microseconds(fact.ends if is_live else fact.valid_to)),
        *(None if is_live else fact.superseded_by, fact.quote, fact.relation, fact.single, fact.origin),
        *(maybe_microseconds(fact.ends), *statement_key(fact)),
    )


def _delete(db: Db, condition: str, parameters: Sequence[Any]) -> set[Group]:
    """Delete facts. The caller updates the supersession of the groups."""
    sql = (
        f"DELETE FROM facts AS f WHERE {condition} "
        "RETURNING f.space, f.subject_key, f.predicate_key, f.single, f.relation"
    )
    deleted = fetch(db, sql, parameters)
    _count_relations(db, (space for space, *_, relation in deleted if relation), -1)
    return _groups((space, subject, predicate) for space, subject, predicate, single, _ in deleted if single)


def _count_relations(db: Db, spaces: Iterable[str], sign: int) -> None:
    counts = Counter(spaces)
    if counts:
        run(
            db,
            "INSERT INTO relation_counts AS c SELECT * FROM unnest(%s::text[], %s::bigint[]) "
            "ON CONFLICT (space) DO UPDATE SET relations = c.relations + excluded.relations",
            (list(counts), [sign * count for count in counts.values()]),
        )


def _index_words(db: Db, relations: Iterable[tuple[int, Fact]]) -> None:
    listed = [
        (each.space, word, number)
        for number, each in relations
        for word in relation_words(each.subject, each.predicate, each.object)
    ]
    if listed:
        run(
            db,
            "INSERT INTO relation_words SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[]) "
            "ON CONFLICT (space, word, fact) DO NOTHING",
            _columns(listed, 3),
        )


def _note(db: Db, changed: Sequence[Fact], *, gone: bool) -> None:
    for space, several in groupby(changed, key=lambda each: each.space):
        change_log.note(db, "fact", space, [each.id for each in several], gone=gone)


def _entities_of(stated: Sequence[Fact]) -> list[Put]:
    """The entities that facts name. They need no link to a memory: the facts name them."""
    return [Put(each.space, NewEntity(name=name)) for each in stated for name in named_entities(each)]


def _groups_of(several: Iterable[Fact]) -> set[Group]:
    return {(each.space, *statement_key(each)[:2]) for each in several if each.single}


def _groups(found: Iterable[tuple[Any, ...]]) -> set[Group]:
    return {(space, subject, predicate) for space, subject, predicate in found}


def _columns(listed: Sequence[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """Rows as columns, to be given to `unnest`."""
    return [[each[at] for each in listed] for at in range(count)]


# ---------------------------------------------------------------- reading


def listed(db: Db, query: FactQuery) -> list[Fact]:
    """Facts of live memories, the newest first."""
    conditions, parameters = [_LIVE, "f.space = ANY(%s)"], [list(query.spaces)]

    def demand(condition: str, *given: Any) -> None:
        conditions.append(condition)
        parameters.extend(given)

    if query.as_of is not None and not query.history:
        demand(_CURRENT, *[microseconds(query.as_of)] * 2)
    for column, name in (("subject_key", query.subject), ("object_key", query.object)):
        if name is not None:
            named = _names(db, query.spaces, fold(name))
            demand(f"(f.space, f.{column}) IN (SELECT * FROM unnest(%s::text[], %s::text[]))", *_columns(named, 2))
    if query.predicate is not None:
        demand("f.predicate_key = %s", predicate_words(query.predicate))
    if query.type is not None:
        demand("f.type = %s", query.type)
    if query.memory_id is not None:
        demand("m.id = %s", query.memory_id)
    if query.relations:
        demand("f.relation")
    if not query.min_confidence or query.as_of is None:
        return _select(db, conditions, [*parameters, query.limit], f"{_NEWEST_FIRST} LIMIT %s")
    demand("f.confidence >= %s", query.min_confidence)  # it only fades
    sql = f"SELECT {COLUMNS} {FROM} WHERE {' AND '.join(conditions)} {_NEWEST_FIRST}"
    with db.cursor(name="nacre_facts") as cursor:
        cursor.execute(sql, parameters, binary=True)
        found = map(fact, cursor)
        sure = (each for each in found if effective_confidence(each, query.as_of) >= query.min_confidence)
        return list(islice(sure, query.limit))


def by_ids(db: Db, ids: Sequence[str]) -> list[Fact]:
    """Facts in the order they were written."""
    return _select(db, ["f.id = ANY(%s)"], [list(ids)], "ORDER BY f.fact")


def by_memory(db: Db, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """By id of a memory, its facts in the order they were written."""
    found: defaultdict[str, list[Fact]] = defaultdict(list)
    for each in _select(db, ["m.id = ANY(%s)"], [list(memory_ids)], "ORDER BY f.fact"):
        found[each.memory_id].append(each)
    return {memory_id: tuple(facts) for memory_id, facts in found.items()}


def by_keys(db: Db, keys: Iterable[Key]) -> Mapping[Key, tuple[Fact, ...]]:
    """By (space, row), the facts of memories in the order they were written."""
    sql = f"SELECT f.row, {COLUMNS} {FROM} WHERE {_OF_KEYS} ORDER BY f.fact"
    found: defaultdict[Key, list[Fact]] = defaultdict(list)
    for row, *columns in fetch(db, sql, columns_of(keys)):
        each = fact(columns)
        found[each.space, row].append(each)
    return {key: tuple(facts) for key, facts in found.items()}


def conflicting(db: Db, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
    """Groups of single-valued facts of which several are current, with different objects.

    Groups whose first facts were written earlier come first.
    """
    us = microseconds(at)
    groups: defaultdict[_Place, list[Fact]] = defaultdict(list)
    subject_of: dict[_Place, str] = {}
    for entity, subject, predicate, _, _, *columns in fetch(db, _CONFLICTING, (list(spaces), us, us)):
        each = fact(columns)
        place = each.space, entity, subject if entity is None else None, predicate
        groups[place].append(each)
        subject_of[place] = subject
    ordered = [sorted(each, key=lambda fact: (fact.valid_from, fact.id)) for each in groups.values()]
    found = dict(zip(groups, (supersession.conflicting(several, at) for several in ordered), strict=True))
    named = [(place[0], subject_of[place], place[3]) for place in found]
    first = f"SELECT g.space, g.entity, g.alone, g.predicate, min(f.fact) {_MEMBERS} GROUP BY 1, 2, 3, 4"
    first_of: dict[tuple[Any, ...], int] = {row[:4]: row[4] for row in fetch(db, first, _columns(named, 3))}
    return [found[place] for place in sorted(found, key=first_of.__getitem__) if found[place]]


def relations_of(db: Db, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
    """Current relations from or to one of these names, the newest first."""
    keys, us = [fold(name) for name in names], microseconds(at)
    conditions = [
        "f.relation AND f.space = ANY(%s) AND (f.subject_key = ANY(%s) OR f.object_key = ANY(%s))",
        f"{_LIVE} AND {_CURRENT}",
    ]
    return _select(db, conditions, [list(spaces), keys, keys, us, us, limit], f"{_NEWEST_FIRST} LIMIT %s")


def search_relations(
    db: Db,
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
    best = sorted(scores, key=lambda number: (-scores[number], -number[1]))
    us = microseconds(at)
    sql = (
        f"SELECT f.fact, {COLUMNS} {FROM} WHERE {_CURRENT} "
        "AND (f.space, f.fact) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
    )
    found: list[tuple[Fact, float]] = []
    for start in range(0, len(best), 2 * limit):  # most are current, so the first batch is usually enough
        chosen = best[start : start + 2 * limit]
        facts = ((number, fact(columns)) for number, *columns in fetch(db, sql, (us, us, *columns_of(chosen))))
        current = {(each.space, number): each for number, each in facts}
        found += [(current[number], scores[number]) for number in chosen if number in current]
        if len(found) >= limit:
            break
    return found[:limit]


def relation_frequencies(db: Db, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
    """How many relations these spaces have, and how many of them have each word."""
    return Frequencies(_relations(db, spaces), _relations_having(db, words, spaces))


def _relations(db: Db, spaces: Sequence[str]) -> int:
    """Relations of forgotten memories count, too. This only weighs words."""
    sql = "SELECT coalesce(sum(relations), 0)::bigint FROM relation_counts WHERE space = ANY(%s)"
    return int(value(db, sql, (list(spaces),)))


def _relations_having(db: Db, words: Sequence[str], spaces: Sequence[str]) -> dict[str, int]:
    sql = "SELECT word, count(*) FROM relation_words WHERE space = ANY(%s) AND word = ANY(%s) GROUP BY word"
    return dict(fetch(db, sql, (list(spaces), list(words))))


def _relation_scores(
    db: Db, terms: Sequence[Term], spaces: Sequence[str], frequencies: Frequencies | None
) -> dict[Number, float]:
    """Scores by space and number of the fact.

    Stops at a bounded number of postings, so the most frequent words may not count.
    """
    wanted = {term.text: term for term in significant_terms(terms) if not term.prefix}
    having = _relations_having(db, list(wanted), spaces) if frequencies is None else frequencies.having
    if not having:
        return {}
    total = _relations(db, spaces) if frequencies is None else frequencies.memories
    weights: dict[str, float] = {}
    postings = 0
    for word, count in sorted(having.items(), key=lambda each: (each[1], each[0])):
        if postings and postings + count > _POSTINGS_MAX:
            break
        postings += count
        weights[word] = idf(total, count, common=wanted[word].common)
    found: defaultdict[str, list[Number]] = defaultdict(list)
    sql = "SELECT word, space, fact FROM relation_words WHERE space = ANY(%s) AND word = ANY(%s)"
    for word, space, number in fetch(db, sql, (list(spaces), list(weights))):
        found[word].append((space, number))
    scores: defaultdict[Number, float] = defaultdict(float)
    for word, weight in weights.items():  # in this order on every store: sums of floats depend on it
        for each in found[word]:
            scores[each] += weight
    return scores


def _select(db: Db, conditions: Sequence[str], parameters: Sequence[Any], order: str) -> list[Fact]:
    sql = f"SELECT {COLUMNS} {FROM} WHERE {' AND '.join(conditions)} {order}"
    return [fact(row) for row in fetch(db, sql, parameters)]


def _names(db: Db, spaces: Sequence[str], key: str) -> list[tuple[str, str]]:
    """By space, this folded name and the other names of its entity."""
    sql = (
        "SELECT o.space, o.key FROM entity_names AS n JOIN entity_names AS o ON o.space = n.space "
        "AND o.entity = n.entity WHERE n.space = ANY(%s) AND n.key = %s"
    )
    found = [(space, name) for space, name in fetch(db, sql, (list(spaces), key))]
    return [*((space, key) for space in spaces), *found]
