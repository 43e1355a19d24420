"""The plain reference store."""

from nacre.storage.reference.store import MemoryStore

__all__ = ["MemoryStore"]
