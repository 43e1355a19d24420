"""The searches: by a query, by a memory like others, and counts of all matches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from nacre import validation
from nacre.analysis import highlight
from nacre.engine.calendar import histogram
from nacre.engine.candidates import CandidateFinder, Semantic
from nacre.engine.hits import hit_of
from nacre.engine.late_interaction_stage import LateInteractionStage
from nacre.engine.parts import Parts
from nacre.engine.pipeline import Pipeline
from nacre.engine.plan import Planner, SearchPlan, ValidRequest, pool_size
from nacre.engine.query_resolver import QueryResolver
from nacre.engine.recall_log import RecallLog
from nacre.engine.rerank_stage import RerankStage
from nacre.engine.search_trace import SearchTrace
from nacre.engine.successors import SuccessorFinder
from nacre.errors import InvalidInput, NotFound, StoreUnavailable
from nacre.interfaces import Reranker, TimePage
from nacre.query.ast import Condition, Pinned, both, has_words, scope_condition
from nacre.ranking import boosts, fusion
from nacre.ranking.bm25 import weights
from nacre.ranking.scoring import important_first
from nacre.runtime.garbage import collection_paused
from nacre.runtime.lru import LruCache
from nacre.types.memory import Memory
from nacre.types.search import Filter, RelatedRequest, SearchRequest, SearchResult
from nacre.types.stats import FacetCounts, Facets

T = TypeVar("T")

RESULT_LIFETIME = timedelta(minutes=1)  # of a cached result: recency counts days, and a day may end


class SearchOutcome(NamedTuple):
    """A search that was carried out."""

    request: SearchRequest  # as its lens changed it
    result: SearchResult
    delivered: Mapping[str, bool] | None  # what the session was given before, and whether it was opened; None: unknown


class Searcher:
    """Plans searches and runs them. Keeps recent results as long as nothing is written."""

    def __init__(self, parts: Parts, reranker: Reranker | None, log: RecallLog) -> None:
        self._parts = parts
        self._log = log
        self._store = parts.store
        self._resolver = QueryResolver(parts.store, parts.limits, parts.zone)
        self._planner = Planner(parts, self._resolver)
        self.candidates = CandidateFinder(parts.store, parts.embedder, parts.threads, parts.further)
        rerank = RerankStage(reranker, parts.timer)
        self.late_interaction = LateInteractionStage(parts.store, parts.token_embedder, self.candidates, parts.threads)
        self.successors = SuccessorFinder(parts.store)
        self.pipeline = Pipeline(
            parts.store,
            self._planner,
            self._resolver,
            self.candidates,
            self.late_interaction,
            rerank,
            self.successors,
            parts.observe,
        )
        self._results: LruCache[Hashable, tuple[datetime, SearchResult]] = LruCache(parts.limits.results_cached)

    def search(self, asked: SearchRequest) -> SearchOutcome:
        valid = self._planner.validate(asked)
        delivered = self._log.delivered(valid.request)  # before the view below, which does not see later writes

        def outcome() -> SearchOutcome:
            sequence = self._store.sequence()
            planned = self._planner.through_lens(valid, sequence, (delivered or {}).keys())
            return SearchOutcome(planned.request, self._cached(planned, sequence), delivered)

        with collection_paused():
            return self._in_one_view(outcome)

    def trace(self, asked: SearchRequest) -> SearchTrace:
        """A search with everything its stages found and left out."""
        valid = self._planner.validate(asked)
        delivered = self._log.delivered(valid.request) or {}
        return self._in_one_view(
            lambda: self._run(self._planner.through_lens(valid, self._store.sequence(), delivered.keys()))
        )

    def _in_one_view(self, search: Callable[[], T]) -> T:
        """What a search gives that sees one moment. Where a server goes away meanwhile, another one is searched."""
        begun = False
        try:
            with self._store.view():
                begun = True
                return search()
        except StoreUnavailable:
            if not begun:
                raise
        with self._store.view():
            return search()

    def _cached(self, valid: ValidRequest, sequence: tuple[int, int, int]) -> SearchResult:
        """The result of an equal search a moment ago, if nothing was written since; otherwise a new one."""
        if not self._parts.limits.results_cached:
            return self._run(valid).result()
        key, now = (valid.key(), sequence), self._parts.clock()
        at, cached = self._results.get(key) or (None, None)
        if cached is not None and at is not None and timedelta(0) <= now - at < RESULT_LIFETIME:
            if self._parts.observe is not None:
                self._parts.observe("cached", 0.0)
            return cached
        trace = self._run(valid)
        result = trace.result()
        if trace.ranking.repeatable:
            self._results.put(key, (now, result))
        return result

    def plan(self, asked: SearchRequest) -> SearchPlan:
        """What a search would do, before it runs."""
        return self._planner.plan(self._planner.through_lens(self._planner.validate(asked), self._store.sequence()))

    def demanded(self, query: str, forgotten: bool = False) -> tuple[Filter, Condition]:
        """What a query demands of memories: its filters, and all of its words. Nothing in it may be doubtful."""
        plan = self.plan(SearchRequest(query=query, match="all", lens="none"))
        must = plan.query.must
        if plan.notes:
            raise InvalidInput("where", "; ".join(plan.notes))
        if must is None:
            raise InvalidInput("where", "demands nothing; give filters or words, such as tag:draft until:2025")
        if forgotten and has_words(must):
            raise InvalidInput(
                "where", "has words, and forgotten memories are found by filters only, such as tag:draft"
            )
        return plan.where, must

    def matching(self, plan: SearchPlan, memory_ids: Sequence[str]) -> set[str]:
        """Those of these memories that match the filters and conditions of a search."""
        if not memory_ids or not plan.where.spaces:
            return set()
        return self._store.matching(memory_ids, scope_condition(plan.where, plan.query.must))

    def pinned(self, plan: SearchPlan, limit: int) -> list[Memory]:
        """The newest pinned memories that match the filters of a search."""
        return self._store.by_time(plan.where, TimePage(limit), must=both(plan.lens_condition, Pinned()))

    def related(self, asked: RelatedRequest) -> SearchResult:
        """The memories most like a known one, by meaning and by the rare words they share."""
        memory_id = self._parts.id(asked.memory_id)
        self._parts.unexpired()
        known = self._parts.visible([memory_id]).get(memory_id)
        if known is None or known.deleted is not None:
            raise NotFound((memory_id,))
        request = validation.related(asked, replace(self._parts.access, space=known.space), self._parts.limits)
        where, recipe = request.where, request.recipe
        pool = pool_size(request) + 1  # the memory itself is among them
        query = self._resolver.like(known, where.spaces)
        frequencies = self._resolver.frequencies(query, where.spaces)
        lexical = self._store.lexical(query, frequencies, where, recipe, pool) if recipe.alpha < 1 else []
        semantic, notes, *_ = self.candidates.near(known, where, recipe, pool) if recipe.alpha > 0 else Semantic([])
        unembedded = self._store.without_vectors([match.id for match in lexical]) if semantic else frozenset()
        memories = self._parts.visible(list({match.id for match in (*lexical, *(semantic or ()))} - {known.id}))
        memories = {each: memory for each, memory in memories.items() if memory.deleted is None}
        importance = {each: memory.importance for each, memory in memories.items()}
        ranked = fusion.fuse(
            important_first([match for match in lexical if match.id in memories], importance),
            important_first([match for match in semantic or () if match.id in memories], importance),
            recipe,
            unembedded=unembedded,
        )
        if known.session is not None:
            members = {each for each, memory in memories.items() if memory.session == known.session}
            ranked = boosts.same_session(ranked, members, recipe.tuning.session_weight)
        best = important_first(ranked, importance)
        terms = highlight.HighlightTerms.of_query(query, weights(query.terms, frequencies))
        hits = (hit_of(each, memories[each.id], terms) for each in best[: request.limit])
        return SearchResult(tuple(hits), notes)

    def facets(self, query: str, where: Filter) -> Facets:
        """All matches of a query, or all memories, counted by kind, namespace, tag, source and month."""
        request = SearchRequest(query=query, where=where, lens="none")
        plan = self.plan(request)
        everything = not query.strip()
        counts = FacetCounts(total=0, kinds={}, namespaces={}, tags={}, sources={}, created={})
        parsed = replace(plan.query, listing=plan.query.listing or everything)
        if plan.where.spaces and (parsed.terms or parsed.listing):
            counts = self._store.facet_counts(parsed, plan.where)
        return Facets(
            total=counts.total,
            kinds=_most_frequent(counts.kinds),
            namespaces=_most_frequent(counts.namespaces),
            tags=_most_frequent(counts.tags),
            sources=_most_frequent(counts.sources),
            months=histogram(counts.created, self._parts.zone, "month"),
            notes=() if everything else plan.notes,
        )

    def _run(self, valid: ValidRequest) -> SearchTrace:
        return self.pipeline.run(self._planner.plan(valid))


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
