"""A score is made of its reasons, so an explanation cannot disagree with the order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TypeVar

from nacre.types.search import Match, Ranked, Reason

T = TypeVar("T", Match, Ranked)
_ID, _SCORE = itemgetter(0), itemgetter(1)  # where both have them; a key of two values takes twice as long


def best_first(found: Iterable[T]) -> list[T]:
    """The one order of what was found: the best first, ties by id."""
    return sorted(sorted(found, key=_ID), key=_SCORE, reverse=True)


def score(reasons: Sequence[Reason]) -> float:
    """The sum of the shares, times the factors, in the order given."""
    total = 0.0
    for reason in reasons:
        if reason.effect == "add":
            total += reason.value
    for reason in reasons:
        if reason.effect == "multiply":
            total *= reason.value
    return total


def with_reason(ranked: Ranked, reason: Reason) -> Ranked:
    """Add a reason and update the score. Factors come last, so a factor only multiplies the score there is."""
    memory_id, before, reasons, lexical, semantic = ranked
    reasons = (*reasons, reason)
    after = before * reason.value if reason.effect == "multiply" else score(reasons)
    return Ranked(memory_id, after, reasons, lexical, semantic)


def describe(reason: Reason) -> str:
    """One reason as a person reads it."""
    numbers = reason.numbers
    match reason.signal:
        case "lexical":
            return f"words: BM25 {numbers['bm25']:.2f}, rank {numbers['rank']:.0f} {_share(reason)}"
        case "semantic":
            return f"meaning: cosine {numbers['cosine']:.3f}, rank {numbers['rank']:.0f} {_share(reason)}"
        case "filter":
            return f"filter: matches every condition, rank {numbers['rank']:.0f} by time {_share(reason)}"
        case "temporal":
            return f"time: from the time the query names → × {reason.value:.4f}"
        case "session":
            return f"session: the same → × {reason.value:.4f}"
        case "relation":
            return f"relation: BM25 {numbers['bm25']:.2f}, rank {numbers['rank']:.0f} {_share(reason)}"
        case "entity":
            return f"entity: about a boosted one → × {reason.value:.4f}"
        case "confidence":
            return f"confidence: {numbers['effective']:.2f} in its facts → × {reason.value:.4f}"
        case "intent":
            return (
                f"intent: a namespace for such queries, confidence {numbers['confidence']:.2f} → × {reason.value:.4f}"
            )
        case "usage":
            return f"usage: {'useful' if reason.value > 1 else 'wrong'} before → × {reason.value:.4f}"
        case "echo":
            return f"echo: next to {_times(numbers['neighbours'])} in the session → {reason.value:.5f}"
        case "rerank":
            place = f"rank {numbers['rank']:.0f} of {numbers['reranked']:.0f}"
            return f"rerank: {place} {_rerank_share(reason)}"
        case "recency":
            days = f"{numbers['days']:.0f} day{'' if numbers['days'] == 1 else 's'}"
            return f"recency: {days} old → × {reason.value:.4f}"
    sign = "+" if reason.effect == "add" else "×"
    return f"{reason.signal}: {sign} {reason.value:.5g}"


_SHORT = {"lexical": "words", "semantic": "meaning", "temporal": "time"}
_NOTABLE = 0.02  # a factor nearer to 1 than this is not mentioned


def briefly(reasons: Sequence[Reason]) -> str:
    """The reasons in a few words: the rank in each channel, and the factors that moved it."""
    said = []
    for reason in reasons:
        name = _SHORT.get(reason.signal, reason.signal)
        if reason.signal == "echo":
            said.append(name)
        elif reason.effect == "add":
            said.append(f"{name} {reason.numbers['rank']:.0f}")
        elif abs(reason.value - 1) >= _NOTABLE:
            said.append(f"{name} {reason.value - 1:+.0%}")
    return ", ".join(said)


def _times(number: float) -> str:
    return "a good match" if number == 1 else f"{number:.0f} good matches"


def _rerank_share(reason: Reason) -> str:
    """The formula of a reranker's share, with its numbers."""
    numbers = reason.numbers
    known = f" × {numbers['coverage']:.2f}²" if numbers["coverage"] < 1 else ""
    apart = f"{numbers['weight']:g}{known} × {numbers['spread']:.4f}"
    return f"→ {apart} × {numbers['above']:.2f} = {reason.value:.5f}"


def _share(reason: Reason) -> str:
    """The formula of a channel's share, with its numbers."""
    numbers = reason.numbers
    if "gap" in numbers:
        known = f" × {numbers['coverage']:.2f}³" if numbers["coverage"] < 1 else ""
        return f"→ {numbers['weight']:g}{known} × {numbers['gap']:.2f}² × {numbers['height']:.2f} = {reason.value:.5f}"
    return f"→ {numbers['weight']:g} / ({numbers['k']:g} + {numbers['rank']:.0f}) = {reason.value:.5f}"
