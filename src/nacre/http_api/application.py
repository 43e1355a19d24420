"""The ASGI application: which request goes where, who may send it, and what becomes of its answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from nacre.engine.engine import Nacre
from nacre.errors import NacreError
from nacre.hooks.listener import Listener
from nacre.http_api import events, page, repeated, special, streams, verbs
from nacre.http_api.agents import Agents, SpacesOfTokens
from nacre.http_api.answers import EVENTS, Answer, Refusal, failure, with_common
from nacre.http_api.callers import Caller, Callers
from nacre.http_api.engines import Engines
from nacre.http_api.limits import CALLS_AT_ONCE, REQUEST_S, STREAMS_AT_ONCE, WAITING_MAX
from nacre.http_api.metrics import Metrics
from nacre.http_api.options import Options
from nacre.http_api.protocol import abort, stopping, takes_long
from nacre.http_api.requests import (
    Gone,
    Receive,
    Request,
    Scope,
    Send,
    chunks,
    request_of,
    until_gone,
    whole_body,
)
from nacre.http_api.verbs import Match
from nacre.serialization.routes import PREFIX, SPACE_HEADER, SPACES_HEADER
from nacre.types.changes import ChangePage

T = TypeVar("T")

_log = logging.getLogger("nacre.access")
_SPACE: Final = SPACE_HEADER.lower()
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Busy:
    """Runs calls in threads, and refuses them where too many wait."""

    def __init__(self, at_once: int, waiting_max: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(at_once, thread_name_prefix=name)
        self._most = at_once + waiting_max
        self._now = 0

    async def run(self, call: Callable[[], T]) -> T:
        if self._now >= self._most:
            raise Refusal(503, "Busy", "the server has too much to do; send it again later", {"retry-after": "1"})
        self._now += 1
        task = asyncio.get_running_loop().run_in_executor(self._executor, call)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[T]) -> None:
        self._now -= 1
        if not task.cancelled():
            task.exception()  # of a call that nobody waits for any more, nothing is to be said

    def close(self) -> None:
        self._executor.shutdown()


class Application:
    """Answers requests for one store. `opened` opens it when the server starts."""

    def __init__(
        self,
        opened: Callable[[], Nacre],
        options: Options,
        hooks: Callable[[Callable[[str], Nacre]], Listener] | None = None,
    ) -> None:
        """`hooks` makes what answers the hooks of this machine's user, by the engines of their spaces."""
        self._opened = opened
        self._options = options
        self._hooks = hooks
        self._listener: Listener | None = None
        self._ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    # ---- start and stop

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        """Open the store, and get ready to answer."""
        options = self._options
        self._calls = Busy(CALLS_AT_ONCE, WAITING_MAX, "nacre-http")
        self._streams = Busy(STREAMS_AT_ONCE, STREAMS_AT_ONCE, "nacre-stream")
        root = await asyncio.get_running_loop().run_in_executor(None, self._opened)
        self._metrics = Metrics(root)
        self._engines = Engines(root, self._metrics.stage)
        self._callers = Callers(
            root,
            token_needed=options.token_needed,
            hosts=options.hosts,
            requests_per_minute=options.requests_per_minute,
        )
        self._watch = events.Watch(lambda: self._calls.run(lambda: root.changes().seq))
        spaces = SpacesOfTokens(self._engines, options.space, options.space if options.fixed_space else None)
        self._agents = Agents(spaces, options.tools, sessions=options.workers == 1)
        await self._agents.start()
        if self._hooks is not None:
            self._listener = self._hooks(spaces.memory)
            self._listener.start()
        self._ready = True

    async def stop(self) -> None:
        """Let requests in work end, and close the store."""
        self._ready = False
        await self._agents.stop()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._streams.close()
        self._calls.close()
        self._engines.close()

    # ---- requests

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        told = _Told(send)
        try:
            await self._route(request_of(scope), scope, receive, told)
        except (Gone, asyncio.CancelledError):  # it is cancelled where the server stops, and it does not end
            await abort(scope)
        except TimeoutError:
            said = f"the request took longer than {REQUEST_S:g} s; what it has begun goes on"
            await told.all(failure(Refusal(503, "TimedOut", said)))
        except Exception as error:
            if not told.started:
                await told.all(failure(error))
            elif not isinstance(error, NacreError | Refusal | OSError):
                _log.error("a request failed after its answer had begun", exc_info=error)
        finally:
            seconds = time.perf_counter() - started
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, told.place, told.status, seconds)
            _log.info("%s %s %s %d %.1f ms", told.caller, method, told.place, told.status, 1000 * seconds)

    async def _route(self, request: Request, scope: Scope, receive: Receive, told: _Told) -> None:
        self._callers.check_origin(request.headers)
        path = request.path
        if not path.startswith(PREFIX + "/") and path not in ("/mcp", "/metrics"):
            await told.all(self._open_answer(request, told))
            return
        self._callers.check_site(request.headers)  # a link to the page itself may be followed
        caller = (await self._caller(request)).narrowed(request.headers.get(SPACES_HEADER.lower()))
        told.caller = caller.id
        if path == "/mcp":
            told.place = path
            await self._agents.answer(caller, scope, _until(stopping(scope), receive), told)
        elif path == "/metrics":
            told.place = path
            caller.check("admin", everything=True)
            if request.method != "GET":
                raise _wrong_method(("GET",))
            await told.all(await self._calls.run(self._metrics.answer))
        else:
            await self._verb(request, caller, scope, receive, told)

    def _open_answer(self, request: Request, told: _Told) -> Answer:
        """What needs no token, because it says nothing of the store."""
        found = special.open_answer(request) or page.answer(request)
        if found is None:
            raise _nothing_at(request.path)
        told.place = request.path if request.path in special.OPEN else "/ui"
        if request.method not in ("GET", "HEAD"):
            raise _wrong_method(("GET", "HEAD"))
        if request.path == "/readyz" and not self._ready:
            raise Refusal(503, "NotReady", "the server is stopping")
        return found

    async def _caller(self, request: Request) -> Caller:
        if self._callers.needs_store(request.headers):
            return await self._calls.run(lambda: self._callers.of(request.headers, request.address))
        return self._callers.of(request.headers, request.address)

    async def _verb(self, request: Request, caller: Caller, scope: Scope, receive: Receive, told: _Told) -> None:
        found = verbs.matching(request.method, request.path)
        if found is None:
            await self._special(request, caller, receive, told)
            return
        route = found.verb.route
        told.place = PREFIX + route.path
        caller.check(route.role)
        verbs.check_flags(found.verb, request)
        space = caller.space(request.headers.get(_SPACE), self._options.space)
        if route.lines_out:
            await self._stream(found, request, caller, space, scope, receive, told)
        elif route.verb == "changes" and EVENTS in request.headers.get("accept", ""):
            await self._events(found, request, caller, space, _until(stopping(scope), receive), told)
        else:
            body = await whole_body(request.headers, receive)
            await told.all(await self._in_time(lambda: self._called(found, request, caller, space, body)))

    def _called(self, found: Match, request: Request, caller: Caller, space: str, body: bytes) -> Answer:
        """Call the verb, in a thread."""
        with self._engines.of(space, caller.spaces, log=request.logged) as memory:

            def call() -> Answer:
                given = verbs.arguments_of(found, request, body)
                if found.verb.route.verb == "backup":
                    given["to"] = special.backup_path(given["to"], self._options.backups)
                started = time.perf_counter()
                try:
                    return verbs.answer(found, memory, request, given)
                finally:
                    self._metrics.verb(found.verb.route.verb, time.perf_counter() - started)

            if found.verb.route.safe:
                return call()
            return repeated.answer(self._engines.root, found.verb, request, caller, space, body, call)

    async def _special(self, request: Request, caller: Caller, receive: Receive, told: _Told) -> None:
        """What is no verb: the session, one memory by its path, and the evaluation."""
        found = special.matching(request.method, request.path)
        if found is None:
            known = (*verbs.methods(request.path), *special.methods(request.path))
            if known:
                raise _wrong_method(known)
            raise _nothing_at(request.path)
        told.place = found.template
        caller.check("read")
        await whole_body(request.headers, receive)
        space = caller.space(request.headers.get(_SPACE), self._options.space)

        def call() -> Answer:
            with self._engines.of(space, caller.spaces, log=request.logged) as memory:
                return special.answer(found, memory, request, caller, space)

        await told.all(await self._in_time(call))

    async def _in_time(self, call: Callable[[], Answer]) -> Answer:
        async with asyncio.timeout(REQUEST_S):
            return await self._calls.run(call)

    async def _stream(
        self, found: Match, request: Request, caller: Caller, space: str, scope: Scope, receive: Receive, told: _Told
    ) -> None:
        reads = found.verb.route.lines_in is not None
        if not found.verb.route.safe:
            repeated.check_no_key(request)
        body = b"" if reads else await whole_body(request.headers, receive)
        pipe = streams.Pipe(asyncio.get_running_loop(), chunks(receive), told)
        if reads:
            takes_long(scope)
            gone = None
        else:
            gone = asyncio.ensure_future(until_gone(receive))
            gone.add_done_callback(lambda _: pipe.close())

        def call() -> None:
            with self._engines.of(space, caller.spaces, log=request.logged) as memory:
                streams.run(found, memory, request, verbs.arguments_of(found, request, body), pipe)

        try:
            await self._streams.run(call)
        finally:
            pipe.close()
            if gone is not None:
                gone.cancel()

    async def _events(
        self, found: Match, request: Request, caller: Caller, space: str, receive: Receive, told: _Told
    ) -> None:
        given = verbs.arguments_of(found, request, b"")
        last = request.headers.get("last-event-id")
        since = given.pop("since", None) if last is None else verbs.number("Last-Event-ID", last)

        def look(after: int | None) -> ChangePage:
            self._callers.recheck(caller, request.headers)
            with self._engines.of(space, caller.spaces) as memory:
                return memory.changes(**{**given, "since": after})

        await events.stream(self._watch, since, lambda after: self._calls.run(lambda: look(after)), receive, told)


class _Told:
    """Sends, and remembers what was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.caller = "-"
        self.place = "-"  # the path as the table has it: with ids, numbers by path would have no end
        self.status = 0

    @property
    def started(self) -> bool:
        return self.status > 0

    async def __call__(self, event: Any) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            event = {**event, "headers": with_common(event.get("headers", ()))}
        await self._send(event)

    async def all(self, answer: Answer) -> None:
        await self({"type": "http.response.start", "status": answer.status, "headers": answer.raw_headers()})
        await self({"type": "http.response.body", "body": answer.body})


def _until(stop: asyncio.Event, receive: Receive) -> Receive:
    """A `receive` that says that the client has gone when the server stops."""

    async def until() -> MutableMapping[str, Any]:
        event, stopped = asyncio.ensure_future(receive()), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((event, stopped), return_when=asyncio.FIRST_COMPLETED)
            return event.result() if event.done() else {"type": "http.disconnect"}
        finally:
            event.cancel()
            stopped.cancel()

    return until


def _nothing_at(path: str) -> Refusal:
    return Refusal(404, "NotFound", f"there is nothing at {path[:200]!r}; see /openapi.json")


def _wrong_method(known: tuple[str, ...]) -> Refusal:
    allowed = ", ".join(known)
    return Refusal(405, "MethodNotAllowed", f"only {allowed} can be sent to this path", {"allow": allowed})
