"""Counts over all matches of a query, made in SQL."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import apsw

from nacre.query.tree import AnyOf, Question
from nacre.stores.sqlite import rows
from nacre.stores.sqlite.filters import LIVE, condition_clause, filter_clause
from nacre.types import Filter, Tally

_QUARTER_US = timedelta(minutes=15) // timedelta(microseconds=1)
_COUNTS = f"""
WITH matched AS MATERIALIZED (
  SELECT m.row, m.kind, m.namespace, m.source, m.created_us FROM memories AS m WHERE {{clause}}
)
SELECT 'total', NULL, count(*) FROM matched
UNION ALL SELECT 'kind', kind, count(*) FROM matched GROUP BY 2
UNION ALL SELECT 'namespace', namespace, count(*) FROM matched GROUP BY 2
UNION ALL SELECT 'source', source, count(*) FROM matched WHERE source IS NOT NULL GROUP BY 2
UNION ALL SELECT 'tag', tag, count(*) FROM matched JOIN tags USING (row) GROUP BY 2
-- SQLite divides towards zero; a remainder below it would put times before 1970 into the quarter after.
UNION ALL SELECT 'created', created_us - (created_us % {_QUARTER_US} + {_QUARTER_US}) % {_QUARTER_US}, count(*)
  FROM matched GROUP BY 2
"""


def tally(db: apsw.Connection, question: Question, where: Filter) -> Tally:
    clause = filter_clause(where) & LIVE
    if question.must is not None:
        clause &= condition_clause(question.must)
    if question.terms and not question.listing:
        clause &= condition_clause(AnyOf(question.terms))
    counts: defaultdict[str, dict[Any, int]] = defaultdict(dict)
    for facet, value, memories in rows.fetch(db, _COUNTS.format(clause=clause.sql), clause.parameters):
        counts[facet][value] = memories
    return Tally(
        total=counts["total"][None],
        kinds=counts["kind"],
        namespaces=counts["namespace"],
        tags=counts["tag"],
        sources=counts["source"],
        created={rows.moment(us): memories for us, memories in counts["created"].items()},
    )
