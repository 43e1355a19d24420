"""Fuses the channels into one order: by how far matches stand out, by rank alone, or by words that meaning boosts.

By height, the default: a channel weighs more the further its best match stands out from the crowd behind it. On
conversations words stand out, on code meaning does, and in a language that the model never learned nothing does, so no
fixed weight suits all. By rank (reciprocal rank fusion): each channel gives `weight / (k + rank)`. Boosted: words find
and score, and `BM25 · (1 + w · cosine)` is the score; what only meaning found follows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from nacre.ranking import scoring
from nacre.ranking.scoring import best_first
from nacre.types.recipe import Recipe
from nacre.types.search import Found, Match, Ranked, Reason

UNRELATED = 0.1  # a cosine that texts about different things have
CONVINCING = 0.5  # share of the ideal score: where there are few matches, a best below it weighs less
HIGHEST = 2.0  # height of a relation that has more of the question than any memory
# Of the weight of meaning, where a further model answers in place of the own one. Words that a question in another
# language shares with a memory are rare, and then they tell much. Chosen on xquad-de, -es and -ru.
FURTHER_WEIGHT = 0.67
_NONE: Mapping[str, float] = MappingProxyType({})
_TAIL = 0.001  # share of a channel's weight, by rank: matches at the floor keep their order


@dataclass(frozen=True, slots=True)
class Channel:
    """How a channel's scores become shares."""

    signal: str
    raw: str  # what its score is called
    weight: float
    best: float
    crowd: float  # the score that any such query finds
    floor: float  # the score that earns nothing
    coverage: float = 1.0  # the share of the query that the channel understands

    @property
    def gap(self) -> float:
        """How far the best stands out from the crowd, as a share of its score: 0 to 1."""
        return min(1.0, max(0.0, 1 - self.crowd / self.best)) if self.best > 0 else 0.0

    def share(self, found: Found, k: int = 60) -> Reason:
        return self.sharing(k)(found)

    def sharing(self, k: int) -> Callable[[Found], Reason]:
        """A function from a match to its share. What is the same for all matches is computed once."""
        signal, raw, weight, coverage, gap = self.signal, self.raw, self.weight, self.coverage, self.gap
        floor, best, most = self.floor, self.best, self.best - self.floor
        trust = weight * coverage**3 * gap**2
        flat = max(k, 1)  # neighbouring ranks differ so little that signals can reorder them
        tail = _TAIL * weight * flat

        def share(found: Found) -> Reason:
            score, rank, _, _ = found
            above = score - floor
            height = float(score >= best) if most <= 0 else 0.0 if above <= 0 else min(1.0, above / most)
            numbers = _scores(raw, found) | {
                "rank": rank,
                "weight": weight,
                "coverage": coverage,
                "gap": gap,
                "height": height,
            }
            return Reason(signal, "add", trust * height + tail / (flat + rank), numbers)

        return share


def by_words(matches: Sequence[Match], weight: float, recipe: Recipe, ideal: float) -> Channel:
    """The lexical channel. Where it has few matches, everything else has no word at all, so the best stands out by
    its share of `ideal`, the score that a memory with every word comes near to."""
    scores = [match.score for match in matches]
    best = scores[0] if scores else 0.0
    convincing = min(1.0, best / (CONVINCING * ideal)) if ideal > 0 else 1.0
    crowd = scores[recipe.tuning.crowd - 1] if len(scores) >= recipe.tuning.crowd else best * (1 - convincing)
    floor = scores[recipe.pool - 1] if len(scores) >= recipe.pool else 0.0
    return Channel("lexical", "bm25", weight, best, crowd, floor)


def by_meaning(
    matches: Sequence[Match], weight: float, recipe: Recipe, coverage: float, signal: str = "semantic"
) -> Channel:
    """The channel of a model. In a small store the crowd is the cosine of unrelated texts."""
    scores = [match.score for match in matches]
    least = min([*scores[-1:], UNRELATED])
    crowd = scores[recipe.tuning.crowd - 1] if len(scores) >= recipe.tuning.crowd else least
    floor = scores[recipe.pool - 1] if len(scores) >= recipe.pool else least
    return Channel(signal, "cosine", weight, scores[0] if scores else 0.0, max(0.0, crowd), floor, coverage)


def places(matches: Sequence[Match], only: Container[str] | None = None) -> dict[str, Found]:
    """Scores and ranks from 1, in the channel's order; of `only` these, where given."""
    return {
        memory_id: Found(score, rank, span, raw)
        for rank, (memory_id, score, span, raw) in enumerate(matches, 1)
        if only is None or memory_id in only
    }


class Further(NamedTuple):
    """What a further model has found, best first."""

    matches: Sequence[Match]
    coverage: float = 1.0  # the share of the query that it understands
    ids: Set[str] | None = None  # of those that it speaks for, in place of the store's own model; None: all


def fuse(
    lexical: Sequence[Match],
    semantic: Sequence[Match],
    recipe: Recipe,
    listed: Sequence[str] = (),
    coverage: float = 1.0,
    ideal: float = 0.0,
    cosines: Mapping[str, float] = _NONE,
    unembedded: Set[str] = frozenset(),
    further: Further | None = None,
) -> list[Ranked]:
    """One order out of the channels. A channel that was not asked is empty; ties are broken by id.

    Of a memory that both models have found, one says how near it is: `further` for its ids.

    `listed` are ids that match the conditions of a query without having its words: they come after those that have,
    in their order. `coverage` is the share of the query that the embedder understands, `ideal` the BM25 score that a
    memory with all its words comes near to, or 0 where it is not known. `cosines` are those of memories that words
    found and meaning did not, for boost fusion. `unembedded` are those that have no vectors yet: it is not known how
    near they are, so each gets the share that those have that words rank around it.
    """
    in_words, in_meaning = places(lexical), places(semantic)
    in_further = {} if further is None else places(further.matches, further.ids)
    in_meaning |= in_further
    if recipe.fusion == "boost":
        ranked = _boosted(in_words, in_meaning, recipe.boost_weight, cosines, unembedded)
    else:
        words = by_words(lexical, 1 - recipe.alpha, recipe, ideal)
        meaning = by_meaning(semantic, recipe.alpha, recipe, coverage)
        if further is not None:
            other = by_meaning(further.matches, recipe.alpha, recipe, further.coverage, "multilingual")
            ranked = _added(in_words, in_meaning, words, meaning, recipe, unembedded, (other, in_further))
        else:
            ranked = _added(in_words, in_meaning, words, meaning, recipe, unembedded)
    least = min((each.score for each in ranked), default=1.0)
    others = (each for each in listed if each not in in_words and each not in in_meaning)
    ranked += [_listed(each, rank, recipe, least) for rank, each in enumerate(others, len(lexical) + 1)]
    return best_first(ranked)


def _added(
    in_words: Mapping[str, Found],
    in_meaning: Mapping[str, Found],
    words: Channel,
    meaning: Channel,
    recipe: Recipe,
    unembedded: Set[str],
    further: tuple[Channel, Container[str]] | None = None,
) -> list[Ranked]:
    """By height or by rank: the sum of a share of each channel. `further` speaks for the meaning of these ids."""
    by_word, by_own = _sharing(words, recipe), _sharing(meaning, recipe)
    by_further, foreign = (by_own, ()) if further is None else (_sharing(further[0], recipe), further[1])

    def by_nearness(memory_id: str, found: Found) -> Reason:
        return by_further(found) if memory_id in foreign else by_own(found)

    near = {each: by_nearness(each, found) for each, found in in_meaning.items() if each in in_words}
    compared = {each: near[each].value if each in near else 0.0 for each in in_words if each not in unembedded}
    for each, (share, among) in _around(list(in_words), compared, unembedded).items():
        near[each] = Reason("semantic", "add", share, {"weight": meaning.weight, "compared": among})
    ranked = []
    for each, found in in_words.items():
        reason, nearness = by_word(found), near.get(each)
        if nearness is None:
            ranked.append(Ranked(each, reason.value, (reason,), found, None))
        else:
            value = reason.value + nearness.value
            ranked.append(Ranked(each, value, (reason, nearness), found, in_meaning.get(each)))
    for each, found in in_meaning.items():
        if each not in in_words:
            reason = by_nearness(each, found)
            ranked.append(Ranked(each, reason.value, (reason,), None, found))
    return ranked


def _around(ids: Sequence[str], known: Mapping[str, float], unknown: Set[str]) -> dict[str, tuple[float, int]]:
    """For ids whose values are unknown, what those around them in this order have, and of how many it is known."""
    if not unknown or not known:
        return {}
    places = [place for place, each in enumerate(ids) if each in known]
    values = [known[ids[place]] for place in places]
    return {
        each: (scoring.around(places, values, place), len(values)) for place, each in enumerate(ids) if each in unknown
    }


def _boosted(
    in_words: Mapping[str, Found],
    in_meaning: Mapping[str, Found],
    weight: float,
    cosines: Mapping[str, float],
    unembedded: Set[str],
) -> list[Ranked]:
    """BM25 · (1 + weight · cosine), as two shares. What only meaning found has less than half of the least of these."""
    near = {
        each: max(0.0, in_meaning[each].cosine if each in in_meaning else cosines.get(each, 0.0))
        for each in in_words
        if each not in unembedded
    }
    estimated = _around(list(in_words), near, unembedded)
    ranked = []
    for each, found in in_words.items():
        also = in_meaning.get(each)
        cosine, among = estimated[each] if each in estimated else (near.get(each, 0.0), 0)
        reasons = [Reason("lexical", "add", found.score, {"bm25": found.score, "rank": found.rank})]
        if weight and cosine:
            numbers = {"bm25": found.score, "weight": weight, "cosine": cosine}
            numbers |= {"compared": among} if among else {}
            reasons.append(Reason("boost", "add", found.score * weight * cosine, numbers))
        ranked.append(Ranked(each, scoring.score(reasons), tuple(reasons), found, also))
    least = min((each.score for each in ranked), default=1.0)
    for each, found in in_meaning.items():
        if each not in in_words:
            numbers = {"cosine": found.score, "rank": found.rank, "least": least}
            reason = Reason("semantic", "add", least * (found.score + 1) / 4, numbers)
            ranked.append(Ranked(each, reason.value, (reason,), None, found))
    return ranked


class MatchedRelation(NamedTuple):
    """A relation that matches a question: its memory, its BM25 among relations, and that of a memory with its words."""

    memory_id: str
    bm25: float
    words: float


def merged(
    ranked: Sequence[Ranked], relations: Sequence[MatchedRelation], recipe: Recipe, ideal: float = 0.0
) -> tuple[list[Ranked], dict[str, int]]:
    """Add a share for memories whose relations match: of each memory, that of the relation that gives most.

    Relations are given best first. Also the places of the relations that gave their memory more than all channels did:
    there it is the relation that was found.
    """
    most = max((each.lexical.score for each in ranked if each.lexical), default=0.0)
    most = most or max((each.words for each in relations), default=0.0)
    best: dict[str, tuple[Reason, int]] = {}
    for at, relation in enumerate(relations):
        reason = _of_relation(relation, at + 1, recipe, ideal, most)
        if relation.memory_id not in best or reason.value > best[relation.memory_id][0].value:
            best[relation.memory_id] = reason, at
    known = {each.id: each.score for each in ranked}
    winning = {each: at for each, (reason, at) in best.items() if reason.value > known.get(each, 0.0)}
    raised = [scoring.with_reason(each, best[each.id][0]) if each.id in best else each for each in ranked]
    alone = [
        Ranked(each, reason.value, (reason,), None, None) for each, (reason, _) in best.items() if each not in known
    ]
    return best_first(raised + alone), winning


def _of_relation(relation: MatchedRelation, rank: int, recipe: Recipe, ideal: float, most: float) -> Reason:
    """The share of a relation: as of a text with its words, where words have all the weight that there is.

    `most` is the best BM25 of a memory, or of these relations where no memory has a word. A relation has no vector, so
    nothing can be said of its meaning.
    """
    weight, words = recipe.tuning.relation_weight, relation.words
    numbers = {"bm25": relation.bm25, "rank": rank, "weight": weight}
    match recipe.fusion:
        case "rank":
            return Reason("relation", "add", weight / (recipe.k + rank), numbers | {"k": recipe.k})
        case "boost":
            return Reason("relation", "add", weight * words, numbers | {"words": words})
    gap = min(1.0, words / (CONVINCING * ideal)) if ideal > 0 else 1.0
    height = min(HIGHEST, words / most) if most > 0 else 1.0
    flat = max(recipe.k, 1)
    value = weight * gap**2 * height + _TAIL * weight * flat / (flat + rank)
    return Reason("relation", "add", value, numbers | {"coverage": 1.0, "gap": gap, "height": height})


def _sharing(of: Channel, recipe: Recipe) -> Callable[[Found], Reason]:
    if recipe.fusion != "rank":
        return of.sharing(recipe.k)

    def by_rank(found: Found) -> Reason:
        numbers = _scores(of.raw, found) | {"rank": found.rank, "weight": of.weight, "k": recipe.k}
        return Reason(of.signal, "add", of.weight / (recipe.k + found.rank), numbers)

    return by_rank


def _scores(name: str, found: Found) -> dict[str, float]:
    """The raw score of a match, and what the channel took off it."""
    return {name: found.score} if found.raw is None else {name: found.raw, "less": found.raw - found.score}


def _listed(memory_id: str, rank: int, recipe: Recipe, least: float) -> Ranked:
    """Below the `least` share that a word or meaning earned."""
    weight = least if recipe.fusion != "rank" else 1 - recipe.alpha or 1.0
    reason = Reason("filter", "add", weight / (recipe.k + rank), {"rank": rank, "weight": weight, "k": recipe.k})
    return Ranked(memory_id, scoring.score([reason]), (reason,), None, None)
