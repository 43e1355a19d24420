"""A thread pool that is created on first use, and results that are computed in it ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from nacre.errors import StoreUnavailable
from nacre.runtime import forks
from nacre.runtime.lru import LruCache

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

P = ParamSpec("P")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@cache
def _go_first() -> None:
    forks.go_first()


class Threads:
    """Runs calls in threads. The pool is created on first use, because its import alone takes milliseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        """The threads of the pool are the parent's."""
        self._lock = threading.Lock()
        self._executor = None

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                _go_first()
                self._executor = ThreadPoolExecutor(thread_name_prefix="nacre")
        try:
            if forks.is_at_work():
                return self._executor.submit(_as_part, partial(call, *args, **kwargs))
            return self._executor.submit(call, *args, **kwargs)
        except RuntimeError:  # `close` has shut it down
            raise StoreUnavailable("store: it is closed; open it again") from None

    def close(self) -> None:
        """Wait for the calls that were started, and refuse new ones."""
        if self._executor is not None and forks.usable():
            self._executor.shutdown()


def _as_part(call: Callable[[], T]) -> T:
    """A call that another one waits for, which is at work in native code."""
    with forks.at_work(part=True):
        return call()


class AheadCache(Generic[K, T]):
    """Results by text, or by what else they depend on. One may be computed in a thread ahead of its use, and the most
    recent are kept."""

    def __init__(self, threads: Threads, maxsize: int) -> None:
        self._threads = threads
        self._maxsize = maxsize
        self._started: LruCache[K, Future[T]] = LruCache(maxsize)
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        """What the parent's threads compute never arrives here."""
        self._started = LruCache(self._maxsize)

    def start(self, key: K, call: Callable[[K], T]) -> None:
        """Compute a result in a thread. `result` reports what goes wrong."""
        with suppress(StoreUnavailable):
            self._future(key, call)

    def wait(self, key: K) -> None:
        """Until a result that was started is there, or has failed. Nothing is started."""
        known = self._started.get(key)
        if known is not None:
            known.exception()

    def result(self, key: K, call: Callable[[K], T]) -> T:
        """A result, computed now unless it was started before. Raises what the call raises, and forgets it then."""
        try:
            return self._future(key, call).result()
        except Exception:
            self._started.pop(key)
            raise

    def _future(self, key: K, call: Callable[[K], T]) -> Future[T]:
        known = self._started.get(key)
        if known is None:
            known = self._threads.start(call, key)
            self._started.put(key, known)
        return known
