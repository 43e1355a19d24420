"""Server-sent events: tells clients what changed in their spaces while they listen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from nacre.errors import NacreError
from nacre.http_api.answers import EVENTS, Answer, Refusal
from nacre.http_api.limits import HEARTBEAT_S, LISTENERS_MAX, POLL_S, STALLED_S
from nacre.http_api.requests import Gone, Receive, Send, until_gone
from nacre.serialization import encode
from nacre.types.changes import ChangePage
from nacre.types.memory import Json


class Watch:
    """Wakes those who listen when the store has changed. It looks as long as somebody listens, once for all."""

    def __init__(self, last: Callable[[], Awaitable[int]]) -> None:
        """`last` gives the number of the last change of the store."""
        self._last = last
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def __enter__(self) -> None:
        if self._listeners >= LISTENERS_MAX:
            raise Refusal(503, "Busy", f"{LISTENERS_MAX} clients listen already; ask again later", {"retry-after": "5"})
        self._listeners += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    def __exit__(self, *_: object) -> None:
        self._listeners -= 1
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    def next_change(self) -> asyncio.Event:
        """Is set with the next change from now on."""
        return self._changed

    async def _look(self) -> None:
        seen = -1
        while True:
            with suppress(Exception):  # a store that is locked or away is asked again
                last = await self._last()
                if last != seen:
                    seen = last
                    self._wake()
            await asyncio.sleep(POLL_S)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def stream(
    watch: Watch,
    since: int | None,
    changes: Callable[[int | None], Awaitable[ChangePage]],
    receive: Receive,
    send: Send,
) -> None:
    """Send changes as they come, until the client goes away or the server stops.

    `changes` gives those after a number, and raises if the client may not see them any more.
    """
    with watch:
        changed = watch.next_change()
        page = await changes(since)
        headers = [each for each in Answer(200, b" ", EVENTS).raw_headers() if each[0] != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.ensure_future(until_gone(receive))
        try:
            ready = since if since is not None else page.seq
            await _send(send, _event("ready", {"seq": ready}, ready))
            while True:
                for each in page.changes:
                    await _send(send, _event("change", encode.change(each), each.seq))
                if not page.more:
                    waiting = asyncio.ensure_future(changed.wait())
                    await asyncio.wait((gone, waiting), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                if gone.done():
                    break
                changed = watch.next_change()  # before the look, so that none is missed
                page = await changes(page.seq)
                if not page.changes:
                    await _send(send, b": still here\n\n")
        except OSError:  # also a TimeoutError
            raise Gone from None
        except (Refusal, NacreError):
            pass  # a client that connects again is told what is wrong
        except Exception:
            if gone.done():
                return
            raise
        finally:
            gone.cancel()
        await _send(send, b"", more=False)  # where the client is still there


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(STALLED_S):
        await send({"type": "http.response.body", "body": body, "more_body": more})


def _event(name: str, data: Json, number: int | None = None) -> bytes:
    numbered = "" if number is None else f"id: {number}\n"
    return f"{numbered}event: {name}\ndata: {encode.dumps(data, indent=None)}\n\n".encode("utf-8", "replace")
