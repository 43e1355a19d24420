"""What a search has found so far, and all that it did on its way: the values that its stages pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from nacre.analysis import highlight
from nacre.engine.hits import NO_TERMS
from nacre.engine.plan import SearchPlan
from nacre.query.identifiers import Identifier
from nacre.ranking.fusion import Further
from nacre.types.facts import Fact
from nacre.types.memory import Memory
from nacre.types.search import DidYouMean, Hit, Match, Ranked, RelationHit, SearchResult, Signals, Successor
from nacre.types.stats import Frequencies
from nacre.types.views import Neighbours

_RELATIONS_MAX = 10  # shown beside the hits
_UNKNOWN = Frequencies(0, {})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class FoundRelation(NamedTuple):
    """A relation that was found in place of its memory, and the BM25 of a memory with its words."""

    fact: Fact
    words: float


class Ranking(NamedTuple):
    """What the stages have found so far, and what they have left out. A tuple, because each stage makes a new one."""

    # candidates
    lexical: Sequence[Match] | None = None  # None: the channel was not asked
    semantic: Sequence[Match] | None = None
    further: Further | None = None  # what a further model found beside it
    foreign: Set[str] = frozenset()  # of the best, those in another language than the query: no encoder compares them
    unembedded: Set[str] = frozenset()  # of those that words found, those without vectors yet
    listed: Sequence[str] = ()  # ids that match conditions without words
    frequencies: Frequencies = _UNKNOWN
    terms: highlight.HighlightTerms = NO_TERMS  # of the query, to be located in texts
    relations: tuple[RelationHit, ...] = ()
    # fuse, and every stage that orders
    ranked: Sequence[Ranked] = ()
    found_relations: Mapping[str, FoundRelation] = _NOTHING  # by memory, where its relation counts more than its text
    # neighbours
    echoing: Sequence[str] = ()  # ids whose score their neighbours got a share of
    neighbours: Mapping[str, Neighbours] = _NOTHING
    hidden: Set[str] = frozenset()  # neighbours that do not match the search's filters
    # signals
    signals: Mapping[str, Signals] = _NOTHING
    confidence: Mapping[str, float] = _NOTHING  # of memories with facts
    doubted: Mapping[str, float] = _NOTHING  # left out: their confidence is too low
    # late_interaction, rerank
    beside: Mapping[str, tuple[str, ...]] = _NOTHING  # by id, the turns next to it that the search may see
    rerank_leads: Mapping[str, float] = _NOTHING
    answers: Mapping[str, float] = _NOTHING  # log-odds that a memory answers, of those that the reranker was asked of
    unread: Set[str] = frozenset()  # that there was no time to read
    # exact
    named: Mapping[str, Set[Identifier]] = _NOTHING  # by id, what the query names and the memory has exactly
    # supersede
    successors: Mapping[str, Successor] = _NOTHING  # by id of what they supersede
    # dedupe
    kept: Sequence[Ranked] = ()
    duplicates: Mapping[str, str] = _NOTHING  # left out, and the better one shown for each
    # relevance
    relevance: Mapping[str, float] = _NOTHING
    answerable: bool = True  # False: no hit is likely to answer
    # cut
    cosines: Mapping[str, float] = _NOTHING  # of those that the semantic channel did not find, where a least one is set
    dissimilar: Mapping[str, float | None] = _NOTHING  # left out, with their cosines; None: they have no vectors
    # fetch
    memories: Mapping[str, Memory] = _NOTHING  # texts that some stage needed; none is read twice
    # highlight
    hits: tuple[Hit, ...] = ()

    did_you_mean: DidYouMean | None = None
    notes: tuple[str, ...] = ()
    # Whether the same search gives the same result as long as nothing is written. A time in the query passes, and a
    # model that failed may work again.
    repeatable: bool = False

    @property
    def found(self) -> bool:
        return bool(self.ranked or self.doubted)

    @property
    def stated(self) -> dict[str, str]:
        """By id, the relation by which a memory was found, in words."""
        return {each: found.fact.statement for each, found in self.found_relations.items()}

    def may_show(self, memory_id: str) -> bool:
        """Whether a memory is live as far as the signals tell, and believed."""
        return memory_id in self.signals and memory_id not in self.doubted


class SearchTrace(NamedTuple):
    """What a search did on its way: its plan, and everything its stages found and left out."""

    plan: SearchPlan
    ranking: Ranking

    def result(self) -> SearchResult:
        return SearchResult(
            self.ranking.hits,
            tuple(dict.fromkeys(self.ranking.notes)),
            self.ranking.did_you_mean,
            self.ranking.relations[:_RELATIONS_MAX],
            lens=self.plan.lens,
            intent=self.plan.intent,
            answerable=self.ranking.answerable,
        )
