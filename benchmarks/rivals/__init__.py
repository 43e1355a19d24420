"""Other products that search the same texts, one file each: what a user would have without Nacre.

Each is used as its own documentation says, with its defaults except where its file says otherwise. `benchmarks.quality`
asks the products of QUALITY, `benchmarks.speed` the engines of SPEED; Chroma and LanceDB are in both. Modules are
imported by name, so that a process loads no product but the one that it measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.rivals.base import Engine, Rival

# The module of each product, by the name that reports use.
QUALITY: Mapping[str, str] = {
    "grep": "grep",
    "fts5 unicode61": "fts5",
    "fts5 porter": "fts5",
    "fts5 trigram": "fts5",
    "bm25s": "bm25s",
    "bm25s stemmed": "bm25s",
    "chroma": "chroma",
    "chroma $contains": "chroma",
    "lancedb hybrid": "lancedb",
    "mempalace": "mempalace",
    "mempalace union": "mempalace",
}
SPEED: Mapping[str, str] = {
    "nacre": "benchmarks.common.speed_nacre",
    "qdrant-edge": "benchmarks.rivals.qdrant_edge",
    "lancedb": "benchmarks.rivals.lancedb",
    "chroma": "benchmarks.rivals.chroma",
    "sqlite-vec": "benchmarks.rivals.sqlite_vec",
    "tantivy+usearch": "benchmarks.rivals.tantivy_usearch",
}
# Nacre's own stores, which `benchmarks.postgres` compares.
_OWN = ("nacre-loaded", "nacre-postgres")


def quality_rival(name: str) -> Rival:
    rival: Rival = import_module(f"benchmarks.rivals.{QUALITY[name]}").RIVALS[name]
    return rival


def speed_engine(name: str) -> Engine:
    """The engine of that name with its packages imported. Raises ImportError when they are not installed."""
    engine: Engine
    if name in _OWN:
        engine = import_module("benchmarks.common.speed_loading").ENGINES[name]()
    else:
        engine = import_module(SPEED[name]).ENGINE()
    return engine
