"""Verbs that take or give any number of items: JSON Lines both ways, in constant memory.

The verb runs in one thread from beginning to end, because what it reads belongs to its thread. The event loop brings
it chunks of the body and takes chunks of the answer, so a slow client slows the verb and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NacreError
from nacre.http_api.answers import LINES, Answer, Refusal, failed
from nacre.http_api.limits import LINE_BYTES_MAX, STALLED_S
from nacre.http_api.requests import Gone, Request, Send
from nacre.http_api.verbs import KEEP_GOING, Match
from nacre.serialization import decode, encode, transfer
from nacre.serialization.numbered_lines import LineReader
from nacre.types.memory import Json, NewMemory

_CHUNK_BYTES: Final = 65_536
_PROGRESS_S: Final = 0.5  # that a line may wait for more

T = TypeVar("T")


class Pipe:
    """Carries the body to a thread and the answer from it. `read` and `write` block, and are for that thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, chunks: AsyncIterator[bytes], send: Send) -> None:
        self._loop = loop
        self._chunks = chunks
        self._send = send
        self._waiting: asyncio.Task[Any] | None = None
        self.started = False
        self.closed = False

    def close(self) -> None:
        """Nobody listens any more: what waits for the client ends with Gone. For the event loop."""
        self.closed = True
        if self._waiting is not None:
            self._waiting.cancel()

    def read(self) -> bytes:
        """The next chunk of the body; nothing at its end."""
        try:
            return self._run(lambda: anext(self._chunks, b""))
        except TimeoutError:
            said = f"nothing of the body came for {STALLED_S:g} s; send it again"
            raise Refusal(408, "TooSlow", said, {"connection": "close"}) from None

    def write(self, body: bytes, *, more: bool = True) -> None:
        try:
            self._run(lambda: self._write(body, more))
        except TimeoutError:
            raise Gone from None

    async def _write(self, body: bytes, more: bool) -> None:
        if not self.started:
            self.started = True
            headers = [each for each in Answer(200, b" ", LINES).raw_headers() if each[0] != b"content-length"]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def _run(self, step: Callable[[], Awaitable[T]]) -> T:
        return asyncio.run_coroutine_threadsafe(self._in_time(step), self._loop).result()

    async def _in_time(self, step: Callable[[], Awaitable[T]]) -> T:
        if self.closed:
            raise Gone
        self._waiting = asyncio.current_task()
        try:
            async with asyncio.timeout(STALLED_S):
                return await step()
        except TimeoutError:
            raise
        except (asyncio.CancelledError, OSError):
            raise Gone from None
        finally:
            self._waiting = None


def run(found: Match, memory: Nacre, request: Request, given: dict[str, Any], pipe: Pipe) -> None:
    """Carry out a verb that streams. An error before the first byte of the answer is raised; a later one is a line."""
    out = _Lines(pipe)

    def report(number: int, error: NacreError) -> None:
        out.add(_line({"refused": number, **encode.error(error)}))

    try:
        if found.verb.route.lines_in is not None:
            keep_going = request.flag(KEEP_GOING)
            reader = _read_items(found, pipe, report if keep_going else _raise)
            given = {**given, found.verb.route.lines_in: reader, **({"refused": reader.refuse} if keep_going else {})}
        results = found.verb.call(memory, **given)
        try:
            for line in _written(found, results):
                out.add(line)
                out.send_in_time()
            out.send()
        finally:
            close = getattr(results, "close", None)
            if close is not None:
                close()
    except Gone:
        raise
    except Exception as error:
        if not pipe.started:
            raise
        out.add(_line(failed(error)))  # after what was done before
        out.send()
    pipe.write(b"", more=False)


class _Lines:
    """Lines of the answer, sent together: a chunk each would take longer than the verb."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._parts: list[bytes] = []
        self._size, self._sent = 0, time.monotonic()

    def add(self, line: bytes) -> None:
        if self._pipe.closed:
            raise Gone
        self._parts.append(line)
        self._size += len(line)
        if self._size >= _CHUNK_BYTES:
            self.send()

    def send_in_time(self) -> None:
        """The first result at once: it shows that work has begun. Results that come slowly are its progress."""
        if not self._pipe.started or time.monotonic() - self._sent > _PROGRESS_S:
            self.send()

    def send(self) -> None:
        self._pipe.write(b"".join(self._parts))
        self._parts, self._size, self._sent = [], 0, time.monotonic()


def _written(found: Match, results: Iterator[Any]) -> Iterator[bytes]:
    if found.verb.route.verb == "export":
        return (line.encode("utf-8", "replace") for line in transfer.lines(results))
    return (_line(found.verb.write(each)) for each in results)


def _line(value: Json) -> bytes:
    return encode.dumps(value, indent=None).encode("utf-8", "replace") + b"\n"


# ---------------------------------------------------------------- lines in


def _read_items(found: Match, pipe: Pipe, report: Callable[[int, NacreError], None]) -> LineReader[Any]:
    read = transfer.read_line if found.verb.route.verb == "load" else _new_memory
    return LineReader(_lines(pipe), read, report)


def _new_memory(line: str | bytes) -> str | NewMemory:
    value = decode.json_line(line)
    return value if isinstance(value, str) else decode.new_memory(value)


def _raise(number: int, error: NacreError) -> None:
    """The answer to a bad line where it ends the request."""
    if isinstance(error, InvalidInput):
        raise InvalidInput(f"line {number}{': ' if error.field else ''}{error.field}", error.problem)
    raise error


def _lines(pipe: Pipe) -> Iterator[bytes]:
    """The lines of the body."""
    rest = b""
    while chunk := pipe.read():
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise InvalidInput("body", f"has a line of more than {LINE_BYTES_MAX:,} bytes; split it")
        yield from whole
    if rest:
        yield rest
