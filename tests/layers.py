"""The layers of the package, which the architecture page draws too."""

from __future__ import annotations

# From top to bottom. A name stands for a module or a package with all in it.
LAYERS: dict[str, tuple[str, ...]] = {
    "doors": ("cli", "client", "http_api", "mcp_server", "hooks", "integrations"),
    "config": ("config",),
    "serialization": ("serialization",),
    "service": ("engine", "evaluation", "knowledge_graph", "intake"),
    "adapters": ("storage", "embedders", "rerankers", "importers"),
    "pure core": (
        "query",
        "ranking",
        "analysis",
        "facts",
        "validation",
        "access",
        "ids",
        "runtime",
        "storage.vectors",
        "storage.changes",
        "storage.checksums",
        "storage.claims",
        "storage.copying",
        "storage.merging",
        "storage.quotas",
    ),
    "values": ("types", "interfaces", "errors", "query.ast"),
}
