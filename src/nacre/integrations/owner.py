"""What adapters of an engine have in common: they may own it, and they wait for it off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from typing import Any, Self, TypeVar

from nacre.engine.engine import Nacre
from nacre.integrations.parts import opened

T = TypeVar("T")


class Owner:
    """Has an engine, and closes it if it was opened here. A context manager."""

    def __init__(self, memory: Nacre | str | PathLike[str], **options: Any) -> None:
        self.memory, self._ours = opened(memory, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._ours:
            self.memory.close()


async def in_thread(verb: Callable[..., T], *given: Any, **named: Any) -> T:
    """Call a verb without blocking the event loop. A caller that is cancelled goes on once the verb is done."""
    task = asyncio.ensure_future(asyncio.to_thread(verb, *given, **named))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # has been seen
        raise
