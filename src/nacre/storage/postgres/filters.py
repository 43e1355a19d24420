"""Filters and conditions as SQL over `memories AS m`, so that they apply before any ranking.

`filter_matches` and `condition_matches` of `nacre.query.ast` define what matches; this is their execution. What is
about words is found in the postings first (words.py), as docs; everything else is SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.postings import Array
from nacre.storage.postgres.rows import microseconds, pair
from nacre.storage.postgres.schema import Db
from nacre.types.search import Filter, Part, Period

# The docs whose texts match a condition about words.
DocsOf = Callable[[Condition], Array]

_FAR = 2**62  # microseconds: beyond all times
_CHAINED_MAX = 50  # of clauses side by side


class Clause(NamedTuple):
    """A boolean SQL expression and its parameters."""

    sql: str
    parameters: tuple[Any, ...]

    def __and__(self, other: Clause) -> Clause:
        return Clause(f"{self.sql} AND {other.sql}", self.parameters + other.parameters)


_FACTS = "EXISTS (SELECT 1 FROM facts AS f WHERE f.space = m.space AND f.row = m.row{})"
_HAS: dict[Part, str] = {
    "facts": f"(m.kind = 'fact' OR {_FACTS.format('')})",
    "tags": "m.tags <> '{}'",
    "metadata": "m.metadata <> '{}'",
    "source": "m.source IS NOT NULL",
    "session": "m.session IS NOT NULL",
    "summary": "m.summary IS NOT NULL",
}

# A memory is linked with an entity by a caller, or by a fact that has one of the entity's names as its subject or, in
# a relation, as its object.
_NAMES = (
    "entity_names AS this JOIN entity_names AS n ON n.space = this.space AND n.entity = this.entity "
    "JOIN facts AS f ON f.space = n.space AND f.{} = n.key WHERE this.key = %s"
)
_LINKED = f"""(m.space, m.row) IN (
  SELECT l.space, l.row FROM entity_names AS this JOIN links AS l ON l.space = this.space AND l.entity = this.entity
  WHERE this.key = %s
  UNION ALL SELECT f.space, f.row FROM {_NAMES.format("subject_key")}
  UNION ALL SELECT f.space, f.row FROM {_NAMES.format("object_key")} AND f.relation
)"""

_TAGGED = "m.tags <> '{}'"  # the index has no others, and is used where that is said
EVERYTHING = Clause("true", ())
LIVE = Clause("m.deleted_us IS NULL", ())
FORGOTTEN = Clause("m.deleted_us IS NOT NULL", ())


def search_clause(where: Filter, must: Condition | None, docs_of: DocsOf) -> Clause:
    """Memories that match a filter and, if there is one, a condition."""
    clause = filter_clause(where)
    return clause if must is None else clause & condition_clause(must, docs_of)


def estimated(db: Db, clause: Clause) -> int:
    """About how many memories match, by the statistics of the server: no row is read."""
    ((plan,),) = fetch(db, f"EXPLAIN (FORMAT JSON) SELECT FROM memories AS m WHERE {clause.sql}", clause.parameters)
    return int(plan[0]["Plan"]["Plan Rows"])


def filter_clause(where: Filter) -> Clause:
    """All fields of a filter, joined by AND. Without spaces nothing matches, so no search sees all by mistake."""
    return one_of("m.space", where.spaces) & _beyond_spaces(where)


def _beyond_spaces(where: Filter) -> Clause:
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
        clause &= Clause(f"{_TAGGED} AND m.tags && %s::text[]", (list(where.tags_any),))
    if where.tags_all:
        clause &= Clause(f"{_TAGGED} AND m.tags @> %s::text[]", (list(where.tags_all),))
    if where.tags_none:
        clause &= Clause("NOT m.tags && %s::text[]", (list(where.tags_none),))
    clause &= _within_bounds(where)
    if where.metadata:
        wanted = [pair(key, each) for key, each in where.metadata.items()]
        clause &= Clause("m.metadata_pairs <> '{}' AND m.metadata_pairs @> %s::text[]", (wanted,))
    for part in where.has:
        clause &= Clause(_HAS[part], ())
    if where.fact_types:
        clause &= Clause(_FACTS.format(" AND f.type = ANY(%s)"), (list(where.fact_types),))
    return clause


def _within_bounds(where: Filter) -> Clause:
    clause = EVERYTHING
    if where.created_from is not None:
        clause &= Clause("m.created_us >= %s", (microseconds(where.created_from),))
    if where.created_until is not None:
        clause &= Clause("m.created_us < %s", (microseconds(where.created_until),))
    if where.importance_min is not None:
        clause &= Clause("m.importance >= %s", (float(where.importance_min),))
    if where.importance_max is not None:
        clause &= Clause("m.importance <= %s", (float(where.importance_max),))
    return clause


def condition_clause(condition: Condition, docs_of: DocsOf) -> Clause:
    """Memories that match a condition."""
    if is_about_words(condition):
        return Clause("m.doc = ANY(%s::bigint[])", (docs_of(condition).tolist(),))
    match condition:
        case Only(where):
            clause = filter_clause(where) if where.spaces else _beyond_spaces(where)
            return Clause(f"({clause.sql})", clause.parameters)
        case Linked(name):
            return Clause(_LINKED, (name, name, name))
        case Pinned():
            return Clause("m.pinned", ())
        case Unexpired(now):
            return Clause("(m.expires_us IS NULL OR m.expires_us > %s)", (microseconds(now),))
        case During(period):
            start, end = _bounds(period)
            sql = (
                "(m.created_us >= %s AND m.created_us < %s OR "
                "m.happened_us IS NOT NULL AND m.happened_us >= %s AND m.happened_us < %s)"
            )
            return Clause(sql, (start, end, start, end))
        case AnyOf(parts):
            return _join(" OR ", [condition_clause(part, docs_of) for part in parts])
        case AllOf(parts):
            return _join(" AND ", [condition_clause(part, docs_of) for part in parts])
        case Without(wanted, unwanted):
            clause = condition_clause(unwanted, docs_of)
            # A comparison with a missing source is NULL, and so would be its negation.
            clause = Clause(f"({clause.sql}) IS NOT TRUE", clause.parameters)
            return clause if wanted is None else _join(" AND ", [condition_clause(wanted, docs_of), clause])
    raise AssertionError(condition)


def is_about_words(condition: Condition) -> bool:
    """Whether a condition is about the words of a memory alone, and finds memories by them."""
    match condition:
        case Term() | Phrase() | Near():
            return True
        case AnyOf(parts) | AllOf(parts):
            return all(map(is_about_words, parts))
        case Without(wanted, unwanted):
            return wanted is not None and is_about_words(wanted) and is_about_words(unwanted)
    return False


def one_of(column: str, values: Sequence[str]) -> Clause:
    return Clause(f"{column} = ANY(%s)", (list(values),))


def _join(operator: str, clauses: Sequence[Clause]) -> Clause:
    """Long chains are grouped, so that no chain is too deep for the server."""
    parts = [clause.sql for clause in clauses]
    while len(parts) > _CHAINED_MAX:
        groups = (parts[at : at + _CHAINED_MAX] for at in range(0, len(parts), _CHAINED_MAX))
        parts = [f"({operator.join(group)})" for group in groups]
    return Clause(f"({operator.join(parts)})", tuple(each for clause in clauses for each in clause.parameters))


def _bounds(period: Period) -> tuple[int, int]:
    """In microseconds."""
    return (
        -_FAR if period.start is None else microseconds(period.start),
        _FAR if period.end is None else microseconds(period.end),
    )


def _source_clause(patterns: Sequence[str]) -> Clause:
    """A source equals or matches one of the patterns."""
    exact = [each for each in patterns if not has_wildcards(each)]
    likes = [_like(each) for each in patterns if has_wildcards(each)]
    return _join(" OR ", [one_of("m.source", exact), Clause("m.source LIKE ANY(%s)", (likes,))])


def _like(pattern: str) -> str:
    for char in "\\%_":
        pattern = pattern.replace(char, f"\\{char}")
    return pattern.replace("*", "%").replace("?", "_")


def _key_clause(prefix: str) -> Clause:
    """Keys that begin with a prefix. The bounds use the index of keys."""
    after = prefix.rstrip("\U0010ffff")  # no text comes after these
    if not after:
        return Clause("(m.key >= %s)", (prefix,))
    following = 0xE000 if after[-1] == "\ud7ff" else ord(after[-1]) + 1  # there are no surrogates in texts
    return Clause("(m.key >= %s AND m.key < %s)", (prefix, after[:-1] + chr(following)))
