"""Imports packages with native code: on first use, one at a time, without telemetry, in an order that does not crash.

Two threads that import packages on top of numpy at once can see it half initialized ("cannot import name
'__cpu_features__'"), so every first import goes through one lock.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from nacre.runtime import forks

_importing = threading.RLock()


def numpy() -> None:
    """Import numpy, before a module that needs it is imported. Raises ImportError when it is not installed."""
    with forks.at_work(), _importing:
        import numpy  # noqa: F401


def onnxruntime() -> Any:
    """ONNX Runtime. Raises ImportError when it is not installed."""
    # The package reads this when it is imported. Without it, recent releases start telemetry at once.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    with forks.at_work(), _importing:
        import onnxruntime

    return onnxruntime


def usearch_index() -> Any:
    """usearch's class of HNSW indexes."""
    with suppress(ImportError):
        # Importing onnxruntime after usearch crashes the process (seen with onnxruntime 1.31 and usearch 2.26 on
        # Linux). The other order works.
        onnxruntime()
    with forks.at_work(), _importing:
        from usearch.index import Index

    return Index
