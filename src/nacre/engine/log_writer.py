"""Writes receipts in the background: no search waits for its receipt, or fails because of it."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")  # a receipt, or what else belongs into the log

PENDING_MAX = 10_000  # receipts
ATTEMPTS_MAX = 3  # of one write, before its receipts are dropped
DELAY_S = 0.25  # until notes are written; those that come meanwhile are written with them

_log = logging.getLogger("nacre")


class LogWriter(Generic[T]):
    """Safe to use from several threads. `write` gets all receipts that are pending, in order, in one call.

    The writer is a plain thread that ends when nothing is pending. Python waits for such a thread before it
    exits, so nothing is lost by a program that never calls close; and it needs no import of its own.
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], None],
        *,
        pending_max: int = PENDING_MAX,
        attempts_max: int = ATTEMPTS_MAX,
        delay_s: float = DELAY_S,
    ) -> None:
        self._write = write
        self._pending_max = pending_max
        self._attempts_max = attempts_max
        self._delay_s = delay_s
        self._hurried = False  # a flush waits for what is pending
        self._changed = threading.Condition()
        self._noted = 0
        self._pending: deque[tuple[int, T]] = deque()  # each with its number
        self._in_flight: list[tuple[int, T]] = []
        self._working = False
        self._attempts = 0
        self._warned: set[str] = set()
        self._at_exit: Callable[[], None] | None = None
        self._closed = False

    def note(self, receipt: T) -> None:
        """Queue a receipt and return at once. After close, receipts are ignored."""
        with self._changed:
            if self._closed:
                return
            self._noted += 1
            self._pending.append((self._noted, receipt))
            self._drop_beyond_limit()
            if self._working:
                return
            self._working = True
        try:
            threading.Thread(target=self._work_later, name="nacre-journal").start()
        except RuntimeError:  # no threads are started any more while Python exits
            self._work()

    def flush(self) -> None:
        """Wait until everything noted before is written, or given up after some attempts."""
        with self._changed:
            last = self._noted
        while True:
            with self._changed:
                while self._working and self._first_unsettled() <= last:
                    self._hurried = True
                    self._changed.notify_all()
                    self._changed.wait()
                if self._first_unsettled() > last:
                    return
                self._working = True
            self._work()

    def close(self) -> None:
        """Write what is pending. Closing again does nothing."""
        with self._changed:
            self._closed = True
        self.flush()
        if self._at_exit is not None:
            atexit.unregister(self._at_exit)

    # ---- inside

    def _work_later(self) -> None:
        with self._changed:
            self._pause()
        self._work(pausing=True)

    def _pause(self) -> None:
        """While searches follow each other closely, what they deliver is written a few times a second."""
        self._changed.wait_for(lambda: self._hurried, self._delay_s)
        self._hurried = False

    def _work(self, *, pausing: bool = False) -> None:
        """Write until nothing is pending, or a write failed: that one waits for the next note, flush or close."""
        while True:
            with self._changed:
                if not self._pending:
                    self._working = False
                    self._changed.notify_all()
                    return
                self._in_flight = list(self._pending)
                self._pending.clear()
            problem: BaseException | None = None
            try:
                self._write([receipt for _, receipt in self._in_flight])
            except BaseException as error:
                problem = error
            with self._changed:
                self._settle(problem)
                self._changed.notify_all()
                if problem is None:
                    if pausing and self._pending:
                        self._pause()
                    continue
                self._working = False
            if not isinstance(problem, Exception):  # such as Ctrl-C, in a flush
                raise problem
            return

    def _settle(self, problem: BaseException | None) -> None:
        """What was in flight is written, pending again, or given up."""
        batch, self._in_flight = self._in_flight, []
        if problem is None:
            self._attempts = 0
            return
        self._attempts += 1
        if self._attempts < self._attempts_max:
            self._pending.extendleft(reversed(batch))
            self._drop_beyond_limit()
            self._remember_to_flush()
        else:
            self._attempts = 0
            self._warn("failed", f"what searches delivered could not be logged and is dropped: {problem}")

    def _drop_beyond_limit(self) -> None:
        while len(self._pending) > self._pending_max:
            self._pending.popleft()
            self._warn("full", f"more than {self._pending_max:,} searches wait to be logged; the oldest are dropped")

    def _warn(self, about: str, message: str) -> None:
        """Once: a read-only store must not fill anyone's screen."""
        if about not in self._warned:
            self._warned.add(about)
            _log.warning(message)

    def _first_unsettled(self) -> int:
        """The number of the oldest receipt that is neither written nor dropped."""
        waiting = self._in_flight or self._pending
        return waiting[0][0] if waiting else self._noted + 1

    def _remember_to_flush(self) -> None:
        """After a failure no thread is at work that Python would wait for."""
        if self._at_exit is None:
            self._at_exit = partial(_flush, weakref.ref(self))
            atexit.register(self._at_exit)


def _flush(journal: weakref.ref[LogWriter[Any]]) -> None:
    alive = journal()
    if alive is not None:
        alive.flush()
