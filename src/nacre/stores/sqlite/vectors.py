"""The semantic channel: the nearest passages of a space, caught up from rows before every search.

Each space has a block of vectors (read from rows, or mapped from a snapshot file) and a tail of what
came since; both are scanned exactly. Above HNSW_PASSAGES_MIN an HNSW graph over the block, built in the
background, takes the place of its scan. Whatever found the candidates, their cosines are computed by
`nacre.vectors.cosines`, so every path gives the same scores.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import apsw
import numkong
import numpy as np
import numpy.typing as npt

from nacre import natives
from nacre.stores.sqlite.snapshots import Block, Half, Snapshots, Stamp, Whole, empty_block
from nacre.vectors import STORED, cosines

if TYPE_CHECKING:
    from nacre.types import FloatVector

HNSW_PASSAGES_MIN = 150_000  # below, an exact scan takes a few milliseconds (see docs/performance.md)
SNAPSHOT_PASSAGES_MIN = 4_096  # below, reading the rows is as fast as mapping a file
TAIL_PASSAGES_MAX = 4_096  # or a quarter of the block: then the block is made anew
SPACES_CACHED_MAX = 64
HNSW_CONNECTIVITY = 16
HNSW_EXPANSION_ADD = 128
HNSW_EXPANSION_SEARCH = 64
MODEL_SWITCHED = "model switched"  # the event after which every vector is another

_SCAN_ERROR = 1e-3  # half precision of the query moves a scanned score by less than this
_GRAPH_SLICE = 2_000  # vectors added before looking whether the store is being closed

_log = logging.getLogger("nacre")
Flags: TypeAlias = npt.NDArray[np.bool_]


class Near(NamedTuple):
    """A passage near the query, the best of its memory."""

    key: int
    row: int
    cosine: float


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which memories may be found. `passing` checks a few rows, `all_rows` lists them; None: all pass."""

    passing: Callable[[list[int]], set[int]]
    all_rows: Callable[[], list[int]]


@dataclass(frozen=True, slots=True)
class SpaceVectors:
    """The vectors of one space as of event `stamp.seq`."""

    stamp: Stamp
    seq: int
    block: Block
    gone: Flags  # of the block: changed or deleted since
    tail: Block
    graph: Any = None  # usearch index over the block, keyed by position

    @property
    def rows(self) -> Whole:
        return np.concatenate([self.block.rows, self.tail.rows])

    def alive(self) -> Flags:
        return np.concatenate([~self.gone, np.ones(len(self.tail), np.bool_)])

    def keys_at(self, positions: Whole) -> Whole:
        return np.concatenate([self.block.keys, self.tail.keys])[positions]

    def vectors_at(self, positions: Whole) -> Half:
        inside = positions < len(self.block)
        if inside.all():
            return self.block.matrix[positions]
        if not inside.any():
            return self.tail.matrix[positions - len(self.block)]
        found = np.empty((len(positions), self.block.matrix.shape[1]), STORED)
        found[inside] = self.block.matrix[positions[inside]]
        found[~inside] = self.tail.matrix[positions[~inside] - len(self.block)]
        return found


class VectorIndex:
    """Vectors of all spaces of one store. Shared by threads: states are replaced, never changed."""

    def __init__(self, snapshots: Snapshots, store_id: str) -> None:
        self._snapshots = snapshots
        self._store_id = store_id
        self._states: OrderedDict[str, SpaceVectors] = OrderedDict()
        self._lock = threading.RLock()
        self._builder: threading.Thread | None = None
        self._closing = threading.Event()

    def nearest(
        self, db: apsw.Connection, model: str, space: str, query: FloatVector, only: RowFilter | None, limit: int
    ) -> list[Near]:
        """At least the `limit` nearest memories that pass (fewer if there are fewer), best first."""
        state = self._caught_up(db, model, space)
        if not len(state.block) and not len(state.tail):
            return []
        rows = state.rows
        positions = _passing(_first_positions(state, query, 2 * limit), rows, only)
        if len(np.unique(rows[positions])) < limit:
            positions = _exhaustive_positions(state, query, only, limit)
        elif state.graph is not None:
            positions = np.concatenate([positions, _passing(_tail_positions(state), rows, only)])
        return _best_of_each_row(state, query, positions)

    def drop(self, spaces: Iterable[str]) -> None:
        """Drop states and files: a purged text must not live on in its vectors."""
        with self._lock:
            for space in spaces:
                self._states.pop(space, None)
                self._snapshots.drop(space)

    def build_graph(self, db: apsw.Connection, model: str, space: str) -> None:
        """Build the HNSW graph of a large space now rather than in the background."""
        state = self._caught_up(db, model, space, in_background=False)
        if state.graph is None and len(state.block) >= HNSW_PASSAGES_MIN:
            self._build(state)

    def close(self) -> None:
        self._closing.set()
        builder = self._builder
        if builder is not None:
            builder.join()

    # ---- catching up

    def _caught_up(self, db: apsw.Connection, model: str, space: str, in_background: bool = True) -> SpaceVectors:
        seq: int = db.execute("SELECT coalesce(max(seq), 0) FROM events").get
        state = self._states.get(space)
        if state is not None and state.seq >= seq and state.stamp.model == model:
            return state
        with self._lock:
            state = self._states.get(space)
            if state is None or state.stamp.model != model:
                state = self._from_snapshot(db, model, space)
            if state is None:
                state = self._from_rows(db, model, space, seq)
            elif state.seq < seq:
                state = self._with_changes(db, state, seq)
            self._states[space] = state
            self._states.move_to_end(space)
            while len(self._states) > SPACES_CACHED_MAX:
                self._states.popitem(last=False)
            if in_background and state.graph is None and len(state.block) >= HNSW_PASSAGES_MIN:
                self._build_in_background(state)
            return state

    def _stamp(self, db: apsw.Connection, model: str, space: str, seq: int) -> Stamp:
        event = db.execute("SELECT at_us || ' ' || memory_id FROM events WHERE seq = ?", (seq,)).get
        return Stamp(self._store_id, model, space, seq, event or "")

    def _from_snapshot(self, db: apsw.Connection, model: str, space: str) -> SpaceVectors | None:
        seq = self._snapshots.newest_seq(space)
        if seq is None:
            return None
        stamp = self._stamp(db, model, space, seq)
        block = self._snapshots.read(stamp)
        if block is None:
            return None
        return self._fresh(stamp, block, self._open_graph(stamp, block))

    def _from_rows(self, db: apsw.Connection, model: str, space: str, seq: int) -> SpaceVectors:
        block = _load(db, "m.space = ? ORDER BY p.passage", (space,))
        stamp = self._stamp(db, model, space, seq)
        if len(block) >= SNAPSHOT_PASSAGES_MIN:
            self._snapshots.write(stamp, block)
            block = self._snapshots.read(stamp) or block  # mapped pages can be shared and dropped
        return self._fresh(stamp, block, None)

    @staticmethod
    def _fresh(stamp: Stamp, block: Block, graph: Any) -> SpaceVectors:
        tail = empty_block(block.matrix.shape[1])
        return SpaceVectors(stamp, stamp.seq, block, np.zeros(len(block), np.bool_), tail, graph)

    def _with_changes(self, db: apsw.Connection, state: SpaceVectors, seq: int) -> SpaceVectors:
        """The state as of `seq`: touched memories leave block and tail and come back as they are now."""
        space = state.stamp.space
        changes = "FROM events WHERE seq > ? AND seq <= ?"
        # After a purge the block is made anew, too, so that no snapshot keeps the purged vectors.
        sql = f"SELECT 1 {changes} AND (action = ? OR (action = 'purged' AND space = ?))"
        outdated = db.execute(sql, (state.seq, seq, MODEL_SWITCHED, space)).get
        touched: list[int] = [
            row for (row,) in db.execute(f"SELECT DISTINCT row {changes} AND space = ?", (state.seq, seq, space))
        ]
        tail_max = max(TAIL_PASSAGES_MAX, len(state.block) // 4)
        if outdated or len(touched) > tail_max:
            return self._from_rows(db, state.stamp.model, space, seq)
        if not touched:
            return replace(state, seq=seq)
        gone = state.gone | np.isin(state.block.rows, touched)
        kept = ~np.isin(state.tail.rows, touched)
        new = _load(db, "m.row IN (SELECT value FROM json_each(?)) ORDER BY p.passage", (json.dumps(touched),))
        parts = [Block(state.tail.keys[kept], state.tail.rows[kept], state.tail.matrix[kept]), new]
        tail = _joined([part for part in parts if len(part)])
        if len(tail) + int(gone.sum()) > tail_max:
            return self._from_rows(db, state.stamp.model, space, seq)
        return replace(state, seq=seq, gone=gone, tail=tail)

    # ---- the graph

    def _open_graph(self, stamp: Stamp, block: Block) -> Any:
        path = self._snapshots.graph_path(stamp)
        if len(block) < HNSW_PASSAGES_MIN or not path.is_file():
            return None
        try:
            graph = _new_graph(block.matrix.shape[1])
            graph.view(str(path))
        except Exception as error:  # usearch raises what its C++ core throws
            _log.warning("the vector graph %s cannot be read (%s); it is built anew", path.name, error)
            return None
        return graph if len(graph) == len(block) else None

    def _build_in_background(self, state: SpaceVectors) -> None:
        if self._builder is not None and self._builder.is_alive():
            return
        self._builder = threading.Thread(target=self._build, args=(state,), name="nacre-hnsw", daemon=True)
        self._builder.start()

    def _build(self, state: SpaceVectors) -> None:
        stamp, matrix = state.stamp, state.block.matrix
        graph = _new_graph(matrix.shape[1])
        for start in range(0, len(matrix), _GRAPH_SLICE):
            if self._closing.is_set():
                return
            part = matrix[start : start + _GRAPH_SLICE]
            graph.add(np.arange(start, start + len(part), dtype=np.uint64), part)
        with self._lock:
            current = self._states.get(stamp.space)
            if current is None or current.block is not state.block:
                return  # purged or made anew meanwhile
            self._states[stamp.space] = replace(current, graph=graph)
            try:
                self._snapshots.write_graph(stamp, lambda path: graph.save(str(path)))
            except Exception as error:  # a cache that cannot be kept is still good for this process
                _log.warning("the vector graph could not be written (%s)", error)


def _new_graph(dimensions: int) -> Any:
    graph_index = natives.graph_index()  # 20 ms or more, which small stores never pay
    return graph_index(
        ndim=dimensions,
        metric="cos",
        dtype="f16",
        connectivity=HNSW_CONNECTIVITY,
        expansion_add=HNSW_EXPANSION_ADD,
        expansion_search=HNSW_EXPANSION_SEARCH,
    )


def _load(db: apsw.Connection, condition: str, parameters: tuple[str, ...]) -> Block:
    sql = (
        "SELECT p.passage, p.row, p.vector FROM memories AS m JOIN passages AS p ON p.row = m.row "
        f"WHERE m.deleted_us IS NULL AND m.embedded = 1 AND {condition}"
    )
    found = db.execute(sql, parameters).fetchall()
    if not found:
        return empty_block()
    keys, rows, blobs = zip(*found, strict=True)
    matrix = np.frombuffer(b"".join(blobs), STORED).reshape(len(blobs), -1)
    return Block(np.array(keys, np.int64), np.array(rows, np.int64), matrix)


def _joined(blocks: list[Block]) -> Block:
    if not blocks:
        return empty_block()
    return Block(
        np.concatenate([block.keys for block in blocks]),
        np.concatenate([block.rows for block in blocks]),
        np.concatenate([block.matrix for block in blocks]),
    )


# ---------------------------------------------------------------- searching one state


def _first_positions(state: SpaceVectors, query: FloatVector, count: int) -> Whole:
    """Positions of about `count` nearest passages: of the block by its graph, or of everything by a scan."""
    if state.graph is None:
        return _top(_scan(state, query), count)
    found = state.graph.search(query.astype(STORED), count).keys.astype(np.int64)
    alive: Whole = found[~state.gone[found]]
    return alive


def _tail_positions(state: SpaceVectors) -> Whole:
    return np.arange(len(state.tail), dtype=np.int64) + len(state.block)


def _passing(positions: Whole, rows: Whole, only: RowFilter | None) -> Whole:
    if only is None:
        return positions
    allowed = only.passing(np.unique(rows[positions]).tolist())
    return positions[np.isin(rows[positions], list(allowed))]


def _exhaustive_positions(state: SpaceVectors, query: FloatVector, only: RowFilter | None, limit: int) -> Whole:
    """Positions that hold the best `limit` memories for sure, looking at every passage that passes."""
    alive = state.alive()
    if only is not None:
        alive &= np.isin(state.rows, only.all_rows())
    positions = np.flatnonzero(alive)
    if len(positions) < len(alive) // 8:  # few are left: compare those only
        scores = _dots(state.vectors_at(positions), query)
    else:
        scores = _scan(state, query)[positions]
    count = limit
    while True:
        best = _top(scores, count)
        if len(np.unique(state.rows[positions[best]])) >= limit or len(best) == len(positions):
            return positions[best]
        count *= 4  # long memories have many passages


def _scan(state: SpaceVectors, query: FloatVector) -> FloatVector:
    """An approximate score for every passage; -inf for those gone."""
    scores = _dots(state.block.matrix, query)
    scores[state.gone] = -np.inf
    return np.concatenate([scores, _dots(state.tail.matrix, query)]) if len(state.tail) else scores


def _dots(matrix: Half, query: FloatVector) -> FloatVector:
    if not len(matrix):
        return np.empty(0, np.float32)
    scores = numkong.cdist(query.astype(STORED)[None], matrix, metric="dot")
    return np.array(scores, np.float32).reshape(len(matrix))


def _top(scores: FloatVector, count: int) -> Whole:
    """Positions of the `count` best scores, and of all that may equal the last of them."""
    if count >= len(scores):
        return np.flatnonzero(scores > -np.inf)
    least = np.partition(scores, -count)[-count]
    return np.flatnonzero(scores >= max(least - _SCAN_ERROR, np.float32(-2)))


def _best_of_each_row(state: SpaceVectors, query: FloatVector, positions: Whole) -> list[Near]:
    if not len(positions):
        return []
    exact = cosines(state.vectors_at(positions).astype(np.float32), query)
    rows, keys = state.rows[positions], state.keys_at(positions)
    best: dict[int, Near] = {}
    for at in np.lexsort((keys, -exact)):
        row = int(rows[at])
        if row not in best:
            best[row] = Near(int(keys[at]), row, float(exact[at]))
    return list(best.values())
