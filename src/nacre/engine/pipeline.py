"""A search, stage by stage. Each stage takes the plan and the ranking so far, and returns the next ranking.

The stages run in the order of STAGES. ARCHITECTURE.md shows the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from time import perf_counter

from nacre.analysis import highlight, tokenizer
from nacre.analysis.language import is_english
from nacre.analysis.update_cues import find_cue
from nacre.analysis.wording import counted
from nacre.engine.candidates import CandidateFinder
from nacre.engine.hits import NO_TERMS, beliefs_of, hit_of, shown_text
from nacre.engine.late_interaction_stage import LateInteractionStage
from nacre.engine.plan import Planner, SearchPlan
from nacre.engine.query_resolver import QueryResolver
from nacre.engine.rerank_stage import RerankStage, rerank_texts
from nacre.engine.search_trace import FoundRelation, Ranking, SearchTrace
from nacre.engine.successors import SuccessorFinder
from nacre.facts import confidence
from nacre.interfaces import Store, TimePage
from nacre.query import entities
from nacre.query.ast import During, Only, ParsedQuery, Term, either, matches_everything, scope_condition
from nacre.query.lexer import preview
from nacre.ranking import (
    boosts,
    dedupe,
    exact,
    fusion,
    hops,
    neighbours,
    relevance,
    rerank,
    superseded,
    temporal,
    token_budget,
)
from nacre.ranking.bm25 import weights
from nacre.ranking.scoring import best_first, has_ties, important_first
from nacre.types.memory import STANDING_KINDS, Memory
from nacre.types.search import (
    DidYouMean,
    Filter,
    Found,
    Hit,
    Match,
    Ranked,
    RelationHit,
)

# What finds and orders candidates, and what decides which of them are shown. Where the first part finds nothing, it
# runs again with the query reworded.
FINDING = (
    "candidates", "fuse", "neighbours", "signals", "late_interaction", "rerank", "exact", "hop", "boosts", "time",
    "supersede",
)  # fmt: skip
SHOWING = ("dedupe", "relevance", "cut", "fetch", "highlight", "budget")
STAGES = FINDING + SHOWING

_IN_LANGUAGE = 10  # hits that must all be in the language of a query, if it is not English, for English models to read
_FIRST = 3  # hits whose language shows that of the store


class Pipeline:
    """The stages of a search."""

    def __init__(
        self,
        store: Store,
        planner: Planner,
        resolver: QueryResolver,
        finder: CandidateFinder,
        late_interaction: LateInteractionStage,
        reranker: RerankStage,
        successors: SuccessorFinder,
        observe: Callable[[str, float], None] | None = None,
    ) -> None:
        self._store = store
        self._planner = planner
        self._resolver = resolver
        self._finder = finder
        self._tokens = late_interaction
        self._reranker = reranker
        self._successors = successors
        self._observe = observe

    def run(self, plan: SearchPlan) -> SearchTrace:
        """Run every stage."""
        if not plan.where.spaces:
            return SearchTrace(plan, Ranking(notes=plan.notes))
        found, ranking = self._found(self._from_event(self._in_known_time(plan)))
        # A search that was short of time reads on when it is asked again, because scores are cached.
        repeatable = not plan.query.periods and ranking.notes == plan.query.notes and not ranking.unread
        return SearchTrace(found, self._through(SHOWING, found, ranking._replace(repeatable=repeatable)))

    def shown(self, trace: SearchTrace, ranked: Sequence[Ranked]) -> tuple[Hit, ...]:
        """Candidates of a search as hits, whether it showed them or not."""
        ranking = trace.ranking._replace(kept=ranked, relevance=self.relevance_of(*trace, ranked))
        plan = replace(trace.plan, request=replace(trace.plan.request, limit=max(1, len(ranked)), token_budget=None))
        return self._through(("fetch", "highlight"), plan, ranking).hits

    def _through(self, stages: Sequence[str], plan: SearchPlan, ranking: Ranking) -> Ranking:
        for name in stages:
            began = perf_counter()
            ranking = getattr(self, f"_{name}")(plan, ranking)
            if self._observe is not None:
                self._observe(name, perf_counter() - began)
        return ranking

    def _found(self, plan: SearchPlan) -> SearchTrace:
        """The query as typed. If that finds nothing: quoted words one by one, the likeliest spelling, or both."""
        ranking = self._through(FINDING, plan, Ranking(notes=plan.notes))
        if plan.recipe.alpha < 1:
            suggestion = self._resolver.did_you_mean(plan.query, plan.where.spaces, ranking.frequencies)
            ranking = ranking._replace(did_you_mean=suggestion) if suggestion else ranking
        if ranking.found:
            return SearchTrace(plan, ranking)
        for reworded, notes in self._reworded(plan, ranking.did_you_mean):
            other = self._through(FINDING, reworded, Ranking(notes=ranking.notes))
            ranking = ranking._replace(notes=other.notes)
            if other.ranked:
                notes = (*other.notes, *notes)
                return SearchTrace(reworded, other._replace(did_you_mean=ranking.did_you_mean, notes=notes))
        if plan.query.every:
            loose = self._planner.reworded(
                replace(plan, request=replace(plan.request, match="any")), plan.request.query
            ).query
            ranking = ranking._replace(notes=(*ranking.notes, self._resolver.lacking(plan.query, loose, plan.where)))
        return SearchTrace(plan, ranking)

    def _in_known_time(self, plan: SearchPlan) -> SearchPlan:
        """A period near which nothing lies is only words: documents tell of years in which nobody wrote them."""
        if not plan.periods or plan.query.listing:
            return plan
        wide = tuple(temporal.widened(each) for each in plan.periods)
        # Times of creation are indexed, so the first look costs little; the second is for what only happened then.
        if any(self._store.by_time(temporal.narrowed(plan.where, each), TimePage(1)) for each in wide):
            return plan
        if self._store.by_time(plan.where, TimePage(1), must=either(tuple(map(During, wide)))):
            return plan
        return replace(self._planner.reworded(plan, plan.request.query, timeless=True), periods=(), vaguely=False)

    def _from_event(self, plan: SearchPlan) -> SearchPlan:
        """The plan with the period before, after or since the event that the query names, if a memory tells of it."""
        anchor = plan.query.time.anchor if plan.query.time and plan.recipe.temporal_weight else None
        if anchor is None:
            return plan
        event = self._planner.reworded(plan, anchor.text, timeless=True)
        frequencies = self._resolver.frequencies(event.query, plan.where.spaces)
        lexical, semantic = self._finder.find(event, frequencies)
        best = fusion.fuse(lexical or (), semantic.matches or (), plan.recipe)[:1]
        signals = self._store.signals([each.id for each in best])
        if not signals:
            return plan
        (known,) = signals.values()
        period = temporal.relative_to(known.moment, anchor.relation)
        return replace(plan, periods=(*plan.periods, period), vaguely=True)

    def _reworded(self, plan: SearchPlan, meant: DidYouMean | None) -> Iterator[tuple[SearchPlan, tuple[str, ...]]]:
        """Other wordings of a query that found nothing, each with what to say of it."""
        apart = "no memory has the quoted words side by side; they were searched one by one"
        if plan.query.time is not None and plan.query.time.listing:
            note = "nothing is known from that time; these are the best matches of all times"
            yield self._planner.reworded(plan, plan.request.query, timeless=True), (note,)
        if plan.query.quoted:
            yield self._planner.reworded(plan, plan.request.query, split_phrases=True), (apart,)
        if meant is not None:
            instead = f"nothing was found as typed; these are the results for: {preview(meant.query)}"
            yield self._planner.reworded(plan, meant.query, split_phrases=False), (instead,)
            if plan.query.quoted:
                yield self._planner.reworded(plan, meant.query, split_phrases=True), (instead, apart)

    # ---- the stages that find and order

    def _candidates(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Ask every channel. Filters act inside the channels, before anything is ranked."""
        self._reranker.preload(plan)
        self._finder.preload(plan)
        self._tokens.preload(plan)
        frequencies = self._resolver.frequencies(plan.query, plan.where.spaces)
        lexical, semantic = self._finder.find(plan, frequencies)
        return ranking._replace(
            frequencies=frequencies,
            terms=highlight.HighlightTerms.of_query(plan.query, weights(plan.query.terms, frequencies)),
            lexical=lexical,
            semantic=semantic.matches,
            further=semantic.further,
            foreign=(semantic.further.ids if semantic.further else None) or frozenset(),
            unembedded=self._finder.unembedded(plan, lexical, semantic),
            listed=self._finder.listed(plan),
            relations=self._relations(plan),
            notes=(*ranking.notes, *semantic.notes),
        )

    def _fuse(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """One order out of several channels."""
        ranking = self._ties_by_importance(plan, ranking)
        recipe, frequencies = plan.recipe, ranking.frequencies
        ideal = relevance.ideal(plan.query.terms, frequencies.memories, frequencies.having, recipe)
        coverage = self._finder.vocabulary_coverage(plan) if ranking.semantic else 1.0
        cosines = self._cosines_to_boost(plan, ranking)
        if plan.further and plan.is_hybrid:
            recipe = replace(recipe, alpha=recipe.alpha * fusion.FURTHER_WEIGHT)
        ranked = fusion.fuse(
            ranking.lexical or (),
            () if plan.further else ranking.semantic or (),
            recipe,
            ranking.listed,
            coverage,
            ideal,
            cosines,
            ranking.unembedded,
            fusion.Further(ranking.semantic or (), coverage) if plan.further else ranking.further,
        )
        if plan.further:
            ranking = ranking._replace(foreign=self._not_in_language(plan, ranked))
        if not plan.request.merge_relations or not ranking.relations:
            return ranking._replace(ranked=ranked)
        matched = [
            fusion.MatchedRelation(
                each.fact.memory_id,
                each.score,
                relevance.words_once(tokenizer.tokenise(each.fact.statement), plan.query.terms, frequencies),
            )
            for each in ranking.relations
        ]
        ranked, winning = fusion.merged(ranked, matched, recipe, ideal)
        found = {each: FoundRelation(ranking.relations[at].fact, matched[at].words) for each, at in winning.items()}
        return ranking._replace(ranked=ranked, found_relations=found)

    def _not_in_language(self, plan: SearchPlan, ranked: Sequence[Ranked]) -> Set[str]:
        """Of the best, those that are not in the language of the query; all, if one of the first is not.

        English models read a question together with a text in its own language well enough, and would put a text that
        shares its words before one in another language that answers it.
        """
        best = [each.id for each in ranked[: plan.recipe.maxsim_pool]]
        if plan.language is None or not best:
            return frozenset(best)
        others = frozenset(best) - self._store.matching(best, Only(Filter(languages=(plan.language,))))
        return frozenset(best) if others.intersection(best[:_IN_LANGUAGE]) else others

    def _cosines_to_boost(self, plan: SearchPlan, ranking: Ranking) -> Mapping[str, float]:
        """For boost fusion, the cosines of what words found and meaning did not."""
        if plan.recipe.fusion != "boost" or not plan.is_hybrid or not (ranking.lexical and ranking.semantic):
            return {}
        near = {match.id for match in ranking.semantic}
        found = self._finder.cosines(plan, [match.id for match in ranking.lexical if match.id not in near])
        return {} if isinstance(found, str) else found

    def _ties_by_importance(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Of matches with equal scores in a channel, the more important has the better rank."""
        channels = [each for each in (ranking.lexical, ranking.semantic) if each]
        if not any(map(has_ties, channels)):
            return ranking
        ids = dict.fromkeys(match.id for matches in channels for match in matches)  # all will be asked for anyway
        ranking = self._with_signals(plan, ranking, list(ids))
        importance = {each: known.importance for each, known in ranking.signals.items()}
        if len(set(importance.values())) == 1 or len(importance) < len(ids):  # or one was forgotten just now
            return ranking
        lexical, semantic = (
            important_first(each, importance) if each and has_ties(each) else each
            for each in (ranking.lexical, ranking.semantic)
        )
        return ranking._replace(lexical=lexical, semantic=semantic)

    def _neighbours(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Echo: the best share their score with what stands next to them in their session."""
        if not plan.is_hybrid or not neighbours.echoes(plan.recipe):
            return ranking
        best = [each.id for each in ranking.ranked[: neighbours.ECHOING] if each.lexical or each.semantic]
        near = self._store.neighbours(best, neighbours.REACH_BACK, neighbours.REACH, turns=True) if best else {}
        ranking = ranking._replace(beside={each: () for each in best if each not in near})
        if not near:
            return ranking
        new = neighbours.all_of(near) - {each.id for each in ranking.ranked}
        matching = self._matching(new, plan.where, plan.query)
        ranked = best_first(neighbours.echoed(ranking.ranked, near, matching, plan.recipe))
        return ranking._replace(ranked=ranked, echoing=list(near), neighbours=near, hidden=new - matching)

    def _signals(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """What the store knows of each candidate besides its text. Memories with doubted facts are left out."""
        ranked = ranking.ranked
        ranking = self._with_signals(plan, ranking, [each.id for each in ranked])
        if ranking.doubted or len(ranking.signals) < len(ranked):  # or forgotten since the channels looked
            ranked = [each for each in ranked if ranking.may_show(each.id)]
        return ranking._replace(ranked=ranked)

    def _late_interaction(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Add how well the tokens of the best match those of the query, or those of their neighbours."""
        selection = self._tokens.select(plan, ranking.ranked, ranking.semantic)
        if ranking.foreign >= set(selection.ids):
            return ranking if plan.further else ranking._replace(notes=(*ranking.notes, *selection.notes))
        ranking = ranking._replace(notes=(*ranking.notes, *selection.notes))
        ranking = self._with_beside(plan, ranking, selection.ids)
        ranked, notes = self._tokens.compare(
            plan, ranking.ranked, selection, ranking.beside, ranking.stated, ranking.foreign
        )
        return ranking._replace(ranked=ranked, notes=(*ranking.notes, *notes))

    def _rerank(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Add what the cross-encoder says of the best, each read with its neighbours."""
        selection = self._reranker.select(plan, ranking.ranked)
        best, notes = [each for each in selection.best if each.id not in ranking.foreign], selection.notes
        if not best:
            return ranking._replace(notes=(*ranking.notes, *notes)) if notes else ranking
        ids = [each.id for each in best]
        ranking = self._with_beside(plan, ranking, ids)
        memories = self._memories([*ids, *(each for one in ids for each in ranking.beside[one])], ranking)
        texts = rerank_texts(best, memories, ranking.stated, ranking.neighbours, ranking.terms)
        done = self._reranker.rerank(plan, ranking.ranked, texts, selection)
        unread = [each.id for each in selection.best if each.id in ranking.foreign]
        return ranking._replace(
            ranked=rerank.beside(done.ranked, [each.id for each in selection.best], unread) if unread else done.ranked,
            rerank_leads=done.leads,
            answers={each: value * selection.coverage**3 for each, value in done.answers.items()},
            unread=done.unread,
            memories=memories,
            notes=(*ranking.notes, *done.notes),
        )

    def _exact(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Memories that have exactly what the query names come before those that have something alike."""
        if not plan.identifiers:
            return ranking
        best = [each.id for each in ranking.ranked[: exact.LOOKED_AT]]
        memories = self._memories(best, ranking)
        named = {each: exact.named_in(memories[each], plan.identifiers) for each in best if each in memories}
        missing = [each for each in plan.identifiers if not any(each in has for has in named.values())]
        new = [each for each in self._finder.naming(plan, missing) if each not in named] if missing else []
        if new:
            ranking = self._with_signals(plan, ranking._replace(memories=memories), new)
            memories = self._memories(new, ranking)
            named |= {
                each: exact.named_in(memories[each], plan.identifiers)
                for each in new
                if each in memories and ranking.may_show(each)
            }
        ranked = exact.first(ranking.ranked, named, plan.recipe.exact_weight * exact.emphasis(plan.query.meaning))
        return ranking._replace(ranked=ranked, named=named, memories=memories)

    def _hop(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """A second look with rare names that the first hits have and the query does not."""
        wanted = plan.recipe.hop_weight and plan.is_hybrid and len(plan.query.terms) >= hops.ASKED_MIN
        if not wanted or not is_english(plan.query.meaning):  # other languages capitalise more than names, or nothing
            return ranking
        first = ranking.ranked[: hops.FROM]
        memories = self._memories([each.id for each in first], ranking)
        asked = {term.text for term in plan.query.terms}
        named = {each.id: hops.names_in(memories[each.id].text, asked) for each in first if each.id in memories}
        tokens = list(dict.fromkeys(token for names in named.values() for name in names for token in name.tokens))
        if not tokens:
            return ranking
        frequencies = self._store.frequencies(tokens, plan.where.spaces)
        rare = {each: hops.rare(names, frequencies.having, frequencies.memories) for each, names in named.items()}
        terms = tuple(Term(token) for names in rare.values() for name in names for token in name.tokens)
        if not terms:
            return ranking
        query = ParsedQuery(tuple(dict.fromkeys(terms)), plan.query.must, "")
        matches = self._store.lexical(query, frequencies, plan.where, plan.recipe, hops.FOUND_MAX + hops.FROM)
        memories = self._memories([each.id for each in matches], ranking._replace(memories=memories))
        found = [
            (match.id, name.text, each.score)
            for each in first
            for name in rare.get(each.id, ())
            for match in matches
            if match.id != each.id and match.id in memories and name.stands_in(memories[match.id].text)
        ]
        ranking = self._with_signals(plan, ranking, list(dict.fromkeys(memory_id for memory_id, *_ in found)))
        found = [each for each in found if ranking.may_show(each[0])]
        ranked = hops.followed(ranking.ranked, found, plan.recipe.hop_weight)
        return ranking._replace(ranked=ranked, memories=memories)

    def _boosts(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Bounded factors on the score, one a signal. What stands for a request gets its share before they act."""
        recipe, signals, ranked = plan.recipe, ranking.signals, ranking.ranked
        moments = {each: known.moment for each, known in signals.items()}
        about, notes = self._about_boosted(plan, ranked)
        if plan.is_request:
            standing = {each for each, known in signals.items() if known.kind in STANDING_KINDS}
            ranked = boosts.standing(ranked, standing, recipe.standing_weight)
        ranked = boosts.recency(ranked, moments, plan.now, recipe.recency_weight)
        ranked = boosts.confidence(ranked, ranking.confidence, recipe.confidence_weight)
        ranked = boosts.about(ranked, about, recipe.entity_weight)
        namespaces = {each: known.namespace for each, known in signals.items()}
        ranked = boosts.namespace(ranked, namespaces, recipe.namespace_weights)
        if plan.intent is not None:
            by_namespace = recipe.tuning.intents.get(plan.intent.name, {})
            ranked = boosts.intent(ranked, namespaces, plan.intent, by_namespace, recipe.intent_weight)
        ranked = boosts.importance(
            ranked, {each: known.importance for each, known in signals.items()}, recipe.importance_weight
        )
        if plan.request.as_of is None:  # what was learned since was not known then
            used = {each: known.usage for each, known in signals.items() if known.usage is not None}
            ranked = boosts.usage(ranked, used, plan.now, recipe.usage_weight)
        return ranking._replace(ranked=best_first(ranked), notes=(*ranking.notes, *notes))

    def _time(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """What lies inside the time that the query names comes first; the first or the last is put first."""
        time, weight, ranked = plan.query.time, plan.recipe.temporal_weight, ranking.ranked
        if time is None or not weight or plan.query.listing:
            return ranking
        among: Set[str] = {each.id for each in ranked}
        if plan.periods:
            close = {
                each: temporal.closeness((known.created, known.moment), plan.periods)
                for each, known in ((each, ranking.signals[each]) for each in among)
            }
            share = weight * (temporal.VAGUE if plan.vaguely else 1.0)
            ranked = best_first(temporal.inside_first(ranked, close, share))
            among = among if plan.vaguely else {each for each in among if close[each] == 1}
        if time.order is not None:
            moments = {each: ranking.signals[each].moment for each in among}
            ranked = best_first(temporal.in_order(ranked, moments, newest_first=time.order == "last"))
        return ranking._replace(ranked=ranked)

    def _supersede(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """What was superseded steps back behind its successor, unless the query asks for the past. Then the order is
        final: of equals, the more important goes first."""
        if not plan.asks_past and ranking.ranked:
            ranking = self._stepped_back(plan, ranking)
        if not has_ties(ranking.ranked):
            return ranking
        # What was superseded stays behind, however important it was.
        importance = {
            each.id: -1.0 if each.id in ranking.successors else ranking.signals[each.id].importance
            for each in ranking.ranked
        }
        return ranking._replace(ranked=important_first(ranking.ranked, importance))

    def _stepped_back(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        ranking = self._fresher(plan, ranking)
        memories = ranking.memories

        def texts(ids: Collection[str]) -> Mapping[str, Memory]:
            nonlocal memories
            memories = self._memories(list(ids), ranking)
            return memories

        signals = {each.id: ranking.signals[each.id] for each in ranking.ranked}
        found = self._successors.find(signals, plan.now, plan.significant_words, texts)
        if not found:
            return ranking
        new = {to.id for to in found.values()} - ranking.signals.keys()
        ranking = self._with_signals(plan, ranking, list(self._matching(new, plan.where, plan.query)))
        shown = {each: to for each, to in found.items() if ranking.may_show(to.id)}
        ranked = superseded.stepped_back(ranking.ranked, shown)
        return ranking._replace(ranked=ranked, successors=found, memories=memories)

    def _fresher(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Of the best notes that are much alike, the newer one first. A search by words alone compares no vectors.

        A reason does not grow old: who asks why is told by the better match, whatever was written since.
        """
        explains = plan.intent is not None and plan.intent.name == "explanation"
        if not plan.recipe.fresh_weight or not plan.recipe.alpha or explains:
            return ranking
        signals, best = ranking.signals, ranking.ranked[: superseded.FRESH_AMONG]
        least = superseded.FRESH_SHARE * best[0].score
        notes = [
            each.id
            for each in best
            if each.score >= least and each.id not in ranking.neighbours and signals[each.id].kind != "episode"
        ]
        if len(notes) < 2:
            return ranking
        memories = self._memories(notes, ranking)
        wanted = plan.significant_words
        found = {
            each: wanted.intersection(tokenizer.query_tokens(memories[each].text))
            for each in notes
            if each in memories and len(memories[each].text) <= superseded.FRESH_CHARS
        }
        asked = {each: words for each, words in found.items() if words}  # the rest need not be about the same thing
        changing = {each for each in asked if find_cue(memories[each].text) is not None}
        vectors = {each: self._store.vectors(each) for each in asked}

        def likeness(one: str, other: str) -> float:
            a, b = vectors[one], vectors[other]
            return 0.0 if a is None or b is None else float((a @ b.T).max())

        moments = {each: signals[each].moment for each in notes}
        return ranking._replace(
            ranked=superseded.fresher(ranking.ranked, moments, asked, likeness, changing), memories=memories
        )

    # ---- the stages that show

    def _dedupe(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Leave out near-duplicates of better hits, and what the session was given before."""
        kept, duplicates = ranking.ranked, dict[str, str]()
        if plan.request.collapse:
            similar = {each: known.similar for each, known in ranking.signals.items() if known.similar}
            kept, duplicates = dedupe.collapse(kept, similar)
        notes = ranking.notes
        if plan.omitted:
            new = [each for each in kept if each.id not in plan.omitted]
            last = new[: plan.request.limit][-1:]
            before = kept[: kept.index(last[0])] if last else kept
            repeated = sum(each.id in plan.omitted for each in before)
            if repeated:
                notes = (*notes, f"{repeated} that this session was given before are left out")
            kept = new
        return ranking._replace(kept=kept, duplicates=duplicates, notes=notes)

    def _relevance(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """How likely each hit answers the query: for the first `limit` hits, or for all where some may be cut."""
        cut = plan.request.min_score or plan.request.min_similarity is not None
        ranked = ranking.kept if cut else ranking.kept[: plan.request.limit]
        ranking = ranking._replace(relevance=self.relevance_of(plan, ranking, ranked))
        return ranking._replace(answerable=self._answerable(plan, ranking))

    def relevance_of(self, plan: SearchPlan, ranking: Ranking, ranked: Sequence[Ranked]) -> dict[str, float]:
        """Calibrated from 0 to 1. What is left out does not count as competition: a near-duplicate of a hit, say."""
        hidden = (ranking.doubted.keys() | ranking.duplicates.keys()) - {each.id for each in ranked}
        lexical, semantic = (
            [match for match in found if match.id not in hidden] if found and hidden else found
            for found in (ranking.lexical, ranking.semantic)
        )
        frequencies = ranking.frequencies
        among = relevance.others(
            plan.query.terms,
            frequencies.memories,
            frequencies.having,
            lexical,
            semantic,
            plan.recipe,
            max(1, plan.pool - len(ranking.semantic or ()) + len(semantic or ())),
        )
        # Of two memories one of which supersedes the other, each has a say in the other's relevance.
        shown = {each.id for each in ranked}
        linked = {each: to for each, to in ranking.successors.items() if each in shown or to.id in shown}
        of_links = [each for older, to in linked.items() for each in (older, to.id) if ranking.may_show(each)]
        wanted = dict.fromkeys([*(each.id for each in ranked), *of_links])
        ids = dict.fromkeys([*wanted, *ranking.echoing])
        by_words, by_meaning = fusion.places(lexical or (), ids), fusion.places(semantic or (), ids)
        by_words |= self._words_of_relations(ranking, by_words, lexical or ())
        known = {
            each: relevance.evidence(by_words.get(each), by_meaning.get(each), among, each in ranking.unembedded)
            for each in ids
        }
        alone = {each: relevance.relevance(evidence) for each, evidence in known.items()}
        echoes = neighbours.relevance_shares(alone, ranking.echoing, ranking.neighbours, plan.recipe)
        likely = {each: max(alone[each], echoes.get(each, 0.0)) for each in wanted}
        ahead = relevance.leads({each: lead for each, lead in ranking.rerank_leads.items() if each not in hidden})
        likely = {each: relevance.with_lead(value, ahead.get(each, 0.0)) for each, value in likely.items()}
        if plan.is_hybrid and not is_english(plan.query.meaning):
            likely = {each: relevance.unread(value) for each, value in likely.items()}
        else:
            likely |= self._by_reading(plan, ranking, wanted)
        likely = superseded.relevance_behind(likely, linked)
        return {each.id: likely[each.id] for each in ranked}

    @staticmethod
    def _words_of_relations(
        ranking: Ranking, by_words: Mapping[str, Found], lexical: Sequence[Match]
    ) -> dict[str, Found]:
        """What was found by its relation has the words of that, where they are more than those of its text."""
        best = lexical[0].score if lexical else 0.0
        return {
            each: Found(found.words, 1 if found.words >= best else 2)
            for each, found in ranking.found_relations.items()
            if each not in by_words or found.words > by_words[each].score
        }

    @staticmethod
    def _by_reading(plan: SearchPlan, ranking: Ranking, wanted: Collection[str]) -> dict[str, float]:
        """The relevance of those that the reranker has read."""
        best = max((each.score for each in ranking.ranked), default=0.0) or 1.0
        named = frozenset(each for each in plan.identifiers if each.exactness != "name")
        in_time = bool(plan.periods or (plan.query.time is not None and plan.query.time.order))
        found: dict[str, float] = {}
        for each in ranking.ranked:
            if each.id in wanted and each.id in ranking.answers and is_english(ranking.memories[each.id].text):
                has = named <= ranking.named.get(each.id, frozenset())
                reading = relevance.Reading(
                    answers=ranking.answers[each.id],
                    share=min(1.0, each.score / best),
                    lacks=not has,
                    has_named=bool(named) and has,
                    in_time=in_time,
                    is_request=plan.is_request,
                    stands=plan.is_request and ranking.signals[each.id].kind in STANDING_KINDS,
                )
                found[each.id] = relevance.by_reading(reading)
        return found

    @staticmethod
    def _answerable(plan: SearchPlan, ranking: Ranking) -> bool:
        """Whether any hit is likely enough an answer. Where the models do not know the language, nobody can tell."""
        if not ranking.kept or plan.query.listing:
            return bool(ranking.kept)
        own = [each.id for each in ranking.kept if each.id not in ranking.foreign][:_FIRST]
        first = (ranking.memories[each].text for each in own if each in ranking.memories)
        if not is_english(plan.query.meaning) or not any(map(is_english, first)):
            return True
        if ranking.kept[0].id not in ranking.answers:
            return max(ranking.relevance.values(), default=0.0) >= relevance.UNREAD_FROM
        # Of what was not read, much less is known: it cannot contradict what was.
        read = (value for each, value in ranking.relevance.items() if each in ranking.answers)
        return max(read, default=0.0) >= relevance.ANSWERS_FROM

    def _cut(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Leave out what is not similar or relevant enough, and everything where the filters exclude those of the
        lens."""
        ranking = self._similar_enough(plan, ranking)
        kept, notes, least = ranking.kept, ranking.notes, plan.request.min_score
        if least:
            kept = [each for each in kept if ranking.relevance[each.id] >= least]
            if ranking.kept and not kept:
                best = max(ranking.relevance.values(), default=0.0)
                notes = (*notes, f"nothing is relevant: the best is {best:.2f}, below {least:.2f}")
        if not plan.satisfiable:
            kept, notes = (), (*notes, f"the filters exclude those of the lens {plan.lens}: nothing can match")
        return ranking._replace(kept=kept, notes=notes)

    def _similar_enough(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Leave out what is too far in meaning, whichever channel found it."""
        least = plan.request.min_similarity
        if least is None or not ranking.kept:
            return ranking
        known = {each.id: each.semantic.cosine for each in ranking.kept if each.semantic}
        found = self._finder.cosines(plan, [each.id for each in ranking.kept if each.id not in known])
        if isinstance(found, str):
            return ranking._replace(notes=(*ranking.notes, f"min_similarity has no effect: {found}"))
        cosines: dict[str, float] = known | found
        dissimilar = {
            each.id: cosines.get(each.id) for each in ranking.kept if each.id not in cosines or cosines[each.id] < least
        }
        kept = [each for each in ranking.kept if each.id not in dissimilar]
        notes = ranking.notes
        unknown = sum(each is None for each in dissimilar.values())
        if unknown:
            notes = (*notes, f"{unknown} without vectors {'is' if unknown == 1 else 'are'} left out by min_similarity")
        if not kept and len(dissimilar) > unknown:
            best = max(each for each in dissimilar.values() if each is not None)
            notes = (*notes, f"nothing is similar enough: the best cosine is {best:.3f}, below {least:g}")
        return ranking._replace(kept=kept, cosines=found, dissimilar=dissimilar, notes=notes)

    def _fetch(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """The texts that are shown, but for those that an earlier stage has read."""
        ids = [each.id for each in ranking.kept[: plan.request.limit]]
        return ranking._replace(memories=self._memories(ids, ranking))

    def _highlight(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """Hits with the part of their text that answers."""
        under: dict[str, list[str]] = {}
        for each, better in ranking.duplicates.items():
            under.setdefault(better, []).append(each)
        relations = ranking.found_relations
        # A relation may have words of the query that no text has.
        every = dict.fromkeys(plan.query.terms, 1.0)
        in_relations = highlight.HighlightTerms.of_query(plan.query, every) if relations else NO_TERMS
        hits = tuple(
            hit_of(
                each,
                ranking.memories[each.id],
                in_relations if each.id in relations else ranking.terms,
                relevance=ranking.relevance[each.id],
                facts=ranking.signals[each.id].facts,
                similar=tuple(sorted(under.get(each.id, ()))),
                superseded_by=ranking.successors.get(each.id),
                now=plan.now,
                beliefs=beliefs_of(ranking.signals[each.id].facts, plan),
                cosine=ranking.cosines.get(each.id),
                relation=relations[each.id].fact if each.id in relations else None,
            )
            for each in ranking.kept[: plan.request.limit]
            if each.id in ranking.memories  # not purged since the channels looked
        )
        return ranking._replace(hits=hits)

    def _budget(self, plan: SearchPlan, ranking: Ranking) -> Ranking:
        """As many hits as fit into the caller's tokens."""
        limit, hits = plan.request.token_budget, ranking.hits
        fitting = token_budget.fitting([shown_text(hit) for hit in hits], limit)
        if fitting == len(hits):
            return ranking
        note = f"{counted(len(hits) - fitting, 'more does', 'more do')} not fit into {counted(limit or 0, 'token')}"
        return ranking._replace(hits=hits[:fitting], notes=(*ranking.notes, note))

    # ---- what stages ask the store

    def _with_signals(self, plan: SearchPlan, ranking: Ranking, ids: Sequence[str]) -> Ranking:
        """The ranking with what the store knows of these memories. Some may be doubted, and some are gone."""
        unknown = [each for each in ids if each not in ranking.signals]
        if not unknown:
            return ranking
        signals = self._store.signals(unknown)
        least = plan.recipe.min_confidence
        all_fade = confidence.every_fact_fades(plan.recipe.confidence_weight, least)
        believed = {
            each: confidence.memory_confidence(known.facts, plan.now, all_fade=all_fade)
            for each, known in signals.items()
            if known.facts
        }
        doubted = {each: value for each, value in believed.items() if value < least}
        return ranking._replace(
            signals={**ranking.signals, **signals},
            confidence={**ranking.confidence, **believed},
            doubted={**ranking.doubted, **doubted},
        )

    def _relations(self, plan: SearchPlan) -> tuple[RelationHit, ...]:
        """Relations that match the query, of memories that the search may see."""
        terms, spaces = plan.query.terms, plan.where.spaces
        found = self._store.relations(terms, spaces, plan.now, plan.pool) if terms else []
        matching = self._matching({fact.memory_id for fact, _ in found}, plan.where, plan.query)
        found = [each for each in found if each[0].memory_id in matching]
        return tuple(RelationHit(fact, score, rank) for rank, (fact, score) in enumerate(found, 1))

    def _matching(self, memory_ids: Set[str], where: Filter, query: ParsedQuery) -> Set[str]:
        """Those of these live memories that match the filters and conditions of the search."""
        if not memory_ids or matches_everything(where, query.must):
            return memory_ids
        return self._store.matching(list(memory_ids), scope_condition(where, query.must))

    def _with_beside(self, plan: SearchPlan, ranking: Ranking, ids: Sequence[str]) -> Ranking:
        """The ranking with the turns directly next to each of these, as far as the search may see them."""
        new = [each for each in ids if each not in ranking.beside]
        unknown = [each for each in new if each not in ranking.neighbours]
        found = self._store.neighbours(unknown, neighbours.REACH_BACK, neighbours.REACH, turns=True) if unknown else {}
        near = {**ranking.neighbours, **found}
        every = {each for one in new for each in neighbours.next_to(near.get(one))}
        unseen = every - ranking.signals.keys() - ranking.hidden
        hidden = ranking.hidden | (unseen - self._matching(unseen, plan.where, plan.query))
        beside = {one: tuple(each for each in neighbours.next_to(near.get(one)) if each not in hidden) for one in new}
        return ranking._replace(neighbours=near, hidden=hidden, beside={**ranking.beside, **beside})

    def _memories(self, ids: Sequence[str], ranking: Ranking) -> Mapping[str, Memory]:
        missing = [each for each in ids if each not in ranking.memories]
        return {**ranking.memories, **self._store.get(missing)} if missing else ranking.memories

    def _about_boosted(self, plan: SearchPlan, ranked: Sequence[Ranked]) -> tuple[set[str], tuple[str, ...]]:
        """Which of these are about the entities to boost, and a note on names that no entity has."""
        names = {name: self._resolver.names_of(name, plan.where.spaces) for name in plan.request.boost_entities}
        unknown = [name for name, several in names.items() if not several]
        notes = (f"no entity is called {', '.join(map(preview, unknown))}; see `nacre entity list`",) if unknown else ()
        conditions = tuple(entities.entity_condition(name, several) for name, several in names.items() if several)
        about = self._store.matching([each.id for each in ranked], either(conditions)) if conditions else set()
        return about, notes
