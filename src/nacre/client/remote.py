"""`RemoteNacre`: the verbs of the engine on a server. `connect` makes one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from nacre.client.server import Place, Server, place_of, server_of
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput

if TYPE_CHECKING:
    from nacre.client.connection import Connection

P = ParamSpec("P")
R = TypeVar("R")

TIMEOUT_S = 60.0  # as long as a server works at one request
RETRIES = 2


def connect(
    url: str,
    *,
    token: str | None = None,
    space: str | None = None,
    timeout_s: float = TIMEOUT_S,
    retries: int = RETRIES,
) -> RemoteNacre:
    """The memory of a server, as `nacre serve` starts one. Nothing is sent before the first call.

    Args:
        url: Of the server, such as http://127.0.0.1:8642.
        token: An access token; None takes that of the environment variable NACRE_TOKEN, if there is one.
        space: The space to remember in and to search; None leaves it to the token, or else to the server.
        timeout_s: How long a call may take, with all its attempts; of a stream, the longest wait for its next part.
        retries: How often a request is sent again if the server cannot be reached, or its answer was lost.
    """
    require()
    from nacre.client.connection import Connection

    server, place = checked(url, token, space, timeout_s, retries)
    return RemoteNacre(Connection(server), place)


def checked(url: str, token: str | None, space: str | None, timeout_s: float, retries: int) -> tuple[Server, Place]:
    """The server and the place that are meant. Raises InvalidInput for what is not allowed."""
    return server_of(url, token, timeout_s, retries), place_of(space)


def require() -> None:
    """Raise InvalidInput where the package that sends requests is not installed."""
    if importlib.util.find_spec("httpx") is None:
        hint = "install it with `pip install 'nacre-memory[client]'`"
        raise InvalidInput("httpx", f"the package is missing; {hint}")


def check_within(*, observe: object) -> None:
    """Raise InvalidInput for what only an engine of this process can be asked for."""
    if observe is not None:
        raise InvalidInput("observe", "is a function, which a server cannot call; leave it out")


def _verb(verb: Callable[Concatenate[Nacre, P], R]) -> Callable[Concatenate[RemoteNacre, P], R]:
    """The same verb on a server."""

    @wraps(verb)
    def call(self: RemoteNacre, /, *args: P.args, **named: P.kwargs) -> R:
        return cast("R", self._call(verb, args, named))

    return call


class RemoteNacre:
    """A memory on a server. Made by `nacre.connect`; close it, or use it as a context manager.

    Its verbs are those of `nacre.Nacre`, with the same arguments, results and errors. Threads may share it.
    """

    def __init__(self, connection: Connection, place: Place, *, closes: bool = True) -> None:
        self._connection = connection
        self._place = place
        self._closes = closes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Closing again does nothing."""
        if self._closes:
            self._connection.close()

    def within(
        self,
        space: str,
        *,
        confined: bool | Sequence[str] = True,
        log: bool = True,
        observe: Callable[[str, float], None] | None = None,
    ) -> RemoteNacre:
        """The same memory in another space, over the same connections. `confined` is as in `nacre.open`.

        With `log=False` its searches do not enter the recall log.
        """
        check_within(observe=observe)
        return RemoteNacre(self._connection, self._place.within(space, confined, log=log), closes=False)

    def _call(self, verb: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self._connection.call(self._place, verb, args, named)

    # ---- writing

    remember = _verb(Nacre.remember)
    remember_many = _verb(Nacre.remember_many)
    remember_batches = _verb(Nacre.remember_batches)
    update = _verb(Nacre.update)
    forget = _verb(Nacre.forget)
    restore = _verb(Nacre.restore)
    purge = _verb(Nacre.purge)
    screen = _verb(Nacre.screen)
    audit = _verb(Nacre.audit)

    # ---- export and import

    export = _verb(Nacre.export)
    load = _verb(Nacre.load)
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
    every = _verb(Nacre.every)
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

    reembed = _verb(Nacre.reembed)
    backup = _verb(Nacre.backup)
    check = _verb(Nacre.check)
    rebuild = _verb(Nacre.rebuild)
