"""The values that flow through Nacre: what goes in, what comes out.

All are frozen; nothing is changed on the way. Every default of the product stands here
and nowhere else. Checks of what a caller gave are in `checks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

from nacre.intents import NAMESPACE_WEIGHTS, Intent, IntentName
from nacre.knowledge import Fact, NewEntity, NewFact
from nacre.receipts import Usage

if TYPE_CHECKING:  # numpy costs 90 ms to import; keyword search never needs it
    import numpy as np
    import numpy.typing as npt

    FloatMatrix: TypeAlias = npt.NDArray[np.float32]  # one row a text
    FloatVector: TypeAlias = npt.NDArray[np.float32]

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonScalar: TypeAlias = str | int | float | bool | None
Mode: TypeAlias = Literal["keyword", "semantic", "hybrid"]
Fusion: TypeAlias = Literal["height", "rank"]
MatchType: TypeAlias = Literal["bm25", "semantic", "hybrid", "filter", "relation", "echo"]
Effect: TypeAlias = Literal["add", "multiply"]
Part: TypeAlias = Literal["facts", "tags", "source", "session", "summary", "metadata"]

DEFAULT_SPACE = "default"
BREAK = "|"  # a token that no text has: what stands on its two sides is not side by side


# ---------------------------------------------------------------- memories


class MemoryFields(TypedDict, total=False):
    """The optional fields of a new memory, and what `update` may change (with `text`)."""

    kind: str
    namespace: str
    summary: str | None
    tags: Sequence[str]
    source: str | None
    session: str | None
    position: int | None
    metadata: Mapping[str, Json]
    importance: float
    happened: datetime | None


class NewMemoryFields(MemoryFields, total=False):
    """What `remember(text, …)` takes besides the text."""

    space: str | None
    created: datetime | None
    facts: Sequence[NewFact]
    entities: Sequence[str | NewEntity]
    extract: bool | None


class Changes(MemoryFields, total=False):
    """What `update(id, …)` takes: only the fields named are changed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A text to remember. `space=None` means the space the engine was opened with.

    `created` is when it was remembered, `happened` when what it tells took place, where that differs.
    `extract=None` leaves it to the engine whether facts are read from the text.
    """

    text: str
    space: str | None = None
    kind: str = "note"
    namespace: str = "general"
    summary: str | None = None
    tags: Sequence[str] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    importance: float = 0.5
    created: datetime | None = None
    happened: datetime | None = None
    facts: Sequence[NewFact] = ()
    entities: Sequence[str | NewEntity] = ()
    extract: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A remembered text with its metadata, as stored."""

    id: str
    space: str
    kind: str
    namespace: str
    text: str
    summary: str | None
    tags: tuple[str, ...]
    source: str | None
    session: str | None
    position: int | None
    metadata: Mapping[str, Json]
    importance: float
    created: datetime
    updated: datetime
    deleted: datetime | None = None
    happened: datetime | None = None
    facts: tuple[Fact, ...] = field(default=(), compare=False)  # filled where a memory is given in full


class Remembered(NamedTuple):
    """The receipt for one remembered text. `duplicate`: the same text was there already, under this id.

    `recalled`: the text only gives back what its own session was told, by these memories; nothing was stored.
    """

    id: str
    duplicate: bool
    recalled: tuple[str, ...] = ()


class Span(NamedTuple):
    """A slice of a text: characters from `start` up to, not including, `end`."""

    start: int
    end: int


class Tokens(NamedTuple):
    """What the one tokeniser makes of a memory.

    `words` of the text keep their order; `forms` are further names for them. Each label has all its
    tokens in one row, with BREAK between words that do not stand side by side.
    """

    words: tuple[str, ...]
    forms: tuple[str, ...]
    length: int  # of the text, in words; a spelling that was folded counts a little longer
    summary: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passages:
    """Where a text was cut, and one vector for each slice."""

    spans: tuple[Span, ...]
    vectors: FloatMatrix


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory ready to be written: row, tokens and (when there is an embedder) passages."""

    memory: Memory
    content_hash: bytes
    tokens: Tokens
    passages: Passages | None
    facts: tuple[Fact, ...] = ()
    entities: tuple[NewEntity, ...] = ()
    sketch: tuple[int, ...] = ()  # by which texts that are nearly the same are looked up


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only log. `before` holds what an update replaced."""

    seq: int
    at: datetime
    action: str
    memory_id: str
    before: Mapping[str, Json]


# ---------------------------------------------------------------- questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories may be found. Empty fields do not restrict; fields are joined by AND.

    `spaces=()` means the space the engine was opened with. `sources` may have `*` and `?`.
    `created_from` is inclusive, `created_until` exclusive. `metadata` compares top-level keys with JSON
    scalars. `has` names parts that must be there.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How candidates become a ranking."""

    fusion: Fusion = "height"  # share = weight · gap² · height; "rank": weight / (k + rank)
    k: int = 60  # of rank fusion
    alpha: float = 0.75  # weight of meaning; 1 - alpha is the weight of words
    pool: int = 50  # candidates a channel gives, at the least 2 × limit
    crowd: int = 20  # the place of the match that a channel's best has to stand out from
    semantic_floor: float = 0.1  # cosine below which a memory is not a semantic match
    echo_next: float = 0.5  # of a score, heard by the memory after it in the session, where words and meaning count
    echo_far: float = 0.2  # by the one after that
    echo_back: float = 0.2  # by the one before it
    rerank_weight: float = 0.15  # of what lies between the first and the last of those that are read again; 0: none are
    rerank_pool: int = 30  # the best, which are read again, or fewer where their texts are long
    recency_weight: float = 0.1  # × (1 + weight / (1 + days)); 0 switches it off
    temporal_weight: float = 0.2  # × (1 + weight) inside the time a question names; 0 switches it off
    session_weight: float = 0.1  # × (1 + weight) for memories of the same session, in `related`
    bm25_k1: float = 0.9
    bm25_b: float = 1.0
    bm25_padding: float = 20.0  # words added to every length: short texts differ less in length than it seems
    summary_weight: float = 2.0  # of a word in the summary, where one in the text has 1
    tags_weight: float = 1.0
    source_weight: float = 0.5
    confidence_weight: float = 0.2  # × (1 - weight + weight · effective confidence); 1 is the full product
    min_confidence: float = 0.1  # memories whose facts are believed less are left out
    entity_weight: float = 0.2  # × (1 + weight) for memories about an entity that is asked for
    intent_weight: float = 1.0  # how much of the namespace weights acts; 0 switches intent off
    intents: Mapping[IntentName, Mapping[str, float]] = field(default_factory=lambda: NAMESPACE_WEIGHTS)
    usage_weight: float = 0.1  # × (1 ± weight at the most) for what was opened, used or wrong before
    relation_weight: float = 0.8  # of a relation's share, where relations are merged into the hits


USUAL_RECIPE = Recipe()  # one for all requests that name none

# Reciprocal rank fusion as in the textbook, and nothing else: no signal moves what it found.
CLASSIC = Recipe(
    fusion="rank",
    k=60,
    alpha=0.5,
    semantic_floor=0.3,
    echo_next=0,
    echo_far=0,
    echo_back=0,
    rerank_weight=0,
    recency_weight=0,
    temporal_weight=0,
    confidence_weight=0,
    entity_weight=0,
    intent_weight=0,
    usage_weight=0,
)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to, not including, `end`, in UTC. None: open on that side."""

    start: datetime | None
    end: datetime | None


class SearchOptions(TypedDict, total=False):
    """What `search(query, …)` takes besides the query: the fields of SearchRequest."""

    mode: Mode
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
    omit_told: bool
    rerank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A question and how it is to be answered.

    `lens=None` lets a lens select itself by the question or the folder; "none" keeps all away. `session` and
    `folder` say who asks and where. `as_of` answers as of then. `min_score` is the least relevance of a hit.
    `collapse` shows near-duplicates once. `token_budget` bounds what the hits cost a context window. `omit_told`
    leaves out what searches of this session gave already; otherwise it is marked. `rerank` reads the best again
    together with the question, where words and meaning count.
    """

    query: str
    mode: Mode = "hybrid"
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
    omit_told: bool = False
    rerank: bool = True


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
    """A channel's answer: a memory with its raw score. `span` is the passage that matched, where known."""

    id: str
    score: float
    span: Span | None = None


class Reason(NamedTuple):
    """One share of a hit's score (`add`) or one factor on it (`multiply`), with the numbers it came from."""

    signal: str
    effect: Effect
    value: float
    numbers: Mapping[str, float]


class Signals(NamedTuple):
    """What a store knows of a live memory that may move its rank."""

    moment: datetime  # when it happened, or else was created
    namespace: str
    facts: tuple[Fact, ...] = ()
    usage: Usage | None = None
    similar: tuple[str, ...] = ()  # ids of memories that say nearly the same


class Found(NamedTuple):
    """Where a channel placed a memory: its raw score and its rank from 1."""

    score: float
    rank: int
    span: Span | None = None


class Ranked(NamedTuple):
    """A memory's place in the final order. Its score is the sum of the shares times the factors."""

    id: str
    score: float
    reasons: tuple[Reason, ...]
    lexical: Found | None
    semantic: Found | None


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of the memory's text. `highlights` are slices of `text`, in order, not overlapping."""

    text: str
    highlights: tuple[Span, ...]
    start: int  # where it begins in the memory's text


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
    told: bool = False  # a search of the same session gave it before

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def text(self) -> str:
        return self.memory.text


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
    receipt: str | None = field(default=None, compare=False)  # its id in the recall log


@dataclass(frozen=True, slots=True)
class Progress:
    """How far long work has come."""

    done: int
    total: int
