"""Vector search: the index finds candidate passages, and the stored vectors give their scores.

The index compares vectors of 8-bit integers. All candidates are compared again by their stored vectors, in the same
way, so a score does not depend on how a passage was found.

A memory's score is less the more passages it has (`ranking.passage_count`). Passages are ordered by this score from the
start. The graph orders by cosine alone, so it is asked for more, until nothing further away can be among the best.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numkong
import numpy as np

from nacre.query.ast import ParsedQuery
from nacre.ranking.passage_count import gain_by_chance, semantic_match
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite.filters import LIVE, search_clause
from nacre.storage.sqlite.index.filter_mask import FilterMask, filter_mask, live_matches
from nacre.storage.sqlite.index.segment import MAIN, Array, IntArray, Mask, Segment, located
from nacre.storage.sqlite.index.segment_builder import quantised
from nacre.storage.sqlite.index.space_index import Index, Part, Space
from nacre.storage.sqlite.rows import fetch
from nacre.storage.vectors import cosines, unpack
from nacre.types.memory import Span
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

SCANNED_MAX = 32_768  # if no more memories match a filter, they are compared one by one, not by the graph
WIDER_MAX = 16  # times as many passages as without a passages_weight, before what the graph has found must do
_ROWS = 4_096  # passages that are read at a time without the index
_MARGIN = 0.004  # rounding to 8 bits changes a cosine by less, in all but odd cases


class VectorQuery:
    """The vector of a search, stored and quantised, with its limit and the weight of the number of passages.

    `further` is the number of a further model; None: the vector is of the store's own.
    """

    def __init__(
        self,
        vector: FloatVector,
        further: int | None,
        limit: int,
        passages_weight: float,
        mask: FilterMask | None = None,
    ) -> None:
        self.vector = vector
        self.model = MAIN if further is None else further
        self.quantised = quantised(vector[None])[0]
        self.norm = np.float32(max(np.sqrt(np.square(self.quantised.astype(np.float32)).sum()), 1e-12))
        self.mask = mask
        self.limit = limit
        self.passages_weight = passages_weight

    @property
    def table(self) -> str:
        return "passages" if self.model == MAIN else "further_passages"

    def of_model(self, alias: str) -> str:
        """The condition that a row of `table` is of the model."""
        return "true" if self.model == MAIN else f"{alias}.model = {self.model:d}"

    def adjusts(self, segment: Segment) -> bool:
        """Whether some score of this segment is not the cosine."""
        return self.passages_weight > 0 and segment.vectors(self.model).passage_numbers()[1] > 1

    def near(self, segment: Segment, places: IntArray | None, cosines: Array) -> _Near:
        """The passages at these places, or all of a segment, with their scores. `cosines` are not divided by `norm`."""
        vectors = segment.vectors(self.model)
        keys, owners = vectors.keys, vectors.owners
        if places is not None:
            keys, owners = keys[places], owners[places]
        cosines = cosines / self.norm
        if not self.adjusts(segment):
            return _Near(keys, cosines, cosines)
        numbers, most = vectors.passage_numbers()
        return _Near(keys, cosines, cosines - _gains(most, self.passages_weight)[numbers[owners]])


def semantic(
    db: apsw.Connection, index: Index, query: VectorQuery, question: ParsedQuery, where: Filter
) -> list[Match]:
    """The live memories with the best passages by cosine, less what their number gains by chance, ties by id."""
    query.mask = filter_mask(db, where, question.must)
    matches: list[Match] = []
    for name in where.spaces:
        matches += _nearest(db, index.caught_up(db, name), query)
    return best_first(matches)[: query.limit]


def semantic_by_rows(db: apsw.Connection, query: VectorQuery, question: ParsedQuery, where: Filter) -> list[Match]:
    """The same by comparing the stored vectors of all memories that match, for when the index fails."""
    clause = search_clause(where, question.must) & LIVE
    sql = (
        f"SELECT p.passage FROM memories AS m JOIN {query.table} AS p ON p.row = m.row AND {query.of_model('p')} "
        f"WHERE {clause.sql}"
    )
    keys = [key for (key,) in fetch(db, sql, clause.parameters)]
    best: dict[str, Match] = {}
    for start in range(0, len(keys), _ROWS):
        for match in _scored(db, keys[start : start + _ROWS], query):
            known = best.get(match.id)
            if known is None or match.cosine > known.cosine:
                best[match.id] = match
    return best_first(list(best.values()))[: query.limit]


class _Near(NamedTuple):
    """Passages of one part, with their cosines by the quantised vectors, and the scores of these."""

    keys: IntArray
    cosines: Array
    scores: Array


@lru_cache(maxsize=8)
def _gains(most: int, passages_weight: float) -> Array:
    """By number of passages, up to the largest, what is taken off a cosine."""
    return np.array([gain_by_chance(number, passages_weight) for number in range(most + 1)], np.float32)


def _nearest(db: apsw.Connection, space: Space, query: VectorQuery) -> list[Match]:
    """The best memories of one space."""
    parts = [part for part in space.parts if len(part.segment.vectors(query.model).keys)]
    if not parts or parts[0].segment.vectors(query.model).dimensions != len(query.quantised):
        return []
    masks = [live_matches(query.mask, part, space.name) for part in parts]
    memories = sum(len(part.segment) for part in parts)
    count = (
        int(query.limit * max(1.0, space.passages(query.model) / memories)) + 1
    )  # one passage of each memory is enough
    while True:
        keys, exhausted = _candidates(space, parts, masks, query, count)
        matches = _scored(db, keys, query)
        if len(matches) >= query.limit or exhausted:
            return matches
        count *= 4  # too many passages were of the same long memories


def _candidates(
    space: Space, parts: Sequence[Part], masks: Sequence[Mask | None], query: VectorQuery, count: int
) -> tuple[list[int], bool]:
    """Keys of about `count` nearest passages of memories that match, and whether there are no others."""
    found = _by_graph(space, parts, masks, query, count)
    exhausted = found is None
    if found is None:
        found = [_scanned(part, mask, query) for part, mask in zip(parts, masks, strict=True)]
    keys = np.concatenate([each.keys for each in found])
    scores = np.concatenate([each.scores for each in found])
    best = _top(scores, count, query.limit)
    return keys[best].tolist(), exhausted and len(best) == len(keys)


def _by_graph(
    space: Space, parts: Sequence[Part], masks: Sequence[Mask | None], query: VectorQuery, count: int
) -> list[_Near] | None:
    """By part, the passages that the graph finds, and all that are newer than the graph.

    What the graph does not find is further away than all that it finds. If the `count` best by score are as near as
    that, no other can be among them; if not, long memories took places of the nearest, and the graph is asked for more.
    None: there is no graph, or so few memories match that comparing all of them is faster.
    """
    graph = space.graphs.get(query.model)
    if graph is None:
        return None
    memories = sum(len(part.segment) for part in parts)
    matching = sum(
        len(part.segment) if mask is None else int(np.count_nonzero(mask))
        for part, mask in zip(parts, masks, strict=True)
    )
    if matching <= SCANNED_MAX:
        return None
    requested = int(count * memories / matching)
    most = WIDER_MAX * requested
    if any(query.adjusts(part.segment) for part in parts):
        requested *= 4  # long memories take places among the nearest that they do not keep
    while requested < len(graph) // 8:
        nearest = graph.nearest(query.quantised, requested)
        places = [_places(part, mask, nearest, query.model) for part, mask in zip(parts, masks, strict=True)]
        if sum(map(len, places)) >= query.limit:  # else newer passages that are far would hide older ones that are near
            found = [_compared(part, own, query) for part, own in zip(parts, places, strict=True)]
            if requested >= most or _complete(found, count):
                newer = [_newer(part, mask, graph.newest, query.model) for part, mask in zip(parts, masks, strict=True)]
                return found + [_compared(part, own, query) for part, own in zip(parts, newer, strict=True)]
        requested *= 4
    return None


def _complete(found: Sequence[_Near], count: int) -> bool:
    """Whether nothing that the graph did not find can be among the `count` best."""
    if all(each.scores is each.cosines for each in found):
        return True
    scores = np.concatenate([each.scores for each in found])
    reach = min(each.cosines.min(initial=1.0) for each in found)
    return count <= len(scores) and bool(np.partition(scores, -count)[-count] >= reach)


def _places(part: Part, mask: Mask | None, keys: IntArray, model: int) -> IntArray:
    """The places of those of these passages that the part has and whose memories match."""
    vectors = part.segment.vectors(model)
    at, here = located(vectors.keys, keys)
    own = at[here]
    return own if mask is None else own[mask[vectors.owners[own]]]


def _newer(part: Part, mask: Mask | None, newest: int, model: int) -> IntArray:
    """The places of passages that are newer than the graph, of memories that match."""
    vectors = part.segment.vectors(model)
    own = np.arange(np.searchsorted(vectors.keys, newest, side="right"), len(vectors.keys))
    return own if mask is None else own[mask[vectors.owners[own]]]


def _compared(part: Part, own: IntArray, query: VectorQuery) -> _Near:
    """The passages at these places."""
    vectors = part.segment.vectors(query.model)
    return query.near(part.segment, own, _dots(vectors.matrix[own], query) / vectors.norms[own])


def _scanned(part: Part, mask: Mask | None, query: VectorQuery) -> _Near:
    """All passages whose memories match."""
    vectors = part.segment.vectors(query.model)
    if mask is None:
        return query.near(part.segment, None, _dots(vectors.matrix, query) / vectors.norms)
    own = np.flatnonzero(mask[vectors.owners])
    if len(own) < len(vectors.keys) // 4:
        return _compared(part, own, query)
    return query.near(part.segment, own, (_dots(vectors.matrix, query) / vectors.norms)[own])


def _dots(matrix: Array, query: VectorQuery) -> Array:
    if not len(matrix):
        return np.empty(0, np.float32)
    products = numkong.cdist(query.quantised[None], matrix, metric="dot")
    return np.array(products, np.float32).reshape(len(matrix))


def _top(scores: Array, count: int, limit: int) -> IntArray:
    """Places of the `count` best scores, and of all that may equal the `limit`-th of them before rounding."""
    if count >= len(scores):
        return np.arange(len(scores))
    ordered = np.partition(scores, (-count, -limit))
    return np.flatnonzero(scores >= min(ordered[-count], ordered[-limit] - _MARGIN))


def _scored(db: apsw.Connection, keys: Sequence[int], query: VectorQuery) -> list[Match]:
    """The best passage of each live memory by the stored vectors."""
    counted = f"(SELECT count(*) FROM {query.table} AS o WHERE o.row = p.row AND {query.of_model('o')})"
    number = counted if query.passages_weight else "1"
    sql = (
        f"SELECT m.id, p.start_char, p.end_char, {number}, p.vector FROM json_each(?) AS j "
        f"JOIN {query.table} AS p ON p.passage = j.value JOIN memories AS m ON m.row = p.row "
        "WHERE m.deleted_us IS NULL ORDER BY p.passage"
    )
    found = fetch(db, sql, (json.dumps(keys),))
    if not found:
        return []
    exact = cosines(unpack([vector for *_, vector in found]), query.vector).tolist()
    best: dict[str, Match] = {}
    for (memory_id, start, end, passages, _), cosine in zip(found, exact, strict=True):
        known = best.get(memory_id)
        if known is None or cosine > known.cosine:
            best[memory_id] = semantic_match(memory_id, cosine, Span(start, end), passages, query.passages_weight)
    return list(best.values())
