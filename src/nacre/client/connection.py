"""Calls verbs on a server. Threads may share a connection; answers that stream are read while they arrive."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import httpx

from nacre.client import answers, requests, retries, transport, uploads
from nacre.client.answers import Head
from nacre.client.requests import Refuse, Request
from nacre.client.retries import Attempts
from nacre.client.server import Place, Server
from nacre.serialization.routes import ROUTES


class Connection:
    """Requests to one server, over connections that are used again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closed = False
        self._http = transport.opened(httpx.Client, server)
        self._process = os.getpid()

    def close(self) -> None:
        self._closed = True
        self._client().close()

    def _client(self) -> httpx.Client:
        """One of this process: after a fork, parent and child would read each other's answers."""
        if self._process != os.getpid():
            self._http = transport.opened(httpx.Client, self._server)
            self._process = os.getpid()
        return self._http

    def call(self, place: Place, verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        match verb.__name__:
            case "remember_many":
                return list(chain.from_iterable(self._remember(place, uploads.parts(verb, args, named))))
            case "remember_batches":
                return self._remember(place, uploads.parts(verb, args, named))
            case "load":
                upload = requests.upload_of(verb, args, named)
                return self._items(place, upload.request, upload.chunks, upload.refused)
        request = requests.request_of(verb, args, named)
        if ROUTES[request.verb].lines_out:
            return self._items(place, request, None, None)
        head, body = self._ask(place, request)
        return answers.result(request.verb, head, body, self._server.url)

    def _remember(self, place: Place, parts: Iterator[uploads.Part]) -> Iterator[Any]:
        for part in parts:
            head, body = self._ask(place, part.request)
            yield from answers.remembered(part, head, body, self._server.url)

    def _ask(self, place: Place, request: Request) -> tuple[Head, bytes]:
        response = self._send(place, request, None)
        return transport.head_of(response), response.content

    def _items(
        self, place: Place, request: Request, chunks: Iterator[bytes] | None, refused: Refuse | None
    ) -> Iterator[Any]:
        response = self._send(place, request, chunks, stream=True)
        try:
            head, lines, url = transport.head_of(response), answers.Lines(), self._server.url
            answers.check(head, response.read() if head.status >= 300 else b"", url)
            for chunk in response.iter_bytes():
                yield from answers.items(request.verb, lines.of(chunk), refused, head, url)
            lines.check_end(url)
        except httpx.HTTPError as error:
            told = transport.closed(self._server) if self._closed else transport.error_of(error, self._server)
            raise told from error
        finally:
            response.close()

    def _send(
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
                    content=request.body if chunks is None else chunks,
                    headers=transport.headers(request, place),
                    timeout=transport.timeout(attempts.left_s()),
                )
                response = http.send(built, stream=True)
                failure = retries.failure_of(response.status_code, response.headers)
                if failure or not stream:
                    response.read()
            except httpx.HTTPError as error:
                problem, failure = error, transport.failure_of(error)
            pause = None if failure is None else attempts.pause_s(failure)
            if pause is not None:
                time.sleep(pause)
            elif problem is not None:
                raise transport.error_of(problem, self._server) from problem
            else:
                assert response is not None
                return response
