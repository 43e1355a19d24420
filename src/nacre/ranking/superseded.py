"""What was superseded steps back: its successor takes its place, and it follows behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason, Successor

BEHIND = 0.9  # share of its successor's score, or relevance, that a superseded memory has at the most


def stepped_back(ranked: Sequence[Ranked], successors: Mapping[str, Successor]) -> list[Ranked]:
    """Each successor with at least the score of what it supersedes, and that below its successor.

    A successor that no channel found comes in by what it supersedes: it is about the same thing. `successors` are by
    id of the superseded memory, and are not superseded themselves.
    """
    scores = {each.id: each.score for each in ranked}
    inherited: dict[str, float] = {}
    for older, successor in successors.items():
        inherited[successor.id] = max(inherited.get(successor.id, 0.0), scores[older])
    raised = {
        each: Reason("successor", "add", share, {})
        for each, best in inherited.items()
        if (share := best - scores.get(each, 0.0)) > 0
    }
    moved: list[Ranked] = []
    for each in ranked:
        if each.id in raised:
            moved.append(_raised(each, raised[each.id]))
        elif each.id in successors:
            most = BEHIND * max(scores.get(successors[each.id].id, 0.0), inherited[successors[each.id].id])
            factor = min(1.0, most / each.score) if each.score > 0 else 1.0
            moved.append(scoring.with_reason(each, Reason("superseded", "multiply", factor, {})))
        else:
            moved.append(each)
    moved += [
        Ranked(each, reason.value, (reason,), None, None) for each, reason in raised.items() if each not in scores
    ]
    return scoring.best_first(moved)


def _raised(each: Ranked, reason: Reason) -> Ranked:
    """Factors act on the sum of all shares, so the share is what is missing before they act."""
    factor = 1.0
    for known in each.reasons:
        if known.effect == "multiply":
            factor *= known.value
    return scoring.with_reason(each, reason._replace(value=reason.value / factor))


def relevance_behind(relevance: Mapping[str, float], successors: Mapping[str, Successor]) -> dict[str, float]:
    """A successor is as likely an answer as what it supersedes, and that is less likely than its successor."""
    likely = dict(relevance)
    for older, successor in successors.items():
        if older in likely and successor.id in likely:
            likely[successor.id] = max(likely[successor.id], relevance[older])
    for older, successor in successors.items():
        if older in likely:
            likely[older] = min(likely[older], BEHIND * likely.get(successor.id, likely[older]))
    return likely
