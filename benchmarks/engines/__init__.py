"""Stores that can be measured for speed, one file each: ours, and what a user would have without it.

Each is used as its own documents say; its file says how, and why so. All are given the same texts, vectors, tags and
questions, and give back ids and texts.
"""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.engine import Engine

# Files by name. They are imported one by one: no process has more than one engine in its memory.
ENGINES = {
    "nacre": "nacre",
    "qdrant-edge": "qdrant_edge",
    "lancedb": "lancedb",
    "chroma": "chroma",
    "sqlite-vec": "sqlite_vec",
    "tantivy+usearch": "tantivy_usearch",
}


def loaded(name: str) -> Engine:
    """The engine of that name. Raises ImportError when its packages are not installed."""
    engine: Engine = import_module(f"benchmarks.engines.{ENGINES[name]}").ENGINE
    return engine
