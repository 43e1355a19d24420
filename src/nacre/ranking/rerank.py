"""The reranker's share of a score, measured by how far apart the candidates stood before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason

T = TypeVar("T")

_COVERED = 0.5  # the least share of a query that the reranker's vocabulary must know
_WORD = re.compile(r"\W{0,3}[\w'’]+(?:[-./:][\w'’]+)*\W{0,3}")  # with what stands around it in a sentence


def is_clear(ranked: Sequence[Ranked], clear_share: float) -> bool:
    """Whether the first is so far ahead that reranking would change nothing: both channels found it, and the second has
    less than this share of its score. `ranked` is given best first, with the scores of all stages before reranking."""
    if len(ranked) < 2:
        return True
    first, second = ranked[0], ranked[1]
    both = first.lexical is not None and first.semantic is not None
    return both and second.score < clear_share * first.score


def close_to_first(ranked: Sequence[Ranked], share: float) -> int:
    """How many have at least this share of the first one's score. `ranked` is given best first."""
    return sum(1 for _ in takewhile(lambda each: each.score >= share * ranked[0].score, ranked))


def prose_share(text: str) -> float:
    """The share of a text that is words. The rest is code, which the reranker was not trained on; 1 for no text."""
    chunks = text.split()
    words = sum(len(chunk) for chunk in chunks if _WORD.fullmatch(chunk))
    return words / sum(map(len, chunks)) if chunks else 1.0


def can_judge(coverage: float) -> bool:
    """Whether a reranker that knows this share of a query can judge its answers."""
    return coverage >= _COVERED


def leads(ranked: Sequence[Ranked]) -> dict[str, float]:
    """By id, how far each reranked memory stands above the lowest of them."""
    return {each.id: reason.numbers["above"] for each in ranked for reason in each.reasons if reason.signal == "rerank"}


def leading(order: Iterable[str], scores: Mapping[str, T]) -> dict[str, T]:
    """The scores of the first ids, up to the first that has none.

    Only these change the order. A memory whose score was cached would otherwise overtake better ones that there was no
    time to read, merely because it was read.
    """
    return {each: scores[each] for each in takewhile(scores.__contains__, order)}


def share_of_a_point(sums: Sequence[float], weight: float, coverage: float) -> float:
    """What one point of the reranker's score adds to a sum. `sums` are those of all that are to be reranked."""
    return weight * coverage**2 * scoring.spread(sums)


def settled(sums: Sequence[float], scores: Sequence[float], share: float, score_max: float, places: int) -> bool:
    """Whether no text that is still to be read can come among the first `places`.

    `sums` are those before reranking, best first, and `scores` those of the first of them. `share` is what one point of
    a score adds, and no text has more than `score_max`.
    """
    read = len(scores)
    if read >= len(sums):
        return True
    if read < places:
        return False
    totals = sorted((total + share * score for total, score in zip(sums, scores, strict=False)), reverse=True)
    return sums[read] + share * score_max < totals[places - 1]


def reranked(
    ranked: Sequence[Ranked],
    scores: Mapping[str, float],
    weight: float,
    coverage: float,
    unread: Collection[str] = (),
    left_out: Collection[str] = (),
) -> list[Ranked]:
    """Add a share to each memory that has a score. No share is below 0, so no reranked memory falls behind one that
    was not reranked.

    `scores` are on the reranker's own scale. `coverage` is the share of the query and the texts that it understands.
    `unread` are those for which time did not suffice, `left_out` those too far behind to be read; they follow all that
    have a score. They get no share, but the spread is that of all. So reading more of them changes nothing in the order
    of those that were read.
    """
    if not scores:
        return list(ranked)
    chosen = [each.score for each in ranked if each.id in scores or each.id in unread or each.id in left_out]
    spread, share = scoring.spread(chosen), share_of_a_point(chosen, weight, coverage)
    least = min(scores.values())
    place = {each: rank for rank, each in enumerate(sorted(scores, key=lambda each: (-scores[each], each)), 1)}

    def reason(memory_id: str) -> Reason:
        above = scores[memory_id] - least
        numbers = {
            "rank": place[memory_id],
            "reranked": len(scores),
            "unread": len(unread),
            "weight": weight,
            "coverage": coverage,
            "spread": spread,
            "above": above,
        }
        return Reason("rerank", "add", share * above, numbers)

    return [scoring.with_reason(each, reason(each.id)) if each.id in scores else each for each in ranked]


def beside(ranked: Sequence[Ranked], order: Sequence[str], unread: Sequence[str]) -> list[Ranked]:
    """Give those that the reranker cannot read, because of their language, the share that those around them have.

    `order` are the ids of all that were chosen, best first before reranking.
    """
    shares = {each.id: reason.value for each in ranked for reason in each.reasons if reason.signal == "rerank"}
    places = [place for place, each in enumerate(order) if each in shares]
    if not places:
        return list(ranked)
    values = [shares[order[place]] for place in places]
    given = {each: scoring.around(places, values, order.index(each)) for each in unread}
    return scoring.best_first(
        scoring.with_reason(each, Reason("rerank", "add", given[each.id], {"compared": len(values)}))
        if each.id in given
        else each
        for each in ranked
    )
