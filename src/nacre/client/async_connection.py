"""Calls verbs on a server from async programs. Cancelling a call closes its request at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from itertools import chain
from typing import Any

import httpx

from nacre.client import answers, requests, retries, transport, uploads
from nacre.client.answers import Head
from nacre.client.requests import Refuse, Request
from nacre.client.retries import Attempts
from nacre.client.server import Place, Server
from nacre.client.threads import steps


class AsyncConnection:
    """Requests to one server, over connections that are used again. The counterpart of `Connection`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closed = False
        self._http = transport.opened(httpx.AsyncClient, server)
        self._loop: asyncio.AbstractEventLoop | None = None  # the one that the connections belong to

    async def close(self) -> None:
        self._closed = True
        if self._loop is asyncio.get_running_loop():
            await self._http.aclose()

    def _client(self) -> httpx.AsyncClient:
        """One of this event loop. Those of a loop that has ended are left behind with it."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not loop:
            if not self._loop.is_closed():
                raise transport.of_another_loop(self._server)
            self._http = transport.opened(httpx.AsyncClient, self._server)
        self._loop = loop
        return self._http

    async def call(
        self, place: Place, verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        if verb.__name__ == "remember_many":
            batches = self._remember(place, uploads.parts(verb, args, named))
            return list(chain.from_iterable([each async for each in batches]))
        request = requests.request_of(verb, args, named)
        head, body = await self._ask(place, request)
        return answers.result(request.verb, head, body, self._server.url)

    def stream(
        self, place: Place, verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        match verb.__name__:
            case "remember_batches":
                return self._remember(place, uploads.parts(verb, args, named))
            case "load":
                upload = requests.upload_of(verb, args, named)
                return self._items(place, upload.request, upload.chunks, upload.refused)
        return self._items(place, requests.request_of(verb, args, named), None, None)

    async def _remember(self, place: Place, parts: Iterator[uploads.Part]) -> AsyncGenerator[Any, None]:
        async with aclosing(steps(lambda: parts)) as each_part:  # in a thread: the caller's items may take time
            async for part in each_part:
                head, body = await self._ask(place, part.request)
                for each in answers.remembered(part, head, body, self._server.url):
                    yield each

    async def _ask(self, place: Place, request: Request) -> tuple[Head, bytes]:
        response = await self._send(place, request, None)
        return transport.head_of(response), response.content

    async def _items(
        self, place: Place, request: Request, chunks: Iterator[bytes] | None, refused: Refuse | None
    ) -> AsyncGenerator[Any, None]:
        response = await self._send(place, request, chunks, stream=True)
        try:
            head, lines, url = transport.head_of(response), answers.Lines(), self._server.url
            answers.check(head, await response.aread() if head.status >= 300 else b"", url)
            async for chunk in response.aiter_bytes():
                for each in answers.items(request.verb, lines.of(chunk), refused, head, url):
                    yield each
            lines.check_end(url)
        except httpx.HTTPError as error:
            told = transport.closed(self._server) if self._closed else transport.error_of(error, self._server)
            raise told from error
        finally:
            await response.aclose()

    async def _send(
        self, place: Place, request: Request, chunks: Iterator[bytes] | None, *, stream: bool = False
    ) -> httpx.Response:
        """The answer, also after further attempts. Of a stream it is only begun."""
        if self._closed:
            raise transport.closed(self._server)
        http = self._client()
        attempts = Attempts(self._server, request, streams=chunks is not None)
        while True:
            response = problem = None
            try:
                built = http.build_request(
                    request.method,
                    self._server.url + request.target,
                    content=request.body if chunks is None else steps(lambda: chunks),
                    headers=transport.headers(request, place),
                    timeout=transport.timeout(attempts.left_s()),
                )
                response = await http.send(built, stream=True)
                failure = retries.failure_of(response.status_code, response.headers)
                if failure or not stream:
                    await response.aread()
            except httpx.HTTPError as error:
                problem, failure = error, transport.failure_of(error)
            pause = None if failure is None else attempts.pause_s(failure)
            if pause is not None:
                await asyncio.sleep(pause)
            elif problem is not None:
                raise transport.error_of(problem, self._server) from problem
            else:
                assert response is not None
                return response
