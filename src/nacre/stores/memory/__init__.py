"""The plain reference store."""

from nacre.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
