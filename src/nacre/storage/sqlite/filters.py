"""Filters and conditions as SQL over `memories AS m`, so that they apply before any ranking.

`filter_matches` and `condition_matches` of `nacre.query.ast` define what matches; this is their execution in SQL.
Clauses compiled with `few=True` are for statements that visit a few rows: they look up the tags of each row, rather
than list all rows that have a tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nacre.query.ast import (
    AllOf,
    AnyOf,
    Condition,
    During,
    Linked,
    Near,
    Only,
    Phrase,
    Pinned,
    Term,
    Unexpired,
    Without,
    has_wildcards,
)
from nacre.storage.sqlite.rows import microseconds, space_token, to_json
from nacre.types.search import Filter, Part, Period

_IN_ORDER = "{words summary tags source}"  # the columns of `fts` that keep the order of words


_FAR = 2**62  # microseconds: beyond all times
_CHAINED_MAX = 50  # of clauses side by side


class Clause(NamedTuple):
    """A boolean SQL expression and its parameters."""

    sql: str
    parameters: tuple[str | int | float, ...]

    def __and__(self, other: Clause) -> Clause:
        return Clause(f"{self.sql} AND {other.sql}", self.parameters + other.parameters)


# JSON equality: true does not equal 1, but 1 equals 1.0. A key with the value null is not a missing key.
_METADATA_EQUALS = """NOT EXISTS (
  SELECT 1 FROM json_each(?) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM json_each(m.metadata) AS stored WHERE stored.key = wanted.key AND stored.atom IS wanted.atom
      AND replace(stored.type, 'real', 'integer') = replace(wanted.type, 'real', 'integer')
  )
)"""

_HAS: dict[Part, str] = {
    "facts": "(m.kind = 'fact' OR EXISTS (SELECT 1 FROM facts WHERE facts.row = m.row))",
    "tags": "m.tags <> '[]'",
    "metadata": "m.metadata <> '{}'",
    "source": "m.source IS NOT NULL",
    "session": "m.session IS NOT NULL",
    "summary": "m.summary IS NOT NULL",
}

# A memory is linked with an entity by a caller, or by a fact that has one of the entity's names as its subject or, in
# a relation, as its object.
_NAMES = (
    "entity_names AS this JOIN entity_names AS n ON n.entity = this.entity "
    "JOIN facts AS f ON f.space = n.space AND f.{} = n.key WHERE this.key = ? AND this.space = m.space"
)
_LINKED = f"""m.row IN (
  SELECT l.row FROM entity_names AS this JOIN links AS l ON l.entity = this.entity
  WHERE this.key = ? AND this.space = m.space
  UNION ALL SELECT f.row FROM {_NAMES.format("subject_key")}
  UNION ALL SELECT f.row FROM {_NAMES.format("object_key")} AND f.relation = 1
)"""

EVERYTHING = Clause("1", ())
LIVE = Clause("m.deleted_us IS NULL", ())
FORGOTTEN = Clause("m.deleted_us IS NOT NULL", ())


def search_clause(where: Filter, must: Condition | None) -> Clause:
    """Memories that match a filter and, if there is one, a condition."""
    clause = filter_clause(where)
    return clause if must is None else clause & condition_clause(must)


def filter_clause(where: Filter, *, few: bool = False) -> Clause:
    """All fields of a filter, joined by AND. Without spaces nothing matches, so no search sees all by mistake."""
    return one_of("m.space", where.spaces) & _filter_beyond_spaces(where, few)


def _filter_beyond_spaces(where: Filter, few: bool) -> Clause:
    clause = EVERYTHING
    for column, values in (
        ("m.kind", where.kinds),
        ("m.namespace", where.namespaces),
        ("m.session", where.sessions),
        ("m.language", where.languages),
    ):
        if values:
            clause &= one_of(column, values)
    if where.sources:
        clause &= _source_clause(where.sources)
    if where.key_prefixes:
        clause &= _join(" OR ", [_key_clause(each) for each in where.key_prefixes])
    if where.tags_any:
        clause &= _tags_clause(where.tags_any, few)
    if where.tags_all:
        clause &= _tags_clause(where.tags_all, few, f"GROUP BY row HAVING count(*) = {len(where.tags_all)}")
    if where.tags_none:
        tagged = _tags_clause(where.tags_none, few)
        clause &= Clause(f"NOT {tagged.sql}", tagged.parameters)
    clause &= _within_bounds(where)
    if where.metadata:
        clause &= Clause(_METADATA_EQUALS, (to_json(dict(where.metadata)),))
    for part in where.has:
        clause &= Clause(_HAS[part], ())
    if where.fact_types:
        of_type = f"facts.row = m.row AND facts.type IN ({placeholders(where.fact_types)})"
        clause &= Clause(f"EXISTS (SELECT 1 FROM facts WHERE {of_type})", tuple(where.fact_types))
    return clause


def _within_bounds(where: Filter) -> Clause:
    clause = EVERYTHING
    if where.created_from is not None:
        clause &= Clause("m.created_us >= ?", (microseconds(where.created_from),))
    if where.created_until is not None:
        clause &= Clause("m.created_us < ?", (microseconds(where.created_until),))
    if where.importance_min is not None:
        clause &= Clause("m.importance >= ?", (where.importance_min,))
    if where.importance_max is not None:
        clause &= Clause("m.importance <= ?", (where.importance_max,))
    return clause


def condition_clause(condition: Condition, *, few: bool = False) -> Clause:
    """Memories that match a condition. A flat one becomes one FTS5 query; FTS5 refuses deeply nested ones."""
    if _is_flat(condition):
        return Clause("m.row IN (SELECT rowid FROM fts WHERE fts MATCH ?)", (fts_query(condition),))
    match condition:
        case Only(where):
            clause = filter_clause(where, few=few) if where.spaces else _filter_beyond_spaces(where, few)
            return Clause(f"({clause.sql})", clause.parameters)
        case Linked(name):
            return Clause(_LINKED, (name, name, name))
        case Pinned():
            return Clause("m.pinned = 1", ())
        case Unexpired(now):
            return Clause("(m.expires_us IS NULL OR m.expires_us > ?)", (microseconds(now),))
        case During(period):
            start, end = _bounds(period)
            sql = "(m.created_us >= ? AND m.created_us < ? OR m.happened_us >= ? AND m.happened_us < ?)"
            return Clause(sql, (start, end, start, end))
        case AnyOf(parts):
            return _join(" OR ", [condition_clause(part, few=few) for part in parts])
        case AllOf(parts):
            return _join(" AND ", [condition_clause(part, few=few) for part in parts])
        case Without(wanted, unwanted):
            clause = condition_clause(unwanted, few=few)
            # A comparison with a missing source is NULL, and so would be its negation.
            clause = Clause(f"NOT ifnull({clause.sql}, 0)", clause.parameters)
            return clause if wanted is None else _join(" AND ", [condition_clause(wanted, few=few), clause])
    raise AssertionError(condition)


def fts_query(condition: Condition) -> str:
    """A flat condition as an FTS5 expression. Tokens are quoted, so that nothing in them is syntax."""
    match condition:
        case Term(text, prefix=True):
            return f"{_IN_ORDER} : {_quoted(text)} *"
        case Term(text):
            return _quoted(text)
        case Phrase():
            return f"{_IN_ORDER} : {_phrase(condition)}"
        case Near(phrases, distance):
            return f"{_IN_ORDER} : NEAR({' '.join(map(_phrase, phrases))}, {distance})"
        case AnyOf(parts):
            return f"({' OR '.join(map(fts_query, parts))})"
        case AllOf(parts):
            return f"({' AND '.join(map(fts_query, parts))})"
    raise AssertionError("exclusions are compiled to SQL")


def fts_spaces(spaces: Sequence[str]) -> str:
    """An FTS5 expression that matches the rows of these spaces."""
    return f"({' OR '.join(_quoted(space_token(space)) for space in spaces)})"


def _is_flat(condition: Condition) -> bool:
    parts = condition.parts if isinstance(condition, AnyOf | AllOf) else (condition,)
    return all(isinstance(part, Term | Phrase | Near) for part in parts)


def _phrase(phrase: Phrase) -> str:
    return _quoted(" ".join(phrase.words)) + " *" * phrase.prefix


def _join(operator: str, clauses: Sequence[Clause]) -> Clause:
    """Long chains are grouped: SQLite makes a tree of a chain, a level for each clause, and allows 1,000 levels."""
    parts = [clause.sql for clause in clauses]
    while len(parts) > _CHAINED_MAX:
        groups = (parts[at : at + _CHAINED_MAX] for at in range(0, len(parts), _CHAINED_MAX))
        parts = [f"({operator.join(group)})" for group in groups]
    return Clause(f"({operator.join(parts)})", tuple(each for clause in clauses for each in clause.parameters))


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def one_of(column: str, values: Sequence[str]) -> Clause:
    return Clause(f"{column} IN ({placeholders(values)})", tuple(values))


def _bounds(period: Period) -> tuple[int, int]:
    """In microseconds."""
    return (
        -_FAR if period.start is None else microseconds(period.start),
        _FAR if period.end is None else microseconds(period.end),
    )


def _source_clause(patterns: Sequence[str]) -> Clause:
    """A source equals or matches one of the patterns. Brackets are special in SQLite's GLOB, not in our patterns."""
    exact = [each for each in patterns if not has_wildcards(each)]
    globs = [each.replace("[", "[[]") for each in patterns if has_wildcards(each)]
    tests = [Clause("m.source GLOB ?", (each,)) for each in globs]
    if exact:
        tests.append(one_of("m.source", exact))
    return _join(" OR ", tests)


def _key_clause(prefix: str) -> Clause:
    """Keys that begin with a prefix. The bounds use the index of keys."""
    after = prefix.rstrip("\U0010ffff")  # no text comes after these
    if not after:
        return Clause("(m.key >= ?)", (prefix,))
    following = 0xE000 if after[-1] == "\ud7ff" else ord(after[-1]) + 1  # there are no surrogates in texts
    return Clause("(m.key >= ? AND m.key < ?)", (prefix, after[:-1] + chr(following)))


def _tags_clause(tags: Sequence[str], few: bool, having: str = "") -> Clause:
    of_this_row = "tags.row = m.row AND " if few else ""
    sql = f"m.row IN (SELECT row FROM tags WHERE {of_this_row}tag IN ({placeholders(tags)}) {having})"
    return Clause(sql, tuple(tags))


def placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
