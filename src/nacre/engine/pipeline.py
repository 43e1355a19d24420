"""How memories are found: by a question, by a memory like them, and how all matches are spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from nacre import validation
from nacre.analysis import highlight
from nacre.engine.candidates import CandidateFinder, pool
from nacre.engine.query_resolver import QueryResolver, aimed, not_allowed
from nacre.engine.rerank_stage import RerankStage
from nacre.errors import NotFound
from nacre.facts import confidence
from nacre.interfaces import Store
from nacre.query import entities, intent
from nacre.query.ast import Condition, ParsedQuery, either, matches_everything, scope_condition
from nacre.query.lexer import shown
from nacre.ranking import boosts, fusion, neighbours, rerank, token_budget
from nacre.ranking.bm25 import weights
from nacre.ranking.dedupe import collapse
from nacre.ranking.relevance import evidence, ideal, leads, others, relevance
from nacre.ranking.relevance import read as with_reading
from nacre.ranking.scoring import best_first
from nacre.types.intents import Intent
from nacre.types.memory import Memory
from nacre.types.recipe import Recipe
from nacre.types.search import (
    DidYouMean,
    Filter,
    Hit,
    Match,
    MatchType,
    Mode,
    Ranked,
    RelatedRequest,
    RelationHit,
    SearchRequest,
    SearchResult,
    Signals,
)
from nacre.types.stats import FacetCounts, Facets, Frequencies
from nacre.types.views import Neighbours
from nacre.validation import Limits

_UNKNOWN = Frequencies(0, {})
_RELATIONS_MAX = 10  # shown beside the hits
_MOMENT = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A question's candidates in order, and what was left out of them on the way."""

    question: ParsedQuery
    lexical: Sequence[Match] | None = None  # None: that channel was not asked
    semantic: Sequence[Match] | None = None
    ranked: Sequence[Ranked] = ()
    signals: Mapping[str, Signals] = field(default_factory=dict)
    doubted: Mapping[str, float] = field(default_factory=dict)  # left out: believed too little
    relations: tuple[RelationHit, ...] = ()
    beside: Mapping[str, Neighbours] = field(default_factory=dict)  # what hears the best of them
    frequencies: Frequencies = _UNKNOWN  # of the question's words
    read: Mapping[str, float] = field(default_factory=dict)  # together with the question: how far above the least


@dataclass(frozen=True, slots=True)
class Trail:
    """How a search came to its result."""

    request: SearchRequest  # as it was carried out
    ranking: Ranking
    notes: Sequence[str]
    intent: Intent | None = None
    meant: DidYouMean | None = None
    delivered: frozenset[str] = frozenset()  # left out: the session that asks knows it
    collapsed: Mapping[str, str] = field(default_factory=dict)  # near-duplicates, and what they are shown under
    relevance: Mapping[str, float] = field(default_factory=dict)
    kept: Sequence[Ranked] = ()  # of the ranking, what is neither collapsed nor irrelevant
    repeatable: bool = False  # asked again, it would be the same as long as nothing is written


class Recall:
    """Finds memories in a store. Holds nothing itself."""

    def __init__(
        self,
        store: Store,
        channels: CandidateFinder,
        asking: QueryResolver,
        reranking: RerankStage,
        *,
        space: str,
        limits: Limits,
        clock: Callable[[], datetime],
        zone: tzinfo | None,
    ) -> None:
        self._store = store
        self._channels = channels
        self._asking = asking
        self._reranking = reranking
        self._space = space
        self._limits = limits
        self._clock = clock
        self._zone = zone

    # ---- the three ways of finding

    def trail(
        self,
        request: SearchRequest,
        named: Sequence[str],
        also: Condition | None = None,
        delivered: frozenset[str] = frozenset(),
    ) -> Trail:
        """Carry out a checked request. `named` are the spaces its caller named; `also` must hold besides; what was
        `told` is left out."""
        question, where = self._aimed(request, named)
        notes = list(question.notes)
        request = replace(request, where=where, recipe=_for_mode(request.recipe, request.mode))
        if not where.spaces:
            return Trail(request, Ranking(question), (*notes, not_allowed(question)))
        if request.recipe.alpha == 0 and question.meaning.strip() and not (question.terms or question.listing):
            notes.append("the query has no words to search for; emoji and symbols are found by meaning only")
        after = intent.detect(question.meaning) if request.recipe.intent_weight else None
        ranking = self._ranking(request, self._asking.in_store(question, where, also), after, notes)
        meant = self._asking.did_you_mean(question, where, ranking.frequencies) if request.recipe.alpha < 1 else None
        if not ranking.ranked and not ranking.doubted:
            ranking = self._otherwise(request, ranking, after, meant, also, notes)
        # A time in the question passes, and an embedder that failed may work again: both are said in notes or periods.
        repeatable = not question.periods and notes == list(question.notes)
        return self._sifted(Trail(request, ranking, notes, after, meant, delivered, repeatable=repeatable))

    def _aimed(self, request: SearchRequest, named: Sequence[str]) -> tuple[ParsedQuery, Filter]:
        """What is asked, and of which memories."""
        question = self._asking.understand(request.query, request.as_of or self._clock())
        where = aimed(question, named, request.where)
        if request.as_of is not None and request.as_of < _LAST:
            until = request.as_of + _MOMENT
            where = replace(where, created_until=min(until, where.created_until or until))
        return question, where

    def admitted(
        self, request: SearchRequest, named: Sequence[str], also: Condition | None, memory_ids: Sequence[str]
    ) -> set[str]:
        """Those of these memories that a search may find, by its filters and conditions."""
        question, where = self._aimed(request, named)
        if not where.spaces:
            return set()
        must = self._asking.in_store(question, where, also).must
        return self._store.matching(memory_ids, scope_condition(where, must))

    def result(self, trail: Trail) -> SearchResult:
        """What is shown of a search."""
        request, ranking = trail.request, trail.ranking
        notes = list(trail.notes)
        hits = self._hits(trail.kept[: request.limit], ranking.question, ranking.frequencies, trail)
        many = token_budget.fitting([hit.snippet.text for hit in hits], request.token_budget)
        if many < len(hits):
            notes.append(f"{len(hits) - many} more do not fit into {request.token_budget} tokens")
        return SearchResult(
            tuple(hits[:many]),
            tuple(dict.fromkeys(notes)),
            trail.meant,
            ranking.relations[:_RELATIONS_MAX],
            intent=trail.intent,
        )

    def related(self, asked: RelatedRequest) -> SearchResult:
        known = self._store.get([asked.memory_id]).get(asked.memory_id)
        if known is None or known.deleted is not None:
            raise NotFound((asked.memory_id,))
        request = validation.related(asked, known.space, self._limits)
        notes: list[str] = []
        where, recipe = request.where, request.recipe
        many = pool(request) + 1  # itself is among them
        question = self._asking.telling(known, where)
        frequencies = self._asking.frequencies(question, where)
        lexical = self._store.lexical(question, frequencies, where, recipe, many) if recipe.alpha < 1 else []
        semantic = self._channels.near(known, where, recipe, many, notes) if recipe.alpha > 0 else []
        ranked = fusion.fuse(
            [match for match in lexical if match.id != known.id],
            [match for match in semantic if match.id != known.id],
            recipe,
        )
        memories = self._store.get([each.id for each in ranked])
        ranked = [each for each in ranked if each.id in memories]
        if known.session is not None:
            members = {each for each, memory in memories.items() if memory.session == known.session}
            ranked = boosts.same_session(ranked, members, recipe.session_weight)
        ranked = best_first(ranked)
        return SearchResult(tuple(self._hits(ranked[: request.limit], question, frequencies)), tuple(notes))

    def facets(self, query: str, where: Filter) -> Facets:
        request = validation.search(SearchRequest(query=query, where=where), self._space, self._limits)
        question = self._asking.understand(request.query, self._clock())
        within = aimed(question, validation.named_spaces(where, self._limits), request.where)
        notes = question.notes if within.spaces else (*question.notes, not_allowed(question))
        tally = FacetCounts(total=0, kinds={}, namespaces={}, tags={}, sources={}, created={})
        everything = not request.query.strip()
        notes = () if everything else notes
        if within.spaces and (question.terms or question.listing or everything):
            counted = replace(question, listing=question.listing or everything)
            tally = self._store.facet_counts(self._asking.in_store(counted, within, None), within)
        months: dict[str, int] = {}
        for moment, memories in sorted(tally.created.items()):
            month = _month(moment, self._zone)
            months[month] = months.get(month, 0) + memories
        return Facets(
            total=tally.total,
            kinds=_most_frequent(tally.kinds),
            namespaces=_most_frequent(tally.namespaces),
            tags=_most_frequent(tally.tags),
            sources=_most_frequent(tally.sources),
            months=months,
            notes=notes,
        )

    # ---- ranking

    def _ranking(
        self, request: SearchRequest, question: ParsedQuery, after: Intent | None, notes: list[str]
    ) -> Ranking:
        recipe = request.recipe
        now = request.as_of or self._clock()
        self._reranking.expect(request)
        frequencies = self._asking.frequencies(question, request.where)
        lexical, semantic = self._channels.candidates(request, question, frequencies, notes)
        known = self._channels.vocabulary_coverage(request, question) if semantic else 1.0
        most = ideal(question.terms, frequencies.memories, frequencies.having, recipe)
        listed = self._channels.listed(request, question)
        ranked = fusion.fuse(lexical or (), semantic or (), recipe, listed, known, most)
        relations = self._relations(request, question, now)
        if request.merge_relations:
            ranked = fusion.merged(ranked, [(each.fact.memory_id, each.score) for each in relations], recipe, most)
        ranked, near = self._echoed(request, question, ranked)
        signals = self._store.signals([each.id for each in ranked])
        if len(signals) < len(ranked):  # forgotten since the channels looked
            ranked = [each for each in ranked if each.id in signals]
        believed = {each: confidence.of_memory(known.facts, now) for each, known in signals.items() if known.facts}
        doubted = {each: effective for each, effective in believed.items() if effective < recipe.min_confidence}
        if doubted:
            ranked = [each for each in ranked if each.id not in doubted]
        before = ranked
        ranked = self._reranking.reranked(request, question, before, frequencies, notes)
        read = {} if ranked is before else rerank.read(ranked)
        moments = {each: known.moment for each, known in signals.items()}
        ranked = boosts.temporal(ranked, moments, question.periods, recipe.temporal_weight)
        ranked = boosts.recency(ranked, moments, now, recipe.recency_weight)
        ranked = boosts.confidence(ranked, believed, recipe.confidence_weight)
        ranked = boosts.about(ranked, self._asked_for(request, ranked, notes), recipe.entity_weight)
        if after is not None:
            namespaces = {each: known.namespace for each, known in signals.items()}
            weights = recipe.intents.get(after.name, {})
            ranked = boosts.intent(ranked, namespaces, after, weights, recipe.intent_weight)
        if request.as_of is None:  # what was learned since was not known then
            used = {each: known.usage for each, known in signals.items() if known.usage is not None}
            ranked = boosts.usage(ranked, used, now, recipe.usage_weight)
        return Ranking(
            question, lexical, semantic, best_first(ranked), signals, doubted, relations, near, frequencies, read
        )

    def _echoed(
        self, request: SearchRequest, question: ParsedQuery, ranked: list[Ranked]
    ) -> tuple[list[Ranked], Mapping[str, Neighbours]]:
        """In order, with what the neighbours of the best hear of them, where both words and meaning were asked for."""
        recipe = request.recipe
        if recipe.alpha in (0, 1) or not (recipe.echo_next or recipe.echo_far or recipe.echo_back):
            return ranked, {}
        best = [each.id for each in ranked[: neighbours.ECHOING] if each.lexical or each.semantic]
        beside = self._store.neighbours(best, neighbours.REACH_BACK, neighbours.REACH) if best else {}
        if not beside:
            return ranked, {}
        new = neighbours.hearing(beside) - {each.id for each in ranked}
        allowed = self._allowed(new, request.where, question)
        return best_first(neighbours.echoed(ranked, beside, allowed, recipe)), beside

    def _relations(self, request: SearchRequest, question: ParsedQuery, now: datetime) -> tuple[RelationHit, ...]:
        """Relations that match, of memories that the search may see."""
        where = request.where
        found = self._store.relations(question.terms, where.spaces, now, pool(request)) if question.terms else []
        allowed = self._allowed({fact.memory_id for fact, _ in found}, where, question)
        found = [each for each in found if each[0].memory_id in allowed]
        return tuple(RelationHit(fact, score, rank) for rank, (fact, score) in enumerate(found, 1))

    def _allowed(self, memory_ids: Set[str], where: Filter, question: ParsedQuery) -> Set[str]:
        """Those of these live memories of its spaces that a search may see."""
        if not memory_ids or matches_everything(where, question.must):
            return memory_ids
        return self._store.matching(list(memory_ids), scope_condition(where, question.must))

    def _asked_for(self, request: SearchRequest, ranked: Sequence[Ranked], notes: list[str]) -> set[str]:
        """Those that are about the entities to be boosted."""
        known = {name: self._asking.other_names(name, request.where.spaces) for name in request.boost_entities}
        unknown = [name for name, names in known.items() if not names]
        if unknown:
            notes.append(f"no entity is called {', '.join(map(shown, unknown))}; see `nacre entity list`")
        conditions = tuple(entities.about(name, names) for name, names in known.items() if names)
        return self._store.matching([each.id for each in ranked], either(conditions)) if conditions else set()

    def _otherwise(
        self,
        request: SearchRequest,
        nothing: Ranking,
        after: Intent | None,
        meant: DidYouMean | None,
        also: Condition | None,
        notes: list[str],
    ) -> Ranking:
        """Nothing was found as typed: quoted words one by one, then the likeliest spelling, then both."""
        apart = "no memory has the quoted words side by side; they were searched one by one"
        tries = [(request.query, True, [apart])]
        if meant is not None:
            instead = f"nothing was found as typed; these are the results for: {shown(meant.query)}"
            tries += [(meant.query, False, [instead]), (meant.query, True, [instead, apart])]
        for text, relaxed, said in tries:
            if relaxed and not nothing.question.quoted:
                continue
            other = self._asking.understand(text, request.as_of or self._clock(), relaxed=relaxed)
            ranking = self._ranking(request, self._asking.in_store(other, request.where, also), after, notes)
            if ranking.ranked:
                notes += said
                return ranking
        return nothing

    def _sifted(self, trail: Trail) -> Trail:
        """Without near-duplicates of better hits, and without what is irrelevant, if asked for."""
        request, ranking = trail.request, trail.ranking
        kept: Sequence[Ranked] = ranking.ranked
        notes = list(trail.notes)
        collapsed: dict[str, str] = {}
        if request.collapse:
            similar = {each: known.similar for each, known in ranking.signals.items() if known.similar}
            kept, collapsed = collapse(kept, similar)
        if trail.delivered:
            kept, notes = _not_delivered(kept, trail)
        asked = kept if request.min_score else kept[: request.limit]
        relevance = self.relevance(replace(trail, collapsed=collapsed), asked)
        if request.min_score:
            best = max(relevance.values(), default=0.0)
            kept = [each for each in kept if relevance[each.id] >= request.min_score]
            if asked and not kept:
                notes.append(f"nothing is relevant: the best is {best:.2f}, below {request.min_score:.2f}")
        return replace(trail, notes=notes, collapsed=collapsed, relevance=relevance, kept=kept)

    def relevance(self, trail: Trail, ranked: Sequence[Ranked]) -> dict[str, float]:
        """How likely each of these answers the question. One does not stand out less for a near-duplicate of it."""
        ranking, frequencies = trail.ranking, trail.ranking.frequencies
        hidden = (ranking.doubted.keys() | trail.collapsed.keys()) - {each.id for each in ranked}
        lexical, semantic = (
            [match for match in found if match.id not in hidden] if found and hidden else found
            for found in (ranking.lexical, ranking.semantic)
        )
        among = others(
            ranking.question.terms,
            frequencies.memories,
            frequencies.having,
            lexical,
            semantic,
            trail.request.recipe,
            max(1, pool(trail.request) - len(ranking.semantic or ()) + len(semantic or ())),
        )
        ids = dict.fromkeys([*(each.id for each in ranked), *ranking.beside])  # and what they may hear
        by_words, by_meaning = fusion.places(lexical or (), ids), fusion.places(semantic or (), ids)
        alone = {each: relevance(evidence(by_words.get(each), by_meaning.get(each), among)) for each in ids}
        recipe = trail.request.recipe
        heard = _heard(alone, ranking.beside, recipe)
        likely = {each.id: max(alone[each.id], heard.get(each.id, 0.0)) for each in ranked}
        ahead = leads({each: above for each, above in ranking.read.items() if each not in hidden})
        return {memory_id: with_reading(each, ahead.get(memory_id, 0.0)) for memory_id, each in likely.items()}

    # ---- answers

    def _hits(
        self, ranked: Sequence[Ranked], question: ParsedQuery, frequencies: Frequencies, trail: Trail | None = None
    ) -> list[Hit]:
        """With what a search knows of them besides their ranks, where there was one."""
        memories = self._store.get([each.id for each in ranked])
        wanted = highlight.Wanted(weights(question.terms, frequencies))
        return [_hit(each, memories[each.id], wanted, trail) for each in ranked if each.id in memories]


def _heard(relevance: Mapping[str, float], beside: Mapping[str, Neighbours], recipe: Recipe) -> dict[str, float]:
    """What stands next to a likely answer is a likely answer, by its share of the echo."""
    heard: dict[str, float] = {}
    for each, near in beside.items():
        for neighbour, share in neighbours.shares(near, recipe):
            heard[neighbour] = max(heard.get(neighbour, 0.0), share * relevance.get(each, 0.0))
    return heard


def _not_delivered(kept: Sequence[Ranked], trail: Trail) -> tuple[list[Ranked], list[str]]:
    """Without what was told before, and a note if that would have been shown."""
    new = [each for each in kept if each.id not in trail.delivered]
    shown = new[: trail.request.limit]
    before = kept[: kept.index(shown[-1])] if shown else kept
    repeated = sum(each.id in trail.delivered for each in before)
    said = [f"{repeated} that this session was told before are left out"] if repeated else []
    return new, [*trail.notes, *said]


def _for_mode(recipe: Recipe, mode: Mode) -> Recipe:
    """A mode is a weight: keyword is alpha 0, semantic is alpha 1."""
    match mode:
        case "keyword":
            return replace(recipe, alpha=0)
        case "semantic":
            return replace(recipe, alpha=1)
        case "hybrid":
            return recipe


def _month(moment: datetime, zone: tzinfo | None) -> str:
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # the first and the last day there are
        local = moment
    return f"{local.year:04}-{local.month:02}"


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _hit(ranked: Ranked, memory: Memory, wanted: highlight.Wanted, trail: Trail | None) -> Hit:
    lexical, semantic = ranked.lexical, ranked.semantic
    collapsed = trail.collapsed.items() if trail is not None else ()
    return Hit(
        memory=memory,
        score=ranked.score,
        match_type=_match_type(ranked),
        bm25=lexical.score if lexical else None,
        bm25_rank=lexical.rank if lexical else None,
        cosine=semantic.score if semantic else None,
        similarity=(semantic.score + 1) / 2 if semantic else None,
        cosine_rank=semantic.rank if semantic else None,
        snippet=highlight.snippet(memory.text, wanted, semantic.span if semantic else None),
        reasons=ranked.reasons,
        relevance=trail.relevance[memory.id] if trail is not None else None,
        facts=trail.ranking.signals[memory.id].facts if trail is not None else (),
        similar=tuple(sorted(each for each, better in collapsed if better == memory.id)),
    )


def _match_type(ranked: Ranked) -> MatchType:
    match ranked.lexical, ranked.semantic:
        case None, None:
            match ranked.reasons[0].signal:
                case "relation":
                    return "relation"
                case "echo":
                    return "echo"
            return "filter"
        case _, None:
            return "bm25"
        case None, _:
            return "semantic"
    return "hybrid"
