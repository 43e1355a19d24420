"""Pauses Python's garbage collector during a call."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nacre.runtime import forks


class _Pauses:
    """How many calls need the pause now. The first switches the collector off, the last switches it on again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._was_enabled = False

    def begin(self) -> None:
        with self._lock:
            if self._running == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running = max(0, self._running - 1)
            if self._running == 0 and self._was_enabled:
                gc.enable()

    def after_fork(self) -> None:
        """The calls of other threads do not go on in a child."""
        self._lock = threading.Lock()
        if self._running and self._was_enabled:
            gc.enable()
        self._running = 0


_pauses = _Pauses()
forks.renew_in_child(_pauses)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection while a search or a batch runs.

    A collection would visit thousands of new values again and again, and hardly any of them outlives the call. The
    pause applies to the whole process, so other threads collect later as well. Calls are counted: one that ends does
    not switch the collector on under another, and after the last it is as it was before the first.
    """
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
