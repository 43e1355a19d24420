"""Why was a memory found, or why not: which stage of a search left it out, and what would bring it in?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import tzinfo
from typing import Any, Literal, TypeAlias

from nacre.engine.calendar import local_date
from nacre.engine.search_trace import SearchTrace
from nacre.engine.searcher import Searcher
from nacre.errors import NotFound
from nacre.interfaces import Store
from nacre.query.ast import either, filter_matches
from nacre.query.lexer import preview
from nacre.types.memory import Memory
from nacre.types.search import Filter, Hit, Match, MatchedWord, Reason
from nacre.validation import Limits

Stage: TypeAlias = Literal[
    "found", "deleted", "space", "filter", "condition", "confidence", "duplicate", "delivered", "dissimilar",
    "irrelevant", "limit", "budget", "pool", "floor", "no match",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The stage at which a search left a memory out, and what would bring it in. `found`: it did not."""

    stage: Stage
    explanation: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Why:
    """A memory's place in a search with every reason; without a place, `left_out` says where it was lost.

    `below` says why a memory that was superseded follows its successor. `matched` are the words of the query that met
    words of the memory, in the order of the query, where they were compared token by token.
    """

    memory_id: str
    rank: int | None  # among all that were kept, from 1
    hit: Hit | None  # of everything that was ranked, whether shown or not
    left_out: WhyNot
    below: str | None = None
    matched: tuple[MatchedWord, ...] = ()


class Explainer:
    """Follows one memory through a search."""

    def __init__(self, store: Store, searcher: Searcher, limits: Limits, zone: tzinfo | None) -> None:
        self._store = store
        self._searcher = searcher
        self._limits = limits
        self._zone = zone

    def why(self, trace: SearchTrace, memory_id: str) -> Why:
        place = next((at for at, each in enumerate(trace.ranking.kept, 1) if each.id == memory_id), None)
        ranked = [each for each in trace.ranking.ranked if each.id == memory_id]
        hits = self._searcher.pipeline.shown(trace, ranked) if ranked else ()
        hit = hits[0] if hits else None
        matched = self._matched_words(trace, memory_id) if _maxsim(hit) else ()
        return Why(memory_id, place, hit, self._left_out(trace, hit, memory_id, place), self._below(hit), matched)

    def _matched_words(self, trace: SearchTrace, memory_id: str) -> tuple[MatchedWord, ...]:
        ids = [memory_id, *trace.ranking.beside[memory_id]]
        found = self._store.get(ids)
        memories = {each: found[each] for each in ids if each in found}
        return self._searcher.late_interaction.matched_words(trace.plan, memories, trace.ranking.stated)

    def _below(self, hit: Hit | None) -> str | None:
        """Without the reason, its successor is not in the search, and it stands where it would stand anyway."""
        if hit is None or hit.superseded_by is None or all(each.signal != "superseded" for each in hit.reasons):
            return None
        successor, since = hit.superseded_by
        return f"below, because {successor} superseded it on {local_date(since, self._zone).isoformat()}"

    def _left_out(self, trace: SearchTrace, hit: Hit | None, memory_id: str, place: int | None) -> WhyNot:
        request = trace.plan.request
        if place is not None and place <= request.limit:
            if request.token_budget is None or memory_id in {hit.id for hit in trace.ranking.hits}:
                return WhyNot("found", f"it is number {place}", "nothing has to change")
            return WhyNot(
                "budget",
                f"it is number {place}, and those before it fill {request.token_budget} tokens",
                "give more tokens, or none",
            )
        if place is not None:
            said = f"it is number {place}, and only {request.limit} are shown"
            return WhyNot("limit", said + _by_tokens(hit), f"set the limit to {place}")
        memory = self._store.get([memory_id]).get(memory_id)
        if memory is None:
            raise NotFound((memory_id,))
        return _sifted(trace, memory_id) or self._not_matching(trace, memory) or self._not_found(trace, memory)

    def _not_matching(self, trace: SearchTrace, memory: Memory) -> WhyNot | None:
        """Filters and conditions keep a memory away from every channel."""
        request, query = trace.plan.request, trace.plan.query
        if memory.deleted is not None:
            return WhyNot("deleted", "it is forgotten", f"restore {memory.id}")
        if memory.space not in request.where.spaces:
            seen = ", ".join(request.where.spaces) or "none"
            return WhyNot("space", f"it is in space {memory.space}; the search sees {seen}", "name its space")
        full = replace(memory, facts=self._store.facts_of([memory.id]).get(memory.id, ()))
        unmet = [name for name, each in _parts(request.where) if not filter_matches(each, full)]
        if unmet:
            as_of = request.as_of is not None and unmet == ["created_until"] and memory.created > request.as_of
            said = "it was created after the time the search is as of" if as_of else f"the filter {unmet[0]} refuses it"
            return WhyNot("filter", said, f"search without {'as_of' if as_of else ', '.join(unmet)}")
        if query.must is not None and not self._store.matching([memory.id], query.must):
            words = query.every.items()
            lacking = [word for word, terms in words if not self._store.matching([memory.id], either(terms))]
            if lacking:
                said = f"it lacks {preview(', '.join(lacking))}, and every word is asked for"
                return WhyNot("condition", said, "ask for any of the words")
            return WhyNot(
                "condition",
                "it does not match a condition of the query or the lens (a phrase, AND, NOT or a filter such as tag:)",
                "leave the conditions out, or quote less",
            )
        return None

    def _not_found(self, trace: SearchTrace, memory: Memory) -> WhyNot:
        """It matches the filters, but no channel gave it: it ranks too low, or has nothing of the query."""
        plan = trace.plan
        recipe, floor, most = plan.recipe, plan.recipe.semantic_floor, self._limits.pool_max
        wide = replace(plan, request=replace(plan.request, recipe=replace(recipe, semantic_floor=-1.0)))
        finder = self._searcher.candidates
        lexical = finder.keyword(wide, trace.ranking.frequencies, most) if recipe.alpha < 1 else []
        semantic = (finder.semantic(wide, most).matches or []) if recipe.alpha > 0 else []
        word_rank, meaning_rank = _rank(lexical, memory.id), _rank(semantic, memory.id)
        cosine = next((match.cosine for match in semantic if match.id == memory.id), None)
        ranks = [rank for rank in (word_rank, meaning_rank if cosine is not None and cosine >= floor else None) if rank]
        if ranks:
            best = min(ranks)
            by = "words" if best == word_rank else "meaning"
            return WhyNot(
                "pool",
                f"it is number {best} by {by}; the first {plan.pool} are looked at",
                f"set pool to {best} or more",
            )
        if cosine is not None:
            return WhyNot(
                "floor",
                f"it shares no significant term with the query, and its cosine {cosine:.3f} is below {floor:g}",
                f"ask with its words, or set semantic_floor to {int(cosine * 1000 - (cosine < 0)) / 1000:g} or less",
            )
        return WhyNot(
            "no match",
            "it shares no significant term with the query" + (" and is not near its meaning" if recipe.alpha else ""),
            "ask with words that it has" + ("" if recipe.alpha else ", or search by meaning, too"),
        )


def _maxsim(hit: Hit | None) -> Reason | None:
    """The reason that late interaction gave, if it compared the memory."""
    reasons = hit.reasons if hit is not None else ()
    return next((each for each in reasons if each.signal == "maxsim" and "rank" in each.numbers), None)


def _by_tokens(hit: Hit | None) -> str:
    """Where late interaction placed a memory, if it did."""
    found = _maxsim(hit)
    if found is None:
        return ""
    return f"; word by word it is number {found.numbers['rank']:.0f} of {found.numbers['compared']:.0f}"


def _sifted(trace: SearchTrace, memory_id: str) -> WhyNot | None:
    """The memory was ranked, and a later stage left it out."""
    plan, ranking = trace
    if memory_id in ranking.duplicates:
        better = ranking.duplicates[memory_id]
        return WhyNot(
            "duplicate",
            f"it says nearly the same as {better}, which is shown in its place",
            "search with collapse off, or separate the two",
        )
    if memory_id in plan.omitted and any(each.id == memory_id for each in ranking.ranked):
        return WhyNot("delivered", "the session was given it before", "search without omit_delivered")
    if memory_id in ranking.dissimilar:
        cosine, least = ranking.dissimilar[memory_id], plan.request.min_similarity
        return WhyNot(
            "dissimilar",
            "it has no vectors to compare" if cosine is None else f"its cosine is {cosine:.3f}, below {least:g}",
            "search without min_similarity"
            + ("" if cosine is None else f", or set it to {math.floor(cosine * 1000) / 1000:g} or less"),
        )
    if memory_id in ranking.relevance:
        return WhyNot(
            "irrelevant",
            f"its relevance is {ranking.relevance[memory_id]:.2f}, below {plan.request.min_score:.2f}",
            f"set min_score to {int(ranking.relevance[memory_id] * 100) / 100:g} or less",
        )
    if memory_id in ranking.doubted:
        believed, least = ranking.doubted[memory_id], plan.recipe.min_confidence
        return WhyNot(
            "confidence",
            f"the mean confidence of its facts is {believed:.2f}, below {least:.2f}",
            "add facts that are surer, drop the wrong ones, or set min_confidence to "
            f"{int(believed * 100) / 100:g} or less",
        )
    return None


def _parts(where: Filter) -> list[tuple[str, Filter]]:
    """Each field that restricts, as a filter of its own."""
    usual = Filter()
    given = {each.name: getattr(where, each.name) for each in fields(Filter) if each.name != "spaces"}
    parts: list[tuple[str, dict[str, Any]]] = [
        (name, {name: value}) for name, value in given.items() if value != getattr(usual, name)
    ]
    return [(name, Filter(**each)) for name, each in parts]


def _rank(matches: Sequence[Match], memory_id: str) -> int | None:
    return next((rank for rank, match in enumerate(matches, 1) if match.id == memory_id), None)
