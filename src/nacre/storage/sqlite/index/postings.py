"""Which memories score best by BM25? Exactly those that a full search gives, mostly without looking at all.

The postings of rare words are added up first. Once the best so far lie above everything that the remaining words
could add up to, no new memory can come among them, and the remaining words are looked up only for those that still
can (this is MaxScore, a whole list at a time). Function words alone make no memory match, so their long lists are
never read through.
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
from nacre.ranking.scoring import best_first
from nacre.storage.sqlite.index.filter_mask import matching, passing
from nacre.storage.sqlite.index.segment import Array, Flags, Segment, hashed, located
from nacre.storage.sqlite.index.segment_builder import first_of_each
from nacre.storage.sqlite.index.space_index import Space
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match

_ROUNDING = 1e-6  # of all that can be summed up, by each addition in single precision
_FEW = 10_000  # postings that are read through without asking whether it can be spared
_FEW_LEFT = 256  # memories that are scored at once rather than narrowed down first
_LEADING = 2  # so many times as many as are wanted tell what the best have
_SCANNED_SHARE = 64  # where more postings than this part of the memories were added, all sums are looked through
_LOOKED_UP_SHARE = 256  # a term that is looked up in more than this part of the memories is spread out first,
_MANY = 1_024  # but not for fewer than these
_SPREAD_SHARE = 16  # a term that more than this part of the memories have stays spread out
_SPREAD_MAX = 64  # terms of a segment; each takes a byte or two for every memory
_CHOSEN_SHARE = 16  # fewer memories than this part of the postings: these are looked up, not the postings read


_hashed = lru_cache(maxsize=1 << 12)(hashed)  # questions are full of the same words


@dataclass(frozen=True, slots=True)
class Weighing:
    """How a question's terms are weighed: the same for all segments."""

    terms: Sequence[Term]
    idfs: Sequence[float]
    mean_length: float
    recipe: Recipe
    telling: Sequence[bool]  # a memory must have one of these

    @property
    def hashes(self) -> Array:
        return np.array([_hashed(term.text) for term in self.terms], np.uint64)

    @property
    def label_weights(self) -> Array:
        recipe = self.recipe
        return np.array([recipe.tuning.summary_weight, recipe.tuning.tags_weight, recipe.tuning.source_weight])


class _List(NamedTuple):
    """The postings of one term in one segment."""

    at: int  # among the terms
    place: int  # in the segment
    docs: Array  # the places of the memories that have it, rising
    counts: Array  # how often they do, labels aside
    labelled: slice  # of the segment's labels
    most: float  # that it can add to a score


def best_of(
    db: apsw.Connection,
    spaces: Sequence[Space],
    weighing: Weighing,
    must: Condition | None,
    where: Filter,
    limit: int,
) -> list[Match]:
    """The best live memories of these spaces, best first, ties by id."""
    demanded = matching(db, must, where)
    hashes = weighing.hashes
    found: list[tuple[int, float]] = []
    least = 0.0
    parts = [(part, space.name) for space in spaces for part in space.parts]
    for part, name in sorted(parts, key=lambda each: -len(each[0].segment)):  # large ones tell what the best have
        if len(found) >= limit:
            least = nlargest(limit, (score for _, score in found))[-1]
        found += best(part.segment, passing(demanded, part, name), weighing, hashes, limit, least)
    scores = dict(found)
    # All rows in one step: Python's lock is given away at each step, and beside a busy thread it comes back late.
    sql = "SELECT json_group_object(m.row, m.id) FROM json_each(?) AS j CROSS JOIN memories AS m ON m.row = j.value"
    ids = json.loads(db.execute(sql, (json.dumps(list(scores)),)).get)
    matches = [Match(memory_id, scores[int(row)]) for row, memory_id in ids.items()]
    return best_first(matches)[:limit]


def best(
    segment: Segment, alive: Flags | None, weighing: Weighing, hashes: Array, limit: int, least: float
) -> list[tuple[int, float]]:
    """Rows and scores of the best memories that are alive: at least `limit` where there are so many above `least`, and
    all that equal the last of them."""
    lists = _lists(segment, weighing, hashes)
    telling = sorted((each for each in lists if weighing.telling[each.at]), key=lambda each: -each.most)
    if not telling:
        return []
    chosen = np.count_nonzero(alive) if alive is not None else len(segment)
    scorer = _Scorer(segment, weighing, lists)
    if chosen < sum(len(each.docs) for each in telling) // _CHOSEN_SHARE and alive is not None:
        docs = scorer.having_any(np.flatnonzero(alive).astype(np.uint32), telling)
        sums, rest = np.zeros(len(docs), np.float32), sorted(lists, key=lambda each: -each.most)
    else:
        docs, sums, rest, least = scorer.gathered(telling, lists, alive, limit, least)
    docs = scorer.narrowed(docs, sums, rest, limit, least)
    return scorer.exact(docs, lists, limit)


def _lists(segment: Segment, weighing: Weighing, hashes: Array) -> list[_List]:
    recipe = weighing.recipe
    shortest = float(_dampings(np.ones(1), weighing)[0])
    found = segment.places(hashes)
    terms = np.flatnonzero(found >= 0)
    places = found[terms]
    postings, labelled = segment.postings(places), segment.labelled(places)
    lists = []
    columns = terms.tolist(), places.tolist(), postings, labelled, segment.most[places].tolist()
    for at, place, own, labels, most in zip(*columns, strict=True):
        share = most / (most + shortest) if most else 1.0  # 0: labels count, too
        highest = weighing.idfs[at] * (recipe.tuning.bm25_k1 + 1) * share
        lists.append(_List(at, place, segment.docs[own], segment.counts[own], labels, highest))
    return lists


def _dampings(lengths: Array, weighing: Weighing) -> Array:
    """BM25's denominators without the count, in single precision."""
    recipe = weighing.recipe
    mean = weighing.mean_length + recipe.tuning.bm25_padding
    if not mean:
        return np.full(len(lengths), recipe.tuning.bm25_k1, np.float32)
    scaled = (lengths + np.float32(recipe.tuning.bm25_padding)) * np.float32(recipe.tuning.bm25_b / mean)
    return np.float32(recipe.tuning.bm25_k1) * (np.float32(1 - recipe.tuning.bm25_b) + scaled)


def _floor(sums: Array, limit: int, least: float) -> float:
    """What a memory must reach to be among the `limit` best."""
    if len(sums) > limit:
        return max(least, _nth(sums, limit))
    return least


def _nth(values: Array, place: int) -> float:
    """The n-th largest of at least as many. numpy selects two places in a third of the time that it takes for one."""
    return float(np.partition(values, (-place, -1))[-place])


class _Leading:
    """The memories with the highest sums so far, of some lists that are read one by one."""

    def __init__(self, sums: Array, many: int) -> None:
        self._sums = sums
        self._many = many
        self._docs = np.empty(0, np.uint32)
        self._seen = 0

    def docs(self, lists: Sequence[Array]) -> Array:
        """In the order of their places. Lists that were seen before are not looked through again."""
        new = [self._highest(docs) for docs in lists[self._seen :]]
        self._seen = len(lists)
        self._docs = np.sort(self._highest(np.unique(np.concatenate([self._docs, *new]))))
        return self._docs

    def _highest(self, docs: Array) -> Array:
        if len(docs) <= self._many:
            return docs
        return docs[np.argpartition(self._sums[docs], (-self._many - 1, -self._many))[-self._many :]]


class _Scorer:
    def __init__(self, segment: Segment, weighing: Weighing, lists: Sequence[_List]) -> None:
        self._segment = segment
        self._weighing = weighing
        self._slack = _ROUNDING * (len(lists) + 1) * sum(each.most for each in lists)

    def gathered(
        self, telling: Sequence[_List], lists: Sequence[_List], alive: Flags | None, limit: int, least: float
    ) -> tuple[Array, Array, list[_List], float]:
        """Memories that may be among the best, what they have so far, the lists that were not added, and what the
        best have at least."""
        sums = np.zeros(len(self._segment), np.float32)
        rest = sorted(lists, key=lambda each: -each.most)
        found: list[Array] = []
        leading = _Leading(sums, _LEADING * limit)
        for each in telling:
            if len(each.docs) > _FEW:
                least = max(least, self._reached(sums, leading.docs(found), rest, limit))
                if sum(other.most for other in rest) < least - self._slack:
                    break
            docs, added = self._contributions(each)
            if alive is not None:
                kept = alive[docs]
                docs, added = docs[kept], added[kept]
            sums[docs] += added
            found.append(docs)
            rest.remove(each)
        total = sum(map(len, found))
        if total > _FEW:
            least = max(least, self._reached(sums, leading.docs(found), rest, limit))
        floor = least - sum(each.most for each in rest) - self._slack
        if floor > 0 and total > len(sums) // _SCANNED_SHARE:
            docs = np.flatnonzero(sums >= floor).astype(np.uint32)
        else:
            promising = [docs[sums[docs] >= floor] for docs in found]
            docs = np.sort(np.concatenate([np.empty(0, np.uint32), *promising]))
            docs = docs[first_of_each(docs)]  # np.unique takes several times as long
        return docs, sums[docs], rest, least

    def _reached(self, sums: Array, leading: Array, rest: Sequence[_List], limit: int) -> float:
        """What the `limit` best have at least: that many of those that lead, with all that is not yet added to them."""
        if len(leading) < limit:
            return 0.0
        whole, damping = sums[leading], self._damping(leading)
        for each in rest:
            whole = whole + self._weighed(each, self._counts(each, leading), damping)
        return _nth(whole, limit) - self._slack

    def having_any(self, docs: Array, telling: Sequence[_List]) -> Array:
        """Those of these memories that have a telling term."""
        having = np.zeros(len(docs), np.bool_)
        for each in telling:
            having |= located(each.docs, docs)[1]
        return docs[having]

    def narrowed(self, docs: Array, sums: Array, rest: Sequence[_List], limit: int, least: float) -> Array:
        """Add the remaining lists, and drop what cannot be among the best any more, until few are left."""
        unread = sum(each.most for each in rest)
        damping = self._damping(docs)
        for each in rest:
            if len(docs) <= _FEW_LEFT:
                return docs
            kept = sums >= _floor(sums, limit, least) - unread - self._slack
            docs, sums, damping = docs[kept], sums[kept], damping[kept]
            sums = sums + self._weighed(each, self._counts(each, docs), damping)
            unread -= each.most
        return docs[sums >= _floor(sums, limit, least) - self._slack]

    def exact(self, docs: Array, lists: Sequence[_List], limit: int) -> list[tuple[int, float]]:
        """Scores as `bm25` gives them, step by step for all at once: they are the same to the last bit."""
        weighing, recipe = self._weighing, self._weighing.recipe
        k1, b, padding = recipe.tuning.bm25_k1, recipe.tuning.bm25_b, recipe.tuning.bm25_padding
        mean = weighing.mean_length + padding
        lengths = self._segment.lengths[docs].astype(np.float64)
        damping = k1 * (1 - b + b * (lengths + padding) / mean) if mean else np.full(len(docs), k1)
        counts = np.empty((len(lists), len(docs)))
        for of, each in zip(counts, lists, strict=True):
            of[:] = self._counts(each, docs, np.float64)
        idfs = np.array([weighing.idfs[each.at] for each in lists])
        added = idfs[:, None] * counts * (k1 + 1)
        np.divide(added, counts + damping, out=added, where=counts > 0)
        scores = np.zeros(len(docs))
        for of in added:
            scores += of
        if len(docs) > limit:
            kept = scores >= _nth(scores, limit)
            docs, scores = docs[kept], scores[kept]
        return list(zip(self._segment.rows[docs].tolist(), scores.tolist(), strict=True))

    # ---- one list

    def _contributions(self, each: _List) -> tuple[Array, Array]:
        """Memories that have the term, and what it adds to the score of each."""
        counts = self._with_labels(each, each.docs, each.counts.astype(np.float32))
        return each.docs, self._weighed(each, counts, self._damping(each.docs))

    def _damping(self, docs: Array) -> Array:
        return _dampings(self._segment.lengths[docs], self._weighing)

    def _weighed(self, each: _List, counts: Array, damping: Array) -> Array:
        """What so many occurrences add to the score of each memory."""
        idf = np.float32(self._weighing.idfs[each.at] * (self._weighing.recipe.tuning.bm25_k1 + 1))
        weighed: Array = idf * counts / np.maximum(counts + damping, np.float32(1e-12))
        return weighed

    def _counts(self, each: _List, docs: Array, dtype: type = np.float32) -> Array:
        """How often these memories have the term; labels count with their weight."""
        spread = self._spread(each, len(docs))
        if spread is not None:
            return self._with_labels(each, docs, spread[docs].astype(dtype))
        at, here = located(each.docs, docs)
        return self._with_labels(each, docs, (each.counts[at] * here).astype(dtype))

    def _spread(self, each: _List, looked_up: int) -> Array | None:
        """The counts of a term by memory, not by posting, if that pays: nothing has to be searched for then. Those of
        frequent terms are kept: questions are full of the same few words."""
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

    def _with_labels(self, each: _List, docs: Array, counts: Array) -> Array:
        labelled = each.labelled
        if labelled.start == labelled.stop:
            return counts
        label_docs = self._segment.label_docs[labelled]
        fields = self._segment.label_fields[labelled]
        label_counts = self._segment.label_counts[labelled]
        for field, weight in enumerate(self._weighing.label_weights.tolist()):
            own = fields == field
            at, here = located(docs, label_docs[own])
            counts[at[here]] += (weight * label_counts[own][here].astype(np.float64)).astype(counts.dtype)
        return counts
