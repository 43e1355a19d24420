"""What the tests of importers share: what one reads of a file, and how much memory that takes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.registry import recognised
from nacre.types.memory import NewMemory
from nacre.validation import storable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["user", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
DEEP = "[" * 100_000
HUGE_NUMBER = "9" * 10_000


def read(importer: Importer, path: Path) -> tuple[list[NewMemory], list[Refused]]:
    """What comes of a file, and what does not."""
    found = list(importer.read(Source(path)))
    memories = [each for each in found if isinstance(each, NewMemory)]
    assert all(each.key and storable(each.key) and len(each.key) <= 512 for each in memories)
    assert all(storable(each.text) and not each.text.isspace() for each in memories)
    return memories, [each for each in found if isinstance(each, Refused)]


def turns(memories: Iterable[NewMemory]) -> list[tuple[str | None, int | None, Any, str]]:
    """Session, position, who and what, in order."""
    said = [(each.session, each.position, each.metadata.get("role"), each.text) for each in memories]
    return sorted(said, key=lambda each: (each[0] or "", each[1] or 0))


def texts(memories: Iterable[NewMemory]) -> list[str]:
    return [text for *_, text in turns(memories)]


def lines(path: Path, values: Iterable[object], *, encoding: str = "utf-8", end: str = "\n") -> Path:
    """JSON Lines. A text stands for itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in values)
    path.write_text("".join(f"{each}{end}" for each in content), encoding, errors="surrogatepass", newline="")
    return path


def most_bytes(importer: Importer, path: Path) -> tuple[int, int]:
    """How many memories come of a file, and how many bytes its reading holds at most."""
    tracemalloc.start()
    try:
        count = sum(isinstance(each, NewMemory) for each in importer.read(Source(path)))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def is_recognised(importer: Importer, path: Path) -> bool:
    return recognised(path) is importer
