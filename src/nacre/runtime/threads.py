"""A thread pool that is created on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from nacre.errors import StoreUnavailable

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Runs calls in threads. The pool is created on first use, because its import alone takes milliseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                self._executor = ThreadPoolExecutor(thread_name_prefix="nacre")
        try:
            return self._executor.submit(call, *args, **kwargs)
        except RuntimeError:  # `close` has shut it down
            raise StoreUnavailable("store: it is closed; open it again") from None

    def close(self) -> None:
        """Wait for the calls that were started, and refuse new ones."""
        if self._executor is not None:
            self._executor.shutdown()
