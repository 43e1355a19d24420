"""Filters and conditions as SQL over `memories AS m`, so that they act before any ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nacre.query.ast import AllOf, AnyOf, Condition, Linked, Near, Only, Phrase, Term, Without, has_wildcards
from nacre.storage.sqlite.rows import microseconds, space_token, to_json
from nacre.types.search import Filter, Part

_IN_ORDER = "{words summary tags source}"  # the columns of `fts` in which words stand side by side


class Clause(NamedTuple):
    """A boolean SQL expression and its parameters."""

    sql: str
    parameters: tuple[str | int | float, ...]

    def __and__(self, other: Clause) -> Clause:
        return Clause(f"{self.sql} AND {other.sql}", self.parameters + other.parameters)


# JSON equality: true is not 1, but 1 is 1.0; a key that is there with null is not a missing key.
_METADATA_EQUALS = """NOT EXISTS (
  SELECT 1 FROM json_each(?) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM json_each(m.metadata) AS held WHERE held.key = wanted.key AND held.atom IS wanted.atom
      AND replace(held.type, 'real', 'integer') = replace(wanted.type, 'real', 'integer')
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

# By a caller, or by a fact that has one of the entity's names as its subject or, in a relation, as its object.
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

_TAGGED = "SELECT row FROM tags WHERE"

EVERYTHING = Clause("1", ())
LIVE = Clause("m.deleted_us IS NULL", ())
FORGOTTEN = Clause("m.deleted_us IS NOT NULL", ())


def filter_clause(where: Filter) -> Clause:
    """All fields of the filter, joined by AND. Without spaces it allows nothing: no search sees all by accident."""
    return _one_of("m.space", where.spaces) & _restrictions(where)


def _restrictions(where: Filter) -> Clause:
    clause = EVERYTHING
    for column, values in (
        ("m.kind", where.kinds),
        ("m.namespace", where.namespaces),
        ("m.session", where.sessions),
    ):
        if values:
            clause &= _one_of(column, values)
    if where.sources:
        clause &= _from_source(where.sources)
    if where.tags_any:
        clause &= _tagged(where.tags_any)
    if where.tags_all:
        clause &= _tagged(where.tags_all, f"GROUP BY row HAVING count(*) = {len(where.tags_all)}")
    if where.tags_none:
        tagged = _tagged(where.tags_none)
        clause &= Clause(f"NOT {tagged.sql}", tagged.parameters)
    if where.created_from is not None:
        clause &= Clause("m.created_us >= ?", (microseconds(where.created_from),))
    if where.created_until is not None:
        clause &= Clause("m.created_us < ?", (microseconds(where.created_until),))
    if where.metadata:
        clause &= Clause(_METADATA_EQUALS, (to_json(dict(where.metadata)),))
    for part in where.has:
        clause &= Clause(_HAS[part], ())
    return clause


def matching(must: Condition | None, where: Filter) -> Clause:
    """What a filter allows and, where there is one, a condition holds for."""
    clause = filter_clause(where)
    return clause if must is None else clause & condition_clause(must)


def of_few(clause: Clause) -> Clause:
    """The same, to be asked of a few rows: the tags of each are looked up, and not all rows with a tag listed."""
    return clause._replace(sql=clause.sql.replace(_TAGGED, f"{_TAGGED} tags.row = m.row AND"))


def only_spaces(where: Filter) -> bool:
    """Whether the filter restricts nothing but the space."""
    return where == Filter(spaces=where.spaces)


def condition_clause(condition: Condition) -> Clause:
    """Where a condition holds. Simple parts become one FTS5 query; FTS5 has no room for deep ones."""
    if _simple(condition):
        return Clause("m.row IN (SELECT rowid FROM fts WHERE fts MATCH ?)", (fts_query(condition),))
    match condition:
        case Only(where):
            allowed = filter_clause(where) if where.spaces else _restrictions(where)
            return Clause(f"({allowed.sql})", allowed.parameters)
        case Linked(name):
            return Clause(_LINKED, (name, name, name))
        case AnyOf(parts):
            return _joined(" OR ", parts)
        case AllOf(parts):
            return _joined(" AND ", parts)
        case Without(None, unwanted):
            refused = condition_clause(unwanted)
            return Clause(f"NOT ifnull({refused.sql}, 0)", refused.parameters)  # a missing source is not unlike any
        case Without(wanted, unwanted):
            assert wanted is not None
            accepted, refused = condition_clause(wanted), condition_clause(Without(None, unwanted))
            return Clause(f"({accepted.sql} AND {refused.sql})", accepted.parameters + refused.parameters)
    raise AssertionError(condition)


def fts_query(condition: Condition) -> str:
    """An FTS5 expression. Tokens are quoted, so nothing in them is syntax."""
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


def in_spaces(spaces: Sequence[str]) -> str:
    """An FTS5 expression for the rows of these spaces."""
    return f"({' OR '.join(_quoted(space_token(space)) for space in spaces)})"


def _simple(condition: Condition) -> bool:
    parts = condition.parts if isinstance(condition, AnyOf | AllOf) else (condition,)
    return all(isinstance(part, Term | Phrase | Near) for part in parts)


def _phrase(phrase: Phrase) -> str:
    return _quoted(" ".join(phrase.words)) + " *" * phrase.prefix


def _joined(operator: str, parts: Sequence[Condition]) -> Clause:
    clauses = [condition_clause(part) for part in parts]
    sql = operator.join(clause.sql for clause in clauses)
    return Clause(f"({sql})", tuple(each for clause in clauses for each in clause.parameters))


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def _one_of(column: str, values: Sequence[str]) -> Clause:
    return Clause(f"{column} IN ({marks(values)})", tuple(values))


def _from_source(patterns: Sequence[str]) -> Clause:
    """Equal to any of these, or like it: in SQLite's GLOB a bracket is special, in ours it is not."""
    exact = [each for each in patterns if not has_wildcards(each)]
    globs = [each.replace("[", "[[]") for each in patterns if has_wildcards(each)]
    tests = ["m.source GLOB ?"] * len(globs)
    if exact:
        tests.append(f"m.source IN ({marks(exact)})")
    return Clause(f"({' OR '.join(tests)})", (*globs, *exact))


def _tagged(tags: Sequence[str], having: str = "") -> Clause:
    return Clause(f"m.row IN ({_TAGGED} tag IN ({marks(tags)}) {having})", tuple(tags))


def marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
