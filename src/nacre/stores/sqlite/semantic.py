"""The semantic channel: the vector index finds passages, the rows say which may be found and whose they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from nacre.query.tree import Question
from nacre.stores.sqlite.filters import LIVE, meeting, only_spaces
from nacre.stores.sqlite.vectors import Near, RowFilter, VectorIndex
from nacre.types import Filter, Match, Span

if TYPE_CHECKING:
    from nacre.types import FloatVector


def semantic(
    db: apsw.Connection,
    index: VectorIndex,
    vector: FloatVector,
    model: str,
    question: Question,
    where: Filter,
    limit: int,
) -> list[Match]:
    """The live memories with the best passages by cosine, best first, ties by id."""
    only = _row_filter(db, question, where)
    near = [each for space in where.spaces for each in index.nearest(db, model, space, vector, only, limit)]
    return _matches(db, near, limit)


def _row_filter(db: apsw.Connection, question: Question, where: Filter) -> RowFilter | None:
    """The filter over rows for the vector index, which sees only live memories of one space at a time."""
    if only_spaces(where) and question.must is None:
        return None
    clause = meeting(question.must, where) & LIVE
    base = f"SELECT m.row FROM memories AS m WHERE {clause.sql}"

    def passing(candidates: list[int]) -> set[int]:
        sql = f"{base} AND m.row IN (SELECT value FROM json_each(?))"
        return {row for (row,) in db.execute(sql, (*clause.parameters, json.dumps(candidates)))}

    def all_rows() -> list[int]:
        return [row for (row,) in db.execute(base, clause.parameters)]

    return RowFilter(passing, all_rows)


def _matches(db: apsw.Connection, near: Sequence[Near], limit: int) -> list[Match]:
    """The best passages as matches: ids and spans looked up in one go, ties broken by id."""
    if not near:
        return []
    best = sorted(near, key=lambda each: -each.cosine)
    least = best[min(limit, len(best)) - 1].cosine
    kept = {each.key: each.cosine for each in best if each.cosine >= least}
    sql = (
        "SELECT p.passage, m.id, p.start_char, p.end_char FROM json_each(?) AS j "
        "JOIN passages AS p ON p.passage = j.value JOIN memories AS m ON m.row = p.row WHERE m.deleted_us IS NULL"
    )
    found = db.execute(sql, (json.dumps(list(kept)),))
    matches = [Match(memory_id, kept[key], Span(start, end)) for key, memory_id, start, end in found]
    return sorted(matches, key=lambda match: (-match.score, match.id))[:limit]
