"""The semantic channel: the index finds passages that may be near, the rows say how near, and whose they are.

The index compares whole numbers of eight bits. What comes near is compared again by the vectors of the rows, in one way
for all, so a score does not depend on the path by which a passage was found.
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
from nacre.storage.sqlite.index.filter_mask import FilterMask, matching, passing
from nacre.storage.sqlite.index.segment import Array, Flags, Whole, located
from nacre.storage.sqlite.index.segment_builder import quantised
from nacre.storage.sqlite.index.space_index import Index, Part, Space
from nacre.storage.sqlite.rows import fetch
from nacre.storage.vectors import cosines, unpack
from nacre.types.memory import Span
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

SCANNED_MAX = 32_768  # passages that pass a filter: so many are compared one by one, more are asked of the graph
_MARGIN = 0.004  # eight bits move a cosine by less, in all but odd cases


def semantic(
    db: apsw.Connection, index: Index, vector: FloatVector, question: ParsedQuery, where: Filter, limit: int
) -> list[Match]:
    """The live memories with the best passages by cosine, best first, ties by id."""
    wanted = _Wanted(vector, matching(db, question.must, where), limit)
    matches: list[Match] = []
    for name in where.spaces:
        matches += _nearest(db, index.caught_up(db, name), wanted)
    return best_first(matches)[:limit]


class _Wanted:
    """What a search is after."""

    def __init__(self, vector: FloatVector, demanded: FilterMask | None, limit: int) -> None:
        self.vector = vector
        self.whole = quantised(vector[None])[0]
        self.norm = np.float32(max(np.sqrt(np.square(self.whole.astype(np.float32)).sum()), 1e-12))
        self.demanded = demanded
        self.limit = limit


def _nearest(db: apsw.Connection, space: Space, wanted: _Wanted) -> list[Match]:
    """The best of one space."""
    parts = [part for part in space.parts if len(part.segment.keys)]
    if not parts or parts[0].segment.matrix.shape[1] != len(wanted.whole):
        return []
    allowed = [passing(wanted.demanded, part, space.name) for part in parts]
    memories = sum(len(part.segment) for part in parts)
    count = int(wanted.limit * max(1.0, space.passages / memories)) + 1  # of each memory, one passage is wanted
    while True:
        keys, exhausted = _candidates(space, parts, allowed, wanted, count)
        matches = _compared(db, keys, wanted)
        if len(matches) >= wanted.limit or exhausted:
            return matches
        count *= 4  # long memories have many passages


def _candidates(
    space: Space, parts: Sequence[Part], allowed: Sequence[Flags | None], wanted: _Wanted, count: int
) -> tuple[list[int], bool]:
    """Keys of about `count` nearest passages that pass, and whether there are no others."""
    found = _by_graph(space, parts, allowed, wanted, count)
    exhausted = found is None
    if found is None:
        found = [_scanned(part, flags, wanted) for part, flags in zip(parts, allowed, strict=True)]
    keys = np.concatenate([each for each, _ in found])
    scores = np.concatenate([values for _, values in found]) / wanted.norm
    best = _top(scores, count, wanted.limit)
    return keys[best].tolist(), exhausted and len(best) == len(keys)


def _by_graph(
    space: Space, parts: Sequence[Part], allowed: Sequence[Flags | None], wanted: _Wanted, count: int
) -> list[tuple[Whole, Array]] | None:
    """By part, keys of what the graph finds near, and of all that is newer, with how near it is. None: there is no
    graph, or so little passes that it is quicker to compare all of that."""
    graph = space.graph
    if graph is None:
        return None
    memories = sum(len(part.segment) for part in parts)
    many = sum(
        len(part.segment) if flags is None else int(np.count_nonzero(flags))
        for part, flags in zip(parts, allowed, strict=True)
    )
    if many <= SCANNED_MAX:
        return None
    asked = int(count * memories / many)
    while asked < len(graph) // 8:
        near = graph.nearest(wanted.whole, asked)
        known = [_known(part, flags, near) for part, flags in zip(parts, allowed, strict=True)]
        if sum(map(len, known)) >= wanted.limit:  # else what is newer, but far, would hide what is near
            return [
                _compared_here(part, flags, own, graph.newest, wanted)
                for part, flags, own in zip(parts, allowed, known, strict=True)
            ]
        asked *= 4
    return None


def _known(part: Part, flags: Flags | None, keys: Whole) -> Whole:
    """The places of those of these passages that are here and pass."""
    segment = part.segment
    at, here = located(segment.keys, keys)
    own = at[here]
    return own if flags is None else own[flags[segment.owners[own]]]


def _compared_here(part: Part, flags: Flags | None, known: Whole, newest: int, wanted: _Wanted) -> tuple[Whole, Array]:
    """The keys of what the graph has found, and of what is newer than it, with how near it is."""
    segment = part.segment
    newer = np.arange(np.searchsorted(segment.keys, newest, side="right"), len(segment.keys))
    if flags is not None:
        newer = newer[flags[segment.owners[newer]]]
    own = np.concatenate([known, newer])
    return segment.keys[own], _dots(segment.matrix[own], wanted) / segment.norms[own]


def _scanned(part: Part, flags: Flags | None, wanted: _Wanted) -> tuple[Whole, Array]:
    """The key of every passage that passes, and how near it is."""
    segment = part.segment
    if flags is None:
        return segment.keys, _dots(segment.matrix, wanted) / segment.norms
    own = np.flatnonzero(flags[segment.owners])
    if len(own) < len(segment.keys) // 4:
        return segment.keys[own], _dots(segment.matrix[own], wanted) / segment.norms[own]
    return segment.keys[own], (_dots(segment.matrix, wanted) / segment.norms)[own]


def _dots(matrix: Array, wanted: _Wanted) -> Array:
    if not len(matrix):
        return np.empty(0, np.float32)
    products = numkong.cdist(wanted.whole[None], matrix, metric="dot")
    return np.array(products, np.float32).reshape(len(matrix))


def _top(scores: Array, count: int, limit: int) -> Whole:
    """Places of the `count` best scores, and of all that may be as near as the `limit`-th of them."""
    if count >= len(scores):
        return np.arange(len(scores))
    ordered = np.partition(scores, (-count, -limit))
    return np.flatnonzero(scores >= min(ordered[-count], ordered[-limit] - _MARGIN))


def _compared(db: apsw.Connection, keys: Sequence[int], wanted: _Wanted) -> list[Match]:
    """The best passage of each live memory, by the vectors of the rows."""
    sql = (
        "SELECT m.id, p.start_char, p.end_char, p.vector FROM json_each(?) AS j "
        "JOIN passages AS p ON p.passage = j.value JOIN memories AS m ON m.row = p.row "
        "WHERE m.deleted_us IS NULL ORDER BY p.passage"
    )
    found = fetch(db, sql, (json.dumps(keys),))
    if not found:
        return []
    exact = cosines(unpack([vector for *_, vector in found]), wanted.vector).tolist()
    best: dict[str, Match] = {}
    for (memory_id, start, end, _), cosine in zip(found, exact, strict=True):
        known = best.get(memory_id)
        if known is None or cosine > known.score:
            best[memory_id] = Match(memory_id, cosine, Span(start, end))
    return list(best.values())
