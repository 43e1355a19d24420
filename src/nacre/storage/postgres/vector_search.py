"""Vector search: the server finds candidate passages, and their stored vectors give the scores.

The server computes cosines in another order and with a rounded query, so what it finds is compared again, in the way of
every store. It is asked for more until nothing that it left out can be among the best.

Few passages are compared one by one. Where there are many and pgvector's graph (HNSW) has them, the graph is asked, and
those that were written since it was built are compared one by one beside it. A memory's score is less the more passages
it has (`ranking.passage_count`). The graph orders by cosine alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nacre.query.ast import ParsedQuery, matches_everything
from nacre.ranking.passage_count import gain_by_chance, semantic_match
from nacre.ranking.scoring import best_first
from nacre.storage.postgres import further_vectors, vector_graph
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.filters import LIVE, Clause, estimated, search_clause
from nacre.storage.postgres.halfvec import HalfVector, all_received
from nacre.storage.postgres.listing import vectors_of
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.words import WordsOfSpaces
from nacre.storage.postgres.writes import model_mismatch
from nacre.storage.vectors import cosines, pack, unpack
from nacre.types.memory import Span
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

EF_SEARCH = 120  # how many neighbours the graph keeps in view while it searches, at least
EF_SEARCH_MAX = 1_000  # that pgvector allows
_BEYOND = 16  # passages that are asked for beside those that are wanted
TUPLES_MAX = 100_000  # that the graph visits for those that match a filter
WIDER_MAX = 64  # times as many passages, before what the graph has found must do
_GAINS_MAX = 512  # passages of one memory: of more, the server takes off too little, and what it finds is scored anyway
_MARGIN = 0.004  # by less than this the server's cosine differs from ours: it rounds the query to 16 bits

_JOINED = "{table} AS p JOIN memories AS m ON m.space = p.space AND m.row = p.row AND {of_model}"
_DISTANCE = "coalesce(nullif((p.vector <=> %s)::float8, 'NaN'), 1)"  # a vector of zeros has no direction
# Also sets how a graph is searched, for this transaction.
_STATE = (
    "SELECT (SELECT value FROM meta WHERE key = 'model'), "
    "(SELECT coalesce(sum(memories), 0)::bigint FROM corpus WHERE space = ANY(%s)), "
    f"EXISTS (SELECT 1 FROM ({vector_graph.EVERY_GRAPH}) AS graph WHERE graph.name = %s AND graph.is_valid), "
    "EXISTS (SELECT FROM {table} WHERE space = ANY(%s) AND beside_graph), "
    "set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true), "
    f"set_config('hnsw.max_scan_tuples', '{TUPLES_MAX}', true)"
)
_COLUMNS = "m.id, p.place, p.start_char, p.end_char, p.siblings, p.vector"
# Where everything is compared, it is looked up afterwards which of the best are live. Nothing tells the server how many
# vectors have the right length, so it must not plan by that (OFFSET 0): it expects few.
_OF_SPACES = (
    "SELECT m.id, p.place, p.start_char, p.end_char, p.siblings, p.vector, p.near FROM ("
    "SELECT p.*, {score} AS near FROM {table} AS p WHERE p.space = ANY(%s) AND {of_model}{beside} "
    "AND vector_dims(p.vector) = %s "
    "ORDER BY near DESC LIMIT %s"
    ") AS p LEFT JOIN memories AS m ON m.space = p.space AND m.row = p.row AND m.deleted_us IS NULL "
    "ORDER BY p.near DESC"
)
_OF_MEMORIES = (
    "SELECT p.*, {score} AS near FROM ("
    f"SELECT {_COLUMNS} FROM {_JOINED} WHERE {{beside}}{{where}} OFFSET 0"
    ") AS p WHERE vector_dims(p.vector) = %s ORDER BY near DESC LIMIT %s"
)


class _Passage(NamedTuple):
    memory_id: str | None  # None: it is forgotten
    place: int
    start: int
    end: int
    siblings: int
    vector: bytes
    near: float  # the server's score


def semantic(
    db: Db,
    vector: FloatVector,
    model: str,
    question: ParsedQuery,
    where: Filter,
    limit: int,
    passages_weight: float,
    location: str,
    lacks_graph: Callable[[], None],
) -> list[Match]:
    """The live memories with the best passages by cosine, less what their number gains by chance, ties by id.

    `lacks_graph` is called where a graph would be asked, and there is none.
    """
    spaces = list(where.spaces)
    stored, memories, is_ready, some_beside = _state(db, vector_graph.OWN, spaces, len(vector), limit)
    further = None
    if stored != model and further_vectors.is_known(db, model):
        further = further_vectors.number_of(model)
        stored, memories, is_ready, some_beside = _state(db, vector_graph.FURTHER, spaces, len(vector), limit)
    elif stored is None:
        return []
    elif stored != model:
        raise model_mismatch(stored, model, location)
    clause = search_clause(where, question.must, WordsOfSpaces(db, where.spaces).docs) & LIVE
    everything = matches_everything(where, question.must)
    query = _Query(db, vector, further, where.spaces, clause, limit, passages_weight)
    if memories > vector_graph.SCANNED_MAX:
        matching = memories if everything else estimated(db, clause)
        if matching > vector_graph.SCANNED_MAX:
            if not is_ready:
                lacks_graph()
            elif (found := query.by_graph(some_beside=some_beside, everything=everything)) is not None:
                return found
    return query.by_scan(everything=everything)


def _state(
    db: Db, table: str, spaces: Sequence[str], dimensions: int, limit: int
) -> tuple[str | None, int, bool, bool]:
    """The store's own model, how many memories these spaces have, whether a table of vectors has a graph, and whether
    some of its vectors stay beside it."""
    in_view = min(max(EF_SEARCH, limit + _BEYOND), EF_SEARCH_MAX)  # to look for more once these are read costs as much
    asked = list(spaces), vector_graph.name(dimensions, table), list(spaces), str(in_view)
    ((stored, memories, is_ready, some_beside, *_),) = fetch(db, _STATE.replace("{table}", table), asked)
    return stored, memories, is_ready, some_beside


class _Query:
    """One search: its vector as it is compared here and as the server compares it, and what must match."""

    def __init__(
        self,
        db: Db,
        vector: FloatVector,
        further: int | None,  # the number of a further model; None: the vector is of the store's own
        spaces: Sequence[str],
        clause: Clause,
        limit: int,
        passages_weight: float,
    ) -> None:
        self._db = db
        self._of = {
            "table": vector_graph.OWN if further is None else vector_graph.FURTHER,
            "of_model": "true" if further is None else f"p.model = {further:d}",
        }
        self._joined = _JOINED.format(**self._of)
        self._spaces = list(spaces)
        self._vector = vector
        self._sent = HalfVector(pack(vector))
        self._dimensions = len(vector)
        self._clause = clause
        self._limit = limit
        self._passages_weight = passages_weight

    def by_scan(self, *, everything: bool) -> list[Match]:
        """All passages that match are compared; `everything`: all of their spaces."""
        return self._best([], self._scan(everything=everything, beside=False))

    def _best(self, near: Sequence[_Passage], scan: Callable[[int], list[_Passage]]) -> list[Match]:
        """The best of some passages and of what is compared one by one."""
        count = 2 * self._limit + _BEYOND
        while True:
            found = scan(count)
            matches = self._scored([*near, *found])
            if len(found) < count or self._is_complete(matches, found[-1].near):
                return matches[: self._limit]
            count *= 4

    def _scan(self, *, everything: bool, beside: bool) -> Callable[[int], list[_Passage]]:
        """Gives so many of the best passages by the server's score; `beside`: of those beside the graph."""
        score = f"1 - {_DISTANCE}"
        given: tuple[Any, ...] = (self._sent,)
        if self._passages_weight:
            score = f"{score} - (%s::float8[])[least(p.siblings, {_GAINS_MAX:d})]"
            given = (*given, list(_gains(self._passages_weight)))
        if everything:
            sql = _OF_SPACES.format(score=score, beside=" AND p.beside_graph" if beside else "", **self._of)
            given = (*given, self._spaces)
        elif beside:
            clause = "p.space = ANY(%s) AND p.beside_graph AND "
            sql = _OF_MEMORIES.format(score=score, beside=clause, where=self._clause.sql, **self._of)
            given = (*given, self._spaces, *self._clause.parameters)
        else:
            sql = _OF_MEMORIES.format(score=score, beside="", where=self._clause.sql, **self._of)
            given = (*given, *self._clause.parameters)
        return lambda count: self._fetched(sql, (*given, self._dimensions, count))

    def by_graph(self, *, some_beside: bool, everything: bool) -> list[Match] | None:
        """What the graph does not find is further away than all that it finds. None: it finds too few that match.

        `some_beside`: there are passages beside the graph, which are compared one by one.
        """
        first = count = self._limit + _BEYOND
        distance = f"(p.vector::halfvec({self._dimensions:d}) <=> %s::halfvec({self._dimensions:d}))"
        sql = (
            f"SELECT {_COLUMNS}, 1 - {distance} AS near FROM {self._joined} WHERE {self._clause.sql} "
            f"AND NOT p.beside_graph AND vector_dims(p.vector) = {self._dimensions:d} ORDER BY {distance} LIMIT %s"
        )
        while True:
            found = self._fetched(sql, (self._sent, *self._clause.parameters, self._sent, count))
            matches = self._scored(found)
            if len(found) < count and len(matches) < self._limit:
                return None
            # Of equal scores that lie beyond, any may be missing: a graph misses some anyway.
            enough = len(matches) >= self._limit and found[-1].near <= matches[self._limit - 1].score
            if enough or len(found) < count or count >= WIDER_MAX * first:
                break
            count *= 4
        if some_beside:
            return self._best(found, self._scan(everything=everything, beside=True))
        return matches[: self._limit]

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[_Passage]:
        found = [_Passage(*each) for each in fetch(self._db, sql, parameters)]
        if self._db.seen is not None and self._of["table"] == vector_graph.OWN:
            self._db.seen |= {vectors_of(each.memory_id): [each.vector] for each in found if each.siblings == 1}
        return found

    def _is_complete(self, matches: Sequence[Match], reach: float) -> bool:
        """Whether nothing below what the server reached can be among the best."""
        return len(matches) >= self._limit and reach < matches[self._limit - 1].score - _MARGIN

    def _scored(self, found: Sequence[_Passage]) -> list[Match]:
        """The best passage of each memory by the stored vectors, best first."""
        found = [each for each in found if each.memory_id is not None]
        if not found:
            return []
        exact = cosines(unpack(all_received([each.vector for each in found])), self._vector).tolist()
        best: dict[str, tuple[float, int, _Passage]] = {}
        for each, cosine in zip(found, exact, strict=True):
            assert each.memory_id is not None
            known = best.get(each.memory_id)
            if known is None or (cosine, -each.place) > known[:2]:
                best[each.memory_id] = cosine, -each.place, each
        return best_first(
            [
                semantic_match(memory_id, cosine, Span(each.start, each.end), each.siblings, self._passages_weight)
                for memory_id, (cosine, _, each) in best.items()
            ]
        )


@lru_cache(maxsize=8)
def _gains(passages_weight: float) -> Sequence[float]:
    """By number of passages, from 1, what is taken off a cosine."""
    return [gain_by_chance(number, passages_weight) for number in range(1, _GAINS_MAX + 1)]
