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

from nacre.analysis.wording import counted
from nacre.errors import StoreBusy
from nacre.runtime import forks

T = TypeVar("T")  # a receipt, or what else belongs into the log

PENDING_MAX = 10_000  # receipts
ATTEMPTS_MAX = 3  # of one write, before its receipts are dropped; not where the store was only locked
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
        self._locked_out: tuple[int, StoreBusy | None] = (0, None)  # attempts that waited in vain, and the last error
        self._warned: set[str] = set()
        self._at_exit: Callable[[], None] | None = None
        self._closed = False
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        """The parent writes what was pending."""
        self._changed = threading.Condition()
        self._pending.clear()
        self._in_flight = []
        self._working = False
        self._hurried = False
        self._attempts = 0

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

    def unwritten(self) -> list[T]:
        """What is noted and not known to be written, in order.

        Whoever asks for this first and for what is written afterwards misses nothing, but may see some of it twice.
        """
        with self._changed:
            return [receipt for _, receipt in (*self._in_flight, *self._pending)]

    def flush(self) -> None:
        """Wait until everything noted before is written, or given up after some attempts.

        Raises StoreBusy if another process keeps the store locked: then it is still pending.
        """
        if not forks.usable():  # a child has neither the thread that writes nor a store to write to
            return
        with self._changed:
            last = self._noted
            before, _ = self._locked_out
        while True:
            with self._changed:
                while self._working and self._first_unsettled() <= last:
                    self._hurried = True
                    self._changed.notify_all()
                    self._changed.wait()
                if self._first_unsettled() > last:
                    return
                times, error = self._locked_out
                if times > before and error is not None:
                    raise error
                self._working = True
            self._work()

    def close(self) -> None:
        """Write what is pending, and say what could not be written. Closing again does nothing."""
        with self._changed:
            self._closed = True
        try:
            self.flush()
        except StoreBusy as error:
            with self._changed:
                lost = len(self._pending)
                self._pending.clear()
            _log.warning("%s of the recall log could not be written: %s", counted(lost, "entry", "entries"), error)
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
        if isinstance(problem, StoreBusy):
            self._locked_out = self._locked_out[0] + 1, problem
        else:
            self._attempts += 1
        if isinstance(problem, StoreBusy) or self._attempts < self._attempts_max:
            self._pending.extendleft(reversed(batch))
            self._drop_beyond_limit()
            self._remember_to_close()
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

    def _remember_to_close(self) -> None:
        """After a failure no thread is at work that Python would wait for."""
        if self._at_exit is None:
            self._at_exit = partial(_close, weakref.ref(self))
            atexit.register(self._at_exit)


def _close(journal: weakref.ref[LogWriter[Any]]) -> None:
    alive = journal()
    if alive is not None:
        alive.close()
