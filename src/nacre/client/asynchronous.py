"""`AsyncNacre`: the verbs of the engine for async programs, on a server or on an engine in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from nacre.client import threads
from nacre.client.remote import RETRIES, TIMEOUT_S, check_within, checked, require
from nacre.client.server import Place
from nacre.engine.engine import Nacre

if TYPE_CHECKING:
    from nacre.client.async_connection import AsyncConnection

P = ParamSpec("P")
R = TypeVar("R")


def connect_async(
    url: str,
    *,
    token: str | None = None,
    space: str | None = None,
    timeout_s: float = TIMEOUT_S,
    retries: int = RETRIES,
) -> AsyncNacre:
    """The memory of a server for async programs. The arguments are those of `nacre.connect`."""
    require()
    from nacre.client.async_connection import AsyncConnection

    server, place = checked(url, token, space, timeout_s, retries)
    return AsyncNacre(_Remote(AsyncConnection(server), place))


class _Remote:
    """A place on a server."""

    def __init__(self, connection: AsyncConnection, place: Place, *, closes: bool = True) -> None:
        self._connection = connection
        self._place = place
        self._closes = closes

    async def call(self, verb: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return await self._connection.call(self._place, verb, args, named)

    def stream(
        self, verb: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        return self._connection.stream(self._place, verb, args, named)

    def within(
        self, space: str, confined: bool | Sequence[str], log: bool, observe: Callable[[str, float], None] | None
    ) -> _Remote:
        check_within(observe=observe)
        return _Remote(self._connection, self._place.within(space, confined, log=log), closes=False)

    async def close(self) -> None:
        if self._closes:
            await self._connection.close()


class _Local:
    """An engine in this process, whose verbs run in threads."""

    def __init__(self, memory: Nacre) -> None:
        self._memory = memory

    async def call(self, verb: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return await threads.call(self._memory, verb, args, named)

    def stream(
        self, verb: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        return threads.stream(self._memory, verb, args, named)

    def within(
        self, space: str, confined: bool | Sequence[str], log: bool, observe: Callable[[str, float], None] | None
    ) -> _Local:
        return _Local(self._memory.within(space, confined=confined, log=log, observe=observe))

    async def close(self) -> None:
        await asyncio.to_thread(self._memory.close)


def _verb(verb: Callable[Concatenate[Nacre, P], R]) -> Callable[Concatenate[AsyncNacre, P], Coroutine[Any, Any, R]]:
    """The same verb as a coroutine."""

    @wraps(verb)
    async def call(self: AsyncNacre, /, *args: P.args, **named: P.kwargs) -> R:
        return cast("R", await self._on.call(verb, args, named))

    return call


def _stream(
    verb: Callable[Concatenate[Nacre, P], Iterator[R]],
) -> Callable[Concatenate[AsyncNacre, P], AsyncGenerator[R, None]]:
    """The same verb as an async iterator."""

    @wraps(verb)
    def stream(self: AsyncNacre, /, *args: P.args, **named: P.kwargs) -> AsyncGenerator[R, None]:
        return self._on.stream(verb, args, named)

    return stream


class AsyncNacre:
    """A memory for async programs: that of a server, made by `nacre.connect_async`, or that of an engine.

    Its verbs are those of `nacre.Nacre` as coroutines, and as async iterators where those are iterators. A call on a
    server that is cancelled closes its request at once. One on an engine runs in a thread, which ends by itself.
    """

    def __init__(self, memory: Nacre | _Remote | _Local) -> None:
        self._on = _Local(memory) if isinstance(memory, Nacre) else memory

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, or the engine. Closing again does nothing."""
        await self._on.close()

    def within(
        self,
        space: str,
        *,
        confined: bool | Sequence[str] = True,
        log: bool = True,
        observe: Callable[[str, float], None] | None = None,
    ) -> AsyncNacre:
        """The same memory in another space. `confined` is as in `nacre.open`. Close it before this one."""
        return AsyncNacre(self._on.within(space, confined, log, observe))

    # ---- writing

    remember = _verb(Nacre.remember)
    remember_many = _verb(Nacre.remember_many)
    remember_batches = _stream(Nacre.remember_batches)
    update = _verb(Nacre.update)
    forget = _verb(Nacre.forget)
    restore = _verb(Nacre.restore)
    purge = _verb(Nacre.purge)
    screen = _verb(Nacre.screen)
    audit = _stream(Nacre.audit)

    # ---- export and import

    export = _stream(Nacre.export)
    load = _stream(Nacre.load)
    changes = _verb(Nacre.changes)

    # ---- finding

    search = _verb(Nacre.search)
    why = _verb(Nacre.why)
    why_not = _verb(Nacre.why_not)
    related = _verb(Nacre.related)
    facets = _verb(Nacre.facets)
    context = _verb(Nacre.context)
    count_tokens = _verb(Nacre.count_tokens)

    # ---- reading

    timeline = _verb(Nacre.timeline)
    get = _verb(Nacre.get)
    every = _stream(Nacre.every)
    history = _verb(Nacre.history)
    similar = _verb(Nacre.similar)
    separate = _verb(Nacre.separate)
    stats = _verb(Nacre.stats)

    # ---- facts

    state_fact = _verb(Nacre.state_fact)
    add_facts = _verb(Nacre.add_facts)
    drop_facts = _verb(Nacre.drop_facts)
    facts = _verb(Nacre.facts)
    reinforce = _verb(Nacre.reinforce)
    stale = _verb(Nacre.stale)
    conflicts = _verb(Nacre.conflicts)
    unlink = _verb(Nacre.unlink)

    # ---- entities

    add_entity = _verb(Nacre.add_entity)
    drop_entity = _verb(Nacre.drop_entity)
    entities = _verb(Nacre.entities)
    entity_counts = _verb(Nacre.entity_counts)
    related_entities = _verb(Nacre.related_entities)

    # ---- the recall log, and lenses

    receipts = _verb(Nacre.receipts)
    clear_log = _verb(Nacre.clear_log)
    mark = _verb(Nacre.mark)
    save_lens = _verb(Nacre.save_lens)
    drop_lens = _verb(Nacre.drop_lens)
    lens = _verb(Nacre.lens)
    lenses = _verb(Nacre.lenses)

    # ---- access tokens

    create_token = _verb(Nacre.create_token)
    tokens = _verb(Nacre.tokens)
    revoke_token = _verb(Nacre.revoke_token)

    # ---- upkeep

    reembed = _stream(Nacre.reembed)
    backup = _verb(Nacre.backup)
    check = _verb(Nacre.check)
    rebuild = _verb(Nacre.rebuild)
