"""Filters and conditions as masks over the memories of a segment.

`filter_matches` and `condition_matches` of `nacre.query.ast` define what matches; this is their execution over
segments. Most of it is computed from postings. Phrases, prefixes, entities, patterns and facts are not in a segment:
the database lists their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import apsw
import numpy as np

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
    matches_everything,
)
from nacre.storage.sqlite.filters import LIVE, Clause, condition_clause, filter_clause
from nacre.storage.sqlite.index.segment import Array, Mask, Segment, hashed
from nacre.storage.sqlite.index.segment_builder import having, with_metadata, with_part
from nacre.storage.sqlite.index.space_index import Part
from nacre.storage.sqlite.rows import fetch, microseconds
from nacre.types.search import Filter, Period


def filter_mask(db: apsw.Connection, where: Filter, must: Condition | None) -> FilterMask | None:
    """The mask of a search; None if every live memory of its spaces matches."""
    return None if matches_everything(where, must) else FilterMask(db, where, must)


def live_matches(mask: FilterMask | None, part: Part, space: str) -> Mask | None:
    """By memory of a part, whether it is alive and matches. None: all of them."""
    if mask is None:
        return part.alive
    matches = mask.of(part.segment, space)
    return matches if part.alive is None else matches & part.alive


class FilterMask:
    """The filter and condition of one search. Rows that the database lists are read once, for all segments."""

    def __init__(self, db: apsw.Connection, where: Filter, must: Condition | None) -> None:
        self._db = db
        self._where = where
        self._must = must
        self._rows: dict[Clause, Array] = {}

    def of(self, segment: Segment, space: str) -> Mask:
        """By memory, whether it matches. The segment does not know which memories are still alive."""
        matches = self._filter(segment, space, self._where)
        return matches if self._must is None else matches & self._condition(segment, space, self._must)

    # ---- filters

    def _filter(self, segment: Segment, space: str, where: Filter) -> Mask:
        if where.spaces and space not in where.spaces:
            return np.zeros(len(segment), np.bool_)
        matches = _values(segment, where)
        if where.sources:
            matches &= self._sources(segment, where.sources)
        if where.created_from is not None:
            matches &= segment.created >= microseconds(where.created_from)
        if where.created_until is not None:
            matches &= segment.created < microseconds(where.created_until)
        if where.importance_min is not None:
            matches &= segment.importance >= where.importance_min
        if where.importance_max is not None:
            matches &= segment.importance <= where.importance_max
        if where.key_prefixes:
            keyed = Filter(spaces=(space,), key_prefixes=where.key_prefixes)
            matches &= self._listed(segment, filter_clause(keyed))
        if where.languages:
            matches &= self._listed(segment, filter_clause(Filter(spaces=(space,), languages=where.languages)))
        if "facts" in where.has:
            matches &= self._listed(segment, filter_clause(Filter(spaces=(space,), has=("facts",))))
        if where.fact_types:
            matches &= self._listed(segment, filter_clause(Filter(spaces=(space,), fact_types=where.fact_types)))
        return matches

    def _sources(self, segment: Segment, patterns: Sequence[str]) -> Mask:
        exact = [each for each in patterns if not has_wildcards(each)]
        matches = _any(segment, (having("source", each) for each in exact))
        globs = tuple(each for each in patterns if has_wildcards(each))
        if globs:
            matches |= self._listed(segment, filter_clause(Filter(spaces=self._where.spaces, sources=globs)))
        return matches

    # ---- conditions

    def _condition(self, segment: Segment, space: str, condition: Condition) -> Mask:
        match condition:
            case Term(text, prefix=False):
                return _any(segment, [text])
            case Term() | Phrase() | Near() | Linked() | Pinned():
                return self._listed(segment, condition_clause(condition))
            case Unexpired(now):
                return ~self._listed(segment, Clause("m.expires_us <= ?", (microseconds(now),)))
            case During(period):
                return self._during(segment, space, period)
            case Only(where):
                return self._filter(segment, space, where)
            case AnyOf(parts):
                return reduce(np.logical_or, (self._condition(segment, space, part) for part in parts))
            case AllOf(parts):
                return reduce(np.logical_and, (self._condition(segment, space, part) for part in parts))
            case Without(wanted, unwanted):
                matches = ~self._condition(segment, space, unwanted)
                return matches if wanted is None else matches & self._condition(segment, space, wanted)
        raise AssertionError(condition)

    def _during(self, segment: Segment, space: str, period: Period) -> Mask:
        """A segment knows when memories were created. Few have a time of their own: the database lists these."""
        matches = np.ones(len(segment), np.bool_)
        happened = Clause("m.space = ? AND m.happened_us IS NOT NULL", (space,))
        if period.start is not None:
            matches &= segment.created >= microseconds(period.start)
            happened &= Clause("m.happened_us >= ?", (microseconds(period.start),))
        if period.end is not None:
            matches &= segment.created < microseconds(period.end)
            happened &= Clause("m.happened_us < ?", (microseconds(period.end),))
        return matches | self._listed(segment, happened)

    def _listed(self, segment: Segment, clause: Clause) -> Mask:
        """The memories that the database lists for a clause."""
        if clause not in self._rows:
            live = clause & LIVE
            sql = f"SELECT m.row FROM memories AS m WHERE {live.sql}"
            self._rows[clause] = np.array([row for (row,) in fetch(self._db, sql, live.parameters)], np.int64)
        matches = np.zeros(len(segment), np.bool_)
        matches[segment.docs_of(self._rows[clause])] = True
        return matches


def _values(segment: Segment, where: Filter) -> Mask:
    """The fields of a filter whose values are terms of the segment."""
    matches = np.ones(len(segment), np.bool_)
    for field, values in (
        ("kind", where.kinds),
        ("namespace", where.namespaces),
        ("session", where.sessions),
        ("tag", where.tags_any),
    ):
        if values:
            matches &= _any(segment, (having(field, value) for value in values))
    for tag in where.tags_all:
        matches &= _any(segment, [having("tag", tag)])
    if where.tags_none:
        matches &= ~_any(segment, (having("tag", tag) for tag in where.tags_none))
    for key, value in where.metadata.items():
        matches &= _any(segment, [with_metadata(key, value)])
    for part in where.has:
        if part != "facts":
            matches &= _any(segment, [with_part(part)])
    return matches


def _any(segment: Segment, terms: Iterable[str]) -> Mask:
    """By memory, whether it has one of these terms."""
    matches = np.zeros(len(segment), np.bool_)
    places = segment.places(np.array([hashed(term) for term in terms], np.uint64))
    for postings in segment.postings(places[places >= 0]):
        matches[segment.docs[postings]] = True
    return matches
