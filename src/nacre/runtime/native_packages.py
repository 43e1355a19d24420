"""Imports packages with native code: on first use, without telemetry, and in an order that does not crash."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any


def onnxruntime() -> Any:
    """ONNX Runtime. Raises ImportError when it is not installed."""
    # The package reads this when it is imported. Without it, recent releases start telemetry at once.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def usearch_index() -> Any:
    """usearch's class of HNSW indexes."""
    with suppress(ImportError):
        # Importing onnxruntime after usearch crashes the process (seen with onnxruntime 1.31 and usearch 2.26 on
        # Linux). The other order works.
        onnxruntime()
    from usearch.index import Index

    return Index
