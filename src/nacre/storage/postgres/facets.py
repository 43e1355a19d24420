"""Facets: counts of all memories that match a query, by kind, namespace, tag, source and time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from nacre.query.ast import AnyOf, ParsedQuery, significant_terms
from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.filters import LIVE, condition_clause, search_clause
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.words import WordsOfSpaces
from nacre.types.search import Filter
from nacre.types.stats import FacetCounts

_QUARTER_US = timedelta(minutes=15) // timedelta(microseconds=1)
# Division is towards zero. The second remainder puts times before 1970 into their own quarter, not the next one.
_QUARTER = f"m.created_us - mod(mod(m.created_us, {_QUARTER_US}) + {_QUARTER_US}, {_QUARTER_US})"


def facet_counts(db: Db, question: ParsedQuery, where: Filter) -> FacetCounts:
    """Counts of live memories that match the filter, the conditions and, except in a listing, a significant term."""
    docs_of = WordsOfSpaces(db, where.spaces).docs
    clause = search_clause(where, question.must, docs_of) & LIVE
    if question.terms and not question.listing:
        clause &= condition_clause(AnyOf(tuple(significant_terms(question.terms))), docs_of)
    kinds, namespaces, sources = Counter[str](), Counter[str](), Counter[str]()
    created = Counter[datetime]()
    counted = (
        f"SELECT m.kind, m.namespace, m.source, {_QUARTER}, count(*) FROM memories AS m "
        f"WHERE {clause.sql} GROUP BY 1, 2, 3, 4"
    )
    for kind, namespace, source, quarter, memories in fetch(db, counted, clause.parameters):
        kinds[kind] += memories
        namespaces[namespace] += memories
        created[rows.moment(quarter)] += memories
        if source is not None:
            sources[source] += memories
    tagged = (
        "SELECT tag, count(*) FROM memories AS m CROSS JOIN LATERAL unnest(m.tags) AS tag "
        f"WHERE {clause.sql} GROUP BY 1"
    )
    return FacetCounts(
        total=sum(kinds.values()),
        kinds=kinds,
        namespaces=namespaces,
        tags=dict(fetch(db, tagged, clause.parameters)),
        sources=sources,
        created=created,
    )
