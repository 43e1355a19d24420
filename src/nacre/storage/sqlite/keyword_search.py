"""The lexical channel: the best memories by BM25 from the index, or where there is none, from FTS5.

FTS5 scores every row that any of the words matches, so a question full of common words costs
hundreds of milliseconds. Rare words decide the order, so FTS5 is asked for the rarest words first,
as many as match a bounded number of rows together; every candidate is then scored with all words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw

from nacre.query.ast import AnyOf, ParsedQuery, Term, significant_terms, term_counts
from nacre.ranking.bm25 import bm25, idf
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite import rows
from nacre.storage.sqlite.filters import Clause, fts_query, in_spaces, marks, matching, only_spaces
from nacre.storage.sqlite.vocabulary import has_others
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match
from nacre.types.stats import Frequencies

if TYPE_CHECKING:  # the index brings numpy, and a small store does without
    from nacre.storage.sqlite.index.space_index import Index

# FTS5 scores about a thousand rows a millisecond. How much of a full search is found with these numbers, at what
# size and in what time: `python -m benchmarks.pruning`.
MATCHED_ROWS_MIN = 2_000
MATCHED_SHARE = 0.1  # of the memories
MATCHED_ROWS_MAX = 75_000
CANDIDATES_MIN = 100  # that are scored by our own BM25
CANDIDATES_SHARE = 0.0001  # of the memories, and so many more: FTS5's order is less like ours in large stores


def lexical(
    db: apsw.Connection,
    question: ParsedQuery,
    frequencies: Frequencies,
    where: Filter,
    recipe: Recipe,
    limit: int,
    indexed: Callable[[int], Index | None],
) -> list[Match]:
    """The best live memories by BM25, best first, ties by id. `indexed` gives the index for so many memories, if it
    is worth its while."""
    sql = f"SELECT space, memories, length FROM corpus WHERE space IN ({marks(where.spaces)})"
    corpus = rows.fetch(db, sql, tuple(where.spaces))
    spaces = [space for space, _, _ in corpus]
    memories = sum(each for _, each, _ in corpus)
    having = frequencies.having
    counted = (
        (term, _beginning_so(db, term.text, spaces) if term.prefix else having.get(term.text, 0))
        for term in question.terms
    )
    known = [(term, min(memories, frequency)) for term, frequency in counted if frequency]
    terms = [term for term, _ in known]
    significant = set(significant_terms(question.terms))
    enough = [(term, frequency) for term, frequency in known if term in significant]
    if not enough or not memories:
        return []
    idfs = [idf(memories, frequency, common=term.common) for term, frequency in known]
    mean_length = sum(length for _, _, length in corpus) / memories
    index = None if any(term.prefix for term in terms) else indexed(memories)
    ready = [index.ready(db, space) for space in spaces] if index is not None else [None]
    if all(ready):
        from nacre.storage.sqlite.index.postings import Weighing, best_of

        weighing = Weighing(terms, idfs, mean_length, recipe, [term in significant for term in terms])
        return best_of(db, [space for space in ready if space], weighing, question.must, where, limit)
    labels = recipe.tuning
    within = Within(
        spaces=spaces if has_others(db, where.spaces) else (),
        clause=None if only_spaces(where) and question.must is None else matching(question.must, where),
        weights=f"bm25(0, 1, 1, {labels.summary_weight:.6f}, {labels.tags_weight:.6f}, {labels.source_weight:.6f})",
    )
    wanted = max(CANDIDATES_MIN + int(CANDIDATES_SHARE * memories), 2 * limit)
    matched_max = max(MATCHED_ROWS_MIN, min(int(MATCHED_SHARE * memories), MATCHED_ROWS_MAX))
    rare = _rarest(enough, matched_max)
    found = _candidates(db, rare, within, wanted)
    if len(found) < limit and len(rare) < len(enough):
        found = _candidates(db, [term for term, _ in enough], within, wanted)
    return _scored(db, found, terms, idfs, mean_length, recipe)[:limit]


class Within(NamedTuple):
    """Where candidates are looked for: FTS5 has live memories only, and knows their spaces."""

    spaces: Sequence[str]  # none: all that there are
    clause: Clause | None  # what only the rows can tell
    weights: str  # FTS5's own ranking with the weights of the recipe


def _beginning_so(db: apsw.Connection, prefix: str, spaces: Sequence[str]) -> int:
    """In how many live memories of these spaces the tokens that begin so occur, each counted for itself."""
    sql = f"SELECT total(memories) FROM vocabulary WHERE space IN ({marks(spaces)}) AND term BETWEEN ? AND ?"
    return int(db.execute(sql, (*spaces, prefix, prefix + "\U0010ffff")).get)


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


def _candidates(db: apsw.Connection, terms: Sequence[Term], within: Within, wanted: int) -> list[int]:
    query = fts_query(AnyOf(tuple(terms)))
    if within.spaces:
        query = f"{in_spaces(within.spaces)} AND {query}"
    if within.clause is None:
        sql = "SELECT rowid AS found FROM fts WHERE fts MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?"
        parameters: tuple[str | int | float, ...] = (query, within.weights, wanted)
    else:
        sql = (  # CROSS JOIN: FTS5 first, because it has no quick way to look at a single row
            "SELECT fts.rowid AS found FROM fts CROSS JOIN memories AS m ON m.row = fts.rowid "
            f"WHERE fts MATCH ? AND fts.rank MATCH ? AND {within.clause.sql} ORDER BY fts.rank LIMIT ?"
        )
        parameters = (query, within.weights, *within.clause.parameters, wanted)
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
    # All rows in one step: Python's lock is given away at each step, and beside a busy thread it comes back late.
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
