"""Nacre: local, layered memory for AI agents.

import nacre

with nacre.open("agent.db") as memory:
    memory.remember("We chose PostgreSQL because of its JSON support.", tags=["database"])
    for hit in memory.search("which database do we use?").hits:
        print(hit.score, hit.text)
"""

from nacre.checks import Limits
from nacre.counting import Facets, Stats
from nacre.engine import Nacre
from nacre.errors import (
    Conflict,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    InvalidInput,
    NacreError,
    NotFound,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)
from nacre.explaining import Why, WhyNot
from nacre.intents import Intent
from nacre.knowledge import Belief, Disagreement, Entity, Fact, FactQuery, NewEntity, NewFact, RelatedEntity
from nacre.lenses import Lens
from nacre.opening import open_store as open  # noqa: A004
from nacre.receipts import Delivery, Receipt
from nacre.types import (
    CLASSIC,
    DidYouMean,
    Event,
    Filter,
    Hit,
    Memory,
    NewMemory,
    Progress,
    Reason,
    Recipe,
    RelatedRequest,
    RelationHit,
    Remembered,
    SearchRequest,
    SearchResult,
    Snippet,
    Span,
)
from nacre.views import (
    Context,
    ContextRequest,
    Fetched,
    LeftOut,
    Quoted,
    Timeline,
    TimelineEntry,
    TimelineRequest,
)

__version__ = "0.1.0"

__all__ = [
    "CLASSIC",
    "Belief",
    "Conflict",
    "Context",
    "ContextRequest",
    "Delivery",
    "DidYouMean",
    "Disagreement",
    "EmbedderError",
    "EmbedderMismatch",
    "EmbedderUnavailable",
    "Entity",
    "Event",
    "Facets",
    "Fact",
    "FactQuery",
    "Fetched",
    "Filter",
    "Hit",
    "Intent",
    "InvalidInput",
    "LeftOut",
    "Lens",
    "Limits",
    "Memory",
    "Nacre",
    "NacreError",
    "NewEntity",
    "NewFact",
    "NewMemory",
    "NotFound",
    "Progress",
    "Quoted",
    "Reason",
    "Receipt",
    "Recipe",
    "RelatedEntity",
    "RelatedRequest",
    "RelationHit",
    "Remembered",
    "SearchRequest",
    "SearchResult",
    "Snippet",
    "Span",
    "Stats",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "Timeline",
    "TimelineEntry",
    "TimelineRequest",
    "Why",
    "WhyNot",
    "__version__",
    "open",
]
