"""Nacre: local, layered memory for AI agents.

import nacre

with nacre.open("agent.db") as memory:
    memory.remember("We chose PostgreSQL because of its JSON support.", tags=["database"])
    for hit in memory.search("which database do we use?").hits:
        print(hit.score, hit.text)
"""

from nacre.checks import Limits
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
from nacre.opening import open_store as open  # noqa: A004
from nacre.types import (
    DidYouMean,
    Event,
    Facets,
    Filter,
    Hit,
    Memory,
    NewMemory,
    Progress,
    Reason,
    Recipe,
    RelatedRequest,
    Remembered,
    SearchRequest,
    SearchResult,
    Snippet,
    Span,
    Stats,
    Timeline,
    TimelineEntry,
    TimelineRequest,
)

__version__ = "0.1.0"

__all__ = [
    "Conflict",
    "DidYouMean",
    "EmbedderError",
    "EmbedderMismatch",
    "EmbedderUnavailable",
    "Event",
    "Facets",
    "Filter",
    "Hit",
    "InvalidInput",
    "Limits",
    "Memory",
    "Nacre",
    "NacreError",
    "NewMemory",
    "NotFound",
    "Progress",
    "Reason",
    "Recipe",
    "RelatedRequest",
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
    "__version__",
    "open",
]
