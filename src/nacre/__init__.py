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
    from nacre.client.asynchronous import AsyncNacre, connect_async
    from nacre.client.remote import RemoteNacre, connect
    from nacre.config.factory import check_store, copy_store, rekey_store, restore_backup, salvage_store
    from nacre.config.factory import open_store as open  # noqa: A004
    from nacre.config.nodes import add_node, move_space, node_status
    from nacre.engine.engine import Nacre
    from nacre.engine.explain import Why, WhyNot
    from nacre.errors import (
        AccessDenied,
        Conflict,
        EmbedderError,
        EmbedderFailed,
        EmbedderMismatch,
        EmbedderUnavailable,
        InvalidInput,
        MaybeStored,
        NacreError,
        NotFound,
        Outdated,
        QuotaExceeded,
        ServerError,
        ServerMismatch,
        ServerUnavailable,
        SpaceMoved,
        StoreBusy,
        StoreCorrupt,
        StoreError,
        StoreFull,
        StoreTooNew,
        StoreUnavailable,
        Unauthorized,
        WrongKey,
    )
    from nacre.query.lenses import Lens
    from nacre.types.access_tokens import AccessToken, NewAccessToken
    from nacre.types.backups import Backup, BackupResult
    from nacre.types.changes import Change, ChangePage
    from nacre.types.copying import Copied
    from nacre.types.facts import (
        Belief,
        Disagreement,
        Entity,
        Fact,
        FactQuery,
        NewEntity,
        NewFact,
        RelatedEntity,
        Statement,
    )
    from nacre.types.health import Finding, Health, Salvage
    from nacre.types.hnsw import Hnsw
    from nacre.types.intents import Intent
    from nacre.types.key import Key
    from nacre.types.memory import Event, Forgotten, Memory, NewMemory, Progress, Purged, Remembered, Span, Update
    from nacre.types.quotas import Quotas
    from nacre.types.recall_log import Delivery, Receipt
    from nacre.types.recipe import CLASSIC, Recipe
    from nacre.types.search import (
        DidYouMean,
        Filter,
        Hit,
        MatchedWord,
        Reason,
        RelatedRequest,
        RelationHit,
        SearchRequest,
        SearchResult,
        Snippet,
        Successor,
    )
    from nacre.types.secrets import MemoryWithSecrets, Screened, SecretPlace
    from nacre.types.stats import Facets, Stats
    from nacre.types.views import (
        Context,
        ContextRequest,
        Fetched,
        LeftOut,
        Quoted,
        Timeline,
        TimelineEntry,
        TimelineRequest,
    )
    from nacre.validation import Limits

__version__ = "0.1.0"

__all__ = [
    "CLASSIC",
    "AccessDenied",
    "AccessToken",
    "AsyncNacre",
    "Backup",
    "BackupResult",
    "Belief",
    "Change",
    "ChangePage",
    "Conflict",
    "Context",
    "ContextRequest",
    "Copied",
    "Delivery",
    "DidYouMean",
    "Disagreement",
    "EmbedderError",
    "EmbedderFailed",
    "EmbedderMismatch",
    "EmbedderUnavailable",
    "Entity",
    "Event",
    "Facets",
    "Fact",
    "FactQuery",
    "Fetched",
    "Filter",
    "Finding",
    "Forgotten",
    "Health",
    "Hit",
    "Hnsw",
    "Intent",
    "InvalidInput",
    "Key",
    "LeftOut",
    "Lens",
    "Limits",
    "MatchedWord",
    "MaybeStored",
    "Memory",
    "MemoryWithSecrets",
    "Nacre",
    "NacreError",
    "NewAccessToken",
    "NewEntity",
    "NewFact",
    "NewMemory",
    "NotFound",
    "Outdated",
    "Progress",
    "Purged",
    "QuotaExceeded",
    "Quotas",
    "Quoted",
    "Reason",
    "Receipt",
    "Recipe",
    "RelatedEntity",
    "RelatedRequest",
    "RelationHit",
    "Remembered",
    "RemoteNacre",
    "Salvage",
    "Screened",
    "SearchRequest",
    "SearchResult",
    "SecretPlace",
    "ServerError",
    "ServerMismatch",
    "ServerUnavailable",
    "Snippet",
    "SpaceMoved",
    "Span",
    "Statement",
    "Stats",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "Successor",
    "Timeline",
    "TimelineEntry",
    "TimelineRequest",
    "Unauthorized",
    "Update",
    "Why",
    "WhyNot",
    "WrongKey",
    "__version__",
    "add_node",
    "check_store",
    "connect",
    "connect_async",
    "copy_store",
    "move_space",
    "node_status",
    "open",
    "rekey_store",
    "restore_backup",
    "salvage_store",
]

# The module that each name comes from. It is imported when the name is first asked for: most programs need few of
# them at once, and the command line can begin to load a model before.
_HOMES = {
    "client.asynchronous": "AsyncNacre connect_async",
    "client.remote": "RemoteNacre connect",
    "config.factory": "check_store copy_store open rekey_store restore_backup salvage_store",
    "config.nodes": "add_node move_space node_status",
    "engine.engine": "Nacre",
    "engine.explain": "Why WhyNot",
    "errors": (
        "AccessDenied Conflict EmbedderError EmbedderFailed EmbedderMismatch EmbedderUnavailable InvalidInput "
        "MaybeStored NacreError NotFound Outdated QuotaExceeded ServerError ServerMismatch ServerUnavailable "
        "SpaceMoved StoreBusy StoreCorrupt StoreError StoreFull StoreTooNew StoreUnavailable Unauthorized WrongKey"
    ),
    "query.lenses": "Lens",
    "types.access_tokens": "AccessToken NewAccessToken",
    "types.backups": "Backup BackupResult",
    "types.changes": "Change ChangePage",
    "types.copying": "Copied",
    "types.facts": "Belief Disagreement Entity Fact FactQuery NewEntity NewFact RelatedEntity Statement",
    "types.health": "Finding Health Salvage",
    "types.hnsw": "Hnsw",
    "types.intents": "Intent",
    "types.key": "Key",
    "types.memory": "Event Forgotten Memory NewMemory Progress Purged Remembered Span Update",
    "types.quotas": "Quotas",
    "types.recall_log": "Delivery Receipt",
    "types.recipe": "CLASSIC Recipe",
    "types.search": (
        "DidYouMean Filter Hit MatchedWord Reason RelatedRequest RelationHit SearchRequest SearchResult Snippet "
        "Successor"
    ),
    "types.secrets": "MemoryWithSecrets Screened SecretPlace",
    "types.stats": "Facets Stats",
    "types.views": "Context ContextRequest Fetched LeftOut Quoted Timeline TimelineEntry TimelineRequest",
    "validation": "Limits",
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
