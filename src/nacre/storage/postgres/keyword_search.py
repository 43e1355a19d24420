"""Keyword search: the best memories by BM25, the same as of a full search, mostly without reading all postings.

This is MaxScore, a whole list of postings at a time. The lists of the terms that can add most are summed up first. Once
the best sums exceed all that the remaining terms could add, no new memory can be among the best. The scores of those
that still can are then computed exactly, by the formula and in the order that every store computes them.

Postings may be of memories that are gone or do not match the filter. So the best are looked up in `memories`, down the
list until there are enough; or, where few memories match the filter, these are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from nacre.query.ast import ParsedQuery, Term, matches_everything, significant_terms, term_counts
from nacre.ranking.bm25 import bm25, length_damping, term_idf, term_score
from nacre.ranking.scoring import best_first
from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.filters import LIVE, Clause, estimated, search_clause
from nacre.storage.postgres.posting_lists import CountedTerm, KeptLists, Key, PostingList
from nacre.storage.postgres.postings import Array, Places, lists, located, sorted_unique
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.vocabulary import beginning_with, counted
from nacre.storage.postgres.words import WordsOfSpaces
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match
from nacre.types.stats import Frequencies

LISTED_MAX = 5_000  # if no more memories match a filter, they are listed before the postings are read
_ESTIMATED_MAX = 4 * LISTED_MAX  # if the server expects no more, they are tried to be listed
FEW = 20_000  # postings that are read without asking whether they can be left out
LOOKED_UP = 100  # postings that are read in the time in which the tokens of one memory are
_LEADING = 2  # times the limit: memories that are looked up to know what the best have at least
_CHUNK = 64  # memories that are looked up at a time, at least
_ROUNDING = 1e-9  # error of a sum in another order, as a share of the largest possible one


@dataclass(frozen=True, slots=True)
class _Known:
    """A term of the question that some memory has."""

    term: Term
    idf: float
    frequency: int
    highest: float  # what it adds to a score at most
    rows: Sequence[CountedTerm]  # none of a prefix


def lexical(
    db: Db,
    question: ParsedQuery,
    frequencies: Frequencies,
    where: Filter,
    recipe: Recipe,
    limit: int,
    kept: KeptLists,
) -> list[Match]:
    """The best live memories by BM25, best first, ties by id."""
    spaces = where.spaces
    known = [(term, frequency) for term in question.terms if (frequency := frequencies.of(term))]
    significant = set(significant_terms(question.terms))
    if not any(term in significant for term, _ in known):
        return []
    mean_length = frequencies.mean_length
    found = counted(db, [term.text for term, _ in known if not term.prefix], spaces)
    terms = []
    for term, frequency in known:
        weight = term_idf(term, frequencies.memories, frequency)
        rows_of = () if term.prefix else found.terms[term.text]
        terms.append(_Known(term, weight, frequency, _highest(weight, rows_of, mean_length, recipe), rows_of))
    clause = search_clause(where, question.must, WordsOfSpaces(db, spaces).docs) & LIVE
    matching = _Matching(db, spaces, clause, everything=matches_everything(where, question.must))
    marked = [each.term in significant for each in terms]
    search = _Search(db, spaces, terms, marked, mean_length, recipe, matching, partial(kept.lists, db, found.started))
    return search.best(limit)


def _highest(weight: float, rows_of: Sequence[CountedTerm], mean_length: float, recipe: Recipe) -> float:
    """What a term adds to a score at most, by the most occurrences in one text and the shortest text that has it."""
    tuning = recipe.tuning
    if not rows_of:
        return weight * (tuning.bm25_k1 + 1)
    label_weight = max(tuning.summary_weight, tuning.tags_weight, tuning.source_weight)
    count = max(each.most_text for each in rows_of) + label_weight * max(each.most_labels for each in rows_of)
    damping = length_damping(float(min(each.least_length for each in rows_of)), mean_length, recipe)
    return term_score(weight, count, damping, tuning.bm25_k1) if count else 0.0


class _Postings(NamedTuple):
    """Which memories have a term and how often, labels weighted. `docs` are sorted."""

    docs: Array
    counts: Array
    lengths: Array


class _Matching:
    """Says which docs are those of live memories that match, with their ids."""

    def __init__(self, db: Db, spaces: Sequence[str], clause: Clause, *, everything: bool) -> None:
        self._db = db
        self._spaces = list(spaces)
        self._clause = clause
        self._known: dict[int, str | None] = {}
        self.listed: Array | None = None  # all docs that match, sorted, if they are few
        if not everything and estimated(db, clause) <= _ESTIMATED_MAX:
            sql = f"SELECT m.doc, m.id FROM memories AS m WHERE {clause.sql} LIMIT %s"
            found = dict(fetch(db, sql, (*clause.parameters, LISTED_MAX + 1)))
            if len(found) <= LISTED_MAX:
                self._known.update(found)
                self.listed = np.array(sorted(found), np.int64)

    def ids(self, docs: Sequence[int]) -> list[str | None]:
        """None: the doc is of no live memory, or of one that does not match."""
        asked = [doc for doc in docs if doc not in self._known] if self.listed is None else []
        if asked:
            sql = f"SELECT m.doc, m.id FROM memories AS m WHERE {self._clause.sql} AND m.doc = ANY(%s::bigint[])"
            self._known.update(dict.fromkeys(asked))
            self._known.update(dict(fetch(self._db, sql, (*self._clause.parameters, asked))))
        return [self._known.get(doc) for doc in docs]


class _Search:
    """One search. `significant`: of which terms a memory must have one."""

    def __init__(
        self,
        db: Db,
        spaces: Sequence[str],
        terms: Sequence[_Known],
        significant: Sequence[bool],
        mean_length: float,
        recipe: Recipe,
        matching: _Matching,
        lists_of: Callable[[Sequence[CountedTerm]], dict[Key, list[PostingList]]],
    ) -> None:
        self._db = db
        self._spaces = list(spaces)
        self._terms = terms
        self._mean_length = mean_length
        self._recipe = recipe
        self._matching = matching
        self._lists_of = lists_of
        self._read: dict[int, list[_Postings]] = {}  # by place among the terms
        by_highest = sorted(range(len(terms)), key=lambda at: -terms[at].highest)
        self._significant = [at for at in by_highest if significant[at]]
        self._slack = _ROUNDING * (1 + sum(each.highest for each in terms))

    def best(self, limit: int) -> list[Match]:
        docs, least = self._candidates(limit)
        unread = [at for at in range(len(self._terms)) if at not in self._read]
        if unread and least > 0:
            reach = self._sums(docs) + sum(self._terms[at].highest for at in unread)
            docs = docs[reach >= least - self._slack]
        if sum(self._terms[at].frequency for at in unread) <= FEW + LOOKED_UP * len(docs):
            self._load(unread)
            return self._down(docs, self._sums(docs, exactly=True), limit)
        return self._by_tokens(docs, limit)

    def _candidates(self, limit: int) -> tuple[Array, float]:
        """Docs that may be among the best, sorted, and a lower bound of the scores of these."""
        docs, least, postings = np.empty(0, np.int64), 0.0, 0
        few: list[int] = []
        rest = list(self._significant)
        while rest:
            while rest and (not few or postings + self._terms[rest[0]].frequency <= FEW):
                postings += self._terms[rest[0]].frequency
                few.append(rest.pop(0))
            self._load(few)
            docs = sorted_unique(np.concatenate([docs, *(part.docs for at in few for part in self._read[at])]))
            few, postings = [], 0
            if rest:
                least = self._reached(docs, limit)
                unread = sum(each.highest for at, each in enumerate(self._terms) if at not in self._read)
                if unread < least - self._slack:
                    break
        return docs, least

    def _reached(self, docs: Array, limit: int) -> float:
        """A lower bound of the score of the `limit`-th best memory that matches."""
        sums = self._sums(docs)
        count = min(len(sums), _LEADING * limit)
        if not count:
            return 0.0
        leading = np.argpartition(sums, len(sums) - count)[len(sums) - count :]
        found = self._matching.ids(docs[leading].tolist())
        scores = sorted(
            (score for score, each in zip(sums[leading].tolist(), found, strict=True) if each), reverse=True
        )
        return scores[limit - 1] - self._slack if len(scores) >= limit else 0.0

    def _down(self, docs: Array, scores: Array, limit: int) -> list[Match]:
        """The best of these that match, by their exact scores."""
        matches: list[Match] = []
        order = np.lexsort((docs, -scores))
        docs, scores = docs[order], scores[order]
        start, step = 0, max(_CHUNK, _LEADING * limit)
        while start < len(docs) and len(matches) < limit:
            end = int(np.searchsorted(-scores, -scores[min(start + step, len(docs)) - 1], side="right"))
            found = self._matching.ids(docs[start:end].tolist())
            matches += [
                Match(each, score) for each, score in zip(found, scores[start:end].tolist(), strict=True) if each
            ]
            start, step = end, 2 * step
        return best_first(matches)[:limit]

    def _by_tokens(self, docs: Array, limit: int) -> list[Match]:
        """The same, where reading the tokens of the candidates costs less than reading all postings."""
        unread = sum(each.highest for at, each in enumerate(self._terms) if at not in self._read)
        sums = self._sums(docs)
        order = np.argsort(-sums, kind="stable")
        matches: list[Match] = []
        for chunk in _chunks(order, max(_CHUNK, _LEADING * limit)):
            matches = best_first([*matches, *self._scored(docs[chunk].tolist())])[:limit]
            if len(matches) == limit and sums[chunk[-1]] + unread + self._slack < matches[-1].score:
                break
        return matches

    def _scored(self, docs: Sequence[int]) -> list[Match]:
        named = {doc: each for doc, each in zip(docs, self._matching.ids(docs), strict=True) if each}
        sql = (
            f"SELECT m.doc, {rows.WORD_COLUMNS} FROM memories AS m JOIN tokens AS t ON t.space = m.space "
            "AND t.row = m.row WHERE m.space = ANY(%s) AND m.doc = ANY(%s::bigint[])"
        )
        terms, idfs = [each.term for each in self._terms], [each.idf for each in self._terms]
        matches = []
        for doc, *columns in fetch(self._db, sql, (self._spaces, list(named))):
            tokens = rows.tokens(columns)
            counts = term_counts(terms, tokens, self._recipe)
            matches.append(Match(named[doc], bm25(counts, idfs, tokens.length, self._mean_length, self._recipe)))
        return matches

    # ---- postings

    def _load(self, places: Sequence[int]) -> None:
        """Read the postings of terms."""
        rows_of = [row for at in places for row in self._terms[at].rows]
        found = self._lists_of(rows_of)
        for at in places:
            term = self._terms[at].term
            if term.prefix:
                self._read[at] = self._beginning_with(term.text)
            else:
                self._read[at] = [self._weighted(part) for row in self._terms[at].rows for part in found[row.key]]

    def _weighted(self, part: PostingList) -> _Postings:
        """Occurrences by doc, as `term_counts` counts them."""
        counts = part.counts
        if part.labels is not None:
            counts = counts + 0.0
            for field, weight in self._weights():
                counts += weight * part.labels[field].astype(np.float64)
        return self._listed(_Postings(part.docs, counts, part.lengths))

    def _beginning_with(self, prefix: str) -> list[_Postings]:
        """The same of a prefix, which is looked for in words and labels only, and of which a doc may have several."""
        found = lists(self._db, self._spaces, beginning_with(self._db, prefix, self._spaces))
        if not found:
            return []
        entries = np.concatenate(list(found.values()))
        docs, first, place = np.unique(entries["doc"].astype(np.int64), return_index=True, return_inverse=True)

        def total(field: str) -> Array:
            return np.bincount(place, entries[field], len(docs))

        counts = total("words")
        there = counts > 0
        for field, weight in self._weights():
            number = total(field)
            there |= number > 0
            counts += weight * number
        lengths = entries["length"][first].astype(np.float64)
        return [self._listed(_Postings(docs[there], counts[there], lengths[there]))]

    def _weights(self) -> Sequence[tuple[str, float]]:
        tuning = self._recipe.tuning
        return ("summary", tuning.summary_weight), ("tags", tuning.tags_weight), ("source", tuning.source_weight)

    def _listed(self, postings: _Postings) -> _Postings:
        """Those of memories that match, if it is known which do."""
        if self._matching.listed is None:
            return postings
        there = located(self._matching.listed, postings.docs)[1]
        return _Postings(*(column[there] for column in postings))

    def _sums(self, docs: Array, *, exactly: bool = False) -> Array:
        """What the terms that were read add to the scores of docs: in the order in which `bm25` adds them up."""
        sums = np.zeros(len(docs))
        k1 = self._recipe.tuning.bm25_k1
        places = Places(docs)
        for at in sorted(self._read):
            for read in self._read[at]:
                place, here = places.of(read.docs)
                damping = length_damping(read.lengths[here], self._mean_length, self._recipe)
                sums[place] += term_score(self._terms[at].idf, read.counts[here], damping, k1)
        assert not exactly or len(self._read) == len(self._terms)
        return sums


def _chunks(order: Array, size: int) -> Iterator[Array]:
    for start in range(0, len(order), size):
        yield order[start : start + size]
