"""What was superseded steps back: its successor takes its place, and it follows behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason, Successor

FRESH_AMONG = 5  # the best candidates, which are compared with each other
FRESH_SHARE = 0.5  # of the best score that a candidate must have to be compared
FRESH_LIKENESS = 0.55  # the cosine of two memories about the same thing
CHANGED_LIKENESS = 0.3  # the same where the newer one says that something has changed
FRESH_AFTER = timedelta(hours=12)
FRESH_CHARS = 1_000  # of a note that a newer one may take the place of: a longer text is about more than one thing
_AHEAD = 0.001  # of the older one's score
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
            moved.append(scoring.with_share(each, raised[each.id]))
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


def fresher(
    ranked: Sequence[Ranked],
    moments: Mapping[str, datetime],
    asked: Mapping[str, Set[str]],
    likeness: Callable[[str, str], float],
    changing: Set[str] = frozenset(),
) -> list[Ranked]:
    """Of two good matches that say much the same, the newer one first. Both may hold, so neither steps back.

    `ranked` is given best first. `asked` has the words of the question that each memory has: the newer one must have
    all that the older one has, or it is about something else. Of those that say that something has changed, the
    `changing`, less is demanded.
    """
    if not ranked:
        return []
    best = [each for each in ranked[:FRESH_AMONG] if each.id in asked and each.score >= FRESH_SHARE * ranked[0].score]
    scores = {each.id: each.score for each in best}
    raised: dict[str, Reason] = {}
    for newer in sorted(best, key=lambda each: (moments[each.id], each.id)):  # so that a third one passes the second
        passed = [
            scores[older.id]
            for older in best
            if scores[older.id] >= newer.score
            and moments[newer.id] - moments[older.id] >= FRESH_AFTER
            and _goes_before(newer.id, older.id, asked, likeness, newer.id in changing)
        ]
        if passed:
            scores[newer.id] = max(passed) * (1 + _AHEAD)
            raised[newer.id] = Reason("fresher", "add", scores[newer.id] - newer.score, {})
    if not raised:
        return list(ranked)
    return scoring.best_first(
        scoring.with_share(each, raised[each.id]) if each.id in raised else each for each in ranked
    )


def _goes_before(
    newer: str, older: str, asked: Mapping[str, Set[str]], likeness: Callable[[str, str], float], changes: bool
) -> bool:
    if changes and (asked[newer] & asked[older] or not asked[older]):
        return likeness(older, newer) >= CHANGED_LIKENESS
    return asked[newer] >= asked[older] and likeness(older, newer) >= FRESH_LIKENESS


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
