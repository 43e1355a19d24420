"""A score is made of its reasons, so an explanation cannot disagree with the order."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from nacre.analysis.wording import counted
from nacre.types.search import Match, Ranked, Reason

T = TypeVar("T", Match, Ranked)
AROUND = 3  # of those compared, how many before and behind one that could not be
_NARROW = 0.1  # share of the best sum: the least spread of sums
_ID, _SCORE = itemgetter(0), itemgetter(1)  # where both have them; a key of two values takes twice as long


def best_first(found: Iterable[T]) -> list[T]:
    """The one order of what was found: the best first, ties by id."""
    return sorted(sorted(found, key=_ID), key=_SCORE, reverse=True)


def important_first(found: Sequence[T], importance: Mapping[str, float]) -> list[T]:
    """What was found best first, with the more important first among equal scores. Ties that are left are by id."""
    return sorted(found, key=lambda each: (-each[1], -importance[each[0]], each[0]))


def has_ties(found: Sequence[T]) -> bool:
    """Whether two neighbours of what was found best first have the same score."""
    return any(one[1] == other[1] for one, other in pairwise(found))


def spread(sums: Sequence[float]) -> float:
    """How far sums lie apart, from the best to the worst."""
    best = max(sums)
    return max(best - min(sums), _NARROW * best)


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


def with_share(ranked: Ranked, reason: Reason) -> Ranked:
    """Add a share that raises the score by its value, also where factors act already.

    Factors act on the sum of all shares, so the share becomes what is missing before they act.
    """
    factor = 1.0
    for known in ranked.reasons:
        if known.effect == "multiply":
            factor *= known.value
    # A factor of 0, the full weight of facts that nobody believes, leaves nothing to raise.
    return with_reason(ranked, reason._replace(value=reason.value / factor) if factor else reason)


def around(places: Sequence[int], values: Sequence[float], place: int) -> float:
    """What a memory may have that could not be compared: the median of those before and behind it that were.

    `places` are those of the memories that have these values. It is not known to be worse than they are.
    """
    at = bisect(places, place)
    near = sorted(values[max(0, at - AROUND) : at + AROUND])
    middle = len(near) // 2
    return near[middle] if len(near) % 2 else (near[middle - 1] + near[middle]) / 2


def describe(reason: Reason) -> str:
    """One reason as a person reads it."""
    if reason.signal in _SHARES:
        if "compared" in reason.numbers:
            return f"meaning: no vectors yet, so what those around it have → {reason.value:.5f}"
        known = _SHARES[f"{reason.signal}, less" if "less" in reason.numbers else reason.signal]
        return f"{known.format(**reason.numbers)} {_share(reason)}"
    if reason.signal in _MOVES:
        if reason.signal == "boost" and "compared" in reason.numbers:
            return (
                _MOVES["boost"].format(value=reason.value, **reason.numbers)
                + ", that of those around it: no vectors yet"
            )
        return _MOVES[reason.signal].format(value=reason.value, **reason.numbers)
    match reason.signal:
        case "echo":
            return f"echo: next to {_times(reason.numbers['neighbours'])} in the session → {reason.value:.5f}"
        case "rerank" if "rank" not in reason.numbers:
            return f"rerank: in another language, so what those around it have → {reason.value:.5f}"
        case "rerank":
            above = f"{reason.numbers['above']:.2f}"
            return f"rerank: rank {reason.numbers['rank']:.0f} of {_reranked(reason)} {_lead_share(reason, above)}"
        case "maxsim":
            lead = f"{reason.numbers['lead']:.3f}"
            return f"maxsim: {_maxsim(reason.numbers)} {_lead_share(reason, lead)}"
        case "recency":
            return f"recency: {counted(round(reason.numbers['days']), 'day')} old → × {reason.value:.4f}"
        case "usage":
            return f"usage: {'useful' if reason.value > 1 else 'wrong'} before → × {reason.value:.4f}"
    if reason.signal in _FACTORS:
        return f"{_FACTORS[reason.signal].format(**reason.numbers)} → × {reason.value:.4f}"
    sign = "+" if reason.effect == "add" else "×"
    return f"{reason.signal}: {sign} {reason.value:.5g}"


_SHARES = {
    "lexical": "words: BM25 {bm25:.2f}, rank {rank:.0f}",
    "semantic": "meaning: cosine {cosine:.3f}, rank {rank:.0f}",
    "semantic, less": "meaning: cosine {cosine:.3f} - {less:.3f} for its passages, rank {rank:.0f}",
    "multilingual": "meaning, by the multilingual model: cosine {cosine:.3f}, rank {rank:.0f}",
    "multilingual, less": (
        "meaning, by the multilingual model: cosine {cosine:.3f} - {less:.3f} for its passages, rank {rank:.0f}"
    ),
    "filter": "filter: matches every condition, rank {rank:.0f} by time",
    "relation": "relation: BM25 {bm25:.2f}, rank {rank:.0f}",
}
_FACTORS = {
    "session": "session: the same",
    "entity": "entity: about a boosted one",
    "confidence": "confidence: {effective:.2f} in its facts",
    "namespace": "namespace: weighted by the recipe",
    "importance": "importance: {importance:g}",
    "intent": "intent: a namespace for such queries, confidence {confidence:.2f}",
}
# What moves a memory by a rule, whatever its rank in a channel.
_MOVES = {
    "boost": "boost: BM25 {bm25:.2f} × {weight:g} × cosine {cosine:.3f} → {value:.5f}",
    "exact": "exact: has {named:.0f} of what the query names → {value:.5f}",
    "hop": "hop: has {names:.0f} of the names in a first hit → {value:.5f}",
    "standing": "standing: holds for what is to be done, cosine {cosine:.3f} → {value:.5f}",
    "temporal": "time: from the time the query names → {value:.5f}",
    "order": "order: number {place:.0f} in time among the best → {value:.5f}",
    "fresher": "fresher: newer than a better match that is much like it → {value:.5f}",
    "successor": "successor: supersedes a better match → {value:.5f}",
    "superseded": "superseded: behind its successor → × {value:.4f}",
}
_SHORT = {"lexical": "words", "semantic": "meaning", "temporal": "time"}
_NOTABLE = 0.02  # a factor nearer to 1 than this is not mentioned


def briefly(reasons: Sequence[Reason]) -> str:
    """The reasons in a few words: the rank in each channel, and the factors that moved it."""
    said = []
    for reason in reasons:
        name = _SHORT.get(reason.signal, reason.signal)
        if reason.signal == "echo" or reason.signal in _MOVES:
            said.append(name)
        elif reason.signal in ("maxsim", "semantic", "rerank") and "rank" not in reason.numbers:
            continue  # there were no vectors to compare
        elif reason.effect == "add":
            said.append(f"{name} {reason.numbers['rank']:.0f}")
        elif abs(reason.value - 1) >= _NOTABLE:
            said.append(f"{name} {reason.value - 1:+.0%}")
    return ", ".join(said)


def _times(number: float) -> str:
    return "a good match" if number == 1 else f"{number:.0f} good matches"


def _maxsim(numbers: Mapping[str, float]) -> str:
    if "rank" not in numbers:
        return "no token vectors, so what those around it have"
    return f"{numbers['maxsim']:.3f}, rank {numbers['rank']:.0f} of {numbers['compared']:.0f}"


def _reranked(reason: Reason) -> str:
    """How many were reranked, and for how many more there was no time."""
    unread = reason.numbers["unread"]
    return f"{reason.numbers['reranked']:.0f}" + (f" ({unread:.0f} more not read in time)" if unread else "")


def _lead_share(reason: Reason, lead: str) -> str:
    """The formula of a share by the lead over the lowest, with its numbers: of MaxSim, or of the reranker."""
    numbers = reason.numbers
    known = f" × {numbers['coverage']:.2f}²" if numbers["coverage"] < 1 else ""
    return f"→ {numbers['weight']:g}{known} × {numbers['spread']:.4f} × {lead} = {reason.value:.5f}"


def _share(reason: Reason) -> str:
    """The formula of a channel's share, with its numbers."""
    numbers = reason.numbers
    if "gap" in numbers:
        known = f" × {numbers['coverage']:.2f}³" if numbers["coverage"] < 1 else ""
        return f"→ {numbers['weight']:g}{known} × {numbers['gap']:.2f}² × {numbers['height']:.2f} = {reason.value:.5f}"
    if "words" in numbers:
        return f"→ {numbers['weight']:g} × {numbers['words']:.2f} = {reason.value:.5f}"
    if "least" in numbers:
        return f"→ {numbers['least']:.5f} × ({numbers['cosine']:.3f} + 1) / 4 = {reason.value:.5f}"
    if "k" not in numbers:  # the raw score itself
        return f"→ {reason.value:.5f}"
    return f"→ {numbers['weight']:g} / ({numbers['k']:g} + {numbers['rank']:.0f}) = {reason.value:.5f}"
