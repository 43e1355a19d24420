"""Vector search: the index finds candidate passages, and the stored vectors give their scores.

The index compares vectors of 8-bit integers. All candidates are compared again by their stored vectors, in the same
way, so a score does not depend on how a passage was found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw
import numkong
import numpy as np

from nacre.query.ast import ParsedQuery
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite.index.filter_mask import FilterMask, filter_mask, live_matches
from nacre.storage.sqlite.index.segment import Array, IntArray, Mask, located
from nacre.storage.sqlite.index.segment_builder import quantised
from nacre.storage.sqlite.index.space_index import Index, Part, Space
from nacre.storage.sqlite.rows import fetch
from nacre.storage.vectors import cosines, unpack
from nacre.types.memory import Span
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

SCANNED_MAX = 32_768  # if no more memories match a filter, they are compared one by one, not by the graph
_MARGIN = 0.004  # rounding to 8 bits changes a cosine by less, in all but odd cases


def semantic(
    db: apsw.Connection, index: Index, vector: FloatVector, question: ParsedQuery, where: Filter, limit: int
) -> list[Match]:
    """The live memories with the best passages by cosine, best first, ties by id."""
    query = _Query(vector, filter_mask(db, where, question.must), limit)
    matches: list[Match] = []
    for name in where.spaces:
        matches += _nearest(db, index.caught_up(db, name), query)
    return best_first(matches)[:limit]


class _Query:
    """The vector of a search, stored and quantised, with its filter and limit."""

    def __init__(self, vector: FloatVector, mask: FilterMask | None, limit: int) -> None:
        self.vector = vector
        self.quantised = quantised(vector[None])[0]
        self.norm = np.float32(max(np.sqrt(np.square(self.quantised.astype(np.float32)).sum()), 1e-12))
        self.mask = mask
        self.limit = limit


def _nearest(db: apsw.Connection, space: Space, query: _Query) -> list[Match]:
    """The best memories of one space."""
    parts = [part for part in space.parts if len(part.segment.keys)]
    if not parts or parts[0].segment.matrix.shape[1] != len(query.quantised):
        return []
    masks = [live_matches(query.mask, part, space.name) for part in parts]
    memories = sum(len(part.segment) for part in parts)
    count = int(query.limit * max(1.0, space.passages / memories)) + 1  # one passage of each memory is enough
    while True:
        keys, exhausted = _candidates(space, parts, masks, query, count)
        matches = _scored(db, keys, query)
        if len(matches) >= query.limit or exhausted:
            return matches
        count *= 4  # too many passages were of the same long memories


def _candidates(
    space: Space, parts: Sequence[Part], masks: Sequence[Mask | None], query: _Query, count: int
) -> tuple[list[int], bool]:
    """Keys of about `count` nearest passages of memories that match, and whether there are no others."""
    found = _by_graph(space, parts, masks, query, count)
    exhausted = found is None
    if found is None:
        found = [_scanned(part, mask, query) for part, mask in zip(parts, masks, strict=True)]
    keys = np.concatenate([each for each, _ in found])
    scores = np.concatenate([values for _, values in found]) / query.norm
    best = _top(scores, count, query.limit)
    return keys[best].tolist(), exhausted and len(best) == len(keys)


def _by_graph(
    space: Space, parts: Sequence[Part], masks: Sequence[Mask | None], query: _Query, count: int
) -> list[tuple[IntArray, Array]] | None:
    """By part, keys and scores of the passages that the graph finds, and of all that are newer than the graph.

    None: there is no graph, or so few memories match that comparing all of them is faster.
    """
    graph = space.graph
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
    while requested < len(graph) // 8:
        near = graph.nearest(query.quantised, requested)
        found = [_places(part, mask, near) for part, mask in zip(parts, masks, strict=True)]
        if sum(map(len, found)) >= query.limit:  # else newer passages that are far would hide older ones that are near
            return [
                _with_newer(part, mask, own, graph.newest, query)
                for part, mask, own in zip(parts, masks, found, strict=True)
            ]
        requested *= 4
    return None


def _places(part: Part, mask: Mask | None, keys: IntArray) -> IntArray:
    """The places of those of these passages that the part has and whose memories match."""
    segment = part.segment
    at, here = located(segment.keys, keys)
    own = at[here]
    return own if mask is None else own[mask[segment.owners[own]]]


def _with_newer(part: Part, mask: Mask | None, found: IntArray, newest: int, query: _Query) -> tuple[IntArray, Array]:
    """Keys and scores of the passages that the graph found, and of all that are newer than the graph."""
    segment = part.segment
    newer = np.arange(np.searchsorted(segment.keys, newest, side="right"), len(segment.keys))
    if mask is not None:
        newer = newer[mask[segment.owners[newer]]]
    own = np.concatenate([found, newer])
    return segment.keys[own], _dots(segment.matrix[own], query) / segment.norms[own]


def _scanned(part: Part, mask: Mask | None, query: _Query) -> tuple[IntArray, Array]:
    """Keys and scores of all passages whose memories match."""
    segment = part.segment
    if mask is None:
        return segment.keys, _dots(segment.matrix, query) / segment.norms
    own = np.flatnonzero(mask[segment.owners])
    if len(own) < len(segment.keys) // 4:
        return segment.keys[own], _dots(segment.matrix[own], query) / segment.norms[own]
    return segment.keys[own], (_dots(segment.matrix, query) / segment.norms)[own]


def _dots(matrix: Array, query: _Query) -> Array:
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


def _scored(db: apsw.Connection, keys: Sequence[int], query: _Query) -> list[Match]:
    """The best passage of each live memory by the stored vectors."""
    sql = (
        "SELECT m.id, p.start_char, p.end_char, p.vector FROM json_each(?) AS j "
        "JOIN passages AS p ON p.passage = j.value JOIN memories AS m ON m.row = p.row "
        "WHERE m.deleted_us IS NULL ORDER BY p.passage"
    )
    found = fetch(db, sql, (json.dumps(keys),))
    if not found:
        return []
    exact = cosines(unpack([vector for *_, vector in found]), query.vector).tolist()
    best: dict[str, Match] = {}
    for (memory_id, start, end, _), cosine in zip(found, exact, strict=True):
        known = best.get(memory_id)
        if known is None or cosine > known.score:
            best[memory_id] = Match(memory_id, cosine, Span(start, end))
    return list(best.values())
