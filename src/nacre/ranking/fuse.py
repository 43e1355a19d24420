"""Rank fusion: each channel gives a memory a share of `weight / (k + rank)`."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.ranking import explain
from nacre.types import Found, Match, Ranked, Reason, Recipe


def places(matches: Sequence[Match]) -> dict[str, Found]:
    """Ranks from 1 in the order the channel gave."""
    return {match.id: Found(match.score, rank, match.span) for rank, match in enumerate(matches, 1)}


def fuse(
    lexical: Sequence[Match], semantic: Sequence[Match], recipe: Recipe, listed: Sequence[str] = ()
) -> list[Ranked]:
    """One order out of two. A channel that was not asked is empty; ties are broken by id.

    `listed` are ids that meet the conditions of a question without having its words: they come after
    those that have, in their order.
    """
    by_words, by_meaning = places(lexical), places(semantic)
    found = {**by_words, **by_meaning}
    ranked = [_ranked(each, by_words.get(each), by_meaning.get(each), recipe) for each in found]
    others = (each for each in listed if each not in found)
    ranked += [_listed(each, rank, recipe) for rank, each in enumerate(others, len(lexical) + 1)]
    return in_order(ranked)


def merged(ranked: Sequence[Ranked], relations: Sequence[tuple[str, float]], recipe: Recipe) -> list[Ranked]:
    """A share more for memories of relations that match, given by memory and score, best first."""
    first: dict[str, Reason] = {}
    weight = recipe.relation_weight * max(recipe.alpha, 1 - recipe.alpha)
    for rank, (memory_id, score) in enumerate(relations, 1):
        numbers = {"bm25": score, "rank": rank, "weight": weight, "k": recipe.k}
        first.setdefault(memory_id, Reason("relation", "add", weight / (recipe.k + rank), numbers))
    raised = [explain.with_reason(each, first.pop(each.id)) if each.id in first else each for each in ranked]
    alone = [Ranked(memory_id, reason.value, (reason,), None, None) for memory_id, reason in first.items()]
    return in_order(raised + alone)


def in_order(ranked: Sequence[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda each: (-each.score, each.id))


def _ranked(memory_id: str, lexical: Found | None, semantic: Found | None, recipe: Recipe) -> Ranked:
    reasons = []
    if lexical is not None:
        reasons.append(_share("lexical", "bm25", lexical, 1 - recipe.alpha, recipe.k))
    if semantic is not None:
        reasons.append(_share("semantic", "cosine", semantic, recipe.alpha, recipe.k))
    return Ranked(memory_id, explain.score(reasons), tuple(reasons), lexical, semantic)


def _share(signal: str, raw: str, found: Found, weight: float, k: int) -> Reason:
    numbers = {raw: found.score, "rank": found.rank, "weight": weight, "k": k}
    return Reason(signal, "add", weight / (k + found.rank), numbers)


def _listed(memory_id: str, rank: int, recipe: Recipe) -> Ranked:
    weight = 1 - recipe.alpha or 1.0
    reason = Reason("filter", "add", weight / (recipe.k + rank), {"rank": rank, "weight": weight, "k": recipe.k})
    return Ranked(memory_id, explain.score([reason]), (reason,), None, None)
