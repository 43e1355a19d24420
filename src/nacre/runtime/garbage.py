"""Python's garbage collector, held off for a moment."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection while a search or a batch runs.

    It would visit thousands of young values again and again, hardly any of which outlives the call. The switch is
    the process's: other threads collect later, too.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
