"""Background work, done by one thread at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("nacre")


class Worker:
    """Runs `work` in a background thread. If it is woken while it runs, it runs once more."""

    def __init__(self, work: Callable[[], None], name: str = "nacre-index") -> None:
        self._work = work
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again = False

    def wake(self) -> None:
        """Run soon. If no thread can be started, for lack of memory, the next call tries again."""
        with self._lock:
            self._again = True
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    _log.warning("background work is put off (%s)", error)
                    return
                self._thread = thread

    def join(self) -> None:
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._again:
                    self._thread = None
                    return
                self._again = False
            self._work()
