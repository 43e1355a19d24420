"""The best are read again together with the question: what that moves is measured by how far apart they stood."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason

CLEAR = 0.3  # of the best score: where the second has less, both channels have answered
_NARROW = 0.1  # of the best score: those that are read stand at the least so far apart
_READABLE = 0.5  # of a question, at the least
_WORD = re.compile(r"\W{0,3}[\w'’]+(?:[-./:][\w'’]+)*\W{0,3}")  # with what stands around it in a sentence


def clear(ranked: Sequence[Ranked]) -> bool:
    """Whether the order is settled, so that reading again would be for nothing. They are given best first."""
    if len(ranked) < 2:
        return True
    first, second = ranked[0], ranked[1]
    both = first.lexical is not None and first.semantic is not None
    return both and second.score < CLEAR * first.score


def plain(text: str) -> float:
    """How much of a text is words, and not code, of which a reranker has read none; 1 where there is nothing."""
    chunks = text.split()
    words = sum(len(chunk) for chunk in chunks if _WORD.fullmatch(chunk))
    return words / sum(map(len, chunks)) if chunks else 1.0


def readable(known: float) -> bool:
    """Whether a reranker that has words for so much of a question can tell its answers apart."""
    return known >= _READABLE


def read(ranked: Sequence[Ranked]) -> dict[str, float]:
    """Those that were read, and how far above the least of them."""
    return {each.id: reason.numbers["above"] for each in ranked for reason in each.reasons if reason.signal == "rerank"}


def reranked(ranked: Sequence[Ranked], scores: Mapping[str, float], weight: float, known: float) -> list[Ranked]:
    """A share more for those that were read, given by their ids. No share is below 0, so none of them falls behind
    what was not read.

    `scores` are on a scale of the reranker's own. `known` is how much of the question and of what was read
    it understands.
    """
    chosen = [each.score for each in ranked if each.id in scores]
    if not chosen:
        return list(ranked)
    best = max(chosen)
    spread = max(best - min(chosen), _NARROW * best)
    least = min(scores.values())
    place = {each: rank for rank, each in enumerate(sorted(scores, key=lambda each: (-scores[each], each)), 1)}

    def reason(memory_id: str) -> Reason:
        above = scores[memory_id] - least
        numbers = {
            "rank": place[memory_id],
            "reranked": len(scores),
            "weight": weight,
            "coverage": known,
            "spread": spread,
            "above": above,
        }
        return Reason("rerank", "add", weight * known**2 * spread * above, numbers)

    return [scoring.with_reason(each, reason(each.id)) if each.id in scores else each for each in ranked]
