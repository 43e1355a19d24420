"""Nacre: local, layered memory for AI agents.

import nacre

with nacre.open("agent.db") as memory:
    memory.remember("We chose PostgreSQL because of its JSON support.", tags=["database"])
    for hit in memory.search("which database do we use?").hits:
        print(hit.score, hit.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

# The module that each name comes from. It is imported when the name is first asked for: most programs need few of
# them at once, and the command line can begin to load a model before.
_HOMES = {
    "checks": "Limits",
    "counting": "Facets Stats",
    "engine": "Nacre",
    "errors": (
        "Conflict EmbedderError EmbedderMismatch EmbedderUnavailable InvalidInput NacreError NotFound StoreBusy "
        "StoreCorrupt StoreError StoreFull StoreTooNew StoreUnavailable"
    ),
    "explaining": "Why WhyNot",
    "intents": "Intent",
    "knowledge": "Belief Disagreement Entity Fact FactQuery NewEntity NewFact RelatedEntity",
    "lenses": "Lens",
    "opening": "open",
    "receipts": "Delivery Receipt",
    "types": (
        "CLASSIC DidYouMean Event Filter Hit Memory NewMemory Progress Reason Recipe RelatedRequest RelationHit "
        "Remembered SearchRequest SearchResult Snippet Span"
    ),
    "views": "Context ContextRequest Fetched LeftOut Quoted Timeline TimelineEntry TimelineRequest",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # or every name would seem to be there

    def __getattr__(name: str) -> object:
        """A public name, or a module of the package."""
        home = _HOME_OF.get(name)
        if home is not None:
            value = getattr(import_module(f"nacre.{home}"), "open_store" if name == "open" else name)
            globals()[name] = value
            return value
        if not name.startswith("_"):
            try:
                return import_module(f"nacre.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"nacre.{name}":
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
