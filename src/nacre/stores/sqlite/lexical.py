"""The lexical channel: FTS5 finds candidates, our own BM25 scores them.

FTS5 scores every row that any of the words matches, so a question full of common words costs
hundreds of milliseconds. Rare words decide the order, so FTS5 is asked for the rarest words first,
as many as match a bounded number of rows together; every candidate is then scored with all words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from nacre.query.tree import AnyOf, Question, Term, term_counts
from nacre.ranking.bm25 import bm25, idf
from nacre.stores.sqlite import rows
from nacre.stores.sqlite.filters import LIVE, Clause, condition_clause, filter_clause, fts_query, marks
from nacre.types import Filter, Match, Recipe

# FTS5 scores about a thousand rows a millisecond. With these, the first ten are those of a full search for
# 99.7 % (10,000 memories) and 99.4 % (100,000) of natural questions: `python -m benchmarks.pruning`.
MATCHED_ROWS_MIN = 2_000
MATCHED_SHARE = 0.1  # of the memories
CANDIDATES_MIN = 100


def lexical(db: apsw.Connection, question: Question, where: Filter, recipe: Recipe, limit: int) -> list[Match]:
    """The best live memories by BM25, best first, ties by id."""
    sql = f"SELECT total(memories), total(length) FROM corpus WHERE space IN ({marks(where.spaces)})"
    memories, length = rows.fetch(db, sql, tuple(where.spaces))[0]
    if not question.terms or not memories:
        return []
    frequencies = [min(int(memories), _frequency(db, term, where.spaces)) for term in question.terms]
    known = [(term, frequency) for term, frequency in zip(question.terms, frequencies, strict=True) if frequency]
    if not known:
        return []
    clause = filter_clause(where) & LIVE
    if question.must is not None:
        clause &= condition_clause(question.must)
    wanted = max(CANDIDATES_MIN, 2 * limit)
    rare = _rarest(known, max(MATCHED_ROWS_MIN, int(MATCHED_SHARE * memories)))
    found = _candidates(db, rare, clause, wanted)
    if len(found) < limit and len(rare) < len(known):
        found = _candidates(db, [term for term, _ in known], clause, wanted)
    idfs = [idf(int(memories), frequency) for _, frequency in known]
    return _scored(db, found, [term for term, _ in known], idfs, length / memories, recipe)[:limit]


def _frequency(db: apsw.Connection, term: Term, spaces: Sequence[str]) -> int:
    """In how many live memories of these spaces a term occurs."""
    last = term.text + "\U0010ffff" if term.prefix else term.text
    sql = f"SELECT total(memories) FROM vocabulary WHERE space IN ({marks(spaces)}) AND term BETWEEN ? AND ?"
    return int(db.execute(sql, (*spaces, term.text, last)).get)


def _rarest(known: Sequence[tuple[Term, int]], matched_max: int) -> list[Term]:
    """The rarest terms that match at most so many rows together, and at least one."""
    by_rarity = sorted(known, key=lambda each: each[1])
    chosen = [by_rarity[0][0]]
    matched = by_rarity[0][1]
    for term, frequency in by_rarity[1:]:
        matched += frequency
        if matched > matched_max:
            break
        chosen.append(term)
    return chosen


def _candidates(db: apsw.Connection, terms: Sequence[Term], clause: Clause, wanted: int) -> list[int]:
    sql = (
        "SELECT fts.rowid FROM fts JOIN memories AS m ON m.row = fts.rowid "
        f"WHERE fts MATCH ? AND {clause.sql} ORDER BY fts.rank LIMIT ?"
    )
    query = fts_query(AnyOf(tuple(terms)))
    return [row for (row,) in db.execute(sql, (query, *clause.parameters, wanted))]


def _scored(
    db: apsw.Connection,
    found: Sequence[int],
    terms: Sequence[Term],
    idfs: Sequence[float],
    mean_length: float,
    recipe: Recipe,
) -> list[Match]:
    sql = (
        "SELECT m.id, t.words, t.forms, t.length FROM json_each(?) AS j "
        "JOIN tokens AS t ON t.row = j.value JOIN memories AS m ON m.row = j.value"
    )
    matches = []
    for memory_id, words, forms, length in db.execute(sql, (json.dumps(found),)):
        counts = term_counts(terms, words.split(), forms.split())
        score = bm25(counts, idfs, length, mean_length, recipe.bm25_k1, recipe.bm25_b)
        matches.append(Match(memory_id, score))
    return sorted(matches, key=lambda match: (-match.score, match.id))
