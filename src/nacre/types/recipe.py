"""How candidates become a ranking: every weight of the ranking formulas, with its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from nacre.types.intents import NAMESPACE_WEIGHTS, IntentName

Fusion: TypeAlias = Literal["height", "rank"]


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
