"""Keyword search: the best memories by BM25, from the index if it is ready, otherwise from FTS5.

FTS5 scores every row that has any of the words, so a query with common words costs hundreds of milliseconds. Rare
words decide the order. So FTS5 finds candidates by the rarest words, as many as match a bounded number of rows
together, and every candidate is then scored with all words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw

from nacre.query.ast import AnyOf, ParsedQuery, Term, matches_everything, significant_terms, term_counts
from nacre.ranking.bm25 import bm25, term_idf
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite import rows
from nacre.storage.sqlite.filters import Clause, fts_query, fts_spaces, placeholders, search_clause
from nacre.storage.sqlite.vocabulary import has_other_spaces
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match
from nacre.types.stats import Frequencies

if TYPE_CHECKING:  # the index imports numpy, which a small store does not need
    from nacre.storage.sqlite.index.space_index import Index

# FTS5 scores about a thousand rows a millisecond. `python -m benchmarks.pruning` measures recall and time with these.
MATCHED_ROWS_MIN = 2_000
MATCHED_SHARE = 0.1  # of the memories
MATCHED_ROWS_MAX = 75_000
CANDIDATES_MIN = 100  # scored by our own BM25
CANDIDATES_SHARE = 0.0001  # of the memories, in addition: FTS5's order differs more from ours in large stores


def lexical(
    db: apsw.Connection,
    question: ParsedQuery,
    frequencies: Frequencies,
    where: Filter,
    recipe: Recipe,
    limit: int,
    indexed: Callable[[int], Index | None],
) -> list[Match]:
    """The best live memories by BM25, best first, ties by id.

    `indexed` returns the index if it pays to use it for this number of memories.
    """
    sql = f"SELECT space, memories FROM corpus WHERE space IN ({placeholders(where.spaces)})"
    corpus = rows.fetch(db, sql, tuple(where.spaces))
    spaces = [space for space, _ in corpus]
    memories = sum(each for _, each in corpus)
    known = [(term, frequency) for term in question.terms if (frequency := frequencies.of(term))]
    terms = [term for term, _ in known]
    significant = set(significant_terms(question.terms))
    enough = [(term, frequency) for term, frequency in known if term in significant]
    if not enough or not memories:
        return []
    idfs = [term_idf(term, frequencies.memories, frequency) for term, frequency in known]
    mean_length = frequencies.mean_length
    index = None if any(term.prefix for term in terms) else indexed(memories)
    ready = [index.ready(db, space) for space in spaces] if index is not None else [None]
    if all(ready):
        from nacre.storage.sqlite.index.postings import TermWeights, best_of_spaces

        weights = TermWeights(terms, idfs, mean_length, recipe, [term in significant for term in terms])
        return best_of_spaces(db, [space for space in ready if space], weights, where, question.must, limit)
    labels = recipe.tuning
    scope = _Scope(
        spaces=spaces if has_other_spaces(db, where.spaces) else (),
        clause=None if matches_everything(where, question.must) else search_clause(where, question.must),
        weights=f"bm25(0, 1, 1, {labels.summary_weight:.6f}, {labels.tags_weight:.6f}, {labels.source_weight:.6f})",
    )
    wanted = max(CANDIDATES_MIN + int(CANDIDATES_SHARE * memories), 2 * limit)
    matched_max = max(MATCHED_ROWS_MIN, min(int(MATCHED_SHARE * memories), MATCHED_ROWS_MAX))
    rare = _rarest(enough, matched_max)
    found = _candidates(db, rare, scope, wanted)
    if len(found) < limit and len(rare) < len(enough):
        found = _candidates(db, [term for term, _ in enough], scope, wanted)
    return _scored(db, found, terms, idfs, mean_length, recipe)[:limit]


class _Scope(NamedTuple):
    """Where FTS5 looks for candidates, and how it ranks them. FTS5 has live memories only, and knows their spaces."""

    spaces: Sequence[str]  # empty: all spaces
    clause: Clause | None  # evaluated on the rows; None: every row matches
    weights: str  # FTS5's bm25 with the label weights of the recipe


def _rarest(known: Sequence[tuple[Term, int]], matched_max: int) -> list[Term]:
    """The rarest terms, at least one, that match at most `matched_max` rows together."""
    by_rarity = sorted(known, key=lambda each: each[1])
    chosen = [by_rarity[0][0]]
    matched = by_rarity[0][1]
    for term, frequency in by_rarity[1:]:
        matched += frequency
        if matched > matched_max:
            break
        chosen.append(term)
    return chosen


def _candidates(db: apsw.Connection, terms: Sequence[Term], scope: _Scope, wanted: int) -> list[int]:
    query = fts_query(AnyOf(tuple(terms)))
    if scope.spaces:
        query = f"{fts_spaces(scope.spaces)} AND {query}"
    if scope.clause is None:
        sql = "SELECT rowid AS found FROM fts WHERE fts MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?"
        parameters: tuple[str | int | float, ...] = (query, scope.weights, wanted)
    else:
        sql = (  # CROSS JOIN puts FTS5 first: it cannot look up a single row quickly
            "SELECT fts.rowid AS found FROM fts CROSS JOIN memories AS m ON m.row = fts.rowid "
            f"WHERE fts MATCH ? AND fts.rank MATCH ? AND {scope.clause.sql} ORDER BY fts.rank LIMIT ?"
        )
        parameters = (query, scope.weights, *scope.clause.parameters, wanted)
    found: list[int] = json.loads(db.execute(f"SELECT json_group_array(found) FROM ({sql})", parameters).get)
    return found


def _scored(
    db: apsw.Connection,
    found: Sequence[int],
    terms: Sequence[Term],
    idfs: Sequence[float],
    mean_length: float,
    recipe: Recipe,
) -> list[Match]:
    # One result row for all: apsw releases the GIL at each row, and another busy thread delays getting it back.
    sql = (
        f"SELECT json_group_array(json_array(m.id, {rows.WORD_COLUMNS})) FROM json_each(?) AS j "
        "JOIN tokens AS t ON t.row = j.value JOIN memories AS m ON m.row = j.value"
    )
    matches = []
    for memory_id, *columns in json.loads(db.execute(sql, (json.dumps(found),)).get):
        tokens = rows.tokens(columns)
        counts = term_counts(terms, tokens, recipe)
        score = bm25(counts, idfs, tokens.length, mean_length, recipe)
        matches.append(Match(memory_id, score))
    return best_first(matches)
