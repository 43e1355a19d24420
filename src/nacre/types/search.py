"""Searches: what a caller asks, what channels and stages pass on, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from nacre.types.facts import Belief, Fact, FactType
from nacre.types.intents import Intent
from nacre.types.memory import DEFAULT_IMPORTANCE, JsonScalar, Memory, Span
from nacre.types.recall_log import Usage
from nacre.types.recipe import USUAL_RECIPE, Recipe

Mode: TypeAlias = Literal["keyword", "semantic", "hybrid"]
ModeAlias: TypeAlias = Literal["text", "vector"]
MODE_ALIASES: Mapping[str, Mode] = {"text": "keyword", "vector": "semantic"}
MatchType: TypeAlias = Literal["bm25", "semantic", "hybrid", "filter", "relation", "echo", "successor"]
MatchWords: TypeAlias = Literal["any", "all"]
RerankMode: TypeAlias = Literal["fast", "full"]
Effect: TypeAlias = Literal["add", "multiply"]
Part: TypeAlias = Literal["facts", "tags", "source", "session", "summary", "metadata"]


# ---------------------------------------------------------------- questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories match. Empty fields do not restrict; fields are joined by AND.

    `spaces=()` means the space the engine was opened with. `sources` may have `*` and `?`.
    `created_from` is inclusive, `created_until` exclusive. `metadata` compares top-level keys with JSON
    scalars. `has` names parts that must be there. `fact_types` needs a fact of one of these types, current or not.
    `importance_min` and `importance_max` are both inclusive. `key_prefixes` needs a key that begins with one of these.
    `languages` are ISO 639-1 codes.
    """

    spaces: Sequence[str] = ()
    kinds: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    tags_all: Sequence[str] = ()
    tags_none: Sequence[str] = ()
    sources: Sequence[str] = ()
    sessions: Sequence[str] = ()
    created_from: datetime | None = None
    created_until: datetime | None = None
    metadata: Mapping[str, JsonScalar] = field(default_factory=dict)
    has: Sequence[Part] = ()
    fact_types: Sequence[FactType] = ()
    importance_min: float | None = None
    importance_max: float | None = None
    key_prefixes: Sequence[str] = ()
    languages: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to, not including, `end`, in UTC. None: open on that side."""

    start: datetime | None
    end: datetime | None


class SearchOptions(TypedDict, total=False):
    """What `search(query, …)` takes besides the query: the fields of SearchRequest."""

    mode: Mode | ModeAlias
    limit: int
    where: Filter
    recipe: Recipe
    lens: str | None
    session: str | None
    folder: str | None
    as_of: datetime | None
    boost_entities: Sequence[str]
    merge_relations: bool
    min_score: float
    collapse: bool
    token_budget: int | None
    omit_delivered: bool
    rerank: RerankMode | bool
    include_facts: bool
    match: MatchWords
    min_similarity: float | None
    origin: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query and its options.

    `lens=None` lets a lens select itself by the query or the folder; "none" disables all lenses. `session` and `folder`
    identify the caller; `origin` is the connection that asks, under which a search without a session is logged. `as_of`
    searches the memories and facts of that time. `min_score` is the least relevance of a hit. `collapse` shows
    near-duplicates once. `token_budget` bounds the size of all hits. `omit_delivered` leaves out what searches of this
    session gave a short time ago; otherwise it is marked. `rerank="fast"` reranks as many of the recipe's `rerank_few`
    best as there is time for in `rerank_ms`, "full" the whole `rerank_pool`, False none. `include_facts` gives each hit
    the `beliefs` that are not below the recipe's `min_confidence`. `match="all"` finds only memories that have every
    word of the query but stop words. `min_similarity` is the least cosine of a hit, from -1 to 1, whichever channel
    found it.
    """

    query: str
    mode: Mode | ModeAlias = "hybrid"  # validation replaces an alias by the mode it stands for
    limit: int = 10
    where: Filter = field(default_factory=Filter)
    recipe: Recipe = field(default_factory=lambda: USUAL_RECIPE)
    lens: str | None = None
    session: str | None = None
    folder: str | None = None
    as_of: datetime | None = None
    boost_entities: Sequence[str] = ()
    merge_relations: bool = False
    min_score: float = 0.0
    collapse: bool = True
    token_budget: int | None = None
    omit_delivered: bool = False
    rerank: RerankMode | bool = "fast"  # validation replaces True by "fast"
    include_facts: bool = False
    match: MatchWords = "any"
    min_similarity: float | None = None
    origin: str | None = None


class RelatedOptions(TypedDict, total=False):
    """What `related(id, …)` takes besides the id: the fields of RelatedRequest."""

    limit: int
    where: Filter
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRequest:
    """Memories like one that is known. `where.spaces=()` means the space of that memory."""

    memory_id: str
    limit: int = 10
    where: Filter = field(default_factory=Filter)
    recipe: Recipe = field(default_factory=lambda: USUAL_RECIPE)


# ---------------------------------------------------------------- answers


class Match(NamedTuple):
    """A channel's answer: a memory with its score, by which the channel orders.

    Of a semantic match, `span` is the passage that matched, and `raw` its cosine where the score is less, because the
    memory has several passages.
    """

    id: str
    score: float
    span: Span | None = None
    raw: float | None = None

    @property
    def cosine(self) -> float:
        return self.score if self.raw is None else self.raw


class Reason(NamedTuple):
    """One share of a hit's score (`add`) or one factor on it (`multiply`), with the numbers it came from."""

    signal: str
    effect: Effect
    value: float
    numbers: Mapping[str, float]


class Successor(NamedTuple):
    """A memory that updates another one, and since when that holds."""

    id: str
    since: datetime


class Signals(NamedTuple):
    """What a store knows of a live memory that may move its rank."""

    created: datetime
    namespace: str
    kind: str = "note"
    happened: datetime | None = None
    facts: tuple[Fact, ...] = ()
    usage: Usage | None = None
    similar: tuple[str, ...] = ()  # ids of memories that say nearly the same
    successors: tuple[Successor, ...] = ()  # live memories that update it, the latest first
    importance: float = DEFAULT_IMPORTANCE

    @property
    def moment(self) -> datetime:
        """When it happened, or else was created."""
        return self.happened or self.created


class Found(NamedTuple):
    """Where a channel placed a memory: its score and its rank from 1. `span` and `raw` are those of the match."""

    score: float
    rank: int
    span: Span | None = None
    raw: float | None = None

    @property
    def cosine(self) -> float:
        return self.score if self.raw is None else self.raw


class Ranked(NamedTuple):
    """A memory's place in the final order. Its score is the sum of the shares times the factors."""

    id: str
    score: float
    reasons: tuple[Reason, ...]
    lexical: Found | None
    semantic: Found | None


class MatchedWord(NamedTuple):
    """Which word of a query met which word of a memory, or of the turn before or after it."""

    asked: str
    found: str
    similarity: float  # of a neighbour's word, what counts of it
    memory_id: str  # where the word stands


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of the memory's text, or of the relation that was found.

    `highlights` are slices of `text`, in order, not overlapping.
    """

    text: str
    highlights: tuple[Span, ...]
    start: int  # where it begins in that text


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked memory with its reasons. Scores order one result; they are not comparable between queries."""

    memory: Memory
    score: float
    match_type: MatchType
    bm25: float | None
    bm25_rank: int | None
    cosine: float | None
    similarity: float | None  # the cosine on a scale of 0..1: (cosine + 1) / 2
    cosine_rank: int | None
    snippet: Snippet
    reasons: tuple[Reason, ...]
    relevance: float | None = None  # how likely it answers the question, 0..1, comparable between queries
    facts: tuple[Fact, ...] = ()
    similar: tuple[str, ...] = ()  # near-duplicates that are not shown on their own
    delivered: bool = False  # a search of the same session gave it before
    superseded_by: Successor | None = None  # what holds in its place
    effective_confidence: float | None = None  # the mean over its facts at the time of the search; None without facts
    beliefs: tuple[Belief, ...] | None = None  # its facts with their confidence then; None: not asked for
    relation: Fact | None = None  # of the memory, where that was found and not its text: the snippet states it

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def text(self) -> str:
        return self.memory.text

    @property
    def found_text(self) -> str:
        """The text that the snippet is a part of."""
        return self.memory.text if self.relation is None else self.relation.statement


@dataclass(frozen=True, slots=True)
class DidYouMean:
    """The query with its unknown words replaced, and for each of them the known words like it, best first."""

    query: str
    words: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RelationHit:
    """A relation that matches a question, with its BM25 score and rank from 1."""

    fact: Fact
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, and notes on anything that was read or done differently than asked."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    did_you_mean: DidYouMean | None = None
    relations: tuple[RelationHit, ...] = ()
    lens: str | None = None  # the one that acted
    intent: Intent | None = None
    answerable: bool = True  # False: no hit is likely to answer the query
    receipt: str | None = field(default=None, compare=False)  # its id in the recall log

    @property
    def relations_beside_hits(self) -> tuple[RelationHit, ...]:
        """Those that no hit states already."""
        stated = {hit.relation.id for hit in self.hits if hit.relation is not None}
        return tuple(each for each in self.relations if each.fact.id not in stated)
