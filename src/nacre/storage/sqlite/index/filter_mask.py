"""Which memories of a segment meet a filter and a condition? Worked out from its postings where it has them, from the
rows where it does not: phrases, entities, patterns and facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw
import numpy as np

from nacre.query.ast import AllOf, AnyOf, Condition, Linked, Near, Only, Phrase, Term, Without, has_wildcards
from nacre.storage.sqlite.filters import LIVE, Clause, condition_clause, filter_clause, only_spaces
from nacre.storage.sqlite.index.segment import Array, Flags, Segment, hashed
from nacre.storage.sqlite.index.segment_builder import having, with_metadata, with_part
from nacre.storage.sqlite.index.space_index import Part
from nacre.storage.sqlite.rows import fetch, microseconds
from nacre.types.search import Filter


def matching(db: apsw.Connection, must: Condition | None, where: Filter) -> FilterMask | None:
    """What a search demands besides its spaces, if anything."""
    return None if only_spaces(where) and must is None else FilterMask(db, must, where)


def passing(demanded: FilterMask | None, part: Part, space: str) -> Flags | None:
    """By memory of a part, whether it may be found. None: all of them."""
    if demanded is None:
        return part.alive
    met = demanded.flags(part.segment, space)
    return met if part.alive is None else met & part.alive


class FilterMask:
    """What one search demands. Rows that only the database can tell are asked for once, for all segments."""

    def __init__(self, db: apsw.Connection, must: Condition | None, where: Filter) -> None:
        self._db = db
        self._must = must
        self._where = where
        self._rows: dict[Clause, Array] = {}

    def flags(self, segment: Segment, space: str) -> Flags:
        """By memory, whether it meets everything. Whether it is alive, the segment does not know."""
        met = self._allowed(segment, space, self._where)
        return met if self._must is None else met & self._holding(segment, space, self._must)

    # ---- filters

    def _allowed(self, segment: Segment, space: str, where: Filter) -> Flags:
        if where.spaces and space not in where.spaces:
            return np.zeros(len(segment), np.bool_)
        met = np.ones(len(segment), np.bool_)
        for field, values in (
            ("kind", where.kinds),
            ("namespace", where.namespaces),
            ("session", where.sessions),
            ("tag", where.tags_any),
        ):
            if values:
                met &= _any(segment, (having(field, value) for value in values))
        for tag in where.tags_all:
            met &= _any(segment, [having("tag", tag)])
        if where.tags_none:
            met &= ~_any(segment, (having("tag", tag) for tag in where.tags_none))
        if where.sources:
            met &= self._from_sources(segment, where.sources)
        if where.created_from is not None:
            met &= segment.created >= microseconds(where.created_from)
        if where.created_until is not None:
            met &= segment.created < microseconds(where.created_until)
        for key, value in where.metadata.items():
            met &= _any(segment, [with_metadata(key, value)])
        for part in where.has:
            if part == "facts":
                clause = filter_clause(Filter(spaces=(space,), has=("facts",)))
                met &= self._stored(segment, clause)
            else:
                met &= _any(segment, [with_part(part)])
        return met

    def _from_sources(self, segment: Segment, patterns: Sequence[str]) -> Flags:
        exact = [each for each in patterns if not has_wildcards(each)]
        found = _any(segment, (having("source", each) for each in exact))
        like = tuple(each for each in patterns if has_wildcards(each))
        if like:
            found |= self._stored(segment, filter_clause(Filter(spaces=self._where.spaces, sources=like)))
        return found

    # ---- conditions

    def _holding(self, segment: Segment, space: str, condition: Condition) -> Flags:
        match condition:
            case Term(text, prefix=False):
                return _any(segment, [text])
            case Term() | Phrase() | Near() | Linked():
                return self._stored(segment, condition_clause(condition))
            case Only(where):
                return self._allowed(segment, space, where)
            case AnyOf(parts):
                found = np.zeros(len(segment), np.bool_)
                for part in parts:
                    found |= self._holding(segment, space, part)
                return found
            case AllOf(parts):
                found = np.ones(len(segment), np.bool_)
                for part in parts:
                    found &= self._holding(segment, space, part)
                return found
            case Without(wanted, unwanted):
                refused = ~self._holding(segment, space, unwanted)
                return refused if wanted is None else refused & self._holding(segment, space, wanted)
        raise AssertionError(condition)

    def _stored(self, segment: Segment, clause: Clause) -> Flags:
        if clause not in self._rows:
            listed = clause & LIVE
            sql = f"SELECT m.row FROM memories AS m WHERE {listed.sql}"
            self._rows[clause] = np.array([row for (row,) in fetch(self._db, sql, listed.parameters)], np.int64)
        found = np.zeros(len(segment), np.bool_)
        found[segment.docs_of(self._rows[clause])] = True
        return found


def _any(segment: Segment, terms: Iterable[str]) -> Flags:
    """By memory, whether it has one of these terms."""
    found = np.zeros(len(segment), np.bool_)
    places = segment.places(np.array([hashed(term) for term in terms], np.uint64))
    for postings in segment.postings(places[places >= 0]):
        found[segment.docs[postings]] = True
    return found
