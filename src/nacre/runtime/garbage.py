"""Pauses Python's garbage collector during a call."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection while a search or a batch runs.

    A collection would visit thousands of new values again and again, and hardly any of them outlives the call. The
    pause applies to the whole process, so other threads collect later as well.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
