"""Two channels become one order: by how far matches stand out, or by rank alone.

By height, the default: a channel is trusted as far as its best match stands out from the crowd behind it. On
conversations words stand out, on code meaning does, and for a language that the model never learned nothing does: so
no fixed weight has to be right for all. By rank (reciprocal rank fusion): each channel gives `weight / (k + rank)`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from nacre.ranking import scoring
from nacre.ranking.scoring import best_first
from nacre.types.recipe import Recipe
from nacre.types.search import Found, Match, Ranked, Reason

UNRELATED = 0.1  # a cosine that texts about different things have
CONVINCING = 0.5  # of what a memory with every word would have: few matches that have less are not trusted in full
_TAIL = 0.001  # of a channel's weight, by rank: what is below the floor keeps its order


@dataclass(frozen=True, slots=True)
class Channel:
    """How a channel's scores become shares."""

    signal: str
    raw: str  # what its score is called
    weight: float
    best: float
    crowd: float  # the score of those that any such question finds
    floor: float  # the score that is worth nothing
    known: float = 1.0  # how much of the question the channel understands

    @property
    def gap(self) -> float:
        """How far the best stands out from the crowd, as a share of its score: 0 to 1."""
        return min(1.0, max(0.0, 1 - self.crowd / self.best)) if self.best > 0 else 0.0

    def share(self, found: Found, k: int = 60) -> Reason:
        return self.sharing(k)(found)

    def sharing(self, k: int) -> Callable[[Found], Reason]:
        """The share of a match. What is the same for all of them is worked out once."""
        signal, raw, weight, known, gap = self.signal, self.raw, self.weight, self.known, self.gap
        floor, best, most = self.floor, self.best, self.best - self.floor
        trust = weight * known**3 * gap**2
        flat = max(k, 1)  # a rank of 1 more or less is no reason to pass by what signals say
        tail = _TAIL * weight * flat

        def share(found: Found) -> Reason:
            score, rank, _ = found
            above = score - floor
            height = float(score >= best) if most <= 0 else 0.0 if above <= 0 else min(1.0, above / most)
            numbers = {raw: score, "rank": rank, "weight": weight, "coverage": known, "gap": gap, "height": height}
            return Reason(signal, "add", trust * height + tail / (flat + rank), numbers)

        return share


def by_words(signal: str, matches: Sequence[Match], weight: float, recipe: Recipe, ideal: float) -> Channel:
    """A channel of words. Who is not among a few matches has no word at all, so the best of them stands out by how much
    of the `ideal` it has, what a memory with every word comes near to."""
    scores = [match.score for match in matches]
    best = scores[0] if scores else 0.0
    convincing = min(1.0, best / (CONVINCING * ideal)) if ideal > 0 else 1.0
    crowd = scores[recipe.crowd - 1] if len(scores) >= recipe.crowd else best * (1 - convincing)
    floor = scores[recipe.pool - 1] if len(scores) >= recipe.pool else 0.0
    return Channel(signal, "bm25", weight, best, crowd, floor)


def by_meaning(matches: Sequence[Match], weight: float, recipe: Recipe, known: float) -> Channel:
    """The channel of meaning. In a small store the crowd is what unrelated texts have."""
    scores = [match.score for match in matches]
    least = min([*scores[-1:], UNRELATED])
    crowd = scores[recipe.crowd - 1] if len(scores) >= recipe.crowd else least
    floor = scores[recipe.pool - 1] if len(scores) >= recipe.pool else least
    return Channel("semantic", "cosine", weight, scores[0] if scores else 0.0, max(0.0, crowd), floor, known)


def places(matches: Sequence[Match], only: Container[str] | None = None) -> dict[str, Found]:
    """Ranks from 1 in the order the channel gave; of those that are asked for."""
    return {
        memory_id: Found(score, rank, span)
        for rank, (memory_id, score, span) in enumerate(matches, 1)
        if only is None or memory_id in only
    }


def fuse(
    lexical: Sequence[Match],
    semantic: Sequence[Match],
    recipe: Recipe,
    listed: Sequence[str] = (),
    known: float = 1.0,
    ideal: float = 0.0,
) -> list[Ranked]:
    """One order out of two. A channel that was not asked is empty; ties are broken by id.

    `listed` are ids that meet the conditions of a question without having its words: they come after
    those that have, in their order. `known` is how much of the question the embedder understands, `ideal` the BM25
    score that a memory with all its words comes near to; 0: not known.
    """
    in_words, in_meaning = places(lexical), places(semantic)
    words = by_words("lexical", lexical, 1 - recipe.alpha, recipe, ideal)
    meaning = by_meaning(semantic, recipe.alpha, recipe, known)
    by_word, by_nearness = _sharing(words, recipe), _sharing(meaning, recipe)
    ranked = []
    for each, found in in_words.items():
        also, reason = in_meaning.get(each), by_word(found)
        if also is None:
            ranked.append(Ranked(each, reason.value, (reason,), found, None))
        else:
            nearness = by_nearness(also)
            ranked.append(Ranked(each, reason.value + nearness.value, (reason, nearness), found, also))
    for each, found in in_meaning.items():
        if each not in in_words:
            reason = by_nearness(found)
            ranked.append(Ranked(each, reason.value, (reason,), None, found))
    least = min((each.score for each in ranked), default=1.0)
    others = (each for each in listed if each not in in_words and each not in in_meaning)
    ranked += [_listed(each, rank, recipe, least) for rank, each in enumerate(others, len(lexical) + 1)]
    return best_first(ranked)


def merged(
    ranked: Sequence[Ranked], relations: Sequence[tuple[str, float]], recipe: Recipe, ideal: float = 0.0
) -> list[Ranked]:
    """A share more for memories of relations that match, given by memory and score, best first."""
    # By height a relation is worth a part of the best match, however few relations there are to stand out from.
    best = max((each.score for each in ranked), default=1.0)
    weight = recipe.relation_weight * (max(recipe.alpha, 1 - recipe.alpha) if recipe.fusion == "rank" else best)
    matches = [Match(memory_id, score) for memory_id, score in relations]
    share = _sharing(by_words("relation", matches, weight, recipe, ideal), recipe)
    first: dict[str, Reason] = {}
    for rank, match in enumerate(matches, 1):
        first.setdefault(match.id, share(Found(match.score, rank)))
    raised = [scoring.with_reason(each, first.pop(each.id)) if each.id in first else each for each in ranked]
    alone = [Ranked(memory_id, reason.value, (reason,), None, None) for memory_id, reason in first.items()]
    return best_first(raised + alone)


def _sharing(of: Channel, recipe: Recipe) -> Callable[[Found], Reason]:
    if recipe.fusion == "height":
        return of.sharing(recipe.k)

    def by_rank(found: Found) -> Reason:
        numbers = {of.raw: found.score, "rank": found.rank, "weight": of.weight, "k": recipe.k}
        return Reason(of.signal, "add", of.weight / (recipe.k + found.rank), numbers)

    return by_rank


def _listed(memory_id: str, rank: int, recipe: Recipe, least: float) -> Ranked:
    """Below the `least` share that a word or meaning earned."""
    weight = least if recipe.fusion == "height" else 1 - recipe.alpha or 1.0
    reason = Reason("filter", "add", weight / (recipe.k + rank), {"rank": rank, "weight": weight, "k": recipe.k})
    return Ranked(memory_id, scoring.score([reason]), (reason,), None, None)
