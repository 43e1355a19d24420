"""Ranked memories as hits: what is shown of each, and how it was found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nacre.analysis import highlight
from nacre.engine.plan import SearchPlan
from nacre.facts import confidence
from nacre.types.facts import Belief, Fact
from nacre.types.memory import Memory
from nacre.types.search import Hit, MatchType, Ranked, Reason, Successor

NO_TERMS = highlight.HighlightTerms({})


def hit_of(
    ranked: Ranked,
    memory: Memory,
    terms: highlight.HighlightTerms,
    *,
    relevance: float | None = None,
    facts: tuple[Fact, ...] = (),
    similar: tuple[str, ...] = (),
    superseded_by: Successor | None = None,
    now: datetime | None = None,
    beliefs: tuple[Belief, ...] | None = None,
    cosine: float | None = None,
    relation: Fact | None = None,
) -> Hit:
    """`now` is the time at which the facts are believed. `cosine` is one that was computed though the semantic channel
    did not find the memory. `relation` is the one that was found, and not the text."""
    lexical, semantic = ranked.lexical, ranked.semantic
    cosine = semantic.cosine if semantic else cosine
    return Hit(
        memory=memory,
        score=ranked.score,
        match_type="relation" if relation else _match_type(ranked),
        bm25=lexical.score if lexical else None,
        bm25_rank=lexical.rank if lexical else None,
        cosine=cosine,
        similarity=None if cosine is None else (cosine + 1) / 2,
        cosine_rank=semantic.rank if semantic else None,
        snippet=highlight.snippet(relation.statement, terms, None)
        if relation
        else highlight.snippet(memory.text, terms, semantic.span if semantic else None),
        reasons=ranked.reasons,
        relevance=relevance,
        facts=facts,
        similar=similar,
        superseded_by=superseded_by,
        effective_confidence=confidence.mean_confidence(facts, now) if facts and now else None,
        beliefs=beliefs,
        relation=relation,
    )


def beliefs_of(facts: Sequence[Fact], plan: SearchPlan) -> tuple[Belief, ...] | None:
    """The facts that have not faded too far, if facts are asked for."""
    if not plan.request.include_facts:
        return None
    beliefs = (Belief(each, confidence.effective_confidence(each, plan.now)) for each in facts)
    return tuple(each for each in beliefs if each.effective >= plan.recipe.min_confidence)


def shown_text(hit: Hit) -> str:
    """What a hit costs a reader: its snippet, and its facts if they are shown."""
    return "\n".join([hit.snippet.text, *(each.fact.statement for each in hit.beliefs or ())])


def plain_hit(memory: Memory) -> Hit:
    """A memory as a hit that no query found."""
    reason = Reason("filter", "add", 0.0, {"rank": 0.0})
    return hit_of(Ranked(memory.id, 0.0, (reason,), None, None), memory, NO_TERMS, relevance=0.0)


def _match_type(ranked: Ranked) -> MatchType:
    match ranked.lexical, ranked.semantic:
        case None, None:
            match ranked.reasons[0].signal:
                case "relation":
                    return "relation"
                case "echo":
                    return "echo"
                case "successor":
                    return "successor"
                case "exact" | "hop":
                    return "bm25"
            return "filter"
        case _, None:
            return "bm25"
        case None, _:
            return "semantic"
    return "hybrid"
