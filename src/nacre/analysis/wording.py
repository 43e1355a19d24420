"""Words of answers and notes that people read."""

from __future__ import annotations


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun: "1 memory", "2,000 memories". Without `several`, the plural has an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def count_memories(number: int) -> str:
    return counted(number, "memory", "memories")
