"""Engines with ids that count up and clocks that stand still, on stores of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.interfaces import Store
from nacre.types.memory import NewMemory
from nacre.types.search import SearchResult
from stores import Stores

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def numbered_ids(prefix: str = "m", digits: int = 1) -> Callable[[datetime, int], list[str]]:
    """Ids in the order in which they are made: m0, m1, …"""
    numbers = count()
    return lambda _, wanted: [f"{prefix}{next(numbers):0{digits}}" for _ in range(wanted)]


def opened(store: Store, *items: str | NewMemory, **options: Any) -> Nacre:
    """An engine that holds these memories, whose ids are m0, m1, … in their order.

    It logs nothing, because a logged search moves the scores of the next one, and it reads no facts from texts.
    """
    usual: dict[str, Any] = {
        "zone": UTC,
        "log": False,
        "extract": False,
        "clock": lambda: NOW,
        "timer": lambda: 0.0,
        "make_ids": numbered_ids(),
    }
    made = Nacre(store, options.pop("embedder", Hashing()), **(usual | options))
    for item in items:
        made.remember(item)
    return made


@contextmanager
def make_engines(kind: str, folder: Path) -> Iterator[Callable[..., Nacre]]:
    """Opens engines like `opened`, each on a new store of this kind. At the end all stores are closed."""
    with Stores(kind, folder) as stores:

        def make(*items: str | NewMemory, **options: Any) -> Nacre:
            return opened(stores.open(), *items, **options)

        yield make


def said(*texts: str, session: str | None = "s", **others: Any) -> list[NewMemory]:
    """The turns of a session in order."""
    return [
        NewMemory(text=text, session=session, position=None if session is None else place, **others)
        for place, text in enumerate(texts)
    ]


def scores(result: SearchResult) -> dict[str, float]:
    return {hit.id: hit.score for hit in result.hits}
