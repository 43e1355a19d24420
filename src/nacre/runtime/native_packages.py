"""How packages with a native core are loaded: late, silent, and in an order in which they live together."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any


def onnxruntime() -> Any:
    """ONNX Runtime. Raises ImportError when it is not installed."""
    # Read when the package is imported; without it, recent releases start telemetry there and then.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def usearch_index() -> Any:
    """The class of usearch's HNSW graphs."""
    with suppress(ImportError):
        # The import of onnxruntime crashes a process in which usearch was loaded before it
        # (seen with onnxruntime 1.31 and usearch 2.26 on Linux); the other order does no harm.
        onnxruntime()
    from usearch.index import Index

    return Index
