"""What happens when a process forks that uses native code.

SQLite and ONNX Runtime do not work across a fork: a child inherits their memory, but neither the threads that hold
their locks nor the locks of files. So a fork waits, for a short time, until no call is at work in such code, and every
store closes its connections; parent and child open them again when they next need them. A child that was forked in the
middle of a call, all the same, is refused with an error that says what to do. It neither hangs nor touches the files.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from types import TracebackType
from typing import Protocol

from nacre.errors import StoreUnavailable

WAIT_S = 5.0  # that a fork waits for calls of other threads
PAUSE_S = 1.0  # that a new call waits meanwhile; not longer, because a running call may wait for it

_log = logging.getLogger("nacre")


class Renewed(Protocol):
    """Something with locks or threads."""

    def after_fork(self) -> None:
        """In the child: replace locks that other threads may have held, and forget those threads."""


class Closed(Protocol):
    """Something that a child must not inherit."""

    def before_fork(self) -> None:
        """Close it. No call is at work."""


class _State:
    """The calls at work and the forks under way in this process."""

    def __init__(self, *, usable: bool) -> None:
        self.pid = os.getpid()
        self.usable = usable
        self.changed = threading.Condition()
        self.calls: dict[int, int] = {}  # by thread
        self.waiting = 0  # forks that wait for calls to end
        self.forking: set[int] = set()  # threads whose forks wait for nothing any more


_state = _State(usable=True)
_renewed: weakref.WeakSet[Renewed] = weakref.WeakSet()
_closed: weakref.WeakSet[Closed] = weakref.WeakSet()


def renew_in_child(member: Renewed) -> None:
    """Call `after_fork` in each child, for as long as the member is alive."""
    _renewed.add(member)


def close_before(member: Closed) -> None:
    """Call `before_fork` before each fork, for as long as the member is alive."""
    _closed.add(member)


def usable() -> bool:
    """Whether this process may use native code. Not if it was forked while that was at work."""
    return _state.usable and _state.pid == os.getpid()


def refuse(inherited: object) -> None:
    """In a child: this was in use when the process forked, so nothing can be opened here."""
    _state.usable = False
    leak(inherited)


def leak(inherited: object) -> None:
    """Never delete an object, not even at exit: a child that closes a connection of its parent may hang."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class at_work:  # noqa: N801  # a context manager, used like a function
    """A call into native code. Raises StoreUnavailable in a process where that would hang or do damage.

    `part`: of a call of another thread, which waits for this one. A fork that waits for that call does not hold it up.
    """

    __slots__ = ("_part", "_thread")

    def __init__(self, *, part: bool = False) -> None:
        self._part = part

    def __enter__(self) -> None:
        if not usable():
            raise StoreUnavailable(
                "store: this process was forked while the store was in use, and SQLite does not work across a fork; "
                'start processes with multiprocessing.get_context("spawn"), or fork while no call is running'
            )
        self._thread = threading.get_ident()
        state = _state
        with state.changed:
            if self._thread not in state.calls:
                if state.waiting and not self._part:
                    state.changed.wait_for(lambda: not state.waiting, PAUSE_S)
                while state.forking:
                    state.changed.wait()
            state.calls[self._thread] = state.calls.get(self._thread, 0) + 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        state = _state
        with state.changed:
            left = state.calls.get(self._thread, 0) - 1
            if left > 0:
                state.calls[self._thread] = left
                return
            state.calls.pop(self._thread, None)  # a child that was forked in the middle of a call has none
            if state.waiting:
                state.changed.notify_all()


def is_at_work() -> bool:
    """Whether the calling thread is in such a call."""
    return threading.get_ident() in _state.calls


def _before() -> None:
    own = threading.get_ident()
    with _state.changed:
        if own in _state.forking:  # the hook is registered twice
            return
        _state.waiting += 1
        _state.changed.wait_for(lambda: not _state.calls.keys() - {own}, WAIT_S)
        _state.waiting -= 1
        _state.forking.add(own)
        quiet = not _state.calls
    if quiet:
        for member in list(_closed):
            try:
                member.before_fork()
            except Exception as error:
                _log.warning("not ready for a fork (%s); the child cannot use the store", error)


def _after_in_parent() -> None:
    with _state.changed:
        _state.forking.discard(threading.get_ident())
        _state.changed.notify_all()


def _after_in_child() -> None:
    global _state
    _state = _State(usable=_state.usable and not _state.calls)
    for member in list(_renewed):
        member.after_fork()


def go_first() -> None:
    """Wait for calls before the hooks that were registered up to now are run: Python runs the latest first.

    The one of `concurrent.futures` takes a lock that calls need to go on, so this is called once that is imported.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
go_first()
