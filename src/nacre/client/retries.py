"""When is a request sent again, and after how long?"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nacre.client.requests import Request
from nacre.client.server import Server

_FIRST_PAUSE_S: Final = 0.2  # each further one is twice as long
_LEAST_PAUSE_S: Final = 0.1
_AWAY: Final = (502, 503, 504)  # it is starting or busy, or a proxy does not reach it


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer. unsent: the server got nothing; lost: it may have got all; status: it said why not."""

    kind: Literal["unsent", "lost", "status"]
    status: int = 0
    retry_after_s: float | None = None


def failure_of(status: int, headers: Mapping[str, str]) -> Failure | None:
    """The failure that an answer tells of, if it may pass."""
    if status not in (409, 429, *_AWAY):
        return None
    after = headers.get("retry-after", "")
    failure = Failure("status", status, float(after) if after.isdecimal() else None)
    # The first without a time is a conflict; only with one, the same request is still being carried out.
    return None if failure.retry_after_s is None and status in (409, 429) else failure


class Attempts:
    """The attempts of one call. They end with the retries that are allowed, and with the time."""

    def __init__(
        self,
        server: Server,
        request: Request,
        *,
        streams: bool = False,
        timer: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`streams`: the body is made while it is sent, so that what was sent of it cannot be sent again."""
        self._server = server
        self._repeatable = request.repeatable
        self._streams = streams
        self._timer = timer
        self._jitter = jitter
        self._until = timer() + server.timeout_s
        self._failed = 0
        self._slowed = False

    def left_s(self) -> float:
        """What is left of the time that the call may take."""
        return max(self._until - self._timer(), 0.001)

    def pause_s(self, failure: Failure) -> float | None:
        """How long to wait before the next attempt; None: that was the last."""
        if failure.kind == "lost" and not self._repeatable:
            return None
        if failure.kind == "status" and self._streams:
            return None
        if failure.status == 429:
            again, self._slowed = not self._slowed, True
        elif failure.status == 409:  # the attempt before this one is still being carried out
            again = self._repeatable
        else:
            again = self._failed < self._server.retries and (failure.kind != "status" or self._repeatable)
            self._failed += 1
        if failure.retry_after_s is not None:
            pause = max(failure.retry_after_s, _LEAST_PAUSE_S)
        else:
            pause = _FIRST_PAUSE_S * 2 ** (self._failed - 1) * (0.5 + self._jitter() / 2)
        return pause if again and pause < self.left_s() else None
