"""Calls verbs of a local engine from async programs, each in a thread. One that is cancelled ends there by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar, cast

from nacre.engine.engine import Nacre

T = TypeVar("T")

_END: Final = object()


async def call(memory: Nacre, verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    return await asyncio.to_thread(verb, memory, *args, **named)


def stream(
    memory: Nacre, verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    return steps(partial(verb, memory, *args, **named))


async def steps(make: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
    """An iterator that is made, asked and closed in one thread: what a store reads belongs to its thread."""
    own = ThreadPoolExecutor(1, "nacre-stream")
    loop = asyncio.get_running_loop()
    items: list[Iterator[T]] = []

    def step() -> object:
        if not items:
            items.append(make())
        return next(items[0], _END)

    def close() -> None:
        end = getattr(items[0], "close", None) if items else None
        if end is not None:
            end()

    try:
        while (item := await loop.run_in_executor(own, step)) is not _END:
            yield cast("T", item)
    finally:
        own.submit(close)  # not awaited: after a cancellation, a step may still be running before it
        own.shutdown(wait=False)
