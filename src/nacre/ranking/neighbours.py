"""Echo: in a conversation the answer often stands next to the turn that matches, so neighbours share its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from nacre.ranking import scoring
from nacre.types.recipe import Recipe
from nacre.types.search import Ranked, Reason
from nacre.types.views import Neighbours

ECHOING = 20  # the best memories, which share their score with their neighbours
REACH = 2  # neighbours after a memory that get a share
REACH_BACK = 1  # neighbours before it


def echoes(recipe: Recipe) -> bool:
    """Whether any neighbour gets a share."""
    return bool(recipe.tuning.echo_next or recipe.tuning.echo_far or recipe.tuning.echo_back)


def all_of(neighbours: Mapping[str, Neighbours]) -> set[str]:
    """All memories that stand next to one of these."""
    return {each for near in neighbours.values() for each in (*near.before, *near.after)}


def next_to(near: Neighbours | None) -> tuple[str, ...]:
    """The one directly before and the one directly after."""
    return () if near is None else (*near.before[-1:], *near.after[:1])


def shares(near: Neighbours, recipe: Recipe) -> Iterator[tuple[str, float]]:
    """The neighbours that get a share of a memory's score, and how much of it."""
    for several, share in (
        (near.after[:1], recipe.tuning.echo_next),
        (near.after[1:REACH], recipe.tuning.echo_far),
        (near.before[-REACH_BACK:], recipe.tuning.echo_back),
    ):
        if share:
            yield from ((each, share) for each in several)


def echoed(
    ranked: Sequence[Ranked], neighbours: Mapping[str, Neighbours], matching: Set[str], recipe: Recipe
) -> list[Ranked]:
    """Add to each neighbour of a good match a share of its score. A neighbour that matched nothing itself comes in by
    it, if it is among `matching`.

    `neighbours` are those of the best, the nearest in the middle.
    """
    received: dict[str, list[float]] = {}
    score_of = {each.id: each.score for each in ranked}
    for memory_id, near in neighbours.items():
        for each, share in shares(near, recipe):
            received.setdefault(each, []).append(share * score_of[memory_id])
    reasons = {each: _reason(several) for each, several in received.items()}
    raised = [scoring.with_reason(each, reasons[each.id]) if each.id in reasons else each for each in ranked]
    new = [each for each in reasons if each not in score_of and each in matching]
    return raised + [Ranked(each, scoring.score([reasons[each]]), (reasons[each],), None, None) for each in new]


def relevance_shares(
    relevance: Mapping[str, float], echoing: Sequence[str], neighbours: Mapping[str, Neighbours], recipe: Recipe
) -> dict[str, float]:
    """What stands next to a likely answer is a likely answer, by its share of the echo."""
    likely: dict[str, float] = {}
    for each in echoing:
        for neighbour, share in shares(neighbours[each], recipe):
            likely[neighbour] = max(likely.get(neighbour, 0.0), share * relevance.get(each, 0.0))
    return likely


def _reason(received: Sequence[float]) -> Reason:
    return Reason("echo", "add", sum(received), {"neighbours": float(len(received))})
