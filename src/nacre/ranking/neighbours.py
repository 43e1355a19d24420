"""In a conversation the answer often stands next to the turn that matches: neighbours share what a memory has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from nacre.ranking import scoring
from nacre.types.recipe import Recipe
from nacre.types.search import Ranked, Reason
from nacre.types.views import Neighbours

ECHOING = 20  # memories, the best, whose scores are heard by their neighbours
REACH = 2  # memories after one that hear it
REACH_BACK = 1


def hearing(beside: Mapping[str, Neighbours]) -> set[str]:
    """All that stand beside one of these, and may hear it."""
    return {each for near in beside.values() for each in (*near.before, *near.after)}


def shares(near: Neighbours, recipe: Recipe) -> Iterator[tuple[str, float]]:
    """Who hears a memory, of those that stand beside it, and how much."""
    for neighbours, share in (
        (near.after[:1], recipe.echo_next),
        (near.after[1:REACH], recipe.echo_far),
        (near.before[-REACH_BACK:], recipe.echo_back),
    ):
        if share:
            yield from ((each, share) for each in neighbours)


def echoed(
    ranked: Sequence[Ranked], beside: Mapping[str, Neighbours], allowed: Set[str], recipe: Recipe
) -> list[Ranked]:
    """Each neighbour of a good match gets a share of its score; those that matched nothing themselves come in by it.

    `beside` tells what stands before and after the best, nearest in the middle; `allowed` which of those may come in.
    """
    heard: dict[str, list[float]] = {}
    score_of = {each.id: each.score for each in ranked}
    for memory_id, near in beside.items():
        for each, share in shares(near, recipe):
            heard.setdefault(each, []).append(share * score_of[memory_id])
    echoes = {each: _reason(several) for each, several in heard.items()}
    raised = [scoring.with_reason(each, echoes[each.id]) if each.id in echoes else each for each in ranked]
    new = [each for each in echoes if each not in score_of and each in allowed]
    return raised + [Ranked(each, scoring.score([echoes[each]]), (echoes[each],), None, None) for each in new]


def _reason(heard: Sequence[float]) -> Reason:
    return Reason("echo", "add", sum(heard), {"neighbours": float(len(heard))})
