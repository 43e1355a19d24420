"""The best memories by BM25, from the postings of segments: the same as of a full search, mostly without reading all.

This is MaxScore, a whole list of postings at a time. The lists of the terms that can add most are summed up first. Once
the best sums exceed all that the remaining terms could add, no new memory can be among the best. The remaining terms
are then looked up only for the memories that still can. A memory that has only common words does not match, so the
long lists of these are never read through.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from typing import NamedTuple

import apsw
import numpy as np

from nacre.query.ast import Condition, Term
from nacre.ranking.bm25 import length_damping, term_score
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite.index.filter_mask import filter_mask, live_matches
from nacre.storage.sqlite.index.segment import Array, Mask, Segment, hashed, located
from nacre.storage.sqlite.index.segment_builder import first_of_each
from nacre.storage.sqlite.index.space_index import Space
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match

_ROUNDING = 1e-6  # error of each addition in single precision, as a share of the largest possible sum
_FEW = 10_000  # postings that are read through without checking whether they can be skipped
_FEW_LEFT = 256  # memories that are scored exactly, rather than narrowed down first
_LEADING = 2  # times the limit: memories that are summed up fully to bound the score of the best
_SCANNED_SHARE = 64  # if more postings than this part of the memories were added, all sums are scanned
_LOOKED_UP_SHARE = 256  # a term that is looked up in more than this part of the memories is spread out first,
_MANY = 1_024  # but only in at least as many
_SPREAD_SHARE = 16  # the spread counts of a term that more than this part of the memories have are kept
_SPREAD_MAX = 64  # kept terms of a segment; each takes a byte or two for every memory
_CHOSEN_SHARE = 16  # if fewer memories than this part of the postings match a filter, these memories are looked up


_hashed = lru_cache(maxsize=1 << 12)(hashed)  # the same words occur in many queries


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The terms of a query and how they are weighted, the same for all segments."""

    terms: Sequence[Term]
    idfs: Sequence[float]
    mean_length: float
    recipe: Recipe
    significant: Sequence[bool]  # a memory must have one of these terms

    @property
    def hashes(self) -> Array:
        return np.array([_hashed(term.text) for term in self.terms], np.uint64)

    @property
    def label_weights(self) -> Sequence[float]:
        tuning = self.recipe.tuning
        return tuning.summary_weight, tuning.tags_weight, tuning.source_weight


class _TermPostings(NamedTuple):
    """The postings of one term in one segment."""

    at: int  # place among the terms of the query
    place: int  # place among the terms of the segment
    docs: Array  # places of the memories that have it, ascending
    counts: Array  # occurrences in each text, without labels
    labelled: slice  # of the segment's labels
    highest: float  # upper bound of what it adds to a score


def best_of_spaces(
    db: apsw.Connection,
    spaces: Sequence[Space],
    weights: TermWeights,
    where: Filter,
    must: Condition | None,
    limit: int,
) -> list[Match]:
    """The best live memories of these spaces, best first, ties by id."""
    mask = filter_mask(db, where, must)
    hashes = weights.hashes
    found: list[tuple[int, float]] = []
    least = 0.0
    parts = [(part, space.name) for space in spaces for part in space.parts]
    for part, name in sorted(parts, key=lambda each: -len(each[0].segment)):  # large ones raise `least` first
        if len(found) >= limit:
            least = nlargest(limit, (score for _, score in found))[-1]
        found += best_of_segment(part.segment, live_matches(mask, part, name), weights, hashes, limit, least)
    scores = dict(found)
    # One result row for all: apsw releases the GIL at each row, and another busy thread delays getting it back.
    sql = "SELECT json_group_object(m.row, m.id) FROM json_each(?) AS j CROSS JOIN memories AS m ON m.row = j.value"
    ids = json.loads(db.execute(sql, (json.dumps(list(scores)),)).get)
    matches = [Match(memory_id, scores[int(row)]) for row, memory_id in ids.items()]
    return best_first(matches)[:limit]


def best_of_segment(
    segment: Segment, matches: Mask | None, weights: TermWeights, hashes: Array, limit: int, least: float
) -> list[tuple[int, float]]:
    """Rows and scores of the best memories that match: at least `limit`, if that many score above `least`, and all that
    equal the last of them."""
    every = sorted(_postings(segment, weights, hashes), key=lambda each: -each.highest)
    significant = [each for each in every if weights.significant[each.at]]
    if not significant:
        return []
    scorer = _Scorer(segment, weights, every)
    if matches is not None and np.count_nonzero(matches) < sum(len(each.docs) for each in significant) // _CHOSEN_SHARE:
        docs = _having_any(np.flatnonzero(matches).astype(np.uint32), significant)
        sums, rest = np.zeros(len(docs), np.float32), every
    else:
        docs, sums, rest, least = scorer.gather(significant, matches, limit, least)
    docs = scorer.narrow(docs, sums, rest, limit, least)
    return scorer.exact(docs, limit)


def _postings(segment: Segment, weights: TermWeights, hashes: Array) -> list[_TermPostings]:
    k1, shortest = weights.recipe.tuning.bm25_k1, length_damping(1.0, weights.mean_length, weights.recipe)
    found = segment.places(hashes)
    terms = np.flatnonzero(found >= 0)
    places = found[terms]
    postings, labelled = segment.postings(places), segment.labelled(places)
    columns = terms.tolist(), places.tolist(), postings, labelled, segment.most[places].tolist()
    listed = []
    for at, place, own, labels, most in zip(*columns, strict=True):
        idf = weights.idfs[at]
        # Where labels have the term, `most` is 0, and the limit of many occurrences is the bound.
        highest = term_score(idf, most, shortest, k1) if most else idf * (k1 + 1)
        listed.append(_TermPostings(at, place, segment.docs[own], segment.counts[own], labels, highest))
    return listed


def _having_any(docs: Array, postings: Sequence[_TermPostings]) -> Array:
    """Those of these memories that have one of the terms."""
    having = np.zeros(len(docs), np.bool_)
    for each in postings:
        having |= located(each.docs, docs)[1]
    return docs[having]


def _floor(sums: Array, limit: int, least: float) -> float:
    """The score that a memory must reach to be among the `limit` best."""
    if len(sums) > limit:
        return max(least, _nth(sums, limit))
    return least


def _nth(values: Array, place: int) -> float:
    """The n-th largest of at least n values. numpy partitions at two places in a third of the time it takes at one."""
    return float(np.partition(values, (-place, -1))[-place])


class _Leading:
    """The memories with the highest sums among some lists, which are read one after another."""

    def __init__(self, sums: Array, many: int) -> None:
        self._sums = sums
        self._many = many
        self._docs = np.empty(0, np.uint32)
        self._seen = 0

    def docs(self, lists: Sequence[Array]) -> Array:
        """Ascending. Each list is read once, however often this is called."""
        new = [self._highest(docs) for docs in lists[self._seen :]]
        self._seen = len(lists)
        self._docs = np.sort(self._highest(np.unique(np.concatenate([self._docs, *new]))))
        return self._docs

    def _highest(self, docs: Array) -> Array:
        if len(docs) <= self._many:
            return docs
        return docs[np.argpartition(self._sums[docs], (-self._many - 1, -self._many))[-self._many :]]


class _Scorer:
    """Scores memories of one segment. Sums in single precision select candidates; these are then scored exactly.

    `every` are the postings of all terms, those that can add most first.
    """

    def __init__(self, segment: Segment, weights: TermWeights, every: Sequence[_TermPostings]) -> None:
        self._segment = segment
        self._weights = weights
        self._every = every
        self._slack = _ROUNDING * (len(every) + 1) * sum(each.highest for each in every)

    def gather(
        self, significant: Sequence[_TermPostings], matches: Mask | None, limit: int, least: float
    ) -> tuple[Array, Array, list[_TermPostings], float]:
        """Candidates, their sums so far, the postings that were not added, and a lower bound of the best scores."""
        sums = np.zeros(len(self._segment), np.float32)
        rest = list(self._every)
        found: list[Array] = []
        leading = _Leading(sums, _LEADING * limit)
        for each in significant:
            if len(each.docs) > _FEW:
                least = max(least, self._reached(sums, leading.docs(found), rest, limit))
                if sum(other.highest for other in rest) < least - self._slack:
                    break
            docs, added = self._contributions(each)
            if matches is not None:
                kept = matches[docs]
                docs, added = docs[kept], added[kept]
            sums[docs] += added
            found.append(docs)
            rest.remove(each)
        total = sum(map(len, found))
        if total > _FEW:
            least = max(least, self._reached(sums, leading.docs(found), rest, limit))
        floor = least - sum(each.highest for each in rest) - self._slack
        if floor > 0 and total > len(sums) // _SCANNED_SHARE:
            docs = np.flatnonzero(sums >= floor).astype(np.uint32)
        else:
            promising = [docs[sums[docs] >= floor] for docs in found]
            docs = np.sort(np.concatenate([np.empty(0, np.uint32), *promising]))
            docs = docs[first_of_each(docs)]  # np.unique takes several times as long
        return docs, sums[docs], rest, least

    def _reached(self, sums: Array, leading: Array, rest: Sequence[_TermPostings], limit: int) -> float:
        """A lower bound of the score of the `limit`-th best: that of the leading memories with all terms added."""
        if len(leading) < limit:
            return 0.0
        whole, damping = sums[leading], self._damping(leading)
        for each in rest:
            whole = whole + self._term_scores(each, self._counts(each, leading), damping)
        return _nth(whole, limit) - self._slack

    def narrow(self, docs: Array, sums: Array, rest: Sequence[_TermPostings], limit: int, least: float) -> Array:
        """Add the remaining postings, and drop memories that cannot be among the best, until few are left."""
        unread = sum(each.highest for each in rest)
        damping = self._damping(docs)
        for each in rest:
            if len(docs) <= _FEW_LEFT:
                return docs
            kept = sums >= _floor(sums, limit, least) - unread - self._slack
            docs, sums, damping = docs[kept], sums[kept], damping[kept]
            sums = sums + self._term_scores(each, self._counts(each, docs), damping)
            unread -= each.highest
        return docs[sums >= _floor(sums, limit, least) - self._slack]

    def exact(self, docs: Array, limit: int) -> list[tuple[int, float]]:
        """Rows and scores of the `limit` best and their equals, equal to `bm25` to the last bit."""
        weights = self._weights
        postings = sorted(self._every, key=lambda each: each.at)  # in the order in which `bm25` adds them up
        damping = length_damping(self._segment.lengths[docs].astype(np.float64), weights.mean_length, weights.recipe)
        counts = np.empty((len(postings), len(docs)))
        for of, each in zip(counts, postings, strict=True):
            of[:] = self._counts(each, docs, np.float64)
        idfs = np.array([weights.idfs[each.at] for each in postings])
        scores = np.zeros(len(docs))
        for added in term_score(idfs[:, None], counts, damping, weights.recipe.tuning.bm25_k1):
            scores += added
        if len(docs) > limit:
            kept = scores >= _nth(scores, limit)
            docs, scores = docs[kept], scores[kept]
        return list(zip(self._segment.rows[docs].tolist(), scores.tolist(), strict=True))

    # ---- one term

    def _contributions(self, each: _TermPostings) -> tuple[Array, Array]:
        """The memories that have the term, and what it adds to the score of each."""
        counts = self._add_labels(each, each.docs, each.counts.astype(np.float32))
        return each.docs, self._term_scores(each, counts, self._damping(each.docs))

    def _damping(self, docs: Array) -> Array:
        lengths = self._segment.lengths[docs].astype(np.float32)
        return length_damping(lengths, self._weights.mean_length, self._weights.recipe)

    def _term_scores(self, each: _TermPostings, counts: Array, damping: Array) -> Array:
        return term_score(self._weights.idfs[each.at], counts, damping, self._weights.recipe.tuning.bm25_k1)

    def _counts(self, each: _TermPostings, docs: Array, dtype: type = np.float32) -> Array:
        """How often these memories have the term; labels count with their weight."""
        spread = self._spread(each, len(docs))
        if spread is not None:
            return self._add_labels(each, docs, spread[docs].astype(dtype))
        at, here = located(each.docs, docs)
        return self._add_labels(each, docs, (each.counts[at] * here).astype(dtype))

    def _spread(self, each: _TermPostings, looked_up: int) -> Array | None:
        """The counts of a term by memory, not by posting, if that pays: then nothing has to be searched for. Those of
        frequent terms are kept, because the same few words occur in many queries."""
        memories, kept = len(self._segment), self._segment.spread
        spread = kept.get(each.place)
        if spread is None and looked_up >= max(_MANY, memories // _LOOKED_UP_SHARE):
            spread = np.zeros(memories, each.counts.dtype)
            spread[each.docs] = each.counts
            if len(each.docs) >= memories // _SPREAD_SHARE:
                kept[each.place] = spread
                if len(kept) > _SPREAD_MAX:
                    kept.pop(list(kept)[0], None)  # noqa: RUF015 - another thread may add one meanwhile
        return spread

    def _add_labels(self, each: _TermPostings, docs: Array, counts: Array) -> Array:
        """Adds the weighted occurrences in labels to `counts`."""
        labelled = each.labelled
        if labelled.start == labelled.stop:
            return counts
        label_docs = self._segment.label_docs[labelled]
        fields = self._segment.label_fields[labelled]
        label_counts = self._segment.label_counts[labelled]
        for field, weight in enumerate(self._weights.label_weights):
            own = fields == field
            at, here = located(docs, label_docs[own])
            counts[at[here]] += (weight * label_counts[own][here].astype(np.float64)).astype(counts.dtype)
        return counts
